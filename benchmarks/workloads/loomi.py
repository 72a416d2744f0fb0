"""Small classifiers by leave-one-out mutual information on Rätsch's and Ripley's sets, beside an SVM."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import bayessel as bs
from bayessel.estimators.loomi import WITHIN, width_grid
from benchmarks.harness import Report, Verdict
from benchmarks.search_fits import kept

TITLE = "Classifiers by leave-one-out mutual information"
TEXT = """Test error, functions, Brier score and expected calibration error (ten bins) over the partitions in the files
`BENCHMARK_DATA`/raetsch (x, t, train: rows of each partition; the rest is for testing), beside the numbers of Hong et
al. (2014), who used 100 partitions, most of them others. "Common width" is the paper's way and the default settings
(patience 1): one width for all partitions of a set, the one `width="auto"` would take if the leave-one-out errors of
the first five training sets were those of one (the paper chose "a satisfactory" one on the first; the machine's
settings come from the first five too). "Own width" is `width="auto"` on every partition, "patience 3" waits longer at
the common width. Banana and waveform have the paper's least sizes, 40 and 50. "z" is the difference from the published
mean error in standard errors of both; the machine's own z shows what other partitions alone can do. "originals": mean
error on the partitions of the published hundred that are among these (up to five). The support vector machine's C and
width are medians over the first five partitions of 5-fold cross-validation; its probabilities are Platt's, a sigmoid
fitted to outputs of 5-fold cross-validation, for every partition. A second table has what the paper leaves open: the
error at multiples of the common width and with the other rule for ties, z in brackets. The third, on all sets together,
is the reliability diagram in numbers: the frequency of the second class where its probability was in each tenth.
Seconds are of processor time, for training and testing on all partitions; the paper's are for 100, on a computer of
2006. Without the data a generated set takes their place, and the paper's numbers are left out. With BENCHMARK_PARTS, a
folder, a run that was broken off goes on with the set where it was."""
#: partitions on which settings are chosen
CHOOSING = 5
#: multiples of the common width in the second table
MULTIPLES = (0.5, 0.7, 1.0, 1.4, 2.0)


@dataclass(frozen=True)
class Paper:
    """Numbers of the paper's tables.

    Mean error and its standard deviation in per cent, size, seconds; error of the support vector machine quoted there;
    least size.
    """

    error: float
    sd: float
    size: float
    seconds: float
    machine: float
    machine_sd: float
    least: int = 1


SETS = {
    "breast_cancer": Paper(26.1, 4.7, 3.7, 7.88, 26.0, 4.7),
    "diabetis": Paper(23.7, 1.9, 3.7, 32.8, 23.5, 1.7),
    "german": Paper(24.7, 2.1, 4.9, 86.3, 23.6, 2.1),
    "flare_solar": Paper(33.8, 2.5, 3.9, 63.99, 32.4, 1.8),
    "titanic": Paper(22.7, 0.9, 3.3, 6.78, 22.4, 1.0),
    "banana": Paper(10.8, 0.6, 40.2, 130.52, 11.5, 0.7, 40),
    "waveform": Paper(10.5, 0.6, 50.1, 227.72, 9.9, 0.4, 50),
}
NOBODY = Paper(*(np.nan,) * 6)
COMMON, OWN, LONGER = (f"LOOMI, {way}" for way in ("common width", "own width", "patience 3"))
RIVAL = "SVC, Platt"


@dataclass
class Scores:
    """What one method has on every partition of a set."""

    error: list[float] = field(default_factory=list)
    size: list[float] = field(default_factory=list)
    brier: list[float] = field(default_factory=list)
    probability: list[Any] = field(default_factory=list)
    truth: list[Any] = field(default_factory=list)
    seconds: float = 0.0


def folder() -> Path | None:
    """Where the data are, if anywhere."""
    named = os.environ.get("BENCHMARK_DATA")
    return Path(named) if named and (Path(named) / "raetsch").is_dir() else None


def partitions(name: str) -> tuple[Any, Any, Any, Any]:
    """X, labels -1 and 1, rows for training of each partition, whether it is one of the published hundred."""
    at = folder()
    if at is not None:
        with np.load(at / "raetsch" / f"{name}.npz") as file:
            return file["x"].astype(float), file["t"].astype(float), file["train"], file["original"] > 0
    rng = np.random.default_rng(2014)
    X = rng.normal(size=(300, 2))
    t = np.where(X[:, 0] ** 2 + X[:, 1] + 0.7 * rng.normal(size=300) > 0.8, 1.0, -1.0)
    return X, t, np.array([rng.permutation(300)[:100] for _ in range(3)]), np.zeros(3, dtype=bool)


def calibration_error(probability: Any, truth: Any) -> float:
    """Mean distance of frequency and probability over ten bins, weighted by their rows."""
    bins = np.minimum((10 * probability).astype(int), 9)
    rows = [bins == k for k in range(10)]
    return float(sum(abs((truth[r] - probability[r]).sum()) for r in rows) / len(truth))


def judge(make: Callable[[], Any], size: Callable[[Any], float], parts: list[tuple[Any, ...]]) -> Scores:
    found = Scores()
    start = time.process_time()
    for X, y, X_test, y_test in parts:
        model = make().fit(X, y)
        p = model.predict_proba(X_test)[:, 1]
        found.error.append(100.0 * float(np.mean(model.predict(X_test) != y_test)))
        found.size.append(size(model))
        found.brier.append(float(brier_score_loss(y_test > 0, p)))
        found.probability.append(p)
        found.truth.append(y_test > 0)
    found.seconds = time.process_time() - start
    return found


def common_width(parts: list[tuple[Any, ...]], least: int) -> float:
    """The width that 'auto' would take if the leave-one-out errors of all these were those of one training set."""
    found = []
    for width in width_grid(parts[0][0]):
        fits = [bs.LOOMIClassifier(width=float(width), min_size=least).fit(X, y).fits_[0] for X, y, *_ in parts]
        squares = np.concatenate([(fit.target - fit.loo_output) ** 2 for fit in fits])
        found.append((float(width), squares, float(np.mean([fit.mutual_information for fit in fits]))))
    best = min((squares for _, squares, _ in found), key=np.mean)
    limit = best.mean() + WITHIN * best.std() / np.sqrt(len(best))
    return max((one for one in found if one[1].mean() <= limit), key=lambda one: one[2])[0]


def left_open(name: str, paper: Paper, width: float, parts: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Mean errors at other widths, with both rules for ties."""
    rows = []
    for ties in ("first", "loo-mse"):
        row: dict[str, Any] = {"set": name, "ties": ties, "width": width}
        for multiple in MULTIPLES:
            wrong = []
            for X, y, X_test, y_test in parts:
                model = bs.LOOMIClassifier(width=multiple * width, min_size=paper.least, ties=ties).fit(X, y)
                wrong.append(100.0 * float(np.mean(model.predict(X_test) != y_test)))
            error, sd = float(np.mean(wrong)), float(np.std(wrong, ddof=1))
            row[f"{multiple:g} of it"] = f"{error:.2f} ({apart(error, sd, len(wrong), paper.error, paper.sd):.1f})"
        rows.append(row)
    return rows


def apart(error: float, sd: float, n: int, theirs: float, their_sd: float) -> float:
    """Difference of two means in standard errors of both; the published one is of 100 partitions."""
    return (error - theirs) / float(np.hypot(sd / n**0.5, their_sd / 10.0))


def one_set(name: str, paper: Paper, count: int | None) -> dict[str, Any]:
    """Table rows of everybody, their reliability, and what other choices would have given."""
    x, t, train, original = partitions(name)
    parts = []
    for rows in train[:count]:
        rest = np.setdiff1d(np.arange(len(t)), rows)
        parts.append((x[rows], t[rows], x[rest], t[rest]))
    width = common_width(parts[:CHOOSING], paper.least)
    spread = np.sqrt(x.shape[1]) * np.geomspace(0.25, 20.0, 10)
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": list(spread**-2.0)}
    found = [GridSearchCV(SVC(), grid, cv=5).fit(X, y).best_params_ for X, y, *_ in parts[:CHOOSING]]
    tuned = {key: float(np.exp(np.median([np.log(one[key]) for one in found]))) for key in grid}
    ways: dict[str, dict[str, Any]] = {
        COMMON: {"width": width},
        OWN: {"width": "auto"},
        LONGER: {"width": width, "patience": 3},
    }
    scores = {
        label: judge(
            lambda options=options: bs.LOOMIClassifier(min_size=paper.least, **options),  # type: ignore[misc]
            lambda model: model.n_basis_,
            parts,
        )
        for label, options in ways.items()
    }

    def platt() -> Any:
        return CalibratedClassifierCV(SVC(**tuned), method="sigmoid", cv=5, ensemble=False)

    scores[RIVAL] = judge(platt, lambda model: len(model.calibrated_classifiers_[0].estimator.support_), parts)
    # the machine itself predicts by its own sign, not by Platt's half
    plain = [np.mean(SVC(**tuned).fit(*part[:2]).predict(part[2]) != part[3]) for part in parts]
    scores[RIVAL].error = [100.0 * float(e) for e in plain]
    return {
        "rows": table_rows(name, paper, scores, original[:count]),
        "bins": {label: reliability(s) for label, s in scores.items()},
        "left open": [] if np.isnan(paper.error) else left_open(name, paper, width, parts),
    }


def table_rows(name: str, paper: Paper, scores: dict[str, Scores], original: Any) -> list[dict[str, Any]]:
    rows = []
    for label, s in scores.items():
        n = len(s.error)
        p, truth = np.concatenate(s.probability), np.concatenate(s.truth).astype(float)
        row: dict[str, Any] = {
            "set": name,
            "method": label,
            "error %": float(np.mean(s.error)),
            "sd": float(np.std(s.error, ddof=1)),
            "originals": float(np.mean(np.array(s.error)[original])) if original.any() else None,
            "functions": float(np.mean(s.size)),
            "Brier": float(np.mean(s.brier)),
            "calibration error": calibration_error(p, truth),
            "seconds": s.seconds,
        }
        if not np.isnan(paper.error):
            theirs, sd = (paper.machine, paper.machine_sd) if label == RIVAL else (paper.error, paper.sd)
            row |= {"published error %": theirs, "z": apart(row["error %"], row["sd"], n, theirs, sd)}
            if label == COMMON:
                row |= {"functions there": paper.size, "seconds there": paper.seconds}
        rows.append(row)
    return rows


def reliability(scores: Scores) -> list[list[float]]:
    """Rows, sum of the probabilities and number of the second class in each tenth of its probability."""
    p, truth = np.concatenate(scores.probability), np.concatenate(scores.truth)
    tenth = np.minimum((10 * p).astype(int), 9)
    return np.array([np.bincount(tenth, weights, 10) for weights in (np.ones(len(p)), p, truth)]).T.tolist()


def together(bins: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Share of the rows, mean probability and frequency of the second class in each tenth, all sets together."""
    rows: list[dict[str, Any]] = [{"probability": f"{k / 10:.1f} to {(k + 1) / 10:.1f}"} for k in range(10)]
    for label in (COMMON, OWN, RIVAL):
        total = np.sum([one[label] for one in bins], axis=0)
        for row, (n, p, positive) in zip(rows, total, strict=True):
            row[f"{label}: rows %"] = 100.0 * n / total[:, 0].sum()
            row[f"{label}: mean"] = p / n if n else None
            row[f"{label}: frequency"] = positive / n if n else None
    return rows


def ripley() -> list[dict[str, Any]]:
    """Ripley's synthetic data at the paper's width; empty where they are missing."""
    at = folder()
    if at is None or not (at / "ripley").is_dir():
        return []
    train, test = (
        np.genfromtxt(at / "ripley" / f"synth_{k}.csv.gz", delimiter=",", skip_header=1) for k in ("tr", "te")
    )
    rows = []
    for patience in (1, 3, 5):
        model = bs.LOOMIClassifier(width=bs.width(tau=0.06), patience=patience).fit(train[:, :2], train[:, 2])
        wrong = 100.0 * float(np.mean(model.predict(test[:, :2]) != test[:, 2]))
        rows.append({"patience": patience, "functions": model.n_basis_, "error %": wrong, "the paper": "4, 9.7 %"})
    return rows


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    real = folder() is not None
    names = (["titanic"] if quick else list(SETS)) if real else ["generated"]
    sets = []
    for name in names:
        paper, count = SETS.get(name, NOBODY), 3 if quick else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sets.append(kept(f"loomi_{name}_{count or 'all'}", partial(one_set, name, paper, count)))
        rows = {row["method"]: row for row in sets[-1]["rows"]}
        report.seconds[name] = {label: [row["seconds"]] for label, row in rows.items()}
        if real and not quick:
            report.verdicts.append(
                Verdict(f"{name}: error minus the paper's, in standard errors", rows[COMMON]["z"], 2.0)
            )
            if paper.least == 1:
                over = rows[COMMON]["functions"] - paper.size
                report.verdicts.append(Verdict(f"{name}: functions more than the paper's", over, 1.0))
    table = [row for one in sets for row in one["rows"]]
    report.tables.append(("", table))
    choices = [row for one in sets for row in one["left open"]]
    if choices:
        report.tables.append(("What the paper leaves open: error % (z)", choices))
    report.tables.append(("Reliability, all partitions of all sets", together([one["bins"] for one in sets])))
    found = ripley()
    if found:
        report.tables.append(("Ripley's synthetic data, tau = 0.06", found))
        report.verdicts.append(Verdict("Ripley, functions at patience 1", found[0]["functions"], 4))
        report.verdicts.append(Verdict("Ripley, error % at patience 1", found[0]["error %"], 9.7 + 1e-9))
    if real and not quick:
        brier = {(row["set"], row["method"]): row["Brier"] for row in table}
        for label in (COMMON, OWN):
            wins = sum(brier[name, label] < brier[name, RIVAL] for name in names)
            report.verdicts.append(
                Verdict(f"sets on which the Brier score of {label} is better than {RIVAL}'s", wins, 4, ">=")
            )
        seconds = sum(row["seconds"] for row in table if row["method"] == COMMON)
        theirs = sum(SETS[name].seconds for name in names)
        report.verdicts.append(
            Verdict("seconds for all sets over the paper's (half the partitions)", seconds / theirs, 1.0)
        )
    return report
