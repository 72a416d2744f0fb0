"""A fit with inducing inputs, behind the face of `bayessel.gp.Predictor`."""

from __future__ import annotations

from typing import Any

from bayessel._check import FloatArray
from bayessel.gp import SparseFit
from bayessel.prediction import Prediction


class SparsePredictor:
    """One state; O(M²) operations per test point."""

    def __init__(self, fit: SparseFit) -> None:
        self.fit = fit

    def __len__(self) -> int:
        return 1

    def __call__(self, Xnew: FloatArray, noise: bool = True, variance: bool = True, progress: Any = None) -> Prediction:
        """Predictive distributions, of observations or of the function."""
        mean, spread = self.fit.predict(Xnew)
        return Prediction(mean[None], spread[None] + (self.fit.noise_std**2 if noise else 0.0))

    def leave_one_out(self, progress: Any = None) -> Prediction:
        """Predictions of each row from the others."""
        errors, variances = self.fit.leave_one_out()
        return Prediction((self.fit.t - errors)[None], variances[None])
