"""Densities with nothing conjugate: what a gradient evaluation is worth to each sampler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.sampler_cases import target
from benchmarks.sampler_race import best_peer, footnotes, role, table, turns
from benchmarks.sampler_run import Setting
from benchmarks.sampler_worker import FIXED, PERSISTENT, PLAIN

TITLE = "Effective draws per gradient"
TEXT = """`gp n`: posterior of the 12 parameters of a Gaussian process on n cases of Friedman's function (8 inputs, 5 of
which matter), signal, noise, a length for each input, constant and linear terms; the gradient is hand-written, except
on JAX. `gaussian 100`: standard deviations from 0.01 to 1 along the axes; `rotated 100`: the same along random
directions, where a diagonal mass is of no use and effective draws are counted along those directions.

`PersistentHMC` runs in `bayessel.sample`, and once in `pm.sample`, as it comes: step size, mass, persistence, pace of
the uniform and updates per draw tuned by itself. "metropolis" has an accept/reject uniform drawn afresh, "windows" four
leapfrog steps between windows of two states. "Horowitz" is the 1996 setting: L = 1, a = 0.95, unit mass, a fixed step
size, 50 updates per draw. Peers with their defaults; nutpie's mass of low rank too. Four chains one after the other on
one core, 500 draws of tuning and 500 kept; gradients are those of the kept draws. All else as in `samplers`: the
effective size is that of the worst parameter, seconds are of processor and include tuning, whoever takes less than 20 s
has two turns, and whoever did not converge, or elsewhere, has no time."""
OURS = "PersistentHMC"
LEFT_OUT = {"gp": "Horowitz, ε = 0.01", "gaussian": "Horowitz, ε = 0.05", "rotated": "Horowitz, ε = 0.05"}


def cases(quick: bool) -> list[Case]:
    """Problems and names; the clock is each contestant's own."""
    found = []
    for name in ("gp 20", "gaussian 10") if quick else ("gp 100", "gaussian 100", "rotated 100"):
        # the step size that is beyond the stability limit of the one, or far too short for the other
        names = [one for one in PERSISTENT | FIXED | PLAIN if one != LEFT_OUT[name.split()[0]]]
        racers = [Contestant(one, "ours" if role(one) == "ours" else "peer", lambda data: None) for one in names]
        found.append(Case(name, lambda name=name: target(name), racers, rounds=1 if quick else 2))
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    found = {}
    n = 100 if quick else 500
    for case in cases(quick):
        found[case.name] = turns(case.name, {c.name: Setting(4, n, n, 1) for c in case.contestants}, case.rounds)
        rows = table(case.name, found[case.name], OURS, per_gradient=True)
        report.tables.append(("", rows))
        report.seconds[case.name] = {name: one.seconds for name, one in found[case.name].items()}
        report.verdicts += verdicts(case.name, rows)
    report.tables += footnotes(found)
    return report


def verdicts(case: str, rows: list[dict[str, Any]]) -> list[Verdict]:
    """Per gradient and per second against the best sound peer; agreement of means."""
    ours = next(row for row in rows if row["contestant"] == OURS)
    found = []
    key = "ESS / 1000 gradients"
    by_gradient = best_peer(rows, key)
    if by_gradient is not None:
        label = f"effective draws per gradient over those of the best peer ({by_gradient['contestant']}), {case}"
        found.append(Verdict(label, ours[key] / by_gradient[key], 1.0, ">="))
    by_second = best_peer(rows)
    if by_second is not None:
        label = f"effective draws per second over those of the best peer ({by_second['contestant']}), {case}"
        found.append(Verdict(label, ours["ESS / s"] / by_second["ESS / s"], 1.0, ">="))
    fixed = next(row for row in rows if row["contestant"] in FIXED)
    label = f"effective draws per gradient over those of the fixed setting, {case}"
    found.append(Verdict(label, ours[key] / max(fixed[key], 1e-9), 1.0, ">="))
    found.append(Verdict(f"our means from the peers', MCSE, {case}", ours["MCSE apart"], 4.0))
    return found
