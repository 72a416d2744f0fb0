r"""Orthogonal coordinates of a smooth dictionary from a few of its columns and a few of its rows.

Where the columns are made when they are looked at, looking at all N P entries is what costs. A dictionary of rank r is
known from r columns and r rows: U from a sample of columns, the coordinates of every column by least squares from some
rows that determine them well. Then the work grows with N + P, not with N P. The columns that fit their rows worst
join the sample, and a few more are compared entry by entry before the result is believed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import qr

from bayessel._check import FloatArray
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.columns.numerical_range import range_of

#: misfit, as a share of a column's length, that is still rounding
TOLERANCE = 1e-10
#: rows beyond those that determine the coordinates, to judge by
EXTRA = 200


def skeleton(columns: Columns, most: int) -> tuple[FloatArray, FloatArray] | None:
    """U (N, r) and U^T F (r, P) of columns at their own length, or None if that takes more than `most` coordinates."""
    n, p = columns.shape
    source: Any = columns.source
    if columns.stored or not hasattr(source, "rows") or min(n, p) <= 4 * EXTRA:
        return None
    rng = np.random.default_rng(0)
    sample = np.unique(np.append(rng.choice(p, 64, replace=False), p - 1))
    for _ in range(8):
        U = range_of(columns.raw(sample))
        r = U.shape[1]
        if r > most or (r > 0.9 * len(sample) and len(sample) > most):
            return None
        # rows that determine the coordinates: pivots of U^T; random ones beside them, to judge by
        pivots = qr(U.T, mode="r", pivoting=True, check_finite=False)[1][:r]
        rows = np.unique(np.concatenate([pivots, rng.choice(n, EXTRA + r, replace=False)]))
        part = U[rows]
        inverse = np.linalg.pinv(part)
        W = np.empty((r, p))
        misfit = np.empty(p)
        width = max(1, 4_000_000 // len(rows))
        for start in range(0, p, width):
            which = np.arange(start, min(start + width, p))
            F = np.asarray(source.rows(rows, which), dtype=np.float64)
            W[:, which] = inverse @ F
            scale = np.maximum(np.abs(F).max(axis=0), 1e-300)
            misfit[which] = np.abs(F - part @ W[:, which]).max(axis=0) / scale
        check = rng.choice(p, 16, replace=False)
        whole = columns.raw(check)
        error = np.linalg.norm(whole - U @ W[:, check], axis=0) / np.maximum(np.linalg.norm(whole, axis=0), 1e-300)
        misfit[check] = np.maximum(misfit[check], error)
        if misfit.max() <= TOLERANCE:
            return U, W
        worst = np.argsort(-misfit)[: max(32, len(sample) // 2)]
        sample = np.union1d(sample, np.union1d(worst[misfit[worst] > TOLERANCE], rng.choice(p, len(sample) // 2)))
    return None
