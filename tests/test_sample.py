"""`bs.sample`: the same draws with any number of cores, results as PyMC's users know them, runs that end on time."""

import io
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import arviz as az
import numpy as np
import pymc as pm
import pytest
import scipy.stats
from threadpoolctl import threadpool_info, threadpool_limits

import bayessel as bs
from bayessel.errors import SamplingWarning
from bayessel.samplers.run import _sample, schedule, workers
from bayessel.samplers.run.door import as_seconds, as_seed
from bayessel.samplers.run.kernel import Kernel
from bayessel.samplers.run.together import one_blas_thread
from bayessel.samplers.run.workers import Processes, Task
from tests.run_toys import Leaky, Walk, model, plain_python, same, sample, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


@pytest.fixture(scope="module")
def mixed():
    """A model with a count, and PyMC's own steps on it beside a toy."""
    with plain_python():
        yield made_of_many()


def made_of_many():
    with pm.Model(coords={"row": range(5)}) as made:
        x = pm.Normal("x", 0.0, 1.0, shape=2)
        s = pm.HalfNormal("s", 2.0)
        k = pm.Poisson("k", 3.0)
        b = pm.Bernoulli("b", 0.4, shape=2)
        z = pm.Normal("z", 0.0, 1.0)
        mean = x[0] + 0.1 * k + b[0] * x[1] + 0.0 * z
        pm.Normal("y", mean, s, observed=np.linspace(0.0, 1.0, 5), dims="row")
        nuts = pm.NUTS([x], compile_kwargs={"mode": "FAST_COMPILE"})
        steps = [nuts, pm.Slice([s]), pm.Metropolis([k]), pm.BinaryGibbsMetropolis([b]), Walk([z])]
    return made, steps


# --- any number of cores --------------------------------------------------------------------------------------------


def test_the_cores_do_not_matter(made, monkeypatch):
    one = sample(made, walk(made))
    two = sample(made, walk(made), cores=2)
    assert same(one, two)
    assert (one.attrs["cores"], two.attrs["cores"]) == (1, 2)
    # nor does the length of the blocks: down to one draw
    monkeypatch.setattr(schedule, "BLOCK", 1e-9)
    assert same(one, sample(made, walk(made)))
    assert same(one, sample(made, walk(made), cores=2))


def test_pymc_steps_carry_their_state(mixed, monkeypatch):
    made, steps = mixed
    lengths = {"draws": 6, "tune": 4, "chains": 2}
    one = sample(made, steps, **lengths)
    timing = {"perf_counter_diff", "perf_counter_start", "process_time_diff"}
    assert timing <= set(one.sample_stats)
    monkeypatch.setattr(schedule, "BLOCK", 1e-9)
    for cores in (1, 2):
        other = sample(made, steps, cores=cores, **lengths)
        other["sample_stats"] = other.sample_stats.to_dataset().assign({v: one.sample_stats[v] for v in timing})
        assert same(one, other)


def test_a_leaking_step_is_seen(made, monkeypatch):
    """The control: a momentum that is not in the state goes over to the next chain, or is lost between processes."""
    with made:
        leaky = Leaky(made.free_RVs)
    one = sample(made, leaky, draws=300)
    monkeypatch.setattr(schedule, "BLOCK", 1e-9)
    assert not same(one, sample(made, leaky, draws=300))


def test_steps_can_be_used_again(made):
    """A run leaves no trace in the steps."""
    steps = walk(made)
    first = sample(made, steps)
    assert same(first, sample(made, steps))
    assert not same(first, sample(made, steps, random_seed=8))


def test_chains_differ(made):
    trace = sample(made, walk(made))
    x = trace.posterior.x.values
    assert all(not np.isclose(x[i], x[j]).any() for i in range(3) for j in range(i))


def test_spawned_workers_draw_the_same(made):
    with plain_python():
        kernel = Kernel([walk(made)], 5, 10)
        start = kernel.begin(0, made.initial_point(0), np.random.default_rng(3))
        here = kernel.run(start, 15, 60.0, lambda: False)
        workers = Processes(kernel, 1, start, method="spawn")
        try:
            workers.submit(Task(start, 15, 60.0))
            (there,) = workers.collect(60.0)
        finally:
            workers.close()
    assert all(np.array_equal(here.draws[name], there.draws[name]) for name in here.draws)
    assert there.count == 15


def test_a_worker_that_cannot_start_is_reported(made, monkeypatch):
    # as in a script without `if __name__ == "__main__":`, or one that was read from a pipe
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/nowhere/script.py", raising=False)
    monkeypatch.setattr(workers, "start_method", lambda: "spawn")

    def late(number, frame):
        raise TimeoutError("the worker is still waited for")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        with plain_python():
            step = walk(made)
            step.ballast = np.zeros(100_000)  # more than a pipe holds
            kernel = Kernel([step], 5, 10)
            start = kernel.begin(0, made.initial_point(0), np.random.default_rng(3))
            with pytest.raises(RuntimeError, match=r"ended by itself \(exit code 1\).*cores=1.*__main__"):
                Processes(kernel, 2, start)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_inside_a_worker_no_workers_are_started(made, monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert sample(made, walk(made), cores=2).attrs["cores"] == 1


def test_runs_in_threads_compile_one_after_the_other(made, monkeypatch):
    inside, most, together = [], [], threading.Barrier(2)

    class Slow(_sample.Finisher):
        def __init__(self, *arguments):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.2)
            super().__init__(*arguments)
            inside.pop()

    monkeypatch.setattr(_sample, "Finisher", Slow)

    def run(_):
        together.wait()
        return sample(made, walk(made))

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(run, range(2))
    assert max(most) == 1
    assert same(first, second)


def test_blas_is_let_go_when_the_last_run_is_over():
    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(limits=2):
        before = threads()
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(one_blas_thread())
            second.enter_context(one_blas_thread())
            first.close()
            assert threads() == {1}
            second.close()
        assert threads() == before


# --- errors in steps ------------------------------------------------------------------------------------------------


class Trouble(Walk):
    """Fails in the 20th draw of a chain, in one way or another."""

    how = "raise"

    def step(self, point):
        if self.accepted == 20:
            if self.how == "raise":
                raise ZeroDivisionError("twenty")
            if self.how == "odd":
                raise type("Odd", (Exception,), {})("twenty")
            if self.how == "interrupt":
                raise KeyboardInterrupt
            os._exit(3)
        return super().step(point)


def trouble(made, how):
    with made:
        step = Trouble(made.free_RVs)
    step.how = how
    return step


@pytest.mark.parametrize("cores", [1, 2])
def test_an_error_in_a_step_comes_through(made, cores):
    with pytest.raises(ZeroDivisionError, match="twenty"):
        sample(made, trouble(made, "raise"), cores=cores)
    with pytest.raises(RuntimeError if cores == 2 else Exception, match="twenty"):
        sample(made, trouble(made, "odd"), cores=cores)
    assert not [one for one in multiprocessing.active_children() if one.name.startswith("chains-")]


def test_a_worker_that_dies_is_reported(made):
    with pytest.raises(RuntimeError, match=r"ended by itself \(exit code 3\)"):
        sample(made, trouble(made, "exit"), cores=2)


def test_what_was_done_before_an_error_is_in_the_store(made, tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "BLOCK", 1e-9)
    step = trouble(made, "raise")
    with pytest.raises(ZeroDivisionError):
        sample(made, step, store=tmp_path)
    step.how, step.step = "none", super(Trouble, step).step
    again = sample(made, step, store=tmp_path)
    assert again.attrs["resumed_draws"] == 60
    assert same(again, sample(made, step))


def test_a_keyboard_interrupt_inside_a_step(made):
    with pytest.warns(SamplingWarning, match=r"it was interrupted after 0 of 30 draws of tuning"):
        assert sample(made, trouble(made, "interrupt")).attrs["status"] == "tuning unfinished"


# --- the result -----------------------------------------------------------------------------------------------------


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
    from bayessel.result import fingerprint

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

    monkeypatch.setattr("bayessel.samplers.run.result._for_many", fails)
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
    monkeypatch.setattr("bayessel.samplers.run.result.WORKING_MEMORY", 2000)
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


# --- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 2])
def test_a_run_ends_on_time_with_equal_chains(made, cores):
    budget = 1.0  # no multiple of a block
    began = time.monotonic()
    trace = sample(made, walk(made, seconds=0.002), draws=100_000, tune=20, chains=4, cores=cores, time_budget=budget)
    outside = time.monotonic() - began
    assert trace.attrs["status"] == "time budget"
    assert trace.attrs["sampling_time"] == pytest.approx(budget, rel=0.1)
    assert trace.attrs["sampling_time"] < outside
    n = trace.attrs["draws"]
    assert trace.posterior.x.shape == (4, n, 3)
    # sleeping for 2 ms lets as many draws be made as cores allow, however busy the machine is
    spent = json.loads(trace.attrs["step_seconds"])["walk[x, s_log__]"]
    made_in_all = trace.attrs["n_gradient_evaluations"] / 2
    assert 4 * (n + 20) > 0.9 * made_in_all  # little is cut off to make the chains equal
    assert spent > 0.8 * cores * budget  # and little is lost between the draws
    assert np.array_equal(trace.posterior.x, sample(made, walk(made), draws=n, tune=20, chains=4).posterior.x)


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_half_a_minute(cores):
    """30 s end within 10 %, with equal chains, and with nine tenths of what a run without a budget does meanwhile."""
    from tests.test_resume import hierarchical

    made = hierarchical()
    steps = bs.steps(made)
    keywords = {"tune": 500, "chains": 4, "cores": cores, "step": steps, "progressbar": False, "random_seed": 2}
    trace = bs.sample(made, 10**6, time_budget="30s", log_likelihood=False, **keywords)
    n = trace.attrs["draws"]
    assert trace.attrs["status"] == "time budget"
    assert trace.attrs["sampling_time"] == pytest.approx(30.0, rel=0.1)
    assert trace.posterior.mu.shape == (4, n)
    free = bs.sample(made, n, log_likelihood=False, **keywords)
    assert np.array_equal(free.posterior.mu, trace.posterior.mu)
    # the same draws in the time t: in 30 s the free run makes 30/t of them
    assert n >= 0.9 * n * 30.0 / free.attrs["sampling_time"]
    assert sum(json.loads(trace.attrs["step_seconds"]).values()) > 0.8 * 30.0 * cores


def test_a_budget_that_is_not_needed(made):
    trace = sample(made, walk(made), time_budget="1h")
    assert trace.attrs["status"] == "complete"
    assert same(trace, sample(made, walk(made)))


@pytest.mark.parametrize("with_store", [False, True])
def test_tuning_that_does_not_finish(made, tmp_path, with_store):
    """There are no draws of the posterior then: an empty result that says so, and what to do."""
    where = {"store": tmp_path / "run"} if with_store else {}
    with pytest.warns(SamplingWarning, match=r"the time budget of 0.1 s was over after \d+ of 3000 draws of tuning"):
        trace = sample(made, walk(made, seconds=0.001), tune=3000, time_budget=0.1, log_likelihood=True, **where)
    assert trace.attrs["status"] == "tuning unfinished"
    assert ("with the same store" if with_store else "give it a store") in trace.attrs["advice"]
    assert trace.posterior.x.shape == (3, 0, 3) and trace.posterior.total.shape == (3, 0)
    assert trace.sample_stats.n_steps.shape == (3, 0) and trace.log_likelihood.y.shape == (3, 0, 4)
    trace.to_netcdf(tmp_path / "t.nc")
    assert az.from_netcdf(tmp_path / "t.nc").attrs["tuning_steps"] < 3000


def test_no_draw_in_time(made):
    """Without tuning nothing is unfinished; the result is as empty."""
    with pytest.warns(SamplingWarning, match=r"after 0 of 60 draws per chain; to have the others give it a store"):
        trace = sample(made, walk(made, seconds=0.1), tune=0, time_budget=0.05)
    assert trace.attrs["status"] == "time budget" and trace.posterior.x.shape == (3, 0, 3)


def test_a_run_can_go_on_for_another_while(made, tmp_path):
    """Time budgets with a store add up to the run that was never cut."""
    for _ in range(2):
        part = sample(made, walk(made, seconds=0.001), draws=5000, time_budget=0.3, store=tmp_path, cores=2)
        assert part.attrs["status"] == "time budget"
    n = part.attrs["draws"]
    assert part.attrs["resumed_draws"] > 100
    assert np.array_equal(part.posterior.x, sample(made, walk(made), draws=n).posterior.x)


def test_a_long_draw_is_not_begun_at_the_last_moment(made):
    trace = sample(made, walk(made, seconds=0.09), draws=100, tune=0, chains=1, time_budget=0.4)
    assert 3 <= trace.attrs["draws"] <= 4
    assert trace.attrs["sampling_time"] < 0.46


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("2m", 120.0),
        ("1.5 h", 5400.0),
        ("7", 7.0),
        (".5min", 30.0),
        (3, 3.0),
        (None, None),
        ("1D", 86400),
    ],
)
def test_times_are_read(text, seconds):
    assert as_seconds(text) == seconds


# --- where chains start ---------------------------------------------------------------------------------------------


class Still(Walk):
    """Does not move: its first draw is the starting point."""

    def step(self, point):
        _, stats = super().step(dict(point))
        return dict(point), stats


def starts(made, **kwargs):
    with made:
        step = Still(made.value_vars)
    return sample(made, step, draws=1, tune=0, **kwargs).posterior.isel(draw=0)


def test_chains_start_apart(made):
    x = starts(made).x.values
    assert len(np.unique(x)) == 9 and (np.abs(x) <= 1.0).all()
    assert np.array_equal(x, starts(made).x.values)
    assert not np.array_equal(x, starts(made, random_seed=8).x.values)


def test_initvals(made):
    given = starts(made, initvals={"x": [0.1, 0.2, 0.3], "s": 2.0})
    assert np.allclose(given.x, [0.1, 0.2, 0.3]) and np.allclose(given.s, 2.0)
    given = starts(made, initvals=[{"s": 1.0}, None, {"s": 3.0}])
    assert given.s.values[[0, 2]] == pytest.approx([1.0, 3.0])
    given = starts(made, initvals={"s_log__": 0.5})
    assert np.allclose(given.s, np.exp(0.5))
    with pytest.raises(ValueError, match=r"initvals names w, which the model does not sample; it samples x, s"):
        starts(made, initvals={"w": 1.0})
    with pytest.raises(ValueError, match="there are 3 chains and 2 dictionaries"):
        starts(made, initvals=[{}, {}])
    for short in (1.0, [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"x of shape \(2?,?\), and the model \(3,\)"):
            starts(made, initvals={"x": short})
    with pytest.raises(TypeError, match="initvals must be a dictionary"):
        starts(made, initvals=3.0)


def test_starting_points_of_zero_density_are_tried_again():
    with plain_python(), pm.Model() as narrow:
        x = pm.Normal("x")
        pm.Potential("half", pm.math.switch(x > 0.2, 0.0, -np.inf))
        assert (starts(narrow, chains=8).x > 0.2).all()
    with plain_python(), pm.Model() as impossible:
        x = pm.Normal("x")
        pm.Potential("nowhere", pm.math.switch(x > 5.0, 0.0, -np.inf))
        with pytest.raises(ValueError, match=r"no starting point .* chain 0 in 40 tries.*nowhere.*give initvals="):
            starts(impossible)
        assert np.allclose(starts(impossible, initvals={"x": 6.0}).x, 6.0)


# --- the door -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"draws": 0}, ValueError, "draws must be at least 1"),
        ({"draws": 10.0}, TypeError, "draws must be an integer"),
        ({"tune": -1}, ValueError, "tune must be at least 0"),
        ({"chains": 0}, ValueError, "chains must be at least 1"),
        ({"cores": 0}, ValueError, "cores must be at least 1"),
        ({"random_seed": -1}, ValueError, "random_seed must not be negative"),
        ({"random_seed": "a"}, TypeError, "random_seed must be an integer"),
        ({"random_seed": True}, TypeError, "random_seed must be an integer"),
        ({"time_budget": 0}, ValueError, "time_budget must be positive"),
        ({"time_budget": "soon"}, ValueError, "time_budget must be seconds, or text"),
        ({"time_budget": "3 weeks"}, ValueError, "units are s, sec, m, min, h, d"),
        ({"time_budget": True}, TypeError, "time_budget must be a positive number"),
        ({"store": 3}, TypeError, "store must be the name of a folder"),
        ({"store": ""}, TypeError, "store must be the name of a folder"),
        ({"resume": "no"}, TypeError, "resume must be True or False"),
        ({"log_likelihood": 1}, TypeError, "log_likelihood must be True or False"),
        ({"quiet": None}, TypeError, "quiet must be True or False"),
    ],
)
def test_bad_arguments(made, change, error, said):
    with pytest.raises(error, match=said):
        sample(made, walk(made), **change)


def test_bad_models_and_steps(made):
    with pytest.raises(TypeError, match=r"there is no model: pass one, sample\(model\)"):
        bs.sample()
    with pytest.raises(TypeError, match=r"must be a pymc\.Model, got int"):
        bs.sample(3)
    with pm.Model() as empty, pytest.raises(ValueError, match="no free variables"):
        bs.sample(empty)
    with pytest.raises(TypeError, match=r"the class Walk; make an instance"):
        sample(made, Walk)
    with pytest.raises(TypeError, match=r"must be a PyMC step method .* got str"):
        sample(made, ["slice"])
    with plain_python():
        other = model()
    with pytest.raises(ValueError, match=r"the steps move x, s_log__, which are no value variables of this model"):
        sample(made, walk(other))
    with plain_python(), made, pytest.raises(ValueError, match=r"DEMetropolis moves all chains together"):
        sample(made, pm.DEMetropolis(made.free_RVs))


def test_seeds(made):
    assert as_seed(np.array(5)) == 5
    assert same(sample(made, walk(made), random_seed=[1, 2]), sample(made, walk(made), random_seed=(1, 2)))
    a, b = (sample(made, walk(made), random_seed=np.random.default_rng(4)) for _ in range(2))
    assert same(a, b)
    assert not same(a, sample(made, walk(made), random_seed=None))


def test_the_model_of_the_context(made):
    with made:
        assert same(sample(None, walk(made)), sample(made, walk(made)))


def test_no_bar_in_a_pipe(made, capfd):
    bs.sample(made, 5, tune=5, chains=1, cores=1, step=walk(made), random_seed=1)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal(made, monkeypatch):
    import rich.console

    screen = io.StringIO()
    plain = rich.console.Console
    monkeypatch.setattr(rich.console, "Console", lambda **_: plain(file=screen, force_terminal=True, width=100))
    bs.sample(made, 30, tune=5, chains=2, cores=1, step=walk(made), random_seed=1)
    assert "sampling 2 chains, 35 of 35 draws" in screen.getvalue() and "divergences" in screen.getvalue()
    screen.truncate(0)
    bs.sample(made, 30, tune=5, chains=2, cores=1, step=walk(made), random_seed=1, quiet=True)
    assert "sampling" not in screen.getvalue()


# --- with the steps that are found ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bumps():
    rng = np.random.default_rng(1)
    x = np.linspace(-3.0, 3.0, 25)
    return np.exp(-((x[:, None] - x[::5]) ** 2)), np.sin(x) + 0.2 * rng.normal(size=25)


def test_steps_are_found(bumps):
    """Exact blocks alone: nothing is compiled, and every group of the result is there."""
    linear = bs.models.linear(*bumps)
    one = sample(linear, None, chains=2, log_likelihood=True)
    two = sample(linear, bs.steps(linear), chains=2, log_likelihood=True, cores=2)
    assert same(one, two)
    assert {"gaussian_weights_gibbs[w]", "gamma_precision_gibbs[beta_log__, alpha_log__]"} == set(
        json.loads(one.attrs["step_seconds"])
    )
    assert np.array_equal(one.constant_data.Phi, bumps[0])
    assert one.posterior.w.dims == ("chain", "draw", "basis") and "lp" in one.sample_stats


def test_weights_are_drawn_in_their_own_coordinates(bumps):
    rvm = bs.models.rvm(*bumps)
    trace = sample(rvm, None, chains=1, draws=5, tune=5)
    assert "w" in trace.unconstrained_posterior and "w_whitened__" not in trace.unconstrained_posterior


def test_what_the_user_leaves_is_assigned(bumps):
    linear = bs.models.linear(*bumps)
    with linear, plain_python():
        own = pm.Slice([linear["alpha"]])
    trace = sample(linear, own, chains=1, draws=3, tune=3)
    assert next(iter(json.loads(trace.attrs["step_seconds"]))) == "slice[alpha_log__]"
    assert len(json.loads(trace.attrs["step_seconds"])) == 3


def test_persistent_hmc_goes_on_exactly(tmp_path, monkeypatch):
    """Its momentum, mass, tuning and last gradient are in the store: cut anywhere, on one core or two."""
    with plain_python(), pm.Model() as normal:
        x = pm.Normal("x", shape=3)
        pm.Normal("y", x.sum(), 1.0, observed=[0.5])
        step = bs.PersistentHMC([x], compile_kwargs={"mode": "FAST_COMPILE"})
        whole = sample(normal, step, draws=40, tune=60, chains=2)
        monkeypatch.setattr(schedule, "BLOCK", 1e-9)
        for draws, cores in ((5, 1), (40, 2)):
            cut = sample(normal, step, draws=draws, tune=60, chains=2, store=tmp_path, cores=cores)
    assert same(whole, cut)
    assert whole.sample_stats.n_steps.dtype == np.int64 and whole.sample_stats.diverging.dtype == bool
    assert cut.attrs["n_gradient_evaluations"] == whole.attrs["n_gradient_evaluations"]


@pytest.mark.slow
def test_the_relevance_vector_machine_agrees_with_nuts(bumps):
    """Through other coordinates of the weights, the same distribution."""
    rvm = bs.models.rvm(*bumps)
    ours = bs.sample(rvm, 4000, chains=4, random_seed=1, progressbar=False)
    nuts = pm.sample(2000, tune=2000, chains=4, cores=1, random_seed=2, model=rvm, progressbar=False, quiet=True,
                     nuts_sampler="pymc", target_accept=0.98)  # fmt: skip
    for name in ("w", "beta"):
        a, b = ours.posterior[name], nuts.posterior[name]
        centre = float(a.mean())
        for x, y in ((a, b), ((a - centre) ** 2, (b - centre) ** 2)):
            error = np.hypot(*(az.mcse(v.to_dataset(name="v")).v.values for v in (x, y)))
            gap = (x.mean(("chain", "draw")) - y.mean(("chain", "draw"))).values
            assert (np.abs(gap) < 4 * error).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = pm.sample(20, tune=20, chains=1, cores=1, step=bs.steps(rvm), model=rvm, progressbar=False, quiet=True)
    assert set(there.posterior) == set(ours.posterior)
