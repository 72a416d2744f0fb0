"""Tables on disk to arrays: CSV, Parquet and .npz, whole; they may hold text and, if wanted, missing values.

Every file is named by a path, the name of the target column and, if wanted, the names of the inputs.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._csv_files import csv_frames, csv_header
from bayessel._npz import npz_header, npz_pairs, npz_rows
from bayessel._parquet_files import parquet_frames, parquet_header
from bayessel._table_columns import (
    TableColumns,
    as_numbers,
    choose_columns,
    existing_file,
    refuse_missing,
    refuse_unknown,
    table_form,
)

if TYPE_CHECKING:
    import pandas as pd

DROPPED = "rows_dropped"  # attribute of a frame: how many


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

    columns = choose_columns(path, target, inputs)
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
        y = as_numbers(columns, whole[[columns.target]], 1)[:, 0]
    return _checked(columns, frame, y, y, gaps, drop)


def _checked(
    columns: TableColumns, frame: pd.DataFrame, known: FloatArray, y: npt.NDArray[Any], gaps: bool, drop: bool
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

    file = existing_file(path)
    form = table_form(file)
    names = tuple(like.columns)
    columns = TableColumns(file, form, names[-1], names[:-1], names[:-1])
    if form == ".npz":
        arrays = list(dict.fromkeys(name.partition("[")[0] if name.endswith("]") else name for name in names))
        header = npz_header(file)
        for name in arrays:
            refuse_unknown(file, name, list(header), "input")
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
        header = {".csv": csv_header, ".parquet": parquet_header}[form](file)
        for name in names:
            refuse_unknown(file, name, list(header), "input")
        frame = _whole_frame(columns, [name for name in names if not is_numeric_dtype(like[name].dtype)])
    return _checked_frame(columns, frame, np.zeros(len(frame)), gaps)


def _whole_frame(columns: TableColumns, text: Sequence[str] = ()) -> pd.DataFrame:
    """All rows of the chosen columns of a CSV or Parquet file; those in `text` are read as text."""
    import pandas as pd

    wanted = [*columns.inputs, columns.target]
    if columns.form == ".csv":
        frames = csv_frames(columns.path, wanted, None, text)
    else:
        frames = parquet_frames(columns.path, wanted, None)
    return pd.concat(list(frames), ignore_index=True)


def _checked_frame(columns: TableColumns, frame: pd.DataFrame, y: FloatArray, gaps: bool) -> pd.DataFrame:
    """The frame with its rows counted from 1; infinite values and, but for `gaps`, missing ones are refused."""
    import pandas as pd

    if not len(frame):
        raise ValueError(f"{columns.path.name} has column names but no rows")
    missing = frame.isna().to_numpy()
    infinite = np.column_stack([_infinite(frame[name]) for name in frame.columns])
    values = np.where(infinite, np.inf, np.where(missing & (not gaps), np.nan, 0.0))
    named = TableColumns(columns.path, columns.form, columns.target, columns.inputs, tuple(frame.columns))
    refuse_missing(named, values, y, 1)
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1))


def _infinite(column: pd.Series) -> npt.NDArray[np.bool_]:
    from pandas.api.types import is_numeric_dtype

    if not is_numeric_dtype(column.dtype) or column.dtype.kind not in "f":
        return np.zeros(len(column), dtype=bool)
    return np.isinf(column.to_numpy(np.float64, na_value=np.nan))
