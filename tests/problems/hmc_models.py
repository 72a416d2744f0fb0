"""Models for the tests of PersistentHMC, with densities written in NumPy."""

import functools

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.testing import assert_allclose
from pymc.step_methods.compound import BlockedStep, CompoundStep, StepMethodState

from bayessel.samplers.persistent_hmc import PersistentHMC

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
# pure Python, compiled in no time: for models that are evaluated a few hundred times
PYTHON = {"mode": "FAST_COMPILE"}


@functools.cache
def skewed():
    with pm.Model() as model:
        x = pm.Flat("x", shape=2, initval=np.zeros(2))
        y = pm.Flat("y", initval=0.0)
        pm.Potential("density", pt.sum(x - pt.exp(x)) + y - pt.exp(y))
    return model


@functools.cache
def with_precision():
    """Six x | tau ~ N(0, 1/tau), tau ~ Gamma(3, 2): tau given x is Gamma(6, 2 + Σx²/2), an x alone is Student's t."""
    with pm.Model() as model:
        tau = pm.Gamma("tau", 3.0, 2.0)
        pm.Normal("x", 0.0, 1.0 / pt.sqrt(tau), shape=6)
    return model


class ExactPrecision(BlockedStep):
    """Draws tau given x exactly."""

    name = "exact_precision"
    _state_class = StepMethodState

    def __init__(self, vars, model=None, blocked=True):
        self.vars = [model.rvs_to_values[model["tau"]]]
        self.rng = np.random.default_rng()

    def step(self, point):
        new = dict(point)
        tau = self.rng.gamma(6.0) / (2.0 + 0.5 * np.sum(point["x"] ** 2))
        new["tau_log__"] = np.asarray(np.log(tau))
        return new, [{}]


def by_hand(step, log_density, point):
    """Replace the compiled density by one written in NumPy, after comparing them: no machine code to wait for."""
    step.setup_chain(np.random.default_rng(0), 0, 1)
    step._arrive(point)
    logp, gradient = log_density(step.position)
    assert_allclose(step.logp, logp, rtol=1e-6)
    assert_allclose(step.gradient, gradient, rtol=1e-6)
    step._function = log_density
    if step.jumps:
        assert_allclose(step.density.value(step.position), logp, rtol=1e-6)
        step.density.value = lambda q: log_density(q)[0]
    return step


def hmc_beside_exact_precision(model, **settings):
    """Exact draws of tau, then PersistentHMC for x."""
    hmc = PersistentHMC(["x"], model=model, compile_kwargs=PYTHON, **settings)

    def log_density(x):
        log_tau = float(hmc._shared["tau_log__"].get_value(borrow=True))
        tau = np.exp(log_tau)
        # N(x | 0, 1/tau) Gamma(tau | 3, 2) tau, the last for the logarithm
        logp = -0.5 * tau * (x @ x) + 3.0 * (log_tau - np.log(2.0 * np.pi))
        return logp + 3.0 * np.log(2.0) - np.log(2.0) + 3.0 * log_tau - 2.0 * tau, -tau * x

    by_hand(hmc, log_density, {"tau_log__": np.array(0.3), "x": np.linspace(-1.0, 1.0, 6)})
    return CompoundStep([ExactPrecision(["tau"], model=model), hmc])
