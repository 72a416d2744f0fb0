"""Result of a fit of a latent process: the hyperparameters, evidence, predictions, rows left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel.count_prediction import CountPrediction
from bayessel.covariance import Covariance, Prior
from bayessel.fit import Evidence, LeaveOneOut, Status
from bayessel.gp.latent.latent_predictor import LatentPredictor, mixed
from bayessel.gp.latent.latent_process import ApproximateMarginal
from bayessel.gp.map_result import MapOptimum
from bayessel.gp.mode_fit import ModeFit
from bayessel.prediction import ClassPrediction, Prediction


@dataclass(frozen=True, eq=False)
class LatentProcessFit(ModeFit):
    """A latent Gaussian process at its best hyperparameters, or mixed over several states of them.

    Attributes
    ----------
    theta : (k,) array
        The best θ: natural logarithms of the covariance's parameters, then of those of the likelihood.
    names : tuple of str
    marginal : ApproximateMarginal
        Data, covariance, likelihood and approximation: the approximate log p(t|θ) as a function of θ.
    prior : Prior or None
    free : (k,) array of bool
        Parameters that were fitted.
    evidence : Evidence
        log p(t|θ) of kind "type2-laplace" or "type2-ep".
    log_posterior : float
        With the log prior of θ.
    thetas, log_weights : (S, k), (S,) array
        States that predict, and logarithms of their weights.
    optima : tuple of MapOptimum
    history : tuple of dict
    """

    theta: FloatArray
    names: tuple[str, ...]
    marginal: ApproximateMarginal = field(repr=False)
    prior: Prior | None
    free: npt.NDArray[np.bool_]
    evidence: Evidence
    log_posterior: float
    thetas: FloatArray = field(repr=False)
    log_weights: FloatArray = field(repr=False)
    optima: tuple[MapOptimum, ...] = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    history: tuple[dict[str, float], ...] = field(repr=False)
    seconds: float

    @property
    def covariance(self) -> Covariance:
        """Of the latent function."""
        return self.marginal.covariance

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.marginal.t)

    @property
    @override
    def predicts_labels(self) -> bool:
        return self.marginal.labels

    @cached_property
    def fingerprint(self) -> str:
        """Name of inputs and target."""
        return fingerprint(self.marginal.X, self.marginal.t)

    @cached_property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return fingerprint(self.marginal.t)

    @property
    @override
    def _marginal(self) -> ApproximateMarginal:
        return self.marginal

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict."""
        return len(self.thetas)

    @cached_property
    def predictor(self) -> LatentPredictor:
        """Of the states that predict."""
        return LatentPredictor(self.marginal, self.thetas, self.log_weights)

    @override
    def predict(self, rows: ArrayLike, offset: ArrayLike = 0.0) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions of targets at new inputs (N, m); `offset` is added to the latent function."""
        return self.predictor(rows, offset)

    @cached_property
    def _left_out(self) -> LeaveOneOut:
        predictor, t = self.predictor, self.marginal.t
        found = predictor.left_out()
        logs = np.array([each.log_densities for each in found])
        # a state that predicts a row badly has been favoured too much by the row's own part in its weight
        weights = self.log_weights[:, None] - logs
        weights = weights - np.logaddexp.reduce(weights, axis=0)
        densities = np.logaddexp.reduce(weights + logs, axis=0)
        cavities = [each.cavities for each in found]
        each = [self.marginal.targets(one, theta) for one, theta in zip(cavities, self.thetas, strict=True)]
        counts = [one for one in each if isinstance(one, CountPrediction)]
        if counts:
            shares, means = np.exp(weights), np.array([one.mean for one in counts])
            mean = (shares * means).sum(axis=0)
            square = (shares * (np.array([one.variance for one in counts]) + (means - mean) ** 2)).sum(axis=0)
            return LeaveOneOut(t - mean, square, densities)
        there = mixed(each, weights)
        if isinstance(there, ClassPrediction):
            if there.probabilities.shape[1] == 2:
                p = there.probabilities[:, 1]
                return LeaveOneOut(t - p, p * (1.0 - p), densities)
            p = there.probabilities
            return LeaveOneOut((t[:, None] == there.classes) - p, p * (1.0 - p), densities)
        assert isinstance(there, Prediction)
        return LeaveOneOut(t - there.mean, there.variance, densities, there)

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others by its cavity: the posterior without the row's own site."""
        return self._left_out
