"""Gaussian-process regression with another noise than even normal noise: heavy tails, uneven noise, counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_positive_vector, chosen_seed
from bayessel._fingerprint import fingerprint
from bayessel.count_prediction import CountPrediction
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._latent_mixture import LatentMixture, latent_mixture
from bayessel.estimators.standardise import Standardisation, robust_deviation
from bayessel.fit import Evidence, LeaveOneOut
from bayessel.gp.latent.latent_search import SEVERAL_FUNCTIONS
from bayessel.gp.latent.uneven_noise_marginal import UnevenNoiseMarginal
from bayessel.likelihoods import Likelihood, as_likelihood
from bayessel.likelihoods.student import LEAST_FREEDOM
from bayessel.prediction import ClassPrediction, Prediction

#: likelihoods of a regression; even normal noise has a closed form and engines of its own
LATENT = ("student", "heteroscedastic", "poisson", "negative-binomial")
COUNTED = ("poisson", "negative-binomial")
#: components of rows predicted at a time
_MOST_NUMBERS = 1 << 22
#: exposures up to which, and down to one over which, squares of rates are numbers
_LARGEST_EXPOSURE = 1e60


@dataclass(frozen=True, eq=False)
class LatentInDataUnits(FitInDataUnits):
    """A latent process in the units of the user.

    Attributes
    ----------
    log_rate : float
        Of counts: logarithm of the mean count for an exposure of one, which is added to the function.
    """

    log_rate: float = 0.0

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict."""
        return int(self.inner.n_states)

    @cached_property
    def most_rows(self) -> int:
        """Rows predicted at a time: the distribution of one may be a mixture of thousands of normals."""
        found = self.inner.predict(np.zeros((1, len(self.units.input_scale))))
        return max(_MOST_NUMBERS // len(found.means), 1)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise in units of the target, where uneven the root of its mean square at the rows.

        NaN for counts, whose noise depends on their mean.
        """
        mode = self.inner.mode
        if isinstance(mode.marginal, UnevenNoiseMarginal):
            return float(np.sqrt(mode.marginal.noise_variances(mode.theta).mean()) * self.units.target_scale)
        if mode.marginal.likelihood.name in COUNTED:
            return np.nan
        log_variance, log_over = mode.theta[mode.marginal.n_covariance :]
        nu = LEAST_FREEDOM + np.exp(log_over)
        return float(np.sqrt(np.exp(log_variance) * nu / (nu - 2.0)) * self.units.target_scale)

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions at inputs (N, D); of counts for an exposure of one."""
        return self._shown(self.inner.predict(self.units.inputs(rows), self.log_rate))

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        """Each row predicted from all others, in units of the data."""
        return super().leave_one_out()

    @property
    def model_evidence(self) -> Evidence:
        """With the hyperparameters of the part of most weight integrated out, in units of the data."""
        found = self.inner.model_evidence
        return replace(found, value=float(found.value) + self.log_units)


def _check_exposure(seen: FloatArray) -> None:
    for extreme in (float(seen.min()), float(seen.max())):
        if not 1.0 / _LARGEST_EXPOSURE <= extreme <= _LARGEST_EXPOSURE:
            raise ValueError(
                f"exposure has values of size {extreme:.0e}, and squares of rates for an exposure of one leave double "
                "precision; pass it in another unit"
            )


def fitted_latent(estimator: Any, X: FloatArray, y: FloatArray, exposure: Any) -> LatentInDataUnits:
    """Fit a latent process to inputs (N, D) and a target (N,) of a user, with the settings of an estimator."""
    n, likelihood, standardise = len(X), estimator.likelihood, estimator.standardise
    chosen = likelihood if likelihood in SEVERAL_FUNCTIONS else as_likelihood(likelihood)
    if isinstance(chosen, Likelihood):
        y = chosen.targets(y, "y")
    units = Standardisation.of(X, y, robust=True) if standardise else Standardisation.none(X.shape[1])
    if standardise and likelihood == "student":
        # a few huge targets decide the mean absolute deviation
        units = replace(units, target_scale=robust_deviation(y))
    offset, log_rate = None, 0.0
    if likelihood in COUNTED:
        units = replace(units, target_shift=0.0, target_scale=1.0)
        seen = np.ones(n) if exposure is None else as_positive_vector(exposure, "exposure", n)
        # half a count where there is none
        _check_exposure(seen)
        log_rate = float(np.log(max(y.sum(), 0.5) / seen.sum()))
        offset = np.log(seen) + log_rate
    elif exposure is not None:
        raise ValueError(
            f"exposure is of counts, and the likelihood is {likelihood!r}; leave it out, or take likelihood='poisson' "
            "or 'negative-binomial'"
        )
    inner: LatentMixture = latent_mixture(
        units.inputs(X),
        units.targets(y),
        chosen,
        estimator.covariance,
        approximation="auto",
        offset=offset,
        seed=0 if estimator.random_state is None else chosen_seed(estimator.random_state),
        mode_alone=estimator.inference == "map",
    )
    return LatentInDataUnits(inner, units, fingerprint(X, y), fingerprint(y), log_rate=log_rate)
