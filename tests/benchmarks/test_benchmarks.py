"""The benchmarks' own arithmetic, on contestants whose times are known; and that a workload runs."""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from benchmarks import report, rvm_worker
from benchmarks.__main__ import main
from benchmarks.harness import Case, Contestant, Race, Report, Verdict, race, rows
from benchmarks.reference import (
    Judge,
    exact,
    extended,
    sparse_evidence,
    sparse_evidence_tall,
    sparse_exact,
    sparse_judge,
)
from benchmarks.rvm_cases import problem
from benchmarks.workloads import NAMES, rvm
from tests.oracles import linear as oracles
from tests.paths import ROOT


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


def test_every_loss_is_named(clock):
    case = three(clock)
    found = Report()
    found.add(case, race(case, None, clock), {"a": {"error": float("inf")}})
    found.tables[0][1].append({"case": "N = 2", "contestant": "fast|peer", "role": "peer", "time / ours": 0.25})
    found.verdicts = [Verdict("kept", 1, 2), Verdict("not kept", 3, 2)]
    entry = report.record("w", "Title", "Text", found, quick=False, threads=1, loads=(0.0, 1.0), took=1.0)
    entry = json.loads(report.json_text(entry))
    first, second = report.losses([entry])
    assert "not kept" in first and "fast|peer takes 0.25 of our time in 1 of 1 cases" in second
    shown = report.section(entry)
    assert "fast\\|peer" in shown  # a bar inside a cell does not end it
    assert "| inf |" in shown
    assert "**missed**: not kept: 3 (at most 2)" in shown and "- met: kept" in shown


def test_records_are_printed_as_they_were_kept(tmp_path, clock, capsys):
    case = three(clock)
    found = Report()
    found.add(case, race(case, None, clock))
    found.verdicts = [Verdict("too slow", 3, 2)]
    entry = report.record("tall", "Title", "Text", found, quick=False, threads=1, loads=(0.0, 1.0), took=1.0)
    report.save(entry, tmp_path)
    text = (tmp_path / "tall.json").read_text()
    assert json.loads(text) == json.loads(json.dumps(report._plain(entry)))
    assert len(text.splitlines()) < 50  # a row of a table takes one line
    assert main(["--show", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "## Title (`tall`)" in shown and "`python -m benchmarks --only tall`" in shown
    assert "too slow (`tall`)" in shown.split("## Where we do not win")[1]
    assert (tmp_path / "tall.json").read_text() == text


def test_the_records_kept_are_whole():
    kept = report.read(ROOT / "benchmarks" / "records", NAMES)
    assert {entry["workload"] for entry in kept} == {path.stem for path in (ROOT / "benchmarks/records").glob("*.json")}
    for entry in kept:
        assert entry["command"] == f"python -m benchmarks --only {entry['workload']}" and not entry["quick"]
        assert entry["tables"] and all(table["rows"] for table in entry["tables"])
        for v in entry["verdicts"]:
            assert v["met"] is Verdict(v["label"], v["value"], v["bound"], v["sense"]).met, v
        assert entry["title"] in report.section(entry)


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


def test_a_rehearsal_runs_and_leaves_the_record_alone(tmp_path, capsys):
    assert main(["--only", "accuracy", "--quick", "--out", str(tmp_path)]) == 0
    entry = json.loads((tmp_path / "accuracy.quick.json").read_text())
    (table,) = entry["tables"]
    assert {row["method"] for row in table["rows"]} >= {"log_evidence"}
    assert not (tmp_path / "accuracy.json").exists()
    assert "largest error of ours" in capsys.readouterr().out


def test_the_judges_of_sparse_models_agree_with_a_dense_gaussian(rng):
    columns, t = rng.normal(size=(12, 4)), rng.normal(size=12)
    alpha, beta = np.array([0.1, 2.0, 30.0, 0.5]), 3.0
    dense = multivariate_normal(np.zeros(12), np.eye(12) / beta + (columns / alpha) @ columns.T).logpdf(t)
    for judge in (sparse_evidence, sparse_evidence_tall, sparse_exact, sparse_judge):
        np.testing.assert_allclose(float(judge(columns, t, alpha, beta)), dense, rtol=1e-12, err_msg=judge.__name__)
    nothing = multivariate_normal(np.zeros(12), np.eye(12) / beta).logpdf(t)
    np.testing.assert_allclose(sparse_judge(columns[:, :0], t, alpha[:0], beta), nothing, rtol=1e-12)


def test_the_exact_sparse_judge_keeps_its_digits_on_near_duplicates(rng):
    x = np.sort(rng.uniform(size=20))[:, None]
    Phi = oracles.radial("gaussian", x, np.linspace(0, 1, 9)[:, None], 2.0)  # condition number about 1e16
    t = np.sin(3 * x[:, 0]) + 1e-5 * rng.normal(size=20)
    truth = exact(Phi, t, 1e-4, 1e10, digits=80)
    assert abs(sparse_exact(Phi, t, np.full(9, 1e-4), 1e10) / truth - 1) < 1e-50


def test_designs_of_the_cases_are_gaussians_and_a_bias():
    data = problem("friedman@3 300 40")
    Phi = data.design()
    assert Phi.shape == (300, 41)
    np.testing.assert_allclose(Phi[:, :-1], oracles.radial("gaussian", data.X, data.X[:40], data.width), rtol=1e-12)
    assert (Phi[:, -1] == 1).all()
    np.testing.assert_array_equal(data.design([40, 7]), Phi[:, [40, 7]])
    assert problem("chirp -0.8 3").width == pytest.approx(2**0.5 * 10**-0.8)


class FakeCore:
    """The compiled core of fastrvm as far as a fit calls it; precisions as it scales them."""

    class Likelihood:
        Gaussian = 0

    class SparseBayes:
        def __init__(self, likelihood, iterations, **flags):
            pass

        def inference(self, Phi, t):
            basis = np.array([1, Phi.shape[1] - 1])
            size = (Phi[:, basis] ** 2).sum(axis=0)
            return {"relevant_idx": basis[:, None], "alpha": np.array([3.0, 5.0]) / size**2, "beta": 7.0}


def test_precisions_of_fastrvm_are_brought_to_our_scale(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastrvm", ModuleType("fastrvm"))
    monkeypatch.setitem(sys.modules, "fastrvm._sparsebayes_bindings", FakeCore)
    data = problem("sinc 30")
    Phi = data.design()
    entrant = rvm_worker.ENTRANTS["fastrvm, both"]
    basis, alpha, beta = entrant.read(entrant.fit(data, Phi), data, Phi)
    assert (list(basis), beta) == ([1, 30], 7.0)
    np.testing.assert_allclose(alpha, [3.0, 5.0])


def test_columns_of_the_other_peers_are_found_again():
    data = problem("sinc 30")
    Phi = data.design()
    kept = SimpleNamespace(phi=Phi[:, [4, 9, 30]], alpha_=np.array([1.0, 2.0, 3.0]), beta_=7.0)
    basis, alpha, _ = rvm_worker.read_skrvm(kept, data, Phi)
    assert list(basis) == [4, 9, 30] and list(alpha) == [1, 2, 3]
    # kernels divided by 2: weights doubled, precisions a quarter; the bias comes first and was not divided
    scaled = SimpleNamespace(bias_used=True, relevance_=np.array([4, 9]), alpha_=np.array([3.0, 1.0, 2.0]), _scale=2.0)
    scaled.beta_ = 7.0
    basis, alpha, _ = rvm_worker.read_sklearn_rvm(scaled, data, Phi)
    assert list(basis) == [4, 9, 30] and list(alpha) == [4, 8, 3]


@pytest.mark.parametrize("name", ["fit_rvm", "ARDRegression"])
def test_a_worker_hands_back_a_model_and_its_times(name, tmp_path, capsys):
    out = tmp_path / "out.npz"
    assert rvm_worker.main(["sinc 60", name, str(out), "0"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["seconds"]) == len(said["cpu"]) == 1 and said["added"] <= said["over_import"]
    found = dict(np.load(out))
    data = problem("sinc 60")
    evidence = sparse_judge(data.design(found["basis"]), data.t, found["alpha"], float(found["beta"]))
    assert 40 < evidence < 60  # 0.87 nats a row at this noise, less what the functions cost
    if name == "fit_rvm":
        np.testing.assert_allclose(found["said"], evidence, rtol=1e-10)


def test_a_peer_that_is_not_installed_is_named_and_skipped(monkeypatch, capsys):
    nobody = rvm_worker.Entrant("a_package_that_nobody_has", rvm_worker.ard, rvm_worker.read_ard)
    monkeypatch.setitem(rvm_worker.ENTRANTS, "ARDRegression", nobody)
    assert rvm_worker.main(["sinc 60", "ARDRegression", "nowhere.npz"]) == rvm_worker.NOT_INSTALLED
    assert "a_package_that_nobody_has" in json.loads(capsys.readouterr().out)["missing"]


def outcome(seconds, evidence, **row):
    return rvm.Outcome([seconds], [seconds], {"log evidence": evidence, "nats over ours": evidence - 5.0} | row)


def test_promises_of_the_rvm_are_against_the_best_and_the_fastest_peer():
    ran = {
        "fit_rvm": outcome(1.0, 5.0),
        "fastrvm": outcome(2.0, 4.0),
        "scikit-rvm": outcome(9.0, 6.5),
        "RVMRegressor": outcome(1.0, 5.0, **{"memory over import (MB)": 100.0}),
        "fastrvm.RVR": outcome(0.1, 1.0, **{"memory over import (MB)": 400.0}),
    }
    times = Race({k: v.seconds for k, v in ran.items()}, {k: v.cpu for k, v in ran.items()})
    peers = ["fastrvm", "scikit-rvm", "fastrvm.RVR"]
    values = [v.value for v in rvm.verdicts("sinc 4000", 4000, ran, times, peers)]
    assert values == [1.5, 0.5, 0.25]  # the class that makes its own dictionary is no rival of a fit that is given one
    assert [v.value for v in rvm.verdicts("sinc 200", 200, ran, times, peers)] == [1.5]
    assert rvm.verdicts("sinc 4000", 4000, ran, times, []) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rvm", "rvm_growth", "rvm_widths"])
def test_rehearsals_of_the_rvm_run(name, tmp_path):
    assert main(["--only", name, "--quick", "--threads", "1", "--out", str(tmp_path)]) == 0
    entry = json.loads((tmp_path / f"{name}.quick.json").read_text())
    assert entry["tables"][0]["rows"]
    assert all(v["met"] for v in entry["verdicts"] if "relative error" in v["label"])
