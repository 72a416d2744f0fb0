"""Machine code on disk: another process uses it, and none uses what is out of date.

Guards `bayessel._compiled`.
"""

import os
import subprocess
import sys

import pytest

INNER = """
from {source} import njit
FACTOR = {factor}

@njit({options})
def times(x):
    return FACTOR * x
"""
OUTER = """
from {source} import njit
import inner

@njit({options})
def outer(x):
    return later(x) + 1.0

@njit({options})
def later(x):
    return inner.times(x)
"""
# what came from disk, and the value
RUN = "import outer; print(outer.outer(2.0), sum(outer.outer.stats.cache_hits.values()))"


def written(folder, factor, source="bayessel._compiled", options=""):
    for name, text in (("inner", INNER), ("outer", OUTER)):
        path = folder / f"{name}.py"
        path.write_text(text.format(factor=factor, source=source, options=options))
        if source == "bayessel._compiled":
            os.utime(path, (1e9, 1e9))  # files of one size and one time, which changed all the same


def called(folder, caches=None):
    """Value and number of hits in a fresh process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment["NUMBA_CACHE_DIR"] = str(caches or folder / "caches")
    # Python's own byte code is kept by size and whole seconds: within one second it would be that of the old sources
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    value, hits = done.stdout.split()
    return float(value), int(hits)


@pytest.mark.filterwarnings("ignore")
def test_code_is_kept_until_anything_it_was_made_from_changes(tmp_path):
    written(tmp_path, 3.0)
    assert called(tmp_path) == (7.0, 0)
    assert called(tmp_path) == (7.0, 1)
    written(tmp_path, 5.0)  # a constant of another file, used by a function that is called by one that is called
    assert called(tmp_path) == (11.0, 0)
    assert called(tmp_path) == (11.0, 1)
    written(tmp_path, 5.0, options='fastmath={"contract"}')
    assert called(tmp_path) == (11.0, 0)
    for path in (tmp_path / "caches").rglob("outer.outer*.nbc"):
        path.write_bytes(b"damaged")
    assert called(tmp_path) == (11.0, 0)


def test_plain_functions_of_ours_that_are_compiled_where_they_are_called_count(monkeypatch):
    """What `numba.extending.register_jitable` leaves as it is."""
    from bayessel import _compiled
    from bayessel.samplers import hmc_draws, hmc_update, tuning

    found = _compiled.stamp(hmc_draws._in_place)
    assert _compiled.stamp(hmc_draws._in_place) == found
    monkeypatch.setattr(hmc_update, "DIVERGENCE", 999.0)
    assert (other := _compiled.stamp(hmc_draws._in_place)) != found
    # and what stands for a plain function inside compiled code
    monkeypatch.setattr(tuning, "_add_in_loops", lambda *arrays: None)
    monkeypatch.setitem(tuning._add_draw.__dict__, _compiled._INSIDE, (tuning._add_in_loops,))
    assert _compiled.stamp(hmc_draws._in_place) != other


def test_numbas_own_cache_would_go_on_with_the_old_constant(tmp_path):
    written(tmp_path, 3.0, source="numba", options="cache=True")
    assert called(tmp_path) == (7.0, 0)
    written(tmp_path, 5.0, source="numba", options="cache=True")
    assert called(tmp_path) == (7.0, 1)


def test_where_nothing_can_be_written_code_is_compiled(tmp_path):
    written(tmp_path, 3.0)
    (tmp_path / "file").write_text("no folder")
    assert called(tmp_path, caches=tmp_path / "file") == (7.0, 0)
