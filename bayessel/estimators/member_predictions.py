"""What members of an average predict, and how they are fitted anew: estimators, pipelines and fits of engines alike."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from bayessel._check import FloatArray
from bayessel.diagnostics import fit_reader
from bayessel.diagnostics.fit_reader import unwrap
from bayessel.errors import NumericalWarning
from bayessel.estimators._changing_rows import TrainingRows
from bayessel.fit import Fit, LeaveOneOut
from bayessel.prediction import Prediction

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class ConstantModel:
    """A constant with normal noise: the member that no average goes without.

    Attributes
    ----------
    target : (N,) array
        What it was fitted to.
    """

    target: FloatArray

    def predict(self, rows: Any) -> Prediction:
        """The same normal distribution at every row: N(mean, s²(1 + 1/N))."""
        t, n = self.target, len(self.target)
        floor = (4.0 * _EPS * float(np.abs(t).max(initial=_EPS))) ** 2
        # one row says nothing of the noise: its square stands for it
        spread = max(float(t.var(ddof=1)) if n > 1 else float(t[0] ** 2), floor)
        count = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        mean = np.full(count, float(t.mean()))
        return Prediction.normal(mean, spread * (1.0 + 1.0 / n), spread / n)

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted by the mean and the variance of all others."""
        n = len(self.target)
        away = self.target - self.target.mean()
        if n < 3:
            return LeaveOneOut.normal(away, np.full(n, np.inf), self.target)
        errors = away * n / (n - 1)
        left = (away @ away - away**2 * n / (n - 1)) / (n - 2)
        floor = (4.0 * _EPS * float(np.abs(self.target).max(initial=_EPS))) ** 2
        return LeaveOneOut.normal(errors, np.maximum(left, floor) * n / (n - 1), self.target)


def predictive_of(member: Any, rows: Any) -> Prediction:
    """Predictive distributions at rows, as the member itself makes them: mixtures where it predicts mixtures."""
    found = member.predict(rows) if isinstance(member, ConstantModel) else fit_reader.predictive_of(member, rows)
    if found.means.ndim != 2:
        raise ValueError(f"{type(member).__name__} predicts several outputs: an average is of regressors of one target")
    return found


def leaves_rows_out(member: Any) -> bool:
    """Whether a member says what it predicts of each row from all others."""
    inner = unwrap(member)[0]
    fit = inner if isinstance(inner, Fit) else getattr(inner, "fit_", None)
    return _leave_one_out(inner) is not None and (not isinstance(fit, Fit) or fit.leaves_rows_out)


def left_out_of(member: Any, name: str) -> LeaveOneOut:
    """Each row predicted from all others at the hyperparameters of all rows, with the member's own variances."""
    inner, _ = unwrap(member)
    leave = _leave_one_out(inner)
    if leave is None:
        raise ValueError(
            f"{name!r} is a {type(inner).__name__}, which leaves no rows out: weigh by refitted folds "
            "(densities='folds', with data=(X, y) for fitted members), or give the weights"
        )
    found: LeaveOneOut = leave()
    return found


def _leave_one_out(inner: Any) -> Any:
    own = getattr(inner, "leave_one_out", None)
    return getattr(getattr(inner, "fit_", None), "leave_one_out", None) if own is None else own


def fitted(member: BaseEstimator, name: str, X: Any, y: FloatArray) -> Any:
    """A clone fitted to rows; what it has to say is in its status."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            return clone(member).fit(X, y)
    except Exception as error:
        error.add_note(f"It happened while the member {name!r} of an average was fitted to {len(y)} rows.")
        raise


def held_out_prediction(member: BaseEstimator, name: str, X: Any, y: FloatArray, rows: Any) -> Prediction:
    """Predictive distributions at rows of a clone fitted to others."""
    made = fitted(member, name, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # of values that are missing in one fold only
        return predictive_of(made, rows)


def training_rows(member: Any) -> tuple[FloatArray, FloatArray] | None:
    """Inputs (N, D) and target (N,) that a fitted estimator keeps; None where it keeps none, or no inputs of a user."""
    inner, piped = unwrap(member)
    if piped or isinstance(inner, Fit):
        return None
    rows, fit = getattr(inner, "_rows", None), getattr(inner, "fit_", None)
    if isinstance(rows, TrainingRows):
        return rows.X, rows.y
    if (inputs := getattr(inner, "_inputs", None)) is not None and fit is not None:
        return inputs, fit.target
    if isinstance(rows, tuple) and (units := getattr(fit, "units", None)) is not None:
        t = np.asarray(rows[1]).reshape(len(rows[1]), -1)[:, 0]
        return units.input_shift + units.input_scale * rows[0], units.target_shift + units.target_scale * t
    return None


def target_of(member: Any) -> FloatArray | None:
    """Target (N,) that a member was fitted to, where it keeps it."""
    if (rows := training_rows(member)) is not None:
        return rows[1]
    fit = member if isinstance(member, Fit) else getattr(unwrap(member)[0], "fit_", None)
    units = getattr(fit, "units", None)
    found = next((t for t in (getattr(fit, name, None) for name in ("target", "t", "y")) if t is not None), None)
    return None if found is None or units is not None else np.asarray(found, dtype=np.float64)


def some_of(rows: ArrayLike, which: Any) -> Any:
    """Rows of an array or a data frame."""
    return _safe_indexing(rows, which)
