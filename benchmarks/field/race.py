"""Who still has to fit what, in processes that are given one fit after the other, and the store of what was found."""

from __future__ import annotations

import hashlib
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from bayessel._check import FloatArray
from bayessel.diagnostics.delve import Task
from bayessel.work.result_store import ResultStore, read_results
from bayessel.work.seeds import seed_sequence
from benchmarks.field.own import OURS
from benchmarks.field.peers import PEERS
from benchmarks.field.worker import missing
from tests.paths import ROOT

#: seconds of processor that a fit with its predictions may take
LIMIT = 60.0
OVER = "over its seconds of processor"
#: a method that is over the limit on so many sets of a size is not asked about others of that size, or of larger ones
SETS_OVER = 2
EVERYONE = OURS | PEERS
#: where results are kept
STORE = ROOT / ".cache" / "field"
_WHAT = "field"
_SCORES = ("residual", "std", "log_density", "crps", "cdf")
_SOURCES = ("bayessel", "models", "diagnostics")


@dataclass(frozen=True)
class Unit:
    """A method on a split of a task."""

    method: str
    task: str
    split: int
    #: of the data and the division
    hash: str

    @property
    def key(self) -> str:
        """Its name in the store."""
        return "\0".join((self.hash, self.task, str(self.split), self.method))

    @property
    def set_name(self) -> str:
        """Name of the set."""
        return self.task.rpartition(" ")[0]

    @property
    def size(self) -> int:
        """Rows of the training set."""
        return int(self.task.rpartition(" ")[2])


@dataclass
class Outcome:
    """What became of a fit: scores of its test rows, seconds of processor, and what was said.

    Attributes
    ----------
    residual, std, log_density, crps, cdf : array (J,)
        Target less predicted mean, and of the predictive distribution the standard deviation, log density at the
        target, CRPS and probability below it, in units of the target and nats, kept in single precision; empty after
        an error.
    revision : str
        Name of our sources that were fitted; empty of peers.
    """

    unit: Unit
    error: str = ""
    status: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = np.nan
    revision: str = ""
    residual: FloatArray = field(default_factory=lambda: np.empty(0))
    std: FloatArray = field(default_factory=lambda: np.empty(0))
    log_density: FloatArray = field(default_factory=lambda: np.empty(0))
    crps: FloatArray = field(default_factory=lambda: np.empty(0))
    cdf: FloatArray = field(default_factory=lambda: np.empty(0))


def packed(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the store keeps it."""
    scores = {name: getattr(outcome, name).astype(np.float32) for name in _SCORES}
    return vars(outcome) | scores | {"unit": list(vars(outcome.unit).values())}


def unpacked(record: Mapping[str, Any]) -> Outcome:
    """An outcome from the store."""
    scores = {name: record[name].astype(np.float64) for name in _SCORES}
    return Outcome(**{**record, **scores, "unit": Unit(*record["unit"])})


def opened(folder: str | os.PathLike[str]) -> ResultStore[Outcome]:
    """The store of a race; what is there is read, and nobody else writes meanwhile."""
    return ResultStore(folder, _WHAT, {}, pack=packed, unpack=unpacked)


def read(folder: str | os.PathLike[str]) -> list[Outcome]:
    """What a store has, which a race may be writing to."""
    return [unpacked(record) for record in read_results(folder, _WHAT)[1].values()]


def revision() -> str:
    """Twelve hexadecimal digits that name the sources as they are here, committed or not."""
    digest = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


class Process:
    """A process of an interpreter that fits what it is given; started when it is first needed, and after it ended."""

    def __init__(self, python: str) -> None:
        self.python = python
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any] | int:
        """Answer to a question, or how the process ended in place of one."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(dict(question), process.stdin)
            process.stdin.flush()
            # not its end of the pipe alone: what a method started may keep that open
            while not select.select([process.stdout], [], [], 0.2)[0]:
                if process.poll() is not None:
                    raise EOFError
            answer: dict[str, Any] = pickle.load(process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = process.wait()
            self.close()
            return code
        return answer

    def kill(self) -> None:
        """End the process and those that methods started in it, whoever waits for its answer."""
        if (process := self._process) is not None:
            _end(process)

    def close(self) -> None:
        """End the process and close its pipes."""
        if self._process is not None:
            process, self._process = self._process, None
            _end(process)
            with suppress(BrokenPipeError), process:
                pass

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            once = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA")}
            flags = f"base_compiledir={ROOT / '.cache' / 'pytensor'}{'' if self.python == sys.executable else '-peers'}"
            self._process = subprocess.Popen(
                [self.python, "-W", "ignore", "-m", "benchmarks.field.worker"],
                cwd=ROOT,
                env={"PYTENSOR_FLAGS": flags, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"} | os.environ | once,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the race, which ends its processes
            )
        return self._process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def interpreter(method: str) -> str:
    """The interpreter of a method: this one for ours, that of PEERS_PYTHON, if it is named, for peers."""
    return sys.executable if method in OURS else os.environ.get("PEERS_PYTHON", sys.executable)


def able(methods: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Methods whose packages are there, and of the others what is missing."""
    asked: dict[str, list[str]] = {}
    for name in methods:
        asked.setdefault(interpreter(name), []).append(name)
    lacking: dict[str, str] = {}
    for python, names in asked.items():
        if python == sys.executable:
            lacking |= {name: missing(EVERYONE[name]) for name in names}
            continue
        with Process(python) as process:
            answer = process.ask({"who": names})
        lacking |= dict.fromkeys(names, f"{python} does not run") if isinstance(answer, int) else answer
    return [name for name, lacks in lacking.items() if not lacks], {n: lacks for n, lacks in lacking.items() if lacks}


def units(tasks: Iterable[Task], methods: Iterable[str], splits: int) -> list[Unit]:
    """The fits to make: first splits of all tasks first, cheap peers and ours by turns as they are given."""
    known, names = list(tasks), list(methods)
    return [
        Unit(name, task.name, split, task.hash)
        for split in range(splits)
        for task in known
        if split < len(task)
        for name in names
        if task.size <= EVERYONE[name].most_rows
    ]


def is_done(found: Outcome | None, fresh: str | None) -> bool:
    """Whether a result counts; `fresh`: ours only of these sources."""
    if found is None:
        return False
    return fresh is None or found.unit.method not in OURS or found.revision == fresh


def stopped(outcomes: Iterable[Outcome], fresh: str | None = None) -> Callable[[Unit], bool]:
    """Whether a method is not asked about a unit any more, from what it took so far.

    It is over its limit on another split of the set, at this size or a smaller one; or on `SETS_OVER` sets.
    """
    over: dict[str, list[tuple[str, int]]] = {}
    for one in outcomes:
        if one.error == OVER and is_done(one, fresh):
            over.setdefault(one.unit.method, []).append((one.unit.set_name, one.unit.size))

    def answer(unit: Unit) -> bool:
        there = [name for name, size in over.get(unit.method, ()) if size <= unit.size]
        return unit.set_name in there or len(set(there)) >= SETS_OVER

    return answer


def run(
    tasks: Iterable[Task],
    methods: Iterable[str],
    store: ResultStore[Outcome],
    splits: int,
    *,
    jobs: int = 1,
    fresh: bool = False,
    seconds: float | None = None,
    limit: float = LIMIT,
    show: Callable[[Outcome, int], None] = lambda outcome, left: None,
) -> int:
    """Do what is left, `jobs` fits at a time, and return how many units are not done when the time is over."""
    by_name = {task.name: task for task in tasks}
    now = revision()
    only = now if fresh else None
    left = [one for one in units(by_name.values(), methods, splits) if not is_done(store.values.get(one.key), only)]
    left.reverse()
    end = time.monotonic() + seconds if seconds is not None else np.inf
    lock, over = threading.Lock(), threading.Event()
    everyone: list[Process] = []
    trouble: list[Exception] = []

    def taken() -> Unit | None:
        with lock:
            while left and time.monotonic() < end and not over.is_set():
                unit = left.pop()
                if not stopped(store.values.values(), only)(unit):
                    return unit
        return None

    def work() -> None:
        mine: dict[str, Process] = {}
        try:
            while (unit := taken()) is not None:
                python = interpreter(unit.method)
                if python not in mine:
                    mine[python] = Process(python)
                    everyone.append(mine[python])
                outcome = _asked(mine[python], unit, by_name[unit.task], limit)
                outcome.revision = now if unit.method in OURS else ""
                with lock:
                    if over.is_set():
                        return
                    store.put(unit.key, outcome)
                    show(outcome, len(left))
        except Exception as error:
            trouble.append(error)
            over.set()
        finally:
            for process in mine.values():
                process.close()

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        over.set()
        while any(thread.is_alive() for thread in threads):
            for process in everyone:
                process.kill()
            time.sleep(0.02)
    if trouble:
        raise trouble[0]
    return len(left)


def _asked(process: Process, unit: Unit, task: Task, limit: float) -> Outcome:
    X, y, X_test, y_test = task[unit.split]
    seed = int(seed_sequence(0, unit.task, unit.split, unit.method).generate_state(1)[0] >> 1)
    job = {"method": unit.method, "X": X, "y": y, "X_test": X_test, "y_test": y_test, "seed": seed, "limit": limit}
    answer = process.ask(job)
    if not isinstance(answer, int):
        return Outcome(unit, **answer)
    if answer == -signal.SIGXCPU:
        return Outcome(unit, error=OVER, seconds=limit)
    return Outcome(unit, error=f"the process ended with {answer}")
