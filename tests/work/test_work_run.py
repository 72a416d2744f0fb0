"""Units of work: the same numbers whoever does them, whoever dies; failures, budgets, stores.

Guards `bayessel.work._run`, `bayessel.work.unit`, `bayessel.work.jobs`, `bayessel.work.processes`,
`bayessel.work.executors`, `bayessel.work.seeds`.
"""

import os
import signal
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import distributed
import numpy as np
import pytest
import submitit

from bayessel import work
from bayessel.errors import SamplingWarning
from bayessel.work import WorkUnit
from bayessel.work.jobs import check_jobs, core_count
from bayessel.work.processes import compile_flags
from bayessel.work.seeds import seed_sequence
from tests.problems.delve import wait_for
from tests.problems.work import busy, failing, fatal, fatal_once, lines, spectrum, units

run = partial(work.run, progress=False)


def same_values(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


@pytest.fixture(scope="module")
def expected():
    """By the function itself, one after the other."""
    return {unit.key: spectrum(*unit.arguments) for unit in units(12)}


def test_this_process_and_two_give_the_same(expected, tmp_path):
    alone = run(units(12), n_jobs=1)
    two = run(units(12, diary=str(tmp_path / "diary"))[::-1], n_jobs=2)
    assert same_values(alone.values, expected) and same_values(two.values, expected)
    assert len({pid for pid, _ in lines(tmp_path / "diary")}) == 2
    assert os.getpid() not in {pid for pid, _ in lines(tmp_path / "diary")}
    assert not (two.lost or two.interrupted or two.out_of_time) and two.seconds > 0.0


def test_seeds_belong_to_names():
    assert seed_sequence(1, "a", 2).generate_state(2).tolist() == seed_sequence(1, "a", 2).generate_state(2).tolist()
    states = {int(seed_sequence(*one).generate_state(1)[0]) for one in [(1, "a"), (1, "b"), (2, "a"), ([1, 2], "a")]}
    assert len(states) == 4


class AtOnce:
    """An executor that has done its work when it returns the future."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_what_came_together_with_an_error_is_not_lost():
    units = [WorkUnit("bad", divmod, (1, 0)), WorkUnit("good", divmod, (7, 2))]
    seen = []
    with pytest.raises(ZeroDivisionError):
        work.run(units, AtOnce(), progress=False, on_result=lambda unit, value: seen.append((unit.key, value)))
    assert seen == [("good", (3, 1))]


class UncompletedJobError(Exception):
    """What submitit says of a job that was killed."""


def test_a_unit_whose_jobs_are_killed_is_given_out_twice():
    given_out = []

    class Killing:
        def submit(self, function, *arguments):
            given_out.append(arguments)
            future = Future()
            future.set_exception(UncompletedJobError("killed"))
            return future

    report = run([WorkUnit("heavy", divmod, (7, 2))], Killing())
    assert len(given_out) == 2 and not report.values and "killed" in report.lost["heavy"]


def test_names_of_seeds_do_not_run_into_each_other():
    names = [("chain", 1, 12), ("chain", 11, 2), ("chain 1", 12), ("chain", 112)]
    states = {int(seed_sequence(7, *one).generate_state(1)[0]) for one in names}
    assert len(states) == 4


def test_a_dask_cluster_with_a_killed_worker_gives_the_same(expected, tmp_path):
    """A scheduler and two worker processes; one is killed amid its unit."""
    diary = tmp_path / "diary"
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill():
            wait_for(lambda: len(lines(diary)) >= 4)
            os.kill(lines(diary)[-1][0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        report = run(units(12, diary=str(diary), seconds=0.15), executor=client)
        killer.join()
    assert same_values(report.values, expected) and not report.lost
    names = [name for _, name in lines(diary)]
    # what the killed worker did is done again, and what it had done if nobody had fetched it
    assert 13 <= len(names) <= 15 and len(set(names)) == 12


def test_executors_of_threads_and_of_submitit_give_the_same(expected, tmp_path):
    with ThreadPoolExecutor(2) as threads:
        assert same_values(run(units(12), executor=threads).values, expected)
    jobs = submitit.AutoExecutor(tmp_path / "jobs", cluster="local")
    report = run(units(12)[:2], executor=jobs, n_jobs=2)
    assert same_values(report.values, {key: expected[key] for key in ("unit 0", "unit 1")})


def test_a_process_that_dies_is_replaced_once(expected, tmp_path):
    seed = units(1)[0].arguments[0]
    some = [WorkUnit("once", fatal_once, (str(tmp_path / "mark"), seed)), WorkUnit("always", fatal, (1,)), *units(3)]
    seen = []
    report = run(some, n_jobs=2, on_lost=lambda unit, said: seen.append(unit.key))
    assert np.array_equal(report.values["once"], expected["unit 0"])
    assert set(report.lost) == {"always"} == set(seen)
    assert "ended by itself (exit code 7), twice" in report.lost["always"]
    assert len(report.values) == 4


def test_an_executor_that_breaks_is_replaced(expected):
    """A pool of concurrent.futures is broken by one process that dies, with all it was given."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        some = [*units(2), WorkUnit("fatal", fatal, (1,)), *units(6)[2:]]
        with pytest.warns(SamplingWarning, match=r"done by processes of this machine"):
            report = run(some, executor=pool)
    assert same_values(report.values, {key: expected[key] for key in [f"unit {k}" for k in range(6)]})
    assert set(report.lost) == {"fatal"}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_a_unit_raises_comes_through(jobs):
    done = []
    some = [*units(2), WorkUnit("bad", failing, (4,))]
    with pytest.raises(ZeroDivisionError, match="the unit of seed 4"):
        run(some, n_jobs=jobs, on_result=lambda unit, value: done.append(unit.key))
    assert len(done) >= 3 - jobs  # the other one may have been on its way


def test_what_cannot_be_sent_is_lost_and_said(expected):
    some = [WorkUnit("lock", spectrum, (threading.Lock(),)), WorkUnit("back", threading.Lock), *units(2)]
    report = run(some, n_jobs=2)
    assert set(report.lost) == {"lock", "back"} and len(report.values) == 2
    assert "could not be sent" in report.lost["lock"] and "cannot be sent" in report.lost["back"]


def test_functions_of_a_script_can_be_sent():
    report = run([WorkUnit(str(k), lambda k=k: k**2) for k in range(3)], n_jobs=2)
    assert report.values == {"0": 0, "1": 1, "2": 4}


def test_a_budget_begins_nothing_late():
    report = run(units(40, diary=None, seconds=0.05), n_jobs=1, budget=0.12)
    assert report.out_of_time and 2 <= len(report.values) <= 4


def test_processes_are_taken_where_they_pay(monkeypatch, tmp_path):
    from bayessel.work import _run

    monkeypatch.setattr(_run, "WORTH_PROCESSES", 0.0)
    monkeypatch.setattr(_run, "core_count", lambda: 2)
    diary = str(tmp_path / "diary")
    assert len(run(units(6, diary=diary)).values) == 6
    pids = [pid for pid, _ in lines(diary)]
    assert pids[0] == os.getpid() and os.getpid() not in pids[1:]


def test_workers_have_one_thread_and_a_folder_of_their_own(monkeypatch):
    monkeypatch.setenv("PYTENSOR_FLAGS", "mode=FAST_RUN,base_compiledir=/somewhere")
    assert compile_flags(3) == f"mode=FAST_RUN,base_compiledir={os.path.join('/somewhere', 'worker-3')}"
    monkeypatch.delenv("PYTENSOR_FLAGS")
    assert compile_flags(0).endswith(os.path.join(".pytensor", "worker-0"))
    (found,) = run([WorkUnit("env", lambda: (os.environ["OMP_NUM_THREADS"], os.environ["PYTENSOR_FLAGS"]))] * 1,
                   n_jobs=2).values.values()  # fmt: skip
    assert found == ("1", compile_flags(0))


@pytest.mark.parametrize(
    ("jobs", "kind", "said"),
    [
        (0, ValueError, "n_jobs must not be 0"),
        (True, TypeError, "n_jobs must be None, a number"),
        ("all", TypeError, "got 'all'"),
        (1.5, TypeError, "got 1.5"),
    ],
)
def test_numbers_of_processes(jobs, kind, said):
    with pytest.raises(kind, match=said):
        check_jobs(jobs)
    assert check_jobs(None) is None and check_jobs(3) == 3
    assert check_jobs(-1) == core_count()


@pytest.mark.slow
def test_two_processes_are_nearly_twice_as_fast(record_property):
    if len(os.sched_getaffinity(0)) - os.getloadavg()[0] < 1.0:
        pytest.skip(f"needs two free cores; the load is {os.getloadavg()[0]:.1f}")
    seconds = {}
    for jobs in (1, 2, 1, 2):
        some = [WorkUnit(str(k), busy, (0.5,)) for k in range(24)]
        began = time.perf_counter()
        run(some, n_jobs=jobs)
        seconds[jobs] = min(seconds.get(jobs, 1e9), time.perf_counter() - began)
    record_property("seconds", seconds)
    assert seconds[1] / seconds[2] >= 1.8


def test_ctrl_c_beside_the_last_unit_is_not_forgotten():
    """Whoever has more rounds to do must hear of it."""

    def stop(unit, value):
        raise KeyboardInterrupt

    report = run(units(1), n_jobs=1, on_result=stop)
    assert report.interrupted and not report.remaining and not report.out_of_time and len(report.values) == 1
