"""Leave-one-out losses of every number of neighbours in one pass per row, for numba.

Mean and squares are updated (Welford 1962). The median comes from a Fenwick tree over the ranks of the targets: counts,
insertions and selections in log N steps. Importing this module imports numba.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}


@njit(**_OPTIONS)
def _insert(tree: Any, rank: int) -> None:
    i = rank + 1
    while i < len(tree):
        tree[i] += 1
        i += i & -i


@njit(**_OPTIONS)
def _count_below(tree: Any, rank: int) -> int:
    """How many ranks in the tree are smaller."""
    i, total = rank, 0
    while i > 0:
        total += tree[i]
        i -= i & -i
    return total


@njit(**_OPTIONS)
def _select(tree: Any, j: int, highest: int) -> int:
    """Rank of the j-th smallest, j = 1, 2, …; `highest` is the largest power of two in the tree."""
    at, bit = 0, highest
    while bit > 0:
        if at + bit < len(tree) and tree[at + bit] < j:
            at += bit
            j -= tree[at]
        bit >>= 1
    return at


@njit(**_OPTIONS)
def _order_statistic(tree: Any, highest: int, values: FloatArray, j: int, below: int, copies: int, a: float) -> float:
    """j-th smallest of the tree's values and some copies of a, which has `below` of the tree's below it."""
    if j <= below:
        return float(values[_select(tree, j, highest)])
    if j <= below + copies:
        return a
    return float(values[_select(tree, j - copies, highest)])


@njit(**_OPTIONS)
def left_out_losses(
    distance: FloatArray,
    order: Any,
    first_row: int,
    Y: FloatArray,
    rank: Any,
    in_order: FloatArray,
    first_variance: FloatArray,
    tolerance: float,
    losses: FloatArray,
) -> None:
    """Add squared, absolute and log loss (k, 3) of rows first_row, … predicted from their nearest k others.

    `distance` and `order` (rows, N - 1) are sorted; `rank` (N, K) are the ranks of the targets, `in_order` (N, K) the
    targets by rank.
    """
    rows, others = distance.shape
    N, K = Y.shape
    highest = 1
    while 2 * highest <= N:
        highest *= 2
    tree = np.zeros(N + 1, dtype=np.int64)
    sums = np.zeros(others + 1)
    for b in range(rows):
        d, near = distance[b], order[b]
        for out in range(K):
            truth = Y[first_row + b, out]
            values = in_order[:, out].copy()
            tree[:] = 0
            for k in range(others):
                # sums of differences from the truth: what averages of ties lose is small beside what they are
                sums[k + 1] = sums[k] + (Y[near[k], out] - truth)
            mean, squares = 0.0, 0.0
            start, stop = 0, 0  # the ties of the k-th: start <= k - 1 < stop
            for k in range(1, others + 1):
                while d[k - 1] - d[start] >= tolerance:
                    row = near[start]
                    start += 1
                    off = Y[row, out] - mean
                    mean += off / start
                    squares += off * (Y[row, out] - mean)
                    _insert(tree, rank[row, out])
                while stop < others and (stop < k or d[stop] - d[k - 1] < tolerance):
                    stop += 1
                copies = k - start
                if stop - start == 1:
                    a = Y[near[start], out]
                    below = _count_below(tree, rank[near[start], out])
                else:
                    a = truth + (sums[stop] - sums[start]) / (stop - start)
                    below = _count_below(tree, np.searchsorted(values, a))
                middle = mean + (a - mean) * copies / k
                v = (squares + (a - mean) ** 2 * start * copies / k + first_variance[out]) / k
                median = _order_statistic(tree, highest, values, (k + 1) // 2, below, copies, a)
                if k % 2 == 0:
                    median = 0.5 * (median + _order_statistic(tree, highest, values, k // 2 + 1, below, copies, a))
                error = (middle - truth) ** 2
                losses[k - 1, 0] += error
                losses[k - 1, 1] += abs(median - truth)
                losses[k - 1, 2] += 0.5 * (math.log(2.0 * math.pi * v) + error / v)
