"""`bs.sample`: the same draws with any number of cores, errors in steps, the steps that are found.

Guards `bayessel.samplers.run.sampling`, `bayessel.samplers.run.kernel`, `bayessel.samplers.run.workers`,
`bayessel.samplers.run.schedule`, `bayessel.samplers.run.start`, `bayessel.samplers.run.drawn_blocks`,
`bayessel.samplers.run.result`, `bayessel.work.threads`.
"""

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
from threadpoolctl import threadpool_info, threadpool_limits

import bayessel as bs
from bayessel.errors import SamplingWarning
from bayessel.samplers.run import sampling, schedule
from bayessel.samplers.run.kernel import Kernel
from bayessel.samplers.run.workers import BlockTask, ChainProcesses
from bayessel.work.threads import one_blas_thread
from tests.problems.runs import Leaky, Walk, many_kinds, model, plain_python, same, sample, walk


@pytest.fixture(scope="module")
def made():
    with plain_python():
        yield model()


@pytest.fixture(scope="module")
def mixed():
    with plain_python():
        yield many_kinds()


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
        here = kernel.run(start, 15, 60.0)
        workers = ChainProcesses(kernel, 1, start, fork=False)
        try:
            workers.submit(BlockTask(start, 15, 60.0))
            (there,) = workers.collect()
        finally:
            workers.close()
    assert all(np.array_equal(here.draws[name], there.draws[name]) for name in here.draws)
    assert there.count == 15


class Fatal:
    """Ends the process that unpickles it."""

    def __reduce__(self):
        return os._exit, (1,)


@pytest.mark.parametrize("fatal", [True, False])
def test_a_worker_that_cannot_start_is_reported(made, monkeypatch, fatal):
    # a script without `if __name__ == "__main__":`, or one that was read from a pipe, is not run again in the worker
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/nowhere/script.py", raising=False)

    def late(number, frame):
        raise TimeoutError("the worker is still waited for")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    try:
        with plain_python():
            step = walk(made)
            step.ballast = np.zeros(100_000), Fatal() if fatal else None  # more than a pipe holds
            kernel = Kernel([step], 5, 10)
            start = kernel.begin(0, made.initial_point(0), np.random.default_rng(3))
            if fatal:
                with pytest.raises(RuntimeError, match=r"ended by itself \(exit code 1\).*cores=1"):
                    ChainProcesses(kernel, 2, start, fork=False)
            else:
                ChainProcesses(kernel, 2, start, fork=False).close()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_inside_a_worker_no_workers_are_started(made, monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert sample(made, walk(made), cores=2).attrs["cores"] == 1


def test_runs_in_threads_compile_one_after_the_other(made, monkeypatch):
    inside, most, together = [], [], threading.Barrier(2)

    class Slow(sampling.Finisher):
        def __init__(self, *arguments):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.2)
            super().__init__(*arguments)
            inside.pop()

    monkeypatch.setattr(sampling, "Finisher", Slow)

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


# --- with the steps that are found ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bumps():
    rng = np.random.default_rng(1)
    x = np.linspace(-3.0, 3.0, 25)
    return np.exp(-((x[:, None] - x[::5]) ** 2)), np.sin(x) + 0.2 * rng.normal(size=25)


def test_steps_are_found(bumps):
    """Weights integrated out, and every group of the result is there."""
    linear = bs.models.linear(*bumps)
    one = sample(linear, None, chains=2, log_likelihood=True)
    two = sample(linear, bs.steps(linear), chains=2, log_likelihood=True, cores=2)
    assert same(one, two)
    assert {"marginal_hmc[beta_log__, alpha_log__, w]"} == set(json.loads(one.attrs["step_seconds"]))
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


def test_starting_points_and_draws_of_every_chain_have_streams_of_their_own(made, monkeypatch):
    """A stream used twice would tie the first draws of a chain to the jitter of its starting point."""
    seen, points, begin = [], sampling.initial_points, Kernel.begin

    def initial_points(model, initvals, rngs):
        seen.extend(rngs)
        return points(model, initvals, rngs)

    def first(self, chain, point, rng):
        seen.append(rng)
        return begin(self, chain, point, rng)

    monkeypatch.setattr(sampling, "initial_points", initial_points)
    monkeypatch.setattr(Kernel, "begin", first)
    sample(made, walk(made), draws=2, tune=2)
    streams = {(rng.bit_generator.seed_seq.entropy, rng.bit_generator.seed_seq.spawn_key) for rng in seen}
    assert len(streams) == len(seen) >= 6
