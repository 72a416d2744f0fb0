"""Columns that are alike are one function."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray, IntArray


def merged(columns: FloatArray, a: FloatArray, likeness: float) -> tuple[IntArray, FloatArray]:
    """Let the broadest of unit columns whose cosine passes `likeness` stand for all of them, their variances added.

    The lengths may be off by the rounding of how they were measured, which can be more than `likeness` is short of one.
    Returns the positions kept, in order of their log precisions `a`, and their new log precisions. For exact copies the
    evidence stays what it is.
    """
    if not len(a):
        return np.zeros(0, dtype=np.intp), a
    order = np.argsort(a, kind="stable")
    cosine = np.abs(columns[:, order].T @ columns[:, order])
    length = np.sqrt(np.diagonal(cosine))  # one, as far as whoever made the columns could tell
    same = cosine > likeness * length * length[:, None]
    same.flat[:: len(a) + 1] = True
    leader = np.argmax(same, axis=0)  # the first, that is the broadest, function that is like this one
    leaders = np.unique(leader)
    variance = np.bincount(leader, weights=np.exp(-a[order]), minlength=len(a))[leaders]
    return order[leaders], -np.log(variance)
