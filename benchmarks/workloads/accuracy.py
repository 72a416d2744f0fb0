"""How many digits of the log evidence are right, as the prior gets wider and the noise smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg as sl

import bayessel as bs
from benchmarks.harness import Case, Report, Verdict
from benchmarks.peers import Array, Problem
from benchmarks.reference import exact, extended, relative_error

TITLE = "Digits of the log evidence"
TEXT = """Relative error against 50-digit arithmetic over problems with a growing ratio beta/alpha (noise precision
over weight precision; largest singular value of the design about 1 to 10). Half of the designs are wide gaussians with
condition numbers beyond 1e16, half are normal columns with one of them duplicated; half of the targets are drawn from
the model, half are arbitrary. Peers: the textbook's Cholesky factor of beta Phi'Phi + alpha I, and that of the
covariance I/beta + Phi Phi'/alpha. "failed" counts factorisations that broke down; they have no error and count as
infinite in the quantiles."""


def problem(alpha: float, beta: float, seed: int) -> Problem:
    rng = np.random.default_rng([7, round(np.log10(beta / alpha)), seed])
    n, m = ((8, 14), (12, 12), (15, 10), (20, 6))[seed // 2 % 4]
    if seed % 2:
        Phi = rng.normal(size=(n, m))
        Phi[:, -1] = Phi[:, 0]
    else:
        x = np.sort(rng.uniform(size=n))
        Phi = bs.RBFDictionary(np.linspace(0, 1, m), width=float(rng.choice([0.5, 2.0, 8.0])), bias=False).design(x)
    if seed // 8 % 2:
        return Phi, rng.normal(size=n) * 10 ** rng.uniform(-1, 1)
    # a target that the model itself would produce: nothing in its evidence is large, so every digit counts
    return Phi, Phi @ rng.normal(size=m) / alpha**0.5 + rng.normal(size=n) / beta**0.5


def textbook(Phi: Array, t: Array, alpha: float, beta: float) -> float:
    """The weights' posterior precision H, its Cholesky factor, the mean, the misfit."""
    n, m = Phi.shape
    factor = sl.cho_factor(beta * Phi.T @ Phi + alpha * np.eye(m))
    mean = beta * sl.cho_solve(factor, Phi.T @ t)
    log_det = 2 * np.log(np.diag(factor[0])).sum() - n * np.log(beta) - m * np.log(alpha)
    misfit = beta * ((t - Phi @ mean) ** 2).sum() + alpha * (mean**2).sum()
    return float(-0.5 * (n * np.log(2 * np.pi) + log_det + misfit))


def covariance(Phi: Array, t: Array, alpha: float, beta: float) -> float:
    """One Gaussian density of all targets."""
    n = len(t)
    factor = sl.cho_factor(np.eye(n) / beta + Phi @ Phi.T / alpha)
    return float(-0.5 * (n * np.log(2 * np.pi) + 2 * np.log(np.diag(factor[0])).sum() + t @ sl.cho_solve(factor, t)))


Rows = list[dict[str, Any]]
OURS = "log_evidence"
METHODS: dict[str, Callable[[Array, Array, float, float], float]] = {
    OURS: bs.linear.log_evidence,
    "Cholesky of beta Phi'Phi + alpha I": textbook,
    "Cholesky of I/beta + Phi Phi'/alpha": covariance,
}


def cases(quick: bool) -> list[Case]:
    """Nothing here is raced."""
    return []


def large_problem(alpha: float, beta: float, seed: int) -> Problem:
    """More rows than `log_evidence` refines with twice the digits."""
    rng = np.random.default_rng([77, seed])
    n, m = 600, 100
    x = np.sort(rng.uniform(size=n))
    width = (0.1, 0.5, 2.0)[seed // 2 % 3]
    Phi = bs.RBFDictionary(np.linspace(0, 1, m), width=width, bias=False).design(x)
    if seed % 2:
        return Phi, rng.normal(size=n)
    return Phi, Phi @ rng.normal(size=m) / alpha**0.5 + rng.normal(size=n) / beta**0.5


def errors(
    exponent: int, count: int, make: Callable[..., Problem], truth: Callable[..., Any]
) -> dict[str, list[float]]:
    """Relative errors of every method over `count` problems with beta/alpha = 10^exponent."""
    found: dict[str, list[float]] = {name: [] for name in METHODS}
    beta = 10.0 ** (exponent / 2)
    alpha = beta / 10.0**exponent
    for seed in range(count):
        Phi, t = make(alpha, beta, seed)
        value = truth(Phi, t, alpha, beta)
        for name, method in METHODS.items():
            try:
                guess = method(Phi, t, alpha, beta)
            except sl.LinAlgError:
                guess = float("nan")
            found[name].append(relative_error(guess, value))
    return found


def summary(exponents: Sequence[int], count: int, make: Callable[..., Problem], truth: Callable[..., Any]) -> Rows:
    """Quantiles of the errors, one row per exponent and method."""
    table: Rows = []
    for exponent in exponents:
        for name, values in errors(exponent, count, make, truth).items():
            at = np.sort(values)
            table.append(
                {
                    "beta/alpha": f"1e{exponent}",
                    "method": name,
                    "median error": float(np.median(at)),
                    "90 % below": float(at[int(np.ceil(0.9 * len(at))) - 1]),
                    "largest": float(at[-1]),
                    "failed": f"{int(np.isinf(at).sum())} of {len(at)}",
                }
            )
    return table


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    exponents = (0, 16) if quick else range(0, 17, 2)
    report.tables.append(("", summary(exponents, 4 if quick else 40, problem, exact)))
    if not quick:
        title = "600 rows, 100 wide gaussians, half of the targets drawn from the model, against 80-bit arithmetic:"
        report.tables.append((title, summary(range(0, 17, 4), 6, large_problem, extended)))
    worst = max(row["largest"] for _, body in report.tables for row in body if row["method"] == OURS)
    report.verdicts.append(Verdict("largest error of ours", worst, 1e-8))
    return report
