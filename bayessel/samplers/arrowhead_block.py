"""Gaussian blocks with many coordinates that no row of data shares: intercepts of groups, effects of schools.

Their part of the precision matrix is diagonal, D, and can be eliminated; what is left to factorise is the Schur
complement of the few others:

    P = [D  B; Bᵀ C],    S = C − Bᵀ D⁻¹ B.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import blas, lapack

from bayessel._check import FloatArray

#: Share of a pivot of S that must be left of the diagonal of C; below, digits have cancelled.
_LEFT = 1e-8
#: Fewer coordinates are handled as fast by dense algebra.
_WORTH_IT = 24


class ArrowheadBlock:
    """The parts of AᵀA of several factors, split into eliminated coordinates and the rest.

    Attributes
    ----------
    diagonal : list of arrays, one per factor
        Diagonal of AᵀA at the eliminated coordinates.
    border, corner : lists of matrices
        The off-diagonal part (sparse) and that of the rest (dense).
    """

    def __init__(self, designs: list[Any], out: npt.NDArray[np.bool_]) -> None:
        self.out = np.flatnonzero(out)
        self.rest = np.flatnonzero(~out)
        self.designs = designs
        self.diagonal, self.border, self.corner = [], [], []
        for A in designs:
            G = (A.T @ A).tocsr()
            self.diagonal.append(G.diagonal()[self.out])
            self.border.append(G[self.out][:, self.rest].toarray())
            self.corner.append(G[self.rest][:, self.rest].toarray())

    @classmethod
    def of(cls, designs: list[Any]) -> ArrowheadBlock | None:
        """The split for sparse designs; None where most coordinates share rows with each other."""
        if not designs or not all(sparse.issparse(A) for A in designs) or designs[0].shape[1] < _WORTH_IT:
            return None
        pattern = sparse.csr_matrix(sum(abs(A).T @ abs(A) for A in designs))
        out = np.zeros(pattern.shape[0], dtype=bool)
        blocked = np.zeros_like(out)
        # fewest neighbours first: a large set of coordinates without a row in common
        for j in np.argsort(np.diff(pattern.indptr), kind="stable"):
            if not blocked[j]:
                out[j] = True
                blocked[pattern.indices[pattern.indptr[j] : pattern.indptr[j + 1]]] = True
        return cls(designs, out) if 2 * out.sum() >= len(out) else None

    def draw(
        self, taus: list[Any], ys: list[FloatArray], d: FloatArray, m: FloatArray, rng: np.random.Generator
    ) -> FloatArray | None:
        """One w ∝ exp(−½ Σ_f τ_f ‖A_f w − y_f‖² − ½ Σ d (w − m)²); None where too many digits would cancel."""
        pull = d * m
        for A, tau, y in zip(self.designs, taus, ys, strict=True):
            pull = pull + tau * (A.T @ y)
        D = d[self.out] + sum(tau * g for tau, g in zip(taus, self.diagonal, strict=True))
        x = np.empty(len(d))
        root = np.sqrt(D)
        if not self.rest.size:
            return pull / D + rng.standard_normal(len(d)) / root
        B = sum(tau * g for tau, g in zip(taus, self.border, strict=True)) / root[:, None]
        C = sum(tau * g for tau, g in zip(taus, self.corner, strict=True))
        C[np.diag_indices(len(C))] += d[self.rest]
        whole = C.diagonal().copy()
        L, failed = lapack.dpotrf((C - B.T @ B).T, lower=1, clean=0)
        if failed or np.any(L.diagonal() ** 2 < _LEFT * whole):
            return None
        eliminated = pull[self.out] / root
        half = blas.dtrsv(L, pull[self.rest] - eliminated @ B, lower=1)
        rest = blas.dtrsv(L, half + rng.standard_normal(len(half)), lower=1, trans=1)
        x[self.rest] = rest
        x[self.out] = (eliminated - B @ rest + rng.standard_normal(len(D))) / root
        return x
