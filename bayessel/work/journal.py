"""Files that only grow, so that a process may be killed at any moment and lose nothing but its last record.

A record is ::

    magic (4) · first (8) · size (8) · length (8) · CRC of payload (4) · CRC of what precedes (4) · payload

and is on the disk before the next is begun: a crash can only cut the last one. Whatever else does not fit its checksums
is damage. What `first`, `size` and the payload mean is up to the owner of the file. Beside such files lies a header,
written once, whole or not at all, and a lock against a second writer. Symbolic links among them are refused: whoever
may write to the folder could point them at files of others.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import uuid
import warnings
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bayessel._files import sync, write_whole
from bayessel.errors import DamagedFileError, StoreWarning

_RECORD = struct.Struct("<4sQQQI")
_CHECK = struct.Struct("<I")
_HEAD = _RECORD.size + _CHECK.size
#: files of every folder of journals
_COMMON = ("lock", "header.json")


class Record(NamedTuple):
    """A whole record, and the byte at which it ends."""

    first: int
    size: int
    payload: memoryview
    stop: int


class Tear(NamedTuple):
    """Where records stop to make sense.

    Attributes
    ----------
    at : int
        Byte of the record that is torn.
    first, size : int, or None
        What its head says, if its head is whole.
    inside : bool
        Something whole lies behind it: that was no crash.
    """

    at: int
    first: int | None
    size: int | None
    inside: bool


def packed(magic: bytes, first: int, size: int, payload: bytes) -> bytes:
    """Return a record."""
    head = _RECORD.pack(magic, first, size, len(payload), zlib.crc32(payload))
    return head + _CHECK.pack(zlib.crc32(head)) + payload


def records(data: bytes, at: int, magic: bytes) -> tuple[list[Record], Tear | None]:
    """Return the whole records from byte `at` on, and where they are torn, if they are."""
    found: list[Record] = []
    while at < len(data):
        head = _head(data, at, magic)
        if head is None:
            return found, Tear(at, None, None, _record_behind(data, at + 1, magic))
        first, size, length, check = head
        stop = at + _HEAD + length
        payload = memoryview(data)[at + _HEAD : stop]
        if stop > len(data) or zlib.crc32(payload) != check:
            return found, Tear(at, first, size, stop < len(data))
        found.append(Record(first, size, payload, stop))
        at = stop
    return found, None


def _head(data: bytes, at: int, magic: bytes) -> tuple[int, int, int, int] | None:
    """First, size, length and checksum of the payload, if this is the head of a record."""
    if at + _HEAD > len(data):
        return None
    mark, first, size, length, of_payload = _RECORD.unpack_from(data, at)
    (check,) = _CHECK.unpack_from(data, at + _RECORD.size)
    if mark != magic or check != zlib.crc32(data[at : at + _RECORD.size]):
        return None
    return first, size, length, of_payload


def _record_behind(data: bytes, at: int, magic: bytes) -> bool:
    while (at := data.find(magic, at)) >= 0:
        if _head(data, at, magic) is not None:
            return True
        at += 1
    return False


def write_header(path: Path, form: str, content: Mapping[str, Any]) -> None:
    """Write a header; it is on the disk, whole, when this returns."""
    whole = {"format": form, **content}
    write_whole(path, json.dumps({"checksum": digest(whole), **whole}, indent=1).encode())


def read_header(path: Path, form: str, what: str) -> dict[str, Any]:
    """Return what a header says; a damaged one is refused. `what` it is the header of is for the message."""
    damaged = f"{path} is damaged ({{}}): the {what} cannot be identified; restore the file, or begin another store"
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise DamagedFileError(damaged.format(f"not JSON: {error}")) from error
    if not isinstance(content, dict) or "format" not in content:
        raise DamagedFileError(damaged.format(f"it is no header of a {what}"))
    if content["format"] != form:
        raise ValueError(
            f"{path} was written in the format {content['format']!r}; this release reads {form!r}: resume with "
            f"the release that wrote it ({content.get('versions', {}).get('bayessel', 'unknown')})"
        )
    said = content.pop("checksum", None)
    if said != digest(content):
        raise DamagedFileError(damaged.format(f"its checksum is {said}, its content has {digest(content)}"))
    return content


class FileLock:
    """A lock on a file that the system lets go of when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self.descriptor = _opened(path, os.O_RDWR | os.O_CREAT)
        try:
            _lock(self.descriptor)
        except OSError:
            os.close(self.descriptor)
            raise ValueError(
                f"the store {path.parent} is in use by another run; wait for it, or give this one another store"
            ) from None

    def release(self) -> None:
        """Let go."""
        os.close(self.descriptor)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Journal:
    """One file that only grows: the mark of its owner, then records.

    Parameters
    ----------
    path : Path
        Of the file.
    mark : bytes
        What it begins with; a file that begins otherwise is not this one.
    magic : bytes
        Four bytes that begin each record.
    """

    def __init__(self, path: Path, mark: bytes, magic: bytes) -> None:
        self.path, self.mark, self.magic = path, mark, magic
        self._end = len(mark)
        self._file: BinaryIO | None = None
        self._waiting = False

    def create(self) -> None:
        """Begin the file."""
        write_whole(self.path, self.mark)

    def load(
        self,
        alien: Callable[[bytes], str],
        lost: Callable[[Tear], str] | None = None,
        damaged: Callable[[Tear], str] = lambda tear: "",
    ) -> list[Record]:
        """Return the whole records.

        Parameters
        ----------
        alien : callable
            From the bytes of a file that begins with another mark: what to say of it.
        lost : callable, optional
            From a torn end: what is lost with it, for a warning; without it nobody is warned.
        damaged : callable
            From damage amid the records: where it is, for the message.
        """
        if not self.path.exists():
            raise DamagedFileError(
                f"{self.path} is missing, and with it what it held; restore the file, or begin another store"
            )
        data = self.path.read_bytes()
        if data[: len(self.mark)] != self.mark:
            raise DamagedFileError(f"{self.path} {alien(data)}: restore the file, or begin another store")
        found, tear = records(data, len(self.mark), self.magic)
        if tear is not None and tear.inside:
            raise DamagedFileError(
                f"{self.path} is damaged at byte {tear.at}, in the middle of its records{damaged(tear)}: what follows "
                "cannot be trusted; restore the file, or begin another store"
            )
        if tear is not None and lost is not None:
            warnings.warn(
                f"the last record of {self.path} was cut short or damaged, as by a crash: {lost(tear)}; everything "
                "before is kept",
                StoreWarning,
                stacklevel=5,
            )
        self._end = found[-1].stop if found else len(self.mark)
        return found

    def load_counted(self, alien: Callable[[bytes], str], lost: Callable[[Tear], str] | None = None) -> list[Record]:
        """Return the whole records of a journal that counts them from nought."""
        found = self.load(alien, lost)
        for number, record in enumerate(found):
            if record.first != number:
                raise DamagedFileError(
                    f"{self.path} goes from record {number - 1} on to {record.first}: records are missing or repeated; "
                    "restore the file, or begin another store"
                )
        return found

    def open(self) -> None:
        """Make ready to append behind the last whole record that `load` found; what is torn behind it is cut off."""
        # without a buffer, in which a record that cannot be written would wait for a second chance
        file = os.fdopen(_opened(self.path, os.O_RDWR), "r+b", buffering=0)
        if os.fstat(file.fileno()).st_size > self._end:
            file.truncate(self._end)
            sync(file)
        file.seek(self._end)
        self._file = file

    def append(self, first: int, size: int, payload: bytes, durable: bool = True) -> None:
        """Write a record; it is on the disk when this returns, unless it need not be `durable`.

        One that cannot be written leaves nothing behind.
        """
        assert self._file is not None
        data = packed(self.magic, first, size, payload)
        rest, end = memoryview(data), self._end
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            self._end = end + len(data)
            if durable:
                sync(self._file)
            else:
                self._waiting = True
        except BaseException as error:
            # after Ctrl-C while waiting for the disk the record is whole, and readers may have seen it
            if rest or isinstance(error, OSError):
                self._end = end
                with suppress(OSError):  # part of a record would be found torn, which is well, too
                    self._file.truncate(end)
                    self._file.seek(end)
            if isinstance(error, OSError):
                said = f"{error.strerror}; what was stored before is kept, and the same call goes on from there"
                raise OSError(error.errno, said, str(self.path)) from error
            raise

    @property
    def end(self) -> int:
        """Bytes of whole records, the mark included."""
        return self._end

    def close(self) -> None:
        """Close the file, with everything on the disk."""
        if self._file is not None:
            file, self._file = self._file, None
            try:
                if self._waiting:
                    sync(file)
            finally:
                file.close()


class JournalFolder:
    """A folder of a header and journals, locked against a second writer while open.

    Parameters
    ----------
    folder : path
        Made if it does not exist. A folder with other files in it (hidden ones aside), and no header, is refused.
    form : str
        Name of the format, in the header.
    what : str
        What is kept there, for messages.
    ours : callable
        Whether a file of that name is a journal of such a folder.
    """

    def __init__(self, folder: str | os.PathLike[str], form: str, what: str, ours: Callable[[str], bool]) -> None:
        self.folder, self._form, self._what = Path(folder), form, what
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"store must be a folder, and {self.folder} is a file; give another name")
        self.folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in self.folder.iterdir() if not path.name.startswith("."))
        strangers = [name for name in there if name not in _COMMON and not ours(name)]
        if strangers and not self.begun:
            raise ValueError(
                f"the folder {self.folder} holds other files ({', '.join(strangers[:3])}{', …' * (len(strangers) > 3)})"
                f" and no {what}; give the store a folder of its own"
            )
        for name in there:
            if name not in strangers:
                refuse_link(self.folder / name)
        self._lock = FileLock(self.folder / "lock")

    @property
    def begun(self) -> bool:
        """Whether there is a header."""
        return (self.folder / "header.json").exists()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """File descriptors that child processes must not keep."""
        return (self._lock.descriptor,)

    def header(self) -> dict[str, Any]:
        """Return what the header says; a damaged one is refused."""
        return read_header(self.folder / "header.json", self._form, self._what)

    def begin(
        self, content: Mapping[str, Any], make: Callable[[uuid.UUID], list[Journal]], holds: str
    ) -> list[Journal]:
        """Begin: journals first, then the header, with which the folder is complete.

        `make` is given the identity of the new store and returns its journals; `holds` says what such journals hold.
        """
        identity = uuid.uuid4()
        journals = make(identity)
        for journal in journals:
            # records are written after the header only: it was there once
            if journal.path.exists() and journal.path.stat().st_size > len(journal.mark):
                raise ValueError(
                    f"{journal.path} holds {holds}, but header.json is missing from {self.folder}: the {self._what} "
                    "cannot be identified; restore the header, or begin another store"
                )
        for journal in journals:
            journal.create()
        write_header(self.folder / "header.json", self._form, {"identity": identity.hex, **content})
        return journals

    def release(self) -> None:
        """Let go of the lock."""
        self._lock.release()


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link."""
    if path.is_symlink():
        raise ValueError(
            f"{path} is a symbolic link: a store keeps its own files, and does not write to those of others; remove "
            "the link, or give another folder"
        )


def _opened(path: Path, flags: int) -> int:
    """Open a file of ours, never through a link."""
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o644)
    except OSError:
        refuse_link(path)
        raise


def digest(content: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that name what can be written as JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
