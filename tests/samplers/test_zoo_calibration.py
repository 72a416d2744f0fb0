"""Simulated ranks of models of the zoo in which exact draws, discrete variables and HMC take turns.

Guards `bayessel.samplers.step_choice`, `bayessel.samplers.gibbs`, `bayessel.samplers.conjugacy.block`,
`bayessel.samplers.conjugacy.scale_children`.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import bayessel as bs
from bayessel.diagnostics.calibration import sbc
from bayessel.samplers import conditionals

X = np.array([-1.2, -0.4, 0.1, 0.6, 1.3])


def found(model):
    """As many exact draws as are proved, whatever else is connected with them."""
    return bs.steps(model, split="conjugate")


def robust_by_weights():
    """All exact: slope, scale, and a precision of each row."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 1.0)
        variance = pm.InverseGamma("variance", 3.0, 2.0)
        weight = pm.Gamma("weight", 2.0, 2.0, shape=5)
        pm.Normal("y", slope * X, pt.sqrt(variance / weight), observed=pm.Data("data", X))
    return model, {"gaussian_weights_gibbs", "gamma_precision_gibbs"}


def hierarchy():
    """Effects that sum to zero, by HMC, and levels and precisions that are exact."""
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 1.0)
        spread = pm.InverseGamma("spread", 3.0, 1.0)
        effect = pm.ZeroSumNormal("effect", spread, shape=3)
        noise = pm.Gamma("noise", 3.0, 2.0)
        mean = level + effect[np.array([0, 1, 2, 0, 1])]
        pm.Normal("y", mean, tau=noise, observed=pm.Data("data", X))
    return model, {"gaussian_weights_gibbs", "gamma_precision_gibbs", "persistent_hmc"}


def non_centred():
    """Exact offsets, and their scale by HMC."""
    with pm.Model() as model:
        tau = pm.Gamma("tau", 3.0, 3.0)
        offset = pm.Normal("offset", 0.0, 1.0, shape=3)
        pm.Normal("y", tau * offset, 0.5, observed=pm.Data("data", X[:3]))
    return model, {"gaussian_weights_gibbs", "persistent_hmc"}


def change_of_level():
    """Levels and noise exact, given a time that PyMC's own step moves."""
    with pm.Model() as model:
        when = pm.Categorical("when", np.full(6, 1 / 6))
        level = pm.Normal("level", 0.0, 1.0, shape=2)
        noise = pm.InverseGamma("noise", 3.0, 1.0)
        mean = pm.math.switch(np.arange(5) < when, level[0], level[1])
        pm.Normal("y", mean, pt.sqrt(noise), observed=pm.Data("data", X))
    return model, {"gaussian_weights_gibbs", "gamma_precision_gibbs", "categorical_gibbs_metropolis"}


def indicators():
    """Groups of rows by Gibbs of PyMC, their means and their precision by ours."""
    with pm.Model() as model:
        mean = pm.Normal("mean", [-1.0, 1.0], 0.7, shape=2)
        tau = pm.Gamma("tau", 4.0, 2.0)
        kind = pm.Bernoulli("kind", 0.4, shape=4)
        pm.Normal("y", mean[kind], tau=tau, observed=pm.Data("data", X[:4]))
    return model, {"gaussian_weights_gibbs", "gamma_precision_gibbs", "binary_gibbs_metropolis"}


#: (model, draws between those that are kept)
MODELS = {robust_by_weights: 8, hierarchy: 6, non_centred: 12, change_of_level: 12, indicators: 12}


def ranks(make, replications, draws=31):
    model, _ = make()
    return sbc(
        model, found, replications, draws, thin=MODELS[make], tune=150, random_seed=1, progressbar=False, n_jobs=1
    )


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_the_steps_take_turns_as_is_meant(make):
    model, expected = make()
    assert {step.name for step in found(model)} == expected


@pytest.mark.parametrize("make", [robust_by_weights, indicators], ids=lambda make: make.__name__)
def test_a_few_ranks(make):
    result = ranks(make, 40)
    assert result.ok, result.text


def test_a_missing_degree_of_freedom_is_seen(monkeypatch):
    right = conditionals.draw_log_variance
    monkeypatch.setattr(conditionals, "draw_log_variance", lambda a, b, n, S, rng: right(a, b, n - 3.0, S, rng))
    assert not ranks(robust_by_weights, 60).ok


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_ranks(make):
    result = ranks(make, 150)
    assert result.ok, result.text
