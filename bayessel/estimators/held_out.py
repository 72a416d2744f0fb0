r"""Rows held out of folds that are fitted anew: what a fit predicts of them, beside a constant with normal noise.

A row is worth

.. math:: g_n = \log p(t_n|x_n, \text{other folds}) - \log N(t_n|\bar t, s_t^2(1+1/n)),

with the mean and the variance of the n rows that were fitted: nats over a constant. Rows with equal inputs are held out
together, and folds follow the order of the targets, so that the order of the rows changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.prediction import Prediction

N_FOLDS = 3
#: rows that are looked at: the cost of a fold is the cube of their number
MAX_ROWS = 300
#: steps of the iteration for stacking weights, and the rows that their prior counts
_STEPS, _PRIOR = 200, 1.0
_EPS = float(np.finfo(float).eps)

#: (fold, which rows are fitted, one target of these rows) -> predictions of the other rows
Refit = Callable[[int, npt.NDArray[np.bool_], FloatArray], Prediction]


def gains_over_constant(T: FloatArray, fold: npt.NDArray[np.intp], predicted: Refit) -> FloatArray:
    """Nats over a constant of each row, (N,), predicted by the fit to the other folds; summed over targets (N, K)."""
    gains = np.zeros(len(T))
    for k in range(N_FOLDS):
        held = fold == k
        n = int((~held).sum())
        for t, seen in zip(T[held].T, T[~held].T, strict=True):
            floor = max((4.0 * _EPS * float(np.abs(seen).max())) ** 2, float(np.finfo(float).tiny))
            there = predicted(k, ~held, seen)
            constant = max(float(seen.var(ddof=1)) * (1.0 + 1.0 / n), floor)
            gains[held] += replace(there, variances=np.maximum(there.variances, floor)).log_density(t)
            gains[held] -= log_normal(t - seen.mean(), constant)
    return gains


def unsure(gains: FloatArray) -> bool:
    """Whether the mean gain is within a standard error of nothing, or below it."""
    least = 1e-9  # the constant beside itself is rounding apart
    return not mean_gain(gains) > max(float(gains.std() / np.sqrt(len(gains))), least)


def mean_gain(gains: FloatArray) -> float:
    """Mean, minus infinity where a density is no number."""
    return float(gains.mean()) if np.isfinite(gains).all() else -np.inf


def ranks_of_rows(X: FloatArray, y: FloatArray) -> npt.NDArray[np.intp]:
    """Rank of each row by its target, equal inputs sharing the rank of the largest of theirs."""
    groups = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    largest = np.full(groups.max() + 1, -np.inf)
    np.maximum.at(largest, groups, y)
    rank = np.empty(len(largest), dtype=np.intp)
    rank[np.argsort(largest, kind="stable")] = np.arange(len(largest))
    return np.asarray(rank[groups])


def some_rows(X: FloatArray, Y: FloatArray) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """At most so many rows in the order of the first target, and their ranks."""
    rank = ranks_of_rows(X, Y[:, 0])
    order = np.lexsort((*X.T, Y[:, 0], rank))
    some = order[:: -(-len(X) // MAX_ROWS)]
    return some, ranks_of_rows(X[some], Y[some, 0])


def stacking_weights(densities: FloatArray, prior: Any = _PRIOR, steps: int = _STEPS) -> FloatArray:
    """Weights of K models under which their mixture predicts best, from log densities of rows held out, (K, N).

    Expectation and maximisation; a prior worth so many rows for each model, one number or (K,), keeps weights off zero.
    """
    count = len(densities)
    weights = np.full(count, 1.0 / count)
    prior = np.broadcast_to(np.asarray(prior, dtype=np.float64), count)
    for _ in range(steps):
        logs = densities + np.log(weights)[:, None]
        with np.errstate(invalid="ignore"):
            shares = np.exp(logs - logsumexp(logs, axis=0))
        shares = np.where(np.isfinite(shares), shares, 1.0 / count)
        weights = (shares.sum(axis=1) + prior) / (densities.shape[1] + prior.sum())
    return weights
