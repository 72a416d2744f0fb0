"""Mixtures of Gaussians, many at once: one per test point, one component per state of the hyperparameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri

from bayessel._check import FloatArray, as_float_array
from bayessel._formulas import log_normal

#: quantiles are found to this many component widths
_CLOSE = 1e-10
_MOST_STEPS = 200
#: a component narrower than this, in units of its largest neighbour or of its mean, is taken for that narrow
_NARROWEST = 1e-150


@dataclass(frozen=True, eq=False)
class Mixture:
    """Predictive distributions of N quantities: mixtures of S Gaussians. N may be several axes.

    Attributes
    ----------
    means, variances : (S, N) array
        Of the components.
    log_weights : (S, N) array or None
        Logarithms of the weights, each column summing to one; None: all equal.
    """

    means: FloatArray
    variances: FloatArray
    log_weights: FloatArray | None = None

    @property
    def _weights(self) -> FloatArray:
        if self.log_weights is None:
            return np.full_like(self.means, 1.0 / len(self.means))
        return np.exp(self.log_weights)

    @property
    def mean(self) -> FloatArray:
        """Means, (N,): the best guess under squared loss."""
        return np.asarray((self._weights * self.means).sum(axis=0))

    @property
    def variance(self) -> FloatArray:
        """Variances, (N,): mean of the variances plus variance of the means."""
        weights = self._weights
        return np.asarray((weights * (self.variances + (self.means - self.mean) ** 2)).sum(axis=0))

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (N,)."""
        return np.sqrt(self.variance)

    @property
    def median(self) -> FloatArray:
        """Medians, (N,): the best guess under absolute loss."""
        return self.quantiles([0.5])[0]

    def log_density(self, y: Any) -> FloatArray:
        """Log density at one value y_n per column, in nats."""
        # a component without width is a point: it has no density beside itself
        densities = log_normal(as_float_array(y, "y") - self.means, self.variances)
        return self._mixed(np.where(self.variances > 0.0, densities, -np.inf))

    def log_cdf(self, y: Any) -> FloatArray:
        """Log P(Y_n ≤ y_n), accurate in the lower tail."""
        y = as_float_array(y, "y")
        return self._log_tail(y, 1.0)

    def _log_weights(self) -> Any:
        return -np.log(len(self.means)) if self.log_weights is None else self.log_weights

    def _log_tail(self, y: FloatArray, side: float) -> FloatArray:
        """Log P(Y ≤ y) for side 1, log P(Y ≥ y) for side −1."""
        return self._mixed(log_ndtr(side * (y - self.means) / self._std()))

    def _mixed(self, logs: FloatArray) -> FloatArray:
        """Logarithms of weighted sums over the components, from their logarithms."""
        return np.asarray(logsumexp(logs + self._log_weights(), axis=0))

    def _std(self) -> FloatArray:
        return np.sqrt(np.maximum(self.variances, _NARROWEST))

    def quantiles(self, q: Any) -> FloatArray:
        """Quantiles at probabilities q in (0, 1), (len(q), N): computed, not sampled."""
        levels = np.atleast_1d(as_float_array(q, "q"))
        if levels.ndim != 1 or not ((levels > 0.0) & (levels < 1.0)).all():
            raise ValueError(f"quantiles must be probabilities between 0 and 1, got {q!r}")
        return np.array([self._quantile(float(level)) for level in levels]).reshape(len(levels), *self.means.shape[1:])

    def _quantile(self, level: float) -> FloatArray:
        r"""Newton's method on log F (log (1 − F) in the upper half), kept between bounds that close in.

        A quantile of a mixture lies between the smallest and the largest quantile of its components.
        """
        std = self._std()
        each = self.means + std * ndtri(level)
        low, high = each.min(axis=0), each.max(axis=0)
        if len(each) == 1:
            return np.asarray(low)
        side, goal = (1.0, np.log(level)) if level <= 0.5 else (-1.0, np.log1p(-level))
        close = _CLOSE * std.min(axis=0)
        y = np.clip((self._weights * each).sum(axis=0), low, high)
        for _ in range(_MOST_STEPS):
            tail = self._log_tail(y, side)
            above = side * (tail - goal) > 0.0
            low, high = np.where(above, low, y), np.where(above, y, high)
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                slope = side * np.exp(self._mixed(log_normal(y - self.means, std**2)) - tail)
                step = (goal - tail) / slope
            new = y + step
            # where Newton leaves the bounds, they are halved; between peaks far apart every point may be the median
            new = np.where((new > low) & (new < high), new, 0.5 * (low + high))
            new = np.where(tail == goal, y, new)
            moved = np.abs(new - y)
            y = new
            if np.all((moved <= close) | (moved <= 4.0 * np.spacing(np.abs(y)))):
                break
        return np.asarray(y)

    def widened(self) -> Self:
        """The mixture as the 1996 program widened it for its log densities (Rasmussen 1996, appendix, gp-pred).

        Where the widths of the components together are less than the spread of the central two thirds of their means,
        the mixture would be a row of separate peaks: every component is then made wider, until they equal it.
        """
        count = len(self.means)
        ordered = np.sort(self.means, axis=0)
        # the order statistics that the program selects, counted from one
        spread = ordered[max(count * 5 // 6, 1) - 1] - ordered[max(count // 6, 1) - 1]
        widths = np.sqrt(self.variances).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(widths < spread, (spread / widths) ** 2, 1.0)
        return replace(self, variances=self.variances * factor)

    def scaled(self, shift: float, scale: float) -> Self:
        """The distributions of shift + scale·Y."""
        return replace(self, means=shift + scale * self.means, variances=scale**2 * self.variances)
