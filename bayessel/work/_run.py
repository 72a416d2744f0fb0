"""`run`: units of work, done once each, in any order, by anybody."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bayessel._types import SupportsSubmit
from bayessel.errors import SamplingWarning
from bayessel.work.clock import BudgetClock
from bayessel.work.executors import (
    ExecutorLostError,
    InProcess,
    LocalProcesses,
    UnitExecutor,
    adapted,
)
from bayessel.work.interrupts import InterruptCounter, InterruptGuard
from bayessel.work.jobs import core_count
from bayessel.work.progress import Progress
from bayessel.work.result_store import ResultStore
from bayessel.work.unit import Answer, WorkUnit, raised

#: starting processes costs about two seconds: they must save more than that
WORTH_PROCESSES = 5.0
#: seconds between two looks at Ctrl-C
_LOOK = 0.25


@dataclass
class WorkReport[T]:
    """What became of units.

    Attributes
    ----------
    values : dict of str to object
        By key: what units returned.
    lost : dict of str to str
        By key: why there is no value though the unit was tried: its process ended by itself, twice, or it cannot be
        pickled.
    interrupted : bool
        Ctrl-C came: whoever has more to do should end, too.
    out_of_time : bool
        The budget ended the work before all units were begun.
    remaining : int
        Units that were not tried to their end.
    seconds : float
        It took.
    """

    values: dict[str, T] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    out_of_time: bool = False
    remaining: int = 0
    seconds: float = 0.0


def run[T](
    units: Iterable[WorkUnit[T]],
    executor: SupportsSubmit | LocalProcesses | None = None,
    n_jobs: int | None = None,
    budget: float | None = None,
    progress: bool | Progress = True,
    on_result: Callable[[WorkUnit[T], T], object] | None = None,
    *,
    on_lost: Callable[[WorkUnit[T], str], object] | None = None,
    store: ResultStore[T] | None = None,
    what: str = "working",
) -> WorkReport[T]:
    """Do units of work; what is done when Ctrl-C or the budget ends it is kept.

    Parameters
    ----------
    units : iterable of WorkUnit
        With different keys. They are begun in this order and may end in any.
    executor : optional
        Who does them: a ``dask.distributed.Client``, an executor of ``concurrent.futures`` or of submitit, or anything
        else with ``submit`` that returns futures. None: this process, and processes beside it.
    n_jobs : int, optional
        How many at the same time. Without an executor these are processes: None takes more than one where the work is
        known to be long, -1 every core. With one, how many units are given to it at a time.
    budget : float, optional
        Seconds after which no unit is begun; those that are running are finished.
    progress : bool or Progress
        Show a bar, or go on with one.
    on_result : callable, optional
        Called here as ``on_result(unit, value)`` when a unit is done, in the order in which they end.
    on_lost : callable, optional
        Called as ``on_lost(unit, reason)`` for a unit that has no value, see `WorkReport.lost`.
    store : ResultStore, optional
        Units that are in it are not done again; others enter it as they are done.
    what : str
        What the progress bar calls the work.

    Returns
    -------
    WorkReport

    Raises
    ------
    Exception
        What a unit raised. Units that ended before it have been reported by `on_result`, and are in the store.

    Warns
    -----
    SamplingWarning
        The executor broke down. What it had not finished is done by processes of this machine.

    Examples
    --------
    >>> from bayessel.work import WorkUnit
    >>> report = run([WorkUnit(f"square of {k}", pow, (k, 2)) for k in range(3)], progress=False)
    >>> report.values["square of 2"], report.interrupted
    (4, False)
    """
    pending = deque(units)
    if isinstance(progress, Progress):
        progress.expect(len(pending))
        return _Run(n_jobs, budget, progress, on_result, on_lost, store).do(pending, executor)
    with Progress(progress, what, len(pending), budget=budget) as bar:
        return _Run(n_jobs, budget, bar, on_result, on_lost, store).do(pending, executor)


class _Run[T]:
    """Units that wait, units that are given out, and what became of the others."""

    def __init__(
        self,
        n_jobs: int | None,
        budget: float | None,
        progress: Progress,
        on_result: Callable[[WorkUnit[T], T], object] | None,
        on_lost: Callable[[WorkUnit[T], str], object] | None,
        store: ResultStore[T] | None,
    ) -> None:
        self.jobs, self.clock, self.progress = n_jobs, BudgetClock(budget), progress
        self.on_result, self.on_lost, self.store = on_result, on_lost, store
        self.report = WorkReport[T]()
        self._flying: dict[int, WorkUnit[T]] = {}
        self._begun = 0

    def do(self, pending: deque[WorkUnit[T]], executor: SupportsSubmit | LocalProcesses | None) -> WorkReport[T]:
        """Do the units; Ctrl-C ends it with what is done."""
        with InterruptCounter() as interrupts:
            # undecided: this process, until the work is known to be long
            undecided = executor is None and self.jobs is None
            jobs = core_count() if self.jobs is None else self.jobs
            if executor is not None:
                doer: UnitExecutor = adapted(executor, self.jobs)
            else:
                doer = InProcess(interrupts) if undecided or jobs == 1 else LocalProcesses(jobs)
            try:
                with InterruptGuard() as guard:
                    while (pending or self._flying) and not interrupts.count:
                        try:
                            self._give_out(doer, pending)
                            if not self._flying:
                                break
                            found = doer.collect(_LOOK)
                            for number, answer in sorted(found, key=lambda one: one[1].kind == "error"):
                                self._enter(self._flying.pop(number), answer)
                        except ExecutorLostError as error:
                            pending.extendleft(reversed(self._flying.values()))
                            self._flying.clear()
                            doer = self._replaced(doer, error, len(pending), jobs)
                        if undecided and self._pays(len(pending), jobs):
                            doer, undecided = LocalProcesses(min(jobs, len(pending))), False
                interrupts.count += guard.interrupted  # the third, or from code that `on_result` calls
            finally:
                doer.close()
            self.report.remaining = len(pending) + len(self._flying)
            self.report.interrupted = interrupts.count > 0
            self.report.out_of_time = self.report.remaining > 0 and not self.report.interrupted
        self.report.seconds = self.clock.spent()
        return self.report

    def _give_out(self, doer: UnitExecutor, pending: deque[WorkUnit[T]]) -> None:
        """Give out as many units as can be taken; those that are stored are entered at once."""
        while pending and self.clock.left() > 0.0:
            stored = None if self.store is None else self.store.get(pending[0].key)
            if stored is not None:
                self._note(pending.popleft(), stored[0])
                continue
            if doer.room() < 1:
                return
            unit, self._begun = pending.popleft(), self._begun + 1
            self._flying[self._begun] = unit
            doer.submit(self._begun, unit)

    def _enter(self, unit: WorkUnit[T], answer: Answer) -> None:
        if answer.kind == "error":
            raise raised(answer, f"the unit {unit.label or unit.key!r}")
        if answer.kind == "value":
            if self.store is not None:
                self.store.put(unit.key, answer.value)
            self._note(unit, answer.value)
        else:
            self.report.lost[unit.key] = answer.text
            if self.on_lost is not None:
                self.on_lost(unit, answer.text)
            self.progress.advance(unit.label or None)

    def _note(self, unit: WorkUnit[T], value: T) -> None:
        self.report.values[unit.key] = value
        if self.on_result is not None:
            self.on_result(unit, value)
        self.progress.advance(unit.label or None)

    def _pays(self, rest: int, jobs: int) -> bool:
        """Whether processes would save more than it costs to start them."""
        if not self._begun or self._flying or jobs < 2 or rest < 2:
            return False
        return self.clock.spent() / self._begun * rest * (1 - 1 / jobs) > WORTH_PROCESSES

    def _replaced(self, doer: UnitExecutor, error: Exception, rest: int, jobs: int) -> UnitExecutor:
        doer.close()
        warnings.warn(
            f"{error}; {rest} units are left, and are done by processes of this machine", SamplingWarning, stacklevel=6
        )
        return LocalProcesses(max(1, min(jobs, rest)))
