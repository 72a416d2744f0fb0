"""A periodic covariance: the squared exponential of points on circles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, override

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance._squares import Squares
from bayessel.covariance.base import Evaluation, Parameters, named
from bayessel.covariance.prior import Prior
from bayessel.covariance.stationary import Stationary
from bayessel.covariance.stationary_evaluation import ExponentialEvaluation


@dataclass(frozen=True, repr=False)
class Periodic(Stationary):
    """v₀ exp(−2 Σ w_i sin²(π (x_i − x'_i) / p_i)); θ = (log v0, log w[0], ..., log p[0], ...).

    That is v₀ exp(−½ Σ w_i ‖u − u'‖²) with u = (cos, sin)(2π x_i / p_i) (MacKay 1998; Rasmussen and Williams 2006,
    eq. 4.31). The period is in the units of the input.

    Examples
    --------
    >>> week = Periodic(ard=False).matrix(np.log([1.0, 1.0, 7.0]), np.array([[0.0], [3.5], [7.0]]))
    >>> week[0].round(4).tolist()  # exp(-2) half a period away
    [1.0, 0.1353, 1.0]
    """

    @override
    def parameters(self, m: int) -> list[Parameters]:
        names = named("p", self.used(m))
        return [*super().parameters(m), Parameters(names, 0.0, Prior.normal(0.0, 1.0, len(names)))]

    @override
    def evaluation(self, X: FloatArray, keep: bool = False) -> Evaluation:
        return PeriodicEvaluation(self, X, keep)


class PeriodicEvaluation(ExponentialEvaluation):
    """Features move with the periods; their derivatives in log p_i take part in the products of `gather`."""

    def _squares(self, F: FloatArray) -> Squares:
        self.X = F - F.mean(axis=1, keepdims=True)
        return Squares(np.zeros((2 * self.k, self.n)), extra=2 * self.k)

    @override
    def at(self, theta: FloatArray) -> Self:
        self.periods = self._take(theta)
        self.angles = u = self.X * (2.0 * np.pi / self.periods)[:, None]
        sound = bool(np.isfinite(self.v0) and np.isfinite(u.sum()) and np.isfinite(self.periods).all())
        c, s = np.cos(u), np.sin(u)
        self.circle = np.vstack([c, s])
        # d(cos u, sin u)/d log p = u (sin u, −cos u)
        self.turning = np.vstack([u * s, -u * c])
        self.squares.place(self.circle, self.turning)
        self.direct = np.zeros(self.k)
        self.finite = self.squares.move(np.concatenate([self.w, self.w]), self.log_v0) and sound
        return self

    @override
    def pull(self, rows: slice, cols: slice, H: FloatArray) -> None:
        super().pull(rows, cols, H)
        # as for the squares: where a weight is large, differences first. Their product with G is still in its place
        G = self.pulled(rows, cols)
        for i in {i % self.k for i in self.squares.far}:
            d = np.subtract.outer(self.angles[i, rows], self.angles[i, cols])
            self.direct[i] += np.einsum("pq,pq->", G, d * np.sin(d))

    @override
    def pull_inputs(self, rows: slice, cols: slice, H: FloatArray) -> FloatArray:
        G = np.multiply(H, self.again(rows, cols), out=self.pulled(rows, cols))
        by_cos, by_sin = np.vsplit(-0.5 * self.squares.slopes(rows, cols, G), 2)
        c, s = np.vsplit(self.circle[:, cols], 2)
        return self.covariance.scatter((by_sin * c - by_cos * s) * (2.0 * np.pi / self.periods)[:, None], self.m)

    @override
    def gradient(self) -> FloatArray:
        k, products = self.k, self.squares.products
        found = self.squares.gathered()
        # ∂s/∂log p = 2 w (φ_p − φ_q)·(φ̇_p − φ̇_q) = −2 w (u_p − u_q) sin(u_p − u_q), and φ·φ̇ = 0
        cross = np.einsum("ip,ip->i", self.circle, products[2 * k + 1 :])
        cross += np.einsum("ip,ip->i", self.turning, products[: 2 * k])
        turned = cross[:k] + cross[k:]
        for i in self.squares.far:
            turned[i % k] = self.direct[i % k]
        return self._together(-0.5 * self.w * (found[:k] + found[k:]), self.w * turned)
