"""Columns of a table on disk: the file and the names are checked before a value is read, values as they are read.

Whatever is wrong is refused with the column, the row and what to do about it. Rows are counted from 1, after the
header, as a person counts them.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayessel._check import FloatArray
from bayessel._csv_files import csv_header
from bayessel._npz import npz_header
from bayessel._parquet_files import parquet_header

if TYPE_CHECKING:
    import pandas as pd

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq", ".npz")
_SHOWN_ROWS = 5
#: what pandas calls a first column without a name: mostly the numbers of the rows, saved along
_ROW_NUMBERS = "Unnamed: 0"


class MissingFileError(FileNotFoundError, ValueError):
    """The table named by the user is not there; also a ValueError, as every other refusal of this module."""


class TableColumns:
    """Which columns of which file: checked names, before any value is read."""

    def __init__(self, path: Path, form: str, target: str, inputs: tuple[str, ...], names: tuple[str, ...]) -> None:
        self.path, self.form, self.target, self.inputs, self.names = path, form, target, inputs, names


def choose_columns(path: str | Path, target: str, inputs: Sequence[str] | None) -> TableColumns:
    """Check the file and the names against its header."""
    file = existing_file(path)
    form = table_form(file)
    if not isinstance(target, str):
        raise TypeError(f"target must be the name of a column, got {target!r}")
    if isinstance(inputs, str):
        raise TypeError(f"inputs must be a list of column names, got the single string {inputs!r}: write [{inputs!r}]")
    header = {".csv": csv_header, ".parquet": parquet_header, ".npz": npz_header}[form](file)
    refuse_unknown(file, target, list(header), "target")
    if form == ".npz":
        return _choose_arrays(file, header, target, inputs)
    others = [name for name in header if name != target]
    wanted = tuple(others[others[:1] == [_ROW_NUMBERS] :]) if inputs is None else tuple(inputs)
    _refuse_bad_inputs(file, wanted, list(header), target)
    return TableColumns(file, form, target, wanted, wanted)


def _choose_arrays(
    file: Path, header: dict[str, tuple[int, ...]], target: str, inputs: Sequence[str] | None
) -> TableColumns:
    """Choose arrays of an .npz file: 2-D arrays spread over several names."""
    shape = header[target]
    if len(shape) != 1 and not (len(shape) == 2 and shape[1] == 1):
        raise ValueError(f"{file}: the target array {target!r} must have one value per row, its shape is {shape}")
    if inputs is None:
        wanted = tuple(
            name for name, other in header.items() if name != target and 1 <= len(other) <= 2 and other[0] == shape[0]
        )
    else:
        wanted = tuple(inputs)
    _refuse_bad_inputs(file, wanted, list(header), target)
    names: list[str] = []
    for name in wanted:
        other = header[name]
        if not 1 <= len(other) <= 2 or other[0] != shape[0]:
            raise ValueError(
                f"{file}: array {name!r} has shape {other}, but the target {target!r} has {shape[0]} rows: "
                "inputs must be 1-D or 2-D with one row per target value"
            )
        names += [name] if len(other) == 1 else [f"{name}[{d}]" for d in range(other[1])]
    return TableColumns(file, ".npz", target, wanted, tuple(names))


def existing_file(path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        raise TypeError(f"path must be a string or a pathlib.Path, got {type(path).__name__}")
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{file} is a folder: give the table inside it")
    if not file.exists():
        beside = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        raise MissingFileError(f"there is no file {file}{_nearest(file.name, beside)}")
    return file


def table_form(file: Path) -> str:
    name = file.name.lower()
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            return {".csv.gz": ".csv", ".pq": ".parquet"}.get(suffix, suffix)
    raise ValueError(f"{file.name}: unknown kind of table; known endings are {', '.join(_SUFFIXES)}")


def _nearest(name: str, known: Sequence[str]) -> str:
    """Close spellings first, also when only the case differs; empty when nothing is close."""
    lower = {other.lower(): other for other in known}
    close = [lower[key] for key in difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)]
    return f"; did you mean {' or '.join(close)}?" if close else ""


def refuse_unknown(file: Path, name: str, header: Sequence[str], role: str) -> None:
    if name in header:
        return
    shown = ", ".join(header[:12]) + (", ..." if len(header) > 12 else "")
    hint = _nearest(name, header)
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        hint = "; the columns look separated by something else than commas: save the file with commas"
    raise ValueError(f"{file.name} has no {role} {name!r}{hint} (it has: {shown})")


def _refuse_bad_inputs(file: Path, inputs: tuple[str, ...], header: Sequence[str], target: str) -> None:
    for name in inputs:
        if not isinstance(name, str):
            raise TypeError(f"inputs must be column names, got {name!r}")
        refuse_unknown(file, name, header, "input")
    if not inputs:
        raise ValueError(f"{file.name} has no column beside the target {target!r} to serve as input")
    if target in inputs:
        raise ValueError(f"the target {target!r} is among the inputs: it would predict itself")
    twice = sorted({name for name in inputs if inputs.count(name) > 1})
    if twice:
        raise ValueError(f"inputs are named more than once: {', '.join(twice)}")


def refuse_missing(columns: TableColumns, X: FloatArray, y: FloatArray, first: int) -> None:
    """Name rows and columns of values that are missing or infinite."""
    values = np.column_stack([X, y])
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    names = (*columns.names, columns.target)
    where = np.flatnonzero(bad.any(axis=1)) + first
    which = [names[j] for j in np.flatnonzero(bad.any(axis=0))]
    shown = ", ".join(str(row) for row in where[:_SHOWN_ROWS]) + (", ..." if len(where) > _SHOWN_ROWS else "")
    what = "missing" if np.isnan(values[bad]).all() else "missing or infinite"
    raise ValueError(
        f"{columns.path.name}: {what} values in {len(where)} row(s) ({shown}; the first row after the header is 1), "
        f"column(s) {', '.join(which)}: drop these rows, fill them in, or leave the column out"
    )


def as_numbers(columns: TableColumns, frame: pd.DataFrame, first: int) -> FloatArray:
    """The columns as numbers, NaN where they are missing; other columns are refused."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    words = []
    for name in frame.columns:
        column = frame[name]
        # a column of missing values only has no type yet: the check for missing values names it
        if column.isna().all() or is_bool_dtype(column.dtype):
            continue
        if not is_numeric_dtype(column.dtype) or column.dtype.kind == "c":
            words.append((name, _example(column, first)))
    if words:
        listed = "; ".join(f"{name} ({example})" for name, example in words)
        raise TypeError(
            f"{columns.path.name}: not numeric: {listed}. Turn them into numbers, or name the inputs you want "
            "without them"
        )
    return np.column_stack([frame[name].to_numpy(np.float64, na_value=np.nan) for name in frame.columns])


def _example(column: pd.Series, first: int) -> str:
    """Give the first value that is not a number, so that one stray word in a long column can be found."""
    for k, value in enumerate(column):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"row {first + k} has {str(value)[:30]!r}"
    return f"stored as {column.dtype}"
