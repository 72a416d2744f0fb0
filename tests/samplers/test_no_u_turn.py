"""The No-U-Turn step: draws whatever the block and the loop, states that replay, `bs.sample`; and whole chains.

Guards `bayessel.samplers.no_u_turn`, `bayessel.samplers.nuts_draws`.
"""

import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pymc.exceptions import SamplingError
from pymc.step_methods.state import equal_dataclass_values

import bayessel as bs
from bayessel.diagnostics.calibration import geweke, sbc
from bayessel.samplers.no_u_turn import NoUTurn
from tests.oracles.monte_carlo import assert_means
from tests.problems import targets
from tests.problems.hmc_models import PYTHON, QUIET, skewed, with_precision

WAYS = {
    "default": {},
    "diagonal": {"mass": "diag"},
    "unit": {"mass": "unit", "target_accept": 0.9},
    "given": {"mass": [[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.5]], "max_treedepth": 2},
    "nothing tuned": {"tune": False, "step_size": 0.3},
}


def chain(step, model, tune, draws, most, seed=3):
    """Positions and statistics of draws made `most` at a time, by `step` alone where that is None."""
    step.setup_chain(np.random.default_rng(seed), tune, draws)
    point, rows, stats, done = model.initial_point(0), [], [], 0
    while done < tune + draws:
        if done == tune:
            step.stop_tuning()
        left = tune - done if done < tune else tune + draws - done
        if most is None:
            point, (said,) = step.step(point)
            values, said = {name: value[None] for name, value in point.items()}, {k: [v] for k, v in said.items()}
        else:
            point, values, said = step.draws(point, min(left, most), np.inf)
        n = len(said["tree_depth"])
        rows.append(np.column_stack([value.reshape(n, -1) for value in values.values()]))
        stats.append(said)
        done += n
    return np.concatenate(rows), {name: np.concatenate([one[name] for one in stats]) for name in stats[0]}


@pytest.mark.parametrize("way", WAYS)
def test_draws_are_the_same_in_blocks_of_any_size_and_in_python(way):
    model = skewed()
    step = NoUTurn(model=model, **WAYS[way])
    assert step.makes_many
    rows, stats = chain(step, model, 60, 40, None)
    for most in (100, 7):
        many, said = chain(step, model, 60, 40, most)
        assert_array_equal(many, rows)
        assert said.keys() == stats.keys()
        for name in stats:
            assert_array_equal(said[name], stats[name], err_msg=name)
    assert stats["step_size"][60:].std() == 0.0 and (stats["tree_depth"] >= 1).all()
    step._function = lambda q: step.density.both(q)
    assert not step.makes_many
    for most in (None, 7):
        slow, said = chain(step, model, 60, 40, most)
        # to rounding: sums may be taken in another order
        assert_allclose(slow, rows, rtol=1e-6, atol=1e-9)
        for name in ("n_steps", "tree_depth", "diverging", "reached_max_treedepth"):
            assert_array_equal(said[name], stats[name])
        assert_allclose(said["energy"], stats["energy"], rtol=1e-6)


@pytest.fixture(scope="module")
def compiled():
    return NoUTurn(model=skewed())


def test_expectations_of_many_compiled_draws(compiled, rng):
    """60 chains of 1000 draws after tuning from where the model starts."""
    target, found = targets.skewed(3), []
    for seed in rng.integers(2**32, size=60):
        rows, stats = chain(compiled, skewed(), 200, 1000, 1000, seed)
        found.append(target.features(rows[200:]))
        assert_allclose(np.sum(rows - np.exp(rows), axis=1), stats["model_logp"], rtol=1e-9)
    assert_means(np.array(found), target.expected)


def rotated(size, condition, rng):
    """A Gaussian of variances from 1 to `condition` along axes turned at random, and its covariance."""
    axes, _ = np.linalg.qr(rng.standard_normal((size, size)))
    covariance = (axes * np.geomspace(1.0, condition, size)) @ axes.T
    precision = np.linalg.inv(covariance)
    with pm.Model() as model:
        x = pm.Flat("x", shape=size)
        pm.Potential("density", -0.5 * x @ (pt.as_tensor(precision) @ x))
    return model, covariance


def test_a_rotated_gaussian_is_learnt(rng):
    model, covariance = rotated(8, 1e4, rng)
    step, found = NoUTurn(model=model), []
    for seed in range(24):
        rows, stats = chain(step, model, 400, 400, 1000, seed)
        found.append(np.column_stack([rows[400:], rows[400:] ** 2 / np.diag(covariance)]))
    assert_means(np.array(found), np.r_[np.zeros(8), np.ones(8)])
    # in units of the mass it is round, and a trajectory needs few steps
    assert stats["n_steps"][400:].mean() < 12.0


def test_neals_funnel_by_many_chains(rng):
    """v ~ N(0, 1.5²) and nine x ~ N(0, eᵛ); at a high rate of acceptance no part is missed."""
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 1.5)
        pm.Normal("x", 0.0, pt.exp(0.5 * v), shape=9)
    step, found = NoUTurn(model=model, target_accept=0.98, mass="diag"), []
    for seed in range(30):
        rows, _ = chain(step, model, 500, 1500, 1000, seed)
        v, x = rows[500:, :1], rows[500:, 1:]
        found.append(np.column_stack([v, v**2, (v < -2.0), np.tanh(x)]))
    assert_means(np.array(found), np.r_[0.0, 2.25, 0.09121122, np.zeros(9)])


def test_a_state_replays_what_followed_it():
    model = skewed()
    for settings in ({}, {"mass": "diag"}, {"tune": False, "step_size": 0.4}):
        step, other = (NoUTurn(model=model, **settings) for _ in range(2))

        def go_on(step, point, begin, end):
            rows = []
            for i in range(begin, end):
                if i == 100:
                    step.stop_tuning()
                point, (said,) = step.step(point)
                rows.append([*point["x"], point["y"], *said.values()])
            return point, rows

        for stop in (0, 1, 37, 75, 100, 130):
            step.setup_chain(np.random.default_rng(7), 100, 50)
            point, _ = go_on(step, model.initial_point(0), 0, stop)
            blob = pickle.dumps((step.sampling_state, point))
            expected = go_on(step, point, stop, 150)[1]
            for one in (step, other):
                one.setup_chain(np.random.default_rng(8), 100, 50)
                go_on(one, point, 0, 5)
                one.sampling_state, there = pickle.loads(blob)
                assert_array_equal(go_on(one, there, stop, 150)[1], expected)


def test_pymc_runs_it_and_finds_states_equal_that_are(compiled):
    model = skewed()
    compiled.setup_chain(np.random.default_rng(3), 10, 10)
    first = compiled.sampling_state
    value, _ = compiled.step(model.initial_point(0))
    last = compiled.sampling_state
    assert not equal_dataclass_values(first, last)
    compiled.sampling_state = first
    assert equal_dataclass_values(compiled.sampling_state, first)
    assert equal_dataclass_values(compiled.step(model.initial_point(0))[0], value)
    assert equal_dataclass_values(compiled.sampling_state, last)
    with model:
        trace = pm.sample(60, tune=60, chains=2, cores=1, step=NoUTurn(), random_seed=1, **QUIET)
    for name, (dtype, _) in NoUTurn.stats_dtypes_shapes.items():
        assert trace.sample_stats[{"model_logp": "lp"}.get(name, name)].dtype == np.dtype(dtype), name


# --- in `bs.sample` ---------------------------------------------------------------------------------------------------


def test_steps_reach_it_and_cores_and_stores_do_not_matter(tmp_path):
    model = skewed()
    with pytest.raises(ValueError, match="transition must be one of"):
        bs.steps(model, transition="walk")
    (step,) = bs.steps(model, transition="nuts", target_accept=0.9, mass="diag")
    assert isinstance(step, NoUTurn) and (step.target_accept, step.mass) == (0.9, "diag")
    assert "NoUTurn" in bs.explain_steps(model, transition="nuts")

    def run(draws, **options):
        step = bs.steps(model, transition="nuts")
        return bs.sample(model, draws, tune=60, chains=2, random_seed=5, progressbar=False, step=step, **options)

    one, two = run(80, cores=1), run(80, cores=2)
    run(30, cores=1, store=tmp_path / "run")
    on = run(80, cores=1, store=tmp_path / "run")
    assert on.attrs["resumed_draws"] > 0
    for other in (two, on):
        for group in ("posterior", "sample_stats"):
            for name in one[group].data_vars:
                assert_array_equal(one[group][name], other[group][name], err_msg=name)
    assert one.sample_stats["reached_max_treedepth"].dtype == bool
    assert one.attrs["n_gradient_evaluations"] >= one.sample_stats["n_steps"].sum()


def test_it_takes_what_gibbs_steps_leave_and_whole_models():
    model = with_precision()
    x = NoUTurn(["x"], model=model, compile_kwargs=PYTHON)
    made = bs.steps(model, assigned=[x], transition="nuts")
    assert made[0] is x and [type(step).__name__ for step in made[1:]] == ["GammaPrecisionGibbs"]
    trace = bs.sample(model, 50, tune=50, chains=1, cores=1, random_seed=0, step=made, progressbar=False)
    assert trace.posterior.sizes["draw"] == 50
    rng = np.random.default_rng(0)
    process = bs.models.gp(rng.normal(size=(8, 1)), rng.normal(size=8))
    (step,) = bs.steps(process, transition="nuts")
    assert isinstance(step, NoUTurn) and not step.makes_many


def test_new_data_are_seen(rng):
    with pm.Model() as model:
        x = pm.Data("x", np.arange(3.0))
        mu = pm.Normal("mu", 0.0, 10.0)
        pm.Normal("t", mu + 0.0 * x, 1.0, observed=x)
        step = NoUTurn()
        for values in (np.full(3, 1.0), np.full(400, 5.0)):
            pm.set_data({"x": values})
            rows, _ = chain(step, model, 200, 400, 1000)
            assert abs(rows[200:].mean() - values[0]) < 5.0 / np.sqrt(len(values)) / np.sqrt(20.0)


# --- ends of trajectories, arguments ----------------------------------------------------------------------------------


def test_divergences_and_cut_trajectories_are_told():
    model = skewed()
    step = NoUTurn(model=model, tune=False, step_size=40.0)
    rows, stats = chain(step, model, 0, 200, 1000)
    assert stats["diverging"].dtype == bool and stats["diverging"].mean() > 0.5 and np.isfinite(rows).all()
    assert not stats["reached_max_treedepth"].any()
    step = NoUTurn(model=model, tune=False, step_size=1e-4, max_treedepth=4)
    _, stats = chain(step, model, 0, 50, 1000)
    assert stats["reached_max_treedepth"].all() and (stats["n_steps"][1:] == 15).all()
    assert (stats["tree_depth"] == 4).all() and not stats["diverging"].any()


def test_draws_end_with_their_time(compiled, rng):
    compiled.setup_chain(rng, 0, 10**6)
    _, rows, stats = compiled.draws(skewed().initial_point(0), 10**6, 0.1)
    assert 1 <= len(stats["energy"]) == len(rows["x"]) < 10**6
    assert len(compiled.draws(skewed().initial_point(0), 5, 0.0)[2]["energy"]) == 1


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"step_size": -1.0}, ValueError, "step_size must be positive"),
        ({"target_accept": 1.0}, ValueError, "target_accept must be in"),
        ({"max_treedepth": 0}, ValueError, "max_treedepth must be at least 1"),
        ({"max_treedepth": 2.5}, TypeError, "max_treedepth must be an integer"),
        ({"tune": 1}, TypeError, "tune must be True or False"),
        ({"mass": "full"}, ValueError, "mass must be one of"),
        ({"mass": [1.0]}, ValueError, "mass must be one number or 3 numbers"),
    ],
)
def test_bad_settings(settings, error, said):
    with pytest.raises(error, match=said):
        NoUTurn(model=skewed(), compile_kwargs=PYTHON, **settings)


def test_a_start_without_density_is_refused():
    with pm.Model() as model:
        x = pm.Flat("x", initval=1.0)
        pm.Potential("wall", pt.switch(x > 0.0, -x, -np.inf))
        step = NoUTurn(compile_kwargs=PYTHON)
    step.step(model.initial_point())
    with pytest.raises(SamplingError, match=r"log density must be finite.*-inf.*initvals"):
        step.step({"x": np.array(-1.0)})


# --- simulated ranks and Geweke's test --------------------------------------------------------------------------------


def hierarchy():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1.0)
        mu = pm.Normal("mu", 0.0, 1.0)
        theta = pm.Normal("theta", mu, scale, shape=3)
        pm.Normal("y", theta, 0.7, observed=pm.Data("data", [0.3, -0.6, 1.1]))
    return model


def nuts(model):
    return bs.steps(model, transition="nuts", target_accept=0.95)


def test_a_few_ranks():
    ranks = sbc(hierarchy(), nuts, 50, 31, thin=2, tune=100, random_seed=1, progressbar=False)
    assert ranks.ok, ranks.text


@pytest.mark.slow
def test_ranks_are_uniform_and_the_joint_distribution_stays():
    ranks = sbc(hierarchy(), nuts, 500, 31, thin=6, tune=300, random_seed=20, progressbar=False)
    assert ranks.ok, ranks.text
    joint = geweke(hierarchy(), nuts, 2500, thin=2, tune=400, random_seed=20, progressbar=False)
    assert joint.ok, joint.text
