"""Covariances between many inputs X and a few inducing inputs Z: values in blocks of rows, derivatives pulled back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import override

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance import Covariance


class Cross(ABC):
    """One term at one θ, between X, taken in blocks of rows, and Z.

    `values` and `among` give k(X, Z) and k(Z, Z); `pull…` gather the derivatives that come back, and `add_gradient`
    adds up what was gathered.
    """

    @abstractmethod
    def values(self, rows: slice, out: FloatArray) -> FloatArray:
        """Write k(X[rows], Z) into `out`, and return it."""

    @abstractmethod
    def among(self) -> FloatArray:
        """k(Z, Z), symmetric to the last digit."""

    @abstractmethod
    def variances(self, rows: slice) -> FloatArray:
        """k(x, x) at the rows of X."""

    @abstractmethod
    def pull(self, rows: slice, H: FloatArray, K: FloatArray) -> None:
        """Add a block: H is the derivative by K = k(X[rows], Z), and may be overwritten."""

    @abstractmethod
    def pull_among(self, H: FloatArray, K: FloatArray) -> None:
        """Add the derivative H, symmetric, by K = k(Z, Z)."""

    @abstractmethod
    def pull_variance(self, h: float) -> None:
        """Add h times the derivative of Σ k(x, x) over all rows."""

    @abstractmethod
    def add_gradient(self, by_theta: FloatArray, by_Z: FloatArray) -> None:
        """Add what was gathered to the gradients by θ and by Z."""


class GeneralCross(Cross):
    """Any covariance, by its own evaluation at the rows of Z and then of X; `share` is its part of θ."""

    def __init__(self, term: Covariance, share: slice, theta: FloatArray, X: FloatArray, Z: FloatArray) -> None:
        self.share, self.M, self.n = share, len(Z), len(X)
        self.places = slice(0, self.M)
        self.evaluation = term.evaluation(np.concatenate([Z, X])).at(theta[share])
        self.by_Z = np.zeros_like(Z)

    def _rows(self, rows: slice) -> slice:
        return slice(self.M + rows.start, self.M + rows.stop)

    @override
    def values(self, rows: slice, out: FloatArray) -> FloatArray:
        self.evaluation.fill(self._rows(rows), self.places, out)
        return out

    @override
    def among(self) -> FloatArray:
        K = np.full((self.M, self.M), np.nan)
        if self.evaluation.finite:
            self.evaluation.fill(self.places, self.places, K)
            K = 0.5 * (K + K.T)
        return K

    @override
    def variances(self, rows: slice) -> FloatArray:
        return self.evaluation.diagonal()[self._rows(rows)]

    @override
    def pull(self, rows: slice, H: FloatArray, K: FloatArray) -> None:
        self.by_Z += self.evaluation.pull_inputs(self._rows(rows), self.places, H)
        self.evaluation.pull(self._rows(rows), self.places, H)

    @override
    def pull_among(self, H: FloatArray, K: FloatArray) -> None:
        self.by_Z += 2.0 * self.evaluation.pull_inputs(self.places, self.places, H)
        self.evaluation.pull(self.places, self.places, H)

    @override
    def pull_variance(self, h: float) -> None:
        self.evaluation.pull_diagonal(np.repeat([0.0, h], [self.M, self.n]))

    @override
    def add_gradient(self, by_theta: FloatArray, by_Z: FloatArray) -> None:
        by_theta[self.share] += self.evaluation.gradient()
        by_Z += self.by_Z
