"""The PyMC step: what is evaluated when, the same draws for any cores, states that replay.

Guards `bayessel.samplers.persistent_hmc`, `bayessel.samplers.evaluated_step`.
"""

import copy
import pickle

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from pymc.step_methods.compound import CompoundStep
from pymc.step_methods.state import equal_dataclass_values

from bayessel.samplers.persistent_hmc import PersistentHMC
from tests.problems.hmc_models import PYTHON, QUIET, hmc_beside_exact_precision, skewed, with_precision


@pytest.fixture(scope="module")
def skewed_model():
    return skewed()


@pytest.fixture(scope="module")
def precision_model():
    return with_precision()


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


def test_a_gradient_is_of_the_point_it_is_kept_for(precision_model, rng):
    """After jumps too, which evaluate none: what is kept is the gradient there, or nothing."""
    step = PersistentHMC(["x"], model=precision_model, mass="dense", jumps=True, compile_kwargs=PYTHON)
    step.setup_chain(rng, 120, 200)
    point, jumped, known = precision_model.initial_point(), 0, 0
    for i in range(200):
        if i == 120:
            step.stop_tuning()
        point, (info,) = step.step(point)
        jumped += info["jumps_accepted"]
        logp, gradient = step.density.both(step.position)
        assert_allclose(step.logp, logp, rtol=1e-9)
        if step.gradient is not None:
            known += info["jumps_accepted"]
            assert_allclose(step.gradient, gradient, rtol=1e-9, atol=1e-12)
    assert jumped > 20 and known > 5


def test_the_step_size_that_stays_is_the_average(skewed_model, rng):
    """Dual averaging ends with the weighted mean of what it tried, worked out from the acceptance rates alone."""
    step = PersistentHMC(model=skewed_model, mass="unit", compile_kwargs=PYTHON)
    step.setup_chain(rng, 60, 5)
    point, error, tried = skewed_model.initial_point(), 0.0, []
    for count in range(1, 61):
        point, (info,) = step.step(point)
        if count == 1:
            first = step._tuning.averaging.anchor
            mean = first - np.log(2.0)
        error += (0.9 - info["acceptance_rate"] - error) / (count + 10.0)
        tried.append(first - error * np.sqrt(count) / 0.05)
        mean += count**-0.75 * (tried[-1] - mean)
    assert_allclose(np.log(step.step_size), tried[-1], rtol=1e-9)
    step.stop_tuning()
    assert_allclose(np.log(step.step_size), mean, rtol=1e-9)
    assert abs(mean - tried[-1]) > 1e-3
    assert_allclose(step.step(point)[1][0]["step_size"], np.exp(mean), rtol=1e-9)


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


# --- what PyMC asks of every step method ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_leapfrog": 3, "window": 2, "accept": "metropolis"},
        {"mass": "dense", "jumps": True},
        {"mass": "unit", "step_size": 0.5, "persistence": 0.9},
        {"tune": False, "step_size": 0.3, "updates_per_draw": 5},
    ],
)
def test_pymc_finds_states_equal_that_are(settings):
    """Its own comparison of states, of a step that has never run, has run, and was sent back."""
    covariance, mean = np.array([[1.0, 0.6], [0.6, 2.0]]), np.array([0.3, -1.0])
    with pm.Model() as model:
        pm.MvNormal("x", mean, covariance, shape=2)
        step = PersistentHMC(**{"updates_per_draw": "auto"} | settings, rng=np.random.default_rng(3))
    again, first = copy.deepcopy(step), step.sampling_state
    assert equal_dataclass_values(step.sampling_state, first)
    point = model.initial_point()
    value, _ = step.step(point)
    last = step.sampling_state
    assert not equal_dataclass_values(first, last)
    step.sampling_state = first
    assert equal_dataclass_values(step.sampling_state, first)
    assert equal_dataclass_values(step.step(point)[0], value) and equal_dataclass_values(step.sampling_state, last)
    step.sampling_state = first
    with model:
        trace = pm.sample(1000, tune=300, chains=1, step=step, random_seed=1, discard_tuned_samples=False, **QUIET)
    assert trace.warmup_posterior.sizes["draw"] == 300 and trace.posterior.sizes["draw"] == 1000
    draws = trace.posterior["x"].values[0]
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) < spread / 5).all()
    assert (np.abs(draws.std(axis=0) - spread) < spread / 5).all()
    for name, (dtype, _) in step.stats_dtypes_shapes.items():
        assert trace.sample_stats[{"model_logp": "lp"}.get(name, name)].dtype == np.dtype(dtype), name
    again.sampling_state = step.sampling_state
    assert equal_dataclass_values(again.sampling_state, step.sampling_state)
    assert not equal_dataclass_values(again.sampling_state, first)


def test_pymc_finds_the_value_variables_of_one_and_of_two():
    with pm.Model() as model:
        one, two = pm.HalfNormal("one"), pm.HalfNormal("two")
        assert PersistentHMC([one]).vars == [model.rvs_to_values[one]]
        assert set(PersistentHMC([one, two]).vars) == {model.rvs_to_values[one], model.rvs_to_values[two]}
