r"""Widths found by default: a shared one and one per input, integrated over and stacked by rows held out.

The widths per input :math:`m_d` that the evidence of all functions prefers measure distances between the rows; powers
:math:`m_d^\gamma`, from the shared width (:math:`\gamma=0`) to these (1), are metrics. In each, the size of the width
and all else is integrated out (`bayessel.linear.integrated`). The evidence would always take the widths per input that
maximise it; the weights :math:`w_\gamma` are those under which refitted folds, their widths found anew, predict rows
held out best (stacking), the constant with normal noise among them:

.. math:: \max_w \sum_n \log\sum_\gamma w_\gamma\, p_\gamma(t_n|x_n, \text{other folds}).

Folds are made of some rows only where there are many. Rows that neither they nor the widths per input were found on
are then predicted from all others by the fits to all rows, and count in the sum too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray, IntArray, check_magnitude
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights, counted, given, mean, medians, some, without_copies
from bayessel.basis import RBFDictionary
from bayessel.covariance import Bias, Noise, SquaredExponential
from bayessel.estimators.found_width import FoundWidth, robust_spread
from bayessel.estimators.held_out import (
    N_FOLDS,
    Refit,
    error_of_mean,
    gains_over_constant,
    mean_gain,
    some_rows,
    spread_out,
    stacking_weights,
    unsure,
)
from bayessel.fit import Status
from bayessel.gp import fit_map
from bayessel.linear.integrated import fit_integrated
from bayessel.linear.integrated.mixture import IntegratedFit, joined
from bayessel.linear.integrated.plain_models import fit_constant
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: powers of the widths per input
POWERS = (0.0, 0.5, 1.0)
#: rows of which folds are made: each is fitted three times with all powers
MOST_ROWS = 160
#: rows that the widths per input are found on
MOST_ROWS_OF_WIDTHS = 300
#: rows that the folds leave, of which so many count for the weights too
MOST_LEFT_OUT = 400
#: covariance whose lengths are the widths per input: without a plane, so that slopes count as relevance too
METRIC = Bias() + SquaredExponential() + Noise()
#: an input this many times less relevant than the middle one has no part in distances
LEAST_RELEVANT = 1e3
#: metrics, and the constant, with less weight than this are left out
LEAST_WEIGHT = 0.1
#: a gain over the constant of fewer standard errors is doubtful, and the constant then counts so many rows beforehand,
#: at most this share of those there are
CLEAR_ERRORS, DOUBTS, MOST_DOUBTS = 2.0, 10.0, 0.25
#: remarks on rows that no fold can be made of
DEGENERATE = frozenset({Status.TOO_FEW_ROWS, Status.CONSTANT_TARGET, Status.PURE_NOISE})


@dataclass(frozen=True, eq=False)
class RadialModel:
    """Radial functions and a trend: where the centres are (None: at the rows), of which kind, with a bias or not."""

    centers: FloatArray | None
    kind: str
    centre: bool

    def fit(
        self, X: FloatArray, t: FloatArray, spread: FloatArray, rows: RowWeights | None, fine: bool = True
    ) -> IntegratedFit:
        """All hyperparameters but the metric integrated out."""
        return fit_integrated(
            X,
            t,
            spread=spread,
            centers=self.centers,
            kind=self.kind,
            centre=self.centre,
            fine=fine,
            **given(rows),
        )

    def metrics(
        self, X: FloatArray, t: FloatArray, spread: FloatArray, powers: Sequence[float], rows: RowWeights | None = None
    ) -> list[FloatArray]:
        """Spreads of the inputs, one for each power of the widths per input, of the same geometric mean."""
        if not any(powers):
            return [spread] * len(powers)
        part = _rows_of_widths(X, t)
        Z, shown, rows = without_copies(X[part] / spread, t[part], some(rows, part))
        Z, shown = Z - medians(Z, rows), shown - medians(shown, rows)
        scale = float(mean(np.abs(shown), rows)) or 1.0
        with np.errstate(all="ignore"):
            found = fit_map(Z, shown / scale, METRIC, starts=2, **given(rows))
        if Status.INTERRUPTED in found.notes:
            raise KeyboardInterrupt
        weights = found.covariance.relevance(found.theta, X.shape[1])
        assert weights is not None
        log = -0.5 * np.log(weights)
        log = np.minimum(log, np.median(log) + np.log(LEAST_RELEVANT))
        return [spread * np.exp(power * (log - log.mean())) for power in powers]


def fit_stacked(
    X: FloatArray, t: FloatArray, model: RadialModel, row_weights: RowWeights | None = None
) -> tuple[IntegratedFit, FoundWidth]:
    """The stacked fit and what rows held out say of it."""
    began = perf_counter()
    X = np.ascontiguousarray(X)  # sums in one order, whatever the order in memory
    spread = robust_spread(X, row_weights)
    check_magnitude(spread, "the spread of X")
    powers = POWERS if X.shape[1] > 1 else POWERS[:1]
    rows, rank = some_rows(X, t[:, None])
    part = spread_out(len(rows), MOST_ROWS)
    rows, fold = rows[part], np.unique(rank[part], return_inverse=True)[1]
    folds = bool(fold.max() + 1 >= 2 * N_FOLDS and np.ptp(t[rows]) > 0.0)
    none, weights = np.full((1, 1), np.nan), np.array([1.0, 0.0])
    gains = of_folds = none
    parts: list[IntegratedFit] = []
    with few_threads(len(X) ** 2), InterruptGuard() as guard:
        if folds:
            shown = some(row_weights, rows)
            gains = of_folds = _gains(X[rows], t[rows], fold % N_FOLDS, spread, powers, model, shown)
            weights = clear(_weights(gains, shown))
        parts = _parts(X, t, spread, powers, weights, model, row_weights)
        left = _rows_left(X, t, rows) if folds else rows[:0]
        if len(left):
            more = _left_out(left, X, t, parts, weights, model, row_weights)
            gains, rows, had = np.hstack([gains, more]), np.concatenate([rows, left]), weights > 0.0
            weights = clear(np.where(had, _weights(gains, some(row_weights, rows)), 0.0))
            parts = [part for part, w in zip(parts, weights[had], strict=True) if w > 0.0]
    notes = [Status.INTERRUPTED] if guard.interrupted else []
    if guard.interrupted:
        gains, of_folds, weights = none, none, np.array([1.0, 0.0])
        parts = [model.fit(X, t, spread, row_weights, fine=False)]
    if DEGENERATE & set(parts[0].notes):
        parts, weights, gains, of_folds = parts[:1], np.array([1.0, 0.0]), none, none
    elif not folds:
        notes.append(Status.TOO_FEW_ROWS)
    shown = some(row_weights, rows) if gains.size > 1 else None
    every = np.vstack([gains, np.zeros(gains.shape[1])])
    with np.errstate(divide="ignore"):
        stacked = logsumexp(every + np.log(weights)[:, None], axis=0)
    if np.isfinite(stacked).all() and unsure(stacked, shown):
        notes.append(Status.NO_BETTER_THAN_CONSTANT)
    weighed = weights[weights > 0.0]
    fit = joined(parts, weighed, main=int(np.argmax(weighed[: int((weights[:-1] > 0.0).sum())])))
    path = tuple(
        {"power": power, "gain": mean_gain(line, some(row_weights, rows[: len(line)])), "weight": float(weight)}
        for power, line, weight in zip(powers, of_folds, weights, strict=False)
    )
    dictionary = fit.mode.dictionary
    assert isinstance(dictionary, RBFDictionary)
    found = FoundWidth(
        widths=np.asarray(dictionary.width),
        spread=spread,
        gain=float(mean(stacked, shown)),
        error=error_of_mean(stacked, shown),
        path=path,
        notes=tuple(notes),
    )
    return replace(fit, seconds=perf_counter() - began), found


def _parts(
    X: FloatArray,
    t: FloatArray,
    spread: FloatArray,
    powers: Sequence[float],
    weights: FloatArray,
    model: RadialModel,
    row_weights: RowWeights | None,
) -> list[IntegratedFit]:
    """Fits to all rows in the metrics that have weight, and the constant where that has."""
    used = [power for power, w in zip(powers, weights, strict=False) if w > 0.0]
    metrics = model.metrics(X, t, spread, used, row_weights)
    parts = [model.fit(X, t, metric, row_weights) for metric in metrics]
    if not weights[-1] > 0.0:
        return parts
    # that it holds no signal is no remark on the others
    constant = fit_constant(X, t, centre=model.centre, **given(row_weights))
    return [*parts, replace(constant, notes=(), status=Status.CONVERGED)]


def _rows_of_widths(X: FloatArray, t: FloatArray) -> IntArray:
    """Rows that the widths per input are found on, all targets among them."""
    return np.lexsort((*X.T, t))[spread_out(len(X), MOST_ROWS_OF_WIDTHS)]


def _rows_left(X: FloatArray, t: FloatArray, used: IntArray) -> IntArray:
    """Rows with inputs of their own that neither folds, which used those, nor widths per input were found on."""
    left = np.ones(len(X), dtype=bool)
    left[used] = left[_rows_of_widths(X, t)] = False
    groups = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    left &= np.bincount(groups)[groups] == 1
    rows = np.lexsort((*X.T, t))
    rows = rows[left[rows]]
    return rows[spread_out(len(rows), MOST_LEFT_OUT)]


def _left_out(
    left: IntArray,
    X: FloatArray,
    t: FloatArray,
    parts: Sequence[IntegratedFit],
    weights: FloatArray,
    model: RadialModel,
    row_weights: RowWeights | None,
) -> FloatArray:
    """Nats over a constant of rows that the parts predict from all others; minus infinity in metrics without a part."""
    constant = fit_constant(X, t, centre=model.centre, **given(row_weights)).leave_one_out(left).log_densities
    found = np.full((len(weights) - 1, len(left)), -np.inf)
    found[weights[:-1] > 0.0] = [
        part.leave_one_out(left).log_densities - constant for part in parts[: int(np.count_nonzero(weights[:-1]))]
    ]
    return found


def _weights(gains: FloatArray, of_rows: RowWeights | None) -> FloatArray:
    """Stacking weights of the metrics and of the constant, which counts for more where none is clearly better."""
    best = gains[int(np.argmax([mean_gain(line, of_rows) for line in gains]))]
    clear = mean_gain(best, of_rows) > CLEAR_ERRORS * error_of_mean(best, of_rows)
    doubts = min(DOUBTS, MOST_DOUBTS * counted(best, of_rows))
    prior = np.append(np.ones(len(gains)), 1.0 if clear else max(doubts, 1.0))
    return stacking_weights(np.vstack([gains, np.zeros(gains.shape[1])]), prior, of_rows=of_rows)


def clear(weights: FloatArray) -> FloatArray:
    """Weights of the metrics and of the constant, those of the least given to the best metric."""
    small = weights < LEAST_WEIGHT
    best = int(np.argmax(weights[:-1]))
    cleared = np.where(small, 0.0, weights)
    cleared[best] += 1.0 - cleared.sum()
    return np.asarray(cleared)


def _gains(
    X: FloatArray,
    t: FloatArray,
    fold: npt.NDArray[np.intp],
    spread: FloatArray,
    powers: Sequence[float],
    model: RadialModel,
    row_weights: RowWeights | None = None,
) -> FloatArray:
    """Nats over a constant of each row in each metric, predicted by the fits to the other folds, (powers, N)."""
    fits: dict[int, list[IntegratedFit]] = {}

    def predicted(power: int) -> Refit:
        def prediction(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
            if k not in fits:
                shown = some(row_weights, train)
                metrics = model.metrics(X[train], seen, spread, powers, shown)
                fits[k] = [model.fit(X[train], seen, metric, shown, fine=False) for metric in metrics]
            return fits[k][power].predict(X[~train])

        return prediction

    each = range(len(powers))
    return np.array([gains_over_constant(t[:, None], fold, predicted(power), row_weights) for power in each])
