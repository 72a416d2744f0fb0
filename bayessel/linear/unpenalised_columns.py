"""Columns without a penalty, taken out of a problem by rotating them away: a flat prior on their weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights, deviation


@dataclass(frozen=True, eq=False)
class UnpenalisedColumns:
    """Orthogonal complement of the unpenalised columns, as Householder reflectors.

    Attributes
    ----------
    n_columns, rank : int
        Columns, and independent ones among them.
    pivots : list of int
        These; the others get no weight.
    root : (rank, rank) array
        Inverse of R in their QR factorisation: the root of their weights' covariance.
    """

    n_columns: int
    rank: int
    pivots: list[int]
    root: FloatArray
    reflectors: FloatArray
    tau: FloatArray

    @classmethod
    def of(cls, F: FloatArray) -> UnpenalisedColumns:
        """Factor the unpenalised columns; dependent ones are dropped."""
        (qr, tau), R, pivots = sl.qr(F, mode="raw", pivoting=True, check_finite=False)
        size = np.abs(np.diag(R))
        rank = int((size > size[0] * max(F.shape) * np.finfo(float).eps).sum()) if size[0] > 0 else 0
        root = sl.solve_triangular(R[:rank, :rank], np.eye(rank), check_finite=False) if rank else np.zeros((0, 0))
        kept = [int(p) for p in pivots[:rank]]
        return cls(F.shape[1], rank, kept, root, np.asfortranarray(qr[:, :rank]), tau[:rank])

    @classmethod
    def empty(cls) -> UnpenalisedColumns:
        """No column without a penalty."""
        nothing = np.zeros((0, 0))
        return cls(0, 0, [], nothing, nothing, np.zeros(0))

    def rotate(self, A: FloatArray, transpose: bool = True) -> FloatArray:
        """Q^T A (or Q A): the first `rank` rows lie in the flat space, the others in its complement."""
        if self.rank == 0:
            return A
        C = np.array(A if A.ndim == 2 else A[:, None], order="F")
        side = "T" if transpose else "N"
        work = sl.lapack.dormqr("L", side, self.reflectors, self.tau, C, -1)[1]
        out = sl.lapack.dormqr("L", side, self.reflectors, self.tau, C, int(work[0]), overwrite_c=1)[0]
        return np.asarray(out if A.ndim == 2 else out[:, 0])

    def embed(self, A: FloatArray) -> FloatArray:
        """Rows of the complement back in the N original rows."""
        return self.rotate(np.vstack([np.zeros((self.rank, A.shape[1])), A]), transpose=False) if self.rank else A

    def slack(self, U: FloatArray) -> FloatArray:
        """Squared length of each unit vector outside the span of U and the unpenalised columns."""
        Q = np.hstack([U, self.rotate(np.eye(len(U), self.rank), transpose=False)]) if self.rank else U
        if Q.shape[1] >= len(U):
            return np.zeros(len(U))
        slack = 1.0 - np.einsum("ij,ij->i", Q, Q)
        # 1 - h cancels for rows of high leverage: for those, measure what the projection leaves of the unit vector
        for i in np.flatnonzero(slack < 0.1):
            e = -(Q @ Q[i])
            e[i] += 1.0
            e -= Q @ (Q.T @ e)
            slack[i] = e @ e
        return np.asarray(slack)


@dataclass(frozen=True, eq=False)
class TargetParts:
    """A target beside the unpenalised columns.

    Attributes
    ----------
    t_scale : float
        Its largest size.
    shifted : (N,) array
        Less a constant, which the bias takes up.
    rest : (N - rank,) array
        Its coordinates in the complement of the unpenalised columns.
    tss : float
        Squared length of these.
    flat_offset : (q,) array
        Weights of the unpenalised columns without the others.
    spread2 : float or None
        Where rows have weights: the square of the target's standard deviation times that of the bias's column.
    """

    t_scale: float
    shifted: FloatArray
    rest: FloatArray
    tss: float
    flat_offset: FloatArray
    spread2: float | None = None

    @classmethod
    def of(
        cls, t: FloatArray, space: UnpenalisedColumns, centred: bool, weights: RowWeights | None = None
    ) -> TargetParts:
        """Take the target apart; `centred` says that a constant is the last of the unpenalised columns."""
        scale = float(np.abs(t).max() if weights is None else (np.abs(t) / weights.std).max())
        if not space.n_columns:
            t = t if weights is None else weights.scale(t)
            return cls(scale, t, t, float(t @ t), np.zeros(0))
        shift = float(offsets(t[:, None])[0]) if centred else 0.0
        shifted, spread2 = t - shift, None
        if weights is not None:
            spread2 = deviation(shifted, weights) ** 2 * float(weights.root @ weights.root)
            shifted = weights.scale(shifted)
        rotated = space.rotate(shifted)
        rest, flat_offset = rotated[space.rank :], np.zeros(space.n_columns)
        flat_offset[space.pivots] = space.root @ rotated[: space.rank]
        if centred:
            flat_offset[-1] += shift
        return cls(scale, shifted, rest, float(rest @ rest), flat_offset, spread2)


def offsets(A: FloatArray) -> FloatArray:
    """Means of the columns that lie far from zero, the value itself of constant ones, zero for all others.

    Taking these off before a rotation that removes any constant is exact and saves the digits that an offset eats.
    A column around zero is left alone: the subtraction would round its small entries.
    """
    shift = A.mean(axis=0)
    spread = A.std(axis=0)
    shift[np.abs(shift) < 8.0 * spread] = 0.0
    constant = A.max(axis=0) == A.min(axis=0)
    shift[constant] = A[0, constant]
    return shift
