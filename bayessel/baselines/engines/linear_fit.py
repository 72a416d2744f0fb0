"""Least squares with a bias, ignoring directions in which the inputs hardly vary (Rasmussen 1996, section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status

#: eigenvalues of A = Σxxᵀ below this part of the largest count as zero
CUTOFF = 1e-6


def noise_floor(Y: FloatArray) -> FloatArray:
    """Variance (K,) below which nothing can be told from rounding of the targets (N, K)."""
    size = np.abs(Y).max(axis=0)
    return np.asarray((4.0 * np.finfo(float).eps * np.where(size > 0.0, size, 1.0)) ** 2)


@dataclass(frozen=True, eq=False)
class LinearBaselineFit:
    """Weights of the inputs and of the constant, and what they do not know.

    Attributes
    ----------
    coef : (D + 1, K) array
        Weights; the constant's are last.
    root : (D + 1, R) array
        A⁻¹ = root rootᵀ, of the R directions in use.
    noise_variance : (K,) array
        σ² = Σ(f − t)²/(N − R), eq. (3.7).
    status : Status
        How it went.
    """

    coef: FloatArray
    root: FloatArray
    noise_variance: FloatArray
    status: Status

    def predict(self, X: FloatArray) -> FloatArray:
        """Means (n, K)."""
        return np.asarray(X @ self.coef[:-1] + self.coef[-1])

    def variance(self, X: FloatArray) -> FloatArray:
        """Variances (n, K) of new observations, σ² + σ² xᵀA⁻¹x.

        The posterior of the weights under a flat prior is N(w, σ²A⁻¹), so the second term carries σ² as the first one
        does; eq. (3.9) as printed leaves it out.
        """
        spread = ((X @ self.root[:-1] + self.root[-1]) ** 2).sum(axis=1)
        return np.asarray((1.0 + spread)[:, None] * self.noise_variance)


def fit_linear_baseline(X: FloatArray, Y: FloatArray) -> LinearBaselineFit:
    """Fit targets (N, K) to inputs (N, D), which should have been brought to comparable scales.

    The singular values of the inputs are the roots of those of A: the same directions go as in the thesis, with twice
    the digits. Where there are no more rows than weights, the residuals say nothing of the noise; its variance is then
    that of the targets.
    """
    N = len(X)
    U, s, Vt = np.linalg.svd(np.hstack([X, np.ones((N, 1))]), full_matrices=False)
    used = s**2 >= CUTOFF * s[0] ** 2
    root = Vt[used].T / s[used]
    rank = int(used.sum())
    fitted = U[:, used] @ (U[:, used].T @ Y)
    squares = ((Y - fitted) ** 2).sum(axis=0)
    floor = noise_floor(Y)
    status = Status.COLLINEAR_SKIPPED if rank < X.shape[1] + 1 else Status.CONVERGED
    if N <= rank:
        noise, status = Y.var(axis=0), Status.TOO_FEW_ROWS
    else:
        noise = squares / (N - rank)
        if (noise <= N * floor).any():
            status = Status.NOISE_AT_FLOOR
    if (Y == Y[:1]).all():
        status = Status.CONSTANT_TARGET
    return LinearBaselineFit(root @ (U[:, used].T @ Y), root, np.maximum(noise, floor), status)
