r"""Directions that left the model, kept with their products so that a function that comes back costs no pass.

A function that is removed lies in the span of the model and of the direction that went with it. As long as that
direction q is kept together with its products :math:`q^TF`, the function can come back without a look at the
dictionary. The directions here are orthonormal to each other and to the model; all that ever happens to them are
rotations, the same ones for their products, so nothing is lost by cancellation however nearly functions agree.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dger

from bayessel._check import FloatArray

#: bytes that may be kept
BYTES = 100_000_000
#: entries that may be kept, as a share of the dictionary's: keeping them orthogonal goes over them some eight times
SHARE = 0.03


class RemovedDirections:
    """Orthonormal rows outside the model (K, N), and their products with every candidate (K, P).

    Attributes
    ----------
    rows, products : arrays
        As above; `len` of this is K.
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        both = n_rows + n_columns
        self.most = int(min(BYTES / (8 * both), SHARE * n_rows * n_columns / both))
        self._size, self._oldest = 0, 0
        self._rows, self._products = np.empty((0, n_rows)), np.empty((0, n_columns))

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> FloatArray:
        """Directions."""
        return self._rows[: self._size]

    @property
    def products(self) -> FloatArray:
        """Their products."""
        return self._products[: self._size]

    def keep(self, row: FloatArray, product: FloatArray) -> None:
        """Keep a direction that is orthogonal to the others; where there is no room one of the oldest is forgotten."""
        if not self.most:
            return
        if self._size < self.most:
            k = self._size
            self._hold(k + 1)
        else:
            k = self._oldest
            self._oldest = (k + 1) % self.most
        self._rows[k], self._products[k] = row, product

    def _hold(self, size: int) -> None:
        if size > len(self._rows):
            room = min(self.most, max(8, 2 * size))
            for name in ("_rows", "_products"):
                old = getattr(self, name)
                new = np.empty((room, old.shape[1]))
                new[: self._size] = old[: self._size]
                setattr(self, name, new)
        self._size = size

    def coordinates(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates of a direction in those kept, and what they leave of it."""
        c = self.rows @ q
        rest = q - c @ self.rows
        more = self.rows @ rest
        return c + more, rest - more @ self.rows

    def take(self, a: FloatArray, row: FloatArray | None = None, product: FloatArray | None = None) -> None:
        """Let the direction with coordinates `a`, of length one, leave: the others are turned to be orthogonal to it.

        With `row` and `product` a further direction takes part, whose coordinate is the last of `a`. A reflection
        carries the direction into one of the rows, which is dropped.
        """
        k = int(np.argmax(np.abs(a)))  # the row that changes least of all
        u = a.copy()
        u[k] += np.copysign(1.0, a[k])
        factor = 2.0 / float(u @ u)
        last = self._size
        for kept, new in ((self.rows, row), (self.products, product)):
            along = u[:last] @ kept
            if new is not None:
                along += u[last] * new
            dger(-factor, along, u[:last], a=kept.T, overwrite_x=False, overwrite_y=False, overwrite_a=True)
            if k < last:
                kept[k] = kept[last - 1] if new is None else new - (factor * u[last]) * along
        if new is None:
            self._size -= 1

    def renew(self, rows: FloatArray, products: FloatArray, Qt: FloatArray, B: FloatArray) -> None:
        """Go to another model Q: keep what the old model and the directions beside it span outside the new one.

        Parameters
        ----------
        rows, products
            Of the old model.
        Qt, B
            Of the new one.
        """
        if not self.most:
            return
        all_rows, all_products = np.vstack([rows, self.rows]), np.vstack([products, self.products])
        M = all_rows @ Qt.T
        outside = all_rows - M @ Qt
        more = outside @ Qt.T
        outside -= more @ Qt
        values, vectors = np.linalg.eigh(outside @ outside.T)  # the squared sines of the angles with the new model
        large = np.flatnonzero(values > 0.5)[-self.most :]
        turn = (vectors[:, large] / np.sqrt(values[large])).T
        self._size = 0
        self._hold(len(large))
        self.rows[:] = turn @ outside
        self.products[:] = turn @ (all_products - (M + more) @ B)
        self._oldest = 0
