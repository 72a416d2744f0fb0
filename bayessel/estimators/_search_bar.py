"""A bar for a search that takes a while: how far it has come to the size at which it gives up."""

from __future__ import annotations

import time
from typing import Any, Self

from bayessel.linear.selection import SelectionSearch

#: seconds without a bar
QUIET = 2.0


class SearchBar:
    """Callback of a search; a terminal shows it after some seconds, a pipe never does."""

    def __init__(self, wanted: bool) -> None:
        self._wanted, self._start = wanted, time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, search: SelectionSearch) -> None:
        """Show where the search stands."""
        if self._bar is None:
            if not self._wanted or time.monotonic() - self._start < QUIET:
                return
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            console = Console(stderr=True)
            shown = console.is_terminal or console.is_jupyter
            # no time to go: the size to reach moves on with every better model
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=console, transient=True, disable=not shown)
            self._task = self._bar.add_task("searching")
            self._bar.start()
        said = f"searching: {search.size} functions, the best model has {search.best_size}"
        self._bar.update(self._task, description=said, completed=search.size, total=search.largest)
