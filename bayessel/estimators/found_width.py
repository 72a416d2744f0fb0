r"""Width of radial functions found on inputs in their own spread, judged by rows held out of folds fitted anew.

Column d is measured in its spread :math:`s_d`; a shared width r in these units is :math:`r_d = r s_d` in the user's.
Each candidate is worth the mean over held-out rows of the gain over a constant of `bayessel.estimators.held_out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from bayessel._check import FloatArray
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights, given, quantile, some
from bayessel.basis import radial
from bayessel.estimators.held_out import (
    MAX_ROWS,
    N_FOLDS,
    error_of_mean,
    gains_over_constant,
    mean_gain,
    ranks_of_places,
    some_rows,
    unsure,
)
from bayessel.fit import Status
from bayessel.linear import fit_abf
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: (design, target, what is known of the rows) -> a fit
Engine = Callable[[FloatArray, FloatArray, RowWeights | None], Any]

#: widths compared, from the distance of nearest neighbours to this multiple of a typical distance
N_WIDTHS = 10
WIDEST = 8.0
#: rows that a slow engine is judged on at the width found
MAX_SLOW_ROWS = 150
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class FoundWidth:
    """Width that was found, and what it is worth on rows held out.

    Attributes
    ----------
    widths : (D,) array
        r of each input, in the units of the input.
    spread : (D,) array
        Robust spread of each input, `robust_spread`.
    gain, error : float
        Nats per held-out row over a constant with normal noise, and its standard error; nan with too few rows for
        folds.
    path : tuple of dict
        Every shared ``width`` compared, in units of the spread, and its ``gain``.
    notes : tuple of Status
        NO_BETTER_THAN_CONSTANT where `gain` is less than its error, INTERRUPTED after Ctrl-C.
    """

    widths: FloatArray
    spread: FloatArray
    gain: float
    error: float
    path: tuple[dict[str, float], ...]
    notes: tuple[Status, ...]


def robust_spread(X: FloatArray, weights: RowWeights | None = None) -> FloatArray:
    """Spread of each column, one standard deviation where it is normal.

    Half the distance of the quantiles 0.16 and 0.84; half the distance of two values (flags, one-hot columns); where
    most rows have one value, the median distance of the others from it; 1 for a constant.
    """
    spread = np.ones(X.shape[1])
    for d, column in enumerate(X.T):
        values = np.unique(column)
        if values[-1] / 2.0 - values[0] / 2.0 <= 4.0 * _EPS * np.abs(values).max():
            continue
        # halves first: the range may not be a number
        low, high, middle = _quantiles(column / 2.0, weights)
        away = np.abs(column / 2.0 - middle)
        if len(values) == 2:
            spread[d] = values[1] / 2.0 - values[0] / 2.0
        elif high - low > 4.0 * _EPS * np.abs(values).max():
            spread[d] = high - low
        else:
            spread[d] = 2.0 * _quantiles(away[away > 0.0], some(weights, away > 0.0))[2]
    return np.maximum(spread, float(np.finfo(float).tiny))


def _quantiles(values: FloatArray, weights: RowWeights | None) -> tuple[float, float, float]:
    """Quantiles 0.16 and 0.84, and the median."""
    if weights is None:
        low, high = np.quantile(values, [0.16, 0.84])
        return float(low), float(high), float(np.median(values))
    low, high, middle = (quantile(values, q, weights.count) for q in (0.16, 0.84, 0.5))
    return low, high, middle


@dataclass(frozen=True, eq=False)
class WidthFolds:
    """Rows in units of their spread, with the fold of each, and the radial functions fitted to them.

    Attributes
    ----------
    Z, T
        Inputs (N, D), targets (N, K).
    fold
        Number of the fold of each row.
    centers
        Centres of the functions; None: the rows fitted.
    kind
        Of the functions.
    weights
        What is known of the rows.
    """

    Z: FloatArray
    T: FloatArray
    fold: npt.NDArray[np.intp]
    centers: FloatArray | None
    kind: str
    weights: RowWeights | None = None

    def gains(self, engine: Engine, widths: Sequence[FloatArray]) -> FloatArray:
        """Nats over a constant of each row, predicted by the fit to the other folds, each with its widths."""
        Z, centers, weights = self.Z, self.centers, self.weights

        def predicted(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
            middle = (Z[train] if centers is None else centers) / widths[k]
            design, fresh = (
                radial(self.kind, cdist(rows / widths[k], middle, "sqeuclidean")) for rows in (Z[train], Z[~train])
            )
            shown = some(weights, train)
            if shown is not None and centers is None:  # a row that counts twice is two centres
                design, fresh = design * np.sqrt(shown.count), fresh * np.sqrt(shown.count)
            return engine(design, seen, shown).predict(fresh)

        return gains_over_constant(self.T, self.fold, predicted, weights)

    def per_input(self, engine: Engine, bias: bool) -> tuple[FloatArray, FloatArray]:
        """Gains of widths per input, found anew in each fold, and the widths that all rows prefer."""

        def found(part: npt.NDArray[np.bool_]) -> FloatArray:
            own = self.Z[part] if self.centers is None else self.centers
            fit = fit_abf(
                self.Z[part],
                self.T[part, 0],
                centers=own,
                kind=self.kind,
                centre=bias,
                n_starts=1,
                max_steps=60,
                **given(some(self.weights, part)),
            )
            if Status.INTERRUPTED in fit.notes:
                raise KeyboardInterrupt
            return fit.widths

        widths = [found(self.fold != k) for k in range(N_FOLDS)]
        return self.gains(engine, widths), found(np.ones(len(self.Z), dtype=bool))


def find_width(
    X: FloatArray,
    Y: FloatArray,
    screen: Engine,
    *,
    centers: FloatArray | None,
    kind: str,
    bias: bool,
    judge: Engine | None = None,
    per_input: bool = False,
    weights: RowWeights | None = None,
) -> FoundWidth:
    """Shared width, or one per input, whose refitted folds predict held-out rows best.

    Parameters
    ----------
    X, Y
        Inputs (N, D), targets (N, K).
    screen
        Engine that every shared width is fitted with.
    centers
        Centres of the functions; None: the rows fitted, in each fold its own.
    kind, bias
        Of the radial functions; whether the widths per input are fitted beside a constant.
    judge
        Engine that the width is judged with in the end, where it is slower than `screen`.
    per_input
        Offer the widths that the evidence of all functions prefers (`bayessel.linear.fit_abf`) as well.
    weights
        What is known of the rows.
    """
    spread = robust_spread(X, weights)
    rows, rank = some_rows(X, Y, ranks_of_places)
    Z, T, shown = X[rows] / spread, Y[rows], some(weights, rows)
    everyone = shown
    C = None if centers is None else centers[:: -(-len(centers) // MAX_ROWS)] / spread
    folds = WidthFolds(Z, T, rank % N_FOLDS, C, kind, shown)
    typical, grid = _grid(Z)
    plain = FoundWidth(typical * spread, spread, np.nan, np.nan, (), ())
    if rank.max() + 1 < 2 * N_FOLDS or not (np.ptp(T, axis=0) > 0.0).any():
        return plain
    engine, notes = judge or screen, []
    path: list[tuple[float, FloatArray]] = []
    with few_threads(len(Z) ** 2), np.errstate(all="ignore"):
        with InterruptGuard(lambda: path) as guard:
            for r in grid:
                path.append((float(r), folds.gains(screen, [np.full(Z.shape[1], r)] * N_FOLDS)))
            best = max(path, key=lambda one: mean_gain(one[1], everyone))
            widths, gains = np.full(Z.shape[1], best[0]), best[1]
            if judge is not None:
                few = rank % -(-len(Z) // MAX_SLOW_ROWS) == 0 if len(Z) > MAX_SLOW_ROWS else np.ones(len(Z), dtype=bool)
                again = ranks_of_places(Z[few], T[few, 0]) % N_FOLDS
                shown = some(shown, few)
                gains = WidthFolds(Z[few], T[few], again, C, kind, shown).gains(judge, [widths] * N_FOLDS)
            if per_input and Z.shape[1] > 1 and T.shape[1] == 1:
                rivals = [(gains, widths, shown), (*folds.per_input(engine, bias), everyone)]
                gains, widths, shown = max(rivals, key=lambda one: mean_gain(one[0], one[2]))
        if guard.interrupted:
            notes.append(Status.INTERRUPTED)
            best = max(path, key=lambda one: mean_gain(one[1], everyone))
            widths, gains, shown = np.full(Z.shape[1], best[0]), best[1], everyone
    gain, error = mean_gain(gains, shown), error_of_mean(gains, shown)
    if unsure(gains, shown):
        notes.append(Status.NO_BETTER_THAN_CONSTANT)
    values = tuple({"width": r, "gain": mean_gain(g, everyone)} for r, g in path)
    return FoundWidth(widths * spread, spread, gain, error, values, tuple(notes))


def _grid(Z: FloatArray) -> tuple[float, FloatArray]:
    """Typical distance of two rows, and the widths to compare."""
    apart = np.unique(Z, axis=0)
    if len(apart) < 2:
        return float(np.sqrt(2.0 * Z.shape[1])), np.zeros(0)
    distances = cdist(apart, apart)
    typical = float(np.median(distances[np.triu_indices(len(apart), 1)]))
    np.fill_diagonal(distances, np.inf)
    nearest = max(float(np.median(distances.min(axis=1))), 1e-2 * typical)
    return typical, np.geomspace(nearest, WIDEST * typical, N_WIDTHS)
