"""Blocks of rows of a table on disk, float64, finite and complete, and partitions of a table that are read apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayessel._check import FloatArray
from bayessel._csv_files import csv_frames
from bayessel._npz import npz_pairs
from bayessel._parquet_files import parquet_folder, parquet_frames, parquet_groups
from bayessel._table_columns import TableColumns, as_numbers, choose_columns, refuse_missing

if TYPE_CHECKING:
    import pandas as pd

#: row groups are put together up to this many blocks: work for some seconds, and few sums to carry
BLOCKS_TOGETHER = 4


def iter_blocks(
    path: str | Path, target: str, inputs: Sequence[str] | None = None, rows: int = 65536
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Go through a table in blocks of at most ``rows`` rows, in memory that does not grow with the file.

    The arguments are those of :func:`read_table`, and the path may be a folder of Parquet files; files and column names
    are checked at once, the values as they come. Yields pairs (X, y) of shapes (n, D) and (n,), in the order of the
    file. Parquet is read by row groups, so its memory is that of the largest group of the file.
    """
    partitions = table_partitions(path, target, inputs, rows)
    return (block for partition in partitions for block in partition.blocks())


def table_partitions(
    path: str | Path, target: str, inputs: Sequence[str] | None = None, rows: int = 65536
) -> list[TablePartition]:
    """Pieces of a table that can be read apart, in order; the arguments are those of `iter_blocks`.

    Row groups of Parquet files that follow each other are put together up to some blocks; any other file is one piece.
    """
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer):
        raise TypeError(f"rows must be a whole number of rows per block, got {rows!r}")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}")
    files = parquet_folder(Path(path)) if isinstance(path, str | Path) and Path(path).is_dir() else [path]
    chosen: list[TableColumns] = []
    for file in files:
        # the first file says which columns are meant
        chosen.append(choose_columns(file, target, chosen[0].inputs if chosen and inputs is None else inputs))
    return [piece for columns in chosen for piece in _pieces(columns, int(rows))]


@dataclass(frozen=True)
class TablePartition:
    """Rows of a file that are read when they are wanted, by whichever process.

    Attributes
    ----------
    key : str
        Names it among the others.
    columns, rows
        Which columns, and how many rows at most in a block.
    groups : tuple of int, optional
        Row groups of a Parquet file; None: the whole file.
    first : int
        Number of its first row in the file.
    """

    key: str
    columns: TableColumns
    rows: int
    groups: tuple[int, ...] | None = None
    first: int = 1

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Inputs and targets, block by block."""
        return _blocks(self.columns, self.rows, self.groups, self.first)


def _pieces(columns: TableColumns, rows: int) -> Iterator[TablePartition]:
    """Partitions of one file: row groups up to the size of some blocks."""
    if columns.form != ".parquet":
        yield TablePartition(str(columns.path), columns, rows)
        return
    sizes = parquet_groups(columns.path)
    if not sum(sizes):
        raise ValueError(f"{columns.path.name} has column names but no rows")
    first, groups, held = 1, list[int](), 0
    for number, size in enumerate(sizes):
        groups, held = [*groups, number], held + size
        if held >= BLOCKS_TOGETHER * rows or number == len(sizes) - 1:
            yield TablePartition(f"{columns.path}:{groups[0]}-{number}", columns, rows, tuple(groups), first)
            first, groups, held = first + held, [], 0


def _blocks(
    columns: TableColumns, rows: int, groups: tuple[int, ...] | None, start: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Blocks of the chosen columns, each checked; the first row is called `start`."""
    wanted = [*columns.inputs, columns.target]
    if columns.form == ".npz":
        pairs = npz_pairs(columns.path, wanted, rows)
    elif columns.form == ".csv":
        pairs = _frame_pairs(columns, csv_frames(columns.path, wanted, rows), start)
    else:
        pairs = _frame_pairs(columns, parquet_frames(columns.path, wanted, rows, groups), start)
    first = start
    for X, y in pairs:
        refuse_missing(columns, X, y, first)
        first += len(y)
        if len(y):
            yield X, y
    if first == start:
        raise ValueError(f"{columns.path.name} has column names but no rows")


def _frame_pairs(
    columns: TableColumns, frames: Iterator[pd.DataFrame], first: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    for frame in frames:
        values = as_numbers(columns, frame, first)
        first += len(frame)
        yield np.ascontiguousarray(values[:, :-1]), np.ascontiguousarray(values[:, -1])
