"""Results of units in a folder: each is on the disk when its unit is done, and found again by the unit's key."""

from __future__ import annotations

import json
import os
import uuid
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bayessel.errors import DataMismatchError, StoreWarning
from bayessel.work.journal import Journal, JournalFolder, Record, Tear, read_header
from bayessel.work.json_values import dumps, from_tree, loads, to_tree

FORMAT = "bayessel results 1"
_MAGIC = b"brs1"
_FIRST = b"bresult1"
_FILE = "results.log"
_PACKAGES = ("bayessel", "numpy", "scipy", "scikit-learn")


class ResultStore[T]:
    """A folder that keeps results, locked against a second writer while open; the last result of a key holds.

    Parameters
    ----------
    folder : str or path
        Made if it does not exist.
    what : str
        What is kept there, for messages.
    settings : mapping
        What the results depend on besides the keys of units, as JSON knows it. A folder with other settings is refused.
    data : str
        Name of the data, as `bayessel._fingerprint.fingerprint` gives it. A folder with other data is refused.
    pack, unpack : callable
        From a result to numbers, text, arrays, and lists, tuples and dictionaries of these; and back.
    durable : bool
        Every result is on the disk before the next; else all are when the store is closed.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        what: str,
        settings: Mapping[str, object],
        data: str = "",
        pack: Callable[[T], object] = lambda value: value,
        unpack: Callable[..., T] = lambda value: value,
        durable: bool = True,
    ) -> None:
        self._pack, self._durable = pack, durable
        self._place = JournalFolder(folder, FORMAT, what, lambda name: name == _FILE)
        try:
            here = {"what": what, "settings": json.loads(json.dumps(settings)), "data": data, "versions": _versions()}
            self._open(here, unpack)
        except BaseException:
            self._place.release()
            raise

    def _open(self, here: dict[str, Any], unpack: Callable[..., T]) -> None:
        folder, found = self._place.folder, list[Record]()
        if self._place.begun:
            header = self._place.header()
            _check(folder, header, here)
            self._journal = _log(folder, uuid.UUID(header["identity"]))
            found = _records(self._journal, lambda tear: "that unit will be done again")
        else:
            (self._journal,) = self._place.begin(here, lambda identity: [_log(folder, identity)], "results")
        self.values, self._count = _values(found, unpack), len(found)
        self._journal.open()

    def __len__(self) -> int:
        return len(self.values)

    def get(self, key: str) -> tuple[T] | None:
        """Return the result of a unit in a tuple, or None where there is none."""
        return (self.values[key],) if key in self.values else None

    def put(self, key: str, value: T) -> None:
        """Keep a result; it is on the disk when this returns, if the store is durable."""
        payload = dumps([key, to_tree(self._pack(value))]).encode()
        end = self._journal.end
        try:
            self._journal.append(self._count, 1, payload, self._durable)
        finally:
            self._count += self._journal.end > end  # after Ctrl-C while waiting for the disk it is there, too
        self.values[key] = value

    def close(self) -> None:
        """Close the file and let go of the lock."""
        try:
            self._journal.close()
        finally:
            self._place.release()


def read_results(folder: str | os.PathLike[str], what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and all results of a store, which somebody may be writing to."""
    where = Path(folder)
    if not (where / "header.json").is_file():
        raise ValueError(f"there is no {what} in {where}: it holds no header.json")
    header = read_header(where / "header.json", FORMAT, what)
    _check_kind(where, header, what)
    found = _records(_log(where, uuid.UUID(header["identity"])))
    return header["settings"], _values(found, lambda value: value)


def _log(folder: Path, identity: uuid.UUID) -> Journal:
    return Journal(folder / _FILE, _FIRST + identity.bytes, _MAGIC)


def _records(journal: Journal, lost: Callable[[Tear], str] | None = None) -> list[Record]:
    return journal.load_counted(lambda data: "does not belong to this store", lost)


def _values[T](found: list[Record], unpack: Callable[..., T]) -> dict[str, T]:
    pairs = (loads(bytes(record.payload)) for record in found)
    return {key: unpack(from_tree(tree)) for key, tree in pairs}


def _check_kind(folder: Path, there: Mapping[str, Any], what: str) -> None:
    if there["what"] != what:
        raise ValueError(f"the store {folder} holds a {there['what']}, not a {what}; give another folder")


def _check(folder: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    _check_kind(folder, there, here["what"])
    if there["data"] != here["data"]:
        raise DataMismatchError(
            f"the store {folder} belongs to other data (fingerprints {there['data']} there, {here['data']} here); "
            "give the same data, or another store"
        )
    for name in {**there["settings"], **here["settings"]}:
        old, new = there["settings"].get(name), here["settings"].get(name)
        if old != new:
            raise ValueError(
                f"the store {folder} was begun with other settings: {name} is {old!r} there and {new!r} here; pass "
                "the stored ones, or another store"
            )
    changed = [
        f"{name} {there['versions'].get(name)} then, {now} now"
        for name, now in here["versions"].items()
        if there["versions"].get(name) != now
    ]
    if changed:
        warnings.warn(
            f"the store {folder} was begun with other versions ({'; '.join(changed)}): results that are there may "
            "differ in rounding from those that follow",
            StoreWarning,
            stacklevel=6,
        )


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}
