r"""Predictive variance that grows back away from the data: functions added at the test inputs.

A sparse linear model is sure of itself where its functions have died out. Rasmussen and Quiñonero-Candela (2005) add,
for each test input :math:`x_*`, one function :math:`\phi_*` centred there, with prior precision :math:`\alpha_*`. With
the posterior of the others, :math:`\Sigma = (\beta\Phi^T\Phi + A)^{-1}`, and :math:`r = t - \Phi\mu`,

.. math:: s = \beta\phi_*^T\phi_* - \beta^2\phi_*^T\Phi\Sigma\Phi^T\phi_*,\quad q = \beta\phi_*^Tr,\quad
          e = \phi_*(x_*) - \beta\,\phi(x_*)^T\Sigma\Phi^T\phi_*

the mean moves by :math:`eq/(\alpha_*+s)` and the variance grows by :math:`e^2/(\alpha_*+s)`. Nothing is fitted again.

One function is not free enough just outside the data, where it must still agree with the nearest rows. With
`KernelFeatures` the prior is a whole Gaussian process of the same kernel and of variance :math:`1/\alpha_*`: as many of
its directions as the pivoted Cholesky factorisation of the kernel finds (at most `rank`) join the model, and the one
function added at each test input is what they leave of the kernel there. At rank 0 this is the scheme above; at full
rank it is exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr, solve_triangular

from bayessel._check import FloatArray

Kernel = Callable[[FloatArray, FloatArray], FloatArray]
#: kernel directions weaker than this are left to the function added at the test input
_NEGLIGIBLE = 1e-10
_ZERO = 1e-290


class KernelFeatures:
    """Columns V of the leading directions of a kernel: K ≈ VVᵀ on the rows, by pivoted Cholesky.

    Parameters
    ----------
    kernel
        Positive definite k(A, B), with k(x, x) = 1.
    X : (N, D) array
        Rows to choose pivots from.
    rank : int
        Most columns to take; fewer when nothing is left before.
    """

    def __init__(self, kernel: Kernel, X: FloatArray, rank: int) -> None:
        left = np.ones(len(X))
        V = np.zeros((len(X), min(rank, len(X))), order="F")
        chosen: list[int] = []
        for j in range(V.shape[1]):
            pivot = int(np.argmax(left))
            if left[pivot] <= _NEGLIGIBLE:
                break
            column = kernel(X, X[pivot : pivot + 1])[:, 0] - V[:, :j] @ V[pivot, :j]
            V[:, j] = column / np.sqrt(left[pivot])
            left -= V[:, j] ** 2
            left[pivot] = 0.0
            chosen.append(pivot)
        self._kernel, self._pivots = kernel, X[chosen]
        self.on_rows: FloatArray = V[:, : len(chosen)]
        self._factor = np.tril(self.on_rows[chosen])

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the same columns at other inputs."""
        if not len(self._pivots):
            return np.zeros((len(X), 0))
        return np.asarray(solve_triangular(self._factor, self._kernel(self._pivots, X), lower=True).T)


class Healing:
    """A linear model with functions added at the test inputs.

    Parameters
    ----------
    design, target, alpha, beta
        Columns in use (N, k), target (N,), weight precisions (k,), noise precision.
    X : (N, D) array
        Inputs of the rows.
    kernel
        k(A, B) -> (len(A), len(B)): function centred at each row of B, evaluated at A; k(x, x) = 1.
    precision : float
        Prior precision α* of what is added; infinity adds nothing.
    features : KernelFeatures, optional
        Directions of the process that join the model (positive definite kernels only).
    bias_precision : float, optional
        Prior precision of a constant that joins the model too.
    """

    def __init__(
        self,
        design: FloatArray,
        target: FloatArray,
        alpha: FloatArray,
        beta: float,
        X: FloatArray,
        kernel: Kernel,
        precision: float,
        *,
        features: KernelFeatures | None = None,
        bias_precision: float | None = None,
    ) -> None:
        self._X, self._kernel, self._precision, self._beta = X, kernel, precision, beta
        self._features = features if np.isfinite(precision) else None
        self._has_bias = bias_precision is not None
        columns, precisions = [design], [alpha]
        if self._features is not None:
            columns.append(self._features.on_rows)
            precisions.append(np.full(self._features.on_rows.shape[1], precision))
        if bias_precision is not None:
            columns.append(np.ones((len(design), 1)))
            precisions.append(np.array([bias_precision]))
        self._scale = np.concatenate(precisions) ** -0.5
        body = np.hstack(columns) * (np.sqrt(beta) * self._scale)
        # the orthogonal factor of the model with its prior as further rows: nothing is squared
        Q, self._R = qr(np.vstack([body, np.eye(body.shape[1])]), mode="economic")
        self._top, self._bottom = Q[: len(design)], Q[len(design) :]
        pulled = self._top.T @ target
        self._coef = np.sqrt(beta) * pulled
        self._residual = target - self._top @ pulled

    def predict(self, X_new: FloatArray, design_new: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the function at new inputs, noise not included, in blocks of limited memory."""
        mean, variance = np.empty(len(X_new)), np.empty(len(X_new))
        step = max(1, 2**21 // len(self._X))
        for start in range(0, len(X_new), step):
            rows = slice(start, start + step)
            mean[rows], variance[rows] = self._block(X_new[rows], design_new[rows])
        return mean, variance

    def _block(self, X_new: FloatArray, design_new: FloatArray) -> tuple[FloatArray, FloatArray]:
        columns = [design_new]
        if self._features is not None:
            columns.append(self._features(X_new))
        if self._has_bias:
            columns.append(np.ones((len(X_new), 1)))
        rows = np.hstack(columns) * self._scale
        Z = solve_triangular(self._R, rows.T, trans="T") if rows.shape[1] else np.zeros((0, len(X_new)))
        mean, variance = Z.T @ self._coef, np.einsum("ij,ij->j", Z, Z)
        if np.isinf(self._precision):
            return mean, variance
        added, peak = self._kernel(self._X, X_new), np.ones(len(X_new))
        if self._features is not None:
            added -= self._features.on_rows @ columns[1].T
            peak = np.maximum(1.0 - np.einsum("ij,ij->i", columns[1], columns[1]), 0.0)
        # scaled so that each added function has prior variance k(x*, x*) / alpha* at its own test input
        used = peak > _NEGLIGIBLE
        root = np.sqrt(np.where(used, peak, 1.0))
        added = np.where(used, added / root, 0.0)
        along = self._top.T @ added
        e = np.where(used, root, 0.0) - np.sqrt(self._beta) * np.einsum("ij,ij->j", Z, along)
        # s as a sum of squares: what the columns cannot follow, and what their prior holds back
        across, held = added - self._top @ along, self._bottom @ along
        s = np.einsum("ij,ij->j", across, across) + np.einsum("ij,ij->j", held, held)
        # the mean in units of the noise, whose precision may be as large as numbers go
        total = self._precision / self._beta + s
        moves = used & (total > _ZERO)  # below, the function is zero at every row
        gain = np.where(moves, e / np.where(moves, total, 1.0), 0.0)
        with np.errstate(over="ignore"):
            growth = np.where(used, e * (e / (self._precision + self._beta * s)), 0.0)
        return mean + gain * (added.T @ self._residual), variance + growth
