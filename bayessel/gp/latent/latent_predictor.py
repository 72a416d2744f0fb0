"""Predictions of a latent process from one state of the hyperparameters or many: mixtures of what each says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_float_array, as_matrix, check_magnitude
from bayessel.count_prediction import CountPrediction
from bayessel.gp.latent.latent_process import ApproximateMarginal, LeftOut, Normals
from bayessel.gp.predict import BLOCK, KEPT
from bayessel.prediction import ClassPrediction, Prediction


class LatentPredictor:
    """Predictions from S states.

    Parameters
    ----------
    marginal : ApproximateMarginal
        Data, covariance, likelihood and approximation.
    thetas : (k,) or (S, k) array
        The states.
    log_weights : (S,) array, optional
        Logarithms of their weights; None: all equal.
    """

    def __init__(
        self,
        marginal: ApproximateMarginal,
        thetas: ArrayLike,
        log_weights: FloatArray | None = None,
    ) -> None:
        self.marginal = marginal
        self.thetas = np.atleast_2d(as_float_array(thetas, "thetas"))
        self.log_weights = np.full(len(self.thetas), -np.log(len(self.thetas))) if log_weights is None else log_weights
        self._states: dict[int, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_states": {}}

    def _state(self, number: int) -> Any:
        if number not in self._states:
            found = self.marginal.state(self.thetas[number])
            size = sum(each.nbytes for each in found)
            if size * (len(self._states) + 1) > KEPT:
                return found
            self._states[number] = found
        return self._states[number]

    def function(self, Xnew: ArrayLike) -> list[Normals]:
        """The latent function at new inputs (N, m), by each state."""
        X = self.marginal.X
        new = as_matrix(Xnew, "Xnew")
        if new.shape[1] != X.shape[1]:
            raise ValueError(f"Xnew must have the {X.shape[1]} columns of X, got shape {new.shape}")
        check_magnitude(new, "Xnew", tiny=True)
        rows = max(1, int(BLOCK / (8.0 * len(X))))
        found = []
        for s, theta in enumerate(self.thetas):
            state = self._state(s)
            parts = [self.marginal.function(state, theta, new[i : i + rows]) for i in range(0, max(len(new), 1), rows)]
            found.append(Normals(*(np.concatenate(each) for each in zip(*parts, strict=True))))
        return found

    def __call__(self, Xnew: ArrayLike, offset: ArrayLike = 0.0) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions of new targets; `offset` (N,) is added to the function."""
        more = as_float_array(offset, "offset")
        return self.of_normals([each._replace(mean=each.mean + more) for each in self.function(Xnew)], self.log_weights)

    def of_normals(
        self, there: list[Normals], log_weights: FloatArray
    ) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions where the states say that of the function."""
        each = [self.marginal.targets(one, theta) for one, theta in zip(there, self.thetas, strict=True)]
        return mixed(each, log_weights)

    def left_out(self) -> list[LeftOut]:
        """What each state says of every row without the row itself."""
        return [self.marginal.left_out(theta) for theta in self.thetas]


def mixed(
    parts: list[Prediction | ClassPrediction | CountPrediction], log_weights: FloatArray
) -> Prediction | ClassPrediction | CountPrediction:
    """One distribution from those of several states, by their weights (S,), or by weights for each row (S, N).

    Of counts the weights are the same for all rows.
    """
    first = parts[0]
    logs = log_weights - np.logaddexp.reduce(log_weights, axis=0)
    if len(parts) == 1:
        return first
    if isinstance(first, ClassPrediction):
        each = np.array([part.probabilities for part in parts if isinstance(part, ClassPrediction)])
        weights = np.exp(logs).reshape(len(parts), -1, 1)
        return ClassPrediction(first.classes, np.asarray((weights * each).sum(axis=0)))
    if isinstance(first, CountPrediction):
        counts = [part for part in parts if isinstance(part, CountPrediction)]
        return CountPrediction.mixture(counts, np.exp(logs))
    real = [part for part in parts if isinstance(part, Prediction)]
    if logs.ndim == 1:
        return Prediction.mixture(real, np.exp(logs))
    return replace(
        Prediction.mixture(real, np.full(len(real), 1.0 / len(real))),
        log_weights=np.concatenate(
            [
                log
                + (-np.log(len(one.means)) if one.log_weights is None else one.log_weights)
                + np.zeros_like(one.means)
                for log, one in zip(logs, real, strict=True)
            ]
        ),
    )
