"""Compiled loops: the draws of the loop in Python, whatever the block; densities that cannot be called by address.

Guards `bayessel.samplers.hmc_draws`, `bayessel.samplers.hmc_update`, `bayessel.samplers.compiled_density`.
"""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.sparse
import pytensor.tensor as pt
import pytest
import scipy.sparse as sp
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal
from pytensor.raise_op import Assert

import bayessel as bs
from bayessel.samplers.compiled_density import CompiledDensity
from bayessel.samplers.persistent_hmc import PersistentHMC
from tests.problems.hmc_models import PYTHON, skewed, with_precision

WAYS = {
    "default": {"updates_per_draw": "auto"},
    "metropolis": {"accept": "metropolis", "updates_per_draw": 3},
    "windows": {"n_leapfrog": 4, "window": 3},
    "dense": {"mass": "dense", "updates_per_draw": "auto"},
    "nothing tuned": {"tune": False, "step_size": 0.3, "persistence": 0.8, "delta": 0.1},
    "unit": {"mass": "unit", "updates_per_draw": 2},
}


def one_by_one(step, model, tune, draws):
    """Positions and statistics of draws made one at a time."""
    point, rows, stats = model.initial_point(0), [], []
    for i in range(tune + draws):
        if i == tune:
            step.stop_tuning()
        point, (said,) = step.step(point)
        rows.append(np.concatenate([np.ravel(value) for value in point.values()]))
        stats.append(said)
    return np.array(rows), {name: np.array([one[name] for one in stats]) for name in stats[0]}


def together(step, model, tune, draws, most):
    """The same, `most` at a time."""
    point, rows, stats, done = model.initial_point(0), [], [], 0
    while done < tune + draws:
        if done == tune:
            step.stop_tuning()
        left = tune - done if done < tune else tune + draws - done
        point, values, said = step.draws(point, min(left, most), np.inf)
        n = len(said["v"])
        rows.append(np.column_stack([value.reshape(n, -1) for value in values.values()]))
        stats.append(said)
        done += n
    return np.concatenate(rows), {name: np.concatenate([one[name] for one in stats]) for name in stats[0]}


@pytest.mark.parametrize("way", WAYS)
def test_the_compiled_loop_makes_the_draws_of_the_loop_in_python(way):
    model = skewed()
    step = PersistentHMC(model=model, **WAYS[way])

    def chain(make, *args):
        step.setup_chain(np.random.default_rng(3), 60, 40)
        return make(step, model, 60, 40, *args)

    rows, stats = chain(one_by_one)
    for most in (100, 7):
        many, said = chain(together, most)
        assert_array_equal(many, rows)
        for name in stats:
            assert_array_equal(said[name], stats[name], err_msg=name)
    step._function = lambda q: step.density.both(q)
    assert not step.makes_many
    slow, slow_stats = chain(one_by_one)
    # to rounding: sums may be taken in another order
    assert_allclose(slow, rows, rtol=1e-6, atol=1e-9)
    assert_array_equal(slow_stats["n_steps"], stats["n_steps"])
    assert_allclose(slow_stats["energy"], stats["energy"], rtol=1e-6)


def test_draws_end_with_their_time(rng):
    step = PersistentHMC(model=skewed(), updates_per_draw=50)
    step.setup_chain(rng, 0, 10**6)
    _, rows, stats = step.draws(skewed().initial_point(0), 10**6, 0.1)
    assert 1 <= len(stats["v"]) == len(rows["x"]) < 10**6
    assert len(step.draws(skewed().initial_point(0), 5, 0.0)[2]["v"]) == 1


def test_data_of_another_length_are_seen_by_the_compiled_loop(rng):
    with pm.Model() as model:
        x = pm.Data("x", np.arange(3.0))
        mu = pm.Normal("mu", 0.0, 10.0)
        pm.Normal("t", mu + 0.0 * x, 1.0, observed=x)
        step = PersistentHMC(updates_per_draw="auto")
        for values in (np.full(3, 1.0), np.full(400, 5.0)):
            pm.set_data({"x": values})
            step.setup_chain(rng, 200, 400)
            draws = together(step, model, 200, 400, 1000)[0][200:]
            assert abs(draws.mean() - values[0]) < 5.0 / np.sqrt(len(values)) / np.sqrt(20.0)


def test_other_variables_are_seen_by_the_compiled_loop(rng):
    """Six x given tau, which moves between the draws: their variance is 1/tau."""
    model = with_precision()
    step = PersistentHMC(["x"], model=model, updates_per_draw=20, step_size=0.5, tune=False, mass="unit")
    assert step.makes_many
    step.setup_chain(rng, 0, 100)
    for tau in (1.0, 25.0):
        point, scaled = {**model.initial_point(0), "tau_log__": np.log(tau)}, []
        step._step_size = step.step_size = 0.5 / np.sqrt(tau)
        for _ in range(400):
            point, _ = step.step(point)
            scaled.append(point["x"])
        assert_allclose(np.var(scaled) * tau, 1.0, rtol=0.2)


def _compiled(density):
    with pm.Model() as model:
        density(pm.Flat("x", initval=1.0))
    return PersistentHMC(model=model, step_size=0.1, tune=False)


def test_what_could_raise_or_runs_python_is_not_called_by_address():
    assert _compiled(lambda x: pm.Normal("y", x, 1.0)).makes_many
    checked = _compiled(lambda x: pm.Potential("p", Assert("x is positive")(x, x > 0.0)))
    assert not checked.makes_many and CompiledDensity.of(checked.density.both) is None
    plain = PersistentHMC(model=skewed(), compile_kwargs=PYTHON)
    assert not plain.makes_many


def test_an_index_that_follows_from_a_position_is_not_called_by_address():
    """Out of range it raises; inside machine code called by address that is garbage."""
    with pm.Model() as model:
        x = pm.Normal("x", 2.0, 1.2)
        table = pm.Data("table", np.arange(5.0))
        pm.Potential("p", 0.1 * table[pt.cast(pt.floor(x), "int64")])
    step = PersistentHMC(model=model, updates_per_draw="auto")
    assert not step.makes_many
    with pytest.raises(IndexError, match="out of bounds"):
        bs.sample(model, 500, tune=100, chains=2, cores=1, random_seed=0, step=step, progressbar=False)


@pytest.mark.parametrize("layout", ["transposed", "every second", "backwards", "Fortran", "read-only", "plain"])
def test_data_of_any_layout_are_read_rightly(layout, rng):
    A = rng.normal(size=(3, 4, 5))
    given = {
        "transposed": A.transpose(1, 0, 2),
        "every second": rng.normal(size=(6, 4, 5))[::2],
        "backwards": A[::-1],
        "Fortran": np.asfortranarray(A),
        "plain": A,
        "read-only": A.copy(),
    }[layout]
    given.flags.writeable = layout != "read-only"
    with pm.Model() as model:
        data = pm.Data("data", A)
        b = pm.Normal("b", 0.0, 1.0, shape=5)
        pm.Normal("y", (data * b).sum(-1), pm.HalfNormal("s"), observed=pm.Data("t", np.zeros(given.shape[:2])))
    step = PersistentHMC(model=model)
    data.set_value(given, borrow=True)
    model["t"].set_value(np.zeros(given.shape[:2]))
    for _ in range(5):
        q = rng.normal(size=step.size)
        expected = step.density.both(q)
        call = step._compiled.call(q)
        logp, gradient = _evaluated(call.function, call.others, q)
        assert_allclose(logp, expected[0], rtol=1e-10)
        assert_allclose(gradient, expected[1], rtol=1e-8)


@njit
def _evaluated(function, others, q):
    return function(q, others)


def test_a_step_that_has_run_goes_to_another_process():
    """Addresses mean nothing there."""
    model = skewed()
    step = PersistentHMC(model=model, updates_per_draw="auto")
    step.setup_chain(np.random.default_rng(1), 0, 10)
    point = model.initial_point(0)
    step.step(point)
    again = cloudpickle.loads(cloudpickle.dumps(step))
    assert again._compiled._values == {}
    for one in (step, again):
        one.setup_chain(np.random.default_rng(1), 0, 10)
    here, there = step.step(point)[0], again.step(point)[0]
    for name in here:
        assert_array_equal(there[name], here[name])
    assert not np.array_equal(here["x"], point["x"])


def test_sparse_matrices_are_no_table():
    A = pytensor.shared(sp.csr_matrix(np.eye(3)))
    with pm.Model() as model:
        b = pm.Normal("b", 0.0, 1.0, shape=(3, 1))
        pm.Normal("y", pytensor.sparse.dot(A, b), 1.0, observed=np.ones((3, 1)))
    assert not PersistentHMC(model=model).makes_many


def test_a_parameter_outside_its_range_has_no_density():
    """Checks of parameters must not raise inside machine code: they make the density nought."""
    step = _compiled(lambda x: pm.Normal("y", 0.0, x, observed=1.0))
    assert step.makes_many
    call = step._compiled.call(np.array([1.0]))
    assert call.others is None
    logp, _ = step.density.both(np.array([-1.0]))
    assert logp == -np.inf
    step.setup_chain(np.random.default_rng(0), 0, 1000)
    _, rows, stats = step.draws({"x": np.array(0.05), "y": np.array(0.0)}, 200, np.inf)
    assert (rows["x"] > 0.0).all() and stats["flips"].sum() > 0


def test_a_run_in_blocks_is_the_run_in_one():
    model = skewed()
    runs = [bs.sample(model, 50, tune=60, chains=2, cores=cores, random_seed=5, progressbar=False) for cores in (1, 2)]
    for name in ("x", "y"):
        assert_array_equal(runs[0].posterior[name], runs[1].posterior[name])
    assert runs[0].sample_stats["diverging"].dtype == bool


@pytest.mark.filterwarnings("ignore:.*Cannot cache compiled function")
@pytest.mark.parametrize("data", [False, True])
def test_a_density_with_too_many_numbers_for_the_cache(data, rng):
    """PyTensor gives it another form: arguments one by one."""
    X = rng.normal(size=(6000, 25))
    y = X[:, 0] + rng.normal(size=6000)
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 10.0, shape=25)
        pm.Normal("y", (pm.Data("X", X) if data else X) @ w, 1.0, observed=y)
        step = PersistentHMC(updates_per_draw="auto", mass="diag")
    assert step.makes_many
    step.setup_chain(rng, 100, 100)
    draws = together(step, model, 100, 100, 1000)[0][100:]
    exact = np.linalg.solve(X.T @ X + 0.01 * np.eye(25), X.T @ y)
    assert np.abs(draws.mean(axis=0) - exact).max() < 0.02


def test_an_operation_in_python_is_not_called_by_address(rng):
    """An exception in it, as of Ctrl-C, would be lost."""
    X = rng.normal(size=(10, 1))
    step = PersistentHMC(model=bs.models.gp(X, X[:, 0]))
    assert not step.makes_many
