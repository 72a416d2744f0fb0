r"""A dictionary of the user's own in an estimator: what is refused beside it, and what folds fitted anew say of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray, as_flag
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights, given, mean, some
from bayessel.basis.bound_dictionary import BoundDictionary
from bayessel.estimators.held_out import (
    N_FOLDS,
    error_of_mean,
    gains_over_constant,
    some_rows,
    stacking_weights,
    unsure,
)
from bayessel.estimators.stacked_widths import DEGENERATE, clear
from bayessel.fit import Status, worst
from bayessel.linear.integrated.fixed_dictionary import fit_integrated_dictionary
from bayessel.linear.integrated.mixture import IntegratedFit, joined
from bayessel.linear.integrated.plain_models import fit_constant
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: parameters of the radial functions that are made where no dictionary is given
RADIAL = {"width": None, "centers": None, "kind": "gaussian"}


@dataclass(frozen=True, eq=False)
class FoldWitness:
    """What rows held out of folds fitted anew say.

    Attributes
    ----------
    gain, error : float
        Nats per held-out row over a constant with normal noise, of the fit with its share of the constant, and the
        standard error; nan with too few rows for folds.
    share : float
        Weight of the dictionary's fit in the predictions, under which the rows held out are predicted best; the rest is
        the constant's.
    notes : tuple of Status
        NO_BETTER_THAN_CONSTANT where it is, TOO_FEW_ROWS without folds, INTERRUPTED after Ctrl-C.
    """

    gain: float
    error: float
    share: float
    notes: tuple[Status, ...]


def bound_dictionary(estimator: Any, X: FloatArray) -> BoundDictionary:
    """The dictionary of an estimator, bound to the training inputs."""
    for name, plain in RADIAL.items():
        value = getattr(estimator, name)
        if not (value is plain or (isinstance(value, str) and value == plain)):
            raise ValueError(
                f"{name} is about the radial functions of dictionary=None: leave it alone where a dictionary "
                "is given (an RBFDictionary has its own)"
            )
    return BoundDictionary(estimator.dictionary, X, as_flag(estimator.bias, "bias"))


def fit_witnessed(
    X: FloatArray, t: FloatArray, dictionary: BoundDictionary, weights_of_rows: RowWeights | None = None
) -> tuple[IntegratedFit, FoldWitness]:
    """The fit that integrates signal and noise, stacked with the constant by rows held out of refitted folds."""
    centre = dictionary.bias
    fit = fit_integrated_dictionary(X, t, dictionary, centre=centre, **given(weights_of_rows))
    if DEGENERATE & set(fit.notes):
        return fit, FoldWitness(np.nan, np.nan, 1.0, ())
    witness = _witness(X, t, dictionary, weights_of_rows)
    if witness.share < 1.0:
        # that it holds no signal is no remark on the columns
        constant = fit_constant(X, t, centre=centre, **given(weights_of_rows))
        constant = replace(constant, notes=(), status=Status.CONVERGED)
        fit = joined([fit, constant], np.array([witness.share, 1.0 - witness.share]), main=0)
    every = (*fit.notes, *witness.notes)
    return replace(fit, notes=every, status=worst(every)), witness


def _witness(X: FloatArray, t: FloatArray, dictionary: BoundDictionary, rows: RowWeights | None) -> FoldWitness:
    """What folds say of the columns beside the constant."""
    few, rank = some_rows(X, t[:, None])
    if rank.max() + 1 < 2 * N_FOLDS or not np.ptp(t[few]) > 0.0:
        return FoldWitness(np.nan, np.nan, 1.0, (Status.TOO_FEW_ROWS,))
    Z, fold, shown = X[few], rank % N_FOLDS, some(rows, few)

    def predicted(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
        known = given(some(shown, train))
        fit = fit_integrated_dictionary(Z[train], seen, dictionary, centre=dictionary.bias, **known)
        return fit.predict(Z[~train])

    gains = np.full(1, np.nan)
    with few_threads(len(Z) ** 2), np.errstate(all="ignore"), InterruptGuard(lambda: True) as guard:
        gains = gains_over_constant(t[few, None], fold, predicted, shown)
    if guard.interrupted:
        return FoldWitness(np.nan, np.nan, 1.0, (Status.INTERRUPTED,))
    both = np.array([np.nan_to_num(gains, nan=-1e300, neginf=-1e300), np.zeros(len(gains))])
    weights = clear(stacking_weights(both, of_rows=shown))
    stacked = logsumexp(both, axis=0, b=weights[:, None])
    notes = (Status.NO_BETTER_THAN_CONSTANT,) if unsure(stacked, shown) else ()
    return FoldWitness(float(mean(stacked, shown)), error_of_mean(stacked, shown), float(weights[0]), notes)
