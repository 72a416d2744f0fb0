"""Predictions on DELVE's kin and pumadyn families: gp-map and gp-mc beside linear regression and scikit-learn's GP."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import bayessel as bs
from benchmarks.delve_cases import Guess, Split, Task, losses, there
from benchmarks.harness import Case, Contestant, Report, Verdict

TITLE = "What Gaussian processes predict (DELVE)"
TEXT = """DELVE's tasks as in Rasmussen (1996, ch. 5): robot arms whose end point's distance is predicted from joint
angles (kin) and accelerations of a Puma arm (pumadyn), 8 or 32 inputs, fairly linear (f) or not (n), with medium (m) or
high (h) noise. Training sets are consecutive rows of the first 4096, test sets (512 cases, 1024 for n = 1024) of the
others. Losses are standardised: squared and absolute errors over those of the best constant (1 is useless), minus log
density less that of the normal with the test targets' mean and variance (0 is useless); "+-" is the standard error over
training sets. `gp-map` and `gp-mc` are `bs.GPRegressor` as it comes; scikit-learn's GP has a constant, an ARD squared
exponential and white noise, on standardised inputs and targets, without restarts. Seconds, of processor, are for a fit
and its predictions, all else on this machine alike; they are no race. The data are not part of the project:
`BENCHMARK_DATA` names a folder with `delve/kin-8nm.csv.gz` and so on, the target last; without it only a generated set
runs (Friedman's first function, 8 inputs, 3 of no use)."""

FAMILIES = ("kin-8fh", "kin-8fm", "kin-8nm", "pumadyn-8fh", "pumadyn-8nh", "pumadyn-8nm", "pumadyn-32nm")
#: training cases and number of training sets
SIZES = {64: 8, 128: 8, 256: 4, 512: 2, 1024: 2}
#: gp-mc is for small sets; scikit-learn's GP takes minutes beyond
MOST_ROWS = {"gp-mc": 256, "scikit-learn GP": 512}
#: inputs that the acceleration of pumadyn-32nm hangs on most
RELEVANT = {"theta4", "theta5", "tau4"}


def linear(split: Split) -> Guess:
    """Least squares, with the predictive normal of known noise (lin-1 of the thesis has a Student t)."""
    from sklearn.linear_model import LinearRegression

    fit = LinearRegression().fit(split.X, split.y)
    n, p = len(split.y), split.X.shape[1] + 1
    variance = np.sum((split.y - fit.predict(split.X)) ** 2) / max(n - p, 1)
    return normal(fit.predict(split.X_test), np.full(len(split.y_test), variance), split.y_test)


def scikit_learn(split: Split) -> Guess:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    m = split.X.shape[1]
    kernel = ConstantKernel() * RBF(np.full(m, np.sqrt(m)), (1e-2, 1e4)) + WhiteKernel(0.1)
    model = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True))
    mean, std = model.fit(split.X, split.y).predict(split.X_test, return_std=True)
    return normal(mean, std**2, split.y_test)


def gaussian_process(split: Split, inference: str) -> Guess:
    model = bs.GPRegressor(inference=inference, random_state=0, cores=1, progressbar=False).fit(split.X, split.y)
    mean, median = model.predict(split.X_test), model.predict_median(split.X_test)
    order = np.argsort(model.relevance_["length"].to_numpy() / split.X.std(axis=0))
    return Guess(
        mean, median, model.log_predictive_density(split.X_test, split.y_test), [split.names[i] for i in order]
    )


def normal(mean: Any, variance: Any, y: Any) -> Guess:
    return Guess(mean, mean, -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance))


METHODS: dict[str, Callable[[Split], Guess]] = {
    "gp-mc": lambda split: gaussian_process(split, "mc"),
    "gp-map": lambda split: gaussian_process(split, "map"),
    "scikit-learn GP": scikit_learn,
    "linear regression": linear,
}


def tasks(quick: bool) -> list[tuple[Task, int]]:
    """Tasks, and how many training sets of each."""
    if quick:
        return [(Task("friedman", 64), 2)]
    families = [family for family in FAMILIES if there(family)] or ["friedman"]
    return [(Task(family, n), count) for family in families for n, count in SIZES.items()]


def cases(quick: bool) -> list[Case]:
    """The tasks, for the list; nobody is timed against anybody."""
    return [
        Case(t.name, lambda: None, [Contestant(m, "ours", lambda data: None) for m in METHODS]) for t, _ in tasks(quick)
    ]


def play(task: Task, count: int, methods: Sequence[str] = tuple(METHODS)) -> dict[str, dict[str, Any]]:
    """Losses (training sets, 3), seconds and order of inputs, by method."""
    found: dict[str, dict[str, Any]] = {}
    for split in task.splits(count):
        for name in methods:
            if task.n > MOST_ROWS.get(name, task.n):
                continue
            one = found.setdefault(name, {"losses": [], "seconds": [], "order": []})
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # statuses and lower bounds of scikit-learn's; the losses tell
                guess = METHODS[name](split)
            one["seconds"].append(time.process_time() - start)
            one["losses"].append(losses(guess, split.y_test))
            one["order"].append(guess.extra)
    for one in found.values():
        one["losses"] = np.array(one["losses"])
    print(f"    {task.name}: " + ", ".join(f"{k} {v['losses'][:, 0].mean():.3f}" for k, v in found.items()), flush=True)
    return found


def rows(task: Task, found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    table = []
    for name, one in found.items():
        mean, count = one["losses"].mean(axis=0), len(one["losses"])
        error = one["losses"].std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.full(3, np.nan)
        row: dict[str, Any] = {"task": task.family, "n": task.n, "method": name, "training sets": count}
        for loss, value, spread in zip(("squared", "absolute", "log"), mean, error, strict=True):
            row |= {loss: f"{value:.3f} +- {spread:.3f}" if count > 1 else f"{value:.3f}"}
        table.append(row | {"seconds": float(np.mean(one["seconds"]))})
    return table


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report(tables=[("", [])])
    everything: dict[Task, dict[str, dict[str, Any]]] = {}
    for task, count in tasks(quick):
        everything[task] = play(task, count)
        report.tables[0][1].extend(rows(task, everything[task]))
    report.verdicts = verdicts(everything)
    return report


def verdicts(everything: dict[Task, dict[str, dict[str, Any]]]) -> list[Verdict]:
    """gp-mc against gp-map on small sets, in standard errors of the paired difference; relevance on pumadyn-32nm."""
    found = []
    small = [one for task, one in everything.items() if task.n <= 128 and "gp-mc" in one]
    if small:
        apart = np.concatenate([one["gp-mc"]["losses"] - one["gp-map"]["losses"] for one in small])
        for i, loss in enumerate(("squared", "absolute", "log")):
            d = apart[:, i]
            error = d.std(ddof=1) / np.sqrt(len(d))
            label = f"{loss} loss of gp-mc less that of gp-map, n up to 128 ({d.mean():.4f}), in standard errors"
            found.append(Verdict(label, float(d.mean() / error), 2.0))
    for task, one in everything.items():
        if task.family == "pumadyn-32nm" and task.n == 512:
            seen = min(len(RELEVANT & set(order[:4])) for order in one["gp-map"]["order"])
            label = "theta4, theta5, tau4 among the 4 shortest lengths of 32 (tau3 is the other), pumadyn-32nm, 512"
            found.append(Verdict(label, seen, 3, ">="))
        if task.family == "pumadyn-32nm" and task.n == 1024:
            worst = float(one["gp-map"]["losses"][:, 0].max())
            found.append(Verdict("largest squared loss of gp-map, pumadyn-32nm, 1024", worst, 0.10))
    return found
