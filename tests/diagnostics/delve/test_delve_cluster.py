"""Studies on a real Dask cluster: a scheduler and worker processes, one of which is killed.

Guards `bayessel.diagnostics.delve._run`.
"""

import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest

from bayessel.cli import main
from bayessel.diagnostics import delve
from tests.problems.delve import Failing, Fatal, Noisy, Silent, diary, same, task, wait_for

distributed = pytest.importorskip("distributed", reason="dask[distributed] is in the extra `cluster`")
run = partial(delve.run, progressbar=False)


@contextmanager
def cluster(workers):
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with cluster(2) as one:
        yield one


def test_a_cluster_gives_the_same(client, tmp_path):
    tasks = [task(), task(name="other", noise=0.1)]
    methods = {"a": Noisy(), "ship": Failing(bound=0.0)}
    study = run(methods, tasks, executor=client, store=tmp_path)
    assert same(study, run(methods, tasks))
    assert len(study.failures()) == len(run(methods, tasks).failures()) > 0
    assert same(study, delve.Study.load(tmp_path))


def test_a_killed_worker_loses_what_it_was_doing_and_no_more(client, tmp_path):
    book = str(tmp_path / "diary")
    tasks = [task(), task(name="other", noise=0.1)]
    methods = {"a": Noisy(diary=book, seconds=0.25), "b": Noisy(diary=book, seconds=0.25, shrink=0.5)}
    killed = []

    def kill():
        wait_for(lambda: len(diary(book)) >= 5)
        pid, seed = diary(book)[-1]
        time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        killed.append((pid, seed))

    killer = threading.Thread(target=kill)
    killer.start()
    study = run(methods, tasks, executor=client)
    killer.join()
    begun = [seed for _, seed in diary(book)]
    assert killed and {seed for seed in begun if begun.count(seed) > 1} == {killed[0][1]}
    assert len(begun) == 16 + 1
    assert len({pid for pid, _ in diary(book)}) >= 2
    assert same(study, run({name: Noisy(shrink=one.shrink) for name, one in methods.items()}, tasks))
    assert study.failures().empty


class Locked:
    """Cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_a_method_that_cannot_be_sent_fails(client):
    study = run({"locked": Locked(), "mean": Silent()}, task(instances=2), executor=client)
    assert study.failures()["method"].tolist() == ["locked", "locked"] and len(study.outcomes) == 4
    assert study.failures()["error"].str.startswith("the unit could not be sent").all()


def test_the_command_line_takes_a_scheduler(client, tmp_path):
    words = [
        "--generated",
        "friedman-1",
        "--sizes",
        "16",
        "--instances",
        "2",
        "--store",
        str(tmp_path / "s"),
        "--quiet",
    ]
    words += ["--methods", "a=tests.problems.delve:Noisy,b=tests.problems.delve:Silent"]
    there = ["--store", str(tmp_path / "s"), "--scheduler", client.scheduler.address]
    here = ["--store", str(tmp_path / "t")]
    assert main(["delve", "run", *words, *there]) == main(["delve", "run", *words, *here]) == 0
    assert same(delve.Study.load(tmp_path / "s"), delve.Study.load(tmp_path / "t"))


@pytest.mark.slow
def test_a_method_that_kills_its_workers_fails(client):
    """The scheduler gives up on it after some workers (its setting allowed-failures, 3)."""
    study = run({"fatal": Fatal(), "mean": Silent()}, task(instances=2), executor=client)
    assert set(study.failures()["method"]) == {"fatal"}
    assert study.failures()["error"].str.contains("KilledWorker").all()
    assert len(study.outcomes) == 4


#: decompositions of 16 × 16: about a quarter of a second
WORK = 8000


@pytest.mark.slow
@pytest.mark.parametrize("unit", [{"seconds": 0.25}, {"work": WORK}], ids=["waiting", "computing"])
def test_two_workers_are_nearly_twice_as_fast(unit, record_property):
    """Units of a quarter second, in turns, the best of each.

    Those that wait show what the study itself costs, on a busy machine too; those that compute need two free cores.
    """
    if "work" in unit and len(os.sched_getaffinity(0)) - os.getloadavg()[0] < 1.0:
        pytest.skip(f"needs two free cores; the load is {os.getloadavg()[0]:.1f}")
    tasks = task(instances=8)
    seconds = {}
    for workers in (1, 2, 1, 2):
        with cluster(workers) as client:
            methods = {f"m{k}": Noisy(**unit, shrink=1.0 - 0.1 * k) for k in range(4)}
            client.wait_for_workers(workers)
            run({"warm": Noisy()}, tasks, executor=client)  # imports
            began = time.perf_counter()
            run(methods, tasks, executor=client)
            seconds[workers] = min(seconds.get(workers, 1e9), time.perf_counter() - began)
    record_property("seconds", seconds)
    assert seconds[1] / seconds[2] >= 1.8
