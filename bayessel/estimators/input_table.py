"""Tables to numbers, a column each: categories become their numbers, by the type of the column.

Columns of numbers, of True and False, of text and of pandas' categories are taken; what a column holds decides, and
what can be meant in two ways is refused with both remedies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray

if TYPE_CHECKING:
    import pandas as pd

#: so many categories are taken of however few rows; of more rows up to half as many categories as rows, and never more
#: than the second number, for each is a column, with a width of its own in some models
FEW_LEVELS, MOST_LEVELS = 10, 500
#: values that a message lists
SHOWN = 8
#: what pandas calls columns of objects that are numbers, and of dates and times
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")
_DATES = ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period")


@dataclass(frozen=True)
class Levels:
    """The categories of a column: their values, and whether their order means something."""

    values: tuple[Any, ...]
    ordered: bool = False


def as_table(X: Any) -> Any:
    """A pandas data frame of frames, of series (a single input) and of tables that turn into one; else an array."""
    if hasattr(X, "to_pandas") and hasattr(X, "columns"):
        X = X.to_pandas()
    if not is_table(X):
        return _unmasked(X)
    table = X.to_frame() if X.ndim == 1 else X
    if not table.shape[1]:
        raise ValueError(f"Found a table with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required.")
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()].unique().tolist()
        raise ValueError(f"X has more than one column called {', '.join(map(repr, twice))}: rename or drop all but one")
    return table


def _unmasked(values: Any) -> Any:
    """NaN for what is masked: checks that follow would use what lies below the mask."""
    return values.astype(np.float64).filled(np.nan) if np.ma.is_masked(values) else values


def is_table(X: Any) -> bool:
    """Whether X is of pandas: a data frame, or a series."""
    return hasattr(X, "iloc")


def labels_of(table: pd.DataFrame) -> tuple[str, ...]:
    """Names of the columns as text; of several levels joined by a slash."""
    return tuple("/".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in table.columns)


def positional_table(X: Any) -> Any:
    """A table of the rows of an array or list that holds numbers and text; X as it is if it has not two axes."""
    import pandas as pd

    try:
        array = np.asarray(X, dtype=object)
    except ValueError:  # rows of different lengths
        return X
    return pd.DataFrame(array) if array.ndim == 2 else X


def target_column(y: Any) -> Any:
    """A series of a frame with one column, and an array of a series of numbers some of which are missing; else y."""
    if not is_table(y):
        return _unmasked(y)
    import pandas as pd

    column = (y.iloc[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y).infer_objects()
    if column.ndim == 1 and column.isna().any() and pd.api.types.infer_dtype(column, skipna=True) in _NUMBERS:
        return _numbers(column, str(column.name))
    return column


def refuse_missing_labels(y: Any) -> None:
    """Say which labels are missing, and what to do."""
    import pandas as pd

    gaps = pd.isna(np.asarray(y, dtype=object))
    if np.any(gaps):
        raise ValueError(
            f"Input y contains NaN: {np.sum(gaps)} of {np.size(gaps)} labels are missing. Drop the rows whose label is "
            "missing: a fit learns nothing from them"
        )


def refuse_mixed_labels(y: Any) -> None:
    """Say that labels which are text and numbers have no order."""
    labels = np.asarray(y, dtype=object).ravel()
    text = [isinstance(label, str) for label in labels]
    if any(text) and not all(text):
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"y must be labels of one kind, got {', '.join(kinds)} together; make all of them text, y.astype(str)"
        )


def levels_of(table: pd.DataFrame, labels: Sequence[str]) -> tuple[Levels | None, ...]:
    """Categories of each column, by its type; None for numbers. Columns that are neither are refused."""
    return tuple(_levels(table.iloc[:, j], label) if len(table) else None for j, label in enumerate(labels))


def _levels(column: pd.Series, label: str) -> Levels | None:
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        found = Levels(tuple(dtype.categories.tolist()), bool(dtype.ordered))
    elif pd.api.types.is_numeric_dtype(dtype):
        return None
    else:
        kind = pd.api.types.infer_dtype(column, skipna=True)
        if kind in _NUMBERS:
            return None
        if kind in _DATES:
            raise ValueError(
                f"column {label!r} of X holds dates or times ({dtype}), which are no numbers: pass what matters of "
                "them, such as the days since the first, (t - t.min()).dt.days, or the month as a category"
            )
        if kind == "empty":
            raise ValueError(f"X has no value at all in column {label!r}: drop what is empty")
        if kind != "string":
            _refuse_mixture(column, label)
        found = Levels(tuple(sorted(column.dropna().unique())))
        _refuse_numbers_as_text(column, found, label)
    many = len(found.values)
    most = max(FEW_LEVELS, min(len(column) // 2, MOST_LEVELS))
    if not found.ordered and many > most:
        raise ValueError(
            f"column {label!r} of X has {many} categories in {len(column)} rows; at most {most} are taken, for each "
            "becomes a column: drop it if it is an identifier, else join rare categories, or drop unused ones with "
            ".cat.remove_unused_categories()"
        )
    return found


def _refuse_mixture(column: pd.Series, label: str) -> None:
    """Name two types that a column mixes, or the one that cannot be used."""
    first: dict[str, str] = {}
    for row, value in enumerate(column.tolist()):
        if not _is_gap(value):
            first.setdefault(type(value).__name__, f"{str(value)[:30]!r} in row {column.index[row]}")
    listed = ", ".join(f"{kind} ({example})" for kind, example in list(first.items())[:3])
    raise ValueError(
        f"column {label!r} of X holds {listed}; a column must be all numbers, all text or all True and False: correct "
        "it, or turn all of it into text with .astype(str) if it holds categories"
    )


def _is_gap(value: Any) -> bool:
    import pandas as pd

    found = pd.isna(value)
    return isinstance(found, bool | np.bool_) and bool(found)


def _refuse_numbers_as_text(column: pd.Series, levels: Levels, label: str) -> None:
    """Refuse text of which half the rows or more could be numbers: a stray word, or numbers that were read as text."""
    import pandas as pd

    looks = pd.to_numeric(pd.Series(levels.values, dtype=object), errors="coerce").notna()
    numbers = [value for value, number in zip(levels.values, looks, strict=True) if number]
    like = column.isin(numbers).to_numpy()
    words = column.notna().to_numpy() & ~like
    if not numbers or words.sum() > like.sum():
        return
    first = int(words.argmax())
    stray = f", but row {column.index[first]} has {column.iloc[first]!r}" if words.any() else ""
    raise ValueError(
        f"column {label!r} of X is text that looks like numbers ({numbers[0]!r}){stray}: make it numbers "
        "with pandas.to_numeric, or, if these are categories, say so with .astype('category'), in a file by other names"
    )


def coded(table: pd.DataFrame, levels: Sequence[Levels | None], labels: Sequence[str]) -> pd.DataFrame:
    """The table with categories replaced by their numbers, and objects by the numbers they are; else as it is.

    `labels` name the columns in messages.
    """
    import pandas as pd

    columns: dict[int, Any] = {}
    changed = False
    for j, level in enumerate(levels):
        column = table.iloc[:, j]
        if level is not None:
            columns[j] = _codes(column, level, labels[j])
        elif isinstance(column.dtype, pd.SparseDtype):
            columns[j] = np.asarray(column)
        elif pd.api.types.is_complex_dtype(column.dtype):
            raise ValueError(
                f"column {labels[j]!r} of X has complex numbers: give real and imaginary parts a column each"
            )
        elif pd.api.types.is_numeric_dtype(column.dtype):
            columns[j] = column.reset_index(drop=True)
            continue
        else:
            columns[j] = _numbers(column, labels[j])
        changed = True
    return pd.DataFrame(columns) if changed else table


def _codes(column: pd.Series, levels: Levels, label: str) -> FloatArray:
    """Numbers of the categories; NaN where they are missing."""
    gaps = column.isna().to_numpy()
    place = {value: k for k, value in enumerate(levels.values)}
    try:
        codes = np.array([place.get(value, -1) for value in column.tolist()], dtype=np.float64)
    except TypeError:
        codes = np.full(len(column), -1.0)
    unknown = (codes < 0) & ~gaps
    if unknown.any():
        row = int(unknown.argmax())
        values = list(map(repr, levels.values))
        known = ", ".join(values[:SHOWN]) + (", ..." if len(values) > SHOWN else "")
        raise ValueError(
            f"column {label!r} of X has the value {column.iloc[row]!r} (row {column.index[row]}), which is none of its "
            f"categories in training ({known}): correct it, or name it before the fit by "
            "frame[column].astype(pandas.CategoricalDtype([...]))"
        )
    return np.where(gaps, np.nan, codes)


def _numbers(column: pd.Series, label: str) -> FloatArray:
    """A column of objects that are numbers; NaN where they are missing."""
    found = np.full(len(column), np.nan)
    for row, value in enumerate(column.tolist()):
        if _is_gap(value):
            continue
        try:
            if isinstance(value, str | bytes):
                raise TypeError
            found[row] = float(value)
        except OverflowError as error:
            raise ValueError("X and y must be numbers up to 1e308, got integers beyond; rescale them") from error
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"column {label!r} of X has {value!r} (row {column.index[row]}), and must be numbers as in training: "
                "correct it"
            ) from error
    return found
