r"""Laplace's approximation around a mode of the hyperparameters: error bars, and the evidence of the model.

.. math:: \log p(t) \approx \log p(t|\hat\theta)\,p(\hat\theta) + \tfrac k2\log 2\pi - \tfrac12\log|H|

H is the Hessian of :math:`-\log p(t|\theta)p(\theta)`, k the number of parameters (MacKay 1992, eq. 2.4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from bayessel._check import FloatArray

#: step of the differences, in θ: its square times a fourth derivative is lost, and rounding of the gradient over it
STEP = 1e-4


def hessian_of(
    gradient: Callable[[FloatArray], FloatArray], theta: FloatArray, free: npt.NDArray[np.bool_]
) -> FloatArray:
    """Hessian of a function over its free parameters, by central differences of its gradient, (f, f).

    Two gradients for each free parameter, which costs what the matrices Q⁻¹ ∂Q/∂θ_i of the closed form would cost.
    """
    rows = []
    for i in np.flatnonzero(free):
        move = np.zeros(len(theta))
        move[i] = STEP
        rows.append((gradient(theta + move) - gradient(theta - move))[free] / (2.0 * STEP))
    H = np.array(rows).reshape(len(rows), len(rows))
    return np.asarray(0.5 * (H + H.T))


def log_volume(H: FloatArray) -> float:
    """Log volume under a unit Gaussian peak of precision H: k/2 log 2π − ½ log|H|; NaN where it is no peak."""
    if not len(H):
        return 0.0
    if not np.isfinite(H).all():
        return float("nan")
    L, info = lapack.dpotrf(H, lower=1)
    return float("nan") if info else float(0.5 * len(H) * np.log(2.0 * np.pi) - np.log(np.diag(L)).sum())


def covariance_of(H: FloatArray) -> FloatArray:
    """Covariance H⁻¹ of the Gaussian approximation; NaN where H is not positive definite."""
    if not len(H):
        return np.zeros((0, 0))
    if np.isfinite(H).all():
        L, info = lapack.dpotrf(H, lower=1)
        if not info:
            inverse, _ = lapack.dpotri(L, lower=1)
            lower = np.tril(inverse)
            return np.asarray(lower + np.tril(lower, -1).T)
    return np.full_like(H, np.nan)
