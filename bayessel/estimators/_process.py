"""What a fitted Gaussian process predicts, in units of the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, override

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, as_flag, as_float_array
from bayessel._numerics import few_threads
from bayessel.errors import NumericalWarning
from bayessel.estimators import _left_out
from bayessel.estimators._bar import progress
from bayessel.estimators._door import Regressor, validated
from bayessel.estimators.standardise import Standardisation
from bayessel.gp import Mixture, Predictor

#: test points worked on at a time; what is kept of all of them is what was asked for
CHUNK = 4096


class ProcessPredictions(Regressor):
    """Base of `GPRegressor`, which fits; not for direct use."""

    _several_outputs = False
    _rows: tuple[FloatArray, FloatArray]
    _units: Standardisation
    _predictor: Any
    _every: Any
    covariance_: Any
    trace_: Any
    progressbar: bool

    def predict(self, X: Any, return_std: bool = False, return_quantiles: Any = None) -> Any:
        """Mean at new inputs, (N,): the best guess under squared loss.

        Parameters
        ----------
        X : (N, D) array
        return_std : bool
            Also the standard deviation of a new observation there, (N,).
        return_quantiles : sequence of probabilities, optional
            Also these quantiles of a new observation, (len(return_quantiles), N), after the others.
        """
        check_is_fitted(self)
        X = np.asarray(validated(self, X, reset=False), dtype=np.float64)
        wanted: list[Callable[[Mixture], FloatArray]] = [lambda mixture: mixture.mean]
        if as_flag(return_std, "return_std"):
            wanted.append(lambda mixture: mixture.std)
        if return_quantiles is not None:
            levels = np.atleast_1d(as_float_array(return_quantiles, "return_quantiles"))
            Mixture(np.zeros((1, 1)), np.ones((1, 1))).quantiles(levels)  # bad levels are better known before the work
            wanted.append(lambda mixture: mixture.quantiles(levels))
        found = self._over(X, wanted, variance=len(wanted) > 1)
        return found[0] if len(found) == 1 else tuple(found)

    def predict_median(self, X: Any) -> FloatArray:
        """Median of a new observation at new inputs, (N,): the best guess under absolute loss; computed, exact."""
        check_is_fitted(self)
        X = np.asarray(validated(self, X, reset=False), dtype=np.float64)
        return self._over(X, [lambda mixture: mixture.median], variance=len(self._predictor) > 1)[0]

    def predictive(self, X: Any, noise: bool = True) -> Mixture:
        """Whole predictive distributions at new inputs: of observations, or with ``noise=False`` of the function."""
        check_is_fitted(self)
        X = np.asarray(validated(self, X, reset=False), dtype=np.float64)
        noise = as_flag(noise, "noise")
        return self._mixture(X, noise=noise)

    @override
    def log_predictive_density(self, X: Any, y: Any, widen: bool = False) -> FloatArray:
        """log p(y_n | x_n, training data) of each new observation, in nats; sum or average it as you need.

        `widen` widens mixtures that would be a row of separate peaks, as the 1996 program did: it saves a run with few
        states from ridiculous densities between them.
        """
        check_is_fitted(self)
        X, y = self._validate(X, y, reset=False)
        widen = as_flag(widen, "widen")

        def density(mixture: Mixture, part: slice) -> FloatArray:
            return (mixture.widened() if widen else mixture).log_density(y[part])

        return self._over(X, [density], parts=True)[0]

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

    def _left_out(self) -> Mixture:
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

    def _mixture(self, X: FloatArray, noise: bool = True, variance: bool = True, tell: Any = None) -> Mixture:
        with few_threads(len(self._rows[1]) ** 2):
            found = self._predictor(self._units.inputs(X), noise, variance, tell)
        return found.scaled(self._units.target_shift, self._units.target_scale)

    def _over(self, X: FloatArray, wanted: list[Any], variance: bool = True, parts: bool = False) -> list[FloatArray]:
        """What is wanted of the predictive distributions, in pieces that fit into memory."""
        n = len(self._rows[1])
        rows = max(CHUNK, 4 * n)  # the factors of a large problem are computed once per piece
        found: list[list[FloatArray]] = [[] for _ in wanted]
        points = len(self._predictor) * len(X)
        with progress(self.progressbar, points, float(points) * n * (n if variance else 1)) as tell:
            for begin in range(0, len(X), rows):
                part = slice(begin, begin + rows)

                def told(done: int, total: int, begin: int = begin) -> None:
                    if tell is not None:
                        tell(begin * len(self._predictor) + done, total)

                mixture = self._mixture(X[part], variance=variance, tell=told)
                for values, function in zip(found, wanted, strict=True):
                    values.append(function(mixture, part) if parts else function(mixture))
        return [np.concatenate(values, axis=-1) for values in found]

    def _draws(self) -> FloatArray | None:
        """All draws, (S, k); None where there are none."""
        if self.trace_ is None or not self.trace_["posterior"].sizes["draw"]:
            return None
        theta = self.trace_["posterior"]["theta"].values
        return np.asarray(theta.reshape(-1, theta.shape[2]))
