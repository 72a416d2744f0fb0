r"""The gradient of the evidence in widths and precisions, for any precisions of the weights.

In columns X scaled so that all weights have the precision :math:`\lambda\beta`, with
:math:`G = X(X^TX+\lambda I)^{-1}`, :math:`\mu = G^Tt`, :math:`r = t-X\mu` and :math:`\gamma_i = (G^TX)_{ii}`,

.. math:: \frac{\partial L}{\partial\log\alpha_i} = \tfrac12(\gamma_i - \beta\lambda\mu_i^2),\quad
          \frac{\partial L}{\partial\log\beta} = \tfrac12(N-\textstyle\sum\gamma_i-\beta\|r\|^2),\quad
          \frac{\partial L}{\partial X} = D = \beta r\mu^T - G.

The scaled distance z is a sum over inputs, so the gradients in all widths come from two matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.optimize import OptimizeResult, minimize

from bayessel._check import FloatArray
from bayessel.basis import radial_slope
from bayessel.linear.thin_svd import thin_svd

_EPS = float(np.finfo(float).eps)


class EvidenceSlopes(NamedTuple):
    """The log evidence and its derivatives in the log precisions (M,) of weights and noise, and in the columns (N, M).

    The derivative in log beta holds the precisions of the weights, not lambda.
    """

    value: float
    by_alpha: FloatArray
    by_beta: float
    by_columns: FloatArray


def evidence_slopes(
    X: FloatArray, t: FloatArray, lam: float, beta: float | None = None, n_free: float | None = None
) -> EvidenceSlopes:
    """Evidence of columns at weight precision lam * beta; at the best beta where none is given.

    `n_free` counts the rows left by a bias that was taken out of X and t already, default all.
    """
    n = len(t) if n_free is None else n_free
    G, log_det = _ridge_operator(X, lam)
    mu = G.T @ t
    residual = t - X @ mu
    misfit, penalty = float(residual @ residual), lam * mu * mu
    quad = misfit + float(penalty.sum())
    if beta is None:
        beta = n / max(quad, (4.0 * _EPS) ** 2 * float(t @ t), 1e-300)
    gamma = np.einsum("ij,ij->j", G, X)
    D = np.multiply.outer(beta * residual, mu)
    D -= G
    return EvidenceSlopes(
        0.5 * float(n * np.log(beta / (2.0 * np.pi)) - log_det - beta * quad),
        0.5 * (gamma - beta * penalty),
        0.5 * (n - float(gamma.sum()) - beta * misfit),
        D,
    )


def width_slopes(
    D: FloatArray, kind: str, z: FloatArray, X: FloatArray, centers: FloatArray, r: FloatArray
) -> FloatArray:
    """Derivatives (D,) in the log widths from those in the radial functions, (N, M), at scaled distances z."""
    W = radial_slope(kind, z)
    W *= D  # times dz / dlog r_d = -2 (x_d - c_d)^2 / r_d^2, summed over the design
    origin = centers.mean(axis=0) if len(centers) else np.zeros(X.shape[1])
    A, B = (X - origin) / r, (centers - origin) / r
    return np.asarray(-2.0 * (W.sum(axis=1) @ A**2 + W.sum(axis=0) @ B**2) + 4.0 * np.einsum("nd,nd->d", A, W @ B))


def _ridge_operator(X: FloatArray, lam: float) -> tuple[FloatArray, float]:
    """G = X (X^T X + lambda I)^-1, log|I + X X^T/lambda|; by the smaller Gram matrix where that is safe."""
    n, m = X.shape
    wide = m >= n
    K = X @ X.T if wide else X.T @ X
    size = len(K)
    if size and _EPS * np.trace(K) < 1e-7 * lam:
        K[np.diag_indices(size)] += lam
        factor, info = sl.lapack.dpotrf(K, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            log_det = 2.0 * float(np.log(np.diag(factor)).sum()) - size * np.log(lam)
            inverse, _ = sl.lapack.dpotri(factor, lower=1, overwrite_c=1)
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            return (inverse @ X if wide else X @ inverse), log_det
    U, s, Vt = thin_svd(X)
    return (U * (s / (s**2 + lam))) @ Vt, float(np.log1p(s**2 / lam).sum())


def uphill(
    gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    bounds: list[tuple[float, float]],
    max_steps: int,
    tol: float,
) -> OptimizeResult:
    """Quasi-Newton ascent of a value with its gradient; `fun` is minus the value reached."""

    def downhill(theta: FloatArray) -> tuple[float, FloatArray]:
        value, slope = gradient(theta)
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return 1e300, np.zeros_like(theta)
        return -value, -slope

    options = {"maxiter": max_steps, "maxcor": 20, "ftol": tol, "gtol": 1e-6}
    return minimize(downhill, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
