"""A study on disk: a folder with a header and one file that only grows.

``study.log`` begins with the identity of the store; its records (`bayessel._journal`), counted from nought, say in
their payload, a line of JSON and raw numbers, what a task is, what a method is, or what became of a method on an
instance. The last word on a unit holds. A process may be killed at any moment: units are on the disk as they finish.
"""

from __future__ import annotations

import json
import os
import uuid
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bayessel._check import FloatArray
from bayessel._journal import Lock, packed, read_header, records, sync, write_header
from bayessel.diagnostics.delve._losses import LOSSES
from bayessel.diagnostics.delve._task import Attribute, Task
from bayessel.diagnostics.delve._unit import Outcome, Unit
from bayessel.errors import StoreWarning

FORMAT = "bayessel study 1"
_MAGIC = b"bst1"
_FIRST = b"bstudy01"
_NAMED = len(_FIRST) + 16
_FILES = ("lock", "header.json", "header.json.new", "study.log")
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


class Store:
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
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"store must be a folder, and {self.folder} is a file; give another name")
        self.folder.mkdir(parents=True, exist_ok=True)
        strangers = sorted(path.name for path in self.folder.iterdir() if path.name not in _FILES)
        if strangers:
            raise ValueError(
                f"the folder {self.folder} holds other files ({', '.join(strangers[:3])}{', …' * (len(strangers) > 3)})"
                "; give the study a folder of its own"
            )
        self._lock = Lock(self.folder / "lock")
        try:
            self._open(seed)
        except BaseException:
            self._lock.release()
            raise

    def _open(self, seed: int) -> None:
        path = self.folder / "study.log"
        self._next = 0
        if not (self.folder / "header.json").exists():
            if path.exists() and path.stat().st_size > _NAMED:
                raise ValueError(
                    f"{path} holds results, but header.json is missing from {self.folder}: the study cannot be "
                    "identified; restore the header, or begin another store"
                )
            identity = uuid.uuid4()
            with open(path, "wb") as file:
                file.write(_FIRST + identity.bytes)
                sync(file)
            begun = {"identity": identity.hex, "seed": seed, "versions": _versions()}
            write_header(self.folder / "header.json", FORMAT, begun)
            self.contents = Contents(seed)
        else:
            header = read_header(self.folder / "header.json", FORMAT, "study")
            if header["seed"] != seed:
                raise ValueError(
                    f"the store {self.folder} holds a study with random_state={header['seed']}, and here it is {seed}; "
                    "pass the stored one, or another store"
                )
            if header["versions"] != _versions():
                _warn_of_versions(self.folder, header["versions"])
            self.contents, self._next, end = _read(self.folder, header)
            if end < path.stat().st_size:
                warnings.warn(
                    f"the last record of {path} was cut short or damaged, as by a crash: that unit will be done again; "
                    "everything before is kept",
                    StoreWarning,
                    stacklevel=5,
                )
                with open(path, "r+b") as file:
                    file.truncate(end)
                    sync(file)
        # without a buffer, in which a record that cannot be written would wait for a second chance
        self._file: BinaryIO = open(path, "ab", buffering=0)

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
            sync(self._file)
        finally:
            self._file.close()
            self._lock.release()

    def _append(self, line: Mapping[str, Any], arrays: list[FloatArray]) -> None:
        numbers = b"".join(np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays)
        rest = memoryview(packed(_MAGIC, self._next, 1, json.dumps(line).encode() + b"\n" + numbers))
        end = self._file.tell()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            if self.durable:
                sync(self._file)
        except BaseException as error:
            if rest or isinstance(error, OSError):
                with suppress(OSError):  # part of a record would be found torn, which is well, too
                    self._file.truncate(end)
            else:  # Ctrl-C while waiting for the disk: the record is whole, and readers may have seen it
                self._next += 1
            if isinstance(error, OSError):
                said = f"{error.strerror}; what was stored before is kept, and the same call goes on from there"
                raise OSError(error.errno, said, self._file.name) from error
            raise
        self._next += 1


def read(folder: str | os.PathLike[str]) -> Contents:
    """Read a store, which a study may be writing to."""
    where = Path(folder)
    if not (where / "header.json").is_file():
        raise ValueError(f"there is no study in {where}: it holds no header.json")
    return _read(where, read_header(where / "header.json", FORMAT, "study"))[0]


def _read(folder: Path, header: Mapping[str, Any]) -> tuple[Contents, int, int]:
    """Contents, the number of the next record, and the byte where whole records end."""
    path = folder / "study.log"
    if not path.exists():
        raise ValueError(f"{path} is missing, and with it all results; restore the file, or begin another store")
    data = path.read_bytes()
    if data[:_NAMED] != _FIRST + uuid.UUID(header["identity"]).bytes:
        raise ValueError(f"{path} does not belong to this store; restore the file, or begin another store")
    found, tear = records(data, _NAMED, _MAGIC)
    if tear is not None and tear.inside:
        raise ValueError(
            f"{path} is damaged at byte {tear.at}, in the middle of its records: what follows cannot be trusted; "
            "restore the file, or begin another store"
        )
    contents = Contents(int(header["seed"]))
    for number, record in enumerate(found):
        if record.first != number:
            raise ValueError(
                f"{path} goes from record {number - 1} on to {record.first}: records are missing or repeated; restore "
                "the file, or begin another store"
            )
        _enter(contents, bytes(record.payload))
    return contents, len(found), found[-1].stop if found else _NAMED


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
