"""What a fitted Gaussian process predicts, in units of the data."""

from __future__ import annotations

import warnings
from typing import Any, override

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel._numerics import few_threads
from bayessel.errors import NumericalWarning
from bayessel.estimators import _left_out
from bayessel.estimators._bar import progress
from bayessel.estimators._mixture_predictions import MixturePredictions
from bayessel.estimators.standardise import Standardisation
from bayessel.gp import Predictor
from bayessel.prediction import Prediction

#: test points worked on at a time; what is kept of all of them is what was asked for
CHUNK = 4096


class ProcessPredictions(MixturePredictions):
    """Base of `GPRegressor`, which fits; not for direct use."""

    _several_outputs = False
    _rows: tuple[FloatArray, FloatArray]
    _units: Standardisation
    _predictor: Any
    _every: Any
    covariance_: Any
    trace_: Any

    @override
    def _components(self) -> int:
        return len(self._predictor)

    @override
    def _piece(self) -> int:
        # the factors of a large problem are computed once per piece
        return max(CHUNK, 4 * len(self._rows[1]))

    @override
    def _operations(self, variance: bool) -> float:
        n = len(self._rows[1])
        return float(n) * (n if variance else 1)

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Errors of each training row predicted from all others, and the variances of those predictions.

        Noise included, in units of y. Exact for the mode (its hyperparameters stay). "mc": the hyperparameters too are
        those without the row, by importance weights, Pareto-smoothed.
        """
        mixture = self._left_out()
        return self._units.target_scale * (self._rows[1] - mixture.mean), self._units.target_scale**2 * mixture.variance

    def log_leave_one_out(self) -> FloatArray:
        """log p(y_n | x_n, all other rows) of each training row, in nats and in units of y."""
        return self._left_out().log_density(self._rows[1]) - self._units.log_scale

    def _left_out(self) -> Prediction:
        """Predictions of each row from the others, standardised units: of all draws, where there are some."""
        check_is_fitted(self)
        draws, n = self._draws(), len(self._rows[1])
        if self._every is None:
            self._every = self._predictor if draws is None else Predictor(*self._rows, self.covariance_, draws)
        states = len(self._every)
        with few_threads(n**2), progress(self.progressbar, states, float(states) * n**3, "leaving out") as tell:
            mixture = self._every.leave_one_out(tell)
        if draws is None or len(draws) < _left_out.FEW_DRAWS:
            return mixture
        found, densities, self.pareto_k_ = _left_out.weighted(mixture, self._rows[1])
        if said := _left_out.doubts(self.pareto_k_, len(draws)):
            warnings.warn(said, NumericalWarning, stacklevel=3)
        if "log_likelihood" not in self.trace_:
            _left_out.tell_arviz(self.trace_, densities - self._units.log_scale)
        return found

    @override
    def _mixture(self, X: FloatArray, noise: bool = True, variance: bool = True, tell: Any = None) -> Prediction:
        with few_threads(len(self._rows[1]) ** 2):
            found = self._predictor(self._units.inputs(X), variance, tell)
        return (found if noise else found.function).scaled(self._units.target_shift, self._units.target_scale)

    def _draws(self) -> FloatArray | None:
        """All draws, (S, k); None where there are none."""
        if self.trace_ is None or not self.trace_["posterior"].sizes["draw"]:
            return None
        theta = self.trace_["posterior"]["theta"].values
        return np.asarray(theta.reshape(-1, theta.shape[2]))
