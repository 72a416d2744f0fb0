r"""What a model leaves of every candidate: the squared length outside its span, and inner products with targets there.

Of a candidate f two numbers are kept, :math:`c = |\tilde f|^2` and :math:`d = \tilde f^Tt`, where :math:`\tilde f` is
what the model does not span of it: with :math:`b = F^Tq` for a direction q that joins they fall by :math:`b^2` and
:math:`b\,q^Tt`, and rise by as much when it leaves, so a change costs one pass over the dictionary at most (Orr 1996,
section 7.1, without storing the orthogonalised candidates). A difference loses digits: where c has fallen far below
the `reference` it was last measured at, the candidate itself is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.linear.columns.orthonormal import remainder


class CandidateRemainders:
    """Squared lengths c (P,), inner products d (P,) or (P, K) with targets, and what c has been subtracted from."""

    def __init__(self, squares: FloatArray, inner: FloatArray) -> None:
        self.squares, self.inner = squares, inner
        self.reference = squares.copy()

    def absorb(self, product: FloatArray, along: Any) -> None:
        """A direction has joined the model: its products with the candidates, and with the target."""
        self.squares -= product * product
        np.maximum(self.squares, 0.0, out=self.squares)
        self.inner -= np.multiply.outer(product, along)

    def release(self, product: FloatArray, along: Any) -> None:
        """A direction has left the model."""
        self.squares += product * product
        self.inner += np.multiply.outer(product, along)
        np.maximum(self.reference, self.squares, out=self.reference)

    def below(self, share: float) -> Any:
        """Candidates whose squared length has fallen below a share of its reference."""
        return self.squares < share * self.reference

    def measure(
        self,
        which: IntArray,
        width: int,
        columns: Callable[[IntArray], FloatArray],
        rows: FloatArray,
        target: FloatArray,
        products: FloatArray | None = None,
    ) -> None:
        """Measure what the model leaves of these candidates instead of subtracting.

        Parameters
        ----------
        which, width
            Candidates, and how many at a time.
        columns
            Makes them, (N, k).
        rows, products
            Orthonormal rows (M, N) that span the model, and their inner products with the candidates where known.
        target
            The target outside the model, (N,) or (N, K).
        """
        for start in range(0, len(which), max(1, width)):
            part = which[start : start + max(1, width)]
            outside = remainder(rows, columns(part), None if products is None else products[:, part])
            self.squares[part] = np.einsum("ij,ij->j", outside, outside)
            self.inner[part] = outside.T @ target
        self.reference[which] = self.squares[which]
