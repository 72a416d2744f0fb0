"""One sweep through the model of loss differences of several tasks (`bayessel.models.loss_differences`).

    y_kij = m_ki + σ_k t_ν,    m_ki = μ_k + ω_k z_ki,    z_ki ~ N(0, 1),    μ_k ~ N(μ₀, τ²),    μ₀ ~ N(0, c²).

A Student residual is a normal one with a precision λ of its own, λ ~ Gamma(ν/2, ν/2). Given these, all means are
jointly normal, and each ω_k and τ can be drawn with the means that depend on it integrated out: nothing walks down the
funnel between an effect's size and the effects, where Hamiltonian steps diverge.

1. σ_k, then ν, given the means, by slices of the Student density: no λ in it;
2. all λ, drawn and dropped at the end;
3. ω_k given μ₀ and τ, its means integrated out; then τ given all ω, μ₀ integrated out too: slices;
4. μ₀, μ, z from their joint normal distribution.

Each step leaves the posterior invariant: what a step has integrated out is drawn anew before anything depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel.samplers.slice import slice_sample

#: logarithms of scales stay inside; half-Cauchy priors reach further, to no purpose
LIMIT = 300.0


class DifferencesState(NamedTuple):
    """What the sweep moves: (T,) arrays, except μ₀, τ, ν − 1, and z of all training sets in a row."""

    mu_all: float
    tau: float
    mu: FloatArray
    omega: FloatArray
    z: FloatArray
    sigma: FloatArray
    excess: float


@dataclass(frozen=True, eq=False)
class Belief:
    """The priors: scales of half-Cauchy τ and ω, log-normal σ, Gamma of ν − 1 (None: ν is given), and c."""

    flat: float
    tau: float
    omega: FloatArray
    log_sigma: FloatArray
    log_sigma_sd: float
    excess: tuple[float, float] | None


class LossCases:
    """Differences in a row, sorted by training set and these by task; how many of each."""

    def __init__(self, y: FloatArray, per_set: npt.NDArray[np.intp], sets: npt.NDArray[np.intp]) -> None:
        self.y, self.per_set = y, per_set
        starts = np.concatenate([[0], np.cumsum(per_set)])
        self.starts = starts[:-1]
        self.of_task = [slice(a, b) for a, b in pairwise([0, *np.cumsum(sets).tolist()])]
        self.cases_of_task = [slice(starts[p.start], starts[p.stop]) for p in self.of_task]
        self.task_of_set = np.repeat(np.arange(len(sets)), sets)
        self.task_of_case = np.repeat(self.task_of_set, per_set)


def sweep(rng: np.random.Generator, cases: LossCases, belief: Belief, state: DifferencesState) -> DifferencesState:
    """Move everything once."""
    s = state
    squares = np.square(cases.y - np.repeat(s.mu[cases.task_of_set] + s.omega[cases.task_of_set] * s.z, cases.per_set))
    nu = 1.0 + s.excess
    sigma = np.array(
        [
            _spread(rng, squares[part], nu, one, belief.log_sigma[k], belief.log_sigma_sd)
            for k, (part, one) in enumerate(zip(cases.cases_of_task, s.sigma, strict=True))
        ]
    )
    squares /= np.square(sigma)[cases.task_of_case]
    excess = s.excess if belief.excess is None else _degrees(rng, squares, s.excess, belief.excess)
    nu = 1.0 + excess
    weight = rng.standard_gamma(0.5 * (nu + 1.0), len(squares)) / (0.5 * (nu + squares))
    total = np.add.reduceat(weight, cases.starts)
    average = np.add.reduceat(weight * cases.y, cases.starts) / total
    variance = np.square(sigma)[cases.task_of_set] / total  # of the average about the mean of its training set
    omega = np.array(
        [
            _size_of_effects(rng, one, average[part], variance[part], s.mu_all, s.tau, belief.omega[k])
            for k, (part, one) in enumerate(zip(cases.of_task, s.omega, strict=True))
        ]
    )
    found = [pooled(average[part], variance[part] + one**2) for part, one in zip(cases.of_task, omega, strict=True)]
    centre, spread2 = np.array([one[0] for one in found]), np.array([one[1] for one in found])
    tau, mu_all = s.tau, s.mu_all
    if len(omega) > 1:
        tau = _size_of_effects(rng, s.tau, centre, spread2, 0.0, belief.flat, belief.tau)
        mean, wide = pooled(centre, spread2 + tau**2)
        mu_all = float(_normal(rng, mean, wide, 0.0, belief.flat**2))
    mu = _normal(rng, centre, spread2, mu_all, tau**2)
    # z itself and not m − μ over ω: ω may be tiny
    w = omega[cases.task_of_set]
    gain = 1.0 / (variance + w**2)
    z = w * gain * (average - mu[cases.task_of_set]) + np.sqrt(variance * gain) * rng.standard_normal(len(w))
    return DifferencesState(mu_all, tau, mu, omega, z, sigma, excess)


def pooled(values: FloatArray, variances: FloatArray) -> tuple[float, float]:
    """The weighted mean of values of known variances, and its variance."""
    weight = 1.0 / variances
    total = float(weight.sum())
    return float(weight @ values) / total, 1.0 / total


def log_marginal(values: FloatArray, variances: FloatArray, mean: float, variance: float) -> float:
    """Log density of values ~ N(c, variances) with c ~ N(mean, variance) integrated out, up to a constant."""
    centre, own = pooled(values, variances)
    fit = float(np.sum(np.square(values - centre) / variances) + np.sum(np.log(variances)))
    return -0.5 * (fit - math.log(own) + (centre - mean) ** 2 / (own + variance) + math.log(own + variance))


def _normal(
    rng: np.random.Generator, mean: float | FloatArray, variance: float | FloatArray, m: float, v: float
) -> FloatArray:
    """Draw from N(mean, variance) times N(m, v)."""
    share = v / (variance + v)
    noise = np.sqrt(variance * share) * rng.standard_normal(np.shape(mean))
    return np.asarray(share * mean + (1.0 - share) * m + noise)


def _size_of_effects(
    rng: np.random.Generator, x: float, values: FloatArray, variances: FloatArray, mean: float, sd: float, scale: float
) -> float:
    """Draw x, the standard deviation of effects beside the variances; half-Cauchy prior."""

    def density(u: float) -> float:
        x = math.exp(u)
        return u - math.log1p((x / scale) ** 2) + log_marginal(values, variances + x * x, mean, sd * sd)

    return _next(density, x, rng, 1.5)


def _spread(
    rng: np.random.Generator, squares: FloatArray, nu: float, sigma: float, centre: float, width: float
) -> float:
    """Draw σ of one task from squared residuals; log-normal prior."""
    n = len(squares)

    def density(u: float) -> float:
        logs = float(np.log1p(squares * (math.exp(-2.0 * u) / nu)).sum())
        return -n * u - 0.5 * (nu + 1.0) * logs - 0.5 * ((u - centre) / width) ** 2

    return _next(density, sigma, rng, min(1.0, 4.0 / math.sqrt(n)))


def _degrees(rng: np.random.Generator, squares: FloatArray, excess: float, prior: tuple[float, float]) -> float:
    """Draw ν − 1 from squared residuals in units of σ; Gamma prior."""
    n = len(squares)
    shape, rate = prior

    def density(u: float) -> float:
        nu = 1.0 + math.exp(u)
        constant = math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu)
        if nu > 1e7:  # the difference of the two has no digits left
            constant = -0.5 * math.log(2.0)
        return shape * u - rate * (nu - 1.0) + n * constant - 0.5 * (nu + 1.0) * float(np.log1p(squares / nu).sum())

    return _next(density, excess, rng, min(1.0, 10.0 / math.sqrt(n)))


def _next(density: Callable[[float], float], x: float, rng: np.random.Generator, width: float) -> float:
    """Move a positive x by a slice of the density of its logarithm."""
    return math.exp(slice_sample(density, math.log(x), rng, width, lower=-LIMIT, upper=LIMIT).x)
