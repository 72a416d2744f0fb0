"""Who runs the blocks: this process, or worker processes. The draws are the same.

Workers are forked where that is safe, after everything has been compiled, so they share the compiled code; elsewhere
they are started afresh and get the steps by cloudpickle. One message goes out and one comes back per block. Workers
ignore Ctrl-C (the parent decides), use one BLAS thread each, and end when the parent's end of their pipe closes,
however the parent ended.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from bayessel.samplers.run.kernel import Block, Kernel, Position


@dataclass(frozen=True)
class Task:
    """Run a chain from `position` until it has `until` draws or `seconds` are over."""

    position: Position
    until: int
    seconds: float


class Workers(Protocol):
    """What the schedule needs to know of those who run the blocks."""

    @property
    def size(self) -> int:
        """How many tasks can run side by side."""

    @property
    def idle(self) -> int:
        """How many tasks can be taken now."""

    def submit(self, task: Task) -> None:
        """Begin a task."""

    def collect(self, timeout: float | None) -> list[Block]:
        """Wait for at least one block, or for so many seconds."""

    def stop(self) -> None:
        """Let running blocks end after their present draw."""

    def close(self) -> None:
        """Let go of everything."""


class Inline:
    """One block at a time, in this process."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._task: Task | None = None
        self._stop = False

    @property
    def size(self) -> int:
        """One."""
        return 1

    @property
    def idle(self) -> int:
        """One if there is nothing to do."""
        return int(self._task is None)

    def submit(self, task: Task) -> None:
        """Keep the task until its block is asked for."""
        self._task = task

    def collect(self, timeout: float | None) -> list[Block]:
        """Run the task."""
        task, self._task = self._task, None
        if task is None:
            return []
        return [self._kernel.run(task.position, task.until, task.seconds, lambda: self._stop)]

    def stop(self) -> None:
        """End the running block after its present draw."""
        self._stop = True

    def close(self) -> None:
        """Give the steps back as they came."""
        self._kernel.restore()


class Processes:
    """Blocks side by side in worker processes.

    Parameters
    ----------
    kernel
        The steps; compiled already, so that forked workers need not.
    count : int
        Number of processes.
    rehearsal
        A position from which workers that start afresh make a draw before the first task, so that code is loaded.
    method : {"fork", "spawn", "forkserver"}, optional
        How they start; by default "fork" on Linux and its like, "spawn" elsewhere.
    not_theirs : sequence of int
        File descriptors that forked workers close at once: locks must end with the parent.
    """

    def __init__(
        self,
        kernel: Kernel,
        count: int,
        rehearsal: Position,
        method: str | None = None,
        not_theirs: Sequence[int] = (),
    ) -> None:
        self._kernel = kernel
        method = method or start_method()
        context: Any = multiprocessing.get_context(method)
        self._flag = context.RawValue("b", 0)
        self._pipes: dict[Connection, Any] = {}
        self._idle: list[Connection] = []
        forked = method == "fork"
        # through our own pipe, not among the arguments: Python would wait forever for a process that died in starting
        parcel = b"" if forked else _pickled(kernel, rehearsal)
        work = kernel if forked else None
        try:
            for k in range(count):
                ours, theirs = multiprocessing.Pipe()
                close = [*self._pipes, ours] if forked else []
                locks = tuple(not_theirs) if forked else ()
                arguments = (theirs, work, self._flag, close, locks)
                process = context.Process(target=_serve, args=arguments, name=f"chains-{k}", daemon=True)
                with warnings.catch_warnings():
                    # whoever uses threads is warned of fork; ours does not touch them: BLAS takes care of its own
                    warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
                    process.start()
                theirs.close()
                self._pipes[ours] = process
            for pipe in self._pipes:
                if parcel:
                    with suppress(OSError):  # what became of it is asked next
                        pipe.send_bytes(parcel)
            for pipe in self._pipes:
                self._receive(pipe)
                self._idle.append(pipe)
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many processes there are."""
        return len(self._pipes)

    @property
    def idle(self) -> int:
        """How many processes have nothing to do."""
        return len(self._idle)

    def submit(self, task: Task) -> None:
        """Send the task to a process that has nothing to do."""
        pipe = self._idle.pop()
        try:
            pipe.send(task)
        except OSError:
            self._receive(pipe)

    def collect(self, timeout: float | None) -> list[Block]:
        """Return the blocks that are ready; at least one unless time is up."""
        blocks = []
        busy = [pipe for pipe in self._pipes if pipe not in self._idle]
        ready = wait(busy, timeout)
        for pipe in busy:
            if pipe in ready:
                blocks.append(self._receive(pipe))
                self._idle.append(pipe)
        return blocks

    def stop(self) -> None:
        """Raise the flag that every worker looks at after each draw."""
        self._flag.value = 1

    def close(self) -> None:
        """End the processes: politely, then by force."""
        self.stop()
        for pipe in self._pipes:
            pipe.close()
        for process in self._pipes.values():
            process.join(0.2)
            if process.is_alive():
                process.terminate()
                process.join(2.0)
            if process.is_alive():
                process.kill()
                process.join()
        self._pipes.clear()
        self._idle.clear()
        self._kernel.restore()

    def _receive(self, pipe: Connection) -> Any:
        try:
            what, value = pipe.recv()
        except (EOFError, ConnectionError):
            process = self._pipes[pipe]
            process.join(1.0)
            code = process.exitcode
            hint = "try fewer cores, or cores=1 to see where it happens"
            if start_method() != "fork":
                hint += '; a script that starts processes must do so below `if __name__ == "__main__":`'
            raise RuntimeError(
                f"a worker process ended by itself (exit code {code}{', out of memory?' if code == -9 else ''}); {hint}"
            ) from None
        if what == "error":
            error, text = value
            if error is None:
                raise RuntimeError(f"a step method failed in a worker process:\n{text}")
            error.add_note(f"It happened in a worker process:\n{text}")
            raise error
        return value


def start_method() -> str:
    """How processes start: fork where it is safe."""
    available = multiprocessing.get_all_start_methods()
    return "fork" if "fork" in available and sys.platform != "darwin" else "spawn"


def _pickled(kernel: Kernel, rehearsal: Position) -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps((kernel, rehearsal)))
    except Exception as error:
        raise ValueError(
            f"the step methods cannot be sent to another process ({error}); use cores=1, or steps without references "
            "to files, locks and the like"
        ) from error


def _serve(
    pipe: Connection,
    work: Kernel | None,
    flag: Any,
    close: Sequence[Connection],
    not_theirs: Sequence[int],
) -> None:
    """Run tasks until the pipe closes; a worker without work gets its steps as the first message."""
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for descriptor in not_theirs:
        os.close(descriptor)
    # a forked process holds copies of the parent's ends: with one of them open no pipe would ever report its end
    for other in close:
        other.close()
    with threadpool_limits(limits=1):
        try:
            kernel, answer = _prepared(pipe.recv_bytes()) if work is None else (work, ("ready", None))
        except (EOFError, OSError):
            return
        while True:
            try:
                pipe.send(answer)
                task = pipe.recv()
            except (EOFError, OSError):
                return  # the parent has closed its end, or is gone
            try:
                answer = "block", kernel.run(task.position, task.until, task.seconds, lambda: flag.value)
            except Exception as error:
                answer = _complaint(error)


def _prepared(parcel: bytes) -> tuple[Any, tuple[str, Any]]:
    try:
        kernel, rehearsal = pickle.loads(parcel)
        kernel.rehearse(rehearsal)
    except Exception as error:
        return None, _complaint(error)
    return kernel, ("ready", None)


def _complaint(error: Exception) -> tuple[str, Any]:
    """Return an exception for the parent, or its text alone where the exception itself cannot travel."""
    text = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return "error", (None, text)
    return "error", (error, text)
