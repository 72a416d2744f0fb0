r"""The dictionary by its inner products: cheap where it is well conditioned and large.

Of the P x P matrix of inner products only the columns of functions that were ever in the model are made,
:math:`B = F^T\Phi`, in batches: with them a step costs O(P k^2) whatever the number of rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dtrtri, spotrf, strtri

from bayessel._check import FloatArray, IntArray
from bayessel.linear._evidence import log_density
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.rvm.reestimation import Reestimation, reestimate
from bayessel.linear.rvm.state import FewColumns, RVMScores, RVMState

#: S is a difference of numbers of size beta: below this share it is rounding
LEAST_SHARE = 1e-11
#: entries of the dictionary beyond which reading it is what costs
LARGE = 10_000_000
#: squared columns times rows up to which all inner products are made at once
WHOLE = 2e10


class GramForm:
    """Inner products of unit columns with the target and, as they are needed, with each other."""

    heat = 1100

    def __init__(self, columns: Columns, t: FloatArray, outside: float = 0.0, n_rows: float | None = None) -> None:
        # of rows that were rotated away no column reaches the squared length `outside` of the target
        self.columns = columns
        self.n_rows: float = columns.shape[0] if n_rows is None else n_rows
        self.n_columns = columns.shape[1]
        self.Ft = columns.cross(t[:, None])[:, 0]
        self.tt = float(t @ t) + outside
        self._row_of = np.full(self.n_columns, -1, dtype=np.intp)
        self._B = np.empty((0, self.n_columns))
        self._n = 0
        self.length = columns.lengths_squared
        self.candidates: IntArray = np.flatnonzero(self.length)

    @property
    def whole(self) -> bool:
        """Whether all inner products are made at once, which costs less than a search's many looks at the columns."""
        n, p = self.columns.shape
        return self.columns.stored and float(p) ** 2 * n < WHOLE and p == self.n_columns

    def rows(self, wanted: IntArray) -> FloatArray:
        """Inner products of these columns with every column, (k, P)."""
        missing = wanted[self._row_of[wanted] < 0]
        if len(missing) and self._n == 0 and self.whole:
            missing = missing[:0]
            self._B, self._n = self.columns.gram(np.arange(self.n_columns)), self.n_columns
            self._row_of = np.arange(self.n_columns)
        if len(missing):
            missing = np.unique(missing)
            need = self._n + len(missing)
            if need > len(self._B):
                grown = np.empty((max(need, min(2 * len(self._B) + 32, self.n_columns)), self.n_columns))
                grown[: self._n] = self._B[: self._n]
                self._B = grown
            self._B[self._n : need] = self.columns.cross(self.columns.take(missing)).T
            self._row_of[missing] = np.arange(self._n, need)
            self._n = need
        return self._B[self._row_of[wanted]]

    def prefetch(self, likely: IntArray) -> None:
        """Make the inner products of columns that will soon be asked for, if one of them is needed now.

        Reading a large dictionary is what costs; two dozen columns come at nearly the price of one.
        """
        if self.columns.shape[0] * self.n_columns > LARGE and self._row_of[likely[0]] < 0:
            self.rows(likely)

    def solve(self, active: IntArray, a: FloatArray, b: float) -> RVMState:
        """Posterior and evidence from the Cholesky factor of I + X^T X."""
        k = len(active)
        scale = np.exp(0.5 * (b - a))
        beta = np.exp(b)
        B = self.rows(active)
        if k:
            H = B[:, active] * scale
            H *= scale[:, None]
            H.flat[:: k + 1] += 1.0
            R, info = dpotrf(H, clean=1)
            if info:
                zero, eye = np.zeros(k), np.eye(k)
                return RVMState(active, a, b, -np.inf, eye, eye, zero, scale, zero, self.tt)
            Ri = dtrtri(R)[0]
            log_det = 2.0 * float(np.log(np.diagonal(R)).sum())
        else:
            Ri, log_det = np.zeros((0, 0)), 0.0
        z = scale * self.Ft[active]
        w = Ri @ (Ri.T @ z)
        v = np.sqrt(beta) * w
        quad = beta * (self.tt - float(z @ w))
        sum_squares = max(quad - float(v @ v), 0.0) / beta
        value = float(log_density(self.n_rows, b, log_det, float(quad)))
        return RVMState(active, a, b, value, Ri, Ri @ Ri.T, v, scale, w, sum_squares)

    def few(self, active: IntArray) -> FewColumns:
        """Inner products of these columns alone."""
        inner = np.ascontiguousarray(self.rows(active)[:, active])
        return FewColumns(np.empty((len(active), 0)), inner, self.Ft[active], np.empty(0), self.tt, np.inf)

    def vector(self, m: int) -> FloatArray:
        """Candidate m as it is."""
        return self.columns.take(np.array([m]))[:, 0]

    def score(self, state: RVMState) -> RVMScores:
        """S and Q of every candidate as differences of inner products."""
        beta = np.exp(state.b)
        B = self.rows(state.active)
        T = (state.Ri.T * state.scale) @ B
        S = beta * (self.length - np.einsum("ij,ij->j", T, T))
        Q = beta * (self.Ft - (state.scale * state.w) @ B)
        return RVMScores(S, Q, T, S <= LEAST_SHARE * beta)

    @cached_property
    def part(self) -> tuple[GramForm, IntArray]:
        """Every few of the columns, so that all their inner products are at hand, and their numbers."""
        which = self.candidates[:: int(np.ceil(len(self.candidates) / self.heat))]
        form = GramForm.__new__(GramForm)
        form.columns = self.columns  # vectors are asked for by number, and nobody asks a part for them
        form.n_rows, form.n_columns = self.n_rows, len(which)
        form.Ft, form.tt, form.length = self.Ft[which], self.tt, self.length[which]
        form.candidates = np.arange(len(which))
        form._B, form._row_of, form._n = self._gram(which), np.arange(len(which)), len(which)
        return form, which

    def _gram(self, candidates: IntArray) -> FloatArray:
        """Inner products of these columns; those of a part are kept, for several starts want them."""
        if len(candidates) == self._part_columns and (part := self.__dict__.get("part")) is not None:
            form, which = part
            if (which == candidates).all():
                known: FloatArray = form._B
                return known
        if self._n == self.n_columns:
            return self._B[np.ix_(self._row_of[candidates], candidates)]
        return self.columns.gram(candidates)

    @property
    def _part_columns(self) -> int:
        step = int(np.ceil(len(self.candidates) / self.heat))
        return len(range(0, len(self.candidates), max(step, 1)))

    def full_start(
        self, candidates: IntArray, contest: Reestimation, b: float | None
    ) -> tuple[IntArray, FloatArray, float]:
        """Re-estimate from these columns together; only the diagonal of the covariance is made."""
        if len(candidates) == self.n_columns:
            if self._n < self.n_columns:
                self._B = self.columns.gram(candidates)
                self._row_of, self._n = candidates.copy(), self.n_columns
            gram = self._B if (self._row_of == candidates).all() else self.rows(candidates)
        else:
            gram = self._gram(candidates)
        Ft = self.Ft[candidates]

        def sums(active: IntArray, a: FloatArray, b: float) -> tuple[FloatArray, FloatArray, float]:
            scale = np.exp(0.5 * (b - a))
            k = len(active)
            G = gram if k == len(gram) else gram[np.ix_(active, active)]
            H = G * scale
            H *= scale[:, None]
            z = scale * Ft[active]
            # half the digits do for a start, while the matrix is far from singular
            Ri = _inverse_root(H, np.float32 if k > 200 and float(scale @ scale) < 3e4 else np.float64)
            w = np.asarray(Ri @ (z.astype(Ri.dtype) @ Ri), dtype=np.float64)
            gamma = 1.0 - np.einsum("ij,ij->i", Ri, Ri).astype(np.float64)
            return gamma, scale * w, self.tt - float(z @ w) - float(w @ w)

        return reestimate(sums, candidates, self.n_rows, contest, b)


def _inverse_root(H: FloatArray, precision: type) -> npt.NDArray[Any]:
    """R^-1 with R^T R = I + H; a little more ridge where rounding makes that impossible, as it is only a start."""
    factor, invert = (spotrf, strtri) if precision is np.float32 else (dpotrf, dtrtri)
    ridge = 1.0
    for _ in range(60):
        A: npt.NDArray[Any] = H.astype(precision).T  # Fortran order, as LAPACK wants it
        A.flat[:: len(H) + 1] += ridge
        R, info = factor(A, clean=1, overwrite_a=1)
        if info == 0:
            return np.asarray(invert(R, overwrite_c=1)[0])
        ridge = max(10.0 * ridge, 1e-10 * float(np.diagonal(H).max()))
    return np.zeros_like(H)  # not a number anywhere: nothing is determined, and the contest ends
