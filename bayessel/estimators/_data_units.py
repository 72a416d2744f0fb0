"""A fit to standardised data, shown in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayessel._wrapped_fit import WrappedFit
from bayessel.count_prediction import CountPrediction
from bayessel.estimators.standardise import Standardisation
from bayessel.fit import Evidence, LeaveOneOut
from bayessel.prediction import ClassPrediction, Prediction


@dataclass(frozen=True, eq=False)
class FitInDataUnits(WrappedFit):
    """What an engine fitted to standardised inputs and targets, in the units of the user.

    A density of y is one of t = (y − shift)/scale over the scale, so the evidence of N rows falls by N log scale.
    Evidence and predictions are those of y; `optima` and `history` stay in standardised units.

    Attributes
    ----------
    inner : Fit
        The fit in standardised units, with the attributes of its kind.
    units : Standardisation
        How inputs and targets in the units of the user become standardised ones.
    fingerprint, target_fingerprint : str
        Names of the user's data.
    classes : array or None
        Labels, where the engine predicts their numbers.
    """

    inner: Any
    units: Standardisation
    fingerprint: str
    target_fingerprint: str
    classes: Any = None

    @property
    def log_units(self) -> float:
        """What the units add to the log density of all targets."""
        return 0.0 if self.classes is not None else -self.n_rows * self.units.log_scale

    @property
    def predicts_labels(self) -> bool:
        """Whether the targets are labels."""
        return self.classes is not None

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters; NaN where the fit does not count them."""
        return float(getattr(self.inner, "effective_parameters", np.nan))

    @property
    def evidence(self) -> Evidence | None:
        """That of the targets in units of the data."""
        found = self.inner.evidence
        return None if found is None else replace(found, value=float(found.value) + self.log_units)

    def predict(self, rows: ArrayLike) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions at inputs (N, D) in the units of the data."""
        return self._shown(self.inner.predict(self.units.inputs(rows)))

    def _shown(
        self, found: Prediction | ClassPrediction | CountPrediction
    ) -> Prediction | ClassPrediction | CountPrediction:
        if isinstance(found, ClassPrediction):
            return replace(found, classes=self.classes)
        if isinstance(found, CountPrediction):
            return found
        return found.scaled(self.units.target_shift, self.units.target_scale)

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others, in units of the data."""
        found: LeaveOneOut = self.inner.leave_one_out()
        return found if self.classes is not None else self.units.left_out(found)
