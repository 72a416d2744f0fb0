"""The benchmark of networks against time: parts that are kept, curves, verdicts."""

import json
import time

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.delve_cases import Guess, Task
from benchmarks.processor_clock import processor_time
from benchmarks.workloads import mlp_delve
from benchmarks.workloads.mlp_delve import Part, known, of, parts, play, verdicts


@pytest.fixture
def records(rng, monkeypatch):
    """Losses of two curves, mlp-mc better than mlp-ese by 0.1, but for noise; relevances that are right."""
    monkeypatch.setattr(mlp_delve, "there", lambda family: True)
    found = {}
    for part in parts(False):
        base = 0.5 + 0.01 * rng.normal() + {"mlp-mc": 0.01, "mlp-ese": 0.11}.get(part.method, 0.0)
        order = ["tau4", "theta4", "theta5", "x"] if part.method == "mlp-mc" else []
        found[part] = {"losses": [base, base, base], "order": order}
    return found


def test_parts_are_unlike_and_cover_every_budget(records):
    assert len(set(parts(False))) == len(parts(False)) == len(records)
    for family, n in mlp_delve.CURVES:
        for seconds in mlp_delve.BUDGETS:
            for method in mlp_delve.NETWORKS:
                assert len(of(records, Task(family, n), method, seconds)) == mlp_delve.SETS
    rows = mlp_delve.curves(records)
    assert len(rows) == len(mlp_delve.CURVES) * len(mlp_delve.BUDGETS) and rows[0]["budget, s"] == 0.5
    assert all("gp-mc, log" in row for row in rows) and len(mlp_delve.orders(records)) == 4


def test_verdicts_are_met_and_can_be_missed(records):
    good = verdicts(records)
    assert all(one.met for one in good) and len(good) == 4
    for line in records.values():
        line["losses"] = [1.0 - x for x in line["losses"]]
        line["order"] = line["order"][::-1][:1] + ["junk"] * 4
    assert not any(one.met for one in verdicts(records))


def test_parts_that_are_known_are_not_played_again(tmp_path, monkeypatch):
    path = tmp_path / "parts.jsonl"
    seen = []

    def guess(part, split):
        seen.append(part)
        n = len(split.y_test)
        return Guess(np.zeros(n), np.zeros(n), np.full(n, -1.0), ["a"])

    monkeypatch.setattr(mlp_delve, "guess", guess)
    with pytest.raises(SystemExit, match="parts are left: run it again"):
        play(path, True, most=-1.0)
    first = play(path, True)
    assert seen == parts(True) and list(known(path)) == parts(True)
    again = play(path, True)
    assert len(seen) == len(parts(True))
    assert {part: line["losses"] for part, line in again.items()} == {
        part: line["losses"] for part, line in first.items()
    }


def test_budgets_are_of_processor_time():
    from bayessel.mlp import early_stopping

    before = early_stopping.perf_counter
    with processor_time():
        assert early_stopping.perf_counter is time.process_time
    assert early_stopping.perf_counter is before


def test_the_picture_has_a_curve_for_each_method(records, tmp_path):
    mlp_delve.picture(records, tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 5_000


@pytest.mark.slow
def test_the_rehearsal_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHMARK_DATA", raising=False)
    where = ["--out", str(tmp_path)]
    assert main(["--only", "mlp_delve", "--quick", "--threads", "1", *where]) == 0
    assert json.loads((tmp_path / "mlp_delve.quick.json").read_text())["tables"][0]["rows"]
    assert isinstance(parts(True)[0], Part)
