"""Nearest neighbours, knn-cv-1 of Rasmussen's thesis, with scikit-learn's face."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bayessel._check import SQUARES, FloatArray, as_flag, as_positive, check_magnitude, one_of
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel.baselines.engines.neighbours import LOSSES, TOLERANCE, fit_neighbours
from bayessel.estimators.base import Versioned, validated, validated_regression
from bayessel.estimators.normal_predictions import MeanAndStd, predicts_mean_and_std
from bayessel.estimators.standardise import Standardisation
from bayessel.work.progress import progress_of


class KNNRegressorCV(RegressorMixin, Versioned):
    r"""k nearest neighbours, k chosen by leave-one-out for each loss: ``knn-cv-1`` of Rasmussen (1996, section 3.4).

    Every k from 1 to N - 1 is tried. `predict` gives the mean of the neighbours for squared loss, `predict_median`
    their median for absolute loss, `log_predictive_density` a Gaussian with variance
    :math:`(\sum(y-\bar y)^2 + \varsigma^2)/k`, where :math:`\varsigma^2` is the mean squared difference to the first
    neighbour; each with its own k. Distrust it with many inputs: all of them count alike in the distance.

    Parameters
    ----------
    loss : str
        What `predict` is to be good at: 'squared' (mean), 'absolute' (median) or 'log' (mean of the Gaussian).
    standardise : bool
        Bring every column to median 0 and mean absolute deviation 1, two-valued inputs to 0 and 1. Distances depend on
        the scales; turn this off only if yours are comparable.
    tolerance : float
        Squared distances (standardised) that differ by less are ties: their targets are averaged, and the average
        counts as often as ties stand at or before the k-th.
    progressbar : bool
        Show progress where fitting takes more than some seconds.

    Attributes
    ----------
    k_ : dict
        Number of neighbours for 'squared', 'absolute' and 'log' loss.
    loo_losses_ : (N - 1, 3) array
        Leave-one-out loss of each k, standardised units, in that order; several outputs are summed.
    first_neighbour_std_ : float or (K,) array
        ς, in units of y.
    status_ : Status
        INTERRUPTED: the rows seen until then decided.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, size=(200, 1))
    >>> y = np.sin(6 * X[:, 0]) + 0.2 * rng.normal(size=200)
    >>> model = KNNRegressorCV().fit(X, y)
    >>> bool(3 <= model.k_["squared"] <= 40)
    True
    >>> mean, std = model.predict([[0.25]], return_std=True)
    >>> median = model.predict_median([[0.25]])
    """

    _several_outputs = True

    def __init__(
        self, loss: str = "squared", standardise: bool = True, tolerance: float = TOLERANCE, progressbar: bool = True
    ) -> None:
        self.loss = loss
        self.standardise = standardise
        self.tolerance = tolerance
        self.progressbar = progressbar

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to inputs (N, D) and a target (N,), or several targets (N, K) that share k."""
        one_of(self.loss, "loss", LOSSES)
        tolerance = as_positive(self.tolerance, "tolerance")
        wanted, standardise = as_flag(self.progressbar, "progressbar"), as_flag(self.standardise, "standardise")
        X, y = validated_regression(self, X, y, reset=True)
        outputs = y if y.ndim == 2 else y[:, None]
        units = [Standardisation.of(X, column) for column in outputs.T] if standardise else []
        if not standardise:
            check_magnitude(X, "X")
        self._units = units[0] if units else Standardisation.none(X.shape[1])
        self._shift = np.array([u.target_shift for u in units] or np.zeros(outputs.shape[1]))
        self._scale = np.array([u.target_scale for u in units] or np.ones(outputs.shape[1]))
        operations = 450.0 * len(X) ** 2 * outputs.shape[1]
        with progress_of(wanted, len(X), operations, "leaving rows out") as step, few_threads(X.size):
            self._fit = fit_neighbours(
                self._units.inputs(X), (outputs - self._shift) / self._scale, tolerance=tolerance, step=step
            )
        self._single = y.ndim == 1
        self.k_ = dict(self._fit.k)
        self.loo_losses_ = self._fit.loo
        first = np.sqrt(self._fit.first_variance) * self._scale
        self.first_neighbour_std_ = float(first[0]) if self._single else first
        self.status_ = self._fit.status
        self._warn()
        return self

    def _rows(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        rows = self._units.inputs(np.asarray(validated(self, X, reset=False)))
        return np.clip(rows, -SQUARES, SQUARES)  # from so far away all rows are equally near

    def _in_units(self, values: FloatArray, shift: bool = True) -> FloatArray:
        values = values * self._scale + (self._shift if shift else 0.0)
        return np.asarray(values[:, 0] if self._single else values)

    @predicts_mean_and_std
    def predict(self, X: ArrayLike, return_std: bool = False) -> MeanAndStd:
        """What `loss` asks for at new inputs; with `return_std` also the standard deviation for log loss.

        The two may come from different numbers of neighbours; with ``loss="log"`` they are of one Gaussian.
        """
        as_flag(return_std, "return_std")
        rows = self._rows(X)
        loss = one_of(self.loss, "loss", LOSSES)
        guess = self._in_units(self._fit.median(rows) if loss == "absolute" else self._fit.mean(rows, loss))
        return (guess, self._in_units(np.sqrt(self._fit.variance(rows)), shift=False)) if return_std else guess

    def predict_median(self, X: ArrayLike) -> FloatArray:
        """Median of as many neighbours as absolute loss asks for."""
        return self._in_units(self._fit.median(self._rows(X)))

    def log_predictive_density(self, X: ArrayLike, y: ArrayLike) -> FloatArray:
        """log p(y_n | x_n, training data) of each new observation under the Gaussian for log loss, in nats."""
        rows = self._rows(X)
        _, y = validated_regression(self, X, y, reset=False)
        mean = self._in_units(self._fit.mean(rows, "log"))
        std = self._in_units(np.sqrt(self._fit.variance(rows)), shift=False)
        if y.shape != mean.shape:
            raise ValueError(f"y must have the shape of the training target, (n, ...) = {mean.shape}; got {y.shape}")
        return log_normal((y - mean) / std, 1.0) - np.log(std)
