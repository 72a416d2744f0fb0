"""How the relevance vector machine's time and memory grow with rows and candidates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Report, Verdict
from benchmarks.reference import sparse_judge
from benchmarks.rvm_cases import problem
from benchmarks.rvm_worker import ENTRANTS
from benchmarks.workloads.rvm import LIMIT, Outcome, one_turn

TITLE = "Relevance vector machine, growth"
TEXT = """The data of the workload `rvm` with as many candidates as rows (and the bias), N = 1000 ... 32000, and 100000
rows with the first 5000 gaussians. Three ways of holding the dictionary: in double precision (made before the clock
starts, up to N = 8000), in single precision and not at all (columns made when needed); in the last two the clock
includes making them. "growth" is the time over that at half as many rows; memory is the increment over a process that
has imported everything, dictionary included. The relative error is that of the evidence reported, at 60
digits up to N = 1000, against a dense computation in double precision beyond."""
STORED, SINGLE, LAZY = "fit_rvm", "fit_rvm, float32", "fit_rvm, columns on the fly"
WAYS = (STORED, SINGLE, LAZY, "fastrvm")
TALL = {"sinc 100000 5000", "friedman 100000 5000"}


def sizes(quick: bool) -> list[str]:
    """Names of the problems, rows doubling within a kind."""
    steps = (100, 200) if quick else (1000, 2000, 4000, 8000, 16000, 32000)
    found = [f"{kind} {n}" for kind in ("sinc", "friedman") for n in steps]
    return found if quick else found + sorted(TALL, reverse=True)


def takes_part(name: str, case: str) -> bool:
    """Whether a way of holding the dictionary is tried: N² doubles up to 0.5 GB, N² singles up to 1 GB."""
    n, candidates = int(case.split()[1]), int(case.split()[-1])
    most = {STORED: 6.4e7, SINGLE: 5e8, LAZY: float("inf"), "fastrvm": 1.6e7}[name]
    return n * candidates <= most


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    table: list[dict[str, Any]] = []
    best: dict[tuple[str, str], float] = {}
    errors = [0.0]
    for case in sizes(quick):
        data = problem(case)
        for name in WAYS:
            if not takes_part(name, case):
                continue
            one = Outcome([], [], {})
            one_turn(case, name, 0.0 if quick else 0.3, one)
            print(f"    {case}, {name}: {one.why or min(one.seconds)}", flush=True)
            row: dict[str, Any] = {"case": case, "contestant": name, "seconds": None}
            if one.reading is not None:
                best[case, name] = row["seconds"] = min(one.seconds)
                report.seconds.setdefault(case, {})[name] = one.seconds
                kind, n, *rest = case.split()
                row["growth"] = _ratio(best, (case, name), (f"{kind} {int(n) // 2}", name)) if not rest else None
                row["memory over import (MB)"] = one.row["memory over import (MB)"]
                basis, alpha, beta, said = (one.reading[key] for key in ("basis", "alpha", "beta", "said"))
                columns = data.design(basis)
                if name == SINGLE:  # its model is of the rounded columns
                    columns = columns.astype(np.float32).astype(float)
                evidence = sparse_judge(columns, data.t, alpha, float(beta))
                row |= {"log evidence": evidence, "functions": len(basis)}
                if ENTRANTS[name].module == "bayessel":
                    row["relative error"] = abs(float(said) / evidence - 1.0)
                    errors.append(row["relative error"])
                if case in TALL:
                    report.verdicts.append(
                        Verdict(f"memory of {name}, MB, {case}", row["memory over import (MB)"], 3000.0)
                    )
            else:
                row["note"] = one.why
            table.append(row)
    report.tables.append((f"Nobody gets more than {LIMIT:g} s of processor.", table))
    largest = best.get(("sinc 32000", LAZY)), best.get(("sinc 8000", LAZY))
    if not quick:
        ratio = largest[0] / largest[1] if largest[0] and largest[1] else float("inf")
        report.verdicts.append(Verdict("time at N = 32000 over that at 8000, sinc, columns on the fly", ratio, 10.0))
    report.verdicts.append(Verdict("relative error of the evidence reported, the largest", max(errors), 1e-8))
    return report


def _ratio(best: dict[tuple[str, str], float], a: tuple[str, str], b: tuple[str, str]) -> float | None:
    return best[a] / best[b] if b in best else None
