"""A mode of a Gaussian process beside folds fitted anew, which say whether it predicts better than a constant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.covariance import Covariance
from bayessel.estimators import held_out
from bayessel.estimators._process_parts import states_around
from bayessel.estimators.residual_checks import remarks_on_patterns, remarks_on_residuals
from bayessel.fit import Status, worst
from bayessel.gp import Predictor, fit_map
from bayessel.gp.map_result import GPFit
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: nats a row over a constant, by leave-one-out, from which on no fold needs to be fitted anew
CLEAR_GAIN = 0.5


def witnessed(mode: GPFit, covariance: Covariance | None, seed: int) -> tuple[GPFit, float]:
    """The mode and its weight beside a constant, with remarks on its residuals and where folds fitted anew doubt it.

    Leave-one-out at hyperparameters fitted to all rows flatters, so it only tells which fits need no such look.
    """
    X, t = mode.X, mode.t
    if Status.INTERRUPTED in mode.notes or not np.ptp(t) > 0.0:
        return mode, 1.0
    left_out = mode.leave_one_out()
    residuals = left_out.errors / np.sqrt(left_out.variances)
    mode = _remarked(mode, (*remarks_on_residuals(residuals), *remarks_on_patterns(left_out, X, t)))
    some, rank = held_out.some_rows(X, t[:, None])
    if len(t) < 2 * held_out.N_FOLDS:
        return _remarked(mode, (Status.TOO_FEW_ROWS,)), 1.0
    if held_out.mean_gain(left_out.log_densities - log_normal(t - t.mean(), t.var(ddof=1))) > CLEAR_GAIN:
        return mode, 1.0
    if rank.max() + 1 < 2 * held_out.N_FOLDS:
        return mode, 1.0
    X, fold = X[some], rank % held_out.N_FOLDS

    def predicted(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
        fit = fit_map(X[train], seen, covariance, random_state=seed)
        if Status.INTERRUPTED in fit.notes:
            raise KeyboardInterrupt
        return Predictor(fit.X, fit.t, fit.covariance, states_around(fit))(X[~train])

    notes: tuple[Status, ...] = ()
    share = 1.0
    with InterruptGuard() as guard:
        gains = held_out.gains_over_constant(t[some, None], fold, predicted)
        if held_out.unsure(gains):
            notes = (Status.NO_BETTER_THAN_CONSTANT,)
            share = float(held_out.stacking_weights(np.array([gains, np.zeros(len(gains))]))[0])
    if guard.interrupted:
        notes = (Status.INTERRUPTED,)
    return _remarked(mode, notes), share


def _remarked(mode: GPFit, notes: tuple[Status, ...]) -> GPFit:
    return replace(mode, status=worst([mode.status, *notes]), notes=(*mode.notes, *notes)) if notes else mode
