"""Hyperparameters of a Gaussian process sampled: what NUTS finds, ranks that are uniform, runs that stop and go on.

Guards `bayessel.models._gp`, `bayessel.samplers.jumps`, `bayessel.samplers.persistent_hmc`.
"""

import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_array_equal

import bayessel as bs
from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.errors import SamplingWarning

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False, "cores": 1}
SETTINGS = {
    "jumps": {"mass": "dense", "jumps": True},
    "dense": {"mass": "dense"},
    "1996": {"n_leapfrog": 1, "persistence": 0.95, "mass": "unit", "accept": "metropolis", "tune": False},
}


def problem(rng, n, m):
    X = rng.standard_normal((n, m))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def small():
    return bs.models.gp(*problem(np.random.default_rng(1), 15, 1))


@pytest.fixture(scope="module")
def jumping(small):
    return bs.PersistentHMC(
        model=small, updates_per_draw="auto", compile_kwargs={"mode": "FAST_COMPILE"}, **SETTINGS["jumps"]
    )


def run(model, step, draws, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return bs.sample(
            model, draws, tune=60, chains=2, step=step, random_seed=4, cores=1, progressbar=False,
            log_likelihood=False, **options,
        )  # fmt: skip


def test_a_run_that_stops_and_goes_on_is_the_run_that_never_stopped(small, jumping, tmp_path):
    whole = run(small, jumping, 60)
    store = tmp_path / "run"
    run(small, jumping, 25, store=store)
    # stopped on time, in the middle of tuning or after it, as the machine will
    while run(small, jumping, 60, store=store, time_budget=0.05).attrs["status"] != "complete":
        pass
    again = run(small, jumping, 60, store=store)
    assert again.attrs["resumed_draws"] > 0
    assert_array_equal(again.posterior.theta, whole.posterior.theta)
    for name, values in whole.sample_stats.data_vars.items():
        assert_array_equal(again.sample_stats[name], values, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_posterior_is_that_of_nuts(settings, rng):
    X, t = problem(np.random.default_rng(2), 60, 2)
    model = bs.models.gp(X, t)
    with model:
        nuts = pm.sample(2000, tune=1000, chains=4, step=pm.NUTS(), random_seed=3, **QUIET)
        fixed = {"step_size": 0.5 * 60**-0.5} if settings == "1996" else {}
        updates = 25 if settings == "1996" else 10
        step = bs.PersistentHMC(updates_per_draw=updates, **SETTINGS[settings], **fixed)
        mode = bs.gp.fit_map(X, t).theta
        ours = bs.sample(
            model, 2000, tune=1000, chains=4, step=step, initvals={"theta": mode}, random_seed=5, progressbar=False,
            cores=1,
        )  # fmt: skip
    one, other = (trace.posterior.theta.values for trace in (nuts, ours))
    for i in range(one.shape[-1]):
        for feature in (lambda x: x, np.square, lambda x, i=i: x < np.quantile(one[..., i], 0.1)):
            a, b = (feature(x[..., i]).astype(float) for x in (one, other))
            error = np.hypot(float(az.mcse(a, method="mean")), float(az.mcse(b, method="mean")))
            assert abs(a.mean() - b.mean()) < 4.5 * error
    assert max(float(az.rhat(other[..., i])) for i in range(other.shape[-1])) < 1.03


def jumps_forced(model):
    """Jumps in every draw, with what is fitted at each data set; two Hamiltonian updates a draw while tuning."""
    return [bs.PersistentHMC(model=model, updates_per_draw=10, **SETTINGS["jumps"])]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_ranks_are_uniform():
    X, _ = problem(np.random.default_rng(3), 10, 1)
    model = bs.models.gp(X, np.zeros(10))
    found = sbc(
        model, jumps_forced, replications=150, draws=31, thin=2, tune=250, random_seed=6, progressbar=False,
    )  # fmt: skip
    assert found.ok, found.text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_geweke():
    X, _ = problem(np.random.default_rng(3), 6, 1)
    model = bs.models.gp(X, np.zeros(6))
    step = lambda model: [bs.PersistentHMC(model=model, updates_per_draw=5, step_size=0.3, mass="unit", tune=False)]  # noqa: E731
    found = geweke(model, step, random_seed=7, progressbar=False)
    assert found.ok, found.text
