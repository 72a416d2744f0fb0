"""Candidates whose mean is so much larger than their spread that products with them lose the spread's digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.linear.columns.dictionary import Columns

#: squared ratio of mean and spread from which it is so: three digits
FAR = 1e6
#: entries that are worked on at a time
BLOCK = 4_000_000


class Shifted:
    """Columns that are made when they are looked at, their means taken off."""

    def __init__(self, source: Any, means: FloatArray, rounding: float) -> None:
        self.source, self.means, self.rounding = source, means, rounding
        self.shape = source.shape

    def columns(self, which: Any) -> FloatArray:
        """Columns `which`."""
        return _without(np.asarray(self.source.columns(which), np.float64), self.means[which], self.rounding)


def centred(columns: Columns, means: FloatArray, rounding: float) -> Columns:
    """Return the same columns without their means; what is stored is stored once more.

    Columns whose spread is less than `rounding` times their largest entry become zeros.
    """
    if not columns.stored:
        return Columns(Shifted(columns.source, means, rounding))
    n, p = columns.shape
    origin = columns if columns.made_from is None else Columns(columns.made_from)
    kept = np.empty((n, p), np.float64 if columns.made_from is None else columns.source.dtype)
    width = max(1, BLOCK // n)
    for start in range(0, p, width):
        part = slice(start, min(start + width, p))
        kept[:, part] = _without(origin.raw(part), means[part], rounding)
    made_from = None if columns.made_from is None else Shifted(columns.made_from, means, rounding)
    return Columns(kept, made_from=made_from)


def _without(block: FloatArray, means: FloatArray, rounding: float) -> FloatArray:
    left = block - means
    left -= left.mean(axis=0)
    left[:, np.ptp(block, axis=0) <= rounding * np.abs(block).max(axis=0)] = 0.0
    return np.asarray(left)


def constant(columns: Columns, which: IntArray, rounding: float) -> Any:
    """Which of these columns are the same in every row, to rounding (True or False for each)."""
    found = []
    for j in which:
        column = columns.raw(np.array([j]))[:, 0]
        top = float(np.abs(column).max())
        found.append(float(np.ptp(column)) <= rounding * top)
    return np.array(found, dtype=bool)
