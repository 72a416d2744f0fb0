"""The fit of a comparison at one width, with the contract of every fit: predictions at inputs, in the user's units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_matrix
from bayessel._fingerprint import fingerprint
from bayessel._wrapped_fit import WrappedFit
from bayessel.criteria.evidence import integrated
from bayessel.fit import Evidence, LeaveOneOut
from bayessel.prediction import Prediction
from bayessel.widths._problem import WidthProblem


@dataclass(frozen=True, eq=False)
class FitAtWidth(WrappedFit):
    """A fit of an engine at one width.

    Attributes
    ----------
    inner : Fit
        What the engine returned, of targets (y − shift)/scale.
    problem : WidthProblem
        The rows it was fitted to.
    columns : callable
        Inputs (N, D) -> what the engine's fit predicts at.
    shift, scale : float
        Units of its targets.
    """

    inner: Any
    problem: WidthProblem = field(repr=False)
    columns: Callable[[FloatArray], Any] = field(repr=False)
    shift: float = 0.0
    scale: float = 1.0

    @property
    def target(self) -> FloatArray:
        """Target (N,) in the user's units."""
        return self.problem.t

    @property
    def fingerprint(self) -> str:
        """Name of inputs and target."""
        return fingerprint(self.problem.X, self.problem.t)

    @property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return fingerprint(self.problem.t)

    @property
    def evidence(self) -> Evidence | None:
        """That of the targets in the user's units."""
        return self._in_units(self.inner.evidence)

    @property
    def model_evidence(self) -> Evidence | None:
        """The evidence with the precisions integrated out, where the engine's fit has it."""
        return self._in_units(integrated(self.inner))

    def _in_units(self, found: Evidence | None) -> Evidence | None:
        return None if found is None else replace(found, value=float(found) - self.n_rows * np.log(self.scale))

    @override
    def predict(self, rows: ArrayLike) -> Prediction:
        """Predictive distributions at inputs (N, D), or (N,) of a single input."""
        X = as_matrix(rows, "X", allow_1d=self.problem.X.shape[1] == 1)
        found: Prediction = self.inner.predict(self.columns(X))
        return found if self.scale == 1.0 and self.shift == 0.0 else found.scaled(self.shift, self.scale)

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others, in the user's units."""
        found: LeaveOneOut = self.inner.leave_one_out()
        densities = found.log_densities - np.log(self.scale)
        whole = None if found.prediction is None else found.prediction.scaled(self.shift, self.scale)
        return LeaveOneOut(self.scale * found.errors, self.scale**2 * found.variances, densities, whole)
