"""A fit with inducing inputs, behind the face of `bayessel.gp.Predictor`."""

from __future__ import annotations

from typing import Any

from bayessel._check import FloatArray
from bayessel.gp import InducingFit
from bayessel.prediction import Prediction


class SparsePredictor:
    """One state; O(M²) operations per test point."""

    def __init__(self, fit: InducingFit) -> None:
        self.fit = fit

    def __len__(self) -> int:
        return 1

    def __call__(self, Xnew: FloatArray, variance: bool = True, progress: Any = None) -> Prediction:
        """Predictive distributions of observations and of the function."""
        return self.fit.predict(Xnew)

    def leave_one_out(self, progress: Any = None) -> Prediction:
        """Predictions of each row from the others."""
        out = self.fit.leave_one_out()
        return Prediction.normal(self.fit.t - out.errors, out.variances)
