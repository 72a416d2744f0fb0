"""The type of `predict(X, return_std=False)`: one array, or with `return_std` two, as type checkers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, Protocol, cast, overload

from numpy.typing import ArrayLike

from bayessel._check import FloatArray

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
