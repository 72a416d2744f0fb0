"""Hyperparameters of a Gaussian process beside NUTS: effective draws per second, lever by lever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Case, Contestant, Report, Verdict
from benchmarks.sampler_cases import target
from benchmarks.sampler_race import best_peer, footnotes, role, table, turns
from benchmarks.sampler_run import Setting
from benchmarks.sampler_worker import AUTOMATIC, JUMPS, PROCESS

TITLE = "Gaussian processes: sampling the hyperparameters"
TEXT = """Posterior of the 12 parameters of a Gaussian process on n = 200 cases of Friedman's function, 8 inputs, as in
`samplers_gradient`. Ours run on `bs.models.gp`, value and gradient from one Cholesky factor, by levers: NUTS of PyMC on
that model (the fused gradient and nothing else); persistent momentum with a tuned diagonal mass, with the uniform of
the decision drawn anew, and with plain trajectories of 8 steps; Laplace's Hessian at the mode for mass, with the search
for the mode in the time; a dense mass tuned from draws and gradients; and with it jumps from a fitted Student t, which
cost one density and no gradient ("gradients" does not count those). The peers have their defaults, and the gradient
that PyTensor or JAX finds. Two chains one after the other on one core, 1000 draws of tuning and 1000 kept; all else as
in `samplers`: the effective size is that of the worst parameter, the smaller of bulk and tail, seconds are of processor
and include tuning, and whoever did not converge, or elsewhere, has no time."""
OURS = JUMPS
GOAL = 10.0
PEERS = ["NumPyro NUTS", "BlackJAX NUTS"]


def cases(quick: bool) -> list[Case]:
    """Problems and names; the clock is each contestant's own."""
    found = []
    for name in ("gp 20",) if quick else ("gp 200",):
        racers = [
            Contestant(one, "ours" if role(one) == "ours" else "peer", lambda data: None)
            for one in [*PROCESS, *AUTOMATIC, *PEERS]
        ]
        found.append(Case(name, lambda name=name: target(name), racers, rounds=1 if quick else 2))
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    found = {}
    n = 100 if quick else 1000
    for case in cases(quick):
        found[case.name] = turns(case.name, {c.name: Setting(2, n, n, 1) for c in case.contestants}, case.rounds)
        rows = table(case.name, found[case.name], OURS, per_gradient=True)
        report.tables.append(("", rows))
        report.seconds[case.name] = {name: one.seconds for name, one in found[case.name].items()}
        ours = next(row for row in rows if row["contestant"] == OURS)
        best = best_peer(rows)
        if best is not None:
            label = f"effective draws per second over those of the best peer ({best['contestant']}), {case.name}"
            report.verdicts.append(Verdict(label, ours["ESS / s"] / best["ESS / s"], GOAL, ">="))
        report.verdicts.append(Verdict(f"our means from the peers', MCSE, {case.name}", ours["MCSE apart"], 4.0))
    report.tables += footnotes(found)
    return report
