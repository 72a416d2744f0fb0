"""The log marginal likelihood of Gaussian-process regression and its whole gradient, from one Cholesky factor.

log p(t|θ) = −½ log|Q| − ½ tᵀQ⁻¹t − n/2 log 2π,   ∂/∂θ_i = ½ Σ (aaᵀ − Q⁻¹)∘∂Q/∂θ_i,   a = Q⁻¹t.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from bayessel._check import FloatArray, as_flag, as_float_array, as_matrix, as_target
from bayessel.covariance import Covariance, Standard
from bayessel.result import Status

#: rows of a panel: it should stay in the cache
PANEL = 128


class Factor(NamedTuple):
    """Q = LLᵀ with L lower triangular, a = Q⁻¹t, log|Q|."""

    L: FloatArray
    a: FloatArray
    log_det: float


class Marginal:
    """The log marginal likelihood of targets t at inputs X, a function of θ.

    Parameters
    ----------
    X : (n, m) array
    t : (n,) array
    covariance : Covariance, optional
        Default: `bayessel.covariance.Standard`.
    """

    def __init__(self, X: Any, t: Any, covariance: Covariance | None = None) -> None:
        self.X = as_matrix(X, "X", allow_1d=True)
        self.t = as_target(t, len(self.X))
        self.covariance = Standard() if covariance is None else covariance
        self.names = self.covariance.names(self.X.shape[1])
        self.size = len(self.names)
        self.status = Status.CONVERGED

    def _theta(self, theta: Any) -> FloatArray:
        vector = np.atleast_1d(as_float_array(theta, "theta"))
        if vector.shape != (self.size,):
            raise ValueError(f"theta must have {self.size} entries ({', '.join(self.names)}), got shape {vector.shape}")
        return vector

    def _panels(self) -> list[tuple[slice, slice]]:
        n = len(self.t)
        return [(slice(i, min(i + PANEL, n)), slice(0, min(i + PANEL, n))) for i in range(0, n, PANEL)]

    def _factorise(self, theta: FloatArray) -> tuple[Any, FloatArray]:
        """Evaluation, and the factor in the lower triangle of a C-ordered array (the upper one of its transpose)."""
        n = len(self.t)
        Q = np.empty((n, n))
        evaluation = self.covariance.at(theta, self.X)
        for rows, cols in self._panels():
            evaluation.fill(rows, cols, Q[rows, cols])
        if not np.isfinite(Q[np.tril_indices(n)]).all():
            return evaluation, np.empty(0)
        _, info = lapack.dpotrf(Q.T, lower=0, overwrite_a=1, clean=0)
        self.status = Status.ILL_CONDITIONED if info else Status.CONVERGED
        return evaluation, Q if not info else np.empty(0)

    def value(self, theta: Any) -> float:
        """log p(t|θ) in nats; −inf where Q is not positive definite in double precision."""
        return self.value_and_gradient(theta)[0]

    def value_and_gradient(self, theta: Any) -> tuple[float, FloatArray]:
        """log p(t|θ) and its derivatives; (−inf, zeros) where Q is not positive definite in double precision."""
        theta = self._theta(theta)
        evaluation, Q = self._factorise(theta)
        if not Q.size:
            return -np.inf, np.zeros(self.size)
        a, _ = lapack.dpotrs(Q.T, self.t, lower=0)
        half_log_det = float(np.log(np.diag(Q)).sum())
        value = -0.5 * float(self.t @ a) - half_log_det - 0.5 * len(a) * np.log(2.0 * np.pi)
        lapack.dpotri(Q.T, lower=0, overwrite_c=1)
        for rows, cols in self._panels():
            H = np.tril(np.outer(a[rows], a[cols]) - Q[rows, cols], rows.start)
            i = np.arange(rows.start, rows.stop)
            H[i - rows.start, i] *= 0.5
            evaluation.pull(rows, cols, H)
        return value, evaluation.gradient()

    def factor(self, theta: Any) -> Factor:
        """Cholesky factor and weights at θ, for predictions."""
        _, Q = self._factorise(self._theta(theta))
        if not Q.size:
            raise np.linalg.LinAlgError("the covariance matrix is not positive definite at this theta")
        L = np.tril(Q)
        a, _ = lapack.dpotrs(L, self.t, lower=1)
        return Factor(L, a, 2.0 * float(np.log(np.diag(L)).sum()))


def log_marginal(
    theta: Any, X: Any, t: Any, covariance: Covariance | None = None, return_grad: bool = False
) -> float | tuple[float, FloatArray]:
    """Log marginal likelihood of t at X in nats, with `return_grad` also its gradient; θ as `covariance.names` says.

    Examples
    --------
    >>> import numpy as np
    >>> X, t = np.zeros((1, 1)), np.zeros(1)
    >>> theta = np.log([1.0, 0.5, 1.0, 0.25, 0.25])  # v0, r2, w, a0, a1
    >>> round(log_marginal(theta, X, t), 6) == round(-0.5 * np.log(2 * np.pi * 1.75), 6)
    True
    """
    marginal = Marginal(X, t, covariance)
    value, gradient = marginal.value_and_gradient(theta)
    return (value, gradient) if as_flag(return_grad, "return_grad") else value
