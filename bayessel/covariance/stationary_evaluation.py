"""Stationary covariances at work: one evaluation for the squared exponential, one for every other profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self, override

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel.covariance._squares import Squares
from bayessel.covariance.base import Evaluation, Scratch

if TYPE_CHECKING:
    from bayessel.covariance.stationary import Stationary


class StationaryEvaluation(Evaluation):
    """What all stationary covariances share: θ taken apart, the variance, the gradient put together."""

    def __init__(self, covariance: Stationary, X: FloatArray) -> None:
        self.covariance, self.m = covariance, X.shape[1]
        F = covariance.inputs(X)
        self.k, self.n = F.shape
        self.squares = self._squares(F)
        self.panel = Scratch()

    def _squares(self, F: FloatArray) -> Squares:
        return Squares(F)

    def _take(self, theta: FloatArray) -> FloatArray:
        """Variance and weights; returns what is left of θ, exponentiated."""
        c = self.covariance
        first = int(c.amplitude)
        self.log_v0 = float(theta[0]) if first else 0.0
        self.v0 = float(np.exp(self.log_v0))
        parameters = np.exp(theta)
        count = self.k if c.ard else 1
        self.w = parameters[first : first + count] if c.ard else np.full(self.k, parameters[first])
        self.by_v0 = 0.0
        return np.asarray(parameters[first + count :])

    @override
    def diagonal(self) -> FloatArray:
        return np.full(self.n, self.v0)

    @override
    def pull_diagonal(self, h: FloatArray) -> None:
        self.by_v0 += self.v0 * float(h.sum())

    def _together(self, by_weight: FloatArray, by_shape: FloatArray) -> FloatArray:
        c = self.covariance
        weights = by_weight if c.ard else by_weight.sum(keepdims=True)
        return np.concatenate([[self.by_v0] if c.amplitude else [], weights, by_shape])


class ExponentialEvaluation(StationaryEvaluation):
    """The squared exponential: value and slope are the same array, and log v₀ rides along in the exponent."""

    def __init__(self, covariance: Stationary, X: FloatArray, keep: bool) -> None:
        super().__init__(covariance, X)
        self.kept = np.empty((self.n, self.n)) if keep else None
        self.pulled = Scratch()

    @override
    def at(self, theta: FloatArray) -> Self:
        self._take(theta)
        self.finite = self.squares.move(self.w, self.log_v0) and bool(np.isfinite(self.v0))
        return self

    @override
    def values(self, rows: slice, cols: slice) -> FloatArray:
        E = self.panel(rows, cols) if self.kept is None else self.kept[rows, cols]
        return np.exp(self.squares.half(rows, cols, E), out=E)

    @override
    def again(self, rows: slice, cols: slice) -> FloatArray:
        return self.values(rows, cols) if self.kept is None else self.kept[rows, cols]

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        self.squares.gather(rows, cols, np.multiply(H, self.again(rows, cols), out=self.pulled(rows, cols)))

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        G = np.multiply(H, self.again(rows, cols), out=self.pulled(rows, cols))
        return self.covariance.scatter(-0.5 * self.squares.slopes(rows, cols, G), self.m)

    @override
    def gradient(self) -> FloatArray:
        return self._together(-0.5 * self.w * self.squares.gathered(), np.empty(0))

    @override
    def _together(self, by_weight: FloatArray, by_shape: FloatArray) -> FloatArray:
        found = super()._together(by_weight, by_shape)
        if self.covariance.amplitude:
            found[0] += self.squares.total()
        return found


class ProfileEvaluation(StationaryEvaluation):
    """Any other profile f: the panel of distances is made twice, and the slope with it the second time."""

    def __init__(self, covariance: Stationary, X: FloatArray) -> None:
        super().__init__(covariance, X)
        self.K, self.T = Scratch(), Scratch()
        self.sharp = covariance.sharp

    @override
    def at(self, theta: FloatArray) -> Self:
        self.shape = self._take(theta)
        self.by_shape = np.zeros(len(self.shape))
        sound = bool(np.isfinite(self.v0) and np.isfinite(self.shape).all() and (self.shape > 0.0).all())
        self.finite = self.squares.move(self.w) and sound
        return self

    def _half(self, rows: slice, cols: slice) -> tuple[FloatArray, Close | None]:
        """−s/2; and, where √s would show lost digits, the close pairs, put right."""
        e = self.squares.half(rows, cols, self.panel(rows, cols))
        if not self.sharp:
            return e, None
        where, d = self.squares.near(rows, cols, e)
        e.reshape(-1)[where] = -0.5 * self.w @ (d * d)
        return e, Close(where, d)

    @override
    def values(self, rows: slice, cols: slice) -> FloatArray:
        e, _ = self._half(rows, cols)
        self.covariance.profile(e, self.shape)
        e *= self.v0
        return e

    def _slopes(self, rows: slice, cols: slice, H: FloatArray) -> tuple[FloatArray, FloatArray, Close | None]:
        """H∘∂K/∂s, without the close pairs and of the close pairs; K and ∂K/∂log α stay where they are."""
        e, close = self._half(rows, cols)
        self.covariance.slopes(e, self.shape, self.K(rows, cols), self.T(rows, cols))
        e *= self.v0
        e *= H
        if close is None:
            return e, np.empty(0), None
        flat = e.reshape(-1)
        apart = flat[close.where]
        flat[close.where] = 0.0
        return e, apart, close

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        G, apart, close = self._slopes(rows, cols, H)
        self.squares.gather(rows, cols, G)
        if close is not None:
            self.squares.direct += close.differences**2 @ apart
        self.by_v0 += self.v0 * float(np.einsum("pq,pq->", H, self.K(rows, cols)))
        for i in range(len(self.shape)):
            self.by_shape[i] += self.v0 * float(np.einsum("pq,pq->", H, self.T(rows, cols)))

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        G, apart, close = self._slopes(rows, cols, H)
        found = self.squares.slopes(rows, cols, G)
        if close is not None:
            q = close.where % (cols.stop - cols.start)
            np.add.at(found.T, q, (-2.0 * apart * self.w[:, None] * close.differences).T)
        return self.covariance.scatter(found, self.m)

    @override
    def gradient(self) -> FloatArray:
        return self._together(self.w * self.squares.gathered(), self.by_shape)


class Close(NamedTuple):
    """Pairs of rows close to each other: flat positions in a panel, and differences of their features, (f, pairs)."""

    where: npt.NDArray[np.intp]
    differences: FloatArray
