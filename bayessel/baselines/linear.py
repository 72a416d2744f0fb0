"""The linear model lin-1 of Rasmussen's thesis with scikit-learn's face."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bayessel._check import as_flag, check_magnitude
from bayessel.baselines.engines.linear_fit import fit_linear_baseline
from bayessel.estimators import normal_predictions
from bayessel.estimators.base import Versioned, validated, validated_regression
from bayessel.estimators.normal_predictions import MeanAndStd, predicts_mean_and_std
from bayessel.estimators.standardise import Standardisation


class LinearBaseline(RegressorMixin, Versioned):
    r"""Linear regression that cannot fail: ``lin-1`` of Rasmussen (1996, section 3.3).

    Least squares with a bias. Directions in which the inputs vary too little, those with
    :math:`\lambda_i < 10^{-6}\max_j\lambda_j` of :math:`A = \sum x x^T`, are ignored, so that copies of an input or
    more inputs than rows do no harm. Predictions are Gaussian with variance
    :math:`\hat\sigma^2 + \hat\sigma^2 x^T A^{-1} x`. Distrust its error bars where the truth is not linear: they know
    noise and the uncertainty of the weights, nothing else.

    Parameters
    ----------
    standardise : bool
        Bring inputs to median 0 and mean absolute deviation 1, two-valued ones to 0 and 1. Which directions are ignored
        depends on the scales; turn this off only if yours are comparable.

    Attributes
    ----------
    coef_ : (D,) or (K, D) array
        Weights in the units of the data.
    intercept_ : float or (K,) array
        The bias.
    noise_std_ : float or (K,) array
        Standard deviation of the noise; that of the targets where there are no more rows than weights.
    rank_ : int
        Directions in use, of D + 1.
    status_ : Status
        COLLINEAR_SKIPPED where directions were ignored.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> y = 1.0 + X @ [2.0, -1.0] + 0.1 * rng.normal(size=40)
    >>> model = LinearBaseline().fit(X, y)
    >>> model.coef_.round(1), round(model.intercept_, 1)
    (array([ 2., -1.]), 1.0)
    """

    _several_outputs = True

    def __init__(self, standardise: bool = True) -> None:
        self.standardise = standardise

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and a target (N,), or several targets (N, K)."""
        X, y = validated_regression(self, X, y, reset=True)
        check_magnitude(X, "X")
        units = Standardisation.of(X, np.zeros(1)) if as_flag(self.standardise, "standardise") else None
        self._units = units or Standardisation.none(X.shape[1])
        self._fit = fit_linear_baseline(self._units.inputs(X), y if y.ndim == 2 else y[:, None])
        self._single = y.ndim == 1
        with np.errstate(over="ignore", invalid="ignore"):  # a single tiny column; predictions do without
            coef = self._fit.coef[:-1].T / self._units.input_scale
            intercept = self._fit.coef[-1] - coef @ self._units.input_shift
        noise = np.sqrt(self._fit.noise_variance)
        self.coef_ = coef[0] if self._single else coef
        self.intercept_ = float(intercept[0]) if self._single else intercept
        self.noise_std_ = float(noise[0]) if self._single else noise
        self.rank_ = self._fit.root.shape[1]
        self.status_ = self._fit.status
        self._warn()
        return self

    log_predictive_density = normal_predictions.log_predictive_density

    @predicts_mean_and_std
    def predict(self, X: ArrayLike, return_std: bool = False) -> MeanAndStd:
        """Mean at new inputs, which is the median too; with `return_std` also the standard deviation of a new y."""
        check_is_fitted(self)
        as_flag(return_std, "return_std")
        rows = self._units.inputs(np.asarray(validated(self, X, reset=False)))
        mean = self._fit.predict(rows)
        mean = mean[:, 0] if self._single else mean
        if not return_std:
            return mean
        std = np.sqrt(self._fit.variance(rows))
        return mean, std[:, 0] if self._single else std
