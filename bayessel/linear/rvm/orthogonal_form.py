r"""The dictionary in orthogonal coordinates: accurate where inner products would lose every digit.

The rows are rotated so that the dictionary has only as many of them as its numerical rank, :math:`F = U W`. What the
posterior needs comes from a QR factorisation of :math:`[X; I]`, and S is measured as the length of a residual rather
than as a difference of two large numbers: wide kernels have condition numbers of 1e16 and more, and squaring them in
a Gram matrix leaves nothing.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg.lapack import dgeqrf, dpotrf, dtrtri, dtrtrs

from bayessel._check import FloatArray, IntArray
from bayessel.linear._evidence import log_density
from bayessel.linear.rvm.duplicate_columns import merged
from bayessel.linear.rvm.reestimation import Reestimation, reestimate
from bayessel.linear.rvm.state import FewColumns, RVMScores, RVMState

#: S is the square of a length measured to about 1e-15: below this share it is rounding
LEAST_SHARE = 1e-26
#: trace(C)/sigma^2 up to which C may be formed
SAFE = 1e11
#: trace of X^T X up to which I + X^T X may be formed
WELL_CONDITIONED = 1e7
#: coordinates times squared columns up to which a compiled loop is faster than calls of LAPACK
COMPILED = 1_000_000
#: coordinates above which, and columns up to which, inner products of all columns are made
LEAST_RANK, MOST_COLUMNS = 64, 2000
#: the same where coordinates are many: rounding of 1e-5 in directions that hardly matter, until the end is polished
WELL_ENOUGH = 1e11
#: columns that LAPACK's QR factorisation may take at a time
BLOCK = 32


@lru_cache(maxsize=64)
def upper(k: int) -> FloatArray:
    """Ones on and above the diagonal."""
    return np.asfortranarray(np.triu(np.ones((k, k))))


class OrthogonalForm:
    """Coordinates W (r, P) of unit columns, z (r,) of the target, and the squared length of what lies outside."""

    heat = 1_000_000

    def __init__(self, W: FloatArray, z: FloatArray, outside: float, n_rows: float) -> None:
        self.W = W
        self.z = np.ascontiguousarray(z)
        self.outside = outside
        self.n_rows = n_rows
        self.n_columns = W.shape[1]
        self.lengths_squared = np.einsum("ij,ij->j", W, W)
        self.candidates: IntArray = np.flatnonzero(self.lengths_squared > 0.0)

    @cached_property
    def rows(self) -> FloatArray:
        """The coordinates of each column in a row of its own, (P, r)."""
        return np.ascontiguousarray(self.W.T)

    @cached_property
    def inner(self) -> FloatArray | None:
        """Inner products of all columns (P, P), where coordinates are so many that models of fewer columns gain."""
        small = self.rank > LEAST_RANK and self.n_columns <= MOST_COLUMNS
        return self.W.T @ self.W if small else None

    @property
    def _stacked_from(self) -> float:
        return WELL_CONDITIONED if self.inner is None else WELL_ENOUGH

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return len(self.z)

    def prefetch(self, likely: IntArray) -> None:
        """Nothing to fetch: all coordinates are at hand."""

    def solve(self, active: IntArray, a: FloatArray, b: float) -> RVMState:
        """Posterior and evidence from the QR factorisation of [X; I]."""
        k = len(active)
        scale = np.exp(0.5 * (b - a))
        X = (self.rows[active] * scale[:, None]).T
        if k:
            R = self._root_of(X, active, scale)
            Ri = dtrtri(R)[0]
            log_det = 2.0 * float(np.log(np.diagonal(R)).sum())
        else:
            Ri, log_det = np.zeros((0, 0)), 0.0
        if self._suffices(scale):
            Q1, w = None, Ri @ (Ri.T @ (X.T @ self.z))
        else:
            Q1 = X @ Ri
            w = Ri @ (Q1.T @ self.z)
        residual = self.z - X @ w
        if k:  # one correction: the residual is what the moves are judged by
            step = Ri @ ((Ri.T @ (X.T @ residual) if Q1 is None else Q1.T @ residual) - Ri.T @ w)
            w = w + step
            residual = self.z - X @ w
        sum_squares = float(residual @ residual) + self.outside
        beta = np.exp(b)
        v = np.sqrt(beta) * w
        value = float(log_density(self.n_rows, b, log_det, float(beta * sum_squares + v @ v)))
        return RVMState(active, a, b, value, Ri, Ri @ Ri.T, v, scale, w, sum_squares, (Q1, residual))

    def few(self, active: IntArray) -> FewColumns | None:
        """Coordinates of these columns alone, unless they are so many that LAPACK's blocks pay."""
        k = len(active)
        if self.rank * k * k > COMPILED:
            return None
        W = self.rows[active]
        inner = W @ W.T if self.inner is None else self.inner[np.ix_(active, active)]
        return FewColumns(W, inner, np.zeros(k), self.z, self.outside, self._stacked_from)

    def vector(self, m: int) -> FloatArray:
        """Candidate m in orthogonal coordinates."""
        row: FloatArray = self.rows[m]
        return row

    def _suffices(self, scale: FloatArray) -> bool:
        """Whether inner products of the columns keep the digits of a model, and are at hand."""
        return float(scale @ scale) < WELL_ENOUGH and self.inner is not None

    def _root_of(self, X: FloatArray, active: IntArray, scale: FloatArray) -> FloatArray:
        """R with R^T R = I + X^T X, from the inner products that are at hand where they will do."""
        if self._suffices(scale):
            assert self.inner is not None
            H = self.inner[np.ix_(active, active)] * scale
            H *= scale[:, None]
            H.flat[:: len(active) + 1] += 1.0
            R, info = dpotrf(H, clean=1)
            if info == 0:
                return np.asarray(R)
        return self._root(X, float(scale @ scale))

    @staticmethod
    def _root(X: FloatArray, trace: float) -> FloatArray:
        """Upper triangular R with R^T R = I + X^T X and a positive diagonal."""
        r, k = X.shape
        if trace < WELL_CONDITIONED:
            H = X.T @ X
            H.flat[:: k + 1] += 1.0
            R, info = dpotrf(H, clean=1)
            if info == 0:
                return np.asarray(R)
        stacked = np.zeros((r + k, k), order="F")  # LAPACK's order, so that it works in place
        stacked[:r] = X
        stacked[r:][np.arange(k), np.arange(k)] = 1.0
        R = dgeqrf(stacked, lwork=BLOCK * k, overwrite_a=1)[0][:k] * upper(k)
        return np.asarray(R * np.where(np.diagonal(R) < 0.0, -1.0, 1.0)[:, None])

    def score(self, state: RVMState) -> RVMScores:
        """S as squared lengths of residuals where differences would cancel, Q from the residual of the target."""
        Q1, residual = state.extra
        beta = np.exp(state.b)
        if Q1 is None:
            assert self.inner is not None
            T = (state.Ri.T * state.scale) @ self.inner[state.active]
        else:
            T = Q1.T @ self.W
        if Q1 is None or float(state.scale @ state.scale) < WELL_CONDITIONED:  # nothing cancels: the difference will do
            S = beta * (self.lengths_squared - np.einsum("ij,ij->j", T, T))
        else:
            top = self.W - Q1 @ T
            bottom = state.Ri @ T
            S = beta * (np.einsum("ij,ij->j", top, top) + np.einsum("ij,ij->j", bottom, bottom))
        return RVMScores(S, beta * (residual @ self.W), T, S <= LEAST_SHARE * beta)

    def full_start(
        self, candidates: IntArray, contest: Reestimation, b: float | None
    ) -> tuple[IntArray, FloatArray, float]:
        """Re-estimate from these columns together.

        C = sigma^2 I + W A^-1 W^T is r x r; where its condition is bad it is factored by QR without being formed.
        """
        r = len(self.z)
        chosen = np.asfortranarray(self.W[:, candidates])

        def sums(active: IntArray, a: FloatArray, b: float) -> tuple[FloatArray, FloatArray, float]:
            W = chosen[:, active] if len(active) < len(candidates) else chosen
            scaled = W * np.exp(-0.5 * a)
            noise = np.exp(-b)
            scale = np.exp(0.5 * (b - a))
            if len(active) < r and self._suffices(scale):
                return self._sums_of_few(candidates[active], scale)
            lower = np.zeros((0, 0))
            C = scaled @ scaled.T
            if np.trace(C) < SAFE * noise:
                C.flat[:: r + 1] += noise
                lower, info = dpotrf(C, lower=1, clean=0, overwrite_a=1)
                lower = lower if info == 0 else np.zeros((0, 0))
            if not len(lower):
                lower = np.linalg.qr(np.vstack([scaled.T, np.sqrt(noise) * np.eye(r)]), mode="r").T
            both = np.empty((r, len(active) + 1), order="F")  # LAPACK's order, so that it can work in place
            both[:, :-1], both[:, -1] = W, self.z
            both = dtrtrs(lower, both, lower=1, overwrite_b=1)[0]
            Y, y = both[:, :-1], both[:, -1]
            inverse = dtrtrs(lower, y, lower=1, trans=1)[0]
            alpha = np.exp(a)
            # gamma_i = S_i/alpha_i, mu_i = Q_i/alpha_i, residual = sigma^2 C^-1 z
            gamma = np.einsum("ij,ij->j", Y, Y) / alpha
            return gamma, (Y.T @ y) / alpha, float(noise**2 * (inverse @ inverse)) + self.outside

        return self._merged(*reestimate(sums, candidates, self.n_rows, contest, b))

    def _sums_of_few(self, active: IntArray, scale: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """The same from inner products, for fewer columns than coordinates."""
        X = (self.rows[active] * scale[:, None]).T
        Ri = dtrtri(self._root_of(X, active, scale))[0]
        w = Ri @ (Ri.T @ (X.T @ self.z))
        residual = self.z - X @ w
        gamma = 1.0 - np.einsum("ij,ij->i", Ri, Ri)
        return gamma, scale * w, float(residual @ residual) + self.outside

    def _merged(self, active: IntArray, a: FloatArray, b: float) -> tuple[IntArray, FloatArray, float]:
        """Let near neighbours be one, their prior variances added: r coordinates need no more than r functions."""
        likeness = 0.999999
        while len(active) > len(self.z) and likeness > 0.9:
            kept, a = merged(self.W[:, active], a, likeness)
            active = active[kept]
            likeness = 1.0 - 3.0 * (1.0 - likeness)
        return active, a, b
