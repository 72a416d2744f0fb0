"""The race of the field: scores of mixtures, divisions of sets, what survives a kill, verdicts, and the page."""

import gzip
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm, ttest_1samp

import bayessel as bs
from bayessel.diagnostics.delve import Dataset, hierarchical
from benchmarks.field import page, peers, race, sets, worker
from benchmarks.field.__main__ import main
from benchmarks.field.mixtures import MOST, Mixture
from benchmarks.field.own import OURS, mixture
from benchmarks.field.verdicts import CONSTANT, RIDGE, Field, best
from benchmarks.workloads import load
from tests.paths import ROOT

# --- scores -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def parts(rng):
    logs = np.log(rng.dirichlet(np.ones(3), size=4).T)
    return Mixture(rng.normal(size=(3, 4)), rng.uniform(0.2, 2.0, size=(3, 4)), logs)


def test_scores_of_a_mixture_are_those_of_its_density(parts, rng):
    y = rng.normal(size=4)
    for j in range(4):
        w, m, s = np.exp(parts.log_weights[:, j]), parts.means[:, j], parts.stds[:, j]

        def below(x, w=w, m=m, s=s):
            return float(w @ norm.cdf(x, m, s))

        assert parts.log_density(y)[j] == pytest.approx(np.log(w @ norm.pdf(y[j], m, s)), abs=1e-12)
        assert parts.cdf(y)[j] == pytest.approx(below(y[j]), abs=1e-12)
        # the score is the integral of the squared distance to the step at the target
        left = quad(lambda x: below(x) ** 2, -30.0, y[j], limit=200)[0]
        right = quad(lambda x: (1.0 - below(x)) ** 2, y[j], 30.0, limit=200)[0]
        assert parts.crps(y)[j] == pytest.approx(left + right, abs=1e-6)
        assert parts.mean()[j] == pytest.approx(w @ m, abs=1e-12)
        moment = quad(lambda x, w=w, m=m, s=s: x**2 * float(w @ norm.pdf(x, m, s)), -30.0, 30.0, limit=200)[0]
        assert parts.std()[j] == pytest.approx(np.sqrt(moment - (w @ m) ** 2), abs=1e-6)


def test_a_mixture_of_many_is_thinned_evenly():
    means = norm.ppf((np.arange(2000) + 0.5) / 2000)[:, None]
    one = Mixture(means, np.full_like(means, 1e-3))
    assert len(one.thinned().means) == MOST
    # CRPS of a standard normal distribution at nought: 2 phi(0) - 1 / sqrt(pi)
    assert one.crps(np.zeros(1))[0] == pytest.approx(2 * norm.pdf(0.0) - 1 / np.sqrt(np.pi), abs=2e-3)


def test_a_thinned_mixture_keeps_its_weights():
    means = np.arange(400.0)[:, None]
    weights = np.where(np.arange(400) < 10, 0.5 / 10, 0.5 / 390)[:, None]
    thin = Mixture(means, np.ones_like(means), np.log(weights)).thinned()
    assert thin.log_weights is None and np.mean(thin.means < 10) == pytest.approx(0.5, abs=1 / MOST)


@pytest.mark.parametrize("make", [bs.EvidenceRegressor, bs.RVMRegressor, bs.GPRegressor])
def test_the_whole_distribution_of_ours_is_the_one_they_score(make, rng):
    X = rng.normal(size=(40, 2))
    model = make().fit(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=40))
    rows, y = rng.normal(size=(7, 2)), rng.normal(size=7)
    there = mixture(model.predictive(rows))
    np.testing.assert_allclose(there.log_density(y), model.log_predictive_density(rows, y), atol=1e-5)
    np.testing.assert_allclose(there.mean(), model.predict(rows), atol=1e-8)


# --- methods ----------------------------------------------------------------------------------------------------------


def job(rng, n=30, tests=20):
    X = rng.normal(size=(n + tests, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=len(X))
    return {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:], "seed": 1}


def test_points_get_the_deviation_of_residuals_in_folds(rng):
    from sklearn.base import clone
    from sklearn.model_selection import KFold

    one = job(rng)
    there = peers.PEERS["SVR"].fit(one["X"], one["y"], 3)(one["X_test"])
    model, residuals = peers.support_vectors(3), []
    for train, test in KFold(5, shuffle=True, random_state=3).split(one["X"]):
        residuals += list(one["y"][test] - clone(model).fit(one["X"][train], one["y"][train]).predict(one["X"][test]))
    np.testing.assert_allclose(there.stds, np.sqrt(np.mean(np.square(residuals))), rtol=1e-12)
    np.testing.assert_allclose(there.means[0], clone(model).fit(one["X"], one["y"]).predict(one["X_test"]))


def test_what_goes_wrong_in_a_fit_is_an_outcome_and_warnings_are_kept(rng):
    import warnings

    def loud(X, y, seed):
        warnings.warn("hm", RuntimeWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return peers.constant(X, y, seed)

    def lost(X, y, seed):
        raise ZeroDivisionError("nought")

    found = worker.done(peers.Entrant((), loud), job(rng))
    assert found["notes"] == ["RuntimeWarning: hm"] and not found["error"] and len(found["crps"]) == 20
    assert worker.done(peers.Entrant((), lost), job(rng))["error"].startswith("ZeroDivisionError: nought in lost")
    infinite = peers.Entrant((), lambda X, y, s: lambda rows: Mixture.normal(np.full(len(rows), np.inf), 1.0))
    assert "not all finite" in worker.done(infinite, job(rng))["error"]


def test_a_package_that_is_missing_is_named():
    assert worker.missing(peers.Entrant(("numpy", "no_such_package"), peers.constant)) == "no_such_package"
    assert worker.missing(peers.PEERS[RIDGE]) == ""


# --- sets -------------------------------------------------------------------------------------------------------------


def dataset(rng, n, name="line", wide=2):
    X = rng.normal(size=(n, wide))
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(wide)])
    return Dataset(name, frame.assign(y=X[:, 0] + 0.5 * rng.normal(size=n)))


@pytest.mark.parametrize(
    ("n", "size", "design", "splits", "cases", "apart"),
    [
        (8192, 64, "hierarchical", 8, 500, True),
        (4177, 256, "hierarchical", 5, 500, True),
        (1503, 64, "two-way", 8, 500, True),
        (1599, 256, "two-way", 5, 319, True),
        (506, 64, "two-way", 5, 300, False),
    ],
)
def test_training_sets_are_apart_where_rows_allow(rng, n, size, design, splits, cases, apart):
    task = sets.divided(dataset(rng, n), size)
    assert (task.design, len(task), task.n_cases) == (design, splits, cases)
    assert all(len(set(rows)) == size for rows in task.train) and not set(task.train.ravel()) & set(task.test.ravel())
    assert (len(set(task.train.ravel())) == task.train.size) == apart
    assert design == "two-way" or len(set(task.test.ravel())) == task.test.size


def test_sets_of_too_few_rows_are_left_out(rng):
    assert sets.divided(dataset(rng, 506), 256) is None
    assert [task.name for task in sets.tasks(("line",), (64, 256), lambda name: dataset(rng, 700))] == [
        "line 64",
        "line 256",
    ]


# --- the race ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """A folder of data with one small set, and no interpreter of peers."""
    (tmp_path / "data" / "delve").mkdir(parents=True)
    table = dataset(rng, 506, wide=3).table.rename(columns={"y": "MEDV"})
    with gzip.open(tmp_path / "data" / "delve" / "boston.csv.gz", "wt") as file:
        table.to_csv(file, index=False)
    monkeypatch.setenv("BENCHMARK_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PEERS_PYTHON", raising=False)
    sets.read.cache_clear()
    yield tmp_path
    sets.read.cache_clear()


def arguments(folder, *more):
    return ["--store", str(folder / "store"), "--sizes", "64", "--methods", RIDGE, *more]


def lines(printed):
    return [line for line in printed.splitlines() if " left  " in line]


def test_a_race_that_was_killed_goes_on_where_it_was(folder, capsys):
    command = [sys.executable, "-m", "benchmarks.field", *arguments(folder)]
    running = subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True)
    first = [running.stdout.readline() for _ in range(3)]
    os.kill(running.pid, signal.SIGKILL)
    rest = running.communicate()[0]
    before = race.read(folder / "store")
    assert len(lines("".join(first))) == 3 <= len(before) < 10 and running.returncode == -signal.SIGKILL
    assert "# " not in rest

    assert main(arguments(folder, "--page", str(folder / "page.md"), "--records", str(folder))) == 0
    printed = capsys.readouterr().out
    assert len(lines(printed)) == 10 - len(before)
    after = race.read(folder / "store")
    assert {one.unit for one in after} == {
        race.Unit(m, "boston 64", k, after[0].unit.hash) for m in (CONSTANT, RIDGE) for k in range(5)
    }
    kept = {one.unit: one.crps.tobytes() for one in after}
    assert all(kept[one.unit] == one.crps.tobytes() for one in before) and not any(one.error for one in after)
    text = (folder / "page.md").read_text()
    assert "| BayesianRidge | 1.0 | 1.0 | 1.0 |" in text and (folder / "field.json").exists()

    # nothing is left: nothing runs
    assert main(arguments(folder)) == 0 and not lines(capsys.readouterr().out)


def test_a_fit_over_its_seconds_is_ended_and_not_tried_again(folder, monkeypatch):
    (task,) = sets.tasks(("boston",), (64,))
    monkeypatch.setitem(race.EVERYONE, "endless", peers.Entrant((), peers.constant))
    asked = []

    def slow(process, unit, task, limit):
        asked.append(unit)
        return race.Outcome(unit, error=race.OVER if unit.method == "endless" else "", seconds=limit)

    monkeypatch.setattr(race, "_asked", slow)
    store = race.opened(folder / "store")
    try:
        assert race.run([task], ["endless", RIDGE], store, 5) == 0
    finally:
        store.close()
    assert [unit.method for unit in asked].count("endless") == 1 and len(asked) == 6


def test_the_operating_system_ends_a_process_that_takes_too_long(folder, rng):
    with race.Process(sys.executable) as process:
        X, y = rng.normal(size=(2000, 30)), rng.normal(size=2000)
        began = time.monotonic()
        question = {"method": "scikit-learn GP", "X": X, "y": y, "X_test": X, "y_test": y, "seed": 0, "limit": 0.0}
        assert process.ask(question) == -signal.SIGXCPU
        assert time.monotonic() - began < 30.0
        # the next one is asked of a new process
        assert process.ask({"who": [RIDGE]}) == {RIDGE: ""}


def test_processes_that_a_method_started_end_with_its_own(tmp_path):
    # a stand-in for an interpreter: it leaves another process behind, as some samplers do
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child\nexit 3\n")
    stand_in.chmod(0o755)
    with race.Process(str(stand_in)) as process:
        began = time.monotonic()
        assert process.ask({"who": []}) == 3 and time.monotonic() - began < 30.0
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        if not (Path("/proc") / str(child)).exists() or "Z" in (Path("/proc") / str(child) / "stat").read_text():
            break
        time.sleep(0.02)
    else:
        pytest.fail("the child goes on")


def test_who_is_over_the_limit_is_left_out_of_larger_sets():
    def over(name, size, method="slow"):
        return race.Outcome(race.Unit(method, f"{name} {size}", 0, ""), error=race.OVER)

    asked = race.stopped([over("a", 256)])
    assert asked(race.Unit("slow", "a 256", 1, "")) and asked(race.Unit("slow", "a 1024", 0, ""))
    assert not asked(race.Unit("slow", "a 64", 1, "")) and not asked(race.Unit("slow", "b 256", 0, ""))
    asked = race.stopped([over("a", 64), over("b", 256)])
    assert asked(race.Unit("slow", "c 256", 0, "")) and not asked(race.Unit("slow", "c 64", 0, ""))
    assert not asked(race.Unit("fast", "a 1024", 0, ""))


def test_results_of_other_sources_count_unless_they_must_be_fresh():
    ours = race.Outcome(race.Unit(next(iter(OURS)), "a 64", 0, ""), revision="old")
    peer = race.Outcome(race.Unit(RIDGE, "a 64", 0, ""))
    assert race.is_done(ours, None) and race.is_done(ours, "old") and not race.is_done(ours, "new")
    assert race.is_done(peer, "new") and not race.is_done(None, None)


def test_a_fresh_page_is_of_these_sources_alone(folder, capsys):
    (task,) = sets.tasks(("boston",), (64,))
    store = race.opened(folder / "store")
    try:
        for name in (CONSTANT, "EvidenceRegressor", "GPRegressor"):
            revision = {"EvidenceRegressor": race.revision(), "GPRegressor": "earlier"}.get(name, "")
            scores = {one: np.ones(300) for one in ("residual", "std", "log_density", "crps", "cdf")}
            outcome = race.Outcome(race.Unit(name, task.name, 0, task.hash), revision=revision, seconds=1.0, **scores)
            store.put(outcome.unit.key, outcome)
    finally:
        store.close()
    assert main(arguments(folder, "--show", "--fresh")) == 0
    fresh = capsys.readouterr().out
    assert "| **EvidenceRegressor** |" in fresh and "GPRegressor" not in fresh
    assert main(arguments(folder, "--show")) == 0 and "GPRegressor" in capsys.readouterr().out


def test_an_outcome_comes_back_from_the_store_as_it_was(rng):
    outcome = race.Outcome(race.Unit("m", "a 64", 2, "h"), status="CONVERGED", notes=["n"], crps=np.arange(3.0))
    back = race.unpacked(race.packed(outcome))
    assert back.unit == outcome.unit and back.notes == ["n"] and back.crps.tolist() == [0.0, 1.0, 2.0]


def test_jobs_go_through_a_pipe(rng):
    question = {"method": CONSTANT, **job(rng), "limit": 30.0}
    with race.Process(sys.executable) as process:
        found = process.ask(question)
    y = question["y_test"]
    expected = norm.logpdf(y, question["y"].mean(), question["y"].std(ddof=1))
    np.testing.assert_allclose(found["log_density"], expected, rtol=1e-12)
    assert pickle.loads(pickle.dumps(found))["error"] == ""


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def field(rng):
    """Three sets, four splits; "GPRegressor" is a nat worse than the constant on the last set, and says nothing."""
    tasks, outcomes = [], []
    for k, name in enumerate("abc"):
        task = replace(dataset(rng, 4000, name).prototask(), n_training=256).task(64, 4, 300)
        tasks.append(task)
        for split in range(4):
            for method, shift in ((CONSTANT, 0.0), (RIDGE, 0.5), ("GPRegressor", -1.0 if k == 2 else 1.0 + k)):
                cdf = np.full(300, 0.5) if method == RIDGE else (np.arange(300) + 0.5) / 300
                log = -1.0 + shift + (0.1 * rng.normal(size=300) if shift else 0.0)
                outcomes.append(
                    race.Outcome(
                        race.Unit(method, task.name, split, task.hash),
                        residual=np.full(300, 1.0 - 0.1 * shift),
                        log_density=np.full(300, log),
                        crps=np.full(300, 1.0 - 0.1 * shift),
                        std=np.ones(300),
                        cdf=cdf,
                        seconds=1.0,
                    )
                )
    return Field.of(tasks, outcomes, 4)


def test_ranks_are_averaged_over_sets(field):
    ranks, count = field.ranks("log", 64)
    assert count == 3 and ranks == {"GPRegressor": pytest.approx(5 / 3), RIDGE: pytest.approx(5 / 3), CONSTANT: 8 / 3}
    assert best(ranks, lambda name: name != "GPRegressor") == RIDGE


def test_a_set_is_judged_by_its_design_and_sets_by_a_t_test(field):
    mine, theirs = (np.array([field.losses("log", m, "a 64", k) for k in range(4)]) for m in ("GPRegressor", RIDGE))
    found, expected = field.compare("GPRegressor", RIDGE, "log", "a 64"), hierarchical(mine, theirs)
    assert (found.mean, found.error, found.p_value) == (expected.mean, expected.std_error, expected.p_value)
    over = field.over_sets("GPRegressor", RIDGE, "log", 64)
    means = [
        np.mean([(field.losses("log", "GPRegressor", f"{n} 64", k) - field.losses("log", RIDGE, f"{n} 64", k)).mean()
                 for k in range(4)])
        for n in "abc"
    ]  # fmt: skip
    assert over.mean == pytest.approx(np.mean(means)) and over.p_value == pytest.approx(ttest_1samp(means, 0).pvalue)
    assert over.error == pytest.approx(np.std(means, ddof=1) / np.sqrt(3))
    assert list(field.worse_than("GPRegressor", RIDGE, "log", 64)) == ["c 64"]


def test_what_the_error_allows_is_not_worse(field):
    for k in range(4):
        ridge = field.outcomes[RIDGE, "b 64", k]
        field.outcomes["GPRegressor", "b 64", k].log_density[:] = ridge.log_density + (0.5 if k % 2 else -0.52)
    found = field.compare("GPRegressor", RIDGE, "log", "b 64")
    assert found.mean == pytest.approx(0.01) and found.error > 0.2
    assert list(field.worse_than("GPRegressor", RIDGE, "log", 64)) == ["c 64"]


def test_coverage_is_the_share_of_rows_in_central_intervals(field):
    assert field.coverage("GPRegressor", ["a 64"], 0.9) == pytest.approx(0.9, abs=1 / 300)
    assert field.uncovered("GPRegressor", 64) == {} and set(field.uncovered(RIDGE, 64).values()) == {1.0}


def test_fits_below_the_constant_are_found_and_whether_they_warned(field):
    bad = field.worse_than_constant("GPRegressor", 64)
    assert {one.task for one in bad} == {"c 64"} and len(bad) == 4 and not any(one.warned for one in bad)
    assert all(one.nats == pytest.approx(-1.0, abs=0.05) for one in bad)
    assert field.worse_than_constant(RIDGE, 64, 0.0) == []
    # a little below is worse only for who asks for any
    field.outcomes[RIDGE, "a 64", 0].log_density[:] = field.outcomes[CONSTANT, "a 64", 0].log_density - 0.03
    assert not field.worse_than_constant(RIDGE, 64) and len(field.worse_than_constant(RIDGE, 64, 0.0)) == 1


def test_one_impossible_row_does_not_decide_everything(field):
    one = field.outcomes["GPRegressor", "a 64", 0]
    one.log_density[0] = -np.inf
    assert np.isfinite(field.losses("log", "GPRegressor", "a 64", 0)).all()


def test_results_of_other_divisions_do_not_count(field):
    other = [replace(one, unit=replace(one.unit, hash="other")) for one in field.outcomes.values()]
    assert not Field.of(field.tasks.values(), other, 4).outcomes
    assert len(Field.of(field.tasks.values(), field.outcomes.values(), 2).outcomes) == 18


def test_the_page_says_what_the_race_found(field):
    found = page.reported(field, {"TabPFN": "tabpfn"})
    text = page.text(found, field)
    assert "| **GPRegressor** | 1.7 |" in text and "| TabPFN | tabpfn is missing |" in text
    assert "c -1." in text and "(×4) silent" in text and "At most 4 splits" in text
    missed = [one.label for one in found.verdicts if not one.met]
    assert missed == [
        "64 rows: one of ours worse than BayesianRidge on a set, squared, of 3 pairs",
        "64 rows: one of ours worse than BayesianRidge on a set, log, of 3 pairs",
        "64 rows: fits of ours below the constant",
        "64 rows: of these without a warning",
    ]
    assert "SILENT" in page.troubles(field) and "> ridge     c 64: log" in page.troubles(field)


def test_a_single_split_is_no_verdict(field):
    one = Field.of(field.tasks.values(), field.outcomes.values(), 1)
    assert page.decided(one, "GPRegressor", RIDGE, "log", 64) == (0, 0, 0)
    assert not any("worse than BayesianRidge" in verdict.label for verdict in page.verdicts(one, [64]))
    (row,) = page.below(one, 64)
    assert row["worse than BayesianRidge, log"] == "–" and row["coverage of 90 %"] == "none"
    assert page.decided(field, "GPRegressor", RIDGE, "log", 64)[2] == 3


def test_squared_errors_are_compared_by_their_ratio(field):
    found = field.over_sets("GPRegressor", RIDGE, "squared", 64)
    ratios = [np.log((1.0 - 0.1 * shift) ** 2 / 0.95**2) for shift in (1.0, 2.0, -1.0)]
    assert found.mean == pytest.approx(np.mean(ratios)) and found.p_value == pytest.approx(
        ttest_1samp(ratios, 0).pvalue
    )
    assert f"{np.exp(np.mean(ratios)):.2f} ± " in page.compared(field, "GPRegressor", RIDGE, "squared", 64)


def test_wild_predictions_are_listed(field):
    assert not field.wild("GPRegressor", 64)
    field.outcomes["GPRegressor", "a 64", 0].residual[3] = 1e3
    assert [one.unit.task for one in field.wild("GPRegressor", 64)] == ["a 64"]
    assert "wild        a 64, split 0" in page.troubles(field)


def test_a_rehearsal_runs(monkeypatch):
    monkeypatch.delenv("PEERS_PYTHON", raising=False)
    found = load("field").run(True, lambda *unused: None)
    ranks = {row["method"]: row["rank, log"] for row in found.tables[0][1]}
    assert ranks == {RIDGE: "1.0", CONSTANT: "2.0"}


def test_unknown_methods_and_missing_data_are_said(folder, monkeypatch):
    with pytest.raises(SystemExit, match="there is no method 'oracle'"):
        main(arguments(folder, "--methods", "oracle"))
    with pytest.raises(ValueError, match="there is no set 'moon'"):
        main(arguments(folder, "--sets", "moon"))
    monkeypatch.delenv("BENCHMARK_DATA")
    with pytest.raises(SystemExit, match="BENCHMARK_DATA"):
        main(arguments(folder))
