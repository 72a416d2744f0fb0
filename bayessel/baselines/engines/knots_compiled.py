"""The search for the next knot, for numba: every parent, every input, every knot, O(N M) for all knots of a pair.

Fix a parent b and an input x. A pair of hinges b(x - t)₊, b(t - x)₊ adds the span of u = b(x - x̄) and h_t = b(x - t)₊.
As t moves from one row to the next, the products of h_t with any fixed vector change by the distance times the sum of
that vector, weighted by b, over the rows passed (Friedman 1991, eq. 52). Here the fixed vectors are orthonormal columns
Q of the functions in use, the residual r and u, so that the fall of the residual sum of squares is a quotient of such
products, and no system is solved.

Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit

# sums may be reordered, which is what vectors of partial sums do; NaN and infinities stay what they are
_OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy", "nogil": True}

#: squared part of a vector outside the span of others below which it counts as inside
INDEPENDENT = 1e-9
#: gains that differ by less are equal: the earlier, simpler parent is taken
EQUAL = 1e-10


@njit(**_OPTIONS)
def best_knot(
    x: FloatArray,
    order: Any,
    b: FloatArray,
    Q: FloatArray,
    n_columns: int,
    r: FloatArray,
    span: int,
    end: int,
    work: FloatArray,
) -> tuple[float, float, bool, bool]:
    """Gain, knot, whether u is new, whether there is a knot at all, for one parent and one input.

    `order` (N,) sorts x downwards; b is not negative; Q (N, columns) has orthonormal columns, the first `n_columns` in
    use and the others zero; r is orthogonal to them. Knots stand at every `span`-th row with b > 0 but the `end` first
    and last ones. `work` (3, columns) is space.
    """
    N = len(x)
    c, g, S = work[0, :n_columns], work[1, :n_columns], work[2, :n_columns]
    rows, weight, centre = 0, 0.0, 0.0
    for i in range(N):
        if b[i] > 0.0:
            rows += 1
            weight += b[i] * b[i]
            centre += b[i] * b[i] * x[i]
    if rows < 2:
        return 0.0, 0.0, False, False
    centre /= weight
    for j in range(n_columns):
        c[j] = 0.0
    uu, ur = 0.0, 0.0
    for i in range(N):
        u = b[i] * (x[i] - centre)
        if u != 0.0:
            uu += u * u
            ur += u * r[i]
            for j in range(n_columns):
                c[j] += u * Q[i, j]
    outside = uu
    for j in range(n_columns):
        outside -= c[j] * c[j]
    new = outside > INDEPENDENT * uu
    linear = ur * ur / outside if new else 0.0

    best, knot, found = 0.0, 0.0, False
    # The upper half of the knots from above, with (x - t)₊, the lower half from below, with (t - x)₊. Both add the
    # same to b and u, and the one with fewer rows loses fewer digits to what it shares with them.
    for side in range(2):
        first_half = (rows + 1) // 2
        # products with h_t: hh with itself, hr with r, hu with u, g with Q; sums over the rows passed, weighted by b
        hh, hb, bb, hr, sr, hu, su = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(n_columns):
            g[j] = S[j] = 0.0
        passed, until = 0, end
        if side == 1:  # the first knot of the grid from above that lies in the lower half, seen from below
            until = rows - 1 - (end + (rows - 1 - 2 * end) // span * span)
        t = x[order[0]] if side == 0 else x[order[N - 1]]
        for k in range(N):
            i = order[k] if side == 0 else order[N - 1 - k]
            if b[i] <= 0.0:
                continue
            if passed >= (first_half if side == 0 else rows - first_half):
                break
            moved = abs(t - x[i])
            t = x[i]
            hh += moved * (2.0 * hb + moved * bb)
            hb += moved * bb
            hr += moved * sr
            hu += moved * su
            for j in range(n_columns):
                g[j] += moved * S[j]
                S[j] += b[i] * Q[i, j]
            if passed == until and passed < rows - end:
                until += span
                inside, cg = 0.0, 0.0
                for j in range(n_columns):
                    inside += g[j] * g[j]
                    cg += c[j] * g[j]
                left, product = hh - inside, hr
                if new:
                    along = hu - cg
                    left -= along * along / outside
                    product -= along * ur / outside
                if left > INDEPENDENT * hh:
                    gain = product * product / left
                    if gain > best * (1.0 + EQUAL):
                        best, knot, found = gain, t, True
            bb += b[i] * b[i]
            sr += b[i] * r[i]
            su += b[i] * b[i] * (x[i] - centre)
            passed += 1
    return linear + best, knot, new, found


@njit(**_OPTIONS)
def best_of_all(
    X: FloatArray,
    order: Any,
    B: FloatArray,
    allowed: Any,
    Q: FloatArray,
    n_columns: int,
    r: FloatArray,
    spans: Any,
    ends: Any,
) -> tuple[float, int, int, float, bool, bool]:
    """Gain, parent, input, knot, whether u is new and whether there is a knot, over all allowed (M, D) pairs.

    X and `order` are (D, N), B (M, N).
    """
    M, D = allowed.shape
    work = np.zeros((3, Q.shape[1]))
    best, parent, variable, knot, new, found = 0.0, -1, -1, 0.0, False, False
    for m in range(M):
        for v in range(D):
            if allowed[m, v]:
                gain, t, fresh, some = best_knot(X[v], order[v], B[m], Q, n_columns, r, spans[m], ends[m], work)
                if gain > best * (1.0 + EQUAL):
                    best, parent, variable, knot, new, found = gain, m, v, t, fresh, some
    return best, parent, variable, knot, new, found
