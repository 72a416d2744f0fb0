"""What is known of a study, in a folder (`bayessel.work.result_store.ResultStore`) or only here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from bayessel._check import FloatArray
from bayessel.diagnostics.delve._describe import difference
from bayessel.diagnostics.delve._losses import LOSSES
from bayessel.diagnostics.delve._task import Attribute, Task
from bayessel.diagnostics.delve._unit import Outcome, StudyUnit
from bayessel.errors import DataMismatchError
from bayessel.work.result_store import ResultStore, read_results

_WHAT = "study"


@dataclass(frozen=True, eq=False)
class TaskFacts:
    """What is kept of a task: everything but the data that methods learn from.

    Attributes
    ----------
    targets : array (I, J), or (J,)
        Of the test cases, which the losses belong to.
    """

    name: str
    prototask: str
    size: int
    design: str
    n_instances: int
    n_cases: int
    n_inputs: int
    hash: str
    seed: int | None
    losses: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    targets: FloatArray = field(repr=False)

    @classmethod
    def of(cls, task: Task) -> TaskFacts:
        """Facts of a task."""
        return cls(
            name=task.name,
            prototask=task.prototask.name,
            size=task.size,
            design=task.design,
            n_instances=len(task),
            n_cases=task.n_cases,
            n_inputs=task.prototask.X.shape[1],
            hash=task.hash,
            seed=task.seed,
            losses=task.losses,
            attributes=task.attributes,
            targets=task.prototask.y[task.test],
        )


#: losses that were asked for, by method and task
Asked = dict[tuple[str, str], tuple[str, ...]]


@dataclass
class StudyContents:
    """All that is known of a study."""

    seed: int = 0
    tasks: dict[str, TaskFacts] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    outcomes: dict[StudyUnit, Outcome] = field(default_factory=dict)
    asked: Asked = field(default_factory=dict)

    def enter(self, records: Iterable[Mapping[str, Any]]) -> Self:
        """Take over records: of a task, a method, what was asked for, or a unit."""
        for record in records:
            if "task" in record:
                self.tasks[record["task"]["name"]] = TaskFacts(**record["task"])
            elif "method" in record:
                self.methods[record["method"]] = record["is"]
            elif "asked" in record:
                self.asked |= record["asked"]
            else:
                self.outcomes[StudyUnit(*record["unit"])] = Outcome(**record["outcome"])
        return self


class StudyStore:
    """A study that grows, in a folder if there is one.

    Parameters
    ----------
    folder : str, path or None
        Made if it does not exist; one with other files in it is refused, and locked against a second writer.
    seed : int
        Of the study.
    durable : bool
        Every record is on the disk before the next; else all are when the store is closed.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, seed: int, durable: bool = True) -> None:
        self._results: ResultStore | None = None
        self.contents = StudyContents(seed)
        if folder is not None:
            self._results = ResultStore(folder, _WHAT, {"random_state": seed}, durable=durable)
            self.contents.enter(self._results.values.values())

    def begin(self, tasks: Iterable[TaskFacts], methods: Mapping[str, str], asked: Asked) -> None:
        """Note what is asked of whom; other tasks or methods than are known under a name are refused before that."""
        known, tasks = self.contents, list(tasks)
        for task in tasks:
            if task.name in known.tasks and known.tasks[task.name].hash != task.hash:
                raise DataMismatchError(
                    f"the store has other data, or another division into instances, under the name {task.name!r}: its "
                    f"hash is {known.tasks[task.name].hash} there and {task.hash} here; give the same data and seed, "
                    "another name, or another store"
                )
        for name, said in methods.items():
            if name in known.methods and known.methods[name] != said:
                raise ValueError(
                    f"the store has another method under the name {name!r}: {difference(known.methods[name], said)}; "
                    "give the same settings, another name, or another store"
                )
        for task in tasks:
            if task.name not in known.tasks:
                self._note(f"task {task.name}", {"task": vars(task)})
        for name, said in methods.items():
            if name not in known.methods:
                self._note(f"method {name}", {"method": name, "is": said})
        merged = {pair: _joined(known.asked.get(pair, ()), losses) for pair, losses in asked.items()}
        if any(known.asked.get(pair) != losses for pair, losses in merged.items()):
            self._note("asked", {"asked": known.asked | merged})

    def has(self, unit: StudyUnit, losses: tuple[str, ...], retry: bool) -> bool:
        """Whether a unit is done."""
        outcome = self.contents.outcomes.get(unit)
        return outcome is not None and not (retry and outcome.failures) and outcome.covers(losses)

    def add(self, unit: StudyUnit, outcome: Outcome) -> None:
        """Note what became of a unit; it is on the disk when this returns."""
        if outcome.interrupted and not outcome.error:
            outcome.error, outcome.losses = "the fit was interrupted", {}
        self._note(f"unit {unit.key}", {"unit": tuple(unit), "outcome": vars(outcome)})

    def close(self) -> None:
        """Close the file and let go of the lock."""
        if self._results is not None:
            self._results.close()

    def _note(self, key: str, record: Mapping[str, Any]) -> None:
        if self._results is not None:
            self._results.put(key, record)
        self.contents.enter([record])


def read(folder: str | os.PathLike[str]) -> StudyContents:
    """Read a store, which a study may be writing to."""
    settings, records = read_results(folder, _WHAT)
    return StudyContents(settings["random_state"]).enter(records.values())


def _joined(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(loss for loss in LOSSES if loss in some or loss in more)
