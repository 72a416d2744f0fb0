"""The evidence procedure on wide gaussians, whose design has no condition number left in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import bayessel as bs
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.peers import Problem, bayesian_ridge, gram_eigen, precisions, qr_svd, svd
from benchmarks.reference import exact, extended, relative_error

TITLE = "Evidence procedure, condition number beyond 1e16"
TEXT = """Gaussian functions, far wider than their distance, and a smooth target with noise of 0.1 and of 1e-6. Through
the Gram matrix (syrk + syevd) the fit would be faster and wrong, so the limit here is a QR of the design and the SVD
of its triangle. "error" is that of the log evidence each contestant reports for its own (alpha, beta): against 80-bit
arithmetic at N = 2000, against 50 digits at N = 300."""
OURS, PEER = "fit_evidence", "BayesianRidge"


def problem(n: int, m: int, noise: float) -> Problem:
    rng = np.random.default_rng([3, n, m])
    x = np.sort(rng.uniform(size=n))
    Phi = bs.RBFDictionary(np.linspace(0, 1, m), width=0.1, bias=False).design(x)
    return Phi, np.sin(8 * x) + np.exp(-x) + noise * rng.normal(size=n)


def reported(contestant: str, data: Problem, result: Any) -> float:
    """What a contestant says its log evidence is (BayesianRidge says it only when asked before the fit)."""
    if contestant == OURS:
        return float(result.log_evidence)
    scored = bayesian_ridge(data, compute_score=True)
    assert scored.scores_.ndim == 1
    return float(scored.scores_[-1])


def cases(quick: bool) -> list[Case]:
    sizes = [(60, 20)] if quick else [(2000, 500), (300, 60)]
    return [
        Case(
            f"N = {n}, M = {m}, noise {noise:g}",
            lambda n=n, m=m, noise=noise: problem(n, m, noise),
            [
                Contestant(OURS, "ours", lambda p: bs.linear.fit_evidence(*p)),
                Contestant(PEER, "peer", bayesian_ridge),
                Contestant("geqrf + gesdd of R", "limit", qr_svd),
                Contestant("gesdd", "limit", svd),
                Contestant("syrk + syevd (wrong)", "limit", gram_eigen),
            ],
            rounds=2 if quick else 10,
            memory=n > 1000 and noise == 0.1,
        )
        for n, m in sizes
        for noise in (0.1, 1e-6)
    ]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    worst = 0.0
    for case in cases(quick):
        data = case.data()
        outcome = race(case, data)
        extra: dict[str, dict[str, Any]] = {c.name: {} for c in case.contestants}
        small = len(data[1]) <= 300
        best = {}
        for c in case.contestants:
            if case.memory:
                extra[c.name]["memory over the data (MB)"] = memory(case=case.name, contestant=c.name).added
            if c.role == "limit":
                continue
            result = outcome.results[c.name]
            truth = (exact if small else extended)(*data, *precisions(result))
            error = relative_error(reported(c.name, data, result), truth)
            extra[c.name] |= {"log evidence": float(truth), "error": error}
            best[c.name] = float(truth)
            worst = max(worst, error if c.name == OURS else 0.0)
        report.add(case, outcome, extra)
        if not small:
            label = f"time over that of {PEER}, {case.name} (median ratio {outcome.typical_ratio(OURS, PEER):.2f})"
            report.verdicts.append(Verdict(label, outcome.ratio(OURS, PEER), 0.5))
        report.verdicts.append(
            Verdict(f"nats by which {PEER}'s true log evidence is higher, {case.name}", best[PEER] - best[OURS], 1e-6)
        )
    report.verdicts.append(Verdict("worst error of our reported log evidence", worst, 1e-8))
    return report
