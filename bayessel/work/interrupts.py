"""Ctrl-C as a request to end: counted by what runs units of work, kept within a block of any other long search."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class InterruptGuard:
    """Ends its block where Ctrl-C raises KeyboardInterrupt, and says so.

    Parameters
    ----------
    begun : callable, optional
        Returns something true once there is a result to keep; until then the exception goes on.

    Attributes
    ----------
    interrupted : bool
        Ctrl-C has ended the block.

    Examples
    --------
    >>> found = []
    >>> with InterruptGuard(lambda: found) as guard:
    ...     found.append(1)
    ...     raise KeyboardInterrupt
    >>> found, guard.interrupted
    ([1], True)
    """

    def __init__(self, begun: Callable[[], object] = lambda: True) -> None:
        self._begun, self.interrupted = begun, False

    def __enter__(self) -> InterruptGuard:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None or not issubclass(kind, KeyboardInterrupt) or not self._begun():
            return False
        self.interrupted = True
        return True


class InterruptCounter:
    """Counts Ctrl-C while entered, in the main thread; elsewhere, or where SIGINT is ignored, it does nothing.

    The third raises KeyboardInterrupt after all. Within `raising` every one raises, so that code of others ends as it
    would alone. Where one is entered within another, both count: what is around a run that was interrupted ends too.
    """

    def __init__(self) -> None:
        self.count = 0
        self._raises = False
        self._before: Any = None

    def __enter__(self) -> InterruptCounter:
        standing = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        if main and standing not in (None, signal.SIG_IGN):
            signal.signal(signal.SIGINT, self._handle)
            self._before = standing
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let Ctrl-C raise KeyboardInterrupt here."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def _note(self) -> None:
        self.count += 1
        around = getattr(self._before, "__self__", None)
        if isinstance(around, InterruptCounter):
            around._note()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._note()
        if self._raises or self.count > 2:
            raise KeyboardInterrupt
