"""Leave-one-out predictions of a Gaussian process, exact and without refitting.

With a = Q⁻¹t and the noise included (Sundararajan and Keerthi 2001, eqs 12 and 13):
t_i − E[t_i | t_{−i}] = a_i / [Q⁻¹]_ii,   Var[t_i | t_{−i}] = 1 / [Q⁻¹]_ii.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights
from bayessel.gp.marginal import Factor


def inverse_diagonal(L: FloatArray) -> FloatArray:
    """Diagonal of (LLᵀ)⁻¹ from the lower factor L: squared lengths of the columns of L⁻¹, n³/3 operations."""
    # dtrtri wants columns in a row: the transpose of a C-ordered lower triangle is an upper one in that order
    upper = np.tril(L).T
    inverse, _ = lapack.dtrtri(upper, lower=0, overwrite_c=1)
    return np.asarray(np.einsum("ij,ij->i", inverse, inverse))


def leave_one_out(factor: Factor) -> tuple[FloatArray, FloatArray]:
    """Errors t_i − E[t_i | t_{−i}] of each row predicted from all others, and the variances of those predictions."""
    precision = inverse_diagonal(factor.L)
    return factor.a / precision, 1.0 / precision


def own_noise(weights: RowWeights) -> FloatArray:
    """What rows left out whole and predicted once have more of variance than means of copies, in units of the noise."""
    return np.asarray(weights.std**2 - weights.root**-2.0)
