"""The PyMC step: the right distribution, alone and beside other steps, with any mass, with jumps.

Guards `bayessel.samplers.persistent_hmc`, `bayessel.samplers.density`.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from pymc.step_methods.compound import CompoundStep
from scipy import special, stats

from bayessel.samplers import jumps, tuning
from bayessel.samplers.persistent_hmc import PersistentHMC
from tests.oracles.monte_carlo import assert_means, z_scores
from tests.problems import targets
from tests.problems.hmc_models import (
    PYTHON,
    QUIET,
    ExactPrecision,
    by_hand,
    hmc_beside_exact_precision,
    skewed,
    with_precision,
)


@pytest.fixture(scope="module")
def skewed_model():
    return skewed()


@pytest.fixture(scope="module")
def precision_model():
    return with_precision()


@pytest.fixture(scope="module")
def scaled_model():
    """Independent normals of scales from 1e-3 to 1e3 in 100 dimensions."""
    with pm.Model() as model:
        pm.Normal(
            "x", pm.Data("mean", np.linspace(-1.0, 1.0, 100)), pm.Data("scale", np.geomspace(1e-3, 1e3, 100)), shape=100
        )
    return model


def chains_of(step, model, n_chains, draws, rng, tune=0, point=None):
    """Run the step as PyMC does, one chain after the other; the positions as dictionaries of (chains, draws, …)."""
    names = [value.name for value in model.value_vars]
    paths = {name: [] for name in names}
    for chain in range(n_chains):
        step.setup_chain(np.random.default_rng(rng.integers(2**32)), tune, draws)
        here = model.initial_point() if point is None else point(chain)
        for i in range(tune + draws):
            if i == tune:
                step.stop_tuning()
            here, _ = step.step(here)
            if i >= tune:
                for name in names:
                    paths[name].append(here[name])
    return {k: np.reshape(v, (n_chains, draws, *np.shape(v[0]))) for k, v in paths.items()}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"accept": "metropolis"},
        {"n_leapfrog": 3, "window": 2, "updates_per_draw": 2},
        {"mass": "dense"},
        {"mass": "dense", "jumps": True},
        {"mass": "dense", "jumps": True, "updates_per_draw": 3},
    ],
    ids=["default", "metropolis", "windows", "dense", "jumps", "three jumps"],
)
def test_tuned_by_nobody_it_finds_the_skewed_target(skewed_model, settings, rng):
    step = PersistentHMC(model=skewed_model, compile_kwargs=PYTHON, **{"updates_per_draw": "auto", **settings})
    by_hand(step, targets.skewed(3).log_density, {"x": np.array([0.5, -1.0]), "y": np.array(0.2)})
    draws = chains_of(
        step, skewed_model, 20, 100, rng, tune=100, point=lambda c: {"x": np.full(2, -3.0), "y": np.array(2.0)}
    )
    q = np.concatenate([draws["x"], draws["y"][..., None]], axis=-1)
    target = targets.skewed(3)
    assert_means(target.features(q), target.expected)


@pytest.mark.parametrize("mass", ["auto", "diag"])
def test_tuned_by_nobody_it_finds_scales_over_six_decades(scaled_model, rng, mass):
    step = PersistentHMC(model=scaled_model, updates_per_draw="auto", mass=mass, compile_kwargs=PYTHON)
    scale, mean = np.geomspace(1e-3, 1e3, 100), np.linspace(-1.0, 1.0, 100)
    constant = -np.log(scale).sum() - 50.0 * np.log(2.0 * np.pi)

    def log_density(x):
        z = (x - mean) / scale
        return constant - 0.5 * (z @ z), -z / scale

    by_hand(step, log_density, scaled_model.initial_point())
    draws = chains_of(step, scaled_model, 20, 45, rng, tune=150)
    z = (draws["x"] - mean) / scale
    # draws are nearly independent here: three batches of each chain, so that 60 means show their spread
    assert_means(np.concatenate([z, z**2], axis=-1).reshape(60, 15, 200), np.repeat([0.0, 1.0], 100))
    found = np.sqrt(np.einsum("ij,ij->i", step.scale, step.scale)) if step.scale.ndim == 2 else step.scale
    assert_allclose(found, scale, rtol=0.5)
    assert step.updates < 20


def test_exact_posterior_of_a_linear_gaussian_model(rng):
    n, alpha, beta = 25, 0.7, 4.0
    Phi = rng.standard_normal((n, 3)) * [0.3, 1.0, 3.0]
    t = Phi @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(n)
    cov = np.linalg.inv(alpha * np.eye(3) + beta * Phi.T @ Phi)
    exact = targets.gaussian(beta * cov @ Phi.T @ t, cov)
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, alpha**-0.5, shape=3)
        pm.Normal("t", pm.Data("Phi", Phi) @ w, beta**-0.5, observed=pm.Data("y", t))
        step = PersistentHMC(updates_per_draw="auto")
        trace = pm.sample(250, tune=250, chains=20, cores=1, step=step, random_seed=int(rng.integers(2**31)), **QUIET)
    assert_means(exact.features(trace.posterior["w"].values), exact.expected)
    found = trace.sample_stats
    assert set(found.data_vars) == {
        "acceptance_rate", "diverging", "step_size", "energy", "n_steps", "persistence", "window", "flips", "v", "lp",
        "n_jumps", "jumps_accepted",
    }  # fmt: skip
    assert not found.diverging.any() and abs(float(found.acceptance_rate.mean()) - 0.9) < 0.05
    # lp is the density at the draw
    logp = model.compile_logp(mode=PYTHON["mode"])
    for i in (0, 7, 249):
        assert_allclose(found.lp.values[3, i], logp({"w": trace.posterior["w"].values[3, i]}), rtol=1e-9)


def test_another_step_moves_other_variables(precision_model, rng):
    step = hmc_beside_exact_precision(precision_model, step_size=1.5, persistence=0.5, tune=False)

    def start(chain):
        tau = rng.gamma(3.0) / 2.0
        return {"tau_log__": np.asarray(np.log(tau)), "x": rng.standard_normal(6) / np.sqrt(tau)}

    draws = chains_of(step, precision_model, 100, 60, rng, point=start)
    tau, x = np.exp(draws["tau_log__"]), draws["x"]
    features = [tau, np.log(tau), np.mean(np.abs(x) < 0.5, axis=-1), tau * np.mean(x**2, axis=-1)]
    near = 1.0 - 2.0 * stats.t(6, scale=(2.0 / 3.0) ** 0.5).sf(0.5)
    assert_means(np.stack(features, axis=-1), [1.5, special.digamma(3.0) - np.log(2.0), near, 1.0])


def worst_error_of_density_and_gradient(step, model, rng):
    """Largest difference, over some draws, between what the step believes of its point and the closed form."""
    step.setup_chain(rng, 0, 40)
    hmc, point, worst = step.methods[-1], model.initial_point(), 0.0
    for _ in range(40):
        point, (_, info) = step.step(point)
        tau, x = np.exp(float(point["tau_log__"])), point["x"]
        logp = stats.norm(0.0, tau**-0.5).logpdf(x).sum() + stats.gamma(3.0, scale=0.5).logpdf(tau) + np.log(tau)
        worst = max(worst, abs(info["model_logp"] - logp), np.abs(hmc.gradient + tau * x).max())
    return worst


def test_planted_stale_gradient_after_another_step(precision_model, rng, monkeypatch):
    hmc = PersistentHMC(["x"], model=precision_model, step_size=1.5, persistence=0.5, compile_kwargs=PYTHON, tune=False)
    step = CompoundStep([ExactPrecision(["tau"], model=precision_model), hmc])
    assert worst_error_of_density_and_gradient(step, precision_model, rng) < 1e-7

    def stale(self, position, others):
        return self.position is not None and np.array_equal(position, self.position)

    monkeypatch.setattr(PersistentHMC, "_is_known", stale)
    assert worst_error_of_density_and_gradient(step, precision_model, rng) > 0.1


def correlated(size=6):
    """Covariance of neighbours 0.95, its neighbours' 0.95², …, and a mean."""
    return targets.gaussian(np.arange(size), 0.95 ** np.abs(np.subtract.outer(np.arange(size), np.arange(size))))


@pytest.fixture(scope="module")
def flat_model():
    with pm.Model() as model:
        pm.Flat("x", shape=6)
    return model


def by_target(model, target, **settings):
    step = PersistentHMC(model=model, updates_per_draw="auto", compile_kwargs=PYTHON, **settings)
    step._function = target.log_density
    step.density.value = lambda q: target.log_density(q)[0]
    return step


@pytest.mark.parametrize("jumping", [False, True])
def test_a_dense_mass_finds_correlations(flat_model, jumping, rng):
    target = correlated()
    step = by_target(flat_model, target, mass="dense", jumps=jumping)
    draws = chains_of(step, flat_model, 20, 60, rng, tune=150)["x"]
    assert_means(target.features(draws), target.expected)
    cov = 0.95 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    ratios = np.linalg.eigvalsh(np.linalg.solve(step.scale, np.linalg.solve(step.scale, cov).T))
    assert ratios.min() > 0.7 and ratios.max() < 1.4
    assert step.relaxation < 1.5
    if jumping:  # what is fitted is the target but for its tails
        assert step.stay < 3.0 and np.abs(step.location - np.arange(6)).max() < 0.5


def test_jumps_need_no_gradient_and_stop_where_they_fail(flat_model, rng):
    step = by_target(flat_model, correlated(), mass="dense", jumps=True)
    step.setup_chain(rng, 150, 100)
    point, seen = flat_model.initial_point(), []
    for i in range(250):
        if i == 150:
            step.stop_tuning()
        point, (info,) = step.step(point)
        if i >= 150:
            seen.append((info["n_jumps"], info["jumps_accepted"], info["n_steps"]))
            assert_allclose(info["model_logp"], correlated().log_density(point["x"])[0])
    n_jumps, accepted, gradients = np.sum(seen, axis=0)
    assert n_jumps >= 200 and accepted > 0.6 * n_jumps and gradients <= 201
    # a funnel is nothing that a t would fit: trajectories do the work
    funnel = targets.funnel(6, spread=3.0)
    step = by_target(flat_model, funnel, mass="dense", jumps=True)
    step.stay, step.location, step.tune = 20.0, np.zeros(6), False
    step.position = None
    _, (info,) = step.step({"x": np.ones(6)})
    assert info["n_jumps"] == 0 and info["n_steps"] > 0


def test_updates_among_states_that_are_hard_to_leave(flat_model, rng, monkeypatch):
    target = targets.skewed(6)
    step = by_target(flat_model, target, mass="dense", jumps=True, step_size=0.7, tune=False)
    monkeypatch.setattr(tuning, "NOW_AND_THEN", (1e9, 1e9))  # no other updates
    how = jumps.proposal(np.full(6, -0.4), np.eye(6))
    excess = lambda q: jumps.excess(q, target.log_density(q)[0], how).excess  # noqa: E731
    bound = float(np.median([excess(target.draw(rng)) for _ in range(20_000)]))
    expected = np.append(target.expected, 0.5)

    def features(n_chains):
        paths, within = [], 0
        for _ in range(n_chains):
            step.setup_chain(np.random.default_rng(rng.integers(2**32)), 0, 5)
            step.location, step.stay, step.bound = how.location, 0.8, bound
            point = {"x": target.draw(rng)}
            for i in range(5):
                point, (info,) = step.step(point)
                within += info["n_steps"] > (i == 0)
                assert info["n_jumps"] == 1 and not info["diverging"]
            paths.append(point["x"])
        assert 0.3 < within / (5 * n_chains) < 0.7
        beyond = [excess(q) > bound for q in paths]
        return np.column_stack([target.features(np.array(paths)), beyond])[:, None]

    assert_means(features(2000), expected)
    # planted: such an update may end among the others
    monkeypatch.setattr(PersistentHMC, "_confined", lambda step: step._function)
    assert np.abs(z_scores(features(1000), expected)).max() > 5.0


def test_a_matrix_for_mass(flat_model, rng):
    target = correlated()
    cov = 0.95 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    step = by_target(flat_model, target, mass=np.linalg.inv(cov))
    draws = chains_of(step, flat_model, 20, 60, rng, tune=50, point=lambda c: {"x": target.draw(rng)})["x"]
    assert_means(target.features(draws), target.expected)
    assert_allclose(step.scale @ step.scale.T, cov)
