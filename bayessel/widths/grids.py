"""Grids of widths and spread centres, chosen from the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_count, as_matrix, as_positive

#: more widths than this are a slip of the keyboard
MAX_WIDTHS = 10_000


def check_widths(widths: Iterable[float] | str) -> tuple[float, ...]:
    """Positive finite numbers, sorted, each once."""
    if isinstance(widths, str):
        raise TypeError(
            f"widths must be numbers, got the string {widths!r}; try np.geomspace(0.1, 10, 25), None for widths from "
            "the distances in the data, or 'posterior' to sample the width as well"
        )
    if not isinstance(widths, Iterable):
        widths = [widths]  # a single width is a comparison of one
    listed = list(np.ravel(widths)) if isinstance(widths, np.ndarray) else list(widths)
    if not listed:
        raise ValueError("widths is empty: give at least one positive number, such as np.geomspace(0.1, 10, 25)")
    if len(listed) > MAX_WIDTHS:
        raise ValueError(f"widths has {len(listed)} numbers: at most {MAX_WIDTHS} make sense, and 25 usually do")
    return tuple(sorted({as_positive(value, "every width") for value in listed}))


def spread_rows(X: FloatArray, m: int) -> FloatArray:
    """Up to ``m`` different rows of ``X`` that cover it: each next one is the farthest from those before it.

    Deterministic; distances are in units of each input's standard deviation, so that no input dominates by its units.
    """
    scale = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    taken = [int(np.argmin((Z**2).sum(axis=1)))]
    far = ((Z - Z[taken[0]]) ** 2).sum(axis=1)
    while len(taken) < m and far.max() > 0:
        taken.append(int(np.argmax(far)))
        far = np.minimum(far, ((Z - Z[taken[-1]]) ** 2).sum(axis=1))
    return X[np.sort(taken)]


def suggest_widths(X: ArrayLike, count: int = 25) -> FloatArray:
    """Suggest widths from half a typical distance of neighbours to twice the largest distance, evenly on the logarithm.

    Narrower functions see one row each and wider ones are all but straight lines, so the answer nearly always lies
    between. Rounded to three digits. Beyond 1 000 rows a spread of 1 000 stands for all.

    Examples
    --------
    >>> suggest_widths(np.linspace(0.0, 10.0, 50), count=4).tolist()
    [0.102, 0.593, 3.44, 20.0]
    """
    from scipy.spatial.distance import cdist

    inputs = as_matrix(X, "X", allow_1d=True)
    rows = inputs if len(inputs) <= 1000 else inputs[np.linspace(0, len(inputs) - 1, 1000).astype(int)]
    distance = cdist(rows, rows)
    if distance.max() == 0:
        raise ValueError("all rows of X are equal: no width can be suggested from their distances")
    distance[distance == 0] = np.inf
    nearest = distance.min(axis=1)
    lo = 0.5 * float(np.median(nearest[np.isfinite(nearest)]))
    hi = 2.0 * float(distance[np.isfinite(distance)].max())
    return np.array([float(f"{r:.3g}") for r in np.geomspace(lo, hi, as_count(count, "count", 2))])


def coarse_to_fine(grid: Sequence[float]) -> list[float]:
    """Both ends first, then ever finer in between."""
    last = len(grid) - 1
    order = [0, last]
    step = 1
    while step < last:
        step *= 2
    while step >= 1:
        order += range(0, last, step)
        step //= 2
    return [grid[i] for i in dict.fromkeys(order)]
