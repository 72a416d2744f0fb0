"""What the commands share: words of the command line into numbers and folders, and the terminal they speak to."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAliasType, get_args

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    from rich.console import Console
    from rich.table import Table


#: rows from which on a column that counts them is no accident
_FEWEST_COUNTED = 5


def command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], **said: str) -> argparse.ArgumentParser:
    """A command, or a part of one, that `run` does; `said` is its help and description."""
    parser: argparse.ArgumentParser = commands.add_parser(name, allow_abbrev=False, **said)
    parser.set_defaults(run=run)
    return parser


def add_table(parser: argparse.ArgumentParser) -> None:
    """Options that choose a table and its columns."""
    parser.add_argument("file", metavar="FILE", help="table: .csv, .csv.gz, .parquet or .npz")
    parser.add_argument("--target", required=True, metavar="NAME", help="column to predict")
    parser.add_argument("--inputs", metavar="A,B", help="input columns; default: all others")
    parser.add_argument(
        "--missing",
        metavar="HOW",
        default="error",
        help="missing values of inputs: error (refused; the default) or indicator (filled by the median of the column, "
        "with a 0/1 column that says where)",
    )
    parser.add_argument(
        "--drop-missing",
        action="store_true",
        help="leave out rows with a missing value: of the target, and of an input unless --missing indicator fills it",
    )


def choices(names: TypeAliasType) -> tuple[str, ...]:
    """Words that an option may have: those of the library's type of the same argument."""
    return get_args(names.__value__)


def listed(names: TypeAliasType, said: Mapping[str, str]) -> str:
    """The same for a help text, each with what it is."""
    return ", ".join(f"{name} ({said[name]})" if name in said else name for name in choices(names))


def table_of(arguments: argparse.Namespace, console: Console) -> tuple[pd.DataFrame, npt.NDArray[Any]]:
    """The table that the options name, with a word on rows dropped and on columns that count the rows."""
    from bayessel._tables import DROPPED, read_table

    gaps = missing(arguments.missing) == "indicator"
    labels, drop = arguments.task == "classification", arguments.drop_missing
    inputs = comma_list(arguments.inputs)
    try:
        X, y = read_table(arguments.file, arguments.target, inputs, gaps=gaps, labels=labels, drop=drop)
    except ValueError as error:
        if "missing values in" not in str(error):
            raise
        raise ValueError(f"{error} (--drop-missing leaves rows out, --missing indicator fills inputs)") from error
    if gone := int(X.attrs.get(DROPPED, 0)):
        console.print(f"{gone} rows with a missing value are left out; {len(X)} are used.")
    if arguments.inputs is None and (names := counting_columns(X)):
        others = ",".join(str(name) for name in X.columns if name not in names)
        said = f"leave it out with --inputs {others}" if others else "there is nothing to predict from"
        text = f"Note: {', '.join(names)} only counts the rows (1, 2, 3, …) and is an input: if it is no time, {said}."
        console.print(text, style="yellow")
    return X, y


def counting_columns(X: pd.DataFrame) -> list[str]:
    """Columns that may be numbers of the rows and no measurement: whole numbers, each one more than the one before."""
    import numpy as np
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    found = []
    for name in X.columns:
        column = X[name]
        if len(column) < _FEWEST_COUNTED or is_bool_dtype(column.dtype) or not is_numeric_dtype(column.dtype):
            continue
        values = column.to_numpy(np.float64, na_value=np.nan)
        steps = np.diff(values) - np.diff(X.index.to_numpy(np.float64))
        if values[0] in (0.0, 1.0) and not steps.any():
            found.append(str(name))
    return found


def missing(text: str) -> str:
    """What --missing says."""
    from bayessel._check import one_of
    from bayessel.estimators.input_encoding import MISSING

    return one_of(text, "--missing", MISSING)


def comma_list(text: str | None) -> list[str] | None:
    """Words of a comma list."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def number_of(text: str | None, option: str, of: type) -> Any:
    """The number an option needs; None where it was not given."""
    if text is None:
        return None
    try:
        return of(text)
    except ValueError:
        raise ValueError(f"{option} needs a {'whole ' if of is int else ''}number, got {text!r}") from None


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """Make the report's folder before the work starts: a folder that cannot be written is better known now.

    Work that ends with an error leaves no folder behind that it made and did not fill.
    """
    path = Path(name)
    if path.exists() and not path.is_dir():
        raise ValueError(f"--out {name} is a file: give a folder for the report")
    made = [one for one in (path, *path.parents) if not one.exists()]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"--out {name}: the folder cannot be made ({error.strerror})") from error
        yield path
    except BaseException:
        for one in made:
            with suppress(OSError):
                one.rmdir()
        raise


def console() -> Console:
    """The terminal, or the pipe; text is shown as it is."""
    from rich.console import Console

    return Console(highlight=False, markup=False)


def table(columns: Iterable[str], left: Container[str]) -> Table:
    """A table without a frame; columns named in `left` are text, the others numbers."""
    from rich import box
    from rich.table import Table

    found = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for name in columns:
        found.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    return found


@contextmanager
def scheduler(address: str | None) -> Iterator[Any]:
    """A client of the Dask scheduler at an address; None without one."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("--scheduler needs dask[distributed]: pip install 'bayessel[cluster]'") from error
    with Client(address) as client:
        yield client
