"""Comparisons of widths: interrupted, killed, resumed: the same numbers, and nothing finished is lost.

Guards `bayessel.widths._sweep_store`, `bayessel.work.result_store`.
"""

import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel.errors import DataMismatchError, SamplingWarning, StoreWarning
from bayessel.widths import _evidence, arguments
from bayessel.work.result_store import ResultStore
from tests.problems.delve import wait_for
from tests.problems.runs import process

GRID = tuple(float(r) for r in np.geomspace(0.1, 5.0, 9))


def data(n=40):
    x = np.linspace(-3, 3, n)
    return x, np.cos(x**2) + 0.1 * np.random.default_rng(0).standard_normal(n)


def compare(widths=GRID, **options):
    return bs.compare_widths(*data(), widths, **{"model": "rvm", "progressbar": False, "n_jobs": 1} | options)


def equal(a, b):
    pd.testing.assert_frame_equal(a.table, b.table, check_exact=True)
    assert a.fits.keys() == b.fits.keys()
    for label in a.fits:
        for name, values in vars(a.fits[label]).items():
            np.testing.assert_array_equal(values, getattr(b.fits[label], name))


@pytest.fixture(scope="module")
def whole():
    return compare()


def size(folder):
    log = folder / "results.log"
    return log.stat().st_size if log.exists() else 0


@pytest.mark.parametrize("model", ["rvm", "evidence", "gp", "search"])
def test_what_is_stored_is_not_fitted_again(model, tmp_path, monkeypatch):
    options = {"model": model, "holdout": 0.2}
    first = compare(GRID[::2], store=tmp_path, **options)

    def never(*arguments):
        raise AssertionError("fitted again")

    with monkeypatch.context() as patched:
        engine = arguments.MODELS[model]
        patched.setitem(arguments.MODELS, model, engine._replace(evaluate=never))
        equal(compare(GRID[::2], store=tmp_path, **options), first)
    equal(compare(GRID[::2], **options), first)


def test_widths_may_be_added_and_other_comparisons_are_refused(tmp_path, whole):
    compare(GRID[::2], store=tmp_path)
    equal(compare(store=tmp_path), whole)
    with pytest.raises(ValueError, match="bias is True there and False here"):
        compare(store=tmp_path, bias=False)
    with pytest.raises(DataMismatchError, match="other data"):
        bs.compare_widths([0.0, 1.0, 3.0], [1.0, 0.0, 2.0], [1.0], model="rvm", store=tmp_path, progressbar=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes that are killed are forked")
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_kill_9_changes_nothing(tmp_path, whole, rng, kills):
    for _ in range(kills):
        before = size(tmp_path)
        with process(lambda: compare(store=tmp_path)) as child:
            enough = before + int(rng.integers(1, 4000))
            wait_for(lambda child=child, enough=enough: size(tmp_path) >= enough or ended(child))
            os.kill(child, signal.SIGKILL)
    assert size(tmp_path) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        equal(compare(store=tmp_path), whole)


def ended(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "Z"


def fatal_at(problem, place, starts=(), beaten=-np.inf):
    if place.width == GRID[4]:
        os.kill(os.getpid(), signal.SIGKILL)
    return _evidence.evaluate(problem, place, starts, beaten)


def test_a_worker_that_is_killed_does_not_lose_finished_widths(monkeypatch):
    expected = compare(model="evidence").table.drop(index=GRID[4])
    engine = arguments.MODELS["evidence"]
    monkeypatch.setitem(arguments.MODELS, "evidence", engine._replace(evaluate=fatal_at))
    with pytest.warns(SamplingWarning, match=r"widths are left out \(r = 0.7071: a worker process ended by itself"):
        found = compare(model="evidence", n_jobs=2)
    ours = [name for name in found.table if not name.endswith("_diff_se")]  # relative to the best
    pd.testing.assert_frame_equal(found.table[ours], expected[ours], check_exact=True)


SCRIPT = """
import json, sys, numpy as np, bayessel as bs
x = np.linspace(-3, 3, 60)
y = np.cos(x**2) + 0.1 * np.random.default_rng(0).standard_normal(60)
try:
    print("ready", flush=True)
    found = bs.compare_widths(x, y, np.geomspace(0.05, 5, 60), model="rvm", n_jobs=int(sys.argv[2]), store=sys.argv[1])
    print(json.dumps([found.interrupted, len(found.table)]))
except KeyboardInterrupt:
    print(json.dumps([True, 0]))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("times", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_ctrl_c_at_any_moment_gives_what_is_done_and_leaves_no_process(tmp_path, rng, jobs, times):
    """To the whole group of processes, as a terminal sends it."""
    for k in range(times):
        folder = tmp_path / str(k)
        script = [sys.executable, "-c", SCRIPT, str(folder), str(jobs)]
        child = subprocess.Popen(
            script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        assert child.stdout.readline() == "ready\n"
        time.sleep(float(rng.uniform(0.0, 4.0)))
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert out and "Traceback" not in err, err
        interrupted, count = json.loads(out)
        assert count == 60 or interrupted
        # a signal that meets an interpreter on its way out, all done and printed, ends it as the system does; so does
        # one that met text being executed (dataclasses, while modules are imported), though it was handled then
        assert child.returncode == 0 or (child.returncode == -signal.SIGINT and (count == 0 or not interrupted))
        wait_for(lambda pid=child.pid: not group(pid), 20.0)
        if size(folder):
            settings = json.loads((folder / "header.json").read_text())
            store = ResultStore(folder, settings["what"], settings["settings"], settings["data"])
            assert len(store) >= count
            store.close()


def group(leader):
    """Living processes of a group."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == leader and fields[0] != "Z":
            found.append(int(name))
    return found
