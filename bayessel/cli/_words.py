"""What the commands share: words of the command line into numbers and folders, and the terminal they speak to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def comma_list(text: str | None) -> list[str] | None:
    """Words of a comma list."""
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def number_of(text: str, option: str, of: type) -> Any:
    """The number an option needs."""
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
