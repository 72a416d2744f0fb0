"""Every method on every instance: units of work, done once, in any order, by anybody."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bayessel._check import as_count, as_flag, as_seconds
from bayessel.diagnostics.delve._crew import Alone, Cluster, Crew, Processes
from bayessel.diagnostics.delve._describe import description, difference
from bayessel.diagnostics.delve._losses import LOSSES, chosen_losses
from bayessel.diagnostics.delve._store import Asked, Contents, Store, TaskFacts
from bayessel.diagnostics.delve._study import Study
from bayessel.diagnostics.delve._task import Task
from bayessel.diagnostics.delve._unit import Outcome, Unit
from bayessel.errors import DataMismatchError, SamplingWarning

#: starting a process costs about two seconds: it must save more than that
_WORTH_PROCESSES = 5.0


def run(
    methods: Mapping[str, Any],
    tasks: Task | Iterable[Task],
    losses: Sequence[str] = LOSSES,
    store: str | os.PathLike[str] | None = None,
    client: Any = None,
    n_jobs: int | None = None,
    time_budget: float | str | None = None,
    progressbar: bool = True,
    *,
    random_state: int = 0,
    retry_failures: bool = False,
) -> Study:
    """Fit every method to every training set, and keep the losses of all test cases.

    Parameters
    ----------
    methods
        Name -> estimator with ``fit(X, y)`` and ``predict(X)``, or a function that makes one: without arguments, or
        from the size of the training set. Absolute loss takes ``predict_median(X)`` where there is one; log loss takes
        ``log_predictive_density(X, y)``, or a Gaussian from ``predict(X, return_std=True)``, and without either there
        is none. Every ``random_state`` of an estimator is set, from the study's seed and from names alone.
    tasks
        Training sets and test cases: `Task.from_arrays`, `load`.
    losses
        Of ``"squared"``, ``"absolute"``, ``"log"``.
    store
        A folder that keeps every unit as it finishes. The same call goes on where a killed one stopped; methods, tasks
        and losses may be added. Other data or other settings under a known name are refused.
    client
        A Dask client: its workers do the units. They need this package.
    n_jobs
        Processes on this machine: None takes more than one where the work is long, -1 every core.
    time_budget
        Seconds, or text such as "2h", after which no unit is begun; what is running is finished.
    progressbar
        Show progress on a terminal; never in pipes.
    random_state
        Seed of the study.
    retry_failures
        Do stored units again that failed.

    Returns
    -------
    Study
        Of what was asked for. After Ctrl-C: what was finished until then, with ``.interrupted`` set.

    Notes
    -----
    A method that fails on an instance is a result, with its error: `Study.failures`. Units are ordered such that all
    methods meet the first instance of all tasks, then the second: what there is after any time can be compared.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn.neighbors import KNeighborsRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 4))
    >>> task = Task.from_arrays(X, X.sum(axis=1) + 0.1 * rng.normal(size=800), size=32, name="line")
    >>> study = run({"linear": BayesianRidge(), "knn": KNeighborsRegressor()}, task, progressbar=False)
    >>> study.compare("linear", "knn", "squared", "line 32").p_value < 0.01
    True
    """
    wanted = chosen_losses(losses)
    chosen = tuple(loss for loss in LOSSES if loss in wanted)
    given = _check_tasks(tasks)
    said = _check_methods(methods)
    crew = None if client is None else Cluster(_check_client(client))
    jobs = _check_jobs(n_jobs)
    budget = as_seconds(time_budget)
    seed = as_count(random_state, "random_state", 0)
    retry, shown = as_flag(retry_failures, "retry_failures"), as_flag(progressbar, "progressbar")
    book = _Book(store, seed)
    try:
        asked = {(method, name): _wanted(task, chosen) for method in said for name, task in given.items()}
        book.note(given, said, asked)
        units = _units(given, methods)
        pending = [unit for unit in units if not book.has(unit, _wanted(given[unit.task], chosen), retry)]
        work = _Work(methods, given, chosen, seed, book, crew, jobs, budget, shown)
        work.do(pending, len(units))
    finally:
        book.close()
    outcomes = {unit: book.contents.outcomes[unit] for unit in units if unit in book.contents.outcomes}
    facts = {name: book.contents.tasks[name] for name in given}
    study = Study(facts, said, outcomes, chosen, asked, seed, work.interrupted)
    if work.out_of_time:
        warnings.warn(
            f"the time budget was over with {study.remaining} of {len(units)} units to do; the same call with the same "
            "store goes on with them",
            SamplingWarning,
            stacklevel=2,
        )
    return study


class _Work:
    """What is to be done, and by whom."""

    def __init__(
        self,
        methods: Mapping[str, Any],
        tasks: Mapping[str, Task],
        losses: tuple[str, ...],
        seed: int,
        book: _Book,
        crew: Crew | None,
        jobs: int | None,
        budget: float | None,
        shown: bool,
    ) -> None:
        self.methods, self.tasks, self.losses, self.seed, self.book = methods, tasks, losses, seed, book
        self.interrupted = self.out_of_time = False
        self._began = time.monotonic()
        self._end = np.inf if budget is None else self._began + budget
        # undecided: this process, until the work is known to be long
        self._undecided = crew is None and jobs is None
        self._jobs = _cores() if jobs is None else jobs
        self._crew: Crew = crew or (Alone() if jobs in (None, 1) else Processes(self._jobs))
        self._shown = shown

    def do(self, units: Sequence[Unit], total: int) -> None:
        """Do the units; Ctrl-C ends it with what is done."""
        pending, flying, done = deque(units), 0, 0
        with _progress(self._shown) as progress:
            bar = progress.add_task("comparing methods", total=total, completed=total - len(units))
            try:
                while pending or flying:
                    late = time.monotonic() >= self._end
                    for _ in range(0 if late else min(self._crew.room(), len(pending))):
                        unit = pending.popleft()
                        self._crew.submit(unit, self._work(unit))
                        flying += 1
                    if not flying:
                        self.out_of_time = bool(pending)
                        break
                    for unit, outcome in self._crew.collect():
                        self.book.enter(unit, outcome)
                        flying, done = flying - 1, done + 1
                        progress.update(bar, description=f"{unit.method} on {unit.task}", advance=1)
                    self._decide(done, len(pending))
            except KeyboardInterrupt:
                if not self.book.contents.outcomes:
                    raise
                self.interrupted = True
            finally:
                self._crew.close()

    def _work(self, unit: Unit) -> tuple[Any, ...]:
        task = self.tasks[unit.task]
        return self.methods[unit.method], task[unit.instance], _wanted(task, self.losses), seed_of(self.seed, unit)

    def _decide(self, done: int, rest: int) -> None:
        """Take processes once it is known that they pay."""
        spent = time.monotonic() - self._began
        if self._undecided and done and self._jobs > 1 and rest > 1:
            if spent / done * rest * (1 - 1 / self._jobs) > _WORTH_PROCESSES:
                self._crew, self._undecided = Processes(min(self._jobs, rest)), False


class _Book:
    """Where outcomes are noted: a store, or only here."""

    def __init__(self, folder: str | os.PathLike[str] | None, seed: int) -> None:
        self._store = None if folder is None else Store(folder, seed)
        self.contents = Contents(seed) if self._store is None else self._store.contents

    def note(self, tasks: Mapping[str, Task], methods: Mapping[str, str], asked: Asked) -> None:
        """Note what is asked of whom; other tasks or methods than are known under a name are refused before that."""
        known = self.contents
        for name, task in tasks.items():
            if name in known.tasks and known.tasks[name].hash != task.hash:
                raise DataMismatchError(
                    f"the store has other data, or another division into instances, under the name {name!r}: its hash "
                    f"is {known.tasks[name].hash} there and {task.hash} here; give the same data and seed, another "
                    "name, or another store"
                )
        for name, said in methods.items():
            if name in known.methods and known.methods[name] != said:
                raise ValueError(
                    f"the store has another method under the name {name!r}: {difference(known.methods[name], said)}; "
                    "give the same settings, another name, or another store"
                )
        fresh = [TaskFacts.of(task) for name, task in tasks.items() if name not in known.tasks]
        others = {name: said for name, said in methods.items() if name not in known.methods}
        if self._store is None:
            known.tasks |= {facts.name: facts for facts in fresh}
            known.methods |= others
            known.asked |= asked
        else:
            for facts in fresh:
                self._store.add_task(facts)
            for name, said in others.items():
                self._store.add_method(name, said)
            self._store.ask(asked)

    def has(self, unit: Unit, losses: tuple[str, ...], retry: bool) -> bool:
        """Whether a unit is done."""
        outcome = self.contents.outcomes.get(unit)
        return outcome is not None and not (retry and outcome.failures) and outcome.covers(losses)

    def enter(self, unit: Unit, outcome: Outcome) -> None:
        """Note an outcome."""
        if outcome.interrupted and not outcome.error:
            outcome.error, outcome.losses = "the fit was interrupted", {}
        if self._store is None:
            self.contents.outcomes[unit] = outcome
        else:
            self._store.add(unit, outcome)

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()


def seed_of(seed: int, unit: Unit) -> int:
    """A seed for a unit, from the study's seed and its names: neither order nor company matters."""
    name = "\0".join((unit.method, unit.task, str(unit.instance)))
    words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype="<u4")
    return int(np.random.SeedSequence([seed, *map(int, words)]).generate_state(1)[0] >> 1)


def _units(tasks: Mapping[str, Task], methods: Mapping[str, Any]) -> list[Unit]:
    most = max(len(task) for task in tasks.values())
    ordered = sorted(tasks.values(), key=lambda task: task.size)
    return [Unit(method, task.name, i) for i in range(most) for task in ordered if i < len(task) for method in methods]


def _wanted(task: Task, losses: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(loss for loss in losses if loss in task.losses)


def _check_tasks(tasks: Any) -> dict[str, Task]:
    given = [tasks] if isinstance(tasks, Task) else list(tasks)
    if not given:
        raise ValueError("tasks is empty: give a Task, such as Task.from_arrays(X, y, size=64), or several")
    found: dict[str, Task] = {}
    for task in given:
        if not isinstance(task, Task):
            raise TypeError(f"tasks must be Task objects, such as Task.from_arrays(X, y, size=64); got {task!r}")
        if task.name in found:
            raise ValueError(f"two tasks are called {task.name!r}: give their prototasks different names")
        found[task.name] = task
    return found


def _check_methods(methods: Any) -> dict[str, str]:
    if not isinstance(methods, Mapping) or not methods:
        raise TypeError(f'methods must be a dict of estimators by name, such as {{"linear": Ridge()}}; got {methods!r}')
    said = {}
    for name, method in methods.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"methods must have names, got {name!r}")
        if not callable(method) and not (hasattr(method, "fit") and hasattr(method, "predict")):
            raise TypeError(
                f"method {name!r} must have fit and predict, or be a function that makes such a thing; got {method!r}"
            )
        said[name] = description(method)
    return said


def _check_client(client: Any) -> Any:
    if not all(hasattr(client, name) for name in ("submit", "nthreads", "cancel")):
        raise TypeError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    return client


def _check_jobs(n_jobs: Any) -> int | None:
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a number of processes, -1 for every core, or None; got {n_jobs!r}")
    return int(n_jobs) if n_jobs > 0 else max(1, _cores() + 1 + int(n_jobs))


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _progress(wanted: bool) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    shown = wanted and (console.is_terminal or console.is_jupyter)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not shown)
