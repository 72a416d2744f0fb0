"""Who does the units: this process, processes beside it, or an executor of the user's.

All run `perform` on a unit's function and arguments. Few units are given out at a time, so that whoever dies takes
little along.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import suppress
from typing import Any, Protocol

from bayessel._types import SupportsSubmit
from bayessel.work.interrupts import InterruptCounter, InterruptGuard
from bayessel.work.jobs import core_count
from bayessel.work.processes import LIVES, WorkerProcesses
from bayessel.work.unit import Answer, WorkUnit, perform

#: seconds between two looks at the size of a cluster, and at jobs that do not say when they are done
_SIZE_EVERY, _POLL_EVERY = 5.0, 0.05
#: what Dask and submitit raise where a worker or a job ended without a result
_DEATHS = ("KilledWorker", "UncompletedJobError")


class ExecutorLostError(RuntimeError):
    """An executor takes no more work and gives nothing back."""


class UnitExecutor(Protocol):
    """Takes units by number and gives answers back, in any order."""

    def room(self) -> int:
        """How many units it could take now."""

    def submit(self, number: int, unit: WorkUnit[Any]) -> None:
        """Take a unit."""

    def collect(self, timeout: float) -> list[tuple[int, Answer]]:
        """Wait for an answer at most so many seconds."""

    def close(self) -> None:
        """Drop what is not finished."""


class InProcess:
    """The process itself, one unit at a time; Ctrl-C raises in the unit's own code."""

    def __init__(self, interrupts: InterruptCounter) -> None:
        self._interrupts = interrupts
        self._mine: list[tuple[int, WorkUnit[Any]]] = []

    def room(self) -> int:
        """One, or none."""
        return 1 - len(self._mine)

    def submit(self, number: int, unit: WorkUnit[Any]) -> None:
        """Take a unit."""
        self._mine.append((number, unit))

    def collect(self, timeout: float) -> list[tuple[int, Answer]]:
        """Do the unit; one that was interrupted has no answer, even if its code took the exception as its own."""
        number, unit = self._mine.pop()
        with InterruptGuard() as guard, self._interrupts.raising():
            answer = perform(*unit.call())
        # it may have been raised by the unit itself, which is not counted
        self._interrupts.count += guard.interrupted and not self._interrupts.count
        return [] if self._interrupts.count else [(number, answer)]

    def close(self) -> None:
        """Nothing to do."""


class LocalProcesses:
    """Processes on this machine, one unit each: fresh ones, or forked ones that share what this one has compiled.

    Units are calls that are performed, or whatever `service` makes an answer of.
    """

    def __init__(self, count: int, service: Callable[[Any], Answer] | None = None, *, fork: bool = False) -> None:
        self._pool = WorkerProcesses(service or _service, count, fork=fork, name="units")
        self._slots: dict[int, int] = {}
        self._unsent: list[tuple[int, Answer]] = []

    def start(self) -> None:
        """Start all processes now, not when there is something to do: before a progress bar, which has a thread."""
        self._pool.start()

    def room(self) -> int:
        """Idle processes."""
        return len(self._pool.idle)

    def submit(self, number: int, unit: WorkUnit[Any]) -> None:
        """Send a unit to an idle process, which is started if need be."""
        slot = self._pool.idle[0]
        try:
            self._pool.send(slot, unit.call())
        except Exception as error:
            self._unsent.append((number, unsent(error)))
        else:
            self._slots[slot] = number

    def collect(self, timeout: float) -> list[tuple[int, Answer]]:
        """Wait for an answer."""
        early, self._unsent = self._unsent, []
        found = self._pool.collect(0.0 if early else timeout)
        return early + [(self._slots.pop(slot), answer) for slot, answer in found]

    def close(self) -> None:
        """End the processes, whatever they do."""
        self._pool.close()


def _service(call: Any) -> Answer:
    return perform(*call)


class FutureExecutor:
    """Anything with ``submit(function, *arguments)`` that returns futures, as ``concurrent.futures`` does.

    Futures need ``result()`` and either ``add_done_callback`` or ``done()``. `limit` units are given out at a time.
    """

    def __init__(self, executor: Any, limit: int | None = None) -> None:
        workers = getattr(executor, "_max_workers", None) or core_count()
        self.executor, self._limit = executor, 2 * int(workers) if limit is None else limit
        self._flying: dict[int, Any] = {}
        self._units: dict[int, WorkUnit[Any]] = {}
        self._deaths: dict[int, int] = {}
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()

    def room(self) -> int:
        """How many more units may be given out."""
        return max(0, self._limit - len(self._flying))

    def submit(self, number: int, unit: WorkUnit[Any]) -> None:
        """Give a unit out."""
        self._units[number] = unit
        try:
            future = self._send(number, unit)
        except RuntimeError as error:  # broken, or shut down
            raise ExecutorLostError(f"the executor takes no work: {error}") from error
        except Exception as error:  # the function or its arguments cannot be pickled
            self._flying[number] = None
            self._done.put((number, unsent(error)))
            return
        self._flying[number] = future
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(lambda done: self._done.put((number, done)))

    def collect(self, timeout: float) -> list[tuple[int, Answer]]:
        """Wait for an answer."""
        found: list[tuple[int, Answer]] = []
        for number, future in self._finished(timeout):
            if self._flying.pop(number, future) is not future and not isinstance(future, Answer):
                continue  # told twice
            answer = future if isinstance(future, Answer) else self._answer(future)
            if answer.kind == "died" and self._tries_again(number):
                self.submit(number, self._units[number])
            else:
                found.append((number, answer))
        return found

    def close(self) -> None:
        """Cancel what is not finished."""
        flying = [future for future in self._flying.values() if future is not None]
        self._flying.clear()
        for future in flying:
            with suppress(Exception):  # the executor may be gone
                future.cancel()

    def _send(self, number: int, unit: WorkUnit[Any]) -> Any:
        return self.executor.submit(perform, *unit.call())

    def _answer(self, future: Any) -> Answer:
        """What a future holds: an answer, unless its worker died or the executor itself failed."""
        try:
            answer: Answer = future.result()
        except BrokenExecutor as error:
            raise ExecutorLostError(f"the executor's processes ended ({error})") from error
        except CancelledError as error:
            raise ExecutorLostError("the executor has let go of the work: is it still there?") from error
        except Exception as error:
            if type(error).__name__ in _DEATHS:
                return Answer("died", None, f"{type(error).__name__}: {error}")
            return unsent(error)
        return answer

    def _tries_again(self, number: int) -> bool:
        """Whether a unit whose process died is tried once more."""
        self._deaths[number] = self._deaths.get(number, 0) + 1
        return self._deaths[number] < LIVES

    def _finished(self, timeout: float) -> list[tuple[int, Any]]:
        """Futures that are done, with their numbers; at least one unless time is up."""
        asked = [number for number, one in self._flying.items() if one and not hasattr(one, "add_done_callback")]
        end = time.monotonic() + timeout
        found = [(number, self._flying[number]) for number in asked if self._flying[number].done()]
        wait = 0.0 if found else min(timeout, _POLL_EVERY) if asked else timeout
        with suppress(queue.Empty):
            found.append(self._done.get(timeout=wait) if wait else self._done.get_nowait())
            while True:
                found.append(self._done.get_nowait())
        return found if found or time.monotonic() >= end else self._finished(end - time.monotonic())


class DaskExecutor(FutureExecutor):
    """Workers of a Dask cluster, as many as there are at any time.

    The scheduler gives the unit of a worker that dies to another one, and calls a unit that has killed several workers
    (its setting ``allowed-failures``) a failure.
    """

    def __init__(self, client: Any, limit: int | None = None) -> None:
        super().__init__(client, 1)
        self._most = limit
        self._threads, self._looked = 1, -_SIZE_EVERY

    def room(self) -> int:
        """One unit per thread, and one more per thread that waits beside it."""
        if time.monotonic() - self._looked > _SIZE_EVERY:
            self._threads = max(1, sum(self.executor.nthreads().values()))
            self._looked = time.monotonic()
        self._limit = 2 * self._threads if self._most is None else self._most
        return super().room()

    def _send(self, number: int, unit: WorkUnit[Any]) -> Any:
        return self.executor.submit(perform, *unit.call(), pure=False)

    def _answer(self, future: Any) -> Answer:
        if future.status == "lost":  # asked for its result it would wait
            raise ExecutorLostError("the cluster let go of the work: is its scheduler still there?")
        return super()._answer(future)

    def _tries_again(self, number: int) -> bool:
        return False  # the scheduler has


def unsent(error: BaseException) -> Answer:
    """The answer where something could not be sent or brought back."""
    return Answer("unsent", None, f"the unit could not be sent or brought back: {error!r}")


def check_executor(executor: SupportsSubmit | None) -> SupportsSubmit | None:
    """Return an executor, if it is one: anything with ``submit``."""
    if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
        raise TypeError(
            "executor must have submit(function, *arguments), as a dask.distributed.Client, an executor of "
            f"concurrent.futures or one of submitit has; got {executor!r}"
        )
    return executor


def adapted(executor: SupportsSubmit | LocalProcesses, limit: int | None) -> UnitExecutor:
    """The adapter of a user's executor; `limit` units at a time, if given."""
    if isinstance(executor, LocalProcesses):
        return executor
    if all(hasattr(executor, name) for name in ("nthreads", "cancel", "scheduler")):
        return DaskExecutor(executor, limit)
    if all(hasattr(executor, name) for name in ("update_parameters", "map_array")):
        return FutureExecutor(executor, 10**9 if limit is None else limit)  # submitit: the queue is its own
    return FutureExecutor(executor, limit)
