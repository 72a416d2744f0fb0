"""The candidate columns, wherever they are: stored in either precision, or made when they are looked at.

What the engine sees are columns of unit length. A column of zeros stays zero and is never chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_matrix, check_finite
from bayessel.linear.sparse.state import IntArray

#: entries of a block of columns that is worked on at a time
BLOCK = 4_000_000


class Columns:
    """Columns of unit length, looked at in blocks."""

    def __init__(self, source: Any, lengths: FloatArray | None = None) -> None:
        self.source = source
        self.shape: tuple[int, int] = (int(source.shape[0]), int(source.shape[1]))
        if lengths is None:
            lengths = np.empty(self.shape[1])
            for part, block in self._raw_blocks():
                lengths[part] = _lengths(block)
        self.lengths = lengths
        self._inverse = np.where(self.lengths > 0.0, 1.0 / np.where(self.lengths > 0.0, self.lengths, 1.0), 0.0)
        self.lengths_squared = (self.lengths > 0.0).astype(np.float64)

    @property
    def stored(self) -> bool:
        """Whether the columns lie in memory."""
        return isinstance(self.source, np.ndarray)

    def _raw(self, which: Any) -> FloatArray:
        if isinstance(self.source, np.ndarray):
            return np.asarray(self.source[:, which], dtype=np.float64)
        index = np.arange(self.shape[1])[which] if isinstance(which, slice) else which
        return np.asarray(self.source.columns(index), dtype=np.float64)

    def _raw_blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        n, p = self.shape
        if isinstance(self.source, np.ndarray) and self.source.dtype == np.float64:
            yield slice(0, p), self.source
            return
        width = max(1, BLOCK // n)
        for start in range(0, p, width):
            part = slice(start, min(start + width, p))
            yield part, self._raw(part)

    def take(self, which: IntArray) -> FloatArray:
        """Unit columns `which`, (N, k)."""
        return self._raw(which) * self._inverse[which]

    def raw(self, which: IntArray) -> FloatArray:
        """Columns `which` at their own length, (N, k)."""
        return self._raw(which)

    def constant(self) -> int | None:
        """Return the number of the last column that is the same in every row, if there is one."""
        n, p = self.shape
        if isinstance(self.source, np.ndarray):
            ends = self.source[[0, n // 2, n - 1]]
            same = np.flatnonzero((ends[0] == ends[1]) & (ends[0] == ends[2]) & (self.lengths > 0.0))[-3:]
        else:
            same = np.array([p - 1])
        for m in same[::-1]:
            column = self._raw(np.array([m]))
            if (column == column[0]).all() and self.lengths[m] > 0.0:
                return int(m)
        return None

    def gram(self, which: IntArray) -> FloatArray:
        """Inner products of unit columns `which` with each other."""
        inverse = self._inverse[which]
        A = self.source if self.stored and len(which) == self.shape[1] else self._raw(which)
        A = np.asarray(A, dtype=np.float64)
        G = np.asarray(A.T @ A)
        G *= inverse
        G *= inverse[:, None]
        return G

    def cross(self, V: FloatArray) -> FloatArray:
        """Inner products of every unit column with the columns of `V`, (P, k)."""
        result = np.empty((self.shape[1], V.shape[1]))
        for part, block in self._raw_blocks():
            result[part] = block.T @ V
        result *= self._inverse[:, None]
        return result


def _lengths(block: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->j", block, block)
    safe = (squares > 1e-200) & (squares < 1e200)
    result = np.sqrt(squares)
    for j in np.flatnonzero(~safe):
        result[j] = np.linalg.norm(block[:, j] / top) * top if (top := np.abs(block[:, j]).max()) > 0.0 else 0.0
    return np.asarray(result)


def as_columns(Phi: Any, name: str = "Phi") -> Columns:
    """Check a design, or an object with ``shape`` and ``columns(indices)``, at the door."""
    if isinstance(Phi, Columns):
        return Phi
    if not hasattr(Phi, "columns") or hasattr(Phi, "iloc"):
        if isinstance(Phi, np.ndarray) and Phi.dtype == np.float32 and Phi.ndim == 2 and Phi.size:
            if not np.isfinite(Phi.sum(dtype=np.float64)):
                check_finite(np.asarray(Phi, dtype=np.float64), name)
            return Columns(Phi)
        return Columns(as_matrix(Phi, name))
    shape = getattr(Phi, "shape", None)
    if not (isinstance(shape, tuple) and len(shape) == 2 and min(shape) >= 1 and callable(Phi.columns)):
        raise TypeError(
            f"{name} must be a 2-D array, or an object with .shape == (N, P) and .columns(indices) -> (N, k); got "
            f"{type(Phi).__name__} with shape {shape!r}"
        )
    probe = np.asarray(Phi.columns(np.array([0])))
    if probe.shape != (shape[0], 1):
        raise ValueError(f"{name}.columns([0]) must return shape ({shape[0]}, 1), got {probe.shape}")
    return Columns(Phi)
