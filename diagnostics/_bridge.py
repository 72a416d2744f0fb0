r"""Bridge sampling: the evidence of a model from draws of its posterior.

With a normalised density g that overlaps the posterior, and any α that is positive where both are,

.. math:: p(t) = \int p(t|\theta)p(\theta)\,d\theta = \frac{E_g[\alpha\, p(t|\theta)p(\theta)]}{E_{post}[\alpha\, g]}

The α of least variance, :math:`1/(s_1 p(t|\theta)p(\theta)/p(t) + s_2 g)`, holds the answer itself and is iterated
(Meng and Wong 1996, section 3). Here g is the normal density with the mean and covariance of the draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from bayessel._check import FloatArray, as_count, as_float_array, check_magnitude, chosen_seed
from bayessel._types import Seed
from bayessel.policy import LARGEST_EVIDENCE_ERROR

#: the iteration ends when the answer moves less, in nats
_CLOSE = 1e-10
_MOST_STEPS = 1000
#: names this module's stream of random numbers
_STREAM = 1996
#: draws per parameter, below which their covariance means little
_LEAST_DRAWS = 4


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


def bridge_sampling(
    log_density: Callable[[FloatArray], float],
    draws: ArrayLike,
    *,
    n_proposals: int | None = None,
    random_state: Seed = 0,
) -> Bridge:
    """Log of the integral of exp(log_density) from draws of that density.

    Parameters
    ----------
    log_density
        θ (k,) -> log of the density that the draws follow, not normalised; −inf outside. θ must range over all of
        space: take logarithms of what is positive, and their Jacobian with them.
    draws : (draws, k) or (chains, draws, k) array
        Draws of it, in the order of their chains.
    n_proposals
        Draws of g; default as many as there are draws.
    random_state
        Seed or generator for those.

    Notes
    -----
    Each half of every chain chooses the g by which the other half is judged: a g fitted to the draws that it is
    compared with would make the evidence too small. The answer is the mean of the two. Each draw and each proposal
    costs one evaluation. What no draw has seen is not in the answer: chains that all miss a mode leave it out.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> found = bridge_sampling(lambda x: float(-0.5 * x @ x), rng.normal(size=(1000, 2)))
    >>> bool(abs(found.log_evidence - np.log(2 * np.pi)) < 4 * found.error + 1e-3), found.reliable
    (True, True)
    """
    theta = as_float_array(draws, "draws")
    theta = theta[None] if theta.ndim == 2 else theta
    if theta.ndim != 3 or theta.shape[2] < 1:
        raise ValueError(f"draws must be (draws, k) or (chains, draws, k), got shape {np.shape(draws)}")
    chains, count, k = theta.shape
    if chains * count < 2 * _LEAST_DRAWS * (k + 1) or count < 4:
        raise ValueError(
            f"bridge sampling of {k} parameters needs {2 * _LEAST_DRAWS * (k + 1)} draws, and 4 of every chain; got "
            f"{chains} x {count}"
        )
    if not np.isfinite(theta).all():
        raise ValueError("draws must be finite; leave out chains that broke down")
    check_magnitude(theta, "draws", tiny=True)
    # a stream of its own: draws often come from the same seed, and proposals made of the same numbers would agree with
    # them too well
    rng = np.random.default_rng([chosen_seed(random_state), _STREAM])
    proposals = chains * count if n_proposals is None else as_count(n_proposals, "n_proposals", 2)
    half = count // 2
    parts = (slice(0, half), slice(half, count))
    if any(_directions(theta[:, part]) < k for part in parts):
        return Bridge(float("nan"), float("inf"), chains * count, 0)
    values = np.array([[float(log_density(one)) for one in chain] for chain in theta])
    if not np.isfinite(values).all():
        raise ValueError("log_density is not finite at some of the draws: they are draws of something else")
    found = [
        _one_way(log_density, theta[:, fitted], theta[:, judged], values[:, judged], max(proposals // 2, 1), rng)
        for fitted, judged in (parts, parts[::-1])
    ]
    (first, a), (second, b) = found
    # what the halves differ by is error too, should it be more than theirs: one may have seen another part of space
    error = float("inf")
    if np.isfinite([first, second]).all():
        error = max(0.5 * float(np.hypot(a, b)), 0.5 * abs(first - second) / np.sqrt(2.0))
    return Bridge(0.5 * (first + second), error, chains * count, 2 * max(proposals // 2, 1))


def _one_way(
    log_density: Callable[[FloatArray], float],
    fitted: FloatArray,
    judged: FloatArray,
    values: FloatArray,
    count: int,
    rng: np.random.Generator,
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
    there = np.array([float(log_density(one)) for one in proposed]) - log_g(proposed)
    here = values - log_g(judged)
    effective = float(np.median([_effective(judged[:, :, i]) for i in range(k)]))
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
    square += over_posterior.var() / over_posterior.mean() ** 2 / _effective(over_posterior)
    # draws that agree in everything exclude no region that holds less of the posterior than one of them
    return answer, max(float(np.sqrt(square)), 1.0 / effective)


def _directions(theta: FloatArray) -> int:
    """Number of directions in which draws (chains, draws, k) moved; that chains stand in different places is none."""
    moves = (theta - theta[:, :1]).reshape(-1, theta.shape[2])
    scale = np.abs(moves).max(axis=0)
    return int(np.linalg.matrix_rank(moves / np.where(scale > 0.0, scale, 1.0)))


def _effective(x: FloatArray) -> float:
    """Effective number of draws of a mean over (chains, draws); a chain that stands still is one draw."""
    import arviz as az

    moving = int((np.ptp(x, axis=1) > 0.0).sum())
    if not moving:
        return 1.0
    most = moving * x.shape[1] + len(x) - moving
    return float(np.clip(az.ess(x, method="mean"), 1.0, most)) if x.shape[1] >= 4 else float(most)
