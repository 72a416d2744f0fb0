"""Weighted squared distances s_pq = Σ w_i (f_pi − f_qi)² and weighted sums of them, at the speed of matrix products.

Both by expanding the square: −s/2 is one product of features with two columns more, and Σ G_pq (f_p − f_q)² needs only
G F and the sums of G over rows and columns, O(n²) operations for each feature and no array of n×n×m.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray

#: where w_i max f_i² is beyond this, the expanded square would lose more than 1e-12: differences are taken first
FAR = 1e4
#: pairs closer than this, relative to the farthest: their distance has lost digits that √s would show
NEAR = 1e-6


class Squares:
    """Squared distances between rows of features, in panels.

    Parameters
    ----------
    F : (n, f) array
        Features. Only differences count: they are centred here, once.
    extra : int
        Columns E that take part in the products of `gather`, but not in the distances; see `move`.
    """

    def __init__(self, F: FloatArray, extra: int = 0) -> None:
        n, f = F.shape
        self.size = f
        self.left, self.right = np.ones((n, f + 2)), np.ones((n, f + 2))
        self.columns = np.ones((n, f + 1 + extra))
        self.products, self.sums = np.zeros_like(self.columns), np.zeros(n)
        self.ones = np.ones(n)
        self.place(F - F.mean(axis=0))

    def place(self, F: FloatArray, extra: FloatArray | None = None) -> None:
        """Take these features, centred or of size one, from now on."""
        self.F, self.F2 = F, F * F
        self.largest = self.F2.max(axis=0)
        self.right[:, : self.size] = F
        self.columns[:, : self.size] = F
        if extra is not None:
            self.columns[:, self.size + 1 :] = extra

    def move(self, w: FloatArray, shift: float = 0.0) -> bool:
        """Take these weights, and add `shift` to every −s/2; False where the numbers leave double precision."""
        self.w = w
        far = w * self.largest > FAR
        self.far: list[int] = np.flatnonzero(far).tolist() if far.any() else []
        near = np.where(far, 0.0, w) if self.far else w
        half = self.F2 @ (-0.5 * near)
        self.reach = -float(half.min())
        half += 0.5 * shift
        np.multiply(self.F, near, out=self.left[:, : self.size])
        self.left[:, self.size] = half
        self.right[:, self.size + 1] = half
        self.products.fill(0.0)
        self.sums.fill(0.0)
        self.direct = np.zeros(self.size)
        return bool(np.isfinite(half.sum() + w.sum()))

    def half(self, rows: slice, cols: slice, out: FloatArray) -> FloatArray:
        """−s/2 + shift; rounding may leave it a little above the shift."""
        np.matmul(self.left[rows], self.right[cols].T, out=out)
        for i in self.far:
            out -= 0.5 * self.w[i] * self._differences(i, rows, cols)
        return out

    def _differences(self, i: int, rows: slice, cols: slice) -> FloatArray:
        d = np.subtract.outer(self.F[rows, i], self.F[cols, i])
        return np.multiply(d, d, out=d)

    def gather(self, rows: slice, cols: slice, G: FloatArray) -> None:
        """Add to Σ G_pq (f_p − f_q)²."""
        self.products[rows] += np.matmul(G, self.columns[cols])
        self.sums[cols] += self.ones[rows] @ G
        for i in self.far:
            self.direct[i] += np.einsum("pq,pq->", G, self._differences(i, rows, cols))

    def total(self) -> float:
        """Σ G_pq of all that was gathered."""
        return float(self.products[:, self.size].sum())

    def gathered(self) -> FloatArray:
        """Σ G_pq (f_p − f_q)² for every feature, (f,)."""
        weight = self.products[:, self.size] + self.sums
        found = weight @ self.F2 - 2.0 * np.einsum("pi,pi->i", self.F, self.products[:, : self.size])
        if self.far:
            found[self.far] = 0.0
        return np.asarray(found + self.direct)

    def slopes(self, rows: slice, cols: slice, G: FloatArray) -> FloatArray:
        """Σ_p G_pq ∂s_pq/∂f_q over the rows, (columns, f)."""
        return -2.0 * self.w * (G.T @ self.F[rows] - (self.ones[rows] @ G)[:, None] * self.F[cols])

    def near(self, rows: slice, cols: slice, half: FloatArray) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Close pairs of a panel, as flat positions in it, and their differences, (pairs, f): no digits lost."""
        where = np.flatnonzero(half > -NEAR * self.reach - 1e-300)
        p, q = np.divmod(where, cols.stop - cols.start)
        return where, self.F[rows][p] - self.F[cols][q]
