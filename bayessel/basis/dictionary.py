"""What every dictionary can: columns by name, a design with the bias last, and joining."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import override

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray, as_count, as_matrix


class Dictionary:
    """Columns of a design matrix. A subclass writes `columns` and `column_names`; the rest comes from here.

    One that takes something from the training inputs (their number, their spread) also writes `bind`.
    """

    bias: bool = False

    def columns(self, X: FloatArray) -> FloatArray:
        """Every column but the bias, (N, n_columns - bias)."""
        raise TypeError(f"{type(self).__name__} must define columns(X)")

    def column_names(self) -> list[str]:
        """One name per column, the bias excluded."""
        raise TypeError(f"{type(self).__name__} must define column_names()")

    @property
    def names(self) -> list[str]:
        """One name per column of the design."""
        return [*self.column_names(), *(["bias"] if self.bias else [])]

    @property
    def n_columns(self) -> int:
        """Number of columns of the design, the bias included."""
        return len(self.column_names()) + int(self.bias)

    def design(self, X: npt.ArrayLike) -> FloatArray:
        """Return the (N, M) design matrix at inputs `X`, the bias last."""
        inputs = as_matrix(X, "X", allow_1d=True)
        body = self.columns(inputs)
        return np.hstack([body, np.ones((len(inputs), 1))]) if self.bias else body

    def bind(self, X: FloatArray) -> Dictionary:
        """The same dictionary with what it takes from the training inputs (N, D); itself where that is nothing."""
        return self

    def check_inputs(self, X: FloatArray) -> None:
        """Refuse inputs with another number of columns than those the dictionary was made for, where it knows it."""

    def without_bias(self) -> Dictionary:
        """The same columns without the bias, for engines that add it themselves with a flat prior."""
        other = copy.copy(self)
        other.bias = False
        return other

    def some_columns(self, X: FloatArray, indices: IntArray) -> FloatArray:
        """Columns of the design of these numbers, (N, k)."""
        return self.design(X)[:, indices]

    def ingredients(self, X: FloatArray) -> tuple[FloatArray, ...]:
        """Numbers that determine the design at inputs X and name it; here the inputs and some rows of the design."""
        return X, self.design(X[:: -(-len(X) // 16)])

    def __add__(self, other: Dictionary) -> JoinedDictionary:
        if not isinstance(other, Dictionary):
            return NotImplemented
        return JoinedDictionary(self, other)


class JoinedDictionary(Dictionary):
    """The columns of several dictionaries side by side; one bias, last, if any of them has one."""

    def __init__(self, *parts: Dictionary) -> None:
        self.parts: list[Dictionary] = []
        for part in parts:
            if not isinstance(part, Dictionary):
                raise TypeError(
                    f"only dictionaries of bayessel.basis are joined, got {type(part).__name__}: give the functions to "
                    "UserDictionary, or inherit from bayessel.basis.Dictionary"
                )
            self.parts.extend(part.parts if isinstance(part, JoinedDictionary) else [part])
        self.bias = any(part.bias for part in self.parts)

    def columns(self, X: FloatArray) -> FloatArray:
        """Columns of every part in order."""
        return np.hstack([np.zeros((len(X), 0)), *(part.columns(X) for part in self.parts)])

    def column_names(self) -> list[str]:
        """Names of every part in order."""
        return [name for part in self.parts for name in part.column_names()]

    @override
    def check_inputs(self, X: FloatArray) -> None:
        for part in self.parts:
            part.check_inputs(X)

    @override
    def bind(self, X: FloatArray) -> JoinedDictionary:
        """Every part bound."""
        other = copy.copy(self)
        other.parts = [part.bind(X) for part in self.parts]
        return other

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


def as_inputs(value: Sequence[int] | None) -> tuple[int, ...] | None:
    """Numbers of inputs, different and not negative, checked; None stays None."""
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"inputs must be None or a list of numbers of inputs, got {value!r}")
    found = tuple(as_count(one, "each of inputs", 0) for one in value)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"inputs must name at least one input, and each once, got {list(found)}")
    return found


def unbound(dictionary: Dictionary) -> ValueError:
    """What a dictionary says that is asked for columns before it knows the training inputs."""
    return ValueError(
        f"{type(dictionary).__name__} takes number and range of its inputs from the training rows: use what "
        "dictionary.bind(X) returns (estimators do that themselves)"
    )
