r"""Bridge sampling: the evidence of a model from draws of its posterior.

With a normalised density g that overlaps the posterior, and any α that is positive where both are,

.. math:: p(t) = \int p(t|\theta)p(\theta)\,d\theta = \frac{E_g[\alpha\, p(t|\theta)p(\theta)]}{E_{post}[\alpha\, g]}

The α of least variance, :math:`1/(s_1 p(t|\theta)p(\theta)/p(t) + s_2 g)`, holds the answer itself and is iterated
(Meng and Wong 1996, section 3). Here g is the normal density with the mean and covariance of the draws. A posterior
that leans to one side overlaps with it better when it is averaged with its mirror image about that mean, which has the
same integral (warp-III of Meng and Schilling 2002).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.policy import LARGEST_EVIDENCE_ERROR

#: the iteration ends when the answer moves less, in nats
_CLOSE = 1e-10
_MOST_STEPS = 1000

#: (rows, k) -> log density of each row
type RowDensity = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Bridge:
    """An evidence by bridge sampling.

    Attributes
    ----------
    log_evidence : float
        Log of the integral, in nats; NaN where g and the draws have nothing in common, or where no chain moved in some
        direction.
    error : float
        Monte Carlo standard error of it, in nats: the relative one of the integral (Frühwirth-Schnatter 2004),
        with what the draws of a chain know of each other taken into account.
    n_draws, n_proposals : int
        Draws of the posterior, and of g.
    """

    log_evidence: float
    error: float
    n_draws: int
    n_proposals: int

    @property
    def reliable(self) -> bool:
        """Whether the error is so small that it can be believed; an error of nothing is none, it was not seen."""
        return bool(0.0 < self.error < LARGEST_EVIDENCE_ERROR)


def bridge(
    log_densities: RowDensity,
    theta: FloatArray,
    values: FloatArray,
    proposals: int,
    rng: np.random.Generator,
    *,
    mirrored: bool = False,
) -> Bridge:
    """Log of the integral of a density from draws of it.

    Parameters
    ----------
    theta, values : (chains, draws, k) and (chains, draws) array
        Draws, and the log density there.
    mirrored : bool
        Average the density with its mirror image about the mean of the draws; as many evaluations again.
    """
    chains, count = theta.shape[:2]
    parts = _halves(count)
    if not moved_everywhere(theta):
        return Bridge(float("nan"), float("inf"), chains * count, 0)
    each = max(proposals // 2, 1)
    found = [
        _one_way(log_densities, theta[:, fitted], theta[:, judged], values[:, judged], each, rng, mirrored)
        for fitted, judged in (parts, parts[::-1])
    ]
    (first, a), (second, b) = found
    # what the halves differ by is error too, should it be more than theirs: one may have seen another part of space
    error = float("inf")
    if np.isfinite([first, second]).all():
        error = max(0.5 * float(np.hypot(a, b)), 0.5 * abs(first - second) / np.sqrt(2.0))
    return Bridge(0.5 * (first + second), error, chains * count, 2 * each)


def moved_everywhere(theta: FloatArray) -> bool:
    """Whether the draws (chains, draws, k) moved in every direction, in both halves of the chains."""
    return all(_directions(theta[:, part]) == theta.shape[2] for part in _halves(theta.shape[1]))


def _halves(count: int) -> tuple[slice, slice]:
    return slice(0, count // 2), slice(count // 2, count)


def _one_way(
    log_densities: RowDensity,
    fitted: FloatArray,
    judged: FloatArray,
    values: FloatArray,
    count: int,
    rng: np.random.Generator,
    mirrored: bool,
) -> tuple[float, float]:
    """Return evidence and error with g fitted to some draws, judged by others."""
    k = fitted.shape[2]
    flat = fitted.reshape(-1, k)
    mean = flat.mean(axis=0)
    spread = np.atleast_2d(np.cov(flat.T))
    L = np.linalg.cholesky(spread + 1e-12 * np.diag(np.diag(spread)) + 1e-300 * np.eye(k))
    log_scale = float(np.log(np.diag(L)).sum()) + 0.5 * k * np.log(2.0 * np.pi)

    def log_g(theta: FloatArray) -> FloatArray:
        z = solve_triangular(L, (theta.reshape(-1, k) - mean).T, lower=True)
        return np.asarray(-0.5 * (z**2).sum(axis=0) - log_scale).reshape(theta.shape[:-1])

    proposed = mean + rng.standard_normal((count, k)) @ L.T
    there = log_densities(proposed)
    if mirrored:
        there = np.logaddexp(there, log_densities(2.0 * mean - proposed)) - np.log(2.0)
        mirror = log_densities((2.0 * mean - judged).reshape(-1, k)).reshape(values.shape)
        values = np.logaddexp(values, mirror) - np.log(2.0)
    there, here = there - log_g(proposed), values - log_g(judged)
    effective = float(np.median([effective_draws(judged[:, :, i]) for i in range(k)]))
    log_s1, log_s2 = np.log([effective, count]) - np.log(effective + count)
    answer = float(np.median(here))
    for _ in range(_MOST_STEPS):
        top = logsumexp(there - np.logaddexp(log_s1 + there - answer, log_s2)) - np.log(count)
        bottom = logsumexp(-np.logaddexp(log_s1 + here - answer, log_s2)) - np.log(here.size)
        new = float(top - bottom)
        if not np.isfinite(new):
            return float("nan"), float("inf")  # g and the posterior have not met
        moved, answer = abs(new - answer), new
        if moved < _CLOSE:
            break
    # the two averages, of p/(s1 p + s2 g) over g and of g/(s1 p + s2 g) over the posterior, and their relative errors
    over_g = np.exp(there - answer - np.logaddexp(log_s1 + there - answer, log_s2))
    over_posterior = np.exp(-np.logaddexp(log_s1 + here - answer, log_s2))
    if not over_g.mean() > 0.0:
        return float("nan"), float("inf")
    square = over_g.var() / over_g.mean() ** 2 / count
    square += over_posterior.var() / over_posterior.mean() ** 2 / effective_draws(over_posterior)
    # draws that agree in everything exclude no region that holds less of the posterior than one of them
    return answer, max(float(np.sqrt(square)), 1.0 / effective)


def _directions(theta: FloatArray) -> int:
    """Number of directions in which draws (chains, draws, k) moved; that chains stand in different places is none."""
    moves = (theta - theta[:, :1]).reshape(-1, theta.shape[2])
    scale = np.abs(moves).max(axis=0)
    return int(np.linalg.matrix_rank(moves / np.where(scale > 0.0, scale, 1.0)))


def effective_draws(x: FloatArray) -> float:
    """Effective number of draws of a mean over (chains, draws); a chain that stands still is one draw."""
    import arviz as az

    moving = int((np.ptp(x, axis=1) > 0.0).sum())
    if not moving:
        return 1.0
    most = moving * x.shape[1] + len(x) - moving
    return float(np.clip(az.ess(x, method="mean"), 1.0, most)) if x.shape[1] >= 4 else float(most)
