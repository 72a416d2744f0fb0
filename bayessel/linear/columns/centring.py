"""Candidates whose mean is so much larger than their spread that products with them lose the spread's digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.linear.columns.dictionary import Columns, MadeColumns

#: squared ratio of mean and spread from which it is so: three digits
FAR = 1e6
#: entries that are worked on at a time
BLOCK = 4_000_000


def centred(columns: Columns, means: FloatArray, rounding: float, share: FloatArray | None = None) -> Columns:
    """Return the same columns without their means; what is stored is stored once more.

    Columns whose spread is less than `rounding` times their largest entry become zeros. `share` (N,) is what each row
    has of the means, where rows differ.
    """
    source = columns.source if columns.made_from is None else columns.made_from

    def shifted(which: Any) -> FloatArray:
        return _without(np.asarray(source.columns(which), np.float64), means[which], rounding, share)

    if not columns.stored:
        return Columns(MadeColumns(columns.shape, shifted))
    n, p = columns.shape
    origin = Columns(source)
    kept = np.empty((n, p), np.float64 if columns.made_from is None else columns.source.dtype)
    width = max(1, BLOCK // n)
    for start in range(0, p, width):
        part = slice(start, min(start + width, p))
        kept[:, part] = _without(origin.raw(part), means[part], rounding, share)
    made_from = None if columns.made_from is None else MadeColumns(columns.shape, shifted)
    return Columns(kept, made_from=made_from)


def _without(block: FloatArray, means: FloatArray, rounding: float, share: FloatArray | None) -> FloatArray:
    left = block - means
    left -= left.mean(axis=0) if share is None else share @ left
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
