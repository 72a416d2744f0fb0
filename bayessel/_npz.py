"""Arrays of an .npz file, read block by block from the members of the archive."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bayessel._check import FloatArray


def npz_header(file: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays by name; no value is read."""
    shapes: dict[str, tuple[int, ...]] = {}
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.namelist():
                if member.endswith(".npy"):
                    with archive.open(member) as stream:
                        shapes[member.removesuffix(".npy")] = _npy_header(stream)[0]
    except (zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{file.name} cannot be read as .npz: {error}") from error
    return shapes


def _npy_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, column order or not, and type; leaves the stream at the first value."""
    version = np.lib.format.read_magic(stream)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = reader(stream)
    return shape, fortran, dtype


def npz_pairs(path: Path, names: Sequence[str], rows: int | None) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Row blocks of the named arrays side by side, and of the last of them alone."""
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(path))
        sources = [npz_rows(archive, name, rows, stack) for name in names]
        try:
            for parts in zip(*sources, strict=True):
                yield np.column_stack(parts[:-1]), parts[-1].ravel()
        except (zipfile.BadZipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path.name} cannot be read as .npz: {error}") from error


def npz_rows(archive: zipfile.ZipFile, name: str, rows: int | None, stack: ExitStack) -> Iterator[FloatArray]:
    """Row blocks of one array of the archive."""
    stream = stack.enter_context(archive.open(f"{name}.npy"))
    shape, fortran, dtype = _npy_header(stream)
    if dtype.kind not in "fiub":
        raise TypeError(f"{Path(str(archive.filename)).name}: array {name!r} is not numeric (its type is {dtype})")
    width = shape[1] if len(shape) == 2 else 1
    step = max(shape[0] if rows is None else rows, 1)
    if fortran and width > 1:
        # columns one after the other: one reader per column, each at its own place, so that rows can go side by side
        columns = [stream] + [stack.enter_context(archive.open(f"{name}.npy")) for _ in range(width - 1)]
        for k, column in enumerate(columns[1:], start=1):
            _npy_header(column)
            _skip(column, k * shape[0] * dtype.itemsize)
    else:
        columns = [stream]
    each = width // len(columns)
    for start in range(0, shape[0], step):
        n = min(step, shape[0] - start)
        parts = [np.frombuffer(column.read(n * each * dtype.itemsize), dtype=dtype) for column in columns]
        yield np.column_stack([part.reshape(n, each) for part in parts]).astype(np.float64)


def _skip(stream: Any, size: int) -> None:
    """Read past ``size`` bytes; seeking in a stored member loses its place in Python 3.13.0."""
    while size > 0:
        passed = len(stream.read(min(size, 1 << 16)))
        if not passed:
            raise EOFError("the file ends before its last column")
        size -= passed
