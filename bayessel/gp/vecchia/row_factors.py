"""The approximate distribution of the targets: weights of neighbours, whitened columns, what all rows share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from bayessel._check import FloatArray
from bayessel.gp.marginal import LOG_2PI
from bayessel.gp.vecchia.covariance_terms import StationaryNumbers
from bayessel.gp.vecchia.global_part import GlobalValues
from bayessel.work.blocks import BLOCK


class RowFactors(NamedTuple):
    """The approximate distribution of the targets at one θ, rows in the order of conditioning.

    Attributes
    ----------
    numbers : StationaryNumbers
    part : GlobalValues
        Columns F and what they were made from.
    b, v
        Weights of the neighbours and of the row itself (n, m + 1), conditional variances (n,).
    w, W
        Whitened targets (n,) and columns (n, q).
    L : (q, q) array
        Lower Cholesky factor of A.
    beta, e
        Weights of the columns (q,), whitened residuals (n,).
    """

    numbers: StationaryNumbers
    part: GlobalValues
    b: FloatArray
    v: FloatArray
    w: FloatArray
    W: FloatArray
    L: FloatArray
    beta: FloatArray
    e: FloatArray

    @property
    def value(self) -> float:
        """log p(t|θ)."""
        squares = float(self.e @ self.e + self.beta @ self.beta)
        logs = float(np.log(self.v).sum()) + 2.0 * float(np.log(np.diag(self.L)).sum())
        return -0.5 * (squares + logs + len(self.v) * LOG_2PI)


def sum_of_products(A: FloatArray, B: FloatArray) -> FloatArray:
    """AᵀB as a sum over blocks: BLAS may add up in another order with other threads."""
    found = np.zeros((A.shape[1], B.shape[1]))
    for begin in range(0, len(A), 8 * BLOCK):
        found += A[begin : begin + 8 * BLOCK].T @ B[begin : begin + 8 * BLOCK]
    return found


def solved(L: FloatArray, B: FloatArray) -> FloatArray:
    """A⁻¹B from the factor A = LLᵀ."""
    if not len(L):
        return np.zeros_like(B)
    half = solve_triangular(L, B, lower=True, check_finite=False)
    return np.asarray(solve_triangular(L, half, lower=True, trans="T", check_finite=False))
