"""Value and gradient of a Gaussian process' marginal likelihood, beside bare LAPACK, autodiff and the peers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_info

from benchmarks.gp_marginal_worker import ENTRANTS, HERE, NOT_INSTALLED, OF_ITS_OWN, problem
from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.memory import ROOT

TITLE = "Gaussian processes: likelihood and gradient"
TEXT = """One evaluation of log p(t|θ) and its derivatives, `bayessel.gp.Marginal`, on n rows of D inputs; "all terms of
the thesis" are bias, linear part, ARD squared exponential and noise (D + 4 parameters), everybody else has the squared
exponential with noise (D + 2), except where a family is named. "limit" is LAPACK's dpotrf and dpotri alone on the same
n, by the faster triangle, and is measured by turns with each contestant in its own process: an inverse and a factor is
what a gradient by closed form cannot do without. (Below 600 rows ours finds the inverse by halves, which is faster than
dpotri.) "in a PyMC model" is the compiled value and gradient of `bayessel.models.gp`, prior included; "PyTensor
autodiff" is what PyMC would do by itself. GPyTorch factors (Cholesky) and is in double precision, tinygp and PyTensor
are compiled outside the clock. Peers missing from this interpreter are looked for in that of the environment variable
`PEERS_PYTHON`. "n×n arrays" is what preparing and evaluating once adds to the process, in units of 8n² bytes."""
THESIS = "all terms of the thesis"
PLAIN = "squared exponential"
LIMIT = float(os.environ.get("PEERS_TIME_LIMIT", "600"))
GOAL = 1.3
#: relative difference of two values that are the same; GPy adds 1e-8 to the diagonal
SAME = 1e-6


@dataclass
class Outcome:
    """The best of all turns; `why` says what is missing."""

    seconds: float = float("inf")
    limit: float = float("inf")
    value: float = float("nan")
    added: float = float("nan")
    why: str | None = None

    @property
    def ratio(self) -> float:
        """Time over that of LAPACK in the same process."""
        return self.seconds / self.limit


def cases(quick: bool) -> list[Case]:
    names = ["n = 40, D = 3"] if quick else [f"n = {n}, D = {m}" for n in (256, 1024, 2048) for m in (8, 32)]
    racers = [
        Contestant(name, "ours" if module == "bayessel" else "peer", lambda data: None)
        for name, (module, _) in ENTRANTS.items()
    ]
    return [Case(name, lambda name=name: problem(name), racers, rounds=1 if quick else 2) for name in names]


def one_turn(case: str, name: str, seconds: float, found: Outcome) -> None:
    """Let a contestant evaluate in a fresh process; the better of this and what was found stays."""
    threads = str(max([p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"], default=1))
    env = os.environ | {f"{key}_NUM_THREADS": threads for key in ("OPENBLAS", "OMP", "MKL")}
    python = sys.executable if ENTRANTS[name][0] in HERE else os.environ.get("PEERS_PYTHON", sys.executable)
    command = [python, "-m", "benchmarks.gp_marginal_worker", case, name, str(seconds)]
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=LIMIT)
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
    # the pair of one process stays together: another process may have had another neighbour
    if said["seconds"] / said["limit"] < found.ratio or found.seconds == float("inf"):
        found.seconds, found.limit = said["seconds"], said["limit"]
    found.value, found.added = said["value"], said["added"]


def turns(case: Case, seconds: float) -> dict[str, Outcome]:
    """Everybody once, then once more; the starting place moves."""
    found = {c.name: Outcome() for c in case.contestants}
    names = list(found)
    for k in range(case.rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            if found[name].why is None:
                one_turn(case.name, name, seconds, found[name])
                print(f"    {case.name}, {name}: {found[name].why or found[name].ratio}", flush=True)
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    report.tables.append(("", []))
    absent: dict[tuple[str, str], list[str]] = {}
    for case in cases(quick):
        found = turns(case, 0.1 if quick else 4.0)
        for name in (THESIS, PLAIN):
            if found[name].why is not None:
                raise RuntimeError(f"{name} on {case.name}: {found[name].why}")
        n = len(case.data().t)
        for c in case.contestants:
            one = found[c.name]
            if one.why is not None:
                absent.setdefault((c.name, one.why), []).append(case.name)
                continue
            row = {"case": case.name, "contestant": c.name, "role": c.role, "milliseconds": 1e3 * one.seconds}
            row |= {"time / limit": one.ratio, "time / ours": one.ratio / found[PLAIN].ratio}
            report.tables[0][1].append(row | {"n×n arrays": 1e6 * one.added / (8.0 * n * n)})
        report.seconds[case.name] = {name: [one.seconds] for name, one in found.items() if one.why is None}
        report.verdicts += verdicts(case.name, n, found)
    if absent:
        table = [{"contestant": k, "why": why, "cases": ", ".join(where)} for (k, why), where in absent.items()]
        report.tables.append(("Not in the table:", table))
    return report


def verdicts(case: str, n: int, found: dict[str, Outcome]) -> list[Verdict]:
    """Time over the limit, memory, agreement with everybody, and the fastest of the others."""
    thesis, plain, model = found[THESIS], found[PLAIN], found["in a PyMC model"]
    bounded = "D = 8" in case
    label = f"time over dpotrf + dpotri, all terms of the thesis, {case}"
    promises = [Verdict(label, thesis.ratio, GOAL if bounded else 1.6)]
    if n >= 1024:  # below, a process is mostly interpreter
        promises.append(Verdict(f"n×n arrays in memory, {case}", 1e6 * thesis.added / (8.0 * n * n), 3.0))
    if model.why is None:
        label = f"time in a PyMC model over that of the function, {case}"
        promises.append(Verdict(label, model.ratio / plain.ratio, 1.05))
    others = {name: one for name, one in found.items() if one.why is None and ENTRANTS[name][0] != "bayessel"}
    if others:
        fastest = min(others, key=lambda name: others[name].ratio)
        label = f"times faster than the fastest of the others ({fastest}), {case}"
        promises.append(Verdict(label, others[fastest].ratio / plain.ratio, 1.0, ">="))
    values = [one.value for name, one in found.items() if one.why is None and name not in OF_ITS_OWN]
    apart = max(abs(value / plain.value - 1.0) for value in values)
    return [*promises, Verdict(f"largest relative difference of the values, {case}", apart, SAME)]
