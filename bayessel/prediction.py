"""What a fitted model says of new rows: a predictive distribution each, normal or a mixture of normals.

One component per state of the hyperparameters: a fit at its best hyperparameters predicts normal distributions, draws
of them predict mixtures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import erf, log_ndtr, logsumexp, ndtri

from bayessel._check import FloatArray, as_float_array
from bayessel._formulas import log_normal
from bayessel._mixture_quantiles import mixture_quantile
from bayessel.pages.result_view import MOST_ROWS, ResultView, ShownResult, distributions_view

#: nats below a probability at which components of a mixture no longer matter to its quantile
_ROUNDING = 23.0
#: numbers worked on at a time
_BLOCK = 1 << 16
#: a component narrower than this, in units of its largest neighbour or of its mean, is taken for that narrow
_NARROWEST = 1e-150
#: components of a mixture of which all pairs are looked at
_MOST_PAIRED = 200


@dataclass(frozen=True, eq=False)
class Prediction(ShownResult):
    """Predictive distributions of new observations at N rows: mixtures of S normal distributions.

    Rows may be several axes: (N, K) for K outputs.

    Attributes
    ----------
    means, variances : (S, N) array
        Of the components; the variances are those of observations, noise included.
    log_weights : (S, N) array or None
        Logarithms of the weights, each column summing to one; None: all equal.
    function_variances : (S, N) array or None
        Variances of the function without the noise; None where they are not known apart.

    Examples
    --------
    >>> import numpy as np
    >>> there = Prediction.normal(mean=np.array([0.0, 1.0]), variance=np.array([4.0, 1.0]))
    >>> there.std, there.quantile(0.5)
    (array([2., 1.]), array([0., 1.]))
    """

    means: FloatArray
    variances: FloatArray
    log_weights: FloatArray | None = None
    function_variances: FloatArray | None = None

    @classmethod
    def normal(cls, mean: Any, variance: Any, function_variance: Any = None) -> Self:
        """Normal distributions, from means (N,), variances of observations, and of the function if known."""
        mean = np.asarray(mean, dtype=np.float64)
        variance = np.broadcast_to(np.asarray(variance, dtype=np.float64), mean.shape)
        if function_variance is not None:
            function_variance = np.broadcast_to(np.asarray(function_variance, dtype=np.float64), mean.shape)[None]
        return cls(mean[None], variance[None], None, function_variance)

    @classmethod
    def mixture(cls, parts: Sequence[Prediction], weights: Any) -> Self:
        """Mixtures of predictions of the same rows, with weights that sum to one; those of no weight are left out."""
        chosen = [(part, weight) for part, weight in zip(parts, np.asarray(weights), strict=True) if weight > 0.0]
        logs = [np.broadcast_to(np.log(w) + part._log_weights(), part.means.shape) for part, w in chosen]
        inside = [part.function_variances for part, _ in chosen if part.function_variances is not None]
        return cls(
            np.concatenate([part.means for part, _ in chosen]),
            np.concatenate([part.variances for part, _ in chosen]),
            np.concatenate(logs),
            np.concatenate(inside) if len(inside) == len(chosen) else None,
        )

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
    def function(self) -> Prediction:
        """Predictive distributions of the function itself, without the noise."""
        if self.function_variances is None:
            raise ValueError(
                "the variance of the function is not known apart from the noise in this prediction; ask the fit for "
                "one that keeps both"
            )
        return Prediction(self.means, self.function_variances, self.log_weights, self.function_variances)

    @property
    def std(self) -> FloatArray:
        """Standard deviations, (N,)."""
        return np.sqrt(self.variance)

    @property
    def median(self) -> FloatArray:
        """Medians, (N,): the best guess under absolute loss."""
        return self.quantile(0.5)

    def log_density(self, y: Any) -> FloatArray:
        """Log density at one value y_n per column, in nats."""
        # a component without width is a point: it has no density beside itself
        densities = log_normal(as_float_array(y, "y") - self.means, self.variances)
        return self._mixed(np.where(self.variances > 0.0, densities, -np.inf))

    def log_cdf(self, y: Any) -> FloatArray:
        """Log P(Y_n ≤ y_n), accurate in the lower tail."""
        y = as_float_array(y, "y")
        return self._log_tail(y, 1.0)

    def crps(self, y: Any) -> FloatArray:
        r"""Continuous ranked probability score :math:`\int (F(z)-[z\ge y_n])^2\,dz`, in units of y: smaller is better.

        Of a mixture :math:`\sum_i w_iA(y-\mu_i,\sigma_i^2)-\tfrac12\sum_{ij}w_iw_jA(\mu_i-\mu_j,\sigma_i^2+\sigma_j^2)`
        with :math:`A(\mu,\sigma^2)=E|N(\mu,\sigma^2)|` (Grimit, Gneiting, Berrocal and Johnson 2006). Of more than 200
        components, 200 stand for all: at equal steps of the weights, in the order of their means.
        """
        y = as_float_array(y, "y")
        few = self._fewer(_MOST_PAIRED)
        weights, means, variances = few._weights, few.means, few.variances
        found = np.zeros(np.broadcast_shapes(y.shape, self.means.shape[1:]))
        for weight, mean, variance in zip(weights, means, variances, strict=True):
            found += weight * _mean_distance(y - mean, variance)
            found -= 0.5 * weight * (weights * _mean_distance(mean - means, variance + variances)).sum(axis=0)
        return found

    def _fewer(self, most: int) -> Prediction:
        """At most so many components, of equal weights where there were more."""
        if len(self.means) <= most:
            return self
        order = np.argsort(self.means, axis=0, kind="stable")
        total = np.cumsum(np.take_along_axis(self._weights, order, axis=0), axis=0)
        levels = (np.arange(most) + 0.5) / most
        flat = total.reshape(len(total), -1)
        places = np.array([np.searchsorted(each / each[-1], levels) for each in flat.T]).T
        places = places.reshape(most, *total.shape[1:])
        chosen = np.take_along_axis(order, np.minimum(places, len(total) - 1), axis=0)
        return Prediction(*(np.take_along_axis(each, chosen, axis=0) for each in (self.means, self.variances)))

    def _log_weights(self) -> Any:
        return -np.log(len(self.means)) if self.log_weights is None else self.log_weights

    def _log_tail(self, y: FloatArray, side: float) -> FloatArray:
        """Log P(Y ≤ y) for side 1, log P(Y ≥ y) for side −1."""
        with np.errstate(over="ignore"):
            away = side * (y - self.means) / self._std()
        return self._mixed(log_ndtr(away))

    def _mixed(self, logs: FloatArray) -> FloatArray:
        """Logarithms of weighted sums over the components, from their logarithms."""
        return np.asarray(logsumexp(logs + self._log_weights(), axis=0))

    def _std(self) -> FloatArray:
        return np.sqrt(np.maximum(self.variances, _NARROWEST))

    def quantile(self, q: Any) -> FloatArray:
        """Quantiles at probabilities in (0, 1), computed, not sampled: (N,) for one, (len(q), N) for several."""
        levels = np.atleast_1d(as_float_array(q, "q"))
        if levels.ndim != 1 or not ((levels > 0.0) & (levels < 1.0)).all():
            raise ValueError(f"quantiles must be probabilities between 0 and 1, got {q!r}")
        each = np.array([self._quantile(float(level)) for level in levels])
        found = each.reshape(len(levels), *self.means.shape[1:])
        return found[0] if np.ndim(q) == 0 else found

    def _quantile(self, level: float) -> FloatArray:
        """Quantiles of all rows, in pieces that stay in the processor's cache."""
        shape = self.means.shape[1:]
        if len(self.means) == 1:
            return np.asarray((self.means + self._std() * ndtri(level))[0])
        chosen = self._that_matter(level)
        flat = (chosen.means, chosen._std(), np.broadcast_to(chosen._log_weights(), chosen.means.shape))
        means, std, logs = (each.reshape(len(each), -1) for each in flat)
        found = np.empty(means.shape[1])
        rows = max(1, _BLOCK // len(means))
        for begin in range(0, len(found), rows):
            part = slice(begin, begin + rows)
            found[part] = mixture_quantile(means[:, part], std[:, part], np.exp(logs[:, part]), level)
        return found.reshape(shape)

    def _that_matter(self, level: float) -> Prediction:
        """Without components whose weights together are less than the rounding of the probability asked for."""
        if self.log_weights is None:
            return self
        most = self.log_weights.reshape(len(self.means), -1).max(axis=1, initial=-np.inf)
        kept = most > np.log(min(level, 1.0 - level)) - _ROUNDING - np.log(len(most))
        if kept.all():
            return self
        return Prediction(self.means[kept], self.variances[kept], self.log_weights[kept])

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

    def with_noise(self, ratio: Any) -> Prediction:
        """The same functions, observed with noise of `ratio` (N,) times the standard deviation."""
        inside = self.function.variances
        ratio = np.asarray(ratio, dtype=np.float64)
        ratio = ratio.reshape(ratio.shape + (1,) * (self.means.ndim - 1 - ratio.ndim))  # one of several outputs
        return replace(self, variances=inside + ratio**2 * (self.variances - inside))

    def about(self, mean: FloatArray) -> Prediction:
        """The same distributions about other means, with the squared distances of the means added to the variances.

        So the variance of each is the expected squared distance of an observation from its mean.
        """
        inside, moved = self.function_variances, mean - self.mean
        return replace(
            self,
            means=self.means + moved,
            variances=self.variances + moved**2,
            function_variances=None if inside is None else inside + moved**2,
        )

    def scaled(self, shift: Any, scale: Any) -> Self:
        """The distributions of shift + scale·Y."""
        inside = self.function_variances
        return replace(
            self,
            means=shift + scale * self.means,
            variances=scale**2 * self.variances,
            function_variances=None if inside is None else scale**2 * inside,
        )

    def _view(self) -> ResultView:
        first = slice(None), slice(MOST_ROWS)
        logs = None if self.log_weights is None else self.log_weights[first]
        shown = Prediction(self.means[first], self.variances[first], logs)
        return distributions_view("Predictive distributions", self.means.shape[1:], shown)


def _mean_distance(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """E|X| of normal X: 2σφ(μ/σ) + μ(2Φ(μ/σ) − 1)."""
    std = np.sqrt(np.maximum(variance, _NARROWEST))
    away = mean / std
    with np.errstate(over="ignore", under="ignore"):
        bell = np.exp(-0.5 * np.square(away))
    return np.asarray(std * np.sqrt(2.0 / np.pi) * bell + mean * erf(away / np.sqrt(2.0)))


@dataclass(frozen=True, eq=False)
class ClassPrediction(ShownResult):
    """Predictive distributions of labels at N rows.

    Rows may be several axes: (N, L) for L labels that exclude nothing.

    Attributes
    ----------
    classes : (K,) array
        The labels.
    probabilities : (N, K) array
        Of each label; rows sum to one.
    """

    classes: Any
    probabilities: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The probabilities: means of the indicators of the labels."""
        return self.probabilities

    @property
    def mode(self) -> Any:
        """The most probable label of each row, (N,)."""
        return np.asarray(self.classes)[self.probabilities.argmax(axis=-1)]

    def log_density(self, y: Any) -> FloatArray:
        """Log probability of one label per row, in nats; minus infinity of a label that is none of the classes."""
        hits = np.asarray(y)[..., None] == np.asarray(self.classes)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(hits, self.probabilities, 0.0).sum(axis=-1)))

    def _view(self) -> ResultView:
        import pandas as pd

        shape = self.probabilities.shape
        table = None
        if len(shape) == 2:
            table = pd.DataFrame(self.probabilities[:MOST_ROWS], columns=[f"p({label})" for label in self.classes])
            table.insert(0, "most probable", list(self.mode[:MOST_ROWS]))
        return ResultView(f"Labels of {shape[0]} rows and their probabilities", table=table)
