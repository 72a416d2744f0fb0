"""The evidence procedure where the data fit into the cache almost: N = 2000, M = 500."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bayessel as bs
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.peers import (
    Problem,
    bayesian_ridge,
    bayesian_ridge_default,
    gram_eigen,
    precisions,
    qr_svd,
    svd,
)
from benchmarks.reference import Judge

TITLE = "Evidence procedure, well conditioned"
TEXT = """`fit_evidence(Phi, t)` finds the best of all local maxima of the evidence; scikit-learn's BayesianRidge
follows MacKay's iteration to one. Independent normal columns, weights of size 0.1, noise 1. "log evidence" is that of
each contestant's (alpha, beta) under one and the same function, which belongs to neither."""
OURS, PEER = "fit_evidence", "BayesianRidge"


def problem(n: int, m: int) -> Problem:
    rng = np.random.default_rng([1, n, m])
    Phi = rng.normal(size=(n, m))
    return Phi, Phi @ (0.1 * rng.normal(size=m)) + rng.normal(size=n)


def cases(quick: bool) -> list[Case]:
    n, m = (120, 20) if quick else (2000, 500)
    return [
        Case(
            f"N = {n}, M = {m}",
            lambda: problem(n, m),
            [
                Contestant(OURS, "ours", lambda p: bs.linear.fit_evidence(*p)),
                Contestant(PEER, "peer", bayesian_ridge),
                Contestant(f"{PEER}, as it comes (with bias)", "peer", bayesian_ridge_default),
                Contestant("fit_evidence(centre=True)", "ours", lambda p: bs.linear.fit_evidence(*p, centre=True)),
                Contestant("syrk + syevd", "limit", gram_eigen),
                Contestant("geqrf + gesdd of R", "limit", qr_svd),
                Contestant("gesdd", "limit", svd),
            ],
            rounds=2 if quick else 15,
            memory=True,
        )
    ]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    (case,) = cases(quick)
    data = case.data()
    outcome = race(case, data)
    judge = Judge(*data)
    extra: dict[str, dict[str, Any]] = {}
    for c in case.contestants:
        extra[c.name] = {"memory over the data (MB)": memory(case=case.name, contestant=c.name).added}
        if c.role != "limit":
            # with a bias the model is another one; judged here without it, which costs it a little
            extra[c.name]["log evidence"] = judge.log_evidence(*precisions(outcome.results[c.name]))
    report.add(case, outcome, extra)
    label = f"time over that of {PEER} (median ratio {outcome.typical_ratio(OURS, PEER):.2f})"
    report.verdicts.append(Verdict(label, outcome.ratio(OURS, PEER), 0.5))
    shortfall = extra[PEER]["log evidence"] - extra[OURS]["log evidence"]
    report.verdicts.append(Verdict(f"nats by which {PEER}'s log evidence is higher", shortfall, 1e-6))
    return report
