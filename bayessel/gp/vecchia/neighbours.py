"""The nearest among earlier rows, for every row of an order; and the nearest rows of new places.

Trees are built of prefixes that grow by a fifth, so that most of what a tree finds is earlier: with few inputs that
takes 20 to 60 µs a row. With many inputs trees look at nearly everything, and compiled loops over all earlier rows do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from bayessel._check import FloatArray
from bayessel.work.blocks import over_blocks
from bayessel.work.jobs import core_count

#: numbers of rows near others, (rows, m)
Neighbours = npt.NDArray[np.int32]
#: rows among which all distances are computed
_FIRST = 512
#: how much larger each prefix is than the last: then 5 of 6 rows that a tree finds are earlier ones
_GROWTH = 1.2
#: rows that a search by blocks takes: beyond, n²/2 distances cost more than trees do
MOST_BY_BLOCKS = 120_000


def earlier_neighbours(points: FloatArray, m: int) -> Neighbours:
    """For row i the min(i, m) nearest of the rows before it, nearest first, (n, m); entries beyond are 0."""
    n = len(points)
    m = max(min(m, n - 1), 0)
    found = np.zeros((n, m), dtype=np.int32)
    if not m:
        return found
    if _by_blocks(n, points.shape[1]):
        from bayessel.gp.vecchia.compiled_neighbours import nearest_earlier

        columns = np.ascontiguousarray(points.T)
        over_blocks(lambda begin, end: nearest_earlier(columns, m, begin, end, found), n)
        return found
    end = min(max(_FIRST, 2 * m), n)
    _among_all(points[:end], m, found)
    while end < n:
        begin, end = end, min(int(_GROWTH * end), n)
        _among_tree(points, begin, end, m, found)
    return found


def _by_blocks(n: int, inputs: int) -> bool:
    """Whether distances to all earlier rows are cheaper than trees."""
    return n <= MOST_BY_BLOCKS and (inputs > 8 or (inputs > 5 and n <= MOST_BY_BLOCKS // 4))


def _among_all(points: FloatArray, m: int, found: Neighbours) -> None:
    for i in range(1, len(points)):
        away = points[:i] - points[i]
        nearest = np.argsort(np.einsum("ij,ij->i", away, away), kind="stable")[:m]
        found[i, : len(nearest)] = nearest


def _among_tree(points: FloatArray, begin: int, end: int, m: int, found: Neighbours) -> None:
    """Neighbours of the rows from `begin` to `end`, at least m of which are before all of them."""
    tree = cKDTree(points[:end], balanced_tree=False, compact_nodes=False)
    left = np.arange(begin, end)
    ask = min(int(m * _GROWTH + 2.0 * np.sqrt(m)) + 2, end)
    while len(left):
        _, near = tree.query(points[left], ask, workers=core_count())
        earlier = near < left[:, None]
        rank = np.cumsum(earlier, axis=1)
        enough = rank[:, -1] >= m
        chosen = (earlier & (rank <= m))[enough]
        found[left[enough]] = near[enough][chosen].reshape(-1, m)
        left, ask = left[~enough], min(2 * ask, end)


class NearestRows:
    """The nearest of n places to any other."""

    def __init__(self, points: FloatArray) -> None:
        self.points = points
        self._tree: cKDTree | None = None

    def __call__(self, places: FloatArray, m: int) -> Neighbours:
        """The min(n, m) nearest, nearest first, (N, m)."""
        m = min(m, len(self.points))
        if self.points.shape[1] > 8:
            from bayessel.gp.vecchia.compiled_neighbours import nearest

            found = np.zeros((len(places), m), dtype=np.int32)
            columns, places = np.ascontiguousarray(self.points.T), np.ascontiguousarray(places)
            over_blocks(lambda begin, end: nearest(columns, places, m, begin, end, found), len(places))
            return found
        if self._tree is None:
            self._tree = cKDTree(self.points)
        _, near = self._tree.query(places, np.arange(1, m + 1), workers=core_count())
        return np.asarray(near, dtype=np.int32)
