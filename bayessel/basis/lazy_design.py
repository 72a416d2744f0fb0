"""Designs whose columns are made when they are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_matrix
from bayessel.basis.dictionary import Dictionary


class LazyDesign:
    """A design whose columns are made when they are looked at, for dictionaries too large to store.

    Parameters
    ----------
    dictionary
        Radial functions are made for the columns asked for alone; of another dictionary all are, for the rows asked
        for.
    X
        Inputs (N, D).

    Examples
    --------
    >>> import numpy as np
    >>> from bayessel.basis import RBFDictionary
    >>> x = np.linspace(0.0, 1.0, 5)
    >>> design = LazyDesign(RBFDictionary(x, width=1.0), x)
    >>> design.shape, design.columns(np.array([0, 5])).shape
    ((5, 6), (5, 2))
    """

    def __init__(self, dictionary: Dictionary, X: npt.ArrayLike) -> None:
        if not isinstance(dictionary, Dictionary):
            raise TypeError(f"LazyDesign needs a dictionary of bayessel.basis, got {type(dictionary).__name__}")
        self.dictionary = dictionary
        self.X = as_matrix(X, "X", allow_1d=True)
        dictionary.check_inputs(self.X)
        self.shape: tuple[int, int] = (len(self.X), dictionary.n_columns)

    @property
    def ingredients(self) -> tuple[FloatArray, ...]:
        """Numbers that determine the design."""
        return self.dictionary.ingredients(self.X)

    def columns(self, indices: Any) -> FloatArray:
        """Columns of the design at these numbers, (N, k)."""
        return self.rows(slice(None), indices)

    def rows(self, rows: Any, indices: Any) -> FloatArray:
        """A part of the design: these rows of these columns."""
        return self.dictionary.some_columns(self.X[rows], np.asarray(indices, dtype=np.intp))


def design_of(dictionary: Dictionary, X: FloatArray, stored: int) -> FloatArray | LazyDesign:
    """The design at inputs (N, D), made column by column where it has more than so many entries."""
    large = len(X) * dictionary.n_columns > stored
    return LazyDesign(dictionary, X) if large else dictionary.design(X)
