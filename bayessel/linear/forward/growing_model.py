r"""A growing model in orthogonal form, and what every candidate still has to offer.

The chosen columns are :math:`H = QR` with Q orthonormal (orthogonalised twice). Of a candidate f two numbers are kept,
:math:`c = |\tilde f|^2` and :math:`d = \tilde f^Tt`, where :math:`\tilde f` is what the model does not span of it: with
:math:`b = F^Tq` for the new direction q they fall by :math:`b^2` and :math:`b\,q^Tt`, so an addition costs one pass
over the dictionary (Orr 1996, section 7.1, without storing the orthogonalised candidates). A difference loses digits:
once c has fallen by `WORN`, the candidate itself is looked at again and both numbers are measured before it is taken;
those that are far from the best can wait until it has fallen by `LOST`.
"""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.linear.columns.dictionary import BLOCK, Columns

#: share of its last measured value below which the squared length of a candidate has errors that could decide a race
WORN = 1e-6
#: ... and below which it says nothing
LOST = 1e-10
#: share of the best gain from which a worn candidate takes part in the race
NEAR = 0.99
#: squared share of a column outside the model below which it is rounding
SPANNED = 1e-26


class GrowingModel:
    """Columns chosen so far and the state of all candidates, as columns of unit length.

    Parameters
    ----------
    columns, t
        Candidates and target.
    centre
        Take the constant into the model first: a bias with a flat prior.
    train
        True for rows to fit; the others are predicted only.
    keep_products
        Keep B = Q^T F, for criteria that need the candidates inside the model's span too.
    least
        Squared share outside the model below which a candidate is no longer offered.
    """

    def __init__(
        self,
        columns: Columns,
        t: FloatArray,
        *,
        centre: bool = False,
        train: FloatArray | None = None,
        keep_products: bool = False,
        least: float = SPANNED,
    ) -> None:
        self.columns, self.t, self.least = columns, t, max(least, SPANNED)
        n, p = columns.shape
        self.weight = None if train is None else train.astype(np.float64)
        self.n_train = n if train is None else int(train.sum())
        self.lengths = columns.lengths
        self.alive = self.lengths > 0.0
        self.skipped = not bool(self.alive.all())
        self.chosen: list[int] = []
        self.Q = np.empty((n, 16), order="F")  # orthonormal on the rows to fit, continued to the others
        self.R = np.zeros((16, 16), order="F")
        self.z = np.zeros(16)
        self.size = self.n_flat = 0
        self.condition = 1.0
        self.residual = self._masked(t).copy()
        self.tss = float(self.residual @ self.residual)
        self.slack = np.ones(n) if self.weight is None else self.weight.copy()
        self.c = columns.lengths_squared if self.weight is None else self._squares()
        self.B: FloatArray | None = np.zeros((16, p)) if keep_products else None
        if centre:
            q = self._masked(np.ones(n))
            q /= np.sqrt(q @ q)
            self._enter(q, np.ones(n) / np.sqrt(self.n_train), None)
            self.n_flat = 1
            self.tss = float(self.residual @ self.residual)
            b = columns.cross(q[:, None])[:, 0]
            self.c = np.maximum(self.c - b**2, 0.0)
            if self.B is not None:
                self.B[0] = b
        self.d = columns.cross(self.residual[:, None])[:, 0]
        self.reference = columns.lengths_squared if self.weight is None else self.c.copy()
        self._measure_worn()

    def _masked(self, v: FloatArray) -> FloatArray:
        return v if self.weight is None else (v.T * self.weight).T

    def _squares(self) -> FloatArray:
        """Squared lengths of the unit columns on the rows to fit."""
        assert self.weight is not None
        squares = np.zeros(self.columns.shape[1])
        for rows, part, block in self.columns._blocks():
            height = max(1, BLOCK // block.shape[1])
            for start in range(0, len(block), height):
                some = block[start : start + height]
                squares[part] += self.weight[rows][start : start + height] @ some**2
        return squares * self.columns.inverse_lengths**2

    @property
    def n_columns(self) -> int:
        """Number of chosen columns, the constant not counted."""
        return self.size - self.n_flat

    @property
    def body(self) -> FloatArray:
        """R of the chosen columns at their own lengths, (k, k)."""
        k, f = self.size, self.n_flat
        return np.asarray(self.R[f:k, f:k] * self.lengths[self.chosen])

    @property
    def coordinates(self) -> FloatArray:
        """Q^T t of the chosen directions, (k,)."""
        return self.z[self.n_flat : self.size]

    @property
    def rss(self) -> float:
        """Squared length of the target outside the model."""
        return float(self.residual @ self.residual)

    def extend(self, j: int) -> FloatArray:
        """Take candidate `j` into the model; returns its direction q on the rows to fit."""
        full = self.columns.take(np.array([j]))[:, 0]
        Q = self.Q[:, : self.size]
        v, a = self._masked(full), np.zeros(self.size)
        for _ in range(2):
            step = self._masked(Q).T @ v if self.weight is not None else Q.T @ v
            a += step
            v = v - (self._masked(Q) @ step if self.weight is not None else Q @ step)
        rho = float(np.sqrt(v @ v))
        q = v / rho
        outside = q if self.weight is None else (full - Q @ a) / rho
        self.alive[j] = False
        self.chosen.append(j)
        self._enter(q, outside if self.weight is None else np.where(self.weight > 0.0, q, outside), np.append(a, rho))
        return q

    def retract(self, q: FloatArray) -> None:
        """Undo the last `extend`, whose direction was `q`; that candidate is not offered again."""
        self.size -= 1
        self.chosen.pop()
        self.residual = self.residual + self.z[self.size] * q
        self.slack = self.slack + q**2

    def _enter(self, q: FloatArray, full: FloatArray, r: FloatArray | None) -> None:
        m = self.size
        if m == self.Q.shape[1]:
            self._grow()
        self.Q[:, m] = full
        self.z[m] = q @ self.residual
        self.residual = self.residual - self.z[m] * q
        if r is None:
            self.R[0, 0] = np.sqrt(self.n_train)
        else:
            self.R[: m + 1, m] = r
        self.slack = self.slack - q**2
        self.size += 1

    def _grow(self) -> None:
        m = self.Q.shape[1]
        Q = np.empty((len(self.t), 2 * m), order="F")
        Q[:, :m] = self.Q
        R = np.zeros((2 * m, 2 * m), order="F")
        R[:m, :m] = self.R
        self.Q, self.R, self.z = Q, R, np.append(self.z, np.zeros(m))
        if self.B is not None:
            self.B = np.vstack([self.B, np.zeros_like(self.B)])

    def absorb(self, b: FloatArray) -> None:
        """Bring the candidates up to date with the last direction, b = F^T q."""
        m = self.size - 1
        self.c = self.c - b**2
        self.d = self.d - b * self.z[m]
        if self.B is not None:
            self.B[m] = b
        self._measure_worn()

    def _measure_worn(self) -> None:
        self.measure(np.flatnonzero(self.alive & (self.c < LOST * self.reference)))

    def _drop(self, which: IntArray) -> None:
        """Offer these no longer: what they add is rounding."""
        if len(which):
            self.skipped = True
            self.alive[which] = False

    def doubtful(self, gains: FloatArray) -> IntArray:
        """Candidates that could be the best, and whose numbers have too few digits to tell; measure them first."""
        worn = self.alive & (self.c < WORN * self.reference)
        best = gains.max(initial=-np.inf, where=self.alive)
        return np.flatnonzero(worn & (gains >= best - (1.0 - NEAR) * abs(best)))

    def measure(self, which: IntArray) -> None:
        """Measure what the model leaves of these candidates, instead of subtracting."""
        Q = self._masked(self.Q[:, : self.size])
        width = max(1, BLOCK // len(self.t))
        for start in range(0, len(which), width):
            part = which[start : start + width]
            A = self._masked(self.columns.take(part))
            for _ in range(2):
                A = A - Q @ (Q.T @ A)
            self.c[part] = np.einsum("ij,ij->j", A, A)
            self.d[part] = A.T @ self.residual
        self.reference[which] = self.c[which]
        self._drop(which[self.c[which] < self.least])
