"""Methods of regressors whose predictive distributions are mixtures of Gaussians, in units of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray, as_flag, as_float_array
from bayessel.estimators.base import new_rows, validated_regression
from bayessel.prediction import Prediction
from bayessel.work.progress import progress_of


class PredictsMixtures(Protocol):
    """What these methods ask of a regressor; a mixture has N columns, or N rows and K columns for K outputs."""

    progressbar: bool

    def _mixture(self, X: FloatArray, noise: bool = True, variance: bool = True, tell: Any = None) -> Prediction:
        """Predictive distributions at new inputs, in units of the data."""

    def _components(self) -> int:
        """Number of components of a mixture."""

    def _piece(self) -> int:
        """New inputs worked on at a time; what is kept of all of them is what was asked for."""

    def _operations(self, variance: bool) -> float:
        """Additions and multiplications for one component at one new input."""

    def _log_density(self, mixture: Prediction, y: FloatArray) -> FloatArray:
        """Log density of each new observation, (N,)."""


@overload
def predict(
    self: PredictsMixtures, X: ArrayLike, return_std: Literal[False] = False, return_quantiles: None = None
) -> FloatArray: ...
@overload
def predict(
    self: PredictsMixtures, X: ArrayLike, return_std: Literal[True], return_quantiles: None = None
) -> tuple[FloatArray, FloatArray]: ...
@overload
def predict(
    self: PredictsMixtures, X: ArrayLike, return_std: bool = False, *, return_quantiles: ArrayLike
) -> tuple[FloatArray, ...]: ...
@overload
def predict(
    self: PredictsMixtures, X: ArrayLike, return_std: bool, return_quantiles: ArrayLike | None = None
) -> FloatArray | tuple[FloatArray, ...]: ...
def predict(
    self: PredictsMixtures, X: ArrayLike, return_std: bool = False, return_quantiles: ArrayLike | None = None
) -> FloatArray | tuple[FloatArray, ...]:
    """Mean at new inputs, (N,), or (N, K) for K outputs: the best guess under squared loss.

    Parameters
    ----------
    X : (N, D) array
    return_std : bool
        Also the standard deviation of a new observation there, of the same shape.
    return_quantiles : sequence of probabilities, optional
        Also these quantiles of a new observation, one more axis in front, after the others.
    """
    X = new_rows(self, X)
    wanted: list[Callable[[Prediction], FloatArray]] = [lambda mixture: mixture.mean]
    if as_flag(return_std, "return_std"):
        wanted.append(lambda mixture: mixture.std)
    if return_quantiles is not None:
        levels = np.atleast_1d(as_float_array(return_quantiles, "return_quantiles"))
        # bad levels are better known before the work
        Prediction(np.zeros((1, 1)), np.ones((1, 1))).quantile(levels)
        wanted.append(lambda mixture: mixture.quantile(levels))
    found = _over(self, X, wanted, variance=len(wanted) > 1)
    return found[0] if len(found) == 1 else tuple(found)


def predict_median(self: PredictsMixtures, X: ArrayLike) -> FloatArray:
    """Median of a new observation at new inputs, (N,) or (N, K): the best guess under absolute loss; exact."""
    X = new_rows(self, X)
    return _over(self, X, [lambda mixture: mixture.median], variance=self._components() > 1)[0]


def predictive(self: PredictsMixtures, X: ArrayLike, noise: bool = True) -> Prediction:
    """Whole predictive distributions at new inputs: of observations, or with ``noise=False`` of the function."""
    X = new_rows(self, X)
    noise = as_flag(noise, "noise")
    return self._mixture(X, noise=noise)


def log_predictive_density(self: PredictsMixtures, X: ArrayLike, y: ArrayLike, widen: bool = False) -> FloatArray:
    """log p(y_n | x_n, training data) of each new observation, in nats; sum or average it as you need.

    `widen` widens mixtures that would be a row of separate peaks, as the 1996 program did: it saves a run with few
    states from ridiculous densities between them.
    """
    check_is_fitted(self)
    rows, target = validated_regression(self, X, y, reset=False)
    widen = as_flag(widen, "widen")

    def density(mixture: Prediction, part: slice) -> FloatArray:
        if target[part].shape != mixture.means.shape[1:]:
            raise ValueError(
                f"y must have the shape of the training target, {mixture.means.shape[1:]} for these rows; "
                f"got {target[part].shape}"
            )
        return self._log_density(mixture.widened() if widen else mixture, target[part])

    return _over(self, rows, [density], parts=True)[0]


def _over(
    regressor: PredictsMixtures, X: FloatArray, wanted: list[Any], variance: bool = True, parts: bool = False
) -> list[FloatArray]:
    """What is wanted of the predictive distributions, in pieces that fit into memory."""
    rows, components = regressor._piece(), regressor._components()
    found: list[list[FloatArray]] = [[] for _ in wanted]
    outputs = 1
    points = components * len(X)
    with progress_of(regressor.progressbar, points, float(points) * regressor._operations(variance)) as tell:
        for begin in range(0, len(X), rows):
            part = slice(begin, begin + rows)

            def told(done: int, total: int, begin: int = begin) -> None:
                if tell is not None:
                    tell(begin * components + done, total)

            mixture = regressor._mixture(X[part], variance=variance, tell=told)
            outputs = mixture.means.ndim - 1
            for values, function in zip(found, wanted, strict=True):
                values.append(function(mixture, part) if parts else function(mixture))
    # rows are the last axis, or with several outputs the one before; densities have rows alone
    return [np.concatenate(values, axis=max(-outputs, -values[0].ndim)) for values in found]
