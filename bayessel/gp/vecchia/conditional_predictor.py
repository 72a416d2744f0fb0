"""Predictions from the factors of Vecchia's approximation: new rows given training rows near them, rows left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from bayessel._check import FloatArray, as_matrix, check_magnitude
from bayessel.gp.vecchia.neighbours import NearestRows, Neighbours
from bayessel.gp.vecchia.vecchia_marginal import VecchiaMarginal
from bayessel.prediction import Prediction
from bayessel.work.blocks import over_blocks

#: new rows that are worked on at a time
_PIECE = 16_384


class ConditionalPredictor:
    """Predictions at one θ.

    Parameters
    ----------
    marginal : VecchiaMarginal
    theta : (k,) array
    neighbours : int
        Training rows that a new row is conditioned on, beside what all rows share.
    """

    def __init__(self, marginal: VecchiaMarginal, theta: FloatArray, neighbours: int) -> None:
        found = marginal.factors(theta)
        if found is None:
            raise np.linalg.LinAlgError("a covariance matrix of neighbours is not positive definite at this theta")
        self.marginal, self.theta, self.m, self.found = marginal, theta, neighbours, found
        self.nearest = NearestRows(marginal.scaled(theta, marginal.rows))
        self.columns = np.column_stack([marginal.targets, found.part.F])

    def __call__(self, Xnew: ArrayLike, progress: Callable[[int, int], None] | None = None) -> Prediction:
        """Normal distributions of new observations at new inputs (N, inputs), and of the function there."""
        X = self.marginal.rows
        new = as_matrix(Xnew, "Xnew")
        if new.shape[1] != X.shape[1]:
            raise ValueError(f"Xnew must have the {X.shape[1]} columns of X, got shape {new.shape}")
        check_magnitude(new, "Xnew", tiny=True)
        means, inside = np.empty(len(new)), np.empty(len(new))
        for begin in range(0, len(new), _PIECE):
            part = slice(begin, min(begin + _PIECE, len(new)))
            means[part], inside[part] = self._piece(new[part])
            if progress is not None:
                progress(part.stop, len(new))
        return Prediction.normal(means, inside + self.found.numbers.noise, inside)

    def _piece(self, new: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of the function at some rows."""
        v, left = self.conditionals(new, self.nearest(self.marginal.scaled(self.theta, new), self.m))
        g = left[:, 1:]
        spread = _half_solved(self.found.L, g)
        noise, prior = self.found.numbers.noise, float(self.found.numbers.v.sum())
        # rounding may take more than there is
        inside = np.maximum(v - noise + spread, np.finfo(float).eps * prior)
        return g @ self.found.beta - left[:, 0], inside

    def conditionals(self, new: FloatArray, near: Neighbours) -> tuple[FloatArray, FloatArray]:
        """Conditional variances of rows given neighbours (N, m), and bᵀz of targets and columns, the own target nil."""
        from bayessel.gp.vecchia import compiled_rows

        X, found = self.marginal.rows, self.found
        F, V = self.marginal.part_of_all.elsewhere(self.theta, new, found.part)
        n, count, m = len(X), len(new), near.shape[1]
        rows, V = np.vstack([X, new]), np.vstack([found.part.V, V])
        columns = np.vstack([self.columns, np.column_stack([np.zeros(count), F])])
        counts, b, v = np.full(count, m), np.empty((count, m + 1)), np.empty(count)
        left = np.empty((count, columns.shape[1]))

        def work(begin: int, end: int) -> bool:
            good = compiled_rows.conditional_weights(begin, end, rows, near, counts, found.numbers, V, n, b, v)
            compiled_rows.residuals(begin, end, columns, near, counts, b, n, left)
            return bool(good)

        if not all(over_blocks(work, count, self.marginal.threads)):
            raise np.linalg.LinAlgError("a covariance matrix of neighbours is not positive definite at this theta")
        return v, left


def leave_one_out(marginal: VecchiaMarginal, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Errors of each row predicted from all others and their variances, exact for the approximate distribution.

    From its precision P = Uᵀ(I − WA⁻¹Wᵀ)U: the errors are (Pt)_i/P_ii, the variances 1/P_ii.
    """
    found = marginal.factors(theta)
    if found is None:
        raise np.linalg.LinAlgError("a covariance matrix of neighbours is not positive definite at this theta")
    U = marginal.sparse(found.b / np.sqrt(found.v)[:, None])
    precision = np.asarray((U.multiply(U)).sum(axis=0)).ravel()
    if found.W.shape[1]:
        precision = precision - _half_solved(found.L, np.asarray(U.T @ found.W))
    precision = np.maximum(precision, np.finfo(float).tiny)
    pulled = np.asarray(U.T @ found.e)
    errors, variances = np.empty(len(precision)), np.empty(len(precision))
    errors[marginal.order], variances[marginal.order] = pulled / precision, 1.0 / precision
    return errors, variances


def _half_solved(L: FloatArray, g: FloatArray) -> FloatArray:
    """gᵀA⁻¹g of every row of g."""
    if not len(L):
        return np.zeros(len(g))
    half = solve_triangular(L, g.T, lower=True, check_finite=False)
    return np.asarray(np.einsum("ij,ij->j", half, half))
