"""Hyperparameters of a Gaussian process by maximum likelihood, beside scikit-learn, GPy, GPyTorch and tinygp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.gp_map_worker import ENTRANTS, NOT_INSTALLED, Array, Data, problem
from benchmarks.harness import Case, Contestant, Race, Report, Verdict, rows
from benchmarks.memory import ROOT

TITLE = "Gaussian processes: maximum likelihood"
TEXT = """The likelihood of v0 exp(-1/2 sum w_i (x_i - x'_i)^2) + r^2 delta is maximised over its ten parameters, from
v0 = 1, w_i = 1/8, r^2 = e^-2 for everybody, on n rows of eight inputs: `friedman` (Friedman's first function, three
inputs do nothing) and `drawn` (a function drawn from the model). No priors. scikit-learn and GPy use their own L-BFGS-B
with its defaults (scikit-learn's bounds wide open), GPyTorch (Cholesky, double precision) and tinygp (compiled outside
the clock) SciPy's. Each runs in processes of its own, by turns, on the same number of processors, with Python's and
BLAS's start outside the clock; peers missing from this interpreter are looked for in that of the environment variable
`PEERS_PYTHON`. Nats are of the parameters that come back, by one dense computation for all. "evaluations" counts those
on all rows; `fit_map` begins on a quarter of them. "our likelihood, L-BFGS-B" has the fused operator and SciPy's
optimiser from the start on all rows: what the operator gains, and what the way of using it. "3 starts" is what
`fit_map` does unless told."""
OURS = "fit_map"
LIMIT = float(os.environ.get("PEERS_TIME_LIMIT", "600"))
#: nats: below this two optima are the same
SAME = 1e-2
GOAL = 3.0


@dataclass
class Outcome:
    """What the turns of one contestant gave; `why` says what is missing."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    theta: Array | None = None
    evaluations: int = 0
    why: str | None = None


def cases(quick: bool) -> list[Case]:
    names = ["friedman 40"] if quick else ["friedman 256", "drawn 256", "friedman 1024", "drawn 1024", "friedman 2048"]
    racers = [
        Contestant(name, "ours" if module == "bayessel" else "peer", lambda data: None)
        for name, (module, _) in ENTRANTS.items()
    ]
    return [Case(name, lambda name=name: problem(name), racers, rounds=1 if quick else 2) for name in names]


def one_turn(case: str, name: str, enough: float, found: Outcome) -> None:
    """Let a contestant fit in a fresh process; what it says is added to `found`."""
    threads = str(max([p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"], default=1))
    env = os.environ | {f"{key}_NUM_THREADS": threads for key in ("OPENBLAS", "OMP", "MKL")}
    python = sys.executable if ENTRANTS[name][0] == "bayessel" else os.environ.get("PEERS_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        command = [python, "-m", "benchmarks.gp_map_worker", case, name, str(out), str(enough)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            found.why = f"stopped after {LIMIT:g} s"
            return
        if done.returncode == NOT_INSTALLED:
            found.why = f"not installed ({json.loads(done.stdout.splitlines()[-1])['missing']})"
            return
        if done.returncode:
            found.why = f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
            return
        said = json.loads(done.stdout.splitlines()[-1])
        found.seconds += said["seconds"]
        found.cpu += said["cpu"]
        with np.load(out) as result:
            found.theta, found.evaluations = result["theta"], int(result["evaluations"])


def log_likelihood(data: Data, theta: Array) -> float:
    """log p(t|θ) of θ = log(v0, w, r²), from differences of the inputs and eigenvalues: nobody's own code."""
    v0, w, r2 = np.exp(theta[0]), np.exp(theta[1:-1]), np.exp(theta[-1])
    squares = np.zeros((len(data.t), len(data.t)))
    for weight, x in zip(w, data.X.T, strict=True):
        squares += weight * np.subtract.outer(x, x) ** 2
    values, vectors = np.linalg.eigh(v0 * np.exp(-0.5 * squares))
    values = np.maximum(values, 0.0) + r2
    z = vectors.T @ data.t
    return float(-0.5 * (np.log(2.0 * np.pi * values) + z**2 / values).sum())


def turns(case: Case, enough: float) -> dict[str, Outcome]:
    """Everybody once, then again those who are not slow; the starting place moves."""
    found = {c.name: Outcome() for c in case.contestants}
    names = list(found)
    for k in range(case.rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            one = found[name]
            if k == 0 or (one.why is None and min(one.seconds) < 30):
                one_turn(case.name, name, enough, one)
                print(f"    {case.name}, {name}: {one.why or min(one.seconds)}", flush=True)
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    report.tables.append(("", []))
    absent: dict[tuple[str, str], list[str]] = {}
    for case in cases(quick):
        data = case.data()
        found = turns(case, 0.0 if quick else 0.5)
        if found[OURS].theta is None:
            raise RuntimeError(f"{OURS} on {case.name}: {found[OURS].why}")
        ran = {name: one for name, one in found.items() if one.theta is not None}
        outcome = Race({k: v.seconds for k, v in ran.items()}, {k: v.cpu for k, v in ran.items()})
        present = Case(case.name, case.data, [c for c in case.contestants if c.name in ran])
        nats = {name: log_likelihood(data, one.theta) for name, one in ran.items() if one.theta is not None}
        extra = {
            name: {
                "seconds": outcome.best(name),
                "evaluations": one.evaluations if one.evaluations > 0 else None,
                "log likelihood": nats[name],
                "nats over ours": nats[name] - nats[OURS],
            }
            for name, one in ran.items()
        }
        report.seconds[case.name] = outcome.seconds
        report.tables[0][1].extend(rows(present, outcome, extra))
        for name, one in found.items():
            if one.why is not None:
                absent.setdefault((name, one.why), []).append(case.name)
        report.verdicts += verdicts(case.name, outcome, nats, [c.name for c in present.contestants if c.role == "peer"])
    if absent:
        table = [{"contestant": n, "why": why, "cases": ", ".join(where)} for (n, why), where in absent.items()]
        report.tables.append(("Not in the table:", table))
    return report


def verdicts(case: str, outcome: Race, nats: dict[str, float], peers: list[str]) -> list[Verdict]:
    """Optimum against the best peer's, time against the fastest of those whose optimum is no worse than ours."""
    if not peers:
        return []
    best = max(peers, key=lambda name: nats[name])
    found = [Verdict(f"nats by which the best optimum is higher, {case} ({best})", nats[best] - nats[OURS], SAME)]
    fastest = min(peers, key=outcome.best)
    label = f"times faster than the fastest peer, {case} ({fastest})"
    return [*found, Verdict(label, outcome.ratio(fastest, OURS), GOAL, ">=")]
