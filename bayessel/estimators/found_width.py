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
from bayessel.basis import radial
from bayessel.estimators.held_out import (
    MAX_ROWS,
    N_FOLDS,
    gains_over_constant,
    mean_gain,
    ranks_of_rows,
    some_rows,
    unsure,
)
from bayessel.fit import Status
from bayessel.linear import fit_abf
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: (design, target) -> a fit
Engine = Callable[[FloatArray, FloatArray], Any]

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


def robust_spread(X: FloatArray) -> FloatArray:
    """Spread of each column, one standard deviation where it is normal.

    Half the distance of the quantiles 0.16 and 0.84; half the distance of two values (flags, one-hot columns); where
    most rows have one value, the median distance of the others from it; 1 for a constant.
    """
    spread = np.ones(X.shape[1])
    for d, column in enumerate(X.T):
        values = np.unique(column)
        if values[-1] / 2.0 - values[0] / 2.0 <= 4.0 * _EPS * np.abs(values).max():
            continue
        low, high = np.quantile(column / 2.0, [0.16, 0.84])  # halves first: the range may not be a number
        away = np.abs(column / 2.0 - np.median(column) / 2.0)
        if len(values) == 2:
            spread[d] = values[1] / 2.0 - values[0] / 2.0
        elif high - low > 4.0 * _EPS * np.abs(values).max():
            spread[d] = high - low
        else:
            spread[d] = 2.0 * np.median(away[away > 0.0])
    return np.maximum(spread, float(np.finfo(float).tiny))


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
    """

    Z: FloatArray
    T: FloatArray
    fold: npt.NDArray[np.intp]
    centers: FloatArray | None
    kind: str

    def gains(self, engine: Engine, widths: Sequence[FloatArray]) -> FloatArray:
        """Nats over a constant of each row, predicted by the fit to the other folds, each with its widths."""
        Z, centers = self.Z, self.centers

        def predicted(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
            middle = (Z[train] if centers is None else centers) / widths[k]
            design, fresh = (
                radial(self.kind, cdist(rows / widths[k], middle, "sqeuclidean")) for rows in (Z[train], Z[~train])
            )
            return engine(design, seen).predict(fresh)

        return gains_over_constant(self.T, self.fold, predicted)

    def per_input(self, engine: Engine, bias: bool) -> tuple[FloatArray, FloatArray]:
        """Gains of widths per input, found anew in each fold, and the widths that all rows prefer."""

        def found(some: npt.NDArray[np.bool_]) -> FloatArray:
            own = self.Z[some] if self.centers is None else self.centers
            fit = fit_abf(
                self.Z[some], self.T[some, 0], centers=own, kind=self.kind, centre=bias, n_starts=1, max_steps=60
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
    """
    spread = robust_spread(X)
    rows, rank = some_rows(X, Y)
    Z, T = X[rows] / spread, Y[rows]
    C = None if centers is None else centers[:: -(-len(centers) // MAX_ROWS)] / spread
    folds = WidthFolds(Z, T, rank % N_FOLDS, C, kind)
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
            best = max(path, key=lambda one: mean_gain(one[1]))
            widths, gains = np.full(Z.shape[1], best[0]), best[1]
            if judge is not None:
                few = rank % -(-len(Z) // MAX_SLOW_ROWS) == 0 if len(Z) > MAX_SLOW_ROWS else np.ones(len(Z), dtype=bool)
                again = ranks_of_rows(Z[few], T[few, 0]) % N_FOLDS
                gains = WidthFolds(Z[few], T[few], again, C, kind).gains(judge, [widths] * N_FOLDS)
            if per_input and Z.shape[1] > 1 and T.shape[1] == 1:
                gains, widths = max((gains, widths), folds.per_input(engine, bias), key=lambda pair: mean_gain(pair[0]))
        if guard.interrupted:
            notes.append(Status.INTERRUPTED)
            best = max(path, key=lambda one: mean_gain(one[1]))
            widths, gains = np.full(Z.shape[1], best[0]), best[1]
    gain, error = mean_gain(gains), float(gains.std() / np.sqrt(len(gains)))
    if unsure(gains):
        notes.append(Status.NO_BETTER_THAN_CONSTANT)
    values = tuple({"width": r, "gain": mean_gain(g)} for r, g in path)
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
