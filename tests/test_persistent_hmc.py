"""The PyMC step: right distribution, the same draws for any cores, states that replay, no stale gradient."""

import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from pymc.exceptions import SamplingError
from pymc.step_methods.compound import BlockedStep, CompoundStep, StepMethodState
from scipy import special, stats

from bayessel.samplers import momentum, persistent_hmc
from bayessel.samplers.persistent_hmc import PersistentHMC
from tests import targets
from tests.mc_asserts import assert_means

QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
# pure Python, compiled in no time: for models that are evaluated a few hundred times
PYTHON = {"mode": "FAST_COMPILE"}


@pytest.fixture(scope="module")
def skewed_model():
    with pm.Model() as model:
        x = pm.Flat("x", shape=2, initval=np.zeros(2))
        y = pm.Flat("y", initval=0.0)
        pm.Potential("density", pt.sum(x - pt.exp(x)) + y - pt.exp(y))
    return model


@pytest.fixture(scope="module")
def scaled_model():
    """Independent normals of scales from 1e-3 to 1e3 in 100 dimensions."""
    with pm.Model() as model:
        pm.Normal(
            "x", pm.Data("mean", np.linspace(-1.0, 1.0, 100)), pm.Data("scale", np.geomspace(1e-3, 1e3, 100)), shape=100
        )
    return model


@pytest.fixture(scope="module")
def precision_model():
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


# --- the right distribution -------------------------------------------------------------------------------------


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


def test_tuned_by_nobody_it_finds_scales_over_six_decades(scaled_model, rng):
    step = PersistentHMC(model=scaled_model, updates_per_draw="auto", compile_kwargs=PYTHON)
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
    assert_allclose(step.scale, scale, rtol=0.5)
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


@pytest.mark.parametrize("jumps", [False, True])
def test_a_dense_mass_finds_correlations(flat_model, jumps, rng):
    target = correlated()
    step = by_target(flat_model, target, mass="dense", jumps=jumps)
    draws = chains_of(step, flat_model, 20, 60, rng, tune=150)["x"]
    assert_means(target.features(draws), target.expected)
    cov = 0.95 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    ratios = np.linalg.eigvalsh(np.linalg.solve(step.scale, np.linalg.solve(step.scale, cov).T))
    assert ratios.min() > 0.7 and ratios.max() < 1.4
    assert step.relaxation < 1.5
    if jumps:  # what is fitted is the target but for its tails
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


def test_a_matrix_for_mass(flat_model, rng):
    target = correlated()
    cov = 0.95 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    step = by_target(flat_model, target, mass=np.linalg.inv(cov))
    draws = chains_of(step, flat_model, 20, 60, rng, tune=50, point=lambda c: {"x": target.draw(rng)})["x"]
    assert_means(target.features(draws), target.expected)
    assert_allclose(step.scale @ step.scale.T, cov)


# --- what is evaluated when -------------------------------------------------------------------------------------


def counted(step):
    """Count the calls of the density behind a step."""
    inner, calls = step._function, []

    def function(q):
        calls.append(q.copy())
        return inner(q)

    step._function = function
    return calls


def test_gradients_are_kept_exactly_as_long_as_they_are_right(precision_model, rng):
    step = PersistentHMC(["x"], model=precision_model, step_size=0.5, tune=False, compile_kwargs=PYTHON)
    calls = counted(step)
    step.setup_chain(rng, 0, 100)
    point = precision_model.initial_point()
    point, (info,) = step.step(point)
    assert info["n_steps"] == len(calls) == 2
    for _ in range(3):
        calls.clear()
        point, (info,) = step.step(point)
        assert info["n_steps"] == len(calls) == 1  # nothing moved
    for change in (
        {"tau_log__": point["tau_log__"] + 0.1},
        {"x": point["x"] + 0.1},
    ):
        calls.clear()
        point, (info,) = step.step({**point, **change})
        assert info["n_steps"] == len(calls) == 2
        assert_allclose(info["model_logp"], precision_model.compile_logp(**PYTHON)(point), rtol=1e-9)
    # the same values in other arrays are no change
    calls.clear()
    point, _ = step.step({k: v.copy() for k, v in point.items()})
    assert len(calls) == 1
    step.data_changed()
    step.step(point)
    assert len(calls) == 3


def test_new_data_are_seen(rng):
    with pm.Model() as model:
        pm.Normal("x", pm.Data("mean", 0.0), 1.0)
        step = PersistentHMC(step_size=0.5, tune=False, compile_kwargs=PYTHON)
    step.setup_chain(rng, 0, 100)
    point, (info,) = step.step(model.initial_point())
    with model:
        pm.set_data({"mean": 3.0})
    point, (info,) = step.step(point)
    assert info["n_steps"] == 2
    assert_allclose(info["model_logp"], -0.5 * (point["x"] - 3.0) ** 2 - 0.5 * np.log(2 * np.pi))


def test_points_keep_their_order_and_are_not_changed(skewed_model, rng):
    step = PersistentHMC(["y"], model=skewed_model, step_size=0.5, compile_kwargs=PYTHON)
    point = skewed_model.initial_point()
    before = {k: v.copy() for k, v in point.items()}
    for _ in range(5):
        new, _ = step.step(point)
    assert list(new) == list(point) == ["x", "y"]
    assert new["x"] is point["x"]
    for name, value in before.items():
        assert_allclose(point[name], value, rtol=0)
        assert new[name].shape == value.shape and new[name].dtype == value.dtype


# --- one instance, many chains ----------------------------------------------------------------------------------


def test_cores_do_not_matter(skewed_model):
    with skewed_model:
        runs = [
            pm.sample(
                60, tune=60, chains=3, cores=cores, random_seed=3, step=PersistentHMC(updates_per_draw="auto"), **QUIET
            )
            for cores in (1, 2)
        ]
    for group in ("posterior", "sample_stats"):
        for name, values in runs[0][group].data_vars.items():
            np.testing.assert_array_equal(values, runs[1][group][name], err_msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_leapfrog": 3, "window": 2, "updates_per_draw": 3, "accept": "metropolis"},
        {"mass": "dense", "jumps": True},
    ],
)
@pytest.mark.parametrize("stop", [0, 1, 37, 75, 80, 100, 130])
def test_a_state_replays_what_followed_it(precision_model, settings, stop):
    def fresh():
        return hmc_beside_exact_precision(precision_model, **{"updates_per_draw": "auto", **settings})

    def go_on(step, point, begin, end):
        rows = []
        for i in range(begin, end):
            if i == 100:
                step.stop_tuning()
            point, stats = step.step(point)
            rows.append([point["tau_log__"], *point["x"], *stats[-1].values()])
        return point, rows

    step = one_step(settings, fresh)
    step.setup_chain(np.random.default_rng(7), 100, 50)
    point, _ = go_on(step, precision_model.initial_point(), 0, stop)
    blob = pickle.dumps((step.sampling_state, point))
    expected = go_on(step, point, stop, 150)[1]
    # another chain in between, and a step that has never run
    for other in (step, fresh()):
        other.setup_chain(np.random.default_rng(8), 100, 50)
        go_on(other, point, 0, 5)
        other.sampling_state, there = pickle.loads(blob)
        np.testing.assert_array_equal(go_on(other, there, stop, 150)[1], expected)


_STEPS = {}


def one_step(settings, make):
    """Compile once per setting."""
    key = str(settings)
    if key not in _STEPS:
        _STEPS[key] = make()
    return _STEPS[key]


def test_a_chain_forgets_the_one_before(skewed_model):
    step = PersistentHMC(model=skewed_model, updates_per_draw="auto")

    def one_chain():
        step.setup_chain(np.random.default_rng(5), 60, 20)
        point = skewed_model.initial_point()
        for i in range(80):
            if i == 60:
                step.stop_tuning()
            point, stats = step.step(point)
        return point["x"], list(stats[0].values())

    first = one_chain()
    step.setup_chain(np.random.default_rng(6), 0, 20)
    for _ in range(20):
        step.step({"x": np.ones(2), "y": np.array(-2.0)})
    again = one_chain()
    np.testing.assert_array_equal(first[0], again[0])
    assert first[1] == again[1]


def test_blocks_may_be_taken_apart(skewed_model):
    with skewed_model:
        step = PersistentHMC(["x", "y"], blocked=False, step_size=0.5, compile_kwargs=PYTHON)
    assert isinstance(step, CompoundStep) and [len(m.vars) for m in step.methods] == [1, 1]


# --- tuning, seen from inside -----------------------------------------------------------------------------------


def momentum_is_new_after_a_window(step, point, rng):
    """Run to the end of the first window; whether the momentum is what the generator gives there."""
    step.setup_chain(rng, 100, 10)
    seen = []
    right = momentum.fresh

    def noted(generator, size):
        seen.append(right(generator, size))
        return seen[-1]

    persistent_hmc.momentum.fresh, before = noted, momentum.fresh
    try:
        scale = step.scale
        while step.scale is scale:
            point, _ = step.step(point)
            assert step._tuning.draw < 30
    finally:
        persistent_hmc.momentum.fresh = before
    return step.momentum is seen[-1]


def test_the_momentum_is_drawn_anew_when_the_mass_changes(skewed_model, monkeypatch, rng):
    step = PersistentHMC(model=skewed_model, compile_kwargs=PYTHON)
    assert momentum_is_new_after_a_window(step, skewed_model.initial_point(), rng)

    # planted: the old momentum is kept
    right = PersistentHMC._adapt

    def kept(self):
        before = self.momentum
        n_gradients = right(self)
        self.momentum = before
        return n_gradients

    monkeypatch.setattr(PersistentHMC, "_adapt", kept)
    assert not momentum_is_new_after_a_window(step, skewed_model.initial_point(), rng)


def settings_after_tuning(step, model, rng):
    """Step size, persistence, pace, updates and scales at every draw after tuning: one set if they are frozen."""
    step.setup_chain(rng, 50, 50)
    point, seen = model.initial_point(), set()
    for i in range(100):
        if i == 50:
            step.stop_tuning()
        point, (info,) = step.step(point)
        if i >= 50:
            seen.add((step.step_size, info["step_size"], step.persistence, step.delta, step.updates, *step.scale))
    return seen


def test_nothing_adapts_after_tuning(skewed_model, monkeypatch, rng):
    step = PersistentHMC(model=skewed_model, updates_per_draw="auto", compile_kwargs=PYTHON)
    assert len(settings_after_tuning(step, skewed_model, rng)) == 1
    assert step._tuning is None and step.sampling_state.progress is None

    # planted: the tuning goes on
    monkeypatch.setattr(PersistentHMC, "stop_tuning", lambda self: None)
    assert len(settings_after_tuning(step, skewed_model, rng)) > 10


def test_what_is_given_stays_as_given(skewed_model, rng):
    step = PersistentHMC(
        model=skewed_model, step_size=0.3, persistence=0.8, delta=0.07, mass=[4.0, 1.0, 0.25], updates_per_draw=2,
        compile_kwargs=PYTHON,
    )  # fmt: skip
    assert settings_after_tuning(step, skewed_model, rng) == {(0.3, 0.3, 0.8, 0.07, 2, 0.5, 1.0, 2.0)}
    step = PersistentHMC(model=skewed_model, tune=False, compile_kwargs=PYTHON)
    assert len(settings_after_tuning(step, skewed_model, rng)) == 1
    assert_allclose(step.scale, 1.0)
    step = PersistentHMC(model=skewed_model, mass="unit", compile_kwargs=PYTHON)
    settings_after_tuning(step, skewed_model, rng)
    assert_allclose(step.scale, 1.0)
    step = PersistentHMC(model=skewed_model, step_size=0.3, compile_kwargs=PYTHON)
    settings_after_tuning(step, skewed_model, rng)
    assert step.step_size == 0.3 and not (step.scale == 1.0).any()


# --- at the door ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"n_leapfrog": 0}, ValueError, "n_leapfrog must be at least 1"),
        ({"window": 3, "n_leapfrog": 1}, ValueError, "window must be at most n_leapfrog [+] 1 = 2"),
        ({"step_size": -1.0}, ValueError, "step_size must be positive"),
        ({"persistence": 1.0}, ValueError, r"persistence must be in \[0, 1\)"),
        ({"persistence": "much"}, TypeError, "persistence must be a number"),
        ({"delta": 0.0}, ValueError, r"delta must be in \(0, 1\]"),
        ({"target_accept": 1.0}, ValueError, "target_accept must be in"),
        ({"accept": "always"}, ValueError, "'nonreversible', 'metropolis'"),
        ({"updates_per_draw": "some"}, TypeError, "updates_per_draw must be an integer"),
        ({"updates_per_draw": 0}, ValueError, "updates_per_draw must be at least 1"),
        ({"tune": 1}, TypeError, "tune must be True or False"),
        ({"mass": "full"}, ValueError, "mass must be one of"),
        ({"mass": [1.0, -1.0, 1.0]}, ValueError, "mass must be positive"),
        ({"mass": [1.0]}, ValueError, "mass must be one number or 3 numbers"),
        ({"mass": np.eye(2)}, ValueError, "mass must be 3 numbers or a .3, 3. matrix"),
        ({"mass": "diag", "jumps": True}, ValueError, 'jumps need mass="dense"'),
        ({"mass": "dense", "jumps": 1}, TypeError, "jumps must be True or False"),
    ],
)
def test_bad_settings(skewed_model, settings, error, said):
    with pytest.raises(error, match=said):
        PersistentHMC(model=skewed_model, compile_kwargs=PYTHON, **settings)


def test_discrete_variables_are_refused():
    with pm.Model() as model:
        pm.Poisson("k", 3.0)
        pm.Normal("x")
    with pytest.raises(TypeError, match="continuous, got k; give those to another step method"):
        PersistentHMC(["k", "x"], model=model)
    assert [v.name for v in PersistentHMC(model=model, compile_kwargs=PYTHON).vars] == ["x"]


def test_a_start_without_density_is_refused():
    with pm.Model() as model:
        x = pm.Flat("x", initval=1.0)
        pm.Potential("wall", pt.switch(x > 0.0, -x, -np.inf))
        step = PersistentHMC(compile_kwargs=PYTHON)
    assert step.step(model.initial_point())[1][0]["diverging"] in (True, False)
    with pytest.raises(SamplingError, match=r"log density must be finite.*-inf.*initvals"):
        step.step({"x": np.array(-1.0)})
