"""Orthogonal least squares: fifty functions of thousands, beside scikit-learn's OMP and SysIdentPy's FROLS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import OrthogonalMatchingPursuit

import bayessel as bs
from bayessel._numerics import few_threads
from bayessel.linear.columns.dictionary import SEVERAL_THREADS
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.memory import ROOT
from benchmarks.search_cases import Data, hwang

TITLE = "Forward selection"
TEXT = """Fifty functions by orthogonal least squares on Hwang's complicated interaction without noise, one gaussian per
row as candidates, the time of making the dictionary included for everybody. "passes" is what cannot be avoided: the
same dictionary and one product with it per function. OMP looks for the largest correlation without orthogonalising the
candidates, another choice: the errors say how much worse. SysIdentPy's FROLS runs once, in a process of its own (an
interpreter that has it in the environment variable `FROLS_PYTHON`). Errors are those of least squares on the chosen
functions."""
OURS, LIMIT, PEER, FROLS = "forward_select", "passes", "OMP", "SysIdentPy FROLS"
TERMS = 50


def ours(data: Data) -> Any:
    return bs.linear.forward_select(data.design(), data.t, "ols", None, max_size=TERMS)


def passes(data: Data) -> None:
    F = data.design()
    with few_threads(F.size if F.size > SEVERAL_THREADS else 0):
        for _ in range(TERMS + 1):
            F.T @ data.t


def omp(data: Data) -> Any:
    F = data.design()
    return OrthogonalMatchingPursuit(n_nonzero_coefs=TERMS, fit_intercept=False, precompute=False).fit(F, data.t)


def frols(data: Data) -> dict[str, Any]:
    """Answer of the worker."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, X=data.X, t=data.t, widths=data.widths, terms=TERMS)
        python = os.environ.get("FROLS_PYTHON", sys.executable)
        worker = str(ROOT / "benchmarks" / "frols_worker.py")
        done = subprocess.run([python, worker, str(path)], capture_output=True, text=True, timeout=900)
    if done.returncode:
        return {"why": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "the worker died"}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def errors(data: Data, chosen: Any) -> tuple[float, float]:
    """Mean squared error on training and test rows of least squares on these functions."""
    kept = bs.RBFDictionary(data.X[np.asarray(chosen)], data.widths, bias=False)
    H = kept.design(data.X)
    w = np.linalg.lstsq(H, data.t, rcond=1e-13)[0]
    test = kept.design(data.X_test) @ w
    return float(np.mean((data.t - H @ w) ** 2)), float(np.mean((data.t_test - test) ** 2))


def cases(quick: bool) -> list[Case]:
    return [
        Case(
            f"N = P = {n}",
            lambda n=n: hwang("complicated", n, noise=0.0),
            [
                Contestant(OURS, "ours", ours),
                Contestant(LIMIT, "limit", passes),
                Contestant(PEER, "peer", omp),
            ],
            rounds=2 if quick else 5,
            memory=n >= 8192,
        )
        for n in ((100, 200) if quick else (1024, 2048, 4096, 8192))
    ]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    for case in cases(quick):
        data = case.data()
        outcome = race(case, data)
        extra: dict[str, dict[str, Any]] = {c.name: {} for c in case.contestants}
        fit = outcome.results[OURS]
        chosen = {OURS: fit.order, PEER: np.flatnonzero(outcome.results[PEER].coef_)}
        for name, which in chosen.items():
            extra[name] |= {"functions": len(which)}
            extra[name]["training error"], extra[name]["test error"] = errors(data, which)
        if case.memory:
            extra[OURS]["memory over import (MB)"] = memory(case=case.name, contestant=OURS).added
        report.add(case, outcome, extra)
        other = frols(data)
        row: dict[str, Any] = {"case": case.name, "contestant": FROLS, "role": "peer"}
        if "why" in other:
            row["remark"] = other["why"]
        else:
            row["time / ours"] = other["seconds"] / outcome.best(OURS)
            row["functions"] = len(other["chosen"])
            row["training error"], row["test error"] = errors(data, other["chosen"])
        report.tables[0][1].append(row)
    label = f"time over that of the passes alone, {case.name}"
    report.verdicts.append(Verdict(label, outcome.ratio(OURS, LIMIT), 1.2))
    if "training error" in row:
        gap = abs(extra[OURS]["training error"] / row["training error"] - 1.0)
        report.verdicts.append(Verdict("relative difference of the training error to FROLS", gap, 1e-6))
    return report
