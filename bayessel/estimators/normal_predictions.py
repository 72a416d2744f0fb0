"""Methods of regressors whose predictions are normal: distributions, densities, what type checkers see of `predict`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Concatenate, Literal, Protocol, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, IntArray
from bayessel._formulas import log_normal
from bayessel.estimators.base import new_rows, validated_regression
from bayessel.estimators.several_targets import beside, outputs
from bayessel.estimators.weighted_rows import noise_ratio, refuse_levels
from bayessel.prediction import Prediction

#: rows whose mixtures are made at a time
PIECE = 2000

#: the mean alone, or mean and standard deviation
type MeanAndStd = FloatArray | tuple[FloatArray, FloatArray]


class BoundPredict[**P](Protocol):
    """`predict` of one estimator; P are its options after `return_std`."""

    @overload
    def __call__(
        self, X: ArrayLike, return_std: Literal[False] = False, *options: P.args, **named: P.kwargs
    ) -> FloatArray: ...
    @overload
    def __call__(
        self, X: ArrayLike, return_std: Literal[True], *options: P.args, **named: P.kwargs
    ) -> tuple[FloatArray, FloatArray]: ...
    @overload
    def __call__(self, X: ArrayLike, return_std: bool, *options: P.args, **named: P.kwargs) -> MeanAndStd: ...


class PredictMethod[**P](Protocol):
    """`predict` in the body of a class."""

    @overload
    def __get__(self, estimator: None, owner: Any) -> PredictMethod[P]: ...
    @overload
    def __get__(self, estimator: object, owner: Any) -> BoundPredict[P]: ...


def predicts_mean_and_std[E, **P](method: Callable[Concatenate[E, ArrayLike, bool, P], MeanAndStd]) -> PredictMethod[P]:
    """The method as it is; type checkers learn which of the two it returns."""
    return cast(PredictMethod[P], method)


def _mixtures_of(estimator: Any) -> Callable[[FloatArray], Prediction] | None:
    """Predictive distributions at inputs, of those regressors whose predictions are more than a mean and a variance."""
    made = getattr(estimator, "_mixtures", None)
    return None if made is None else made()


def predictive(self: Any, X: ArrayLike, noise_std: ArrayLike | None = None) -> Prediction:
    """Whole predictive distributions of new observations at new inputs: quantiles, densities.

    `noise_std` are noise levels of the new rows as in `predict`, of regressors that take them.
    """
    if (each := outputs(self)) is not None:
        return beside([one.predictive(X, noise_std) for one in each])
    if (mixtures := _mixtures_of(self)) is not None:
        there = mixtures(new_rows(self, X))
        return there if noise_std is None else there.with_noise(noise_ratio(self, noise_std, there.means.shape[1]))
    mean, std = self.predict(X, return_std=True, **_known(self, noise_std))
    return Prediction.normal(mean, np.square(std))


def _known(estimator: Any, noise_std: ArrayLike | None) -> dict[str, ArrayLike]:
    """Noise levels of the new rows, as `predict` gets them; refused where the estimator takes no noise levels."""
    if noise_std is None:
        return {}
    refuse_levels(estimator)
    return {"noise_std": noise_std}


def moments_in_pieces(
    predict: Callable[[FloatArray], Prediction], X: FloatArray, ratio: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of mixtures, made of some rows at a time: they take memory for every component.

    `ratio` (N,) are noise levels of the rows in units of that of a typical one.
    """
    found = [(part.mean, part.std) for part, _ in _in_pieces(predict, X, ratio)]
    mean, std = (np.concatenate(each) for each in zip(*found, strict=True))
    return mean, std


def _in_pieces(
    predict: Callable[[FloatArray], Prediction], X: FloatArray, ratio: FloatArray | None
) -> Iterator[tuple[Prediction, IntArray]]:
    """Mixtures of some rows at a time, and which."""
    for piece in np.array_split(np.arange(len(X)), 1 + len(X) // PIECE):
        there = predict(X[piece])
        yield there if ratio is None else there.with_noise(ratio[piece]), piece


def log_predictive_density(self: Any, X: ArrayLike, y: ArrayLike, noise_std: ArrayLike | None = None) -> FloatArray:
    """log p(y_n | x_n, training data) of each new observation, in nats; sum or average it as you need.

    `noise_std` are noise levels of the new rows as in `predict`, of regressors that take them.
    """
    each = outputs(self)
    rows, target = validated_regression(self, X, y, reset=False)
    if each is not None:
        if target.shape != (len(rows), len(each)):
            raise ValueError(f"y must have a column for each of {len(each)} targets, got shape {target.shape}")
        found = [one.log_predictive_density(X, t, noise_std) for one, t in zip(each, target.T, strict=True)]
        return np.sum(found, axis=0)
    if (mixtures := _mixtures_of(self)) is not None:
        if target.ndim == 2:
            raise ValueError(f"y must have the shape of the training target, ({len(target)},); got {target.shape}")
        ratio = None if noise_std is None else noise_ratio(self, noise_std, len(rows))
        pieces = _in_pieces(mixtures, rows, ratio)
        return np.concatenate([there.log_density(target[piece]) for there, piece in pieces])
    # X as it came: a table's columns have names that are checked
    mean, std = self.predict(X, return_std=True, **_known(self, noise_std))
    if target.shape != mean.shape:
        raise ValueError(f"y must have the shape of the training target, {mean.shape}; got {target.shape}")
    return log_normal((target - mean) / std, 1.0) - np.log(std)
