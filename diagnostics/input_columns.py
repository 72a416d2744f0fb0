"""Rows of inputs, an array or a data frame, column by column: what displays move along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype


@dataclass(frozen=True, eq=False)
class InputColumns:
    """Inputs whose columns are changed one at a time.

    Attributes
    ----------
    frame : pandas.DataFrame
        All columns.
    named : bool
        Whether estimators see the frame; otherwise an array.
    """

    frame: pd.DataFrame
    named: bool

    @classmethod
    def of(cls, X: Any) -> Self:
        """From what estimators take: a frame, a series or an array (N, D) or (N,)."""
        if isinstance(X, pd.Series):
            X = X.to_frame()
        if isinstance(X, pd.DataFrame):
            return cls(X.reset_index(drop=True), True)
        rows = np.asarray(X)
        rows = rows[:, None] if rows.ndim == 1 else rows
        return cls(pd.DataFrame(rows, columns=[f"x[{j}]" for j in range(rows.shape[1])]), False)

    @property
    def names(self) -> list[Any]:
        """Names of the columns."""
        return list(self.frame.columns)

    @property
    def data(self) -> pd.DataFrame | npt.NDArray[Any]:
        """As the estimator is to see it."""
        return self.frame if self.named else self.frame.to_numpy()

    def is_number(self, name: Any) -> bool:
        """Whether a column is of numbers that can be moved by little steps."""
        dtype = self.frame[name].dtype
        return is_numeric_dtype(dtype) and not is_bool_dtype(dtype)

    def column(self, name: Any) -> npt.NDArray[Any]:
        """Values of a column."""
        column = self.frame[name]
        return column.to_numpy(np.float64, na_value=np.nan) if self.is_number(name) else column.to_numpy()

    def moved(self, name: Any, values: Any) -> pd.DataFrame | npt.NDArray[Any]:
        """The rows with other values in one column."""
        frame = self.frame.copy()
        kept = frame[name].dtype
        frame[name] = pd.Series(values, index=frame.index)
        if isinstance(kept, pd.CategoricalDtype):
            frame[name] = frame[name].astype(kept)
        return frame if self.named else frame.to_numpy()

    def some(self, most: int) -> InputColumns:
        """At most so many rows, evenly taken."""
        step = -(-len(self.frame) // most)
        return InputColumns(self.frame.iloc[::step].reset_index(drop=True), self.named)

    def typical(self, count: int) -> InputColumns:
        """So many copies of a typical row: medians of numbers, the most frequent of other values."""
        row = {}
        for name in self.names:
            seen = self.frame[name].dropna()
            if self.is_number(name) and len(seen):
                row[name] = seen.sort_values().iloc[len(seen) // 2]
            else:
                row[name] = seen.mode().iloc[0] if len(seen) else self.frame[name].iloc[0]
        frame = self.frame.iloc[[0] * count].reset_index(drop=True)
        for name, value in row.items():
            frame[name] = pd.Series([value] * count, dtype=self.frame[name].dtype)
        return InputColumns(frame, self.named)
