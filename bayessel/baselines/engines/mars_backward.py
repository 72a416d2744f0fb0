"""The backward pass: functions leave one by one, and the size with the least generalised cross-validation is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from bayessel._check import FloatArray
from bayessel._formulas import generalised_cross_validation


@dataclass(frozen=True, eq=False)
class Pruned:
    """The best subset.

    Attributes
    ----------
    kept
        Columns of the design, the constant (0) among them.
    gcv
        Its generalised cross-validation score.
    path
        (columns, residual sum of squares, score) of the best subset of each size, largest first.
    """

    kept: list[int]
    gcv: float
    path: list[tuple[int, float, float]]


def effective_number(kept: Sequence[int], knots: Sequence[int], penalty: float) -> float:
    """C̃ of eq. (32): one for each function, the constant included, and the penalty for each knot in use."""
    return len(kept) + penalty * len({knots[j - 1] for j in kept if j > 0 and knots[j - 1] >= 0})


def prune(columns: FloatArray, y: FloatArray, knots: Sequence[int], penalty: float) -> Pruned:
    """Remove, one by one, the column whose absence costs least; column 0, the constant, stays.

    With a triangular factor R of the columns in use, leaving j out adds β_j²/(RᵀR)⁻¹_jj to the sum of squares. Columns
    that are combinations of others (to rounding) go first and cost nothing.
    """
    N = len(y)
    size = np.sqrt((columns**2).sum(axis=0))
    R, order = qr(columns / size, mode="r", pivoting=True, check_finite=False)
    R = R[: len(order)]
    pivots = np.abs(np.diag(R))
    independent = order[: len(pivots)][pivots > 1e-9 * pivots[0]]
    kept = sorted({0, *(int(j) for j in independent)})
    Q, R = np.linalg.qr(columns[:, kept] / size[kept])
    z = Q.T @ y
    rest = float(np.sum((y - Q @ z) ** 2))
    at = list(range(len(kept)))
    path: list[tuple[int, float, float]] = []
    best: tuple[float, list[int]] = (np.inf, [0])
    while True:
        q, r = np.linalg.qr(R[:, at])
        w = q.T @ z
        squares = rest + max(0.0, float(z @ z - w @ w)) if len(at) < len(kept) else rest
        now = [kept[j] for j in at]
        # eq. (30); infinite when as many are charged as there are rows
        score = float(generalised_cross_validation(N, squares, N - effective_number(now, knots, penalty)))
        path.append((len(at), squares, score))
        if score <= best[0] and (np.isfinite(score) or len(at) == 1):
            best = (score, now)
        if len(at) == 1:
            return Pruned(best[1], best[0], path)
        inverse = solve_triangular(r, np.eye(len(at)), check_finite=False)
        cost = (inverse @ w) ** 2 / (inverse**2).sum(axis=1)
        del at[1 + int(cost[1:].argmin())]
