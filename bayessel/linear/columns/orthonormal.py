r"""An orthonormal basis of columns in use, :math:`\Phi = QR`, that grows by Gram-Schmidt and shrinks by rotations.

What was computed with Q, :math:`Q^TF` and :math:`Q^Tt`, grows, turns and shrinks with it. A column is orthogonalised
until a pass takes less than half of its length: twice is enough (Giraud, Langou, Rozložník and van den Eshof 2005).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sl

from bayessel._check import FloatArray

#: passes of Gram-Schmidt at most; what four of them shorten is nothing
PASSES = 4


def remainder(rows: FloatArray, A: FloatArray, coordinates: FloatArray | None = None) -> FloatArray:
    """What orthonormal rows (M, N) leave of the columns of A (N, k), orthogonalised twice.

    `coordinates` are ``rows @ A`` where they are known already, which saves a pass.
    """
    A = A - rows.T @ (rows @ A if coordinates is None else coordinates)
    A -= rows.T @ (rows @ A)
    return A


class OrthonormalBasis:
    """Q, R, and what was computed with Q.

    Parameters
    ----------
    n_rows
        Rows of a column N.
    n_candidates
        Columns of the dictionary F whose products with Q are kept; 0: none.
    targets
        Shape of what follows the rows of the target: () for one, (K,) for several.

    Attributes
    ----------
    size : int
        Columns in use M.
    rows, products, coordinates : (M, N), (M, P), (M, ...) arrays
        :math:`Q^T`, :math:`Q^TF` and :math:`Q^Tt`.
    """

    def __init__(self, n_rows: int, n_candidates: int = 0, targets: tuple[int, ...] = ()) -> None:
        self.size = 0
        self._rows, self._products = np.empty((0, n_rows)), np.empty((0, n_candidates))
        self._coordinates, self._R = np.empty((0, *targets)), np.empty((0, 0))

    @property
    def rows(self) -> FloatArray:
        """Orthonormal rows that span the columns in use."""
        return self._rows[: self.size]

    @property
    def products(self) -> FloatArray:
        """Their inner products with every candidate."""
        return self._products[: self.size]

    @property
    def coordinates(self) -> FloatArray:
        """Their inner products with the target."""
        return self._coordinates[: self.size]

    @property
    def R(self) -> FloatArray:
        """Upper triangular, (M, M)."""
        return self._R[: self.size, : self.size]

    def extended(
        self, v: FloatArray, clean: Callable[[FloatArray], FloatArray] | None = None, least: float = 0.0
    ) -> tuple[FloatArray, FloatArray, float]:
        """Direction q of a column outside the span, its coordinates inside, and its length along q.

        The length is 0 where no more than a share `least` of the column lies outside. `clean` is applied to what is
        left after every pass.
        """
        full = length = float(np.sqrt(v @ v))
        inside = np.zeros(self.size)
        for _ in range(PASSES if self.size or clean is not None else 0):
            along = self.rows @ v
            inside += along
            v = v - along @ self.rows
            if clean is not None:
                v = clean(v)
            before, length = length, float(np.sqrt(v @ v))
            if length > 0.5 * before or length <= least * full:
                break
        if length <= least * full:
            return v, inside, 0.0
        return v / length, inside, length

    def append(
        self,
        q: FloatArray,
        inside: FloatArray,
        length: float,
        along: float | FloatArray = 0.0,
        product: FloatArray | None = None,
    ) -> None:
        """Let a column join, as `extended` describes it; `along` is q^T t, `product` q^T F."""
        m = self.size
        self.reserve(m + 1)
        self._rows[m], self._coordinates[m] = q, along
        if product is not None:
            self._products[m] = product
        self._R[:m, m], self._R[m, :m], self._R[m, m] = inside, 0.0, length
        self.size += 1

    def set_product(self, product: FloatArray) -> None:
        """Products of the last direction with every candidate."""
        self._products[self.size - 1] = product

    def drop_last(self) -> None:
        """Forget the column that joined last."""
        self.size -= 1

    def without(self, position: int) -> tuple[FloatArray, FloatArray]:
        """The triangle without the column at `position`, and the rotation G of the rows from there on."""
        m = self.size
        G, top = sl.qr(self.R[position:, position + 1 :], check_finite=False)
        R = np.zeros((m - 1, m - 1))
        R[:, :position] = self.R[: m - 1, :position]
        R[:position, position:] = self.R[:position, position + 1 :]
        R[position:, position:] = top[: m - 1 - position]
        return R, G

    def remove(self, position: int, turned: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray, float]:
        """Let the column at `position` leave; the direction that leaves with it, its products and its coordinate.

        `turned` is what `without` returned.
        """
        m, (R, G) = self.size, turned
        for array in (self._rows, self._products, self._coordinates):
            array[position:m] = G.T @ array[position:m]
        self._R[: m - 1, : m - 1] = R
        self.size -= 1
        return self._rows[m - 1], self._products[m - 1], self._coordinates[m - 1]

    def copy(self) -> tuple[FloatArray, ...]:
        """Everything that changes, copied."""
        return tuple(array.copy() for array in (self.rows, self.products, self.coordinates, self.R))

    def restore(self, copied: tuple[FloatArray, ...]) -> None:
        """Go back to a copy."""
        m = len(copied[0])
        self.reserve(m)
        for array, old in zip((self._rows, self._products, self._coordinates), copied[:3], strict=True):
            array[:m] = old
        self._R[:m, :m] = copied[3]
        self.size = m

    def reserve(self, m: int) -> None:
        """Make room for m columns."""
        have = len(self._coordinates)
        if m <= have:
            return
        room = max(32, m + m // 2)
        for name in ("_rows", "_products", "_coordinates"):
            old = getattr(self, name)
            new = np.empty((room, *old.shape[1:]))
            new[:have] = old
            setattr(self, name, new)
        R = np.zeros((room, room))
        R[:have, :have] = self._R
        self._R = R
