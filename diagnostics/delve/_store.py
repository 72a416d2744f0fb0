"""A study on disk: a folder with a header and one file that only grows.

``study.log`` begins with the identity of the store; its records (`bayessel.work.journal`), counted from nought, say in
their payload, a line of JSON and raw numbers, what a task is, what a method is, or what became of a method on an
instance. The last word on a unit holds. A process may be killed at any moment: units are on the disk as they finish.
"""

from __future__ import annotations

import json
import os
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.diagnostics.delve._losses import LOSSES
from bayessel.diagnostics.delve._task import Attribute, Task
from bayessel.diagnostics.delve._unit import Outcome, Unit
from bayessel.errors import StoreWarning
from bayessel.work.journal import Journal, JournalFolder, Tear, read_header

FORMAT = "bayessel study 1"
_MAGIC = b"bst1"
_FIRST = b"bstudy01"
_FILE = "study.log"
_PACKAGES = ("bayessel", "numpy", "scipy", "scikit-learn")


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
class Contents:
    """All that is known of a study."""

    seed: int = 0
    tasks: dict[str, TaskFacts] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    outcomes: dict[Unit, Outcome] = field(default_factory=dict)
    asked: Asked = field(default_factory=dict)


class StudyStore:
    """A study's folder, locked against a second writer while open.

    Parameters
    ----------
    folder : str or path
        Made if it does not exist; one with other files in it is refused.
    seed : int
        Of the study.
    durable : bool
        Every record is on the disk before the next; else all are when the store is closed.
    """

    def __init__(self, folder: str | os.PathLike[str], seed: int, durable: bool = True) -> None:
        self.durable = durable
        self._place = JournalFolder(folder, FORMAT, "study", lambda name: name == _FILE)
        self.folder = self._place.folder
        try:
            self._open(seed)
        except BaseException:
            self._place.release()
            raise

    def _open(self, seed: int) -> None:
        if not self._place.begun:
            begun = {"seed": seed, "versions": _versions()}
            (self._journal,) = self._place.begin(begun, lambda identity: [_log(self.folder, identity)], "results")
            self.contents, self._next = Contents(seed), 0
        else:
            header = self._place.header()
            if header["seed"] != seed:
                raise ValueError(
                    f"the store {self.folder} holds a study with random_state={header['seed']}, and here it is {seed}; "
                    "pass the stored one, or another store"
                )
            if header["versions"] != _versions():
                _warn_of_versions(self.folder, header["versions"])
            self._journal = _log(self.folder, uuid.UUID(header["identity"]))
            self.contents, self._next = _read(self._journal, header, lambda tear: "that unit will be done again")
        self._journal.open()

    def add_task(self, facts: TaskFacts) -> None:
        """Note a task."""
        line = {name: value for name, value in vars(facts).items() if name != "targets"}
        self._append({"task": line, "shape": list(facts.targets.shape)}, [facts.targets])
        self.contents.tasks[facts.name] = facts

    def add_method(self, name: str, said: str) -> None:
        """Note a method."""
        self._append({"method": name, "is": said}, [])
        self.contents.methods[name] = said

    def ask(self, asked: Asked) -> None:
        """Note what is to be done, if that is news."""
        merged = {pair: _joined(self.contents.asked.get(pair, ()), losses) for pair, losses in asked.items()}
        news = {pair: losses for pair, losses in merged.items() if self.contents.asked.get(pair) != losses}
        if news:
            self._append({"asked": [[*pair, list(losses)] for pair, losses in news.items()]}, [])
            self.contents.asked |= news

    def add(self, unit: Unit, outcome: Outcome) -> None:
        """Note what became of a unit; it is on the disk when this returns."""
        line = asdict(outcome) | {"losses": list(outcome.losses)}
        self._append({"unit": list(unit), "outcome": line}, list(outcome.losses.values()))
        self.contents.outcomes[unit] = outcome

    def close(self) -> None:
        """Close the file and let go of the lock."""
        try:
            self._journal.close()
        finally:
            self._place.release()

    def _append(self, line: Mapping[str, Any], arrays: list[FloatArray]) -> None:
        numbers = b"".join(np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays)
        end = self._journal.end
        try:
            self._journal.append(self._next, 1, json.dumps(line).encode() + b"\n" + numbers, self.durable)
        finally:
            self._next += self._journal.end > end


def read(folder: str | os.PathLike[str]) -> Contents:
    """Read a store, which a study may be writing to."""
    where = Path(folder)
    if not (where / "header.json").is_file():
        raise ValueError(f"there is no study in {where}: it holds no header.json")
    header = read_header(where / "header.json", FORMAT, "study")
    return _read(_log(where, uuid.UUID(header["identity"])), header)[0]


def _log(folder: Path, identity: uuid.UUID) -> Journal:
    return Journal(folder / _FILE, _FIRST + identity.bytes, _MAGIC)


def _read(
    journal: Journal, header: Mapping[str, Any], lost: Callable[[Tear], str] | None = None
) -> tuple[Contents, int]:
    """Contents, and the number of the next record."""
    found = journal.load_counted(lambda data: "does not belong to this store", lost)
    contents = Contents(int(header["seed"]))
    for record in found:
        _enter(contents, bytes(record.payload))
    return contents, len(found)


def _enter(contents: Contents, payload: bytes) -> None:
    cut = payload.index(b"\n")
    line = json.loads(payload[:cut])
    numbers = np.frombuffer(payload, dtype="<f8", offset=cut + 1).astype(np.float64)
    if "task" in line:
        said = line["task"] | {"losses": tuple(line["task"]["losses"])}
        contents.tasks[said["name"]] = TaskFacts(**said, targets=numbers.reshape(line["shape"]))
    elif "method" in line:
        contents.methods[line["method"]] = line["is"]
    elif "asked" in line:
        contents.asked |= {(method, task): tuple(losses) for method, task, losses in line["asked"]}
    else:
        method, task, instance = line["unit"]
        names = line["outcome"]["losses"]
        parts = np.split(numbers, len(names)) if names else []
        losses = dict(zip(names, parts, strict=True))
        contents.outcomes[Unit(method, task, instance)] = Outcome(**line["outcome"] | {"losses": losses})


def _joined(some: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(loss for loss in LOSSES if loss in some or loss in more)


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}


def _warn_of_versions(folder: Path, there: Mapping[str, str]) -> None:
    here = _versions()
    changed = [f"{name} {there.get(name)} then, {here[name]} now" for name in here if there.get(name) != here[name]]
    warnings.warn(
        f"the store {folder} was begun with other versions ({'; '.join(changed)}): methods may differ between the "
        "units that are there and those that follow",
        StoreWarning,
        stacklevel=6,
    )
