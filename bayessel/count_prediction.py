"""Predictive distributions of counts: Poisson and negative binomial, with log rates that are not known exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import betainc, expit, gammaincc, gammaln, logsumexp

from bayessel._check import FloatArray, as_float_array
from bayessel.pages.result_view import MOST_ROWS, ResultView, ShownResult, distributions_view

#: standard deviations of a log rate that sums reach to, their most terms, and numbers worked on at a time
_FARTHEST_RATE, _MOST_RATES, _BLOCK_OF_RATES = 10.0, 4000, 1 << 20


#: logarithm of a rate, and the count, beyond which quantiles are not followed
_HIGHEST, _LARGEST = 600.0, 1e280


@dataclass(frozen=True, eq=False)
class CountPrediction(ShownResult):
    r"""Predictive distributions of counts at N rows, with log rates that are mixtures of S normals.

    Given its rate :math:`e^f` a count is Poisson, or negative binomial with variance :math:`e^f + d\,e^{2f}`. Sums over
    counts and integrals over f are computed, not sampled.

    Attributes
    ----------
    means, variances : (S, N) array
        Of the log rates f.
    dispersions : (S,) array
        d; 0: Poisson.
    log_weights : (S,) array or None
        Logarithms of the weights of the components, which sum to one; None: all equal.

    Examples
    --------
    >>> import numpy as np
    >>> there = CountPrediction(np.log([[2.0]]), np.zeros((1, 1)), np.zeros(1))
    >>> there.mean, there.std.round(3), there.quantile(0.5)
    (array([2.]), array([1.414]), array([2.]))
    """

    means: FloatArray
    variances: FloatArray
    dispersions: FloatArray
    log_weights: FloatArray | None = None

    @classmethod
    def mixture(cls, parts: Sequence[CountPrediction], weights: FloatArray) -> Self:
        """Mixtures of predictions of the same rows, with weights that sum to one."""
        chosen = [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight > 0.0]
        return cls(
            np.concatenate([part.means for part, _ in chosen]),
            np.concatenate([part.variances for part, _ in chosen]),
            np.concatenate([part.dispersions for part, _ in chosen]),
            np.concatenate([np.log(weight * part._weights[:, 0]) for part, weight in chosen]),
        )

    @property
    def _weights(self) -> FloatArray:
        count = len(self.means)
        return np.full((count, 1), 1.0 / count) if self.log_weights is None else np.exp(self.log_weights)[:, None]

    @property
    def mean(self) -> FloatArray:
        """Means, (N,)."""
        with np.errstate(over="ignore"):
            return np.asarray((self._weights * np.exp(self.means + 0.5 * self.variances)).sum(axis=0))

    @property
    def variance(self) -> FloatArray:
        """Variances, (N,)."""
        mean, over = self.mean, self.dispersions[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            each = np.exp(self.means + 0.5 * self.variances)
            # no difference of squares: of large counts it would be rounding
            inside = each + each**2 * ((1.0 + over) * np.expm1(self.variances) + over)
            found = (self._weights * (inside + (each - mean) ** 2)).sum(axis=0)
        return np.where(np.isfinite(mean) & ~np.isnan(found), found, np.inf)

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (N,)."""
        return np.sqrt(self.variance)

    @property
    def median(self) -> FloatArray:
        """Medians, (N,)."""
        return self.quantile(0.5)

    def log_density(self, y: Any) -> FloatArray:
        """Log probability of one count per row, in nats; minus infinity of what is no count."""
        y = as_float_array(y, "y")
        counts = (y >= 0.0) & (y == np.round(y))
        found = self._averaged(np.where(counts, y, 0.0), _log_count)
        return np.where(counts, found, -np.inf)

    def log_cdf(self, y: Any) -> FloatArray:
        """Log P(Y_n ≤ y_n)."""
        y = np.floor(as_float_array(y, "y"))
        return np.where(y >= 0.0, self._averaged(np.maximum(y, 0.0), _log_count_cdf), -np.inf)

    def quantile(self, q: Any) -> FloatArray:
        """Smallest counts that are not exceeded with probability q in (0, 1): (N,) for one, (len(q), N) for several."""
        levels = np.atleast_1d(as_float_array(q, "q"))
        if levels.ndim != 1 or not ((levels > 0.0) & (levels < 1.0)).all():
            raise ValueError(f"quantiles must be probabilities between 0 and 1, got {q!r}")
        found = np.array([self._quantile(float(level)) for level in levels])
        return found[0] if np.ndim(q) == 0 else found

    def _quantile(self, level: float) -> FloatArray:
        goal = np.log(level) - 1e-12
        low = np.full(self.means.shape[1], -1.0)
        high = np.maximum(np.ceil(np.exp(np.clip(self.means.max(axis=0), 0.0, _HIGHEST))), 1.0)
        while (short := (self.log_cdf(high) < goal) & (high < _LARGEST)).any():
            low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
        # large numbers have no digits for every count
        while (high - low > np.maximum(1.0, 1e-12 * high)).any():
            # between counts of unlike sizes halve their logarithm
            middle = np.where(high > 4.0 * (low + 2.0), np.sqrt((low + 1.0) * high), 0.5 * (low + high))
            middle = np.clip(np.floor(middle), low, high)
            enough = self.log_cdf(middle) >= goal
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def _averaged(self, y: FloatArray, log_term: Any) -> FloatArray:
        """Log of the mean over components and log rates of exp(log_term)."""
        logs = np.empty(self.means.shape)
        for s, (mean, variance, d) in enumerate(zip(self.means, self.variances, self.dispersions, strict=True)):
            std = np.sqrt(variance)
            # as fine as the width that a count gives to the log rate
            width = 1.0 / np.sqrt(1.0 + np.maximum(y, np.exp(np.minimum(mean, 30.0))))
            width = np.sqrt(width**2 + d)
            size = int(np.clip(np.ceil(4.0 * _FARTHEST_RATE * np.max(std / width, initial=0.0)), 1, _MOST_RATES))
            z = np.linspace(-_FARTHEST_RATE, _FARTHEST_RATE, 2 * (size // 2) + 1) if size > 1 else np.zeros(1)
            weight = -0.5 * z**2
            weight = weight - logsumexp(weight)
            rows = max(1, _BLOCK_OF_RATES // len(z))
            for begin in range(0, len(y), rows):
                part = slice(begin, begin + rows)
                f = mean[part] + std[part] * z[:, None]
                logs[s, part] = logsumexp(log_term(y[part], f, float(d)) + weight[:, None], axis=0)
        return np.asarray(logsumexp(logs + np.log(self._weights), axis=0))

    def _view(self) -> ResultView:
        first = slice(None), slice(MOST_ROWS)
        shown = CountPrediction(self.means[first], self.variances[first], self.dispersions, self.log_weights)
        return distributions_view("Predictive distributions of counts", self.means.shape[1:], shown)


def _log_count(y: FloatArray, f: FloatArray, dispersion: float) -> FloatArray:
    """Log probability of counts with log rate f."""
    with np.errstate(over="ignore"):
        if dispersion == 0.0:
            return np.asarray(y * f - np.exp(f) - gammaln(y + 1.0))
        r, below = 1.0 / dispersion, f + np.log(dispersion)
        choose = gammaln(y + r) - gammaln(r) - gammaln(y + 1.0)
        return np.asarray(choose - y * np.logaddexp(0.0, -below) - r * np.logaddexp(0.0, below))


def _log_count_cdf(y: FloatArray, f: FloatArray, dispersion: float) -> FloatArray:
    """Log P(Y ≤ y) of counts with log rate f."""
    with np.errstate(over="ignore", divide="ignore"):
        if dispersion == 0.0:
            return np.log(gammaincc(y + 1.0, np.exp(f)))
        return np.log(betainc(1.0 / dispersion, y + 1.0, expit(-f - np.log(dispersion))))
