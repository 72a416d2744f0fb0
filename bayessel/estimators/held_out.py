r"""Rows held out of folds that are fitted anew: what a fit predicts of them, beside a constant with normal noise.

A row is worth

.. math:: g_n = \log p(t_n|x_n, \text{other folds}) - \log N(t_n|\bar t, s_t^2(1+1/n)),

with the mean and the variance of the n rows that were fitted: nats over a constant. Rows with equal inputs are held out
together: a fit that follows copies shall gain nothing by it. Only where all rows lie at a few places that were measured
again and again, such as the levels of a factor, a row is held out by itself, for new rows lie there too. Folds follow
the order of the targets, so that the order of the rows changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel._row_weights import RowWeights, counted, deviation, mean, some
from bayessel.prediction import Prediction

N_FOLDS = 3
#: rows that are looked at: the cost of a fold is the cube of their number
MAX_ROWS = 300
#: rows a place from which on places count as measured again and again
ROWS_A_PLACE = 5
#: steps of the iteration for stacking weights, and the rows that their prior counts
_STEPS, _PRIOR = 200, 1.0
_EPS = float(np.finfo(float).eps)

#: (fold, which rows are fitted, one target of these rows) -> predictions of the other rows
Refit = Callable[[int, npt.NDArray[np.bool_], FloatArray], Prediction]


def gains_over_constant(
    T: FloatArray, fold: npt.NDArray[np.intp], predicted: Refit, weights: RowWeights | None = None
) -> FloatArray:
    """Nats over a constant of each row, (N,), predicted by the fit to the other folds; summed over targets (N, K).

    A row with a weight is predicted once, with its own noise.
    """
    gains = np.zeros(len(T))
    for k in range(N_FOLDS):
        held = fold == k
        shown = some(weights, ~held)
        n = counted(fold[~held], shown)
        for t, seen in zip(T[held].T, T[~held].T, strict=True):
            floor = max((4.0 * _EPS * float(np.abs(seen).max())) ** 2, float(np.finfo(float).tiny))
            there = predicted(k, ~held, seen)
            there = with_noise_of_rows(there, weights, held)
            gains[held] += replace(there, variances=np.maximum(there.variances, floor)).log_density(t)
            middle, constant = float(seen.mean()), np.full(len(t), float(seen.var(ddof=1)) * (1.0 + 1.0 / n))
            if shown is not None:
                middle = float(shown.along(shown.scale(seen)))
                noise = float(np.sum(shown.scale(seen - middle) ** 2)) / max(n - 1.0, 0.5 * n)
                of_mean = np.full(len(t), noise / float(shown.root @ shown.root))
                alone = Prediction.normal(np.full(len(t), middle), noise + of_mean, of_mean)
                constant = with_noise_of_rows(alone, weights, held).variances[0]
            gains[held] -= log_normal(t - middle, np.maximum(constant, floor))
    return gains


def with_noise_of_rows(there: Prediction, weights: RowWeights | None, held: npt.NDArray[np.bool_]) -> Prediction:
    """Predictions of rows held out, by a fit to the others, with their own noise."""
    return there if weights is None else there.with_noise(weights.noise_std[held] / weights.some(~held).unit)


def unsure(gains: FloatArray, weights: RowWeights | None = None) -> bool:
    """Whether the mean gain is within a standard error of nothing, or below it."""
    least = 1e-9  # the constant beside itself is rounding apart
    return not mean_gain(gains, weights) > max(error_of_mean(gains, weights), least)


def mean_gain(gains: FloatArray, weights: RowWeights | None = None) -> float:
    """Mean, minus infinity where a density is no number."""
    return float(mean(gains, weights)) if np.isfinite(gains).all() else -np.inf


def error_of_mean(gains: FloatArray, weights: RowWeights | None = None) -> float:
    """Standard error of the mean."""
    return deviation(gains, weights) / float(np.sqrt(counted(gains, weights)))


def ranks_of_places(X: FloatArray, y: FloatArray) -> npt.NDArray[np.intp]:
    """Rank of each row by its target, equal inputs sharing the rank of the largest of theirs."""
    places = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    largest = np.full(places.max() + 1, -np.inf)
    np.maximum.at(largest, places, y)
    rank = np.empty(len(largest), dtype=np.intp)
    rank[np.argsort(largest, kind="stable")] = np.arange(len(largest))
    return np.asarray(rank[places])


def ranks_of_rows(X: FloatArray, y: FloatArray) -> npt.NDArray[np.intp]:
    """Ranks by the target of what is held out together: rows with equal inputs, or each row where these are few.

    They are few with five rows a place or more, or too few for folds, and most of the rows must lie at places with more
    than one target: copies of whole rows stay together.
    """
    rank = ranks_of_places(X, y)
    n_places = int(rank.max()) + 1
    if len(X) < ROWS_A_PLACE * n_places and n_places >= 2 * N_FOLDS:
        return rank
    low, high = np.full((2, n_places), [[np.inf], [-np.inf]])
    np.minimum.at(low, rank, y)
    np.maximum.at(high, rank, y)
    if 2 * int((low < high)[rank].sum()) <= len(X):
        return rank
    alone = np.empty(len(X), dtype=np.intp)
    alone[np.lexsort((*X.T, y))] = np.arange(len(X))
    return alone


#: (inputs, target) -> rank of each row
Ranks = Callable[[FloatArray, FloatArray], npt.NDArray[np.intp]]


def spread_out(n: int, most: int) -> npt.NDArray[np.intp]:
    """At most so many of n places in an order, evenly spread, the same from either end."""
    if n <= most:
        return np.arange(n)
    at = (np.arange(most) + 0.5) * (n / most)
    # rounded away from the middle on both sides
    return np.where(at < 0.5 * n, np.floor(at), n - 1 - np.floor(n - at)).astype(np.intp)


def some_rows(
    X: FloatArray, Y: FloatArray, ranks: Ranks = ranks_of_rows, most: int = MAX_ROWS
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """At most so many rows in the order of the first target, and their ranks."""
    rank = ranks(X, Y[:, 0])
    order = np.lexsort((*X.T, Y[:, 0], rank))
    some = order[spread_out(len(X), most)]
    return some, ranks(X[some], Y[some, 0])


def stacking_weights(
    densities: FloatArray, prior: Any = _PRIOR, steps: int = _STEPS, of_rows: RowWeights | None = None
) -> FloatArray:
    """Weights of K models under which their mixture predicts best, from log densities of rows held out, (K, N).

    Expectation and maximisation; a prior worth so many rows for each model, one number or (K,), keeps weights off zero.
    """
    count = len(densities)
    weights = np.full(count, 1.0 / count)
    prior = np.broadcast_to(np.asarray(prior, dtype=np.float64), count)
    counts = np.ones(densities.shape[1]) if of_rows is None else of_rows.count
    with np.errstate(invalid="ignore"):
        ratios = np.exp(densities - densities.max(axis=0))
    ratios[:, ~np.isfinite(ratios).all(axis=0)] = 1.0  # a row that no model has a density of says nothing
    for _ in range(steps):
        shares = ratios * weights[:, None]
        weights = ((shares / shares.sum(axis=0)) @ counts + prior) / (counts.sum() + prior.sum())
    return weights
