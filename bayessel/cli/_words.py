"""What the commands share: words of the command line into numbers and folders, and the terminal they speak to."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


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
