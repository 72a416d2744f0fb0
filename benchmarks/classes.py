"""Classifiers on real sets with published splits: error, log loss, Brier score, functions, seconds.

    python -m benchmarks.classes [--sets ripley banana ...] [--partitions 20] [--entrants rvm svc ...] [--file FILE]

The data are those of the folder that BENCHMARK_DATA names. Every fit is a line of a JSON file, and those there are not
made again. Prints a table of means over partitions, with the standard error of the error.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import bayessel as bs

#: sets of Rätsch's collection, and those of Ripley
RAETSCH = ("titanic", "banana", "breast_cancer", "diabetis", "flare_solar", "german", "image", "waveform")
RIPLEY = {"ripley": "synth", "pima": "pima"}
SETS = (*RIPLEY, *RAETSCH)
FILE = Path(".cache/classes.jsonl")


def _svc() -> Any:
    """Support vectors with probabilities by Platt's method, C and width by five folds."""
    grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": 10.0 ** np.arange(-3.0, 1.01, 0.5)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = SVC(probability=True, random_state=0)
    return make_pipeline(StandardScaler(), GridSearchCV(machine, grid, cv=5))


def _process() -> Any:
    kernel = ConstantKernel(1.0) * RBF(1.0)
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=0))


#: name -> an estimator; one more is one more line
ENTRANTS: dict[str, Callable[[], Any]] = {
    "gp": bs.GPClassifier,
    "evidence": bs.EvidenceClassifier,
    "rvm": bs.RVMClassifier,
    "rvm-type2": lambda: bs.RVMClassifier(inference="type2"),
    "loomi": bs.LOOMIClassifier,
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegressionCV(cv=5)),
    "svc": _svc,
    "process": _process,
}


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to fit and rows to predict, with labels 0 and 1."""

    X: np.ndarray
    y: np.ndarray
    new: np.ndarray
    labels: np.ndarray


def folder() -> Path:
    """Where the data are."""
    named = os.environ.get("BENCHMARK_DATA")
    if not named or not Path(named).is_dir():
        raise SystemExit("BENCHMARK_DATA must name the folder of the data")
    return Path(named)


def splits(name: str, count: int) -> Iterator[tuple[int, Split]]:
    """The first so many partitions of a set; the sets of Ripley have one."""
    if name in RIPLEY:
        train, test = (pd.read_csv(folder() / "ripley" / f"{RIPLEY[name]}_{part}.csv.gz") for part in ("tr", "te"))
        X, new = (table.iloc[:, :-1].to_numpy(dtype=float) for table in (train, test))
        y, labels = (table.iloc[:, -1].isin([1, "Yes"]).to_numpy(dtype=int) for table in (train, test))
        yield 0, Split(X, y, new, labels)
        return
    data = np.load(folder() / "raetsch" / f"{name}.npz")
    x, t = data["x"], (data["t"] > 0).astype(int)
    for k, rows in enumerate(data["train"][:count]):
        rest = np.setdiff1d(np.arange(len(t)), rows)
        yield k, Split(x[rows], t[rows], x[rest], t[rest])


def scores(p: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Error in per cent, log loss in nats a row, Brier score, of probabilities of the label 1."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return {
        "error": float(100.0 * np.mean((p > 0.5) != labels)),
        "log loss": float(-np.mean(np.where(labels == 1, np.log(p), np.log1p(-p)))),
        "Brier": float(np.mean((p - labels) ** 2)),
    }


def raced(name: str, split: Split) -> dict[str, Any]:
    """One fit and what it is worth."""
    model = ENTRANTS[name]()
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.X, split.y)
        seconds = time.process_time() - begun
        p = model.predict_proba(split.new)[:, 1]
    functions = getattr(model, "n_basis_", None)
    status = getattr(model, "status_", None)
    said = {"functions": functions, "status": None if status is None else status.name}
    return {**scores(p, split.labels), "seconds": seconds, **said}


def table(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Means over the partitions, one row per set and entrant, with p-values of the log loss beside the first entrant.

    The paired t-test takes partitions as independent; they share rows, so p-values are rather too small.
    """
    frame = pd.DataFrame(records)
    grouped = frame.groupby(["set", "entrant"], sort=False)
    found = grouped[["error", "log loss", "Brier", "functions", "seconds"]].mean()
    found.insert(1, "±", grouped["error"].std() / np.sqrt(grouped["error"].count()))
    losses = frame.pivot(index=["set", "partition"], columns="entrant", values="log loss")
    first = losses[frame["entrant"].iloc[0]]
    p = [paired(first.loc[name], losses[entrant].loc[name]) for name, entrant in found.index]
    return found.assign(fits=grouped["error"].count(), p=p)


def paired(one: pd.Series, other: pd.Series) -> float:
    """P-value of equal means; NaN where there are too few pairs or no difference."""
    d = (other - one).dropna()
    if len(d) < 3 or not d.std() > 0.0:
        return float("nan")
    return float(stats.ttest_1samp(d, 0.0).pvalue)


def main(arguments: list[str] | None = None) -> int:
    """Run what is not there yet, and print everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--entrants", nargs="+", choices=list(ENTRANTS), default=list(ENTRANTS))
    parser.add_argument("--file", type=Path, default=FILE)
    asked = parser.parse_args(arguments)
    asked.file.parent.mkdir(parents=True, exist_ok=True)
    lines = asked.file.read_text().splitlines() if asked.file.exists() else []
    known = {(one["set"], one["partition"], one["entrant"]): one for one in map(json.loads, lines)}
    wanted = []
    for name in asked.sets:
        for k, split in splits(name, asked.partitions):
            for entrant in asked.entrants:
                key = (name, k, entrant)
                if key not in known:
                    known[key] = {"set": name, "partition": k, "entrant": entrant, **raced(entrant, split)}
                    with asked.file.open("a") as file:
                        file.write(json.dumps(known[key]) + "\n")
                wanted.append(known[key])
    print(table(wanted).round(4).to_string())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
