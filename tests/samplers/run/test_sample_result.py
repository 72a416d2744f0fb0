"""`bs.sample`: results as PyMC's users know them.

Guards `bayessel.samplers.run.result`.
"""

import json
import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytest
import scipy.stats

import bayessel as bs
from bayessel.samplers.run import schedule
from tests.problems.runs import Walk, many_kinds, model, plain_python, same, sample, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


@pytest.fixture(scope="module")
def mixed():
    with plain_python():
        yield many_kinds()


@pytest.fixture(scope="module")
def trace(made):
    return sample(made, walk(made), log_likelihood=True)


def test_groups_dimensions_and_coordinates(made, trace):
    assert set(trace.children) == {
        "posterior", "unconstrained_posterior", "sample_stats", "log_likelihood", "observed_data",
    }  # fmt: skip
    assert dict(trace.posterior.sizes) == {"chain": 3, "draw": 60, "part": 3}
    assert list(trace.posterior) == ["x", "s", "total"]
    assert trace.posterior.x.coords["part"].values.tolist() == ["a", "b", "c"]
    assert trace.unconstrained_posterior.x.dims == ("chain", "draw", "part")
    assert list(trace.unconstrained_posterior) == ["x", "s_log__"]
    assert trace.observed_data.y.dims == ("row",)


def test_variables_may_have_the_names_of_statistics():
    """Their dimensions are not those of the statistics."""
    with plain_python(), pm.Model(coords={"part": ["a", "b"]}) as model:
        pm.Normal("v", 0.0, 1.0, dims="part")
        pm.Normal("energy", 0.0, 1.0, dims="part")
        step = bs.PersistentHMC(model=model)
        found = bs.sample(model, 20, tune=10, chains=2, cores=1, random_seed=1, step=step, quiet=True)
    assert found.posterior.v.dims == ("chain", "draw", "part")
    assert found.sample_stats.v.dims == found.sample_stats.energy.dims == ("chain", "draw")


def test_values_are_what_the_model_says(trace):
    post, free = trace.posterior, trace.unconstrained_posterior
    assert np.allclose(post.s, np.exp(free.s_log__), rtol=1e-14)
    assert np.allclose(post.total, post.x.sum("part") + post.s)
    y = np.linspace(-1.0, 1.0, 4)
    expected = scipy.stats.norm(post.x.values[..., :1], post.s.values[..., None]).logpdf(y)
    assert np.allclose(trace.log_likelihood.y, expected)
    assert trace.log_likelihood.y.dims == ("chain", "draw", "row")


def test_statistics(trace):
    stats = trace.sample_stats
    assert stats.n_steps.dtype == np.int64 and stats.diverging.dtype == bool
    # the k-th draw of a chain, tuning included, costs 1 + k % 3 gradients in the toy
    assert np.array_equal(stats.n_steps[1], 1 + np.arange(31, 91) % 3)
    assert np.array_equal(stats.lp[0], -np.arange(31.0, 91.0))
    assert stats.vector.shape == (3, 60, 2)
    assert set(stats.data_vars) == {"n_steps", "walk_size", "diverging", "lp", "vector"}


class Counts(Walk):
    """Puts the number of the draw into every variable."""

    def step(self, point):
        _, stats = super().step(dict(point))
        return {name: np.full(np.shape(value), float(self.accepted)) for name, value in point.items()}, stats


@pytest.mark.parametrize("cores", [1, 2])
def test_draws_and_statistics_belong_together(made, tmp_path, monkeypatch, cores):
    """Tuning is left out of both, wherever the blocks end, and whether they come from a store or not."""
    monkeypatch.setattr(schedule, "BLOCK", 1e-4)
    with made:
        step = Counts(made.free_RVs)
    for draws in (7, 20):
        trace = sample(made, step, draws=draws, tune=11, store=tmp_path, cores=cores)
        number = np.broadcast_to(np.arange(12.0, 12.0 + draws), (3, draws))
        assert np.array_equal(trace.posterior.x.values, np.stack([number] * 3, axis=-1))
        assert np.array_equal(trace.unconstrained_posterior.s_log__, number)
        assert np.array_equal(trace.sample_stats.lp, -number)


def test_names_of_statistics_are_unique(mixed):
    made, steps = mixed
    stats = sample(made, steps, draws=3, tune=2, chains=1).sample_stats
    assert stats.diverging.dims == ("chain", "draw")  # the last step keeps the plain name
    assert {"nuts_diverging", "nuts_n_steps", "n_steps", "step_size", "energy", "lp"} <= set(stats)
    assert not {"divergences", "warning", "nuts_lp"} & set(stats)
    with made:
        slices = [pm.Slice([made["x"]]), pm.Slice([made["s"], made["z"]]), *steps[2:4]]
    stats = sample(made, slices, draws=3, tune=2, chains=1).sample_stats
    assert stats.nstep_in.shape == (1, 3, 3)  # of one class: an axis, as in PyMC, and here with names
    assert stats.nstep_in_step.values.tolist() == ["x", "s_log__", "z"]


def test_gradients_of_all_steps_are_counted(mixed):
    """Steps of two classes that count gradients: the sum of both, tuning included."""
    made, steps = mixed
    trace = sample(made, steps, draws=3, tune=0, chains=1)
    counted = [name for name in trace.sample_stats if name.endswith("n_steps")]
    assert len(counted) > 1
    total = sum(int(trace.sample_stats[name].sum()) for name in counted)
    assert trace.attrs["n_gradient_evaluations"] == trace.attrs["n_gradient_evaluations_now"] == total


def test_the_log_density_where_no_step_tells_it(made):
    with made:
        trace = sample(made, pm.Metropolis(made.free_RVs), draws=4, tune=0, chains=1)
    density = made.compile_logp(mode="FAST_COMPILE")
    for i in range(4):
        point = {v: trace.unconstrained_posterior[v].values[0, i] for v in trace.unconstrained_posterior}
        assert trace.sample_stats.lp.values[0, i] == pytest.approx(float(density(point)))


def test_attributes(trace):
    said = trace.attrs
    assert said["status"] == "complete" and "advice" not in said
    assert (said["draws"], said["tuning_steps"], said["chains"], said["random_seed"]) == (60, 30, 3, 7)
    assert said["n_gradient_evaluations"] == 3 * sum(1 + k % 3 for k in range(1, 91))
    assert json.loads(said["versions"])["pymc"] == pm.__version__
    assert list(json.loads(said["step_seconds"])) == ["walk[x, s_log__]"]
    assert 0 < json.loads(said["step_seconds"])["walk[x, s_log__]"] < said["sampling_time"]
    assert said["compile_time"] > 0
    from bayessel._fingerprint import fingerprint

    assert said["target_fingerprint"] == fingerprint(np.linspace(-1.0, 1.0, 4))
    assert trace.posterior.attrs["tuning_steps"] == 30
    assert not any(isinstance(value, bool) for value in said.values())


def test_netcdf_summary_and_loo(trace, tmp_path):
    trace.to_netcdf(tmp_path / "t.nc")
    again = az.from_netcdf(tmp_path / "t.nc")
    assert same(trace, again)
    assert again.attrs == trace.attrs
    assert again.groups == trace.groups
    assert len(az.summary(trace)) == 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(az.loo(trace).elpd)


def test_the_log_likelihood_can_be_left_out(made, trace, monkeypatch):
    assert "log_likelihood_note" not in trace.attrs
    short = sample(made, walk(made))
    assert "log_likelihood" not in short.children and short.attrs["log_likelihood_note"] == "not asked for"
    monkeypatch.setattr("bayessel.samplers.run.result.LARGEST_LIKELIHOOD", 3 * 60 * 4 - 1)
    large = sample(made, walk(made), log_likelihood=True)
    assert "log_likelihood" not in large.children
    assert "180 draws of 4 rows" in large.attrs["log_likelihood_note"]


def test_what_knows_nothing_of_batches_is_computed_draw_by_draw(made, trace, monkeypatch):
    def fails(*_):
        raise NotImplementedError

    monkeypatch.setattr("bayessel.samplers.run.draw_functions._for_many", fails)
    slow = sample(made, walk(made), log_likelihood=True)
    for group in ("posterior", "log_likelihood"):
        for name in trace[group].data_vars:
            assert np.allclose(slow[group][name], trace[group][name], rtol=1e-13)
            assert slow[group][name].dims == trace[group][name].dims


def test_what_depends_on_the_draw_in_its_shape_is_computed_draw_by_draw():
    with plain_python(), pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0, shape=3)
        A = pm.Normal("A", 0.0, 1.0, shape=(3, 3))
        pm.Deterministic("chosen", A[x > 0.0].sum())
        found = sample(model, walk(model)).posterior
    want = [
        [values[mask].sum() for mask, values in zip(*one, strict=True)]
        for one in zip(found.x.values > 0.0, found.A.values, strict=True)
    ]
    assert np.allclose(found.chosen, want)


def test_memory_of_many_draws_is_bounded(made, trace, monkeypatch):
    monkeypatch.setattr("bayessel.samplers.run.draw_functions.WORKING_MEMORY", 2000)
    assert same(trace, sample(made, walk(made), log_likelihood=True))


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_missing_values(tmp_path):
    with plain_python(), pm.Model() as holes:
        x = pm.Normal("x")
        pm.Normal("y", x, 1.0, observed=np.array([0.5, np.nan, -0.5]))
        result = sample(holes, walk(holes), log_likelihood=True)
    assert {"x", "y", "y_unobserved"} <= set(result.posterior)
    assert result.log_likelihood.y_observed.shape == (3, 60, 2)
    result.to_netcdf(tmp_path / "t.nc")


def test_a_model_without_data():
    with plain_python(), pm.Model() as prior:
        pm.Normal("a")
        result = sample(prior, walk(prior), log_likelihood=True)
    assert set(result.children) == {"posterior", "unconstrained_posterior", "sample_stats"}
    assert "target_fingerprint" not in result.attrs


def test_the_right_distribution():
    """PyMC's slice sampler through our driver, against the exact posterior, in Monte Carlo standard errors."""
    rng = np.random.default_rng(3)
    y = rng.normal(0.7, 1.0, size=10)
    with plain_python(), pm.Model() as normal:
        mu = pm.Normal("mu", 0.0, 2.0)
        pm.Normal("y", mu, 1.0, observed=pm.Data("y_data", y))
        trace = sample(normal, pm.Slice([mu]), draws=250, tune=50, chains=4, cores=2)
    precision = 0.25 + len(y)
    x = trace.posterior.mu
    for value, exact in ((x, y.sum() / precision), ((x - y.sum() / precision) ** 2, 1 / precision)):
        error = float(az.mcse(value.to_dataset(name="v")).v)
        assert abs(float(value.mean()) - exact) < 4 * error
        assert abs(float(value.mean()) - exact - 12 * error) > 4 * error  # the control: this test can fail
