"""Covariances of functions with few parameters: a constant, a plane; and the noise.

Bias a₀,  Linear a₁ Σ x_i x'_i,  Noise r² δ (Rasmussen 1996, eq. 4.12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, override

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance.base import Evaluation, Leaf, Parameters, Scratch

#: start, and mean and standard deviation of the prior, of the logarithms of a₀, a₁ and r² (Rasmussen 1996, ch. 4)
VAGUE = (-2.0, -3.0, 3.0)


@dataclass(frozen=True, repr=False)
class Bias(Leaf):
    """a₀: a constant with prior N(0, a₀); θ = (log a0).

    Examples
    --------
    >>> Bias().matrix(np.log([4.0]), np.array([[0.0], [1.0]])).round(6).tolist()
    [[4.0, 4.0], [4.0, 4.0]]
    """

    @override
    def parameters(self, m: int) -> list[Parameters]:
        return [Parameters.one("a0", *VAGUE)]

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        return FeatureEvaluation(np.ones((1, len(X))), [0], np.zeros((X.shape[1], 1)))


@dataclass(frozen=True, repr=False)
class Linear(Leaf):
    """a₁ Σ x_i x'_i: a plane through the origin, each slope N(0, a₁); θ = (log a1).

    Examples
    --------
    >>> Linear().matrix(np.log([2.0]), np.array([[1.0], [3.0]])).round(6).tolist()
    [[2.0, 6.0], [6.0, 18.0]]
    """

    @override
    def parameters(self, m: int) -> list[Parameters]:
        return [Parameters.one("a1", *VAGUE)]

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        k = len(self.used(X.shape[1]))
        return FeatureEvaluation(self.inputs(X), [0] * k, self.scatter(np.eye(k), X.shape[1]).T)


class FeatureEvaluation(Evaluation):
    """K = Φᵀ diag(v) Φ with features Φ that are known and variances v = exp(θ)[parameter].

    Parameters
    ----------
    features : (f, n) array
    parameter
        Which entry of θ is the logarithm of a feature's variance, one for each.
    slopes : (m, f) array
        ∂φ_j/∂x_i: constant, for the features are affine in the inputs.
    """

    def __init__(self, features: FloatArray, parameter: Sequence[int], slopes: FloatArray) -> None:
        self.features, self.squares, self.by_input = features, features * features, slopes
        self.belongs = np.eye(max(parameter) + 1)[:, list(parameter)]
        self.left = np.empty_like(features)
        self.panel = Scratch()

    @override
    def at(self, theta: FloatArray) -> Self:
        self.v = np.exp(theta) @ self.belongs
        np.multiply(self.features, self.v[:, None], out=self.left)
        self.variance: FloatArray = np.dot(self.v, self.squares)
        self.finite = bool(np.isfinite(self.variance.sum()))
        self.total = np.zeros(len(self.v))
        return self

    @override
    def values(self, rows: slice, cols: slice) -> FloatArray:
        return np.matmul(self.left[:, rows].T, self.features[:, cols], out=self.panel(rows, cols))

    @override
    def diagonal(self) -> FloatArray:
        return self.variance

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        self.total += np.einsum("ip,ip->i", self.features[:, rows], np.matmul(self.features[:, cols], H.T))

    @override
    def pull_diagonal(self, h: FloatArray) -> None:
        self.total += self.squares @ h

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        return np.asarray((self.by_input @ (self.left[:, rows] @ H)).T)

    @override
    def gradient(self) -> FloatArray:
        return np.asarray(self.belongs @ (self.v * self.total))


@dataclass(frozen=True, repr=False)
class Noise(Leaf):
    """r² on the diagonal of the observations' covariance, and in nothing else; θ = (log r2).

    Examples
    --------
    >>> from bayessel.covariance import SquaredExponential
    >>> (SquaredExponential() + Noise()).names(1)
    ('log v0', 'log w[0]', 'log r2')
    """

    @override
    def parameters(self, m: int) -> list[Parameters]:
        return [Parameters.one("r2", *VAGUE, "noise")]

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        return NoiseEvaluation(*X.shape)


class NoiseEvaluation(Evaluation):
    """Nothing but noise: the function is nil."""

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m

    @override
    def at(self, theta: FloatArray) -> Self:
        self.noise = float(np.exp(theta[0]))
        self.finite = bool(np.isfinite(self.noise))
        self.total = 0.0
        return self

    @override
    def values(self, rows: slice, cols: slice) -> FloatArray:
        return np.zeros((rows.stop - rows.start, cols.stop - cols.start))

    @override
    def diagonal(self) -> FloatArray:
        return np.zeros(self.n)

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        return

    @override
    def pull_diagonal(self, h: FloatArray) -> None:
        return

    @override
    def pull_noise(self, h: float) -> None:
        self.total += self.noise * h

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        return np.zeros((cols.stop - cols.start, self.m))

    @override
    def gradient(self) -> FloatArray:
        return np.array([self.total])
