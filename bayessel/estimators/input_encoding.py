"""The encoding of a table as numbers: one-hot columns for categories, filled and marked gaps for missing values.

It is learned from the training rows and kept by the estimator, so that later rows are encoded alike. What it encodes
are rows of numbers with NaN where a value is missing, in which `bayessel.estimators.input_table` has replaced
categories by their numbers.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel.errors import NumericalWarning
from bayessel.estimators.input_table import SHOWN, Levels, coded, labels_of, levels_of

if TYPE_CHECKING:
    import pandas as pd

#: what `missing=` may be
MISSING = ("error", "indicator")
#: warnings are about the first line outside the estimators
_HERE = (str(Path(__file__).parent),)


@dataclass(frozen=True, eq=False)
class InputEncoding:
    """How D columns of a table become columns of numbers.

    Numbers and booleans stay one column. Ordered categories become their places 0, 1, ... in one column. Other
    categories become a 0/1 column each, or one in all where they are two. A missing category is one more category. For
    a missing number stands the median of the training rows (the lower one of two), and a 0/1 column at the end says
    that it was missing.

    Attributes
    ----------
    labels : tuple of str, or None
        Names of the columns; None for arrays.
    levels : tuple of (Levels or None)
        Categories of each column; None for numbers.
    gaps : (D,) array of bool
        Columns with missing values in the training rows.
    fills : (D,) array, or None
        What stands for a missing value: a median, or the number of the most frequent category. None where missing
        values are refused.
    takes_missing : bool
        Whether the estimator has the option `missing`.
    """

    labels: tuple[str, ...] | None
    levels: tuple[Levels | None, ...]
    gaps: npt.NDArray[np.bool_]
    fills: FloatArray | None
    takes_missing: bool

    @classmethod
    def learned(
        cls,
        rows: FloatArray,
        labels: tuple[str, ...] | None,
        levels: tuple[Levels | None, ...],
        fill: bool,
        takes_missing: bool = True,
    ) -> Self:
        """From numbers and codes of the training rows (N, D); `fill` takes missing values, which else are refused."""
        gaps = np.isnan(rows).any(axis=0)
        found = cls(labels, levels, gaps, None, takes_missing)
        if (names := found.names) is not None and len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"columns of X are called {', '.join(map(repr, twice))} twice once encoded: rename one")
        if not fill:
            found._refuse(rows)
            return found
        if (empty := np.isnan(rows).all(axis=0)).any():
            raise ValueError(f"X has no value at all in {found._listed(empty)}: drop what is empty")
        fills = np.array([_middle(rows[:, j], found._one_hot(j)) for j in range(rows.shape[1])])
        return cls(labels, levels, gaps, fills, takes_missing)

    # ---- what the columns are

    def _one_hot(self, j: int) -> bool:
        level = self.levels[j]
        return level is not None and not level.ordered

    @property
    def plain(self) -> bool:
        """Whether the columns are left as they are, missing values aside."""
        return not self.gaps.any() and not any(map(self._one_hot, range(len(self.levels))))

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns that engines see; None for the columns of an array as they came."""
        if self.labels is None and self.plain:
            return None
        found = [name for j in range(len(self.levels)) for name in self._names_of(j)]
        return (*found, *(f"{self._label(j)} missing" for j in self._marked()))

    def _names_of(self, j: int) -> list[str]:
        level, label = self.levels[j], self._label(j)
        if level is None or level.ordered:
            return [label]
        found = [f"{label}={value}" for value in level.values] + [f"{label} missing"] * bool(self.gaps[j])
        return found[1:] if len(found) == 2 else found

    def _label(self, j: int) -> str:
        return f"x{j}" if self.labels is None else self.labels[j]

    def _marked(self) -> list[int]:
        """Columns of numbers that had gaps in training."""
        return [j for j in np.flatnonzero(self.gaps).tolist() if not self._one_hot(j)]

    def _listed(self, which: npt.NDArray[np.bool_], counts: npt.NDArray[np.intp] | None = None) -> str:
        """Columns in words, with how many values are missing in each."""
        names = [
            f"{self._label(j) if self.labels is None else repr(self._label(j))}"
            + (f" ({counts[j]} of them)" if counts is not None and which.sum() > 1 else "")
            for j in np.flatnonzero(which).tolist()
        ]
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        return f"column{'s' * (len(names) > 1)} {shown}"

    # ---- encoding

    def encode(self, rows: FloatArray) -> FloatArray:
        """The columns that engines see, of numbers and codes (N, D) with NaN where values are missing."""
        missing = np.isnan(rows)
        if self.fills is None:
            self._refuse(rows)
        elif missing.any():
            new = missing.any(axis=0) & ~self.gaps
            if new.any():
                warnings.warn(
                    f"values are missing in {self._listed(new)}, where none was missing in training: the median or the "
                    "most frequent category stands for them, and predictions do not know that they were missing",
                    NumericalWarning,
                    skip_file_prefixes=_HERE,
                )
                rows = np.where(missing & new, self.fills, rows)
        if self.plain:
            return rows
        blocks = [self._block(rows[:, j], j) for j in range(rows.shape[1])]
        return np.hstack([*blocks, missing[:, self._marked()].astype(np.float64)])

    def _block(self, column: FloatArray, j: int) -> FloatArray:
        """The columns that one column becomes."""
        level = self.levels[j]
        if level is None or level.ordered:
            return (column if self.fills is None else np.where(np.isnan(column), self.fills[j], column))[:, None]
        count = len(level.values) + int(self.gaps[j])
        codes = np.where(np.isnan(column), count - 1, column)
        found = (codes[:, None] == np.arange(count)).astype(np.float64)
        return found[:, 1:] if count == 2 else found

    def _refuse(self, rows: FloatArray) -> None:
        missing = np.isnan(rows)
        counts = missing.sum(axis=0)
        if counts.any():
            advice = "fill them with an imputer in a pipeline, or drop those rows or columns"
            if self.takes_missing:
                advice = f"pass missing='indicator' to have them filled and marked, {advice}"
            raise ValueError(
                f"Input X contains NaN: {counts.sum()} missing value{'s' * bool(counts.sum() > 1)} in "
                f"{self._listed(counts > 0, counts)}, in {missing.any(axis=1).sum()} of {len(rows)} rows; {advice}"
            )


def encoded_table(table: pd.DataFrame, fill: bool = False) -> tuple[FloatArray, tuple[str, ...]]:
    """The columns (N, D) that an estimator would see of a table, and their names; `fill` takes missing values."""
    levels, labels = levels_of(table, labels_of(table)), labels_of(table)
    rows = coded(table, levels, labels).to_numpy(np.float64, na_value=np.nan)
    encoding = InputEncoding.learned(rows, labels, levels, fill)
    return encoding.encode(rows), encoding.names or labels


def _middle(column: FloatArray, category: bool) -> float:
    """What stands for a missing value of a column: the most frequent category, or the (lower) median."""
    there = column[~np.isnan(column)]
    if category:
        values, counts = np.unique(there, return_counts=True)
        return float(values[counts.argmax()])
    return float(np.quantile(there, 0.5, method="inverted_cdf"))
