"""Files that only grow, so that a process may be killed at any moment and lose nothing but its last record.

A record is ::

    magic (4) · first (8) · size (8) · length (8) · CRC of payload (4) · CRC of what precedes (4) · payload

and is on the disk before the next is begun: a crash can only cut the last one. Whatever else does not fit its checksums
is damage. What `first`, `size` and the payload mean is up to the owner of the file. Beside such files lies a header,
written once, whole or not at all, and a lock against a second writer.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

_RECORD = struct.Struct("<4sQQQI")
_CHECK = struct.Struct("<I")
_HEAD = _RECORD.size + _CHECK.size


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
    text = json.dumps({"checksum": digest(whole), **whole}, indent=1)
    temporary = path.with_name(path.name + ".new")
    with open(temporary, "wb") as file:
        file.write(text.encode())
        sync(file)
    os.replace(temporary, path)
    _sync_folder(path.parent)


def read_header(path: Path, form: str, what: str) -> dict[str, Any]:
    """Return what a header says; a damaged one is refused. `what` it is the header of is for the message."""
    damaged = f"{path} is damaged ({{}}): the {what} cannot be identified; restore the file, or begin another store"
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(damaged.format(f"not JSON: {error}")) from error
    if not isinstance(content, dict) or "format" not in content:
        raise ValueError(damaged.format(f"it is no header of a {what}"))
    if content["format"] != form:
        raise ValueError(
            f"{path} was written in the format {content['format']!r}; this release reads {form!r}: resume with "
            f"the release that wrote it ({content.get('versions', {}).get('bayessel', 'unknown')})"
        )
    said = content.pop("checksum", None)
    if said != digest(content):
        raise ValueError(damaged.format(f"its checksum is {said}, its content has {digest(content)}"))
    return content


class Lock:
    """A lock on a file that the system lets go of when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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


def digest(content: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that name what can be written as JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def sync(file: BinaryIO) -> None:
    """Wait until everything written is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
