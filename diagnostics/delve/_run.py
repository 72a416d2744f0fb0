"""Every method on every instance: units of work, done once, in any order, by anybody."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bayessel import work
from bayessel._check import as_count, as_flag, as_seconds
from bayessel._types import SupportsSubmit
from bayessel.diagnostics.delve._describe import description
from bayessel.diagnostics.delve._losses import LOSSES, chosen_losses
from bayessel.diagnostics.delve._store import StudyStore, TaskFacts
from bayessel.diagnostics.delve._study import Study
from bayessel.diagnostics.delve._task import Task
from bayessel.diagnostics.delve._unit import MakeMethod, Method, Outcome, StudyUnit, perform
from bayessel.errors import SamplingWarning
from bayessel.work.executors import check_executor
from bayessel.work.jobs import check_jobs
from bayessel.work.progress import Progress
from bayessel.work.seeds import seed_sequence


def run(
    methods: Mapping[str, Method | MakeMethod],
    tasks: Task | Iterable[Task],
    losses: Sequence[str] = LOSSES,
    store: str | os.PathLike[str] | None = None,
    executor: SupportsSubmit | None = None,
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
    executor
        Who does the units: a ``dask.distributed.Client``, an executor of ``concurrent.futures`` or of submitit, or
        anything else with ``submit`` that returns futures; its workers need this package. None: this process, and
        processes beside it.
    n_jobs
        Processes: None takes more than one where the work is long, -1 every core. With an executor, how many units are
        given to it at a time.
    time_budget
        Seconds, or text such as "2h", after which no unit is begun; what is running is finished.
    progressbar
        Show progress on a terminal or in a notebook; never in pipes.
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
    methods meet the first instance of all tasks, then the second: the results after any time can be compared.

    Examples
    --------
    >>> import numpy as np
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
    executor, jobs = check_executor(executor), check_jobs(n_jobs)
    budget = as_seconds(time_budget)
    seed = as_count(random_state, "random_state", 0)
    retry, shown = as_flag(retry_failures, "retry_failures"), as_flag(progressbar, "progressbar")
    book = StudyStore(store, seed)
    try:
        asked = {(method, name): _wanted(task, chosen) for method in said for name, task in given.items()}
        book.begin(map(TaskFacts.of, given.values()), said, asked)
        units = _units(given, methods)
        pending = [unit for unit in units if not book.has(unit, _wanted(given[unit.task], chosen), retry)]
        done = len(units) - len(pending)
        by_key = {unit.key: unit for unit in pending}
        with Progress(shown, "comparing methods", done, done=done, budget=budget) as bar:
            report = work.run(
                [_work_unit(unit, methods[unit.method], given[unit.task], chosen, seed) for unit in pending],
                executor,
                jobs,
                budget,
                bar,
                lambda one, outcome: book.add(by_key[one.key], outcome),
                on_lost=lambda one, why: book.add(by_key[one.key], Outcome(seed_of(seed, by_key[one.key]), error=why)),
            )
        if report.interrupted and not book.contents.outcomes:
            raise KeyboardInterrupt
    finally:
        book.close()
    outcomes = {unit: book.contents.outcomes[unit] for unit in units if unit in book.contents.outcomes}
    facts = {name: book.contents.tasks[name] for name in given}
    study = Study(facts, said, outcomes, chosen, asked, seed, report.interrupted and report.remaining > 0)
    if report.out_of_time:
        warnings.warn(
            f"the time budget was over with {study.remaining} of {len(units)} units to do; the same call with the same "
            "store goes on with them",
            SamplingWarning,
            stacklevel=2,
        )
    return study


def seed_of(seed: int, unit: StudyUnit) -> int:
    """A seed for a unit, from the study's seed and its names: neither order nor company matters."""
    return int(seed_sequence(seed, *unit).generate_state(1)[0] >> 1)


def _work_unit(
    unit: StudyUnit, method: Method | MakeMethod, task: Task, losses: tuple[str, ...], seed: int
) -> work.WorkUnit[Outcome]:
    """A unit as work; its data are made when it is begun."""

    def arguments() -> tuple[Any, ...]:
        return method, task[unit.instance], _wanted(task, losses), seed_of(seed, unit)

    return work.WorkUnit(unit.key, perform, arguments, f"{unit.method} on {unit.task}")


def _units(tasks: Mapping[str, Task], methods: Mapping[str, Method | MakeMethod]) -> list[StudyUnit]:
    most = max(len(task) for task in tasks.values())
    ordered = sorted(tasks.values(), key=lambda task: task.size)
    return [
        StudyUnit(method, task.name, i) for i in range(most) for task in ordered if i < len(task) for method in methods
    ]


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
