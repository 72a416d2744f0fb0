"""Many networks moved at one temperature t, in compiled code.

They have the density p(weights | s) r(s)^{1−t} p(s)^t p(T | weights, s)^t with hyperparameters s, their prior p and a
reference r: independent Gamma distributions. All of a Gamma's conditionals stay what they were, with shapes and rates
between those of r and p. Gaussian noise of precision β is noise of precision tβ as far as weights can see; log losses
of classes are weighted by t. So the updates are those of `network`.
"""

from __future__ import annotations

import math

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit
from bayessel.mlp.energy import GAUSSIAN, forward, likelihood
from bayessel.samplers.network import Problem, Settings, Work, density_here, scales, trajectory
from bayessel.samplers.network_gibbs import LIMIT, log_gamma_draw, log_mean_draw

OPTIONS = {"error_model": "numpy"}


@njit(**OPTIONS)
def log_likelihoods(problem: Problem, Q: FloatArray, S: FloatArray, work: Work, found: FloatArray) -> None:
    """Log p(T | weights, noise) of each network, all constants kept; minus infinity where it is no number."""
    K, n = work.f.shape
    for i in range(len(Q)):
        forward(Q[i], problem.X, work.Z, work.f)
        work.beta[:] = 1.0
        constant = 0.0
        if problem.kind == GAUSSIAN:
            for k in range(K):
                work.beta[k] = math.exp(S[i, k])
                constant += 0.5 * n * (S[i, k] - math.log(2.0 * math.pi))
        value = constant + likelihood(problem.kind, work.f, problem.T, work.beta, 1.0)
        found[i] = value if math.isfinite(value) else -math.inf


@njit(**OPTIONS)
def _between(
    rng: np.random.Generator, r: FloatArray, shape: float, rate: float, t: float, count: float, squares: float
) -> float:
    """Log of a precision between reference r = (shape, rate) and a Gamma prior, given `count` squares."""
    shape = (1.0 - t) * r[0] + t * shape + 0.5 * count
    return log_gamma_draw(rng, shape, (1.0 - t) * r[1] + t * rate + 0.5 * squares)


@njit(**OPTIONS)
def _hyperparameters(
    rng: np.random.Generator,
    problem: Problem,
    reference: FloatArray,
    q: FloatArray,
    s: FloatArray,
    f: FloatArray,
    H: int,
    t: float,
) -> None:
    """Draw all of them given weights and outputs f (K, n), as `network_gibbs` does for the posterior."""
    D, n = problem.X.shape
    K, prior = len(f), problem.prior
    if problem.kind == GAUSSIAN:
        for k in range(K):
            squares = 0.0
            for j in range(n):
                r = problem.T[k, j] - f[k, j]
                squares += r * r
            s[k] = _between(rng, reference[k], prior[k, 0], prior[k, 1], t, t * n, t * squares)
    at_b = H + D * H
    at_v = at_b + K
    at_w = at_v + H * K
    s[K] = _between(rng, reference[K], prior[K, 0], prior[K, 1], t, H, np.sum(q[:H] ** 2))
    squares = np.sum(q[at_v:at_w] ** 2)
    s[K + 1] = _between(rng, reference[K + 1], prior[K + 1, 0], prior[K + 1, 1], t, H * K, squares)
    for layer in range(2):
        at, first, m = (K + 2, H, H) if layer == 0 else (K + 3 + D, at_w, K)
        mean = at + D
        shape = prior[at, 0]
        rate, total = shape * math.exp(-s[mean]), 0.0
        for i in range(D):
            squares = np.sum(q[first + i * m : first + (i + 1) * m] ** 2)
            s[at + i] = _between(rng, reference[at + i], shape, rate, t, m, squares)
            total += math.exp(s[at + i])
        c = (1.0 - t) * reference[mean, 0] + t * (prior[mean, 0] - D * shape)
        a = (1.0 - t) * reference[mean, 1] + t * prior[mean, 1]
        s[mean] = min(max(log_mean_draw(rng, c, a, t * shape * total), -LIMIT), LIMIT)


@njit(**OPTIONS)
def move(
    rng: np.random.Generator,
    problem: Problem,
    reference: FloatArray,
    Q: FloatArray,
    S: FloatArray,
    work: Work,
    settings: Settings,
    temperature: float,
    updates: int,
) -> tuple[float, int]:
    """Some updates of each network, weights Q (N, P) and log hyperparameters S (N, ·), in place.

    Returns the mean acceptance rate and the number of gradients.
    """
    H, K = work.Z.shape[0], work.f.shape[0]
    N, P = Q.shape
    space, g, p, tempered = np.empty((7, P)), np.empty(P), np.empty(P), np.empty(S.shape[1])
    rates, gradients = 0.0, 0
    for i in range(N):
        q, s = Q[i], S[i]
        for _ in range(updates):
            forward(q, problem.X, work.Z, work.f)
            if settings.draw_precisions:
                _hyperparameters(rng, problem, reference, q, s, work.f, H, temperature)
            tempered[:] = s
            if problem.kind == GAUSSIAN:
                for k in range(K):
                    tempered[k] += math.log(temperature)
            scales(problem, tempered, work)
            if problem.kind != GAUSSIAN:
                work.beta[:] = temperature
            value = density_here(problem, q, tempered, work, g)
            for j in range(P):
                p[j] = rng.standard_normal()
            rate, _, _, spent = trajectory(rng, problem, q, p, g, value, tempered, work, settings, space)
            rates += rate if math.isfinite(rate) else 0.0
            gradients += 1 + spent
    return rates / (N * updates), gradients
