"""Regression splines beside py-earth on Friedman's functions, and what bagging them gains on DELVE's tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from bayessel.baselines import BaggedMARSRegressor, MARSRegressor
from bayessel.baselines.engines.mars import fit_mars
from benchmarks.delve_cases import Split, Task, read, there
from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.mars_paper import REDUCTION, SIZES
from benchmarks.memory import ROOT
from benchmarks.peers import Array
from benchmarks.search_fits import kept

TITLE = "Multivariate adaptive regression splines"
TEXT = """Friedman's three functions (uniform inputs, a third of the standard deviation as noise), products of up to two
inputs, at most 20 functions, penalty 3, the paper's spans for everybody. "left" is the median, over data sets, of the
relative difference to py-earth of the residual sum of squares after three steps of the first pass (its grid of knots is
another one); "linear" lets py-earth take an input without a knot where its score prefers that, as it does by default.
"error" is the mean squared error of the pruned model over the variance of the function, "+-" the standard
error over data sets. The peer runs in a process of its own (an interpreter that has py-earth, or mars-earth, in the
environment variable `MARS_PYTHON`). The second table is Rasmussen's (1996) figure 5.2: per cent of the squared error
that bagging (50 samples, 15 functions, products of up to 8 inputs) takes off the same splines fitted once, beside the
thesis' number; training sets are disjoint, each with its own test set, but not those of the thesis (kin-32fm and
pumadyn-32fm: of the 4096 and 1024 cases at hand). "+-" is the
standard error over training sets, "p" that of a paired t test. "z" is the difference to the thesis over its standard
error, if the thesis' number has the same one as ours. Data are looked for in the folder that BENCHMARK_DATA names. With
BENCHMARK_PARTS, a folder, a run that was broken off goes on where it was."""
FAMILIES = ("kin-8fh", "kin-8fm", "kin-8nm", "pumadyn-8fh", "pumadyn-8nh", "pumadyn-8nm", "pumadyn-32nm")
#: two more, in files that say which half is for training: family, training cases, sets
PARTS = (("kin-32fm", 64, 8), ("kin-32fm", 128, 8), ("kin-32fm", 256, 8), ("kin-32fm", 512, 4), ("pumadyn-32fm", 64, 8))
FUNCTIONS, DEGREE, PENALTY = 20, 2, 3.0
#: steps of the first pass that are compared
STEPS = 3
BAGGED = {"max_functions": 15, "max_degree": 8}


def first(X: Array) -> Array:
    """Friedman (1991), eq. (61)."""
    return np.asarray(10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4])


def circuit(X: Array) -> tuple[Array, Array]:
    """Resistance and reactance of the circuit of Friedman (1991), section 4.4."""
    omega = 40 * np.pi + 520 * np.pi * X[:, 1]
    return 100 * X[:, 0], omega * X[:, 2] - 1.0 / (omega * (1 + 10 * X[:, 3]))


def impedance(X: Array) -> Array:
    return np.asarray(np.hypot(*circuit(X)))


def phase(X: Array) -> Array:
    r, x = circuit(X)
    return np.asarray(np.arctan2(x, r))


SURFACES: dict[str, tuple[Callable[[Array], Array], int]] = {
    "friedman 1": (first, 10),
    "impedance": (impedance, 4),
    "phase": (phase, 4),
}


def problem(name: str, n: int, sets: int) -> dict[str, Any]:
    """Data sets, and test rows without noise."""
    function, D = SURFACES[name]
    rng = np.random.default_rng([1991, n, D])
    X, X_test = rng.uniform(size=(sets, n, D)), rng.uniform(size=(4000, D))
    f = np.array([function(rows) for rows in X])
    truth = function(X_test)
    y = f + truth.std() / 3 * rng.normal(size=f.shape)
    return {"X": X, "y": y, "X_test": X_test, "truth": truth}


def peer(data: dict[str, Any], linear: bool) -> dict[str, Any]:
    """Answer of the worker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, **data, functions=FUNCTIONS, degree=DEGREE, penalty=PENALTY, linear=linear)
        python = os.environ.get("MARS_PYTHON", sys.executable)
        worker = str(ROOT / "benchmarks" / "mars_worker.py")
        done = subprocess.run([python, worker, str(path)], capture_output=True, text=True, timeout=900)
    if done.returncode:
        return {"why": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "the worker died"}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def ours(data: dict[str, Any]) -> dict[str, Any]:
    """What the worker answers, from `fit_mars`."""
    answer: dict[str, Any] = {"prediction": [], "seconds": [], "left": []}
    fit_mars(data["X"][0], data["y"][0], max_degree=2)  # compile
    for X, y in zip(data["X"], data["y"], strict=True):
        start = time.perf_counter()
        fit = fit_mars(X, y, max_functions=FUNCTIONS, max_degree=DEGREE, penalty=PENALTY)
        answer["seconds"].append(time.perf_counter() - start)
        answer["prediction"].append(fit.predict(data["X_test"]).tolist())
        answer["left"].append([step["left"] for step in fit.history])
    return answer


def beside(name: str, n: int, sets: int) -> tuple[list[dict[str, Any]], Array | None]:
    """Rows of one function, and logarithms (2, sets) of ratios of errors, theirs over ours, without and with linear."""
    data = problem(name, n, sets)
    mine = ours(data)
    variance = float(np.var(data["truth"]))

    def row(who: str, answer: dict[str, Any], error: Array) -> dict[str, Any]:
        return {
            "function": name,
            "N": n,
            "contestant": who,
            "milliseconds": 1e3 * float(np.median(answer["seconds"])),
            "error": float(error.mean()),
            "+-": float(error.std(ddof=1) / np.sqrt(sets)),
        }

    def errors(answer: dict[str, Any]) -> Array:
        return np.asarray(np.mean((np.array(answer["prediction"]) - data["truth"]) ** 2, axis=1) / variance)

    rows, ratios = [row("fit_mars", mine, errors(mine))], []
    for linear in (False, True):
        other = peer(data, linear)
        if "why" in other:
            return [*rows, {"function": name, "N": n, "contestant": "peer", "remark": other["why"]}], None
        rows.append(row(other["name"] + ", linear" * linear, other, errors(other)))
        rows[-1]["time / ours"] = rows[-1]["milliseconds"] / rows[0]["milliseconds"]
        if other["left"] and not linear:
            pairs = zip(mine["left"], other["left"], strict=True)
            rows[-1]["left"] = float(np.median([abs(one[STEPS - 1] / two[STEPS - 1] - 1.0) for one, two in pairs]))
        ratios.append(np.log(errors(other) / errors(mine)))
    return rows, np.array(ratios)


@dataclass(frozen=True)
class PartTask:
    """A task of a family of which only some cases, scaled, are at hand: disjoint training sets, disjoint test sets."""

    family: str
    n: int
    sets: int

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.family} {self.n}"

    @property
    def file(self) -> str:
        """Name of its data."""
        return f"{self.family}_fann_scaled"

    def splits(self, count: int) -> Iterator[Split]:
        """Training rows of the first half, test rows of the second."""
        table = read(self.file)
        halves = [table[table["part"] == part].drop(columns="part").to_numpy(float) for part in (0, 1)]
        tests = len(halves[1]) // self.sets
        for i in range(min(count, self.sets)):
            rows, test = halves[0][i * self.n : (i + 1) * self.n], halves[1][i * tests : (i + 1) * tests]
            yield Split(rows[:, :-1], rows[:, -1], test[:, :-1], test[:, -1], tuple(map(str, table.columns)))


def bagging(task: Task | PartTask, sets: int) -> list[list[float]]:
    """Squared errors over the variance of the test targets, alone and bagged, of each training set; and seconds."""
    found = []
    for split in task.splits(sets):
        errors = []
        start = time.perf_counter()
        for model in (
            MARSRegressor(**BAGGED, progressbar=False),
            BaggedMARSRegressor(random_state=0, progressbar=False),
        ):
            guess = model.fit(split.X, split.y).predict(split.X_test)
            errors.append(float(np.mean((guess - split.y_test) ** 2) / split.y_test.var()))
        found.append([*errors, time.perf_counter() - start])
    return found


def reduction(found: list[list[float]]) -> tuple[float, float, float]:
    """Per cent taken off the mean error, its standard error, and the p-value of a paired t test."""
    alone, bag = np.array(found).T[:2]
    r = 1.0 - bag.mean() / alone.mean()
    off = (bag - (1.0 - r) * alone) / alone.mean()
    count = len(alone)
    difference = alone - bag
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(count))
    return 100.0 * float(r), 100.0 * float(off.std(ddof=1) / np.sqrt(count)), 2.0 * float(student(count - 1).sf(abs(t)))


def cases(quick: bool) -> list[Case]:
    """The data sets, for the list; nobody takes turns."""
    return [Case(name, lambda: None, [Contestant("fit_mars", "ours", lambda data: None)]) for name in SURFACES]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report(tables=[("", [])])
    ratios, faster = [], []
    for name in list(SURFACES)[: 1 if quick else None]:
        for n in (60,) if quick else (200, 1000):
            rows, ratio = beside(name, n, 3 if quick else 20)
            report.tables[0][1].extend(rows)
            print(f"    {rows}", flush=True)
            if ratio is not None:
                ratios.append(ratio)
                faster += [row["time / ours"] for row in rows[1:]]
    for which, of in enumerate(("", ", linear") if ratios else ()):
        logs = [ratio[which] for ratio in ratios]
        mean = float(np.mean([one.mean() for one in logs]))
        error = float(np.sqrt(np.sum([one.var(ddof=1) / len(one) for one in logs])) / len(logs))
        label = f"mean log ratio of errors, the peer's{of} over ours ({mean:.3f}), in standard errors"
        report.verdicts.append(Verdict(label, mean / error, -2.0, ">="))
    if faster:
        report.verdicts.append(Verdict("time of the peer over ours, least", min(faster), 1.0, ">="))
    delve(report, quick)
    return report


def delve(report: Report, quick: bool) -> None:
    """Bagging on DELVE's tasks beside the thesis."""
    families = [family for family in FAMILIES if there(family)]
    tasks: list[Task | PartTask] = [Task(family, n) for family in families for n in SIZES]
    tasks += [part for part in (PartTask(*one) for one in PARTS) if there(part.file)]
    if quick or not tasks:
        tasks = [Task("friedman", 64)]
    table, z, below = [], [], 0
    for task in tasks:
        found = kept(f"bagged-{task.family}-{task.n}", lambda task=task: bagging(task, 3 if quick else 8))
        r, error, p = reduction(found)
        alone, bag, seconds = np.mean(found, axis=0)
        row: dict[str, Any] = {
            "task": task.family,
            "n": task.n,
            "sets": len(found),
            "alone": float(alone),
            "bagged": float(bag),
            "per cent off": r,
            "+-": error,
            "p": p,
        }
        if (task.family, task.n) in REDUCTION:
            row["thesis"] = REDUCTION[task.family, task.n]
            row["z"] = (r - row["thesis"]) / (float(np.sqrt(2.0)) * error)
            z.append((row["z"], len(found) - 1))
        below += r > 0.0
        table.append(row | {"seconds": float(seconds)})
        print(f"    {task.name}: {row}", flush=True)
    report.tables.append(("Bagging", table))
    if z:
        off = np.array([one for one, _ in z])
        spread = np.sqrt(np.mean([dof / (dof - 2) for _, dof in z]))  # of Student's t
        outside = sum(abs(one) > student(dof).ppf(0.975) for one, dof in z)
        center, most = abs(float(off.mean())) * np.sqrt(len(off)) / spread, 0.05 * len(z) + 2 * np.sqrt(0.0475 * len(z))
        report.verdicts += [
            Verdict("tasks whose error bagging lowers, of all", below / len(table), 0.9, ">="),
            Verdict("mean z against the thesis, in its standard errors", float(center), 2.0),
            Verdict(f"tasks outside 95 % of the thesis, of {len(z)}", float(outside), float(most)),
        ]
