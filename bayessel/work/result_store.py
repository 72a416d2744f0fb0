"""Results of units in a folder: each is on the disk when its unit is done, and found again by the unit's key."""

from __future__ import annotations

import json
import os
import uuid
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

from bayessel.errors import DataMismatchError, StoreWarning
from bayessel.work.journal import Journal, JournalFolder
from bayessel.work.values import dumps, from_tree, loads, to_tree

FORMAT = "bayessel results 1"
_MAGIC = b"brs1"
_FIRST = b"bresult1"
_FILE = "results.log"
_PACKAGES = ("bayessel", "numpy", "scipy")


class ResultStore:
    """A folder that keeps results, locked against a second writer while open.

    Parameters
    ----------
    folder : str or path
        Made if it does not exist.
    what : str
        What is kept there, for messages.
    settings : mapping
        What the results depend on besides the keys of units, as JSON knows it. A folder with other settings is refused.
    data : str
        Name of the data, as `bayessel.fit.fingerprint` gives it. A folder with other data is refused.
    pack, unpack : callable
        From a result to numbers, text, arrays, and lists, tuples and dictionaries of these; and back.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        what: str,
        settings: Mapping[str, Any],
        data: str,
        pack: Callable[[Any], Any] = lambda value: value,
        unpack: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self._what, self._pack, self._unpack = what, pack, unpack
        self._values: dict[str, Any] = {}
        self._place = JournalFolder(folder, FORMAT, what, lambda name: name == _FILE)
        try:
            self._open(json.loads(json.dumps(settings)), data)
        except BaseException:
            self._place.release()
            raise

    def _open(self, settings: dict[str, Any], data: str) -> None:
        here = {"what": self._what, "settings": settings, "data": data, "versions": _versions()}
        if self._place.begun:
            header = self._place.header()
            self._check(header, here)
            self._journal = self._log(uuid.UUID(header["identity"]))
            self._read()
        else:
            (self._journal,) = self._place.begin(here, lambda identity: [self._log(identity)], "results")
        self._journal.open()

    def _log(self, identity: uuid.UUID) -> Journal:
        return Journal(self._place.folder / _FILE, _FIRST + identity.bytes, _MAGIC)

    def _check(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
        folder = self._place.folder
        if there["what"] != here["what"]:
            raise ValueError(f"the store {folder} holds a {there['what']}, not a {here['what']}; give another folder")
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

    def _read(self) -> None:
        found = self._journal.load_counted(
            alien=lambda data: "does not belong to this store", lost=lambda tear: "that unit will be done again"
        )
        for record in found:
            key, tree = loads(bytes(record.payload))
            self._values[key] = self._unpack(from_tree(tree))

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> tuple[Any] | None:
        """Return the result of a unit in a tuple, or None where there is none."""
        return (self._values[key],) if key in self._values else None

    def put(self, key: str, value: Any) -> None:
        """Keep a result; it is on the disk when this returns."""
        payload = dumps([key, to_tree(self._pack(value))]).encode()
        self._journal.append(len(self._values), 1, payload)
        self._values[key] = value

    def close(self) -> None:
        """Close the file and let go of the lock."""
        try:
            self._journal.close()
        finally:
            self._place.release()


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}
