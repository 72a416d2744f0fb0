"""A dictionary as estimators use it: bound to the training inputs, every column checked, the bias theirs to choose."""

from __future__ import annotations

import copy
from typing import Protocol, override, runtime_checkable

import numpy as np
import numpy.typing as npt

from bayessel._check import FOURTH_POWERS, FloatArray, as_matrix, check_finite, check_magnitude
from bayessel._row_weights import RowWeights, mean
from bayessel.basis.dictionary import Dictionary

#: entries of a design (3 GB) beyond which it is refused
MOST_ENTRIES = 400_000_000
#: rows that tell whether columns depend on their own row alone, and what rounding may change of a column
LOOKED_AT, ROUNDING = 20, 1e-6


@runtime_checkable
class DictionaryLike(Protocol):
    """What a dictionary of one's own must have; `bayessel.basis.Dictionary` makes the last four from the first."""

    def columns(self, X: FloatArray, /) -> npt.ArrayLike:
        """Every column but the bias at inputs (N, D), (N, n_columns - bias)."""

    def design(self, X: FloatArray, /) -> npt.ArrayLike:
        """The columns, and a column of ones last where there is a bias."""

    @property
    def n_columns(self) -> int:
        """Number of columns of the design."""

    @property
    def names(self) -> list[str]:
        """One name per column of the design."""

    @property
    def bias(self) -> bool:
        """Whether the last column of the design is a column of ones."""


def mean_squares(columns: FloatArray, centre: bool, weights: RowWeights | None = None) -> FloatArray:
    """Mean square of each column over the rows, after a bias has taken its mean; zero where that is rounding."""
    whole = mean(columns**2, weights)
    if not centre:
        return whole
    rest = columns.var(axis=0) if weights is None else mean((columns - mean(columns, weights)) ** 2, weights)
    return np.where(rest > (16.0 * np.finfo(float).eps) ** 2 * whole, rest, 0.0)


class BoundDictionary(Dictionary):
    """The columns of a dictionary at inputs of a known number, checked, with or without a bias.

    Where the dictionary has no column at all, for no input varies, one of zeros stands in.

    Attributes
    ----------
    inner : DictionaryLike
        The dictionary, bound; its own bias is not used.
    n_inputs : int
        Inputs of the training rows.
    scale : (M,) array or None
        What the columns are divided by; None leaves them as they are.
    """

    scale: FloatArray | None = None

    def __init__(self, dictionary: DictionaryLike, X: FloatArray, bias: bool) -> None:
        if not isinstance(dictionary, DictionaryLike) or isinstance(dictionary, type):
            raise TypeError(
                "dictionary must be None or an object with columns(X), design(X), n_columns, names and bias, such as "
                f"those of bayessel.basis; got {dictionary!r}. Functions of your own: "
                "bayessel.basis.UserDictionary(functions, names)"
            )
        self.inner = dictionary.bind(X) if isinstance(dictionary, Dictionary) else dictionary
        self.n_inputs, self.bias = X.shape[1], bias
        if isinstance(self.inner, Dictionary):
            self.inner.check_inputs(X)
        names = [str(name) for name in self.inner.names]
        self._names = names[: len(names) - int(self.inner.bias)] or ["none"]
        self._empty = len(names) == int(self.inner.bias)
        if len(X) * len(self._names) > MOST_ENTRIES:
            raise ValueError(
                f"the dictionary has {len(self._names)} columns at {len(X)} rows, a design of "
                f"{8e-9 * len(X) * len(self._names):.0f} GB: take fewer columns, or some of the rows"
            )
        self._check_rows(X[:LOOKED_AT])

    def _check_rows(self, X: FloatArray) -> None:
        """Refuse columns that depend on the other rows of the call: they would mean something else at new rows."""
        some = len(X) // 2
        if not some:
            return
        together, alone = self.columns(X)[:some], self.columns(X[:some])
        size = np.maximum(np.abs(together), np.abs(alone)).max(axis=0)
        away = np.abs(together - alone) > ROUNDING * size
        for j in np.flatnonzero(away.any(axis=0)):
            raise ValueError(
                f"column {self._names[j]!r} of the dictionary is another one where other rows are asked for beside: a "
                "column must depend on its own row alone; find what it takes from the data (a mean, a range) beforehand"
            )

    def scaled(self, X: FloatArray) -> BoundDictionary:
        """The columns divided by their standard deviations over the rows, without a bias by the roots of mean squares.

        They then vary alike, and one prior precision serves for all. A column that does not vary stays as it is.
        """
        columns = self.columns(X)
        other = copy.copy(self)
        size = np.sqrt(mean_squares(columns, self.bias))
        other.scale = np.where(size > 0.0, size, 1.0)
        return other

    @override
    def check_inputs(self, X: FloatArray) -> None:
        if X.shape[1] != self.n_inputs:
            raise ValueError(f"X must have the {self.n_inputs} columns that were fitted, got shape {X.shape}")

    @override
    def columns(self, X: FloatArray) -> FloatArray:
        self.check_inputs(X)
        if self._empty:
            return np.zeros((len(X), 1))
        # a copy: what a function does to its rows stays its own
        found = as_matrix(self.inner.columns(X.copy()), "the columns of the dictionary", allow_1d=True, finite=False)
        if found.shape != (len(X), len(self._names)):
            raise ValueError(
                f"the dictionary must return one row for each of {len(X)} and the {len(self._names)} columns it "
                f"names, got shape {found.shape}"
            )
        check_finite(found, "the columns of the dictionary")
        check_magnitude(found, "a column of the dictionary", FOURTH_POWERS, tiny=True)
        return found if self.scale is None else found / self.scale

    @override
    def column_names(self) -> list[str]:
        return list(self._names)

    def __repr__(self) -> str:
        return f"{self.inner!r} of {self.n_inputs} inputs, {len(self._names)} columns, bias={self.bias}"
