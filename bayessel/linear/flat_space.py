"""Columns without a penalty, taken out of a problem by rotating them away: a flat prior on their weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from bayessel._check import FloatArray


@dataclass(frozen=True, eq=False)
class FlatSpace:
    """Orthogonal complement of the unpenalised columns, as Householder reflectors."""

    reflectors: FloatArray
    tau: FloatArray
    rank: int
    pivots: list[int]
    R: FloatArray

    @classmethod
    def of(cls, F: FloatArray) -> FlatSpace:
        """Factor the unpenalised columns; dependent ones are dropped."""
        (qr, tau), R, pivots = sl.qr(F, mode="raw", pivoting=True, check_finite=False)
        size = np.abs(np.diag(R))
        rank = int((size > size[0] * max(F.shape) * np.finfo(float).eps).sum()) if size.size and size[0] > 0 else 0
        return cls(np.asfortranarray(qr[:, :rank]), tau[:rank], rank, [int(p) for p in pivots[:rank]], R[:rank, :rank])

    def rotate(self, A: FloatArray, transpose: bool = True) -> FloatArray:
        """Q^T A (or Q A): the first `rank` rows lie in the flat space, the others in its complement."""
        if self.rank == 0:
            return A
        C = np.array(A if A.ndim == 2 else A[:, None], order="F")
        work = sl.lapack.dormqr("L", "T" if transpose else "N", self.reflectors, self.tau, C, -1)[1]
        out = sl.lapack.dormqr(
            "L", "T" if transpose else "N", self.reflectors, self.tau, C, int(work[0]), overwrite_c=1
        )[0]
        return np.asarray(out if A.ndim == 2 else out[:, 0])

    def embed(self, A: FloatArray) -> FloatArray:
        """Rows of the complement back in the N original rows."""
        return self.rotate(np.vstack([np.zeros((self.rank, A.shape[1])), A]), transpose=False)
