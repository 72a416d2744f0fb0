r"""The best exchange for each candidate, without an array of all of them: `bayessel.linear.rvm.moves.swap_gains`.

A logarithm is taken only where the gain could be the best so far. Importing this module imports numba.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray
from bayessel._compiled import njit


@njit(fastmath={"contract"}, error_model="numpy")
def best_exchanges(
    M: FloatArray,
    S: FloatArray,
    Q: FloatArray,
    pull: FloatArray,
    deleted: FloatArray,
    closed: npt.NDArray[np.bool_],
    floor: FloatArray,
) -> tuple[FloatArray, IntArray, FloatArray]:
    """For each candidate the largest gain above `floor`, the column it replaces (-1: none), its log precision then.

    `M` (k, P) are couplings over the root of what the column leaves, `pull` (k,) the column's share of the target,
    `deleted` (k,) the gains of deleting, `closed` (P,) candidates that are out of question.
    """
    k, p = M.shape
    gains, leaver, a = floor.copy(), np.full(p, -1), np.zeros(p)
    for j in range(k):
        out, along = deleted[j], pull[j]
        for m in range(p):
            c = M[j, m]
            over = Q[m] + c * along
            top, bottom = over * over, S[m] + c * c
            # (ratio - 1)/2 bounds the gain of entering
            if top > bottom and 0.5 * (top - bottom) > (gains[m] - out) * bottom and not closed[m]:
                ratio = top / bottom
                gain = 0.5 * (ratio - 1.0 - math.log(ratio)) + out
                if gain > gains[m] and ratio < np.inf:
                    gains[m], leaver[m] = gain, j
                    a[m] = math.log(bottom) - math.log(max(ratio - 1.0, 1e-12))
    return gains, leaver, a
