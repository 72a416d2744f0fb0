"""The relevance vector machine beside everything that installs: fastrvm, scikit-rvm, sklearn-rvm, ARDRegression."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.harness import Case, Contestant, Race, Report, Verdict, rows
from benchmarks.memory import ROOT
from benchmarks.reference import sparse_exact, sparse_judge
from benchmarks.rvm_cases import Data, problem
from benchmarks.rvm_worker import ENTRANTS, NOT_INSTALLED

TITLE = "Relevance vector machine"
TEXT = """N gaussians at the inputs and a bias as candidates, the same dictionary for all, nothing centred: 1-D sinc
(uniform on [-10, 10], noise 0.1, r = 2) and Friedman's first function of 8 uniform inputs (noise 1, r = 1.5). Every
contestant runs in processes of its own, by turns, after one small fit that does not count; the clock covers the fit on
a dictionary that is there already. Peers missing from this interpreter are looked for in the one that the environment
variable `PEERS_PYTHON` names. The log evidence is that of the columns, weights' precisions and noise that a contestant
returns, by one dense computation for all (nobody's own score is used). fastrvm is called at its compiled core, which
takes a dictionary; its precisions are corrected by the factor |phi|^4 by which they are off, and its two priority
flags are all tried ("both": additions first, deletions not first). `fastrvm.RVR` and `RVMRegressor` make their
dictionary themselves: memory over import compares those two. scikit-rvm (module skrvm; on no package index, from its
repository), sklearn-rvm and ARDRegression run as they come, ARDRegression with hyperpriors too weak to matter and not
beyond N = 1000 (hours)."""
OURS = "fit_rvm"
STOPPED = 24  # SIGXCPU
LIMIT = float(os.environ.get("PEERS_TIME_LIMIT", "200"))  # seconds of processor, after which a worker is stopped
LEFT_OUT = ("fit_rvm, columns on the fly", "fit_rvm, float32")  # the workload `rvm_growth` is about them
TOLERANCE = 1e-3  # nats: below this two evidences are the same


@dataclass
class Outcome:
    """What the turns of one contestant gave; `why` says what is missing."""

    seconds: list[float]
    cpu: list[float]
    row: dict[str, Any]
    reading: dict[str, Any] | None = None
    why: str | None = None


def python_for(name: str) -> str:
    """Return the interpreter of a contestant: ours and scikit-learn in this one, else that of PEERS_PYTHON."""
    here = ENTRANTS[name].module in ("bayessel", "sklearn")
    return sys.executable if here else os.environ.get("PEERS_PYTHON", sys.executable)


def one_turn(case: str, name: str, enough: float, found: Outcome) -> None:
    """Let a contestant fit in a fresh process; what it says is added to `found`."""
    threads = str(max([p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"], default=1))
    env = os.environ | {f"{key}_NUM_THREADS": threads for key in ("OPENBLAS", "OMP", "MKL")}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npz"
        command = [python_for(name), "-m", "benchmarks.rvm_worker", case, name, str(out), str(enough), str(LIMIT)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=20 * LIMIT
            )
        except subprocess.TimeoutExpired:
            found.why = f"stopped after {20 * LIMIT:g} s"
            return
        if done.returncode == -STOPPED:
            found.why = f"stopped after {LIMIT:g} s of processor"
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
        found.row = {
            "memory over the dictionary (MB)": said["added"] if not ENTRANTS[name].from_inputs else None,
            "memory over import (MB)": said["over_import"],
        }
        with np.load(out) as reading:
            found.reading = dict(reading)


def judge(found: Outcome, data: Data) -> None:
    """Log evidence of the returned model, and its size."""
    if found.reading is not None:
        basis, alpha, beta = (found.reading[key] for key in ("basis", "alpha", "beta"))
        found.row |= {
            "log evidence": sparse_judge(data.design(basis), data.t, alpha, float(beta)),
            "functions": len(basis),
            "noise": float(beta) ** -0.5,
        }


def cases(quick: bool) -> list[Case]:
    found = []
    for n in (60,) if quick else (200, 1000, 4000):
        for kind in ("sinc", "friedman"):
            names = [name for name in ENTRANTS if name not in LEFT_OUT and (name != "ARDRegression" or n <= 1000)]
            racers = [
                Contestant(name, "ours" if ENTRANTS[name].module == "bayessel" else "peer", lambda data: None)
                for name in names
            ]
            found.append(
                Case(f"{kind} {n}", lambda kind=kind, n=n: problem(f"{kind} {n}"), racers, rounds=1 if quick else 3)
            )
    return found


def turns(case: Case, enough: float) -> dict[str, Outcome]:
    """Everybody once, then again those who are not slow; the starting place moves."""
    found = {c.name: Outcome([], [], {}) for c in case.contestants}
    names = list(found)
    for k in range(case.rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            one = found[name]
            if k == 0 or (one.why is None and min(one.seconds) < 20):
                one_turn(case.name, name, enough, one)
                print(f"    {case.name}, {name}: {one.why or min(one.seconds)}", flush=True)
    return found


def exactness(found: Outcome, data: Data) -> float:
    """Relative error of the evidence that our engine reports for its own model, against 60 digits."""
    assert found.reading is not None
    basis, alpha, beta, said = (found.reading[key] for key in ("basis", "alpha", "beta", "said"))
    truth = sparse_exact(data.design(basis), data.t, alpha, float(beta))
    return float(abs(float(said) - truth) / abs(truth))


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    report.tables.append(("", []))
    errors, absent = [0.0], {}
    for case in cases(quick):
        data = case.data()
        found = turns(case, 0.0 if quick else 0.5)
        for one in found.values():
            judge(one, data)
        ran = {name: one for name, one in found.items() if one.reading is not None}
        if OURS not in ran:
            raise RuntimeError(f"{OURS} on {case.name}: {found[OURS].why}")
        outcome = Race({k: v.seconds for k, v in ran.items()}, {k: v.cpu for k, v in ran.items()})
        present = Case(case.name, case.data, [c for c in case.contestants if c.name in ran])
        best = ran[OURS].row["log evidence"]
        for one in ran.values():
            one.row["nats over ours"] = one.row["log evidence"] - best
        report.seconds[case.name] = outcome.seconds
        report.tables[0][1].extend(rows(present, outcome, {k: v.row for k, v in ran.items()}))
        for name, one in found.items():
            if one.why is not None:
                absent.setdefault((name, one.why), []).append(case.name)
        peers = [c.name for c in present.contestants if c.role == "peer"]
        report.verdicts += verdicts(case.name, len(data.t), ran, outcome, peers)
        if len(data.t) <= 1000:
            errors.append(exactness(ran[OURS], data))
    report.verdicts.append(
        Verdict("relative error of the evidence reported, N up to 1000, 60 digits", max(errors), 1e-8)
    )
    if absent:
        table = [{"contestant": n, "why": why, "cases": ", ".join(where)} for (n, why), where in absent.items()]
        report.tables.append(("Not in the table:", table))
    return report


def verdicts(case: str, n: int, ran: dict[str, Outcome], outcome: Race, peers: list[str]) -> list[Verdict]:
    """Evidence against the best peer's, time against the fastest's, memory against fastrvm's."""
    if not peers:
        return []
    found = []
    best = max(peers, key=lambda name: ran[name].row["log evidence"])
    found.append(
        Verdict(
            f"nats by which the best peer's evidence is higher, {case} ({best})",
            ran[best].row["nats over ours"],
            TOLERANCE,
        )
    )
    if n >= 1000:
        fastest = min((p for p in peers if not ENTRANTS[p].from_inputs), key=outcome.best)
        label = f"time over that of {fastest}, {case} (processor time {outcome.cpu_ratio(OURS, fastest):.2f})"
        found.append(Verdict(label, outcome.ratio(OURS, fastest), 1.0))
    if n >= 4000 and "RVMRegressor" in ran and "fastrvm.RVR" in ran:
        share = ran["RVMRegressor"].row["memory over import (MB)"] / ran["fastrvm.RVR"].row["memory over import (MB)"]
        found.append(Verdict(f"memory of RVMRegressor over that of fastrvm.RVR, {case}", share, 0.5))
    return found
