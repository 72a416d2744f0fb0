"""Nearest rows by distances to all of them, in compiled loops: for inputs so many that trees do not help."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._compiled import njit
from bayessel.gp.vecchia.compiled_rows import OPTIONS

#: rows of a block, whose distances stay in the cache
_BLOCK = 256


@njit(**OPTIONS)
def _keep_nearest(
    columns: FloatArray, place: FloatArray, end: int, m: int, block: FloatArray, squares: FloatArray, found: IntArray
) -> int:
    """The m nearest of the first `end` rows, nearest first, by insertion; returns how many there are."""
    count, worst = 0, np.inf
    for begin in range(0, end, _BLOCK):
        size = min(_BLOCK, end - begin)
        block[:size] = 0.0
        for d in range(len(columns)):
            here, others = place[d], columns[d, begin : begin + size]
            for j in range(size):
                away = others[j] - here
                block[j] += away * away
        for j in range(size):
            if block[j] < worst or count < m:
                at = min(count, m - 1)
                while at > 0 and squares[at - 1] > block[j]:
                    squares[at], found[at] = squares[at - 1], found[at - 1]
                    at -= 1
                squares[at], found[at] = block[j], begin + j
                count = min(count + 1, m)
                if count == m:
                    worst = squares[m - 1]
    return count


@njit(**OPTIONS)
def nearest_earlier(columns: FloatArray, m: int, begin: int, end: int, found: IntArray) -> None:
    """The nearest of the rows before each from `begin` to `end`; `columns` are the places, (inputs, n)."""
    block, squares, place = np.empty(_BLOCK), np.empty(m), np.empty(len(columns))
    for i in range(begin, end):
        place[:] = columns[:, i]
        _keep_nearest(columns, place, i, m, block, squares, found[i])


@njit(**OPTIONS)
def nearest(columns: FloatArray, places: FloatArray, m: int, begin: int, end: int, found: IntArray) -> None:
    """The nearest rows of each of the places from `begin` to `end`."""
    block, squares = np.empty(_BLOCK), np.empty(m)
    for i in range(begin, end):
        _keep_nearest(columns, places[i], columns.shape[1], m, block, squares, found[i])
