"""Who does the units: this process, processes beside it, or the workers of a Dask cluster.

All do the same to a unit, and a unit knows its seed: the numbers depend neither on who does it nor on when.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
import uuid
from contextlib import suppress
from pickle import PicklingError
from typing import Any, Protocol

from bayessel.diagnostics.delve._unit import Outcome, Unit, perform

#: what `perform` needs
Work = tuple[Any, ...]
#: how often a unit is tried whose process ends by itself
_LIVES = 2
#: seconds between two looks at the size of a cluster
_LOOK = 5.0


class Crew(Protocol):
    """Takes units and gives outcomes back, in any order."""

    def room(self) -> int:
        """How many units it could take now."""
        ...

    def submit(self, unit: Unit, work: Work) -> None:
        """Take a unit."""
        ...

    def collect(self) -> list[tuple[Unit, Outcome]]:
        """Wait for a moment and return what is finished."""
        ...

    def close(self) -> None:
        """Drop what is not finished."""
        ...


class Alone:
    """The process itself, one unit at a time."""

    def __init__(self) -> None:
        self._mine: list[tuple[Unit, Work]] = []

    def room(self) -> int:
        """One, or none."""
        return 1 - len(self._mine)

    def submit(self, unit: Unit, work: Work) -> None:
        """Take a unit."""
        self._mine.append((unit, work))

    def collect(self) -> list[tuple[Unit, Outcome]]:
        """Do the unit."""
        unit, work = self._mine.pop()
        with _Heard() as heard:
            outcome = perform(*work)
        # some methods take Ctrl-C as the end of their fit and go on: that is no result
        if heard.interrupted or outcome.interrupted:
            raise KeyboardInterrupt
        return [(unit, outcome)]

    def close(self) -> None:
        """Nothing to do."""


class _Heard:
    """Notes Ctrl-C, whatever becomes of the exception."""

    def __init__(self) -> None:
        self.interrupted = False
        self._before: Any = None

    def __enter__(self) -> _Heard:
        def note(number: int, frame: Any) -> None:
            self.interrupted = True
            self._before(number, frame)

        with suppress(ValueError):  # signals belong to the main thread
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                signal.signal(signal.SIGINT, note)
                self._before = handler
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)


class Processes:
    """Processes on this machine, one unit each; one that ends by itself takes down nothing but its unit.

    A unit whose process ends is tried once more, and then a failure.
    """

    def __init__(self, jobs: int) -> None:
        self._slots: list[Any] = [None] * jobs
        self._idle = list(range(jobs))
        self._done: queue.SimpleQueue[tuple[Unit, int, Any]] = queue.SimpleQueue()
        self._works: dict[Unit, Work] = {}
        self._deaths: dict[Unit, int] = {}

    def room(self) -> int:
        """Idle processes."""
        return len(self._idle)

    def submit(self, unit: Unit, work: Work) -> None:
        """Send a unit to an idle process, which is started if need be."""
        from joblib.externals.loky import ProcessPoolExecutor

        slot = self._idle.pop()
        if self._slots[slot] is None:
            self._slots[slot] = ProcessPoolExecutor(max_workers=1, initializer=_begin, initargs=(os.getpid(),))
        self._works[unit] = work
        future = self._slots[slot].submit(perform, *work)
        future.add_done_callback(lambda done: self._done.put((unit, slot, done)))

    def collect(self) -> list[tuple[Unit, Outcome]]:
        """Wait up to a second for a unit."""
        found = []
        for unit, slot, future in _waiting(self._done):
            self._idle.append(slot)
            error = future.exception()
            if error is None:
                found.append((unit, future.result()))
            elif not _broken(error):
                found.append((unit, _lost(self._works[unit], f"the unit could not be sent or brought back: {error!r}")))
            else:
                self._slots[slot].shutdown(wait=False, kill_workers=True)
                self._slots[slot] = None
                self._deaths[unit] = self._deaths.get(unit, 0) + 1
                if self._deaths[unit] < _LIVES:
                    self.submit(unit, self._works[unit])
                    continue
                said = "the process that did it ended by itself (killed, crashed, or out of memory), twice"
                found.append((unit, _lost(self._works[unit], said)))
            del self._works[unit]
        return found

    def close(self) -> None:
        """End the processes, whatever they do."""
        for slot in self._slots:
            if slot is not None:
                slot.shutdown(wait=False, kill_workers=True)
        self._slots = [None] * len(self._slots)


class Cluster:
    """Workers of a Dask cluster, as many as there are at any time.

    Few units are in flight, so that a worker that dies takes with it what it was doing and nothing else; the scheduler
    gives that to another one, and calls a unit that has killed several workers (its setting ``allowed-failures``) a
    failure.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._flying: dict[Unit, tuple[Any, Work]] = {}
        self._done: queue.SimpleQueue[tuple[Unit, Any]] = queue.SimpleQueue()
        self._name = uuid.uuid4().hex[:12]
        self._count = self._threads = 0
        self._looked = -_LOOK

    def room(self) -> int:
        """One unit per thread, and one more per thread that waits beside it."""
        if time.monotonic() - self._looked > _LOOK:
            self._threads = max(1, sum(self._client.nthreads().values()))
            self._looked = time.monotonic()
        return max(0, 2 * self._threads - len(self._flying))

    def submit(self, unit: Unit, work: Work) -> None:
        """Send a unit to the scheduler."""
        name = f"delve-{self._name}-{self._count}"
        self._count += 1
        try:
            future = self._client.submit(perform, *work, key=name, pure=False)
        except (TypeError, AttributeError, PicklingError) as error:  # the method cannot be pickled
            self._flying[unit] = None, work
            self._done.put((unit, error))
            return
        self._flying[unit] = future, work
        future.add_done_callback(lambda done: self._done.put((unit, done)))

    def collect(self) -> list[tuple[Unit, Outcome]]:
        """Wait up to a second for a unit."""
        found = []
        for unit, future in _waiting(self._done):
            _, work = self._flying.pop(unit)
            if isinstance(future, Exception):
                found.append((unit, _lost(work, f"the unit could not be sent: {future!r}")))
                continue
            if future.status in ("cancelled", "lost"):
                raise RuntimeError(
                    "the cluster let go of the study's work: is its scheduler still there? What was stored is kept"
                )
            error = future.exception()
            found.append((unit, future.result() if error is None else _lost(work, f"{type(error).__name__}: {error}")))
        return found

    def close(self) -> None:
        """Cancel what is in flight."""
        flying = [future for future, _ in self._flying.values() if future is not None]
        self._flying.clear()
        if flying:
            with suppress(Exception):  # the cluster may be gone
                self._client.cancel(flying, force=True)


def _waiting(done: queue.SimpleQueue[Any]) -> list[Any]:
    """What is in the queue; at least one thing, unless nothing comes within a second."""
    found: list[Any] = []
    with suppress(queue.Empty):
        found.append(done.get(timeout=1.0))
        while True:
            found.append(done.get_nowait())
    return found


def _broken(error: BaseException) -> bool:
    from concurrent.futures.process import BrokenProcessPool

    return isinstance(error, BrokenProcessPool)


def _lost(work: Work, said: str) -> Outcome:
    return Outcome(seed=work[-1], error=said)


def _begin(parent: int) -> None:
    """Ctrl-C is the parent's business: it ends its workers. One that was killed cannot, so they look after it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    """End this process, whatever it does, when its parent is no more."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
