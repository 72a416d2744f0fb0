"""Predictions from the factors of Vecchia's approximation: new rows given training rows near them, rows left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from bayessel._check import FloatArray, IntArray, as_matrix, check_magnitude
from bayessel.gp.vecchia.neighbours import NearestRows, Neighbours, earlier_neighbours
from bayessel.gp.vecchia.ordering import random_order
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
        near = self.nearest(self.marginal.scaled(self.theta, new), self.m)
        _, v, left = self._conditionals(new, near, np.full(len(new), near.shape[1]))
        g = left[:, 1:]
        return g @ self.found.beta - left[:, 0], v + _half_solved(self.found.L, g)

    def draws(self, Xnew: ArrayLike, count: int, rng: np.random.Generator) -> FloatArray:
        """Draws of the function at new rows, jointly, given the targets: (count, N).

        Each new row is given the nearest of training rows and of new rows before it. What all rows share is drawn
        first: its weights given the targets are normal with mean β and precision A.
        """
        new, (n, q) = as_matrix(Xnew, "Xnew"), self.found.W.shape
        order = random_order(new, np.zeros(len(new)), rng)
        rows, places = (self.marginal.scaled(self.theta, some) for some in (self.marginal.rows, new[order]))
        near, counts = _merged(self.nearest(places, self.m), earlier_neighbours(places, self.m), places, rows, self.m)
        b, v, _ = self._conditionals(new[order], near, counts)
        shared = self.found.beta[:, None] + np.zeros((q, count))
        if q:
            shared += solve_triangular(self.found.L, rng.normal(size=(q, count)), lower=True, trans="T")
        # what is left of targets and of values drawn, beyond the part that all rows share
        rest = np.empty((n + len(new), count))
        rest[:n] = self.marginal.targets[:, None] - self.found.part.F @ shared
        noise = np.sqrt(v)[:, None] * rng.normal(size=(len(new), count))
        for i, size in enumerate(counts):
            rest[n + i] = noise[i] - b[i, :size] @ rest[near[i, :size]]
        F, _ = self.marginal.part_of_all.elsewhere(self.theta, new[order], self.found.part)
        found = np.empty((count, len(new)))
        found[:, order] = (rest[n:] + F @ shared).T
        return found

    def _conditionals(
        self, new: FloatArray, near: Neighbours, counts: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of the function at new rows given neighbours (N, m): weights, variances, bᵀz of targets and columns.

        Neighbours are numbered through training rows and, behind them, new rows. Where their covariance has no factor
        the nearer half has to do, and `counts` says so.
        """
        from bayessel.gp.vecchia import compiled_rows

        X, found = self.marginal.rows, self.found
        F, V = self.marginal.part_of_all.elsewhere(self.theta, new, found.part)
        n, (count, m) = len(X), near.shape
        rows, V = np.vstack([X, new]), np.vstack([found.part.V, V])
        columns = np.vstack([self.columns, np.column_stack([np.zeros(count), F])])
        b, v, left = np.empty((count, m + 1)), np.empty(count), np.empty((count, columns.shape[1]))

        def work(begin: int, end: int) -> None:
            for i in range(begin, end) if not fits(begin, end) else ():
                while not fits(i, i + 1) and counts[i]:
                    counts[i] //= 2
            compiled_rows.residuals(begin, end, columns, near, counts, b, n, left)

        def fits(begin: int, end: int) -> bool:
            place = (rows, near, counts, found.numbers, V, n, n)
            return bool(compiled_rows.conditional_weights(begin, end, *place, b, v))

        over_blocks(work, count, self.marginal.threads)
        return b, v, left


def _merged(
    near: Neighbours, before: Neighbours, places: FloatArray, rows: FloatArray, most: int
) -> tuple[Neighbours, IntArray]:
    """Of training rows and earlier new rows, numbered behind these, the nearest; and how many there are."""
    found = np.zeros((len(places), min(most, near.shape[1] + before.shape[1])), dtype=np.int32)
    counts = np.zeros(len(places), dtype=np.int64)
    for i, place in enumerate(places):
        earlier = before[i, : min(i, before.shape[1])]
        both = np.concatenate([near[i], len(rows) + earlier])
        away = np.concatenate([rows[near[i]], places[earlier]]) - place
        nearest = np.argsort(np.einsum("ij,ij->i", away, away), kind="stable")[:most]
        counts[i] = len(nearest)
        found[i, : counts[i]] = both[nearest]
    return found, counts


class PrecisionLeftOut:
    """Rows predicted from all others, exact for the approximate distribution: P = Uᵀ(I − WA⁻¹Wᵀ)U is its precision."""

    def __init__(self, marginal: VecchiaMarginal, theta: FloatArray) -> None:
        found = marginal.factors(theta)
        if found is None:
            raise np.linalg.LinAlgError("a covariance matrix of neighbours is not positive definite at this theta")
        self.marginal, self.L = marginal, found.L
        self.U = marginal.sparse(found.b / np.sqrt(found.v)[:, None])
        self.columns = np.asarray(self.U.T @ found.W)
        self.pulled = np.asarray(self.U.T @ found.e)

    def rows(self) -> tuple[FloatArray, FloatArray]:
        """Errors of each row, (Pt)_i/P_ii, and their variances, 1/P_ii, in the order that the rows were given in."""
        precision = np.asarray((self.U.multiply(self.U)).sum(axis=0)).ravel() - _half_solved(self.L, self.columns)
        precision = np.maximum(precision, np.finfo(float).tiny)
        errors, variances = np.empty(len(precision)), np.empty(len(precision))
        order = self.marginal.order
        errors[order], variances[order] = self.pulled / precision, 1.0 / precision
        return errors, variances

    def block(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Errors of some rows, left out together, and the covariance of their targets: P_BB⁻¹(Pt)_B and P_BB⁻¹."""
        place = np.argsort(self.marginal.order)[rows]
        part = self.U[:, place]
        precision = (part.T @ part).toarray()
        if len(self.L):
            half = solve_triangular(self.L, self.columns[place].T, lower=True, check_finite=False)
            precision -= half.T @ half
        covariance = np.linalg.inv(precision)
        return covariance @ self.pulled[place], covariance


def _half_solved(L: FloatArray, g: FloatArray) -> FloatArray:
    """gᵀA⁻¹g of every row of g."""
    if not len(L):
        return np.zeros(len(g))
    half = solve_triangular(L, g.T, lower=True, check_finite=False)
    return np.asarray(np.einsum("ij,ij->j", half, half))
