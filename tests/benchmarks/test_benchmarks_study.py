"""The full study's arithmetic: what becomes of claims that hold, that do not, and that cannot be told; a rehearsal."""

import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from bayessel.diagnostics import delve
from benchmarks import study_methods
from benchmarks.__main__ import main
from benchmarks.study_claims import CLAIMS, Claim, judged
from benchmarks.workloads import delve_study


class Off(RegressorMixin, BaseEstimator):
    """The sum of the inputs, which is the truth, and an error that is the same on every set."""

    def __init__(self, error=0.0):
        self.error = error

    def fit(self, X, y):
        return self

    def predict(self, X, return_std=False):
        mean = X.sum(axis=1) + self.error * np.sin(40.0 * X[:, 0])
        return (mean, np.full(len(mean), 1.0 + self.error)) if return_std else mean


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1400, 2))
    tasks = [
        delve.Task.from_arrays(
            X, X.sum(axis=1) + 0.5 * rng.normal(size=1400), size=size, instances=4, test_cases=100, name=name
        )
        for size in (64, 128)
        for name in "abc"
    ]
    # the names are those of the claims, the methods are not
    methods = {"gp-mc": Off(0.0), "lin-1": Off(0.6), "gp-map": Off(0.0), "knn-cv-1": Off(0.01)}
    return delve.run(methods, tasks, progressbar=False)


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        (Claim("", "gp-mc", "lin-1", (64, 128)), "reproduced"),
        (Claim("", "lin-1", "gp-mc", (64, 128)), "contradicted"),
        (Claim("", "gp-mc", "lin-1", (64, 128), "log"), "reproduced"),
        (Claim("", "gp-map", "gp-mc", (64,), close=1.05), "reproduced"),
        (Claim("", "lin-1", "gp-mc", (64,), close=1.05), "not reproduced"),
        (Claim("", "knn-cv-1", "gp-map", (64, 128)), "not told apart"),
    ],
)
def test_what_is_said_of_a_claim(study, claim, found):
    (row,) = judged(study, [claim])
    assert row["found"] == found and row["of"] == 3 * len(claim.sizes)
    if found == "contradicted":
        assert row["against"] == 6 and row["tasks for"] == 0


def test_what_is_told_is_the_geometric_mean(study):
    (row,) = judged(study, [Claim("", "gp-mc", "lin-1", (64,))])
    names = [f"{name} 64" for name in "abc"]
    ratios = [
        np.log(study.losses("squared", "lin-1", name).mean() / study.losses("squared", "gp-mc", name).mean())
        for name in names
    ]
    mean, error = np.mean(ratios), np.std(ratios, ddof=1) / np.sqrt(3)
    low, high = np.exp(mean - 2 * error), np.exp(mean + 2 * error)
    assert row["apart"] == f"{np.exp(mean):.2f} ({low:.2f} to {high:.2f})" and row["p"] < 0.05


def test_claims_of_methods_that_are_not_there_are_left_out(study):
    assert {(row["better"], row["worse"]) for row in judged(study)} == {
        (c.better, c.worse) for c in CLAIMS if {c.better, c.worse} <= set(study.methods) and c.sizes != (256,)
    }


def test_tables_are_of_what_there_is(study):
    rows = {row["method"]: row for row in delve_study.averages(study, "squared")}
    means = [study.losses("squared", "lin-1", f"{name} 64").mean() for name in "abc"]
    assert float(rows["lin-1"]["64 cases"]) == pytest.approx(np.exp(np.log(means).mean()), abs=5e-4)
    (row,) = [row for row in delve_study.winners(study) if row["beaten"] == "lin-1"]
    assert row["gp-mc"] == 6 and row["lin-1"] == 0
    assert len(delve_study.losses_of(study, "log")) == 6
    assert {row["method"] for row in delve_study.times(study)} == set(study.methods)


def test_widths_are_found_once_and_kept(rng, tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHMARK_PARTS", str(tmp_path))
    X = rng.uniform(-1, 1, (30, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=30)
    errors = {}
    for name, method in study_methods.selecting().items():
        fitted = method.fit(X, y)
        errors[name] = np.mean((fitted.predict(X) - y) ** 2) / y.var()
        assert 0 < fitted.n_basis_ <= 30
    assert max(errors.values()) < 0.5 and len(list(tmp_path.iterdir())) == 1
    mean, std = study_methods.OnCommonWidths("sffs").fit(X, y).predict(X, return_std=True)
    assert mean.shape == std.shape == (30,) and 0.03 < std.mean() < 0.5


def test_ensembles_use_their_time(rng):
    X = rng.normal(size=(40, 3))
    few = study_methods.StoppedEarly(0.0, random_state=1).fit(X, X[:, 0])
    more = study_methods.StoppedEarly(1.0, random_state=1).fit(X, X[:, 0])
    assert len(few.networks_) == 3 < len(more.networks_)
    assert np.mean((more.predict(X) - X[:, 0]) ** 2) < 0.3


def test_the_rehearsal_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHMARK_DATA", raising=False)
    where = ["--out", str(tmp_path)]
    assert main(["--only", "delve_study", "--quick", "--threads", "1", *where]) == 0
    said = json.loads((tmp_path / "delve_study.quick.json").read_text())
    assert {row["method"] for row in said["tables"][0]["rows"]} >= {"lin-1", "gp-map", "mars-bag"}
