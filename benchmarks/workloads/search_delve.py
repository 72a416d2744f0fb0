"""Searches, the relevance vector machine and all functions on DELVE's tasks of 1024 cases, beside the paper."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

import bayessel as bs
from benchmarks.delve_cases import Split, Task, there
from benchmarks.harness import Report, Verdict
from benchmarks.peers import Array

TITLE = "Search for basis functions, DELVE"
TEXT = """DELVE's tasks of 1024 training cases, four training sets with 1024 test cases each, as in Barrio, Romero and
Belanche (2010): a gaussian at every training input, one width per input from the evidence of all of them (`abf`),
inputs in [-1, 1], targets without their mean. Functions and steps (added and removed) stand beside the paper's tables 4
and 6; "error" is the mean squared test error over the variance of the targets. The last table compares neighbours in
the paper's order by generalisation (table 7): the mean logarithm of the ratio of their errors over all training sets,
and the p-value of a paired t test. Data are looked for in the folder that BENCHMARK_DATA names; what is missing is left
out."""
FAMILIES = tuple(f"{name}-8{kind}" for name in ("pumadyn", "kin", "bank") for kind in ("fh", "fm", "nh", "nm"))
STRATEGIES = ("pta(1,0)", "pta(2,1)", "sffs", "oscil(5)")
#: the paper's table 4, families in the order above
SIZES = {
    "pta(1,0)": (39, 80, 59, 68, 48, 71, 120, 264, 204, 52, 86, 221),
    "pta(2,1)": (11, 59, 24, 34, 39, 46, 103, 203, 191, 35, 61, 142),
    "sffs": (2.5, 4.5, 8.5, 13, 10, 22, 76, 159, 123, 27, 42, 100),
    "oscil(5)": (39, 80, 59, 68, 48, 71, 120, 264, 204, 52, 86, 221),
    "rvm": (3.5, 6.5, 9.0, 13, 9.2, 24, 90, 185, 130, 32, 43, 115),
}
#: its table 6
STEPS = {
    "pta(1,0)": (56, 107, 79, 88, 65, 92, 155, 343, 244, 94, 126, 261),
    "pta(2,1)": (78, 238, 118, 148, 162, 183, 403, 791, 692, 225, 302, 545),
    "sffs": (132, 344, 190, 361, 330, 381, 2051, 5892, 4216, 874, 1528, 3334),
    "oscil(5)": (205, 308, 256, 250, 224, 311, 433, 738, 529, 228, 403, 552),
}
#: its table 7, best first
ORDER = ("abf", "oscil(5)", "pta(1,0)", "pta(2,1)", "rvm", "sffs", "ols")
FACTOR = 1.5


def fits(split: Split, widths_from: int | None = None) -> dict[str, tuple[float, float, float, float]]:
    """Functions, steps, error and seconds of everybody on one training set."""
    low, high = split.X.min(axis=0), split.X.max(axis=0)
    X, X_test = (2.0 * (x - low) / (high - low) - 1.0 for x in (split.X, split.X_test))
    mean, spread = split.y.mean(), split.y.std()
    t, t_test = (split.y - mean) / spread, (split.y_test - mean) / spread
    start = time.perf_counter()
    some = slice(0, widths_from)
    widths = bs.linear.fit_abf(X[some], t[some], n_starts=1, max_steps=100, centre=False).widths
    dictionary = bs.RBFDictionary(X, widths, bias=False)
    F, F_test = dictionary.design(X), dictionary.design(X_test)
    whole = bs.linear.fit_evidence(F, t)
    found: dict[str, tuple[float, float, float, float]] = {}

    def note(name: str, size: float, steps: float, prediction: Array, seconds: float) -> None:
        found[name] = (size, steps, float(np.mean((prediction - t_test) ** 2) / np.var(t_test)), seconds)

    note("abf", len(t), np.nan, whole.predict(F_test), time.perf_counter() - start)
    for name in STRATEGIES:
        fit = bs.linear.search(F, t, name)
        note(name, fit.n_basis, fit.n_added + fit.n_removed, fit.predict(F_test), fit.seconds)
    start = time.perf_counter()
    sparse = bs.linear.fit_rvm(F, t)
    note("rvm", sparse.n_basis, np.nan, sparse.predict(F_test), time.perf_counter() - start)
    start = time.perf_counter()
    chosen = bs.linear.forward_select(F, t, method="ols", stop="cv")
    note("ols", chosen.n_basis, np.nan, chosen.predict(F_test), time.perf_counter() - start)
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    rows: list[dict[str, Any]] = []
    errors: dict[str, list[float]] = {name: [] for name in ORDER}
    tasks = [Task("friedman", 64)] if quick else [Task(name, 1024) for name in FAMILIES if there(name)]
    for task in tasks:
        many = [fits(split) for split in task.splits(2 if quick else 4)]
        for name in many[0]:
            size, steps, error, seconds = np.mean([one[name] for one in many], axis=0)
            errors[name] += [one[name][2] for one in many]
            row = {"task": task.name, "method": name, "functions": float(size), "steps": float(steps)}
            row |= {"error": float(error), "seconds": float(seconds)}
            if task.family in FAMILIES and name in SIZES:
                place = FAMILIES.index(task.family)
                row["functions, paper"] = SIZES[name][place]
                if name in STEPS:
                    row["steps, paper"] = STEPS[name][place]
                if name in STRATEGIES:
                    ratio = max(row["functions"] / SIZES[name][place], SIZES[name][place] / row["functions"])
                    report.verdicts.append(
                        Verdict(f"functions against the paper's, factor, {task.name}, {name}", ratio, FACTOR)
                    )
            rows.append(row)
            print(f"    {row}", flush=True)
    report.tables.append(("", rows))
    pairs = []
    for better, worse in pairwise(ORDER):
        a, b = np.log(errors[better]), np.log(errors[worse])
        if len(a) > 1:
            p = float(ttest_rel(a, b).pvalue)
            pairs.append({"better": better, "worse": worse, "mean log ratio": float((b - a).mean()), "p": p})
    report.tables.append(("Neighbours in the paper's order; a positive ratio agrees with it.", pairs))
    return report
