"""Weighted squared distances s_pq = Σ w_i (f_pi − f_qi)² and weighted sums of them, at the speed of matrix products.

Both by expanding the square: −s/2 is one product of features with two columns more, and Σ G_pq (f_p − f_q)² needs only
G F and the sums of G over rows and columns, O(n²) operations for each feature and no array of n×n×m. Features are rows
here, (f, n): what is done to one of them runs through memory in order.
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
    """Squared distances between n points with f features, in panels.

    Parameters
    ----------
    F : (f, n) array
        Features. Only differences count: they are centred here, once.
    extra : int
        Further rows that take part in the products of `gather`, but not in the distances; see `place`.
    """

    def __init__(self, F: FloatArray, extra: int = 0) -> None:
        f, n = F.shape
        self.size = f
        self.left, self.right = np.ones((f + 2, n)), np.ones((f + 2, n))
        self.taking = np.ones((f + 1 + extra, n))
        self.products, self.sums = np.zeros_like(self.taking), np.zeros(n)
        self.ones = np.ones(n)
        self.place(F - F.mean(axis=1, keepdims=True))

    def place(self, F: FloatArray, extra: FloatArray | None = None) -> None:
        """Take these features, centred or of size one, from now on."""
        self.F, self.F2 = F, F * F
        self.largest = self.F2.max(axis=1)
        self.right[: self.size] = F
        self.taking[: self.size] = F
        if extra is not None:
            self.taking[self.size + 1 :] = extra

    def move(self, w: FloatArray, shift: float = 0.0) -> bool:
        """Take these weights, and add `shift` to every −s/2; False where the numbers leave double precision."""
        self.w = w
        far = w * self.largest > FAR
        self.far: list[int] = far.nonzero()[0].tolist() if far.any() else []
        near = np.where(far, 0.0, w) if self.far else w
        half = np.dot(-0.5 * near, self.F2)
        half += 0.5 * shift
        np.multiply(self.F, near[:, None], out=self.left[: self.size])
        self.left[self.size] = half
        self.right[self.size + 1] = half
        self.shift = shift
        self.products.fill(0.0)
        self.sums.fill(0.0)
        self.direct = np.zeros(self.size)
        return bool(np.isfinite(half.sum() + w.sum()))

    def half(self, rows: slice, cols: slice, out: FloatArray) -> FloatArray:
        """−s/2 + shift; rounding may leave it a little above the shift."""
        np.matmul(self.left[:, rows].T, self.right[:, cols], out=out)
        for i in self.far:
            out -= 0.5 * self.w[i] * self._differences(i, rows, cols)
        return out

    def _differences(self, i: int, rows: slice, cols: slice) -> FloatArray:
        d = np.subtract.outer(self.F[i, rows], self.F[i, cols])
        return np.multiply(d, d, out=d)

    def gather(self, rows: slice, cols: slice, G: FloatArray) -> None:
        """Add to Σ G_pq (f_p − f_q)²."""
        self.products[:, rows] += np.matmul(self.taking[:, cols], G.T)
        self.sums[cols] += np.dot(self.ones[rows], G)
        for i in self.far:
            self.direct[i] += np.einsum("pq,pq->", G, self._differences(i, rows, cols))

    def total(self) -> float:
        """Σ G_pq of all that was gathered."""
        return float(self.sums.sum())

    def gathered(self) -> FloatArray:
        """Σ G_pq (f_p − f_q)² for every feature, (f,)."""
        found = np.dot(self.F2, self.products[self.size] + self.sums)
        found -= 2.0 * np.einsum("ip,ip->i", self.F, self.products[: self.size])
        if self.far:
            found[self.far] = 0.0
        found += self.direct
        return np.asarray(found)

    def slopes(self, rows: slice, cols: slice, G: FloatArray) -> FloatArray:
        """Σ_p G_pq ∂s_pq/∂f_q over the rows, (f, columns)."""
        return -2.0 * self.w[:, None] * (self.F[:, rows] @ G - (self.ones[rows] @ G) * self.F[:, cols])

    def near(self, rows: slice, cols: slice, half: FloatArray) -> tuple[npt.NDArray[np.intp], FloatArray]:
        """Close pairs of a panel, as flat positions in it, and their differences, (f, pairs): no digits lost."""
        reach = 0.5 * self.shift - self.left[self.size].min()
        where = np.flatnonzero(half > -NEAR * reach - 1e-300)
        p, q = np.divmod(where, cols.stop - cols.start)
        return where, self.F[:, rows][:, p] - self.F[:, cols][:, q]
