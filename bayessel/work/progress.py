"""The progress bar: one line on a terminal or in a notebook that stays when the work is done; nothing in pipes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from math import inf
from time import monotonic
from typing import Any, Self

#: operations from which on a bar is worth its place: some seconds
LONG = 3e10
#: seconds between two versions of a notebook's line
_BETWEEN_LINES = 0.25


class Progress:
    """Where a piece of work stands: what it is, how many of how many, the time it took and the time it will take.

    Make it after worker processes have been forked: it has a thread.

    Parameters
    ----------
    wanted : bool
        False shows nothing anywhere.
    what : str
        The work, shown before the bar.
    total : int, optional
        Steps in all; None where nobody knows.
    done : int
        Steps that were done before.
    budget : float, optional
        Seconds after which the work ends in any case: the bar is full when they are over or when all steps are done,
        whichever comes first, and so is the time that is left.
    after : float
        Seconds of work before anything is shown.
    estimate : bool
        Show the time to the end; False where the total moves on with the work.
    """

    def __init__(
        self,
        wanted: bool,
        what: str,
        total: int | None = None,
        *,
        done: int = 0,
        budget: float | None = None,
        after: float = 0.0,
        estimate: bool = True,
    ) -> None:
        self._estimate = estimate
        self.total, self.done = total, done
        self._wanted, self._what, self._budget, self._after = wanted, what, budget, after
        self._began = monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._wanted and self._after <= 0.0:
            self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def advance(self, said: str | None = None) -> None:
        """One more step is done; `said` replaces what is shown before the bar."""
        self.update(self.done + 1, said)

    def update(self, done: int, said: str | None = None, total: int | None = None) -> None:
        """So many steps are done, of `total`."""
        self.done = done
        self.total = self.total if total is None else total
        self._what = self._what if said is None else said
        if self._bar is None and self._wanted and monotonic() - self._began >= self._after:
            self._begin()
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=self.total, description=self._what)

    def expect(self, more: int) -> None:
        """There are so many more steps than was known."""
        self.update(self.done, total=(self.total or 0) + more)

    def _begin(self) -> None:
        from rich import progress

        console, shown = _console()
        if console.is_jupyter:
            self._bar = self._task = NotebookLine(self._budget, self._estimate)
            self._bar.update(self._task, self.done, self.total, self._what)
            return
        self._bar = progress.Progress(*_columns(self._budget, self._estimate), console=console, disable=not shown)
        self._task = self._bar.add_task(self._what, total=self.total, completed=self.done)
        self._bar.start()


class NotebookLine:
    """One line below a notebook's cell, replaced as the work goes on, the last one staying: no widgets, no thread.

    Parameters
    ----------
    budget, estimate
        As of `Progress`.
    """

    def __init__(self, budget: float | None, estimate: bool) -> None:
        self._budget, self._estimate = budget, estimate
        self._began, self._shown = monotonic(), -inf
        self._handle: Any = None
        self._now: tuple[float, float | None, str] = (0.0, None, "")

    def update(self, _: object, completed: float, total: float | None, description: str) -> None:
        """Replace the line, not more often than a person reads."""
        self._now = completed, total, description
        if monotonic() - self._shown >= _BETWEEN_LINES:
            self._show(over=False)

    def stop(self) -> None:
        """Leave the last line."""
        self._show(over=True)

    def text(self, over: bool) -> str:
        """The line as it is now."""
        done, total, what = self._now
        elapsed = monotonic() - self._began
        share = 1.0 if over else share_done(done, total, elapsed, self._budget)
        bar = "" if share is None else "█" * int(20 * share) + "░" * (20 - int(20 * share))
        count = f"{done:g}" if total is None else f"{done:g} of {total:g}"
        by_steps = elapsed * (total - done) / done if total and done else None
        left = seconds_left(by_steps, elapsed, self._budget) if self._estimate and not over else None
        parts = (what, bar, count, str(timedelta(seconds=int(elapsed))), "" if left is None else f"{left:.0f} s left")
        return "  ".join(part for part in parts if part)

    def _show(self, over: bool) -> None:
        from html import escape

        from IPython import display as notebook

        display: Any = notebook.display
        text = self.text(over)
        bundle = {"text/plain": text, "text/html": f"<pre style='margin:0'>{escape(text)}</pre>"}
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
        self._shown = monotonic()


def tell(wanted: bool, text: str) -> None:
    """Say something at the end of a piece of work, where a bar would be shown: on a terminal or in a notebook."""
    if wanted:
        console, shown = _console()
        if shown:
            console.print(text, markup=False, highlight=False)


def _console() -> tuple[Any, bool]:
    """Where bars are drawn, and whether anybody sees them there."""
    from rich.console import Console

    console = Console(stderr=True)
    return console, console.is_terminal or console.is_jupyter


@contextmanager
def progress_of(
    wanted: bool, steps: int, operations: float, what: str = "predicting"
) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function (steps done, steps in all) that moves a bar on, or None where the work is short."""
    if not wanted or operations < LONG:
        yield None
        return
    with Progress(True, what, steps) as bar:
        yield lambda done, total: bar.update(done, total=total)


def _columns(budget: float | None, estimate: bool) -> tuple[Any, ...]:
    from rich.progress import ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    class ShareColumn(ProgressColumn):
        """The part of the steps that is done, or of the budget that is spent, whichever is more."""

        def render(self, task: Any) -> ProgressBar:
            share = share_done(task.completed, task.total, task.elapsed, budget)
            return ProgressBar(1.0, share or 0.0, width=40, pulse=share is None, animation_time=task.get_time())

    class CountColumn(ProgressColumn):
        """Steps done, of all."""

        def render(self, task: Any) -> Text:
            return Text(f"{task.completed:g}" if task.total is None else f"{task.completed:g} of {task.total:g}")

    class LeftColumn(ProgressColumn):
        """Seconds to the end."""

        def render(self, task: Any) -> Text:
            left = seconds_left(task.time_remaining, task.elapsed, budget)
            return Text("" if left is None or task.finished else f"{timedelta(seconds=int(left))} left")

    columns = TextColumn("{task.description}"), ShareColumn(), CountColumn(), TimeElapsedColumn()
    return (*columns, LeftColumn()) if estimate else columns


def share_done(done: float, total: float | None, elapsed: float | None, budget: float | None) -> float | None:
    """Part of the work that is over, between 0 and 1; None where nobody knows."""
    shares = [done / total] if total else [1.0] if total == 0 else []
    if budget is not None:
        shares.append((elapsed or 0.0) / budget)
    return min(1.0, max(shares)) if shares else None


def seconds_left(by_steps: float | None, elapsed: float | None, budget: float | None) -> float | None:
    """Seconds until the steps are done or the budget is over, whichever comes first; None where nobody knows."""
    known = [] if by_steps is None else [by_steps]
    if budget is not None:
        known.append(max(0.0, budget - (elapsed or 0.0)))
    return min(known) if known else None
