"""Scores of predictive distributions that are mixtures of normals: log density, CRPS, place of the target in them.

NumPy and SciPy alone: the interpreter of the peers imports this, and has no bayessel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr

Array = np.ndarray[Any, np.dtype[np.float64]]
#: the double sum of the CRPS costs the square of the components: a mixture of more is thinned to so many, all equal
MOST = 100


class Mixture(NamedTuple):
    """Predictive distributions at J rows: means and standard deviations (S, J), logarithms of weights or None."""

    means: Array
    stds: Array
    log_weights: Array | None = None

    @classmethod
    def normal(cls, mean: Any, std: Any) -> Mixture:
        """Normal distributions: means (J,), standard deviations (J,) or one for all."""
        mean = np.asarray(mean, dtype=np.float64).reshape(-1)
        std = np.asarray(std, dtype=np.float64)
        std = np.full_like(mean, std.item()) if std.size == 1 else std.reshape(-1)
        return cls(mean[None], std[None])

    def weights(self) -> Array:
        """Weights, (S, J)."""
        if self.log_weights is None:
            return np.full_like(self.means, 1.0 / len(self.means))
        return np.asarray(np.exp(self.log_weights))

    def mean(self) -> Array:
        """Means, (J,)."""
        return np.asarray((self.weights() * self.means).sum(axis=0))

    def std(self) -> Array:
        """Standard deviations, (J,)."""
        spread = self.stds**2 + (self.means - self.mean()) ** 2
        return np.asarray(np.sqrt((self.weights() * spread).sum(axis=0)))

    def log_density(self, y: Array) -> Array:
        """Log density at one target per row, in nats, (J,)."""
        away = (y - self.means) / self.stds
        each = -0.5 * away**2 - np.log(self.stds) - 0.5 * np.log(2.0 * np.pi)
        return np.asarray(logsumexp(each + self._logs(), axis=0))

    def cdf(self, y: Array) -> Array:
        """P(Y <= y), (J,): uniform on (0, 1) over the rows of a model that knows what it does not know."""
        return np.asarray((self.weights() * ndtr((y - self.means) / self.stds)).sum(axis=0))

    def crps(self, y: Array) -> Array:
        r"""Continuous ranked probability score :math:`E|Y-y| - \tfrac12 E|Y-Y'|`, (J,), in units of y.

        Grimit, Gneiting, Berrocal and Johnson (2006), eq. 5.
        """
        one = self.thinned()
        weights = one.weights()
        found = (weights * _absolute(y - one.means, one.stds)).sum(axis=0)
        for k in range(len(weights)):
            apart = _absolute(one.means[k:] - one.means[k], np.hypot(one.stds[k:], one.stds[k]))
            twice = np.where(np.arange(len(apart)) == 0, 1.0, 2.0)[:, None]
            found = found - 0.5 * weights[k] * (twice * weights[k:] * apart).sum(axis=0)
        return np.asarray(found)

    def thinned(self) -> Mixture:
        """At most `MOST` components, in steps of equal weight through all of them."""
        if len(self.means) <= MOST:
            return self
        reached = np.cumsum(self.weights(), axis=0)
        at = (np.arange(MOST) + 0.5)[:, None] / MOST
        chosen = np.array([np.searchsorted(column, at[:, 0]) for column in reached.T]).T
        chosen = np.minimum(chosen, len(self.means) - 1)
        return Mixture(np.take_along_axis(self.means, chosen, 0), np.take_along_axis(self.stds, chosen, 0))

    def _logs(self) -> Any:
        return -np.log(len(self.means)) if self.log_weights is None else self.log_weights


def _absolute(mean: Array, std: Array) -> Array:
    """E|Z| of normal Z: 2 s phi(m / s) + m (2 Phi(m / s) - 1)."""
    away = mean / std
    return np.asarray(2.0 * std * np.exp(-0.5 * away**2) / np.sqrt(2.0 * np.pi) + mean * (2.0 * ndtr(away) - 1.0))
