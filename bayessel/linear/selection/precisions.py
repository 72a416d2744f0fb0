r"""Both precisions of a small model from its singular values, and what the model is then worth.

With :math:`\Phi = QR`, :math:`R = U s V^T` and :math:`\tilde z = U^TQ^Tt` the evidence at
:math:`\lambda = \alpha/\beta` is made of sums over the M singular values, and the best noise precision is known in
closed form (see `bayessel.linear.type2`). What a search ranks models by is the third-level evidence (Barrio, Romero and
Belanche 2010, eq. 18), :math:`\log p(t|\hat\alpha,\hat\beta)+\tfrac12\log\frac2\gamma+\tfrac12\log\frac2{N-\gamma}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear._evidence import log_density

#: the Gaussian approximation grows without bound as gamma, or N - gamma, goes to zero; it is held from here on
LEAST_DETERMINED = 0.1
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class SingularModel:
    """A model in the coordinates of its singular vectors.

    Attributes
    ----------
    s, z : (M,) arrays
        Singular values and the target's coordinates.
    rss : float
        Squared length of the target outside the span.
    n_rows : float
        N; of rows with weights their sum.
    spread2 : float or None
        Squared length of the centred target where a bias with a flat prior was projected out, else None.
    beta_max : float
        Largest noise precision: beyond it lies the rounding of the targets.
    U, Vt
        Singular vectors of R.
    """

    s: FloatArray
    z: FloatArray
    rss: float
    n_rows: float
    spread2: float | None
    beta_max: float
    U: FloatArray
    Vt: FloatArray

    @cached_property
    def n_free(self) -> float:
        """Rows left after the bias."""
        return self.n_rows - (self.spread2 is not None)

    @cached_property
    def s2(self) -> FloatArray:
        """Squared singular values."""
        return np.asarray(self.s * self.s)

    @cached_property
    def z2(self) -> FloatArray:
        """Squared coordinates of the target."""
        return np.asarray(self.z * self.z)


@dataclass(frozen=True)
class PrecisionLevel:
    """Precisions of a model and its worth there.

    Attributes
    ----------
    lam, beta : float
        alpha/beta and the noise precision.
    gamma, left : float
        Well-determined parameters, and n - gamma.
    log_evidence, value : float
        log p(t | alpha, beta), and with the precisions integrated out.
    """

    lam: float
    beta: float
    gamma: float
    left: float
    log_evidence: float
    value: float


def third_level(log_evidence: float, gamma: float, left: float) -> float:
    """Gaussian approximation of the third-level evidence, bounded for the worst determined models."""
    return log_evidence - 0.5 * float(np.log(0.25 * max(gamma, LEAST_DETERMINED) * max(left, LEAST_DETERMINED)))


def level_at(small: SingularModel, lam: float, beta: float) -> PrecisionLevel:
    """Evaluate at given precisions."""
    s2 = small.s2
    shrink = lam / (s2 + lam)
    gamma = float(s2 @ shrink) / lam
    left = small.n_free - len(small.s) + float(shrink.sum())
    quad = small.rss + float(shrink @ small.z2)
    log_det = float(np.log1p(s2 / lam).sum())
    height = float(log_density(small.n_rows, float(np.log(beta)), log_det, beta * quad, small.spread2))
    return PrecisionLevel(lam, beta, gamma, left, height, third_level(height, gamma, left))


def best_level(small: SingularModel) -> PrecisionLevel:
    """Precisions at the highest maximum of the evidence: a scan of log lambda, then Newton's method on the slope.

    Always the highest, never the nearest: so the worth of a model does not depend on the way to it.
    """
    s2, z2 = small.s2, small.z2
    top = float(s2.max())
    # the ends are where nothing changes any more; a singular value makes a step about 2 wide in between
    least, most = np.log(top) + 2.0 * np.log(_EPS), np.log(top) + 27.6
    grid = np.arange(least, most, 1.0)
    lam = np.exp(grid)
    sums = np.add.outer(lam, s2)
    height = len(s2) * grid - np.log(sums).sum(axis=1)
    quad = small.rss + lam * (np.reciprocal(sums, out=sums) @ z2)
    beta = np.minimum(small.n_free / np.maximum(quad, 1e-300), small.beta_max)
    height += small.n_free * np.log(beta) - beta * quad
    k = int(np.argmax(height))
    u = float(grid[k])
    if 0 < k < len(grid) - 1 and beta[k] < small.beta_max:
        found = _climb(small, u, u - 1.5, u + 1.5, 60)
        u = u if found is None else found
    best = float(np.exp(u))
    least_quad = max(small.rss + best * float((z2 / (s2 + best)).sum()), 1e-300)
    return level_at(small, best, min(small.n_free / least_quad, small.beta_max))


def _climb(small: SingularModel, u: float, lo: float, hi: float, steps: int) -> float | None:
    """Go uphill to where the slope is zero, by Newton's method kept between bounds; None without success."""
    reach = 2.0
    for _ in range(steps):
        slope, curvature = _slope(small, float(np.exp(u)))
        step = -slope / curvature if curvature < 0.0 else np.copysign(reach, slope)
        step = min(max(step, -reach), reach)
        if abs(step) < 1e-5:  # what is left is of the order of its square
            return u + step
        lo, hi = (u, hi) if slope > 0.0 else (lo, u)
        u = u + step if lo < u + step < hi else 0.5 * (lo + hi)
        if hi - lo < 1e-9:
            return None
    return None


def _slope(small: SingularModel, lam: float) -> tuple[float, float]:
    """First and second derivative of twice the profile with respect to log lambda."""
    z2 = small.z2
    # shares between 0 and 1: powers of s^2 alone leave double precision among columns of very different lengths
    kept, shrink = small.s2 / (small.s2 + lam), lam / (small.s2 + lam)
    gamma, spread = float(kept.sum()), float(kept @ shrink)
    quad = small.rss + float(shrink @ z2)
    first = float((kept * shrink) @ z2)  # lambda |w|^2, the derivative of quad
    second = first - 2.0 * float((kept * shrink**2) @ z2)
    n = small.n_free
    return gamma - n * first / quad, -spread - n * (second * quad - first**2) / quad**2


def settled(small: SingularModel, lam: float, beta: float, tol: float) -> bool:
    r"""Whether re-estimation would move the logarithms of alpha and beta by less than `tol` of their own widths.

    The widths are :math:`\sqrt{2/\gamma}` and :math:`\sqrt{2/(N-\gamma)}` (Barrio et al. 2010, eqs 10 and 47).
    """
    kept, shrink = small.s2 / (small.s2 + lam), lam / (small.s2 + lam)
    gamma = float(kept.sum())
    left = small.n_free - len(kept) + float(shrink.sum())
    penalty = float((kept * shrink) @ small.z2)  # lambda |w|^2
    misfit = small.rss + float(shrink**2 @ small.z2)
    if not (penalty > 0.0 and misfit > 0.0 and gamma > 0.0 and left > 0.0):
        return False
    beta_new = min(left / misfit, small.beta_max)
    return bool(
        abs(np.log(beta_new / beta)) < tol * np.sqrt(2.0 / left)
        and abs(np.log(gamma / (penalty * beta))) < tol * np.sqrt(2.0 / gamma)
    )
