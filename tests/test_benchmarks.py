"""The benchmarks' own arithmetic, on contestants whose times are known; and that a workload runs."""

import json

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks import report
from benchmarks.__main__ import main, write_page
from benchmarks.harness import Case, Contestant, Report, Verdict, race, rows
from benchmarks.reference import Judge, exact, extended
from tests import oracles


class Clock:
    """A clock that the contestants themselves move."""

    def __init__(self):
        self.now = 0.0
        self.order = []

    def __call__(self):
        return self.now

    def contestant(self, name, role, times, **options):
        left = iter(times)

        def run(data):
            self.order.append(name)
            self.now += next(left)
            return name

        return Contestant(name, role, run, **options)


@pytest.fixture
def clock():
    return Clock()


def three(clock, **options):
    return Case(
        "N = 1",
        lambda: None,
        [
            clock.contestant("a", "ours", [99, 4, 2, 3]),  # the first lap does not count
            clock.contestant("b", "peer", [99, 8, 6, 9]),
            clock.contestant("c", "limit", [99, 1, 1, 1]),
        ],
        rounds=3,
        **options,
    )


def test_contestants_take_turns_and_the_starting_place_moves(clock):
    race(three(clock), None, clock)
    assert "".join(clock.order) == "abc" + "abc" + "bca" + "cab"


def test_the_best_round_counts_and_the_first_lap_does_not(clock):
    outcome = race(three(clock), None, clock)
    assert outcome.best("a") == 2
    assert outcome.ratio("b", "a") == 3  # 6 / 2
    assert outcome.typical_ratio("b", "a") == 3  # median of 8/4, 6/2, 9/3
    assert outcome.results == {"a": "a", "b": "b", "c": "c"}


def test_the_slow_sit_out_rounds_and_are_compared_with_the_rounds_they_ran_in(clock):
    case = Case(
        "N = 1",
        lambda: None,
        [clock.contestant("a", "ours", [99, 1, 2, 4, 8]), clock.contestant("b", "peer", [10, 40], every=2)],
        rounds=4,
    )
    outcome = race(case, None, clock)
    assert outcome.seconds["b"] == [10, 40]  # rounds 0 and 2
    assert outcome.typical_ratio("b", "a") == 10  # 10/1 and 40/4
    assert outcome.typical_ratio("a", "b") == 0.1


def test_processor_time_is_kept_beside_the_time_by_the_clock(clock):
    case = three(clock)
    outcome = race(case, None, clock, cpu_clock=lambda: 2 * clock())
    assert outcome.cpu["a"] == [8, 4, 6]
    assert outcome.cpu_ratio("b", "a") == 3


def test_preparing_is_not_timed(clock):
    def prepare(data):
        clock.now += 1000
        return data

    case = Case("N = 1", lambda: None, [clock.contestant("a", "ours", [1, 5], prepare=prepare)], rounds=1)
    assert race(case, None, clock).seconds == {"a": [5]}


def test_rows_are_relative_to_ours_and_to_the_limit(clock):
    case = three(clock)
    table = rows(case, race(case, None, clock), {"b": {"error": 0.5}})
    assert [(r["time / ours"], r["time / limit"]) for r in table] == [(1, 2), (3, 6), (0.5, 1)]
    assert table[1]["error"] == 0.5


@pytest.mark.parametrize(
    ("value", "bound", "sense", "met"),
    [
        (0.5, 0.5, "<=", True),
        (0.6, 0.5, "<=", False),
        (0.6, 0.5, ">=", True),
        (float("nan"), 0.5, "<=", False),
        (float("nan"), 0.5, ">=", False),
    ],
)
def test_a_promise_is_met_or_not(value, bound, sense, met):
    assert Verdict("x", value, bound, sense).met is met


def test_the_page_names_every_loss(clock):
    case = three(clock)
    found = Report()
    found.add(case, race(case, None, clock), {"a": {"error": float("inf")}})
    found.tables[0][1].append({"case": "N = 2", "contestant": "fast|peer", "role": "peer", "time / ours": 0.25})
    found.verdicts = [Verdict("kept", 1, 2), Verdict("not kept", 3, 2)]
    entry = report.record("w", "Title", "Text", found, quick=False, threads=1, loads=(0.0, 1.0), took=1.0)
    page = report.page([json.loads(json.dumps(report._plain(entry), allow_nan=False))])
    losses = page.split("## Where we do not win")[1].split("##")[0]
    assert "not kept" in losses and "fast|peer takes 0.25 of our time in 1 of 1 cases" in losses
    assert losses.count("\n- ") == 2
    assert "fast\\|peer" in page  # a bar inside a cell does not end it
    assert "| inf |" in page


def test_a_page_with_gaps_is_not_written(tmp_path, capsys):
    (tmp_path / "tall.json").write_text("{}")
    write_page(tmp_path, tmp_path / "page.md")
    assert not (tmp_path / "page.md").exists()
    assert "no record yet of evidence, ill_conditioned" in capsys.readouterr().out


def test_the_judges_agree_with_a_dense_gaussian_and_with_each_other(rng):
    Phi, t = rng.normal(size=(9, 4)), rng.normal(size=9)
    dense = multivariate_normal(np.zeros(9), np.eye(9) / 4.0 + Phi @ Phi.T / 0.5).logpdf(t)
    for value in (Judge(Phi, t).log_evidence(0.5, 4.0), extended(Phi, t, 0.5, 4.0), float(exact(Phi, t, 0.5, 4.0))):
        np.testing.assert_allclose(value, dense, rtol=1e-12)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is no longer than double here")
def test_the_extended_judge_keeps_its_digits_where_double_precision_has_none(rng):
    x = np.sort(rng.uniform(size=25))[:, None]
    Phi = oracles.radial("gaussian", x, np.linspace(0, 1, 12)[:, None], 1.0)
    t = np.sin(3 * x[:, 0]) + 1e-6 * rng.normal(size=25)
    np.testing.assert_allclose(extended(Phi, t, 1e-4, 1e12), oracles.exact_log_evidence(Phi, t, 1e-4, 1e12), rtol=1e-10)


def test_a_rehearsal_runs_and_leaves_the_page_alone(tmp_path, capsys):
    page = tmp_path / "page.md"
    assert main(["--only", "accuracy", "--quick", "--out", str(tmp_path), "--page", str(page)]) == 0
    entry = json.loads((tmp_path / "accuracy.quick.json").read_text())
    (table,) = entry["tables"]
    assert {row["method"] for row in table["rows"]} >= {"log_evidence"}
    assert not page.exists()
    assert "largest error of ours" in capsys.readouterr().out
