"""Gaussian processes of several targets of the same rows: one for each, shown as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, override

from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.estimators._latent_regression import COUNTED
from bayessel.estimators.listed_records import Records
from bayessel.estimators.several_targets import SeveralTargets, beside, fit_each
from bayessel.fit import Evidence, LeaveOneOut
from bayessel.prediction import Prediction
from bayessel.several_fits import sum_of


def fit_processes(estimator: Any, given: Any, X: FloatArray, y: FloatArray, exposure: Any) -> None:
    """Fit a process to each column of y (N, K), from inputs as they were given and as numbers."""
    if estimator.likelihood in COUNTED or exposure is not None:
        raise ValueError("counts and exposures are of one output; fit one estimator per output")
    estimator.fit_ = found = fit_each(estimator, given, X, y, SeveralProcesses)
    estimator.fingerprint_, estimator._records = found.fingerprint, Records(X, y, None)
    first, estimator.target_fingerprint_ = found.outputs[0], found.target_fingerprint
    estimator._units, estimator._rows = first._units, (X, y)
    estimator._mode, estimator._run, estimator._mixed = None, None, None
    estimator.theta_ = tuple(one.theta_ for one in found.outputs)
    estimator._show()


class SeveralProcesses(SeveralTargets):
    """Independent processes of K targets, in units of the data."""

    @property
    @override
    def details(self) -> tuple[str, ...]:
        return (f"{self.n_outputs} outputs, a process each",)

    @property
    @override
    def model_evidence(self) -> Evidence:
        return sum_of([part.model_evidence for part in self.parts])

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict, of all parts together."""
        return sum(part.n_states for part in self.parts)

    @property
    def most_rows(self) -> int:
        """Rows predicted at a time."""
        return min(part.most_rows for part in self.parts)

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Predictive distributions (N, K) at inputs (N, D)."""
        return beside([part.predict(rows, variance) for part in self.parts])

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        return super().leave_one_out()
