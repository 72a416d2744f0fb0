"""The candidate columns, wherever they are: stored in either precision, or made when they are looked at.

What the engine sees are columns of unit length. A column of zeros stays zero and is never chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bayessel._check import FOURTH_POWERS, FloatArray, IntArray, as_matrix, check_finite, check_magnitude
from bayessel._fingerprint import fingerprint
from bayessel._numerics import few_threads
from bayessel._row_weights import RowWeights

#: entries of a block that is worked on at a time
BLOCK = 4_000_000
#: entries that stay in the cache of a processor, and of rows that are made or converted and read once while they do
CACHED, READ = 131_072, 262_144
#: entries of a dictionary from which a pass over it may use several BLAS threads
SEVERAL_THREADS = 20_000_000
#: length, relative to the longest, below which a column counts as zero
VANISHING = 1e-70
#: entries up to which columns that are made when looked at are rather stored: in double, in single precision
STORE_DOUBLE, STORE_SINGLE = 32_000_000, 540_000_000
#: largest size of what is stored in single precision, and one over the smallest of the largest
SINGLE = 1e30


class ColumnSource(Protocol):
    """A dictionary whose columns are made when they are looked at."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def columns(self, indices: IntArray, /) -> FloatArray:
        """Columns of these numbers, (N, k)."""


class MadeColumns:
    """Columns that are made from others when they are looked at: `columns` maps their numbers to (N, k)."""

    def __init__(self, shape: tuple[int, int], columns: Callable[[Any], FloatArray]) -> None:
        self.shape, self.columns = shape, columns


class MultipliedRows:
    """Columns of another source, each row multiplied by a number."""

    def __init__(self, source: Any, root: FloatArray) -> None:
        self.shape, self._source, self._root = source.shape, source, root
        if hasattr(source, "rows"):
            self.rows = lambda some, which: root[some, None] * source.rows(some, which)

    def columns(self, which: IntArray) -> FloatArray:
        """Columns of these numbers, (N, k)."""
        return np.asarray(self._root[:, None] * self._source.columns(which))


class Columns:
    """Columns of unit length, looked at in blocks."""

    def __init__(self, source: Any, lengths: FloatArray | None = None, made_from: Any = None) -> None:
        self.source = source
        self.made_from = made_from
        self.shape: tuple[int, int] = (int(source.shape[0]), int(source.shape[1]))
        if lengths is not None:
            self.lengths = lengths

    @cached_property
    def squares(self) -> FloatArray:
        """Squared length of each column as it came, as far as it can be told in double precision."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self.weighted_squares(np.ones(self.shape[0]))

    def weighted_squares(self, weight: FloatArray) -> FloatArray:
        """Sum of the squares of each column as it came, rows (N,) weighted."""
        squares = np.zeros(self.shape[1])
        for rows, part, block in self.blocks():
            height = max(1, CACHED // block.shape[1])
            buffer, counted = np.empty((height, block.shape[1])), weight[rows]
            for start in range(0, len(block), height):
                some = block[start : start + height]
                square = np.multiply(some, some, out=buffer[: len(some)])
                squares[part] += counted[start : start + height] @ square
        return squares

    @cached_property
    def lengths(self) -> FloatArray:
        """Length of each column as it came."""
        squares = self.squares
        result = np.sqrt(squares)
        for j in np.flatnonzero(~((squares > 1e-200) & (squares < 1e200))):
            column = self.raw(np.array([j]))[:, 0]
            top = float(np.abs(column).max())
            result[j] = float(np.linalg.norm(column / top)) * top if top > 0.0 else 0.0
        # columns so much shorter than the others that squares of the ratio leave double precision count as zero
        result[result < VANISHING * result.max()] = 0.0
        return result

    @cached_property
    def inverse_lengths(self) -> FloatArray:
        """1 / length, 0 for a column of zeros."""
        positive = self.lengths > 0.0
        return np.where(positive, 1.0 / np.where(positive, self.lengths, 1.0), 0.0)

    @property
    def lengths_squared(self) -> FloatArray:
        """Squared length of each unit column: one, or zero for a column of zeros."""
        return (self.lengths > 0.0).astype(np.float64)

    @property
    def stored(self) -> bool:
        """Whether the columns lie in memory."""
        return isinstance(self.source, np.ndarray)

    def store(self) -> Columns:
        """Return the same columns in memory, if that is affordable."""
        n, p = self.shape
        if self.stored or n * p > STORE_SINGLE:
            return self
        kept = np.empty(self.shape, dtype=np.float64 if n * p <= STORE_DOUBLE else np.float32)
        largest = 0.0
        for rows, part, block in self.blocks():
            if kept.dtype == np.float32:
                largest = max(largest, float(block.max()), -float(block.min()))
            if largest < SINGLE:
                kept[rows, part] = block
        check_magnitude(np.array([largest]), "Phi", SINGLE)
        return Columns(kept, made_from=self.source)

    def multiplied(self, weights: RowWeights | None) -> Columns:
        """The same columns, their rows multiplied."""
        if weights is None:
            return self
        return Columns(weights.scale(self.source) if self.stored else MultipliedRows(self.source, weights.root))

    def check_scale(self, name: str) -> None:
        """Refuse columns whose fourth powers leave double precision."""
        check_magnitude(np.array([float(self.lengths.max()) / np.sqrt(self.shape[0])]), name, FOURTH_POWERS)

    def fingerprint(self, t: FloatArray) -> str:
        """Name of the dictionary and the target, that of `bayessel._fingerprint` where the columns are stored.

        A dictionary whose columns are made when they are looked at is named by its ``ingredients``, a tuple of arrays,
        or else by its shape and 16 of its columns.
        """
        source = self.source if self.made_from is None else self.made_from
        if isinstance(source, np.ndarray):
            return fingerprint(source, t)
        if hasattr(source, "ingredients"):
            return fingerprint(*source.ingredients, t)
        some = np.unique(np.linspace(0, self.shape[1] - 1, 16).astype(np.intp))
        return fingerprint(np.array(self.shape), np.asarray(source.columns(some)), t)

    def release(self) -> None:
        """Forget what `store` has stored; columns are made again when they are looked at."""
        if self.made_from is not None:
            self.source, self.made_from = self.made_from, None

    def raw(self, which: Any) -> FloatArray:
        """Columns `which` at their own length, (N, k)."""
        if isinstance(self.source, np.ndarray):
            return np.asarray(self.source[:, which], dtype=np.float64)
        index = np.arange(self.shape[1])[which] if isinstance(which, slice) else which
        block = np.asarray(self.source.columns(index), dtype=np.float64)
        check_finite(block, "a column of Phi")
        return block

    def blocks(self) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Parts of the dictionary, (rows, columns, entries), that together are all of it; whole rows where possible."""
        n, p = self.shape
        everything = slice(0, p)
        if isinstance(self.source, np.ndarray) and self.source.dtype == np.float64:
            yield slice(0, n), everything, self.source
        elif isinstance(self.source, np.ndarray) or hasattr(self.source, "rows"):
            height = max(1, READ // p)
            for start in range(0, n, height):
                rows = slice(start, min(start + height, n))
                some = self.source[rows] if self.stored else self.source.rows(rows, np.arange(p))
                block = np.asarray(some, dtype=np.float64)
                if not self.stored:
                    check_finite(block, "a column of Phi")
                yield rows, everything, block
        else:
            width = max(1, BLOCK // n)
            for start in range(0, p, width):
                part = slice(start, min(start + width, p))
                yield slice(0, n), part, self.raw(part)

    def take(self, which: IntArray) -> FloatArray:
        """Unit columns `which`, (N, k)."""
        return self.raw(which) * self.inverse_lengths[which]

    def constant(self) -> int | None:
        """Return the number of the last column that is the same in every row, if there is one."""
        n, p = self.shape
        if isinstance(self.source, np.ndarray):
            ends = self.source[[0, n // 2, n - 1]]
            same = np.flatnonzero((ends[0] == ends[1]) & (ends[0] == ends[2]) & (ends[0] != 0.0))[-3:]
        else:
            same = np.array([p - 1])
        for m in same[::-1]:
            column = self.raw(np.array([m]))
            if column[0] != 0.0 and (column == column[0]).all():
                return int(m)
        return None

    def gram(self, which: IntArray) -> FloatArray:
        """Inner products of unit columns `which` with each other, from blocks of rows."""
        n, k = self.shape[0], len(which)
        inverse = self.inverse_lengths[which]
        G = np.zeros((k, k))
        if not isinstance(self.source, np.ndarray):
            A = self.raw(which)
            G += A.T @ A
        elif k == self.shape[1] and self.source.dtype == np.float64:
            G += self.source.T @ self.source
        else:
            height = max(1, BLOCK // k)
            for start in range(0, n, height):
                A = np.asarray(self.source[start : start + height, which], dtype=np.float64)
                G += A.T @ A
        G *= inverse
        G *= inverse[:, None]
        return G

    def inner(self, rows: FloatArray) -> FloatArray:
        """Inner products of `rows` (k, N) with every column at its own length, (k, P): one pass over the dictionary."""
        result = np.zeros((len(rows), self.shape[1]))
        for some, part, block in self.blocks():
            result[:, part] += rows[:, some] @ block
        return result

    def cross(self, V: FloatArray) -> FloatArray:
        """Inner products of every unit column with the columns of `V`, (P, k)."""
        result = self.inner(V.T)
        result *= self.inverse_lengths
        return result.T

    def threads(self, least: int = SEVERAL_THREADS) -> AbstractContextManager[None]:
        """BLAS threads for passes over the dictionary: one where it has no more than `least` entries."""
        entries = self.shape[0] * self.shape[1]
        return few_threads(entries if entries > least else 0)


def as_columns(Phi: Any, name: str = "Phi") -> Columns:
    """Check a design, or an object with ``shape`` and ``columns(indices)``."""
    if isinstance(Phi, Columns):
        return Phi
    if not hasattr(Phi, "columns") or hasattr(Phi, "iloc"):
        if isinstance(Phi, np.ndarray) and Phi.dtype == np.float32 and Phi.ndim == 2 and Phi.size:
            check_finite(Phi, name)
            return Columns(Phi)
        design = as_matrix(Phi, name, finite=False)
        # one order of storage, so that rounding, and with it the path of a search, does not depend on it
        columns = Columns(np.ascontiguousarray(design) if design.size <= BLOCK else design)
        # their squares are needed anyway, and tell bad values: that saves three passes over a large dictionary
        largest = columns.squares.max()
        if not 1e-180 < largest < 1e180:
            check_finite(design, name)
            check_magnitude(design, name)
        return columns
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
