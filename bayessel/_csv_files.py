"""CSV files through pandas: names as they are written, frames of rows, and every trouble as one kind of error."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def csv_header(file: Path) -> dict[str, tuple[int, ...]]:
    """Names of the columns, each once, as keys."""
    names = _csv_names(file)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"{file} has more than one column called {', '.join(map(repr, twice))}: rename or drop all but one"
        )
    return {name: () for name in names}


def _csv_names(file: Path) -> list[str]:
    """Names as they stand in the first line, blanks around them aside; pandas names the columns without one."""
    import pandas as pd

    with _csv_errors(file):
        named = pd.read_csv(file, nrows=0, index_col=False, skipinitialspace=True).columns
        # read as a header duplicates would be renamed, so the line is read as values
        written = pd.read_csv(
            file, nrows=1, header=None, index_col=False, dtype=str, keep_default_na=False, skipinitialspace=True
        ).iloc[0]
    return [str(text).strip() or str(name) for text, name in zip(written, named, strict=True)]


def csv_frames(path: Path, wanted: list[str], rows: int | None, text: Sequence[str] = ()) -> Iterator[pd.DataFrame]:
    """Frames of so many rows, or one of all, with the wanted columns in order; those in `text` are not parsed."""
    import pandas as pd

    names = _csv_names(path)
    with _csv_errors(path):
        called = pd.read_csv(path, nrows=0, index_col=False, skipinitialspace=True).columns
    types = {name: str for name, own in zip(called, names, strict=True) if own in text}
    # every column is parsed, also those not wanted, and index_col=False: otherwise pandas drops the surplus of a line
    # with too many values, or shifts its columns, without a word
    with _csv_errors(path):
        reader = pd.read_csv(path, index_col=False, skipinitialspace=True, iterator=True, chunksize=rows, dtype=types)
    with reader:
        while True:
            with _csv_errors(path):
                try:
                    frame = reader.read() if rows is None else reader.get_chunk()
                except StopIteration:
                    return
            frame.columns = pd.Index(names)
            yield frame[wanted]
            if rows is None:
                return


@contextmanager
def _csv_errors(file: Path) -> Iterator[None]:
    """Turn everything that can go wrong in a CSV file, warnings of lost values included, into one kind of error."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except pd.errors.ParserWarning:
        raise ValueError(f"{file.name} cannot be read as CSV: its lines have more values than names") from None
    except pd.errors.EmptyDataError:
        raise ValueError(f"{file.name} is empty: a line of column names is needed") from None
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{file.name} cannot be read as CSV: {str(error).strip()}") from error
