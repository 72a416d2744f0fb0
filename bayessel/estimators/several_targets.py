"""Estimators of one target fitted to each of several targets of the same rows, and shown as one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, override

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, chosen_seed
from bayessel._fingerprint import fingerprint
from bayessel.errors import NumericalWarning
from bayessel.estimators.listed_records import Records
from bayessel.fit import Evidence, LeaveOneOut, Status, worst
from bayessel.prediction import Prediction
from bayessel.several_fits import SeveralFits

#: attributes that of several targets have an entry for each: arrays of numbers, tuples of anything else
OF_ONE_TARGET = (
    *("dictionary_", "width_", "found_width_", "optima_", "witness_", "path_", "basis_", "coef_", "n_basis_"),
    *("alpha_", "beta_", "gamma_", "lam_", "criteria_"),
)
#: attributes that are sums
SUMS = ("log_evidence_", "model_evidence_")


@dataclass(frozen=True, eq=False)
class SeveralTargets(SeveralFits):
    """Independent fits of K targets, each of an estimator of its own.

    Attributes
    ----------
    outputs : tuple of estimators
        Fitted to each target.
    fingerprint, target_fingerprint : str
        Names of the data, and of the targets (N, K).
    """

    outputs: tuple[Any, ...]
    fingerprint: str
    target_fingerprint: str
    #: no fit of its own inside
    inner: ClassVar[None] = None

    @property
    def parts(self) -> tuple[Any, ...]:
        """The fit of each target."""
        return tuple(one.fit_ for one in self.outputs)

    @property
    @override
    def status(self) -> Status:
        return worst(one.status_ for one in self.outputs)

    @property
    @override
    def notes(self) -> tuple[Status, ...]:
        return tuple(dict.fromkeys(note for one in self.outputs for note in one.notes_))

    @property
    @override
    def n_rows(self) -> int:
        place = self.outputs[0]._records.place
        return super().n_rows if place is None else len(place)

    @property
    @override
    def details(self) -> tuple[str, ...]:
        return (f"{self.n_outputs} outputs, a fit each",)

    @cached_property
    def noise_std(self) -> FloatArray:
        """Standard deviations of the noise, (K,)."""
        return np.array([one.noise_std_ for one in self.outputs])

    @property
    def model_evidence(self) -> Evidence | float:
        """The sum over targets, hyperparameters integrated out; NaN where one has none."""
        return float(sum(getattr(part, "model_evidence", np.nan) for part in self.parts))

    @override
    def predict(self, rows: FloatArray) -> Prediction:
        """Predictive distributions (N, K) at inputs (N, D)."""
        return beside([one._distributions(rows) for one in self.outputs])

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others: errors and variances (N, K), log densities (N,) of all targets."""
        each = [one.leave_one_out() for one in self.outputs]
        errors, variances = (np.column_stack([getattr(one, name) for one in each]) for name in ("errors", "variances"))
        seen = [one.prediction for one in each if one.prediction is not None]
        whole = beside(seen) if len(seen) == len(each) else None
        return LeaveOneOut(errors, variances, np.sum([one.log_densities for one in each], axis=0), whole)


def fit_each[S: SeveralTargets](
    estimator: Any, given: Any, X: FloatArray, y: FloatArray, kind: type[S], **known: Any
) -> S:
    """Fit a copy of the estimator to each column of y (N, K), from inputs as they were given and as numbers.

    `known` goes to every `fit`.
    """
    seed = getattr(estimator, "random_state", None)
    same = {} if seed is None else {"random_state": chosen_seed(seed)}
    with warnings.catch_warnings():
        # what they have to say is in the status of all
        warnings.simplefilter("ignore", NumericalWarning)
        each = tuple(clone(estimator).set_params(**same).fit(given, t.copy(), **known) for t in y.T)
    return kind(each, fingerprint(X, y), fingerprint(y))


def show_each(estimator: Any, found: SeveralTargets, X: FloatArray, y: FloatArray) -> None:
    """Set the attributes that tell of the fits, and warn where they deserve it."""
    estimator._records = Records(X, y, None)
    for name in OF_ONE_TARGET:
        if hasattr(found.outputs[0], name):
            values = tuple(getattr(one, name) for one in found.outputs)
            numbers = all(isinstance(value, int | float) for value in values)
            setattr(estimator, name, np.array(values) if numbers else values)
    for name in SUMS:
        if hasattr(found.outputs[0], name):
            setattr(estimator, name, float(sum(getattr(one, name) for one in found.outputs)))
    estimator.noise_std_, estimator.n_rows_ = found.noise_std, found.n_rows
    estimator.notes_, estimator.status_ = found.notes, found.status
    estimator.history_ = [dict(step) for step in found.history]
    estimator._warn()


def fit_targets(estimator: Any, given: Any, X: FloatArray, y: FloatArray, **known: Any) -> None:
    """Fit each column of y (N, K) on its own, and set all attributes that tell of the fits."""
    estimator.fit_ = found = fit_each(estimator, given, X, y, SeveralTargets, **known)
    estimator.fingerprint_ = found.fingerprint
    show_each(estimator, found, X, y)


def outputs(self: Any) -> tuple[Any, ...] | None:
    """Of several targets the fitted estimator of each; None with one."""
    check_is_fitted(self)
    fit = getattr(self, "fit_", None)
    return fit.outputs if isinstance(fit, SeveralTargets) else None


def as_columns(found: list[FloatArray | tuple[FloatArray, FloatArray]]) -> FloatArray | tuple[FloatArray, FloatArray]:
    """Predictions (N, K) from those (N,) of each target: means, or means and standard deviations."""
    pairs = [one for one in found if isinstance(one, tuple)]
    if not pairs:
        return np.column_stack(found)
    mean, std = (np.column_stack(each) for each in zip(*pairs, strict=True))
    return mean, std


def refuse_several(estimator: Any, what: str) -> None:
    """Say where to look for what is of one target."""
    if outputs(estimator) is not None:
        raise AttributeError(f"{what} is of one output, and there are several: see outputs_[0].{what} and the rest")


def beside(parts: list[Prediction]) -> Prediction:
    """Mixtures (S, N, K) from those of each output (S_k, N); those with fewer components get some of no weight."""
    most = max(len(part.means) for part in parts)

    def filled(values: FloatArray, last: float | None = None) -> FloatArray:
        more = np.broadcast_to(values[:1] if last is None else last, (most - len(values), *values.shape[1:]))
        return np.concatenate([values, more])

    def stacked(each: list[FloatArray]) -> FloatArray:
        return np.stack(each, axis=-1)

    logs = [np.broadcast_to(part._log_weights(), part.means.shape) for part in parts]
    inside = [part.function_variances for part in parts if part.function_variances is not None]
    return Prediction(
        stacked([filled(part.means) for part in parts]),
        stacked([filled(part.variances) for part in parts]),
        stacked([filled(one, -np.inf) for one in logs]),
        stacked([filled(one) for one in inside]) if len(inside) == len(parts) else None,
    )
