"""Predictions on DELVE's kin and pumadyn families: networks sampled and stopped early, at equal time, beside gp-mc."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import bayessel as bs
from bayessel.mlp import early_stopping
from bayessel.samplers.run import kernel, schedule
from benchmarks.delve_cases import Guess, Split, Task, losses, there
from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.memory import ROOT
from benchmarks.workloads.gp_delve import FAMILIES, RELEVANT

TITLE = "What networks predict (DELVE)"
TEXT = """The tasks and losses of `gp_delve`, on the first of its training sets. `mlp-mc` and `mlp-ese` are
`bs.MLPRegressor` with `inference="mc"` (one chain) and `"early-stopping"`, all else as it comes, and have the same
time: as many seconds of processor for a training set as the table says, compiling not counted. `gp-mc` is
`bs.GPRegressor(inference="mc")` as it comes, on small sets; beyond them `gp-map`. In the second table the same for
other budgets, as in Rasmussen (1996, fig. 5.19). It runs in parts: with `BENCHMARK_SECONDS` it ends after so many, and
goes on when it is run again. Data as for `gp_delve`."""

#: training cases, number of training sets, and seconds of processor for each
SIZES = {64: 4, 128: 4, 256: 4, 512: 2, 1024: 1}
BUDGET = {64: 2.0, 128: 3.0, 256: 5.0, 512: 10.0, 1024: 20.0}
#: training cases up to which gp-mc takes part; beyond, gp-map
MOST_SAMPLED = 256
#: tasks at other budgets, and these
CURVES, BUDGETS, SETS = (("kin-8nm", 256), ("pumadyn-8nh", 128)), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0), 2
NETWORKS = {"mlp-mc": "mc", "mlp-ese": "early-stopping"}
#: where finished parts are kept
PARTS = ROOT / "benchmarks" / "results" / "mlp_delve.parts.jsonl"


class Part(NamedTuple):
    """One method on one training set, with a budget (0: none)."""

    family: str
    n: int
    place: int
    method: str
    seconds: float

    @property
    def task(self) -> Task:
        """Without the method."""
        return Task(self.family, self.n)


@contextmanager
def processor_time() -> Iterator[None]:
    """Time budgets in seconds of processor: what else the machine does is no part of the comparison."""
    clocks = ((schedule, "monotonic"), (kernel, "perf_counter"), (early_stopping, "perf_counter"))
    with ExitStack() as stack:
        for module, name in clocks:
            stack.enter_context(patch.object(module, name, time.process_time))
        yield


def network(split: Split, inference: str, seconds: float, **options: Any) -> Guess:
    model = bs.MLPRegressor(
        inference, time_budget=seconds, random_state=0, chains=1, cores=1, progressbar=False, **options
    ).fit(split.X, split.y)
    order = [split.names[i] for i in np.argsort(-model.relevance_["standardised"].to_numpy())]
    mean, median = model.predict(split.X_test), model.predict_median(split.X_test)
    return Guess(mean, median, model.log_predictive_density(split.X_test, split.y_test), order)


def process(split: Split, inference: str) -> Guess:
    model = bs.GPRegressor(inference=inference, random_state=0, cores=1, progressbar=False).fit(split.X, split.y)
    mean, median = model.predict(split.X_test), model.predict_median(split.X_test)
    return Guess(mean, median, model.log_predictive_density(split.X_test, split.y_test), [])


def guess(part: Part, split: Split) -> Guess:
    """What a method predicts."""
    if part.method in NETWORKS:
        return network(split, NETWORKS[part.method], part.seconds)
    return process(split, part.method.removeprefix("gp-"))


def parts(quick: bool) -> list[Part]:
    """All of them, the first training set of every task first."""
    if quick:
        one = [Part("friedman", 64, k, method, 0.3) for k in range(2) for method in NETWORKS]
        return [*one, *(Part("friedman", 64, k, "gp-mc", 0.0) for k in range(2))]
    families = [family for family in FAMILIES if there(family)] or ["friedman"]
    found = []
    for k in range(max(SIZES.values())):
        for n in (n for n, count in SIZES.items() if k < count):
            for family in families:
                found += [Part(family, n, k, method, BUDGET[n]) for method in NETWORKS]
                found.append(Part(family, n, k, "gp-mc" if n <= MOST_SAMPLED else "gp-map", 0.0))
        for family, n in CURVES if k < SETS else ():
            for seconds in BUDGETS if family in families else ():
                found += [Part(family, n, k, method, seconds) for method in NETWORKS]
    return list(dict.fromkeys(found))


def cases(quick: bool) -> list[Case]:
    """The tasks, for the list; nobody is timed against anybody."""
    names = dict.fromkeys(part.task.name for part in parts(quick))
    return [Case(name, lambda: None, [Contestant(m, "ours", lambda data: None) for m in NETWORKS]) for name in names]


def known(path: Path) -> dict[Part, dict[str, Any]]:
    """Parts that are finished."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {Part(*line["part"]): line for line in lines}


def play(path: Path | None, quick: bool, most: float = np.inf) -> dict[Part, dict[str, Any]]:
    """Losses and order of inputs of every part; what a file has is not worked out again."""
    done: dict[Part, dict[str, Any]] = {}
    begin, splits = time.perf_counter(), SplitReader()
    for part in parts(quick):
        if path is not None:  # another process may work at it, too
            done |= known(path)
        if part in done:
            continue
        if time.perf_counter() - begin > most:
            raise SystemExit(f"{len(parts(quick)) - len(done)} parts are left: run it again")
        split = splits(part)
        start, clock = time.process_time(), time.perf_counter()
        with warnings.catch_warnings(), processor_time():
            warnings.simplefilter("ignore")  # short runs say so; the losses tell
            found = guess(part, split)
        spent, took = time.process_time() - start, time.perf_counter() - clock
        line = {
            "part": list(part),
            "losses": losses(found, split.y_test).tolist(),
            "seconds": spent,
            "clock": took,
            "order": list(found.extra),
        }
        print(
            f"    {part.task.name} {part.place} {part.method} {part.seconds:g} s: {line['losses'][0]:.3f}", flush=True
        )
        done[part] = line
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(json.dumps(line) + "\n")
    return done


class SplitReader:
    """Training and test sets, one file open at a time."""

    def __init__(self) -> None:
        self._of: tuple[str, int] | None = None
        self._all: list[Split] = []

    def __call__(self, part: Part) -> Split:
        """The one of a part."""
        if self._of != (part.family, part.n):
            self._of, self._all = (part.family, part.n), list(part.task.splits(4))
        return self._all[part.place]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    most = float(os.environ.get("BENCHMARK_SECONDS", "inf"))
    done = play(None if quick else PARTS, quick, most)
    report = Report(tables=[("", table(done, quick)), ("Squared and log loss at other budgets.", curves(done))])
    report.tables = [one for one in report.tables if one[1]]
    report.verdicts = verdicts(done, quick)
    if not quick:
        picture(done, ROOT / "docs" / "images" / "mlp_delve.png")
    return report


def of(done: dict[Part, dict[str, Any]], task: Task, method: str, seconds: float) -> Any:
    """Losses (training sets, 3); empty where there are none."""
    chosen = {
        p.place: one["losses"] for p, one in done.items() if (p.task, p.method, p.seconds) == (task, method, seconds)
    }
    return np.array([chosen[k] for k in sorted(chosen)]).reshape(-1, 3)


def usual(task: Task, quick: bool) -> Iterator[tuple[str, float]]:
    """Methods of the first table with their budgets."""
    seconds = 0.3 if quick else BUDGET[task.n]
    for method in NETWORKS:
        yield method, seconds
    yield from (("gp-mc", 0.0), ("gp-map", 0.0))


def table(done: dict[Part, dict[str, Any]], quick: bool) -> list[dict[str, Any]]:
    found = []
    for task in dict.fromkeys(part.task for part in parts(quick)):
        for method, seconds in usual(task, quick):
            all_losses = of(done, task, method, seconds)
            if not len(all_losses):
                continue
            row: dict[str, Any] = {"task": task.family, "n": task.n, "method": method, "training sets": len(all_losses)}
            row |= {name: spread(all_losses[:, i]) for i, name in enumerate(("squared", "absolute", "log"))}
            row["budget, s"] = seconds or None
            found.append(row)
    return found


def spread(values: Any) -> str:
    """Mean and standard error."""
    if len(values) < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} +- {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def curves(done: dict[Part, dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for family, n in CURVES:
        for seconds in BUDGETS:
            row: dict[str, Any] = {"task": family, "n": n, "budget, s": seconds}
            for method in NETWORKS:
                all_losses = of(done, Task(family, n), method, seconds)
                if len(all_losses):
                    row |= {
                        f"{method}, squared": spread(all_losses[:SETS, 0]),
                        f"{method}, log": spread(all_losses[:SETS, 2]),
                    }
            if len(row) > 3:
                found.append(row)
    return found


def paired(done: dict[Part, dict[str, Any]], first: str, second: str, quick: bool) -> Any:
    """Differences of losses for every training set that both have met, (sets, 3), and the names of the tasks."""
    found, names = [], []
    for task in dict.fromkeys(part.task for part in parts(quick)):
        budgets = dict(usual(task, quick))
        a, b = (of(done, task, name, budgets[name]) for name in (first, second))
        if len(a) and len(a) == len(b):
            found.append(a - b)
            names += [task] * len(a)
    return (np.concatenate(found) if found else np.empty((0, 3))), names


def verdicts(done: dict[Part, dict[str, Any]], quick: bool) -> list[Verdict]:
    """mlp-mc against mlp-ese and gp-mc in standard errors of the paired difference; relevance on pumadyn-32nm."""
    found = []
    for rival, bound in (("mlp-ese", -2.0), ("gp-mc", None)):
        apart, names = paired(done, "mlp-mc", rival, quick)
        if len(apart) < 2:
            continue
        for i, loss in enumerate(("squared", "absolute", "log")):
            d = apart[:, i]
            label = f"{loss} loss of mlp-mc less that of {rival}, mean of {len(d)} training sets ({d.mean():.4f})"
            if bound is None:
                limit = {"squared": 0.02, "absolute": 0.02, "log": 0.05}[loss]
                found.append(Verdict(label, float(d.mean()), limit))
            else:
                error = d.std(ddof=1) / np.sqrt(len(d))
                found.append(Verdict(f"{label}, in standard errors", float(d.mean() / error), bound))
        if rival == "mlp-ese":
            tasks = list(dict.fromkeys(names))
            place = np.array([tasks.index(name) for name in names])
            better = sum(apart[place == k, 0].mean() < 0 for k in range(len(tasks)))
            found.append(
                Verdict(f"tasks of {len(tasks)} with less squared loss than mlp-ese", better, 0.5 * len(tasks), ">=")
            )
    for n in (512, 1024):
        orders = [one["order"] for p, one in done.items() if p[:2] == ("pumadyn-32nm", n) and p.method == "mlp-mc"]
        if orders:
            seen = min(len(RELEVANT & set(order[:4])) for order in orders)
            label = f"theta4, theta5, tau4 among the 4 steepest inputs of 32 (tau3 is the other), pumadyn-32nm, {n}"
            found.append(Verdict(label, seen, 3, ">="))
    return found


def picture(done: dict[Part, dict[str, Any]], path: Path) -> None:
    """Loss against time (Rasmussen 1996, fig. 5.19)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    all_axes = figure.subplots(1, len(CURVES))
    colours = {"mlp-mc": "#0072B2", "mlp-ese": "#D55E00"}
    for axes, (family, n) in zip(all_axes, CURVES, strict=True):
        for method, colour in colours.items():
            values = [of(done, Task(family, n), method, seconds)[:SETS, 0] for seconds in BUDGETS]
            there_ = [k for k, value in enumerate(values) if len(value) > 1]
            mean = [values[k].mean() for k in there_]
            error = [values[k].std(ddof=1) / np.sqrt(len(values[k])) for k in there_]
            axes.errorbar(
                [BUDGETS[k] for k in there_], mean, error, fmt="o-", ms=4, color=colour, label=method, capsize=2
            )
        beside = of(done, Task(family, n), "gp-mc", 0.0)
        if len(beside):
            axes.axhline(beside[:SETS, 0].mean(), color="#009E73", ls="--", lw=1.2, label="gp-mc, as it comes")
        axes.set(xscale="log", title=f"{family}, n = {n}", xlabel="seconds of processor", ylabel="squared loss")
        axes.set_xticks(BUDGETS, [f"{one:g}" for one in BUDGETS])
        axes.minorticks_off()
        axes.set_ylim(0.0, None)
    all_axes[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
