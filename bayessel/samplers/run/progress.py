"""A progress bar for people: nothing in pipes, nothing when not wanted."""

from __future__ import annotations

from typing import Any

from bayessel.samplers.run.kernel import Block


class Progress:
    """One bar over all chains: draws made, divergences seen.

    Make it after worker processes have been started: it has a thread.
    """

    def __init__(self, wanted: bool, chains: int, tune: int, total: int, done: list[int]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        shown = wanted and (console.is_terminal or console.is_jupyter)
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        self._bar: Any = Bar(*columns, console=console, transient=True, disable=not shown)
        self._tune, self._total, self._done, self._diverging = tune, total, list(done), 0
        self._task = self._bar.add_task("sampling", total=chains * total, completed=sum(done))

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, block: Block) -> None:
        """Move on by a block."""
        self._done[block.chain] = block.after.done
        late = max(0, self._tune - block.start)
        if "diverging" in block.stats:
            self._diverging += int(block.stats["diverging"][late:].sum())
        least = min(self._done)
        what = "tuning" if least < self._tune else "sampling"
        text = f"{what} {len(self._done)} chains, {least} of {self._total} draws"
        if self._diverging:
            text += f", {self._diverging} divergences"
        self._bar.update(self._task, completed=sum(self._done), description=text)
