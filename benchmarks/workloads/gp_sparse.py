"""Gaussian processes of many rows through inducing inputs: bound, gradient and fit, beside GPy and GPyTorch."""

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
from threadpoolctl import threadpool_info

from benchmarks.delve_cases import folder
from benchmarks.gp_sparse_worker import ENTRANTS, NOT_INSTALLED, Data, Found, problem
from benchmarks.harness import Case, Contestant, Race, Report, Verdict, rows
from benchmarks.memory import ROOT

TITLE = "Gaussian processes of many rows: inducing inputs"
TEXT = """Titsias' bound with M inducing inputs and its gradient by all of them and by all hyperparameters, at the same
place for everybody (inducing inputs at the first M rows), and then a search of 100 steps: `fit_inducing` as it comes
(hyperparameters from the exact process on 1024 rows, inducing inputs chosen by conditional variance, L-BFGS), GPy's
L-BFGS-B, and GPyTorch's SGPR by Adam at a rate of 0.1, both from the first M rows and unit hyperparameters as in their
tutorials. One squared exponential with a weight for each of 8 inputs, and noise; no priors. `friedman`: Friedman's
first function, 3 inputs of no use; `kin40k` (rows, M): the robot arm of that name, which wants many inducing inputs;
it is not part of the project, `BENCHMARK_DATA` names a folder with `sparsegp/kin40k.npz`. Peers are looked for in the
interpreter that `PEERS_PYTHON` names. Everybody runs in processes of its own, by turns. The bound and the errors on
5000 test cases are of the place that comes back, by one computation for all; squared errors are over the variance of
the test targets. Memory is what the work added."""
OURS = "fit_inducing"
LIMIT = float(os.environ.get("PEERS_TIME_LIMIT", "900"))
ROUNDS = 2


def cases(quick: bool) -> list[Case]:
    names = ["friedman 300 20"] if quick else ["friedman 10000 200"]
    if not quick and (where := folder()) is not None and (where / "sparsegp" / "kin40k.npz").exists():
        names += ["kin40k 10000 200", "kin40k 10000 500"]
    racers = [
        Contestant(name, "ours" if entrant.module == "bayessel" else "peer", lambda data: None)
        for name, entrant in ENTRANTS.items()
    ]
    return [Case(name, lambda name=name: problem(name), racers, rounds=1 if quick else ROUNDS) for name in names]


class Outcome:
    """Turns of one contestant; `why` says what is missing."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.cpu: list[float] = []
        self.added = 0.0
        self.found: Found | None = None
        self.why: str | None = None


def one_turn(case: str, name: str, what: str, to: Outcome) -> None:
    """Let a contestant work in a fresh process."""
    threads = str(max([p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"], default=1))
    env = os.environ | {f"{key}_NUM_THREADS": threads for key in ("OPENBLAS", "OMP", "MKL")}
    here = ENTRANTS[name].module == "bayessel"
    python = sys.executable if here else os.environ.get("PEERS_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.npz"
        command = [python, "-m", "benchmarks.gp_sparse_worker", case, name, what, str(out)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            to.why = f"stopped after {LIMIT:g} s"
            return
        if done.returncode == NOT_INSTALLED:
            to.why = f"not installed ({json.loads(done.stdout.splitlines()[-1])['missing']})"
            return
        if done.returncode:
            to.why = f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
            return
        said = json.loads(done.stdout.splitlines()[-1])
        to.seconds += said["seconds"]
        to.cpu += said["cpu"]
        to.added = max(to.added, said["added"])
        with np.load(out) as result:
            to.found = Found(float(result["value"]), result["theta"], result["Z"])


def turns(case: Case, what: str) -> dict[str, Outcome]:
    """Everybody, as often as there are rounds; the starting place moves. Slow fits have one turn."""
    found = {c.name: Outcome() for c in case.contestants}
    names = list(found)
    for k in range(case.rounds if what == "evaluate" else 1):
        for name in names[k:] + names[:k]:
            if found[name].why is None:
                one_turn(case.name, name, what, found[name])
                seconds = min(found[name].seconds, default=np.nan)
                print(f"    {case.name}, {what}, {name}: {found[name].why or seconds}", flush=True)
    return found


def judged(data: Data, found: Found) -> dict[str, float]:
    """Bound and test losses at the place that a contestant found, by one computation for all."""
    from bayessel.covariance import Noise, SquaredExponential
    from bayessel.gp.inducing.bound import InducingMarginal

    bound = InducingMarginal(data.X, data.t, SquaredExponential() + Noise(), jitter=1e-8)
    mean, variance = bound.predict(found.theta, found.Z, bound.factor(found.theta, found.Z), data.X_test)
    variance = variance + np.exp(found.theta[-1])
    squared = (mean - data.t_test) ** 2
    return {
        "bound (nats)": bound.value(found.theta, found.Z),
        "squared error": float(squared.mean() / data.t_test.var()),
        "-log density": float(np.mean(0.5 * np.log(2 * np.pi * variance) + 0.5 * squared / variance)),
    }


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    report.tables = [("One bound and its gradient:", []), ("100 steps of a search:", [])]
    absent: dict[tuple[str, str], list[str]] = {}
    for case in cases(quick):
        data = case.data()
        for what, table in zip(("evaluate", "fit"), (report.tables[0][1], report.tables[1][1]), strict=True):
            every = turns(case, what)
            ran = {name: one for name, one in every.items() if one.found is not None}
            if OURS not in ran:
                raise RuntimeError(f"{OURS} on {case.name}: {every[OURS].why}")
            outcome = Race({k: v.seconds for k, v in ran.items()}, {k: v.cpu for k, v in ran.items()})
            extra: dict[str, dict[str, Any]] = {}
            for name, one in ran.items():
                assert one.found is not None
                extra[name] = {"seconds": outcome.best(name), "memory (MB)": one.added}
                extra[name] |= {"bound (nats)": one.found.value} if what == "evaluate" else judged(data, one.found)
            present = Case(case.name, case.data, [c for c in case.contestants if c.name in ran])
            table.extend(rows(present, outcome, extra))
            report.seconds[f"{case.name}, {what}"] = outcome.seconds
            peers = [name for name in ran if name != OURS]
            report.verdicts += verdicts(case.name, what, outcome, extra, peers)
            for name, one in every.items():
                if one.why is not None:
                    absent.setdefault((name, one.why), []).append(f"{case.name}, {what}")
    if absent:
        missing = [{"contestant": n, "why": why, "cases": ", ".join(where)} for (n, why), where in absent.items()]
        report.tables.append(("Not in the table:", missing))
    return report


def verdicts(case: str, what: str, outcome: Race, extra: dict[str, dict[str, Any]], peers: list[str]) -> list[Verdict]:
    """Time of an evaluation over the fastest peer's; bound and error of a fit beside the best peer's."""
    if not peers:
        return []
    if what == "evaluate":
        fastest = min(peers, key=outcome.best)
        apart = max(abs(extra[p]["bound (nats)"] / extra[OURS]["bound (nats)"] - 1.0) for p in peers)
        return [
            Verdict(f"time of an evaluation over that of {fastest}, {case}", outcome.ratio(OURS, fastest), 1.0),
            Verdict(f"largest relative difference of the bounds (jitters differ), {case}", apart, 1e-4),
        ]
    best = max(peers, key=lambda p: extra[p]["bound (nats)"])
    above = extra[best]["bound (nats)"] - extra[OURS]["bound (nats)"]
    return [
        Verdict(f"nats by which the best peer's bound is higher ({best}), {case}", above, 0.0),
        Verdict(f"time of that fit over ours ({best}), {case}", outcome.ratio(best, OURS), 1.0, ">="),
    ]
