r"""Widths found by default: a shared one and one per input, integrated over and stacked by rows held out.

The widths per input :math:`m_d` that the evidence of all functions prefers measure distances between the rows; powers
:math:`m_d^\gamma`, from the shared width (:math:`\gamma=0`) to these (1), are metrics. In each, the size of the width
and all else is integrated out (`bayessel.linear.integrated`). The evidence would always take the widths per input that
maximise it; the weights :math:`w_\gamma` are those under which refitted folds, their widths found anew, predict rows
held out best (stacking):

.. math:: \max_w \sum_n \log\sum_\gamma w_\gamma\, p_\gamma(t_n|x_n, \text{other folds}).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._numerics import few_threads
from bayessel.estimators.found_width import FoundWidth, robust_spread
from bayessel.estimators.held_out import (
    N_FOLDS,
    Refit,
    gains_over_constant,
    mean_gain,
    some_rows,
    stacking_weights,
    unsure,
)
from bayessel.fit import Status
from bayessel.linear import fit_abf
from bayessel.linear.integrated import fit_integrated
from bayessel.linear.integrated.mixture import IntegratedFit, joined
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: powers of the widths per input
POWERS = (0.0, 0.5, 1.0)
#: rows of which folds are made: each is fitted three times with all powers
MOST_ROWS = 160
#: rows that the widths per input are found on
MOST_ROWS_OF_WIDTHS = 300
#: an input this many times less relevant than the middle one has no part in distances
LEAST_RELEVANT = 1e3
#: steps of the search for the widths per input
MOST_STEPS = 60
#: metrics with less weight than this are left out
LEAST_WEIGHT = 0.02
#: remarks on rows that no fold can be made of
DEGENERATE = frozenset({Status.TOO_FEW_ROWS, Status.CONSTANT_TARGET, Status.PURE_NOISE})


@dataclass(frozen=True, eq=False)
class RadialModel:
    """Radial functions and a trend: where the centres are (None: at the rows), of which kind, with a bias or not."""

    centers: FloatArray | None
    kind: str
    centre: bool

    def fit(self, X: FloatArray, t: FloatArray, spread: FloatArray, fine: bool = True) -> IntegratedFit:
        """All hyperparameters but the metric integrated out."""
        return fit_integrated(X, t, spread=spread, centers=self.centers, kind=self.kind, centre=self.centre, fine=fine)

    def metrics(self, X: FloatArray, t: FloatArray, spread: FloatArray, powers: Sequence[float]) -> list[FloatArray]:
        """Spreads of the inputs, one for each power of the widths per input, of the same geometric mean."""
        if not any(powers):
            return [spread] * len(powers)
        some = np.lexsort((*X.T, t))[:: -(-len(X) // MOST_ROWS_OF_WIDTHS)]
        Z = X[some] / spread
        middles = Z if self.centers is None else self.centers[:: -(-len(self.centers) // MOST_ROWS_OF_WIDTHS)] / spread
        with np.errstate(all="ignore"):
            found = fit_abf(
                Z, t[some], centers=middles, kind=self.kind, centre=self.centre, n_starts=1, max_steps=MOST_STEPS
            )
        if Status.INTERRUPTED in found.notes:
            raise KeyboardInterrupt
        log = np.log(found.widths)
        log = np.minimum(log, np.median(log) + np.log(LEAST_RELEVANT))
        return [spread * np.exp(power * (log - log.mean())) for power in powers]


def fit_stacked(X: FloatArray, t: FloatArray, model: RadialModel) -> tuple[IntegratedFit, FoundWidth]:
    """The stacked fit and what rows held out say of it."""
    spread = robust_spread(X)
    powers = POWERS if X.shape[1] > 1 else POWERS[:1]
    rows, rank = some_rows(X, t[:, None])
    step = -(-len(rows) // MOST_ROWS)
    rows, fold = rows[::step], np.unique(rank[::step], return_inverse=True)[1]
    gains, weights = np.full((1, 1), np.nan), np.ones(1)
    parts: list[IntegratedFit] = []
    with few_threads(len(X) ** 2), InterruptGuard(lambda: parts) as guard:
        parts.append(model.fit(X, t, spread))
        if fold.max() + 1 >= 2 * N_FOLDS and not DEGENERATE & set(parts[0].notes):
            gains = _gains(X[rows], t[rows], fold % N_FOLDS, spread, powers, model)
            weights = stacking_weights(gains)
            weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
            parts = _parts(parts[0], X, t, spread, powers, weights, model)
    notes = [Status.INTERRUPTED] if guard.interrupted else []
    if guard.interrupted:
        parts, weights, gains = parts[:1], np.ones(1), np.full((1, 1), np.nan)
    weights = weights[weights > 0.0] / weights.sum()
    stacked = logsumexp(gains + np.log(stacking_weights(gains))[:, None], axis=0)
    if fold.max() + 1 < 2 * N_FOLDS and not DEGENERATE & set(parts[0].notes):
        notes.append(Status.TOO_FEW_ROWS)
    if np.isfinite(stacked).all() and unsure(stacked):
        notes.append(Status.NO_BETTER_THAN_CONSTANT)
    fit = joined(parts, weights)
    path = tuple({"power": power, "gain": mean_gain(line)} for power, line in zip(powers, gains, strict=False))
    found = FoundWidth(
        widths=np.asarray(fit.mode.dictionary.width),
        spread=spread,
        gain=float(stacked.mean()),
        error=float(stacked.std() / np.sqrt(len(stacked))),
        path=path,
        notes=tuple(notes),
    )
    return fit, found


def _parts(
    first: IntegratedFit,
    X: FloatArray,
    t: FloatArray,
    spread: FloatArray,
    powers: Sequence[float],
    weights: FloatArray,
    model: RadialModel,
) -> list[IntegratedFit]:
    """Fits to all rows in the metrics that have weight."""
    if not weights[1:].any():
        return [first]
    metrics = model.metrics(X, t, spread, powers)
    others = zip(metrics[1:], weights[1:], strict=True)
    return [*([first] if weights[0] > 0.0 else []), *(model.fit(X, t, metric) for metric, w in others if w > 0.0)]


def _gains(
    X: FloatArray,
    t: FloatArray,
    fold: npt.NDArray[np.intp],
    spread: FloatArray,
    powers: Sequence[float],
    model: RadialModel,
) -> FloatArray:
    """Nats over a constant of each row in each metric, predicted by the fits to the other folds, (powers, N)."""
    fits: dict[int, list[IntegratedFit]] = {}

    def predicted(power: int) -> Refit:
        def prediction(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
            if k not in fits:
                metrics = model.metrics(X[train], seen, spread, powers)
                fits[k] = [model.fit(X[train], seen, metric, fine=False) for metric in metrics]
            return fits[k][power].predict(X[~train])

        return prediction

    return np.array([gains_over_constant(t[:, None], fold, predicted(power)) for power in range(len(powers))])
