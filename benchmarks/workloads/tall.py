"""Many rows, few columns: N up to 1e6, M = 100, in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bayessel as bs
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.peers import Problem, bayesian_ridge, bayesian_ridge_default, precisions, syrk
from benchmarks.reference import Judge

TITLE = "Evidence procedure, many rows"
TEXT = """The same comparison with M = 100 columns and a growing number of rows. The limit is one `dsyrk` over the
design."""
OURS, PEER = "fit_evidence", "BayesianRidge"


def problem(n: int, m: int) -> Problem:
    rng = np.random.default_rng([2, n, m])
    Phi = rng.normal(size=(n, m))
    return Phi, Phi @ rng.normal(size=m) + 3.0 * rng.normal(size=n)


def cases(quick: bool) -> list[Case]:
    m = 10 if quick else 100
    found = []
    for n in (1_000, 2_000) if quick else (10_000, 100_000, 1_000_000):
        found.append(
            Case(
                f"N = {n}, M = {m}",
                lambda n=n: problem(n, m),
                [
                    Contestant(OURS, "ours", lambda p: bs.linear.fit_evidence(*p)),
                    Contestant("fit_evidence(centre=True)", "ours", lambda p: bs.linear.fit_evidence(*p, centre=True)),
                    Contestant("syrk", "limit", lambda p: syrk(p[0])),
                    # ten seconds and more a time
                    Contestant(PEER, "peer", bayesian_ridge, every=1 if n <= 10_000 else 5),
                    Contestant(
                        f"{PEER}, as it comes (with bias)",
                        "peer",
                        bayesian_ridge_default,
                        every=1 if n <= 10_000 else 5,
                    ),
                ],
                rounds=2 if quick else 10,
                memory=n >= 1_000_000,
            )
        )
    return found


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    growth: dict[str, list[float]] = {}
    for case in cases(quick):
        data = case.data()
        outcome = race(case, data)
        judge = Judge(*data)
        extra: dict[str, dict[str, Any]] = {c.name: {} for c in case.contestants}
        for c in case.contestants:
            growth.setdefault(c.name, []).append(outcome.best(c.name))
            if len(growth[c.name]) > 1:
                extra[c.name]["time / time at the N before"] = growth[c.name][-1] / growth[c.name][-2]
            if case.memory:
                extra[c.name]["memory over the data (MB)"] = memory(case=case.name, contestant=c.name).added
            if c.role != "limit":
                extra[c.name]["log evidence"] = judge.log_evidence(*precisions(outcome.results[c.name]))
        report.add(case, outcome, extra)
    label = f"time over that of {PEER}, {case.name} (median ratio {outcome.typical_ratio(OURS, PEER):.3f})"
    report.verdicts.append(Verdict(label, outcome.ratio(OURS, PEER), 0.05))
    shortfall = extra[PEER]["log evidence"] - extra[OURS]["log evidence"]
    report.verdicts.append(Verdict(f"nats by which {PEER}'s log evidence is higher", shortfall, 1e-4))
    return report
