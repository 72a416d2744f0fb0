"""Gaussian processes of several targets of the same rows: one for each, shown as one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, override

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, chosen_seed
from bayessel._fingerprint import fingerprint
from bayessel.errors import NumericalWarning
from bayessel.estimators._latent_regression import COUNTED
from bayessel.estimators.listed_records import Records
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.prediction import Prediction


def fit_each(estimator: Any, given: Any, X: FloatArray, y: FloatArray, exposure: Any) -> None:
    """Fit a copy of the estimator to each column of y (N, K), from inputs as they were given and as numbers."""
    if estimator.likelihood in COUNTED or exposure is not None:
        raise ValueError("counts and exposures are of one output; fit one estimator per output")
    seed = None if estimator.random_state is None else chosen_seed(estimator.random_state)
    with warnings.catch_warnings():
        # what they have to say is in the status of all
        warnings.simplefilter("ignore", NumericalWarning)
        each = tuple(clone(estimator).set_params(random_state=seed).fit(given, t.copy()) for t in y.T)
    estimator.fit_ = found = SeveralProcesses(each, fingerprint(X, y), fingerprint(y))
    estimator.fingerprint_, estimator.target_fingerprint_ = found.fingerprint, found.target_fingerprint
    estimator._records, estimator._units, estimator._rows = Records(X, y, None), each[0]._units, (X, y)
    estimator._mode, estimator._run, estimator._mixed = None, None, None
    estimator.theta_ = tuple(one.theta_ for one in each)
    estimator._show()


def outputs(self: Any) -> tuple[Any, ...] | None:
    """Of several targets the fitted estimator of each; None with one."""
    check_is_fitted(self)
    return self.fit_.outputs if isinstance(self.fit_, SeveralProcesses) else None


@dataclass(frozen=True, eq=False)
class SeveralProcesses(Fit):
    """Independent processes of K targets, in units of the data.

    Attributes
    ----------
    outputs : tuple of GPRegressor
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
    def status(self) -> Status:
        """The most serious of all parts."""
        return worst(one.status_ for one in self.outputs)

    @property
    def notes(self) -> tuple[Status, ...]:
        """Those of every part, each once."""
        return tuple(dict.fromkeys(note for one in self.outputs for note in one.notes_))

    @property
    def n_rows(self) -> int:
        """Rows given."""
        place = self.outputs[0]._records.place
        return int(self.parts[0].n_rows) if place is None else len(place)

    @property
    def evidence(self) -> Evidence:
        """The sum over targets."""
        return _sum([part.evidence for part in self.parts])

    @property
    def model_evidence(self) -> Evidence:
        """The sum over targets, hyperparameters integrated out."""
        return _sum([part.model_evidence for part in self.parts])

    @property
    def optima(self) -> tuple[Any, ...]:
        """One entry: the best optimum of each part."""
        return (tuple(part.optima[0] for part in self.parts),)

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """That of every part, in order, with the number of the output."""
        return tuple({"output": k, **step} for k, part in enumerate(self.parts) for step in part.history)

    @property
    def seconds(self) -> float:
        """Time by the clock, all parts together."""
        return float(sum(part.seconds for part in self.parts))

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters of all parts together; NaN where one does not count them."""
        return float(sum(part.effective_parameters for part in self.parts))

    @property
    @override
    def details(self) -> tuple[str, ...]:
        return (f"{len(self.parts)} outputs, a process each",)

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict, of all parts together."""
        return sum(part.n_states for part in self.parts)

    @property
    def most_rows(self) -> int:
        """Rows predicted at a time."""
        return min(part.most_rows for part in self.parts)

    @cached_property
    def noise_std(self) -> FloatArray:
        """Standard deviations of the noise, (K,)."""
        return np.array([part.noise_std for part in self.parts])

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Predictive distributions (N, K) at inputs (N, D)."""
        return _beside([part.predict(rows, variance) for part in self.parts])

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        """Each row predicted from all others: errors and variances (N, K), log densities (N,) of all targets."""
        each = [one.leave_one_out() for one in self.outputs]
        errors, variances = (np.column_stack([getattr(one, name) for one in each]) for name in ("errors", "variances"))
        seen = [one.prediction for one in each if one.prediction is not None]
        whole = _beside(seen) if len(seen) == len(each) else None
        return LeaveOneOut(errors, variances, np.sum([one.log_densities for one in each], axis=0), whole)


def _sum(found: list[Evidence]) -> Evidence:
    errors = [one.error for one in found if one.error is not None]
    error = float(np.sqrt(np.sum(np.square(errors)))) if errors else None
    return replace(found[0], value=float(sum(one.value for one in found)), error=error)


def _beside(parts: list[Prediction]) -> Prediction:
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
