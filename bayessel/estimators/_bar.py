"""A progress bar for work that takes a while; never in pipes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: operations from which on a bar is worth its place: some seconds
LONG = 3e10


@contextmanager
def progress(
    wanted: bool, steps: int, operations: float, what: str = "predicting"
) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function (steps done, steps in all) that moves a bar on, or None where there is none."""
    if not wanted or operations < LONG:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    shown = console.is_terminal or console.is_jupyter
    with Progress(console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task(what, total=steps)
        yield lambda done, _: bar.update(task, completed=done)
