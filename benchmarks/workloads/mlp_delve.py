"""Networks on DELVE's tasks: loss against time, sampled and stopped early, and which inputs matter."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bayessel as bs
from benchmarks.delve_cases import Guess, Split, Task, losses, there
from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.memory import ROOT
from benchmarks.processor_clock import processor_time
from benchmarks.workloads.gp_delve import RELEVANT

TITLE = "Networks: loss against time, and inputs that matter (DELVE)"
TEXT = """Two tasks of `gp_delve` with more and more time, as in Rasmussen (1996, fig. 5.19), on the first training
sets: `mlp-mc` and `mlp-ese` are `bs.MLPRegressor` with `inference="mc"` (one chain) and `"early-stopping"`, all else as
it comes, with so many seconds of processor for a training set, compiling not counted; the line beside them is
`bs.GPRegressor(inference="mc")` as it comes. Then the inputs of pumadyn-32nm, of which four matter, in the order of the
steepness that `mlp-mc` finds. All tasks at one budget are part of `delve_study`. It runs in parts: with
`BENCHMARK_SECONDS` it ends after so many, and goes on when it is run again. Data as for `gp_delve`."""

#: tasks at other budgets, and these
CURVES, BUDGETS, SETS = (("kin-8nm", 256), ("pumadyn-8nh", 128)), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0), 2
#: training cases and seconds of the networks that are asked which inputs matter
ASKED = {512: 8.0, 1024: 16.0}
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
    """All of them, the first training set of every curve first."""
    if quick:
        one = [Part("friedman", 64, k, method, 0.3) for k in range(2) for method in NETWORKS]
        return [*one, *(Part("friedman", 64, k, "gp-mc", 0.0) for k in range(2))]
    found = []
    for k in range(SETS):
        for family, n in CURVES if all(there(family) for family, _ in CURVES) else (("friedman", 256),):
            found += [Part(family, n, k, method, seconds) for seconds in BUDGETS for method in NETWORKS]
            found.append(Part(family, n, k, "gp-mc", 0.0))
    if there("pumadyn-32nm"):
        found += [Part("pumadyn-32nm", n, k, "mlp-mc", seconds) for n, seconds in ASKED.items() for k in range(SETS)]
    return found


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
    report = Report(tables=[one for one in (("", curves(done)), ("", orders(done))) if one[1]])
    report.verdicts = verdicts(done)
    if not quick:
        picture(done, ROOT / "docs" / "images" / "mlp_delve.png")
    return report


def of(done: dict[Part, dict[str, Any]], task: Task, method: str, seconds: float) -> Any:
    """Losses (training sets, 3); empty where there are none."""
    chosen = {
        p.place: one["losses"] for p, one in done.items() if (p.task, p.method, p.seconds) == (task, method, seconds)
    }
    return np.array([chosen[k] for k in sorted(chosen)]).reshape(-1, 3)


def spread(values: Any) -> str:
    """Mean and standard error."""
    if len(values) < 2:
        return f"{values.mean():.3f}"
    return f"{values.mean():.3f} +- {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def drawn(done: dict[Part, dict[str, Any]]) -> list[tuple[Task, list[float]]]:
    """Tasks with the budgets that networks had there."""
    found: dict[Task, set[float]] = {}
    for part in done:
        if part.method in NETWORKS and part.family != "pumadyn-32nm":
            found.setdefault(part.task, set()).add(part.seconds)
    return [(task, sorted(budgets)) for task, budgets in found.items()]


def curves(done: dict[Part, dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per task and budget."""
    found = []
    for task, budgets in drawn(done):
        for seconds in budgets:
            row: dict[str, Any] = {"task": task.family, "n": task.n, "budget, s": seconds}
            for method in NETWORKS:
                if len(all_losses := of(done, task, method, seconds)):
                    row |= {f"{method}, squared": spread(all_losses[:, 0]), f"{method}, log": spread(all_losses[:, 2])}
            if len(beside := of(done, task, "gp-mc", 0.0)):
                row |= {"gp-mc, squared": spread(beside[:, 0]), "gp-mc, log": spread(beside[:, 2])}
            found.append(row)
    return found


def orders(done: dict[Part, dict[str, Any]]) -> list[dict[str, Any]]:
    """The inputs of pumadyn-32nm that networks find steepest."""
    return [
        {"task": part.family, "n": part.n, "training set": part.place, "steepest first": ", ".join(one["order"][:6])}
        for part, one in done.items()
        if part.family == "pumadyn-32nm"
    ]


def verdicts(done: dict[Part, dict[str, Any]]) -> list[Verdict]:
    """At the longest budget sampling is ahead; relevance on pumadyn-32nm."""
    found = []
    for task, budgets in drawn(done):
        mine, theirs = (of(done, task, method, budgets[-1])[:, 0] for method in NETWORKS)
        if len(mine) and len(theirs):
            label = f"squared loss of mlp-mc over that of mlp-ese, {task.name}, {budgets[-1]:g} s"
            found.append(Verdict(label, float(mine.mean() / theirs.mean()), 1.0))
    for n in ASKED:
        asked = [one["order"] for p, one in done.items() if p[:2] == ("pumadyn-32nm", n)]
        if asked:
            seen = min(len(RELEVANT & set(order[:4])) for order in asked)
            label = f"theta4, theta5, tau4 among the 4 steepest inputs of 32 (tau3 is the other), pumadyn-32nm, {n}"
            found.append(Verdict(label, seen, 3, ">="))
    return found


def picture(done: dict[Part, dict[str, Any]], path: Path) -> None:
    """Loss against time (Rasmussen 1996, fig. 5.19)."""
    from matplotlib.figure import Figure

    shown = drawn(done)
    figure = Figure(figsize=(4.0 * len(shown), 3.4), layout="constrained")
    all_axes = np.atleast_1d(figure.subplots(1, len(shown)))
    colours = {"mlp-mc": "#0072B2", "mlp-ese": "#D55E00"}
    for axes, (task, budgets) in zip(all_axes, shown, strict=True):
        for method, colour in colours.items():
            values = [of(done, task, method, seconds)[:, 0] for seconds in budgets]
            mean = [value.mean() for value in values]
            error = [value.std(ddof=1) / np.sqrt(len(value)) for value in values]
            axes.errorbar(budgets, mean, error, fmt="o-", ms=4, color=colour, label=method, capsize=2)
        beside = of(done, task, "gp-mc", 0.0)
        if len(beside):
            axes.axhline(beside[:, 0].mean(), color="#009E73", ls="--", lw=1.2, label="gp-mc, as it comes")
        axes.set(
            xscale="log", title=f"{task.family}, n = {task.n}", xlabel="seconds of processor", ylabel="squared loss"
        )
        axes.set_xticks(budgets, [f"{one:g}" for one in budgets])
        axes.minorticks_off()
        axes.set_ylim(0.0, None)
    all_axes[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
