"""Tables on disk to arrays: CSV, Parquet and .npz, whole or block by block.

Every file is named by a path, the name of the target column and, if wanted, the names of the inputs. Blocks are always
float64, finite and complete; a whole table may hold text and, if wanted, missing values. Anything else is refused with
the column, the row and what to do about it. Rows are counted from 1, after the header, as a person counts them.
"""

from __future__ import annotations

import difflib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._csv_files import csv_frames, csv_header
from bayessel._npz import npz_header, npz_pairs, npz_rows

if TYPE_CHECKING:
    import pandas as pd

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq", ".npz")
_SHOWN_ROWS = 5
#: what pandas calls a first column without a name: mostly the numbers of the rows, saved along
_ROW_NUMBERS = "Unnamed: 0"
DROPPED = "rows_dropped"  # attribute of a frame: how many


class MissingFileError(FileNotFoundError, ValueError):
    """The table named by the user is not there; also a ValueError, as every other refusal of this module."""


def read_table(
    path: str | Path,
    target: str,
    inputs: Sequence[str] | None = None,
    *,
    gaps: bool = False,
    labels: bool = False,
    drop: bool = False,
) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """Read a whole table into memory.

    Parameters
    ----------
    path
        A ``.csv``, ``.csv.gz``, ``.parquet`` (``.pq``) or ``.npz`` file.
    target
        Name of the column (of the array, for ``.npz``) to be predicted; numbers.
    inputs
        Names of the input columns, in the order wanted. Default: every other column, but for a first one without a
        name: the numbers of the rows. In a ``.npz`` file a 2-D array ``x`` stands for the columns ``x[0]``, ``x[1]``,
        ...; by default all arrays with as many rows as the target.
    gaps
        Leave missing values of inputs as they are; otherwise they are refused.
    labels
        The target may be anything, such as text; otherwise it must be numbers.
    drop
        Leave out rows whose target is missing, and those with a missing input unless `gaps` keeps them; the index of X
        tells which are left.

    Returns
    -------
    X, y
        Inputs, N rows counted from 1 and D named columns of numbers, booleans, text or whatever a Parquet file holds;
        target (N,).
    """
    import pandas as pd

    columns = _choose(path, target, inputs)
    if columns.form == ".npz":
        pairs = list(npz_pairs(columns.path, (*columns.inputs, columns.target), None))
        X, y = np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])
        frame = pd.DataFrame(X, columns=list(columns.names))
    else:
        whole = _whole_frame(columns)
        frame = whole[list(columns.inputs)]
        if labels:
            seen = whole[columns.target]
            unseen = np.where(seen.isna().to_numpy(), np.nan, 0.0)
            return _checked(columns, frame, unseen, seen.to_numpy(), gaps, drop)
        y = _numbers(columns, whole[[columns.target]], 1)[:, 0]
    return _checked(columns, frame, y, y, gaps, drop)


def _checked(
    columns: _Columns, frame: pd.DataFrame, known: FloatArray, y: npt.NDArray[Any], gaps: bool, drop: bool
) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """Both without what may not be there; `known` is NaN where the target is missing."""
    if not drop:
        return _checked_frame(columns, frame, known, gaps), y
    kept = ~np.isnan(known) & (gaps | frame.notna().to_numpy().all(axis=1))
    if len(frame) and not kept.any():
        raise ValueError(f"{columns.path.name}: every row has a missing value; none is left when these are dropped")
    places = np.flatnonzero(kept)
    X = _checked_frame(columns, frame.iloc[places], known[places], gaps).set_axis(places + 1)
    X.attrs[DROPPED] = len(kept) - len(places)
    return X, y[places]


def read_inputs(path: str | Path, like: pd.DataFrame, *, gaps: bool = False) -> pd.DataFrame:
    """Read the columns of a table that are called as those of one that `read_table` returned; it needs no target.

    Columns that are text there are text here. In a ``.npz`` file ``x[0]``, ``x[1]``, ... are the columns of the array
    ``x``, all of them in order.
    """
    import pandas as pd
    from pandas.api.types import is_numeric_dtype

    file = _existing(path)
    form = _form(file)
    names = tuple(like.columns)
    columns = _Columns(file, form, names[-1], names[:-1], names[:-1])
    if form == ".npz":
        arrays = list(dict.fromkeys(name.partition("[")[0] if name.endswith("]") else name for name in names))
        header = npz_header(file)
        for name in arrays:
            _refuse_unknown(file, name, list(header), "input")
        shapes = {header[name][:1] for name in arrays}
        if len(shapes) != 1 or shapes == {()}:
            raise ValueError(f"{file.name}: the arrays {', '.join(arrays)} must have equally many rows")
        if shapes == {(0,)}:
            raise ValueError(f"{file.name} has arrays but no rows")
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(file))
            X = np.column_stack([next(npz_rows(archive, name, None, stack)) for name in arrays])
        if X.shape[1] != len(names):
            raise ValueError(f"{file.name} must have the columns {', '.join(names)}, it has {X.shape[1]}")
        frame = pd.DataFrame(X, columns=list(names))
    else:
        header = {".csv": csv_header, ".parquet": _parquet_header}[form](file)
        for name in names:
            _refuse_unknown(file, name, list(header), "input")
        frame = _whole_frame(columns, [name for name in names if not is_numeric_dtype(like[name].dtype)])
    return _checked_frame(columns, frame, np.zeros(len(frame)), gaps)


def _whole_frame(columns: _Columns, text: Sequence[str] = ()) -> pd.DataFrame:
    """All rows of the chosen columns of a CSV or Parquet file; those in `text` are read as text."""
    import pandas as pd

    wanted = [*columns.inputs, columns.target]
    if columns.form == ".csv":
        frames = csv_frames(columns.path, wanted, None, text)
    else:
        frames = _parquet_frames(columns.path, wanted, None)
    return pd.concat(list(frames), ignore_index=True)


def _checked_frame(columns: _Columns, frame: pd.DataFrame, y: FloatArray, gaps: bool) -> pd.DataFrame:
    """The frame with its rows counted from 1; infinite values and, but for `gaps`, missing ones are refused."""
    import pandas as pd

    if not len(frame):
        raise ValueError(f"{columns.path.name} has column names but no rows")
    missing = frame.isna().to_numpy()
    infinite = np.column_stack([_infinite(frame[name]) for name in frame.columns])
    values = np.where(infinite, np.inf, np.where(missing & (not gaps), np.nan, 0.0))
    named = _Columns(columns.path, columns.form, columns.target, columns.inputs, tuple(frame.columns))
    _refuse_missing(named, values, y, 1)
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1))


def _infinite(column: pd.Series) -> npt.NDArray[np.bool_]:
    from pandas.api.types import is_numeric_dtype

    if not is_numeric_dtype(column.dtype) or column.dtype.kind not in "f":
        return np.zeros(len(column), dtype=bool)
    return np.isinf(column.to_numpy(np.float64, na_value=np.nan))


def iter_blocks(
    path: str | Path, target: str, inputs: Sequence[str] | None = None, rows: int = 65536
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Go through a table in blocks of at most ``rows`` rows, in memory that does not grow with the file.

    The arguments are those of :func:`read_table`; the file and its column names are checked at once, the values as
    they come. Yields pairs (X, y) of shapes (n, D) and (n,), in the order of the file. Parquet is read by row groups,
    so its memory is that of the largest group of the file.
    """
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer):
        raise TypeError(f"rows must be a whole number of rows per block, got {rows!r}")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}")
    return _blocks(_choose(path, target, inputs), rows=int(rows))


class _Columns:
    """Which columns of which file: checked names, before any value is read."""

    def __init__(self, path: Path, form: str, target: str, inputs: tuple[str, ...], names: tuple[str, ...]) -> None:
        self.path, self.form, self.target, self.inputs, self.names = path, form, target, inputs, names


def _choose(path: str | Path, target: str, inputs: Sequence[str] | None) -> _Columns:
    """Check the file and the names against its header."""
    file = _existing(path)
    form = _form(file)
    if not isinstance(target, str):
        raise TypeError(f"target must be the name of a column, got {target!r}")
    if isinstance(inputs, str):
        raise TypeError(f"inputs must be a list of column names, got the single string {inputs!r}: write [{inputs!r}]")
    header = {".csv": csv_header, ".parquet": _parquet_header, ".npz": npz_header}[form](file)
    _refuse_unknown(file, target, list(header), "target")
    if form == ".npz":
        return _choose_arrays(file, header, target, inputs)
    others = [name for name in header if name != target]
    wanted = tuple(others[others[:1] == [_ROW_NUMBERS] :]) if inputs is None else tuple(inputs)
    _refuse_bad_inputs(file, wanted, list(header), target)
    return _Columns(file, form, target, wanted, wanted)


def _choose_arrays(
    file: Path, header: dict[str, tuple[int, ...]], target: str, inputs: Sequence[str] | None
) -> _Columns:
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
    return _Columns(file, ".npz", target, wanted, tuple(names))


def _existing(path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        raise TypeError(f"path must be a string or a pathlib.Path, got {type(path).__name__}")
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{file} is a folder: give the table inside it")
    if not file.exists():
        beside = [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []
        raise MissingFileError(f"there is no file {file}{_nearest(file.name, beside)}")
    return file


def _form(file: Path) -> str:
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


def _refuse_unknown(file: Path, name: str, header: Sequence[str], role: str) -> None:
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
        _refuse_unknown(file, name, header, "input")
    if not inputs:
        raise ValueError(f"{file.name} has no column beside the target {target!r} to serve as input")
    if target in inputs:
        raise ValueError(f"the target {target!r} is among the inputs: it would predict itself")
    twice = sorted({name for name in inputs if inputs.count(name) > 1})
    if twice:
        raise ValueError(f"inputs are named more than once: {', '.join(twice)}")


def _blocks(columns: _Columns, rows: int | None) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Blocks of the chosen columns, each checked; ``rows=None`` takes the file in one piece."""
    reader = {".csv": csv_frames, ".parquet": _parquet_frames}.get(columns.form)
    wanted = [*columns.inputs, columns.target]
    pairs = (
        npz_pairs(columns.path, wanted, rows)
        if reader is None
        else _frame_pairs(columns, reader(columns.path, wanted, rows))
    )
    first = 1
    for X, y in pairs:
        _refuse_missing(columns, X, y, first)
        first += len(y)
        if len(y):
            yield X, y
    if first == 1:
        raise ValueError(f"{columns.path.name} has column names but no rows")


def _refuse_missing(columns: _Columns, X: FloatArray, y: FloatArray, first: int) -> None:
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


# Parquet, through pyarrow


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ModuleNotFoundError("reading Parquet needs pyarrow: pip install 'bayessel[parquet]'") from None
    return pyarrow.parquet


def _open_parquet(file: Path) -> Any:
    parquet = _parquet()
    try:
        return parquet.ParquetFile(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"{file.name} cannot be read as Parquet: {error}") from error


def _parquet_header(file: Path) -> dict[str, tuple[int, ...]]:
    with _open_parquet(file) as table:
        return {str(name): () for name in table.schema_arrow.names if not str(name).startswith("__index_level_")}


def _parquet_frames(path: Path, wanted: list[str], rows: int | None) -> Iterator[pd.DataFrame]:
    with _open_parquet(path) as table:
        if rows is None:
            yield table.read(columns=wanted).to_pandas()[wanted]
            return
        for batch in table.iter_batches(batch_size=rows, columns=wanted):
            yield batch.to_pandas()[wanted]


def _frame_pairs(columns: _Columns, frames: Iterator[pd.DataFrame]) -> Iterator[tuple[FloatArray, FloatArray]]:
    first = 1
    for frame in frames:
        values = _numbers(columns, frame, first)
        first += len(frame)
        yield np.ascontiguousarray(values[:, :-1]), np.ascontiguousarray(values[:, -1])


def _numbers(columns: _Columns, frame: pd.DataFrame, first: int) -> FloatArray:
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
