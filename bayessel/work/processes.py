"""Worker processes of this machine: started, watched, replaced when they die, ended.

A worker is forked, and shares what the parent has compiled; or it is a fresh interpreter, which neither inherits locks
and threads nor runs the caller's script again. It answers one message at a time. Workers ignore Ctrl-C (the parent
decides), use one BLAS thread, and end when their parent does, however it ended.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from bayessel.work.jobs import begin_worker
from bayessel.work.unit import Answer, failure

#: how often a message is tried whose worker ends by itself
LIVES = 2
#: seconds between two looks whether the parent, or a worker that says nothing, is still there
_LOOK = 0.5
#: threads that libraries begin with in a fresh interpreter
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

#: what a worker does with a message
Service = Callable[[Any], Any]


def fork_is_safe() -> bool:
    """Whether processes may be forked here: on Linux and its like."""
    return "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"


@dataclass(eq=False)
class _Worker:
    """A process, our end of its pipe, and the message it works on."""

    process: Any
    pipe: Connection
    ready: bool = False
    message: bytes | None = None


class WorkerProcesses:
    """Up to `count` processes that answer messages.

    A message whose worker ends by itself is sent to another one, once; then the answer is that it died.

    Parameters
    ----------
    service : callable
        ``service(message)`` returns the value of the answer.
    count : int
        Number of processes. Each is started when there is something to do, or all of them by `start`.
    fork : bool
        Fork this process, so that the service is inherited; else begin fresh interpreters, which get it by cloudpickle.
    prepare : callable, optional
        Called as ``prepare(service)`` in a fresh worker before its first message.
    not_theirs : sequence of int
        File descriptors that forked workers close at once: locks must end with the parent.
    name : str
        Name of the processes.
    """

    def __init__(
        self,
        service: Service,
        count: int,
        *,
        fork: bool = False,
        prepare: Callable[[Service], Any] | None = None,
        not_theirs: Sequence[int] = (),
        name: str = "work",
    ) -> None:
        self.count, self._fork, self._name, self._not_theirs = count, fork, name, tuple(not_theirs)
        self._service = service
        # through our own pipe, not among the arguments: Python would wait forever for a process that died in starting
        self._parcel = b"" if fork else _pickled((service, prepare))
        self._workers: dict[int, _Worker] = {}
        self._deaths: dict[int, int] = {}

    @property
    def idle(self) -> list[int]:
        """Slots that can take a message."""
        busy = {slot for slot, worker in self._workers.items() if worker.message is not None}
        return [slot for slot in range(self.count) if slot not in busy]

    def start(self) -> None:
        """Start all processes and wait until they are ready; one that does not get there is an error."""
        for slot in range(self.count):
            self._begin(slot)
        while not all(worker.ready for worker in self._workers.values()):
            for _, answer in self.collect(1.0):
                if answer.kind == "died":
                    raise RuntimeError(answer.text)
                raise answer.value or RuntimeError(f"a worker process could not begin:\n{answer.text}")

    def send(self, slot: int, message: Any) -> None:
        """Send a message to an idle slot; one that cannot be pickled raises what cloudpickle raises."""
        self._send(slot, _pickled(message))

    def collect(self, timeout: float | None) -> list[tuple[int, Answer]]:
        """Wait for an answer, at most so many seconds, and look after the workers; return slots with their answers."""
        pipes = {worker.pipe: slot for slot, worker in self._workers.items() if worker.message or not worker.ready}
        if not pipes:
            return []
        said = wait(list(pipes), _LOOK if timeout is None else min(timeout, _LOOK))
        ready = [pipe for pipe in pipes if pipe in said]
        # a process of the worker's own may hold the pipe open after its death
        ended = [pipe for pipe in pipes if pipe not in ready and not self._workers[pipes[pipe]].process.is_alive()]
        found = []
        for pipe in (*ready, *ended):
            slot = pipes[pipe]
            worker = self._workers[slot]
            try:
                answer = pickle.loads(pipe.recv_bytes()) if pipe in ready or pipe.poll() else None
            except (EOFError, OSError):
                answer = None
            if answer is None:
                answer = self._buried(slot)
            elif answer == "ready":
                worker.ready = True
                continue
            else:
                self._deaths.pop(slot, None)
                worker.message, worker.ready = None, True
            if answer is not None:
                found.append((slot, answer))
        return found

    def close(self) -> None:
        """End the processes: those that wait end by themselves, the others are made to."""
        workers = list(self._workers.values())
        self._workers.clear()
        for worker in workers:
            worker.pipe.close()
            if worker.message is not None:
                worker.process.terminate()
        end = time.monotonic() + 0.5
        for worker in workers:
            worker.process.join(max(0.0, end - time.monotonic()))
        for worker in workers:
            if worker.process.is_alive():
                os.kill(worker.process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
                worker.process.join()

    def _begin(self, slot: int) -> None:
        ours, theirs = multiprocessing.Pipe()
        with _interrupts_held():
            process = self._forked(slot, ours, theirs) if self._fork else _interpreter(slot, theirs)
        theirs.close()
        self._workers[slot] = _Worker(process, ours)
        if self._parcel:
            with suppress(OSError):  # what became of it is seen by `collect`
                ours.send_bytes(self._parcel)

    def _forked(self, slot: int, ours: Connection, theirs: Connection) -> Any:
        context: Any = multiprocessing.get_context("fork")
        close = [*(worker.pipe for worker in self._workers.values()), ours]
        arguments = (theirs, self._service, os.getpid(), close, self._not_theirs)
        process = context.Process(target=_serve, args=arguments, name=f"{self._name}-{slot}", daemon=True)
        with warnings.catch_warnings():
            # whoever uses threads is warned of fork; ours does not touch them: BLAS takes care of its own
            warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
            process.start()
        return process

    def _send(self, slot: int, message: bytes) -> None:
        if slot not in self._workers:
            self._begin(slot)
        worker = self._workers[slot]
        worker.message = message
        with suppress(OSError):  # as above
            worker.pipe.send_bytes(message)

    def _buried(self, slot: int) -> Answer | None:
        """Replace a worker that has ended; the answer where its message has used up its lives."""
        worker = self._workers.pop(slot)
        worker.pipe.close()
        worker.process.join(1.0)
        self._deaths[slot] = self._deaths.get(slot, 0) + 1
        if self._deaths[slot] < LIVES:
            if worker.message is None:
                self._begin(slot)
            else:
                self._send(slot, worker.message)
            return None
        del self._deaths[slot]
        code = worker.process.exitcode
        memory = ", out of memory?" if code == -9 else ""
        return Answer("died", code, f"a worker process ended by itself (exit code {code}{memory}), twice")


class _Interpreter:
    """A fresh interpreter, with the methods of ``multiprocessing.Process`` that are used here."""

    def __init__(self, command: Sequence[str], descriptor: int, environment: dict[str, str]) -> None:
        self._popen = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[descriptor], env={**os.environ, **environment}
        )
        self.pid = self._popen.pid

    @property
    def exitcode(self) -> int | None:
        """Of a process that has ended."""
        return self._popen.poll()

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._popen.poll() is None

    def join(self, timeout: float | None = None) -> None:
        """Wait until it ends."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout)

    def terminate(self) -> None:
        """Ask it to end."""
        self._popen.terminate()


def _interpreter(slot: int, theirs: Connection) -> Any:
    """Begin a fresh interpreter that finds modules where this one does; the caller's script is not run again."""
    environment = {**_ONE_THREAD, "PYTENSOR_FLAGS": compile_flags(slot)}
    if not hasattr(os, "fork"):  # Windows
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_serve, args=(theirs, None, os.getpid()), name=f"work-{slot}", daemon=True)
        process.start()
        return process
    descriptor = theirs.fileno()
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; from bayessel.work.processes import serve_descriptor; "
        f"serve_descriptor({descriptor}, {os.getpid()})"
    )
    return _Interpreter([sys.executable, "-c", code], descriptor, environment)


def serve_descriptor(descriptor: int, parent: int) -> None:
    """Answer messages on an inherited file descriptor: what a fresh interpreter does."""
    _serve(Connection(descriptor), None, parent)


def compile_flags(slot: int) -> str:
    """PYTENSOR_FLAGS of a worker: those of this process, with a folder of its own for what is compiled."""
    flags = [flag.strip() for flag in os.environ.get("PYTENSOR_FLAGS", "").split(",") if flag.strip()]
    base = os.path.join(os.path.expanduser("~"), ".pytensor")
    for flag in flags:
        name, _, value = flag.partition("=")
        base = value if name == "base_compiledir" else base
    others = [flag for flag in flags if not flag.startswith("base_compiledir=")]
    return ",".join([*others, f"base_compiledir={os.path.join(base, f'worker-{slot}')}"])


def _pickled(value: Any) -> bytes:
    import cloudpickle

    return bytes(cloudpickle.dumps(value))


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back: a process inherits that, and does not die of it before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(
    pipe: Connection,
    service: Service | None,
    parent: int,
    close: Sequence[Connection] = (),
    not_theirs: Sequence[int] = (),
) -> None:
    """Answer messages until the pipe closes; a worker without a service gets it as the first message."""
    begin_worker()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for descriptor in not_theirs:
        os.close(descriptor)
    # a forked process holds copies of the parent's ends: with one of them open no pipe would ever report its end
    for other in close:
        other.close()
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), suppress(EOFError, OSError):  # the parent has closed its end, or is gone
        answer: Any = "ready"
        if service is None:
            service, answer = _unpacked(pipe.recv_bytes())
        while True:
            pipe.send_bytes(_answer_bytes(answer))
            answer = _answered(service, pipe.recv_bytes())


def _unpacked(parcel: bytes) -> tuple[Service | None, Any]:
    try:
        service, prepare = pickle.loads(parcel)
        if prepare is not None:
            prepare(service)
    except Exception as error:
        return None, failure(error)
    return service, "ready"


def _answered(service: Service | None, message: bytes) -> Answer:
    try:
        if service is None:
            raise RuntimeError("this worker process could not begin")
        try:
            question = pickle.loads(message)
        except Exception as error:
            return Answer("unsent", None, f"the unit could not be sent: it cannot be read there: {error!r}")
        value = service(question)
        return value if isinstance(value, Answer) else Answer("value", value)
    except BaseException as error:
        return failure(error)


def _answer_bytes(answer: Any) -> bytes:
    try:
        return _pickled(answer)
    except Exception as error:
        return _pickled(Answer("unsent", None, f"its value cannot be sent to another process ({error!r})"))


def _follow(parent: int) -> None:
    """End this process, whatever it does, when its parent is no more."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)
