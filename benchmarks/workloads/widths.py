"""One width per input, fitted by the evidence, beside scikit-learn's Gaussian process with an ARD kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import bayessel as bs
from bayessel.linear.widths.abf import profile_gradient
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.peers import Array, Problem

TITLE = "Fitted widths (ABF) beside a Gaussian process with ARD"
TEXT = """Eight inputs, uniform on [-1, 1], of which four matter: a sum of sin(3 x_d) plus noise of 0.1. `fit_abf` fits
one width per input of N gaussians at the inputs, from the peaks of a scan and from 3 more starts (1 more at N = 1000);
the peer is `GaussianProcessRegressor` with ConstantKernel * RBF(8 length-scales) + WhiteKernel, `normalize_y=True`,
from 4 starts and from 1. "error" is the root mean square error of the predicted mean against the noise-free function
at 2000 new inputs, "log density" the mean log predictive density of 2000 new noisy targets (0.884 is the best
possible). The log evidences are of different models and treat the mean differently (ours integrates over it, the peer
subtracts it). The second table times one evaluation of the objective and its gradient: most of a fit. Its limit is a
Gram matrix, a Cholesky factor, its inverse and one product of that size: what a gradient through the evidence of N
functions needs. The peer's covariance is the kernel matrix itself, so that it could do with less. Gaussians at the
inputs make the prior variance of the function follow the density of the data; that of a Gaussian process is the same
everywhere, which suits this target better."""
OURS, PEER = "fit_abf", "GaussianProcessRegressor"
FOUR = f"{PEER}, 4 starts"
ONE = f"{PEER}, 1 start"
LIMIT = "syrk + potrf + potri + symm"
D = 8


def function(X: Array) -> Array:
    return np.asarray(np.sin(3 * X[:, :4]).sum(axis=1))


def problem(n: int, seed: int) -> Problem:
    rng = np.random.default_rng([6, n, seed])
    X = rng.uniform(-1, 1, size=(n, D))
    return X, function(X) + 0.1 * rng.normal(size=n)


def gp(starts: int, p: Problem) -> GaussianProcessRegressor:
    kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(np.ones(D), (1e-2, 1e3)) + WhiteKernel(0.1, (1e-8, 1e2))
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=starts - 1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # irrelevant length-scales end at their bound, as they should
        return model.fit(*p)


def abf(starts: int, p: Problem) -> Any:
    return bs.linear.fit_abf(*p, n_starts=starts)


def judge(result: Any, p: Problem) -> dict[str, float]:
    """Errors at new inputs, and what the contestant says of its evidence."""
    rng = np.random.default_rng(66)
    X_new = rng.uniform(-1, 1, size=(2000, D))
    t_new = function(X_new) + 0.1 * rng.normal(size=2000)
    if isinstance(result, GaussianProcessRegressor):
        mean, std = result.predict(X_new, return_std=True)
        evidence = result.log_marginal_likelihood_value_ - len(p[1]) * np.log(p[1].std())
        scales = np.exp(result.kernel_.theta[1 : 1 + D])
    else:
        design = bs.RBFDictionary(p[0], result.widths, bias=False).design(X_new)
        there = result.fit.predict(design)
        mean, std = there.mean, there.std
        evidence, scales = result.log_evidence, result.widths
    density = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((t_new - mean) / std) ** 2
    return {
        "error": float(np.sqrt(np.mean((mean - function(X_new)) ** 2))),
        "log density": float(density.mean()),
        "log evidence": float(evidence),
        "irrelevant / relevant width": float(scales[4:].min() / scales[:4].max()),
    }


def one_gradient(p: Problem) -> Any:
    X, t = p
    return profile_gradient(np.log(0.05), np.full(D, np.log(2.0)), X, X, t - t.mean())


def gp_gradient(ready: tuple[GaussianProcessRegressor, Array]) -> Any:
    model, theta = ready
    return model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)


def gp_ready(p: Problem) -> Any:
    kernel = ConstantKernel(1.0) * RBF(np.full(D, 2**0.5)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(*p)
    return model, model.kernel_.theta


def bare_ready(p: Problem) -> Any:
    return bs.RBFDictionary(p[0], 2.0, bias=False).design(p[0])


def bare(Phi: Array) -> Any:
    K = blas.dsyrk(1.0, Phi.T, trans=1, lower=1)
    K[np.diag_indices(len(K))] += 0.05
    factor, _ = lapack.dpotrf(K, lower=1, overwrite_a=1)
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    return blas.dsymm(1.0, inverse, Phi.T, lower=1)


def cases(quick: bool) -> list[Case]:
    found = []
    for n, seeds, starts in ((40, 1, 3),) if quick else ((200, 1, 3), (500, 4, 3), (1000, 1, 1)):
        for seed in range(seeds):
            racers = [Contestant(OURS, "ours", partial(abf, starts)), Contestant(ONE, "peer", partial(gp, 1))]
            if n < 1000:  # minutes
                racers.append(Contestant(FOUR, "peer", partial(gp, 4)))
            found.append(Case(f"N = {n}, seed {seed}", partial(problem, n, seed), racers, rounds=4 if n < 500 else 1))
    return found


def gradient_cases(quick: bool) -> list[Case]:
    return [
        Case(
            f"N = {n}",
            partial(problem, n, 0),
            [
                Contestant(f"{OURS}: profile_gradient", "ours", one_gradient),
                Contestant(
                    f"{PEER}: log_marginal_likelihood",
                    "peer",
                    gp_gradient,
                    prepare=gp_ready,
                    every=1 if n < 1000 else 2,
                ),
                Contestant(LIMIT, "limit", bare, prepare=bare_ready),
            ],
            rounds=2 if quick else 6,
        )
        for n in ((40,) if quick else (200, 500, 1000))
    ]


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    slower: dict[str, float] = {}
    error, density, relevance = 0.0, 0.0, np.inf
    for case in cases(quick):
        data = case.data()
        outcome = race(case, data)
        found = {c.name: judge(outcome.results[c.name], data) for c in case.contestants}
        report.add(case, outcome, found)
        for peer in list(found)[1:]:
            slower[peer] = max(slower.get(peer, 0.0), outcome.ratio(OURS, peer))
            error = max(error, found[OURS]["error"] / found[peer]["error"])
            density = max(density, found[peer]["log density"] - found[OURS]["log density"])
        relevance = min(relevance, found[OURS]["irrelevant / relevant width"])
    gradients = Report()
    for case in gradient_cases(quick):
        gradients.add(case, race(case, case.data()))
    report.tables.append(("One evaluation of the objective and its gradient:", gradients.tables[0][1]))
    report.seconds |= {f"gradient, {name}": times for name, times in gradients.seconds.items()}
    for peer, value in slower.items():
        report.verdicts.append(Verdict(f"time over that of {peer}, the worst case", value, 1.0))
    report.verdicts += [
        Verdict(f"test error over that of {PEER}, the worst case", error, 1.0),
        Verdict("nats per new target by which the peer's log density is higher, the worst case", density, 0.0),
        Verdict("smallest irrelevant over largest relevant width, the worst case", float(relevance), 5.0, ">="),
    ]
    return report
