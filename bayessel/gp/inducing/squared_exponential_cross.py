"""The squared exponential between X and Z, the term that matters: everything is a product of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import override

import numpy as np
from scipy.spatial.distance import cdist

from bayessel._check import FloatArray
from bayessel.gp.inducing.cross_covariance import Cross

#: largest Σ w x² of which the expanded square may be taken: it costs so many units of the last place in the exponent
LARGEST_SQUARE = 1e4


class SquaredExponentialCross(Cross):
    """v exp(−½ Σ w_i (x_i − z_i)²) over some columns.

    Parameters
    ----------
    scale, weights
        Positions in θ of log v (None: v = 1) and of the log w_i (a position may repeat).
    columns
        Inputs that are looked at, one for each weight.
    """

    def __init__(
        self,
        scale: int | None,
        weights: Sequence[int],
        columns: Sequence[int],
        theta: FloatArray,
        X: FloatArray,
        Z: FloatArray,
    ) -> None:
        self.scale, self.weights, self.columns = scale, list(weights), list(columns)
        self.all_columns = self.columns == list(range(X.shape[1]))
        self.X = X
        log_v = 0.0 if scale is None else float(theta[scale])
        self.log_v, self.v = log_v, float(np.exp(log_v))
        self.w = np.exp(theta[self.weights])
        self.root = np.sqrt(self.w)
        inputs = self._inputs(Z)
        self.centre = inputs.mean(axis=0)
        self.Z = inputs - self.centre
        self.scaled = self.Z * self.root
        # −s/2 + log v = [x, −|x|²/2, 1] [z, 1, −|z|²/2 + log v]ᵀ: one product of matrices
        squares = np.einsum("ij,ij->i", self.scaled, self.scaled)
        self.largest = float(squares.max())
        self.right = np.column_stack([self.scaled, np.ones(len(Z)), log_v - 0.5 * squares])
        self.products = np.zeros((len(Z), self.Z.shape[1] + 1))  # Gᵀ [x, 1], G = H∘K
        self.squares = np.zeros(self.Z.shape[1])  # Σ_p (G 1)_p x_p²
        self.inner = np.zeros(self.Z.shape[1])  # the same sums over pairs of inducing inputs
        self.inner_Z = np.zeros_like(self.Z)
        self.by_scale = 0.0
        self.far = False

    def _inputs(self, X: FloatArray) -> FloatArray:
        return X if self.all_columns else X[:, self.columns]

    @override
    def variances(self, rows: slice) -> FloatArray:
        return np.full(rows.stop - rows.start, self.v)

    @override
    def values(self, rows: slice, out: FloatArray) -> FloatArray:
        x = (self._inputs(self.X[rows]) - self.centre) * self.root
        squares = np.einsum("ij,ij->i", x, x)
        self.far = max(self.largest, float(squares.max())) >= LARGEST_SQUARE
        if not self.far:
            np.matmul(np.column_stack([x, -0.5 * squares, np.ones(len(x))]), self.right.T, out=out)
        else:
            out[...] = cdist(x, self.scaled, "sqeuclidean")
            out *= -0.5
            out += self.log_v
        return np.exp(out, out=out)

    @override
    def among(self) -> FloatArray:
        # from differences: duplicates have v to the last digit
        K = np.asarray(cdist(self.scaled, self.scaled, "sqeuclidean"))
        K *= -0.5
        np.exp(K, out=K)
        K *= self.v
        return K

    @override
    def pull(self, rows: slice, H: FloatArray, K: FloatArray) -> None:
        x = self._inputs(self.X[rows]) - self.centre
        H *= K
        if self.far:
            self._pull_differences(x, H)
            return
        self.products += H.T @ np.column_stack([x, np.ones(len(x))])
        self.squares += (H @ np.ones(len(self.Z))) @ (x * x)

    def _pull_differences(self, x: FloatArray, G: FloatArray) -> None:
        """The same sums one input at a time, where expanding the square would lose them."""
        self.by_scale += float(G.sum())
        for i, weight in enumerate(self.w):
            d = np.subtract.outer(x[:, i], self.Z[:, i])
            weighted = G * d
            self.inner_Z[:, i] += weight * weighted.sum(axis=0)
            self.inner[i] += np.einsum("pq,pq->", weighted, d)

    @override
    def pull_among(self, H: FloatArray, K: FloatArray) -> None:
        G = H * K
        self.by_scale += float(G.sum())
        np.fill_diagonal(G, 0.0)  # no distance there, but rounding: the rest of a large square taken from itself
        sums, product = G.sum(axis=0), G @ self.Z
        self.inner += 2.0 * (sums @ (self.Z * self.Z) - np.einsum("ij,ij->j", self.Z, product))
        self.inner_Z += 2.0 * self.w * (product - sums[:, None] * self.Z)

    @override
    def pull_variance(self, h: float) -> None:
        self.by_scale += h * self.v * len(self.X)

    @override
    def add_gradient(self, by_theta: FloatArray, by_Z: FloatArray) -> None:
        product, sums = self.products[:, :-1], self.products[:, -1]
        squares = self.squares + sums @ (self.Z * self.Z) - 2.0 * np.einsum("ij,ij->j", self.Z, product)
        if self.scale is not None:
            by_theta[self.scale] += self.by_scale + float(sums.sum())
        np.subtract.at(by_theta, self.weights, 0.5 * self.w * (squares + self.inner))
        by_Z[:, self.columns] += self.w * (product - sums[:, None] * self.Z) + self.inner_Z
