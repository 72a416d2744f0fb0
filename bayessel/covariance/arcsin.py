"""The covariance of a neural network with infinitely many hidden units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, override

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance.base import Evaluation, Leaf, Parameters, Scratch


@dataclass(frozen=True, repr=False)
class Arcsin(Leaf):
    """v₀ (2/π) arcsin(2 x̃ᵀΣx̃' / √((1 + 2 x̃ᵀΣx̃)(1 + 2 x̃'ᵀΣx̃'))), x̃ = (1, x), Σ = diag(b, w).

    θ = (log v0, log b, log w[0], ...): variances of the output weights, of the hidden biases, and of the weights from
    each input, for hidden units erf(uᵀx̃) (Williams 1998, eq. 11; Rasmussen and Williams 2006, eq. 4.29).

    Examples
    --------
    >>> Arcsin().names(1)
    ('log v0', 'log b', 'log w[0]')
    >>> Arcsin().matrix(np.zeros(3), np.array([[0.0], [1.0]])).shape
    (2, 2)
    """

    @override
    def parameters(self, m: int) -> list[Parameters]:
        return [Parameters.amplitude(), Parameters.one("b", 0.0, 0.0, 1.5), Parameters.weights(self.used(m))]

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        return ArcsinEvaluation(self, X)


class ArcsinEvaluation(Evaluation):
    """ρ = A Bᵀ of scaled features; ∂ρ/∂log σ_i = 2σ_i x_i x'_i/√(dd') − ρ σ_i (x_i²/d + x'_i²/d'), d = 1 + 2 x̃ᵀΣx̃."""

    def __init__(self, covariance: Arcsin, X: FloatArray) -> None:
        self.covariance, self.m = covariance, X.shape[1]
        self.features = np.vstack([np.ones(len(X)), covariance.inputs(X)])
        self.F2 = self.features**2
        self.panel, self.pulled = Scratch(), Scratch()

    @override
    def at(self, theta: FloatArray) -> Self:
        self.v0, self.sigma = float(np.exp(theta[0])), np.exp(theta[1:])
        self.scale = self.v0 * (2.0 / np.pi)
        self.d = 1.0 + 2.0 * (self.sigma @ self.F2)
        # beyond, ρ of a row with itself would round to one, where the slope is infinite
        self.finite = bool(np.isfinite(self.v0) and self.d.max() < 1e15)
        self.right = self.features / np.sqrt(self.d)
        self.left = self.right * (2.0 * self.sigma)[:, None]
        self.own = 1.0 - 1.0 / self.d
        self.total = np.zeros(len(self.sigma))
        self.by_v0 = 0.0
        return self

    def _correlations(self, rows: slice, cols: slice) -> FloatArray:
        return np.matmul(self.left[:, rows].T, self.right[:, cols], out=self.panel(rows, cols))

    @override
    def values(self, rows: slice, cols: slice) -> FloatArray:
        rho = self._correlations(rows, cols)
        np.arcsin(rho, out=rho)
        rho *= self.scale
        return rho

    @override
    def diagonal(self) -> FloatArray:
        return np.asarray(self.scale * np.arcsin(self.own))

    def _slopes(self, rho: FloatArray, H: FloatArray, out: FloatArray) -> FloatArray:
        """H∘∂K/∂ρ."""
        np.multiply(rho, rho, out=out)
        np.subtract(1.0, out, out=out)
        np.sqrt(out, out=out)
        np.divide(H, out, out=out)
        out *= self.scale
        return out

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        rho = self._correlations(rows, cols)
        G = self._slopes(rho, H, self.pulled(rows, cols))
        self.total += np.einsum("ip,ip->i", self.left[:, rows], self.right[:, cols] @ G.T)
        self.by_v0 += self.scale * float(np.einsum("pq,pq->", H, np.arcsin(rho)))
        G *= rho
        shares = self.F2[:, rows] @ (G.sum(axis=1) / self.d[rows]) + self.F2[:, cols] @ (G.sum(axis=0) / self.d[cols])
        self.total -= self.sigma * shares

    @override
    def pull_diagonal(self, h: FloatArray) -> None:
        self.by_v0 += float(h @ self.diagonal())
        # ∂ρ/∂σ_i = 2 x_i²/d², and 1 − ρ² = (1 − ρ)(1 + ρ) = (1 + ρ)/d
        slope = self.scale * np.sqrt(self.d / (1.0 + self.own))
        self.total += self.sigma * (self.F2 @ (2.0 * h * slope / self.d**2))

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        rho = self._correlations(rows, cols)
        G = self._slopes(rho, H, self.pulled(rows, cols))
        across = (self.left[:, rows] @ G) / np.sqrt(self.d[cols])
        G *= rho
        across -= (2.0 * G.sum(axis=0) / self.d[cols]) * self.sigma[:, None] * self.features[:, cols]
        return self.covariance.scatter(across[1:], self.m)

    @override
    def gradient(self) -> FloatArray:
        return np.concatenate([[self.by_v0], self.total])
