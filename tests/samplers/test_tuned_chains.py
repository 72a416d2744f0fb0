"""Whole chains with nothing set by hand, from a start far away: expectations, and what a gradient is worth.

Guards `bayessel.samplers.tuning`, `bayessel.samplers.persistent_hmc`.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytest

from bayessel.samplers.persistent_hmc import PersistentHMC
from tests.oracles.monte_carlo import assert_means
from tests.problems import targets

pytestmark = pytest.mark.slow


def tuned(target, rng, chains, draws=500, tune=600, **settings):
    """Positions (chains, draws, n) and gradients evaluated after tuning; no density is compiled."""
    with pm.Model():
        pm.Flat("x", shape=target.size)
        step = PersistentHMC(updates_per_draw="auto", compile_kwargs={"mode": "FAST_COMPILE"}, **settings)
    step._function = target.log_density
    paths, n_gradients = [], 0
    for seed in rng.integers(2**32, size=chains):
        step.setup_chain(np.random.default_rng(seed), tune, draws)
        point = {"x": 3.0 * np.random.default_rng(seed).standard_normal(target.size)}
        path = []
        for i in range(tune + draws):
            if i == tune:
                step.stop_tuning()
            point, (info,) = step.step(point)
            if i >= tune:
                path.append(point["x"])
                n_gradients += info["n_steps"]
        paths.append(path)
    return np.array(paths), n_gradients


def per_1000_gradients(positions, n_gradients):
    """Smallest effective sample size, bulk or tail, of any coordinate."""
    found = []
    for i in range(positions.shape[2]):
        x = positions[:, :, i]
        found += [float(az.ess(x, method="bulk")), float(az.ess(x, method="tail", prob=(0.05, 0.95)))]
    return 1000.0 * min(found) / n_gradients


@pytest.mark.parametrize("accept", ["nonreversible", "metropolis"])
@pytest.mark.parametrize(
    "target",
    [targets.skewed(3), targets.correlated(), targets.funnel(), targets.ill_conditioned(100, 100.0),
     targets.linear_gaussian()],
    ids=lambda t: t.name,
)  # fmt: skip
def test_expectations(target, accept, rng):
    positions, _ = tuned(
        target, rng, 24, draws=150, accept=accept, target_accept=0.97 if target.name == "funnel" else None
    )
    # three batches of each chain: 72 means show their spread
    features = target.features(positions)
    assert_means(features.reshape(72, 50, features.shape[-1]), target.expected)


@pytest.mark.parametrize(
    ("target", "least", "gain"),
    # measured 7.8, 32 and 330, and 2.7, 1.9 and 1 times what a new uniform each time gives
    [
        (targets.correlated(), 5.0, 1.6),
        (targets.ill_conditioned(100, 100.0), 20.0, 1.4),
        (targets.skewed(1), 150.0, 0.7),
    ],
    ids=["correlated", "ill-conditioned", "skewed"],
)
def test_draws_per_gradient(target, least, gain, rng):
    persistent = per_1000_gradients(*tuned(target, rng, 4, draws=1000, mass="diag"))
    anew = per_1000_gradients(*tuned(target, rng, 4, draws=1000, mass="diag", accept="metropolis"))
    assert persistent > least
    assert persistent > gain * anew
