r"""Sufficient statistics of (Phi, t) summed over row blocks: the triangle R of [Phi t], memory independent of N.

Two ways, one interface. Sums of squares (``exact=False``) run at the speed of the BLAS symmetric rank-k update but
square the condition number; a QR of each block on top of the running triangle (``exact=True``) keeps every digit at
about twice the arithmetic. The means are taken off with a running shift, so that offsets do not cost digits.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl
from scipy.linalg import blas

from bayessel._check import FOURTH_POWERS, FloatArray

#: rows worked on at once: two columns of 100 doubles by 4096 rows stay in the cache while they are used twice
TILE = 4096
#: means up to this many standard deviations are taken off the sums, larger ones off the data: squared they cost digits
MILD_OFFSET = 30.0


class Moments:
    """Running statistics of a design and its target.

    Parameters
    ----------
    n_columns
        M, columns of the design (without a bias when `centre`).
    centre
        Take the means of the columns and of the target off.
    exact
        Stream a QR (True) or sums of squares (False).
    """

    def __init__(self, n_columns: int, *, centre: bool = False, exact: bool = False) -> None:
        self.n_columns = n_columns
        self.centre = centre
        self.exact = exact
        self.n_rows = 0
        self.t_scale = 0.0
        width = n_columns + 1
        self._shift = np.zeros(width)
        self._sum = np.zeros(width)  # of the shifted columns
        self._gram = np.zeros((width, width), order="F")  # of the shifted columns; lower triangle
        self._products = np.zeros((n_columns, n_columns), order="F")  # Phi^T Phi of uncentred blocks
        self._triangle = np.zeros((0, width + int(centre)))  # R of [1, Phi, t] (of [Phi, t] when not centred), shifted
        self._shifted = centre  # whether the columns must be shifted before they are multiplied
        self._placed = not centre  # whether the shift is known

    @classmethod
    def of(cls, *blocks: tuple[FloatArray, FloatArray], centre: bool, exact: bool = False) -> Moments:
        """Return the statistics of blocks (Phi, t) in memory."""
        self = cls(blocks[0][0].shape[1], centre=centre, exact=exact)
        for Phi, t in blocks:
            self.update(Phi, t)
        return self

    @np.errstate(over="ignore", invalid="ignore")  # what is no number spreads to the sums: see `is_finite`
    def update(self, Phi: FloatArray, t: FloatArray) -> None:
        """Add a block of rows."""
        if len(t) == 0:
            return
        if not self._placed:
            self._placed = True
            head = Phi[: 8 * TILE]
            self._shift = np.append(head.mean(axis=0), t[: 8 * TILE].mean())
            # taking the means off afterwards costs digits only where they exceed the spread by far
            mild = bool((np.abs(self._shift[:-1]) <= MILD_OFFSET * head[:TILE].std(axis=0)).all())
            if not self.exact and mild:
                self._shift[:-1] = 0.0
                self._shifted = False
        self.t_scale = max(self.t_scale, float(np.abs(t).max()))
        if self.exact:
            self._update_triangle(Phi, t)
        else:
            self._update_sums(Phi, t)
        self.n_rows += len(t)

    def _update_sums(self, Phi: FloatArray, t: FloatArray) -> None:
        m = self.n_columns
        if not self._shifted and (Phi.flags.c_contiguous or Phi.flags.f_contiguous):
            self._add_products(Phi, t)
            return
        buffer = np.empty((min(TILE, len(t)), m + 1))
        for start in range(0, len(t), TILE):
            block = Phi[start : start + TILE]
            tile = buffer[: len(block)]
            np.subtract(block, self._shift[:m], out=tile[:, :m])
            np.subtract(t[start : start + TILE], self._shift[m], out=tile[:, m])
            # a C-ordered tile is its own transpose in Fortran order, so nothing is copied
            self._gram = blas.dsyrk(1.0, tile.T, beta=1.0, c=self._gram, lower=1, overwrite_c=1)
            self._sum += np.ones(len(tile)) @ tile

    def _add_products(self, Phi: FloatArray, t: FloatArray) -> None:
        """Phi^T Phi, Phi^T t, t^T t and the sums of a block, straight from the caller's memory."""
        m = self.n_columns
        for start in range(0, len(t), TILE):
            block, y = Phi[start : start + TILE], t[start : start + TILE] - self._shift[m]
            # a C-ordered block is its own transpose in Fortran order: nothing is copied, and the sum is made in place
            a, trans = (block.T, 0) if block.flags.c_contiguous else (block, 1)
            self._products = blas.dsyrk(1.0, a, beta=1.0, c=self._products, trans=trans, lower=1, overwrite_c=1)
            self._gram[m, :m] += y @ block
            self._gram[m, m] += y @ y
            if self.centre:
                self._sum[:m] += np.ones(len(y)) @ block
                self._sum[m] += y.sum()

    def _update_triangle(self, Phi: FloatArray, t: FloatArray) -> None:
        m, ones = self.n_columns, int(self.centre)
        rows = max(TILE, 2 * m)
        for start in range(0, len(t), rows):
            block = Phi[start : start + rows]
            stack = np.empty((len(self._triangle) + len(block), ones + m + 1), order="F")
            stack[: len(self._triangle)] = self._triangle
            new = stack[len(self._triangle) :]
            new[:, :ones] = 1.0
            new[:, ones : ones + m] = block - self._shift[:m]
            new[:, ones + m] = t[start : start + rows] - self._shift[m]
            (R,) = sl.qr(stack, mode="r", overwrite_a=True, check_finite=False)
            self._triangle = np.array(R[: ones + m + 1])

    def empty(self) -> Moments:
        """Statistics of no rows, of the same kind and shift, to which those of other rows can be added."""
        other = Moments(self.n_columns, centre=self.centre, exact=self.exact)
        other._shift, other._shifted, other._placed = self._shift.copy(), self._shifted, self._placed
        return other

    @np.errstate(over="ignore", invalid="ignore")
    def add(self, other: Moments) -> None:
        """Add the statistics of other rows, begun by the same `empty`."""
        if not np.array_equal(self._shift, other._shift) or self.exact != other.exact:
            raise ValueError("statistics can be added when both come from one `empty`: these differ in shift or kind")
        self.n_rows += other.n_rows
        self.t_scale = max(self.t_scale, other.t_scale)
        self._sum += other._sum
        self._gram += other._gram
        self._products += other._products
        if self.exact:
            (R,) = sl.qr(np.vstack([self._triangle, other._triangle]), mode="r", check_finite=False)
            self._triangle = np.array(R[: self._triangle.shape[1]])

    # ---- what they say

    @property
    def mean(self) -> FloatArray:
        """Column means (zeros when not centred)."""
        return self._means()[: self.n_columns]

    @property
    def t_mean(self) -> float:
        """Mean of the target (zero when not centred)."""
        return float(self._means()[-1])

    def _means(self) -> FloatArray:
        if not self.centre:
            return np.zeros(self.n_columns + 1)
        if self.exact:
            return np.asarray(self._shift + self._triangle[0, 1:] / self._triangle[0, 0])
        return np.asarray(self._shift + self._sum / self.n_rows)

    def gram(self) -> FloatArray:
        """Return [Phi t]^T [Phi t] of the (centred) columns, full and symmetric."""
        if self.exact:
            R = self.triangle()
            return np.asarray(R.T @ R)
        G = np.tril(self._gram)
        G[:-1, :-1] += np.tril(self._products)
        G = G + np.tril(G, -1).T
        if self.centre:
            G -= np.outer(self._sum, self._sum) / self.n_rows
        return G

    def triangle(self) -> FloatArray:
        """R of the (centred) [Phi t], for ``exact`` statistics."""
        m = self.n_columns
        R = np.zeros((m + 1, m + 1))
        skip = int(self.centre)
        body = self._triangle[skip:, skip:]
        R[: len(body)] = body
        return R

    def is_finite(self) -> bool:
        """Whether every number seen so far was finite (a NaN or an infinity spreads to the sums)."""
        arrays = (self._triangle,) if self.exact else (self._gram, self._products)
        return all(bool(np.isfinite(a).all()) for a in arrays)

    def keeps_digits(self) -> bool:
        """Whether the means stayed mild to the end of the data where they were taken off the sums."""
        if self.exact or not self.centre:
            return True
        G = self.gram()
        spread2 = np.diagonal(G)[:-1] / self.n_rows
        return bool((((self._sum[:-1] / self.n_rows) ** 2) <= (10.0 * MILD_OFFSET) ** 2 * spread2).all())

    def size(self) -> float:
        """Root mean square of the largest column (as summed: the shifted one)."""
        if self.n_rows == 0:
            return 0.0
        if self.exact:
            columns = self._triangle[:, int(self.centre) : int(self.centre) + self.n_columns]
            return float(np.abs(columns).max()) / float(np.sqrt(self.n_rows))
        squares = np.diagonal(self._gram)[:-1] + np.diagonal(self._products)
        return float(np.sqrt(squares.max() / self.n_rows))

    def is_sizeable(self) -> bool:
        """Whether powers neither overflowed nor vanished."""
        return self.size() == 0.0 or 1.0 / FOURTH_POWERS < self.size() < FOURTH_POWERS

    def condition_bound(self) -> float:
        """Return a lower bound of the condition number, from the pivots of one Cholesky factorisation: cheap."""
        m = self.n_columns
        factor, info = sl.lapack.dpotrf(self.gram()[:m, :m], lower=1, overwrite_a=1, clean=0)
        if info != 0:
            return np.inf
        pivots = np.diag(factor)
        return float(pivots.max() / pivots.min())

    def condition(self, s: FloatArray | None = None) -> float:
        """Condition number of the design as far as double precision can tell from these statistics."""
        if s is None:
            if not self.is_finite():
                return np.inf
            s = self.spectrum()[0]
        return float(s[0] / s[-1]) if len(s) and s[-1] > 0.0 else np.inf

    @np.errstate(over="ignore", invalid="ignore")  # of targets whose squares are no numbers; callers refuse them
    def spectrum(self) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
        """Return s, z, V^T, rss, tss of the (centred) design and target."""
        m = self.n_columns
        if self.exact:
            R = self.triangle()
            U, s, Vt = sl.svd(R[:, :m], full_matrices=False, check_finite=False)
            z = U.T @ R[:, m]
            off = R[:, m] - U @ z
            off -= U @ (U.T @ off)
            if self.n_rows - int(self.centre) <= m:
                off = np.zeros_like(off)
            return s, z, Vt, float(off @ off), float(R[:, m] @ R[:, m])
        G = self.gram()
        values, V = sl.eigh(G[:m, :m], driver="evd", check_finite=False)
        values, V = values[::-1], V[:, ::-1]
        s = np.sqrt(np.maximum(values, 0.0))
        floor = (s[0] if len(s) else 0.0) * np.sqrt(np.finfo(float).eps * m)
        z = np.where(s > floor, (V.T @ G[:m, m]) / np.where(s > floor, s, 1.0), 0.0)
        tss = float(G[m, m])
        return s, z, np.ascontiguousarray(V.T), max(float(tss - z @ z), 0.0), tss
