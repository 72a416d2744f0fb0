"""The covariance of Rasmussen (1996), ch. 4: bias, linear part, ARD squared exponential, noise.

C(x, x') = a₀ + a₁ x·x' + v₀ exp(−½ Σ w_i (x_i − x'_i)²) + r² δ,   θ = log(v₀, r², w₁ … w_m, a₀, a₁).
"""

from __future__ import annotations

from typing import override

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance._base import Covariance, Evaluation
from bayessel.covariance.prior import Prior


class Standard(Covariance):
    """Bias + linear + ARD squared exponential + noise, with the priors and the start of the thesis."""

    @override
    def names(self, m: int) -> tuple[str, ...]:
        return ("log v0", "log r2", *(f"log w[{i}]" for i in range(m)), "log a0", "log a1")

    @override
    def start(self, m: int) -> FloatArray:
        return np.concatenate([[0.0, -2.0], np.full(m, -np.log(m)), [-2.0, -2.0]])

    @override
    def prior(self, m: int) -> Prior:
        """log v₀ ~ N(−1, 1); log a₀, log a₁, log r² ~ N(−3, 3²); 1/w_i ~ Gamma(½, 1/(2m²))."""
        weak = Prior.normal(-3.0, 3.0)
        return Prior.join(Prior.normal(-1.0, 1.0), weak, Prior.inverse_gamma(0.5, 0.5 / m**2, m), weak, weak)

    @override
    def noise(self, theta: FloatArray, m: int) -> float:
        return float(np.exp(theta[1]))

    @override
    def relevance(self, theta: FloatArray, m: int) -> FloatArray:
        return np.exp(theta[2 : 2 + m])

    @override
    def matrix(self, theta: FloatArray, X: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        Z = X if Z is None else Z
        scale, weight = np.exp(theta), np.exp(0.5 * theta[2:-2])
        squares = np.zeros((len(X), len(Z)))
        for x, z in zip((X * weight).T, (Z * weight).T, strict=True):
            squares += np.subtract.outer(x, z) ** 2
        return scale[-2] + scale[-1] * (X @ Z.T) + scale[0] * np.exp(-0.5 * squares)

    @override
    def diagonal(self, theta: FloatArray, X: FloatArray) -> FloatArray:
        scale = np.exp(theta)
        return scale[-2] + scale[-1] * np.einsum("ij,ij->i", X, X) + scale[0]

    @override
    def at(self, theta: FloatArray, X: FloatArray) -> Evaluation:
        return _At(theta, X)


class _At(Evaluation):
    def __init__(self, theta: FloatArray, X: FloatArray) -> None:
        self.X, self.v0, self.r2 = X, float(np.exp(theta[0])), float(np.exp(theta[1]))
        self.w, (self.a0, self.a1) = np.exp(theta[2:-2]), np.exp(theta[-2:])
        self.total = np.zeros(len(theta))

    def _exponential(self, rows: slice, cols: slice) -> tuple[FloatArray, FloatArray]:
        differences = (self.X[rows, None] - self.X[None, cols]) ** 2
        return self.v0 * np.exp(-0.5 * differences @ self.w), differences

    @override
    def fill(self, rows: slice, cols: slice, out: FloatArray) -> None:
        out[...] = self.a0 + self.a1 * (self.X[rows] @ self.X[cols].T) + self._exponential(rows, cols)[0]
        i = np.arange(rows.start, rows.stop)
        out[i - rows.start, i - cols.start] += self.r2

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        E, differences = self._exponential(rows, cols)
        G = H * E
        i = np.arange(rows.start, rows.stop)
        self.total[0] += G.sum()
        self.total[1] += self.r2 * H[i - rows.start, i - cols.start].sum()
        self.total[2:-2] += -0.5 * self.w * np.einsum("pq,pqi->i", G, differences)
        self.total[-2] += self.a0 * H.sum()
        self.total[-1] += self.a1 * np.sum(H * (self.X[rows] @ self.X[cols].T))

    @override
    def gradient(self) -> FloatArray:
        return self.total
