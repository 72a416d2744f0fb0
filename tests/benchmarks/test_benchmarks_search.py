"""The arithmetic of the searches beside the paper: its own consistency, paired comparisons, promises; a rehearsal."""

import json
from itertools import pairwise, product

import numpy as np
import pytest

from benchmarks import search_paper as paper
from benchmarks.__main__ import main
from benchmarks.delve_cases import Task
from benchmarks.search_fits import kept
from benchmarks.workloads import search_delve
from benchmarks.workloads.search_delve import neighbours, promise, report, significant, smaller

METHODS = paper.ORDER


def forward_selection_ends(best):
    """Add functions one at a time, the best model has `best` of them: where the rule of section 6.2.2 stops."""
    m = 0
    while not (m > best and best + max(15, round(0.3 * best)) < m):
        m += 1
    return m


def test_where_searches_stop():
    for best in range(1, 200):
        assert paper.stops(best) == forward_selection_ends(best)


@pytest.mark.parametrize("sizes", [*product([1, 30, 90], repeat=4), (2, 3, 2, 3), (41, 77, 120, 5)])
def test_bounds_hold_for_whatever_sizes_make_the_mean(sizes):
    low, high = paper.bounds(float(np.mean(sizes)))
    assert low <= np.mean([forward_selection_ends(best) for best in sizes]) <= high + 1e-9


def test_bounds_are_reached():
    low, high = paper.bounds(50.0)
    assert low == forward_selection_ends(50) - 0.5
    assert high == np.mean([forward_selection_ends(best) for best in (1, 1, 1, 197)])


def test_the_papers_tables_agree_but_for_one_family():
    off = {name: paper.contradiction(name) for name in paper.FAMILIES}
    assert all((off[name] > 1.05) == name.startswith("bank") for name in paper.FAMILIES)
    assert all(off[name] == 1.0 for name in paper.FAMILIES if not name.startswith("bank"))


def test_the_paper_counts_every_function_once():
    assert paper.size("sffs", "kin-8fh") == 10 and paper.steps("oscil(5)", "bank-8nm") == 552
    assert paper.size("abf", "kin-8fh") is None and paper.size("sffs", "friedman") is None
    assert all(len(row) == len(paper.FAMILIES) for row in (*paper.SIZES.values(), *paper.STEPS.values()))


def test_significance_needs_every_training_set(rng):
    assert significant(np.array([0.1, 0.11, 0.09, 0.1])) == 1
    assert significant(np.array([-0.1, -0.11, -0.09, -0.1])) == -1
    assert significant(np.array([0.1, -0.11, 0.09, 0.1])) == 0  # t = 0.86, p = 0.45
    assert significant(np.array([0.1])) == 0
    wrong = [abs(significant(rng.normal(size=4))) for _ in range(2000)]
    np.testing.assert_allclose(np.mean(wrong), 0.05, atol=3 * np.sqrt(0.05 * 0.95 / 2000))


def made_up(errors):
    """Two tasks of three sets whose errors are powers of those given: 1 and 1.1 on average."""

    def task(power, costs):
        sets = [
            {m: {"error": e ** (power * f), "size": 9, "smaller": 3} for m, e in errors.items()} for f in (1, 1.1, 0.9)
        ]
        for one in sets:
            for name in paper.STRATEGIES:
                one[name]["smaller, error"] = costs * one[name]["error"]
        return sets

    return {Task("kin-8fh", 1024): task(1.0, 1.02), Task("kin-8nm", 1024): task(1.1, 1.04)}


def test_neighbours_are_compared_in_the_papers_order():
    errors = dict(zip(METHODS, np.exp(0.1 * np.arange(len(METHODS))), strict=True))
    table, verdicts = neighbours(made_up(errors))
    assert [(row["better"], row["worse"]) for row in table] == list(pairwise(METHODS))
    np.testing.assert_allclose([row["mean log ratio"] for row in table], 0.105)
    assert all(v.met and v.value == 1.0 for v in verdicts)
    # against it: the mean of 0.1 and 0.11 over their standard error 0.005, p of 21 with one degree of freedom
    backwards = dict(zip(METHODS, np.exp(-0.1 * np.arange(len(METHODS))), strict=True))
    table, verdicts = neighbours(made_up(backwards))
    np.testing.assert_allclose([row["p"] for row in table], 2 * (0.5 - np.arctan(21) / np.pi))
    assert not any(v.met for v in verdicts)


def test_what_a_smaller_model_costs():
    for row in smaller(made_up(dict.fromkeys(METHODS, 0.5))):
        np.testing.assert_allclose([row["functions, ratio"], row["error, ratio"]], [1 / 3, np.sqrt(1.02 * 1.04)])
        np.testing.assert_allclose(row["largest"], 1.04)


def test_promises_name_the_reason():
    row = {"task": "kin-8fh", "method": "sffs", "functions": 5.0, "functions, paper": 10.0, "lost": 3.0}
    assert promise(row).value == 2.0 and not promise(row).met
    assert promise(row | {"lost": 0.4}).met and "nats" in promise(row | {"lost": 0.4}).label
    assert promise(row | {"functions": 7.0}).met and promise(row | {"functions": 14.9}).met
    assert "differ" not in promise(row).label and "differ by 1.30" in promise(row | {"task": "bank-8fm"}).label


def test_only_the_largest_tasks_stand_beside_the_papers_sizes():
    errors = dict(zip(METHODS, np.exp(0.1 * np.arange(len(METHODS))), strict=True))
    large = made_up(errors)
    for found in large.values():
        for one in found:
            for name in one:
                one[name] |= {"seconds": 1.0, "lost": 0.0}
    few = {Task(task.family, 64): found for task, found in large.items()}
    both = report(large | few)
    assert {row["task"] for row in both.tables[0][1]} == {"kin-8fh", "kin-8nm"}
    assert len(both.tables[0][1]) == 2 * len(METHODS) and len(both.tables) == len(report(large).tables) + 1
    assert {row["of"] for row in both.tables[1][1]} == {2} and {row["of"] for row in both.tables[2][1]} == {4}
    assert all(row["functions, paper"] is None for row in report(few).tables[0][1])


def test_parts_are_made_once(tmp_path, monkeypatch):
    made = []
    monkeypatch.delenv("BENCHMARK_PARTS", raising=False)
    assert kept("a", lambda: made.append(1) or {"x": 1.5}) == {"x": 1.5}
    monkeypatch.setenv("BENCHMARK_PARTS", str(tmp_path))
    for _ in range(3):
        assert kept("a", lambda: made.append(1) or {"x": 1.5}) == {"x": 1.5}
    assert len(made) == 2


@pytest.mark.slow
def test_a_rehearsal_runs(tmp_path, monkeypatch):
    for name in ("BENCHMARK_DATA", "BENCHMARK_PARTS"):
        monkeypatch.delenv(name, raising=False)
    where = ["--out", str(tmp_path)]
    assert main(["--only", "search_delve", "--quick", "--threads", "1", *where]) == 0
    entry = json.loads((tmp_path / "search_delve.quick.json").read_text())
    methods = [row["method"] for row in entry["tables"][0]["rows"]]
    assert methods == ["abf", *paper.STRATEGIES, "rvm", "ols"] and search_delve.TITLE == entry["title"]
