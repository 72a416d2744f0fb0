"""Search for basis functions by the evidence: time against work that cannot be avoided, and the paper's table 5."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import bayessel as bs
from bayessel.basis import LazyDesign
from bayessel.diagnostics.delve.families.surfaces import HWANG
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.peers import Array
from benchmarks.search_cases import hwang
from benchmarks.search_fits import WITHIN, kept

TITLE = "Search for basis functions"
TEXT = """`pta(1,0)` on Hwang's complicated interaction (noise 0.25), one gaussian per row as candidates, the dictionary
made before the clock starts, widths from the evidence of all functions on 400 rows. "unavoidable" is what any search
that re-estimates alpha and beta after each addition has to do, by BLAS alone: one pass over the dictionary per function
added, and one product of an M x M with an M x P array per model (M up to the last model looked at). Memory is the
increment over a process that has imported everything, dictionary included; the last case has 100000 rows and 5000
candidates that are made when they are looked at."""
TABLE = """Five functions, with noise and without, as many candidates as rows (beside the paper, table 5).
"functions" is the model that the paper's search ends with, "within a nat" the smallest model seen whose evidence is
within a nat of the best, which is what `search` returns by itself; "error" is the test error over the standard
deviation of the target, "passes" how often the dictionary was gone over. Without noise there is always something left
to explain, until rounding is a noise of about 1e-7; arithmetic on Gram matrices, as in the paper, comes to its end
much earlier."""
OURS, LIMIT, LAZY = "search", "unavoidable", "search, columns on the fly"
STRATEGIES = ("pta(1,0)", "pta(2,1)", "sffs", "oscil(5)")
#: Barrio, Romero and Belanche (2010), table 5: mean functions, and functions added and removed, at 8192 rows
PAPER = {"pta(1,0)": (42.1, 57.5), "pta(2,1)": (41.7, 161.1), "sffs": (34.5, 127.4), "oscil(5)": (42.1, 247.2)}
GOAL, MEGABYTES, TALL_MEGABYTES = 3.0, 800.0, 3000.0


def dictionary(n: int) -> tuple[Array, Array]:
    data = hwang("complicated", n)
    return data.design(), data.t


def tall(n: int, p: int) -> tuple[LazyDesign, Array]:
    data = hwang("complicated", n)
    return LazyDesign(bs.RBFDictionary(data.X[:p], data.widths, bias=False), data.X), data.t


def unavoidable(F: Array, t: Array, largest: int) -> None:
    """Passes and products of a forward search up to `largest` functions."""
    rng = np.random.default_rng(0)
    B = np.empty((largest + 1, F.shape[1]))
    B[0] = t @ F
    for m in range(1, largest + 1):
        B[m] = t @ F
        rng.normal(size=(m, m)) @ B[:m]


def cases(quick: bool) -> list[Case]:
    found = []
    for n in (100, 200) if quick else (1024, 2048, 4096, 8192):
        largest: list[int] = []

        def ours(data: tuple[Array, Array], largest: list[int] = largest) -> Any:
            fit = bs.linear.search(*data, within=0.0)
            largest[:] = [fit.n_added]
            return fit

        def limit(data: tuple[Array, Array], largest: list[int] = largest) -> None:
            unavoidable(*data, largest[0])

        found.append(
            Case(
                f"N = P = {n}",
                lambda n=n: dictionary(n),
                [Contestant(OURS, "ours", ours), Contestant(LIMIT, "limit", limit)],
                rounds=2 if quick else 5,
                memory=n >= 8192,
            )
        )
    n, p = (400, 50) if quick else (100_000, 5000)
    found.append(
        Case(
            f"N = {n}, P = {p}",
            lambda: tall(n, p),
            [Contestant(LAZY, "ours", lambda data: bs.linear.search(*data))],
            rounds=1,
            memory=not quick,
        )
    )
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    for case in cases(quick):
        outcome = race(case, case.data())
        extra: dict[str, dict[str, Any]] = {c.name: {} for c in case.contestants}
        name = case.contestants[0].name
        fit = outcome.results[name]
        extra[name] |= {"functions": fit.n_basis, "added": fit.n_added, "seconds": outcome.best(name)}
        if case.memory:
            peak = memory(case=case.name, contestant=name).added
            if name == OURS:  # the data of this case are the dictionary
                n = fit.n_rows
                peak += 8e-6 * n * n
            extra[name]["memory over import (MB)"] = peak
            bound = MEGABYTES if name == OURS else TALL_MEGABYTES
            report.verdicts.append(Verdict(f"memory over import, MB, {case.name}", peak, bound))
        if name == OURS and not quick:
            report.verdicts.append(Verdict(f"time over {LIMIT}, {case.name}", outcome.ratio(OURS, LIMIT), GOAL))
        report.add(case, outcome, extra)
    rows = table_5(quick)
    report.tables.append((TABLE, rows))
    if not quick:
        seconds = sum(row["seconds"] for row in rows if "mean" not in row["task"])
        report.verdicts.append(Verdict("seconds for all tasks and strategies", seconds, 3600.0))
    return report


def one_of_table_5(name: str, noise: float, n: int, strategy: str) -> dict[str, Any]:
    """One strategy on one function; the paper's model and the smallest within a nat of the best."""
    data = hwang(name, n, noise)
    F = data.design()
    passes: list[int] = []
    fit = bs.linear.search(F, data.t, strategy, within=0.0, callback=lambda s: passes.append(s.model.passes))
    top = max(point.value for point in fit.path.values())
    few = min(size for size, point in fit.path.items() if point.value >= top - WITHIN)
    basis = list(fit.path[few].basis)
    test = data.design(data.X_test)

    def error(prediction: Array) -> float:
        return float(np.sqrt(np.mean((prediction - data.t_test) ** 2)) / data.t_test.std())

    return {
        "functions": fit.n_basis,
        "added and removed": fit.n_added + fit.n_removed,
        "passes": passes[-1],
        "seconds": fit.seconds,
        "error": error(fit.mean(test)),
        "within a nat": few,
        "error of that": error(bs.linear.fit_evidence(F[:, basis], data.t).predict(test[:, basis]).mean),
        "model evidence": fit.model_evidence,
        "noise found": fit.noise_std,
        "status": fit.status.name,
    }


def table_5(quick: bool) -> list[dict[str, Any]]:
    """Every strategy on every function."""
    n = 100 if quick else 8192
    rows: list[dict[str, Any]] = []
    for noise in (0.25, 0.0):
        for name in list(HWANG)[:2] if quick else HWANG:
            for strategy in STRATEGIES:
                make = partial(one_of_table_5, name, noise, n, strategy)
                found = kept(f"search_{name}_{noise}_{n}_{strategy}", make)
                row = {"task": f"{name}, noise {noise}", "strategy": strategy} | found
                print(f"    {row}", flush=True)
                rows.append(row)
    for kind in ("noise 0.25", "noise 0.0", ""):
        for strategy in STRATEGIES:
            mine = [row for row in rows if row["strategy"] == strategy and "mean" not in row["task"]]
            mine = [row for row in mine if kind in row["task"]]
            keys = ("functions", "added and removed", "passes", "seconds", "error", "within a nat", "error of that")
            mean: dict[str, Any] = {key: float(np.mean([row[key] for row in mine])) for key in keys}
            if not kind:
                mean["functions, paper"], mean["steps, paper"] = PAPER[strategy]
            rows.append({"task": f"mean{', ' if kind else ''}{kind}", "strategy": strategy} | mean)
    return rows
