"""Partitions of rows: pieces of a source of blocks that can be read apart, by other processes too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._table_blocks import table_partitions

#: rows of a design (or inputs of a dictionary) and their targets
type Block = tuple[npt.ArrayLike, npt.ArrayLike]
type Blocks = Iterable[Block]


class RowPartition(Protocol):
    """Rows that can be read as often as they are wanted, wherever the partition is sent."""

    @property
    def key(self) -> str:
        """Name among the partitions of a source."""

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Pairs of inputs and targets."""


@dataclass(frozen=True)
class BlockSource:
    """A source of blocks as it was given: partitions, or a function that starts a pass over all.

    Attributes
    ----------
    partitions : list of RowPartition
        Two or more that can be read apart; empty: there is one pass, in this process.
    start : callable
        Begins a pass over all blocks.
    again : bool
        Whether it can be begun twice.
    divisible : bool
        Whether others could read its rows, though it may be so small that it is one partition.
    """

    partitions: Sequence[RowPartition]
    start: Callable[[], Iterator[Block]]
    again: bool
    divisible: bool = False


def block_source(
    source: str | os.PathLike[str] | Blocks | Callable[[], Blocks] | object,
    target: str | None,
    inputs: Sequence[str] | None,
    rows: int,
) -> BlockSource:
    """What was given as the rows of a stream, its names checked."""
    if isinstance(source, str | os.PathLike):
        if target is None:
            raise ValueError("name the target column of the file: target='...'")
        return _apart(table_partitions(os.fspath(source), target, inputs, rows))
    if hasattr(source, "to_delayed"):
        return _apart(_of_frame(cast("_DaskFrame", source), target, inputs))
    if target is not None:
        raise ValueError("target names a column of a file, but the source is not a path: leave target out")
    if isinstance(source, tuple) and len(source) == 2 and all(hasattr(part, "to_delayed") for part in source):
        return _apart(_of_arrays(*source))
    if callable(source):
        return BlockSource((), lambda: _started(source()), True)
    if not isinstance(source, Iterable):
        raise TypeError(
            "source must be a path, Dask arrays (X, y), an iterable of (Phi, t) blocks or a callable returning one, "
            f"got {type(source).__name__}"
        )
    return BlockSource((), lambda: iter(source), not isinstance(source, Iterator))


def _apart(partitions: Sequence[RowPartition]) -> BlockSource:
    several = partitions if len(partitions) > 1 else ()
    return BlockSource(several, lambda: (block for one in partitions for block in one.blocks()), True, True)


def _started(blocks: object) -> Iterator[Block]:
    if not isinstance(blocks, Iterable):
        raise TypeError(f"the source must return an iterable of (Phi, t) blocks, got {type(blocks).__name__}")
    return iter(blocks)


# Dask


class _Delayed(Protocol):
    """A computation of Dask that has not been done."""

    def compute(self, *, scheduler: str) -> npt.ArrayLike: ...


class _DaskArray(Protocol):
    """What is used of Dask's arrays, which are never imported here."""

    shape: tuple[float, ...]
    ndim: int
    numblocks: tuple[int, ...]
    chunks: tuple[tuple[float, ...], ...]
    blocks: Sequence[_DaskArray]

    def rechunk(self, chunks: dict[int, object]) -> _DaskArray: ...
    def to_delayed(self) -> npt.NDArray[np.object_]: ...


class _DaskFrame(Protocol):
    """What is used of Dask's data frames."""

    columns: Sequence[str]
    npartitions: int
    partitions: Sequence[_DaskFrame]

    def to_delayed(self) -> list[_Delayed]: ...
    def __getitem__(self, names: list[str]) -> _DaskFrame: ...


@dataclass(frozen=True)
class DaskPartition:
    """One chunk of rows of two Dask arrays, or one partition of a Dask data frame, computed where it is read.

    Attributes
    ----------
    key : str
        Its number.
    inputs, target : Delayed
        They need the tasks of these rows alone, so that little is sent. Without a target its column is the last of the
        inputs.
    """

    key: str
    inputs: _Delayed
    target: _Delayed | None

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """The chunk, as one block."""
        X = np.asarray(self.inputs.compute(scheduler="synchronous"), dtype=float)
        if self.target is None:
            yield np.ascontiguousarray(X[:, :-1]), np.ascontiguousarray(X[:, -1])
        else:
            yield X, np.asarray(self.target.compute(scheduler="synchronous"), dtype=float).reshape(-1)


def _of_arrays(X: _DaskArray, y: _DaskArray) -> list[DaskPartition]:
    """Chunks of rows of two arrays; those of the target follow those of the inputs."""
    if X.ndim != 2 or y.ndim not in (1, 2) or (y.ndim == 2 and y.shape[1] != 1):
        raise ValueError(f"Dask arrays must be X (rows, columns) and y (rows,), got {X.shape} and {y.shape}")
    whole: dict[int, object] = {1: -1}
    X = X.rechunk(whole) if X.numblocks[1] > 1 else X
    known = not np.isnan([*X.chunks[0], *y.chunks[0]]).any()
    if known and X.shape[0] != y.shape[0]:
        raise ValueError(f"Dask arrays must have equally many rows, got {X.shape[0]:g} and {y.shape[0]:g}")
    if known and X.chunks[0] != y.chunks[0]:
        y = y.rechunk({0: X.chunks[0]})
    if X.numblocks[0] != y.numblocks[0]:
        raise ValueError(
            f"Dask arrays of unknown length must have the same chunks of rows, got {X.numblocks[0]} and "
            f"{y.numblocks[0]} of them: call compute_chunk_sizes() on both"
        )
    return [
        DaskPartition(f"chunk {k}", X.blocks[k].to_delayed().ravel()[0], y.blocks[k].to_delayed().ravel()[0])
        for k in range(X.numblocks[0])
    ]


def _of_frame(frame: _DaskFrame, target: str | None, inputs: Sequence[str] | None) -> list[DaskPartition]:
    """Partitions of a data frame."""
    if not hasattr(frame, "columns"):
        raise TypeError("a Dask array must come with its target, as the pair (X, y)")
    names = [str(name) for name in frame.columns]
    if target is None:
        raise ValueError(f"name the target column of the data frame: target='...' (it has: {', '.join(names[:12])})")
    wanted = [name for name in names if name != target] if inputs is None else list(inputs)
    if not wanted or target in wanted or not {target, *wanted} <= set(names):
        raise ValueError(
            f"the data frame has the columns {', '.join(names[:12])}; the target must be one of them and the inputs "
            f"others, got target={target!r}, inputs={inputs!r}"
        )
    chosen = frame[[*wanted, target]]
    return [
        DaskPartition(f"partition {k}", chosen.partitions[k].to_delayed()[0], None) for k in range(chosen.npartitions)
    ]
