"""Files written whole or not at all, and files that prove on reading that they are what was written.

A file is built in memory, written beside its place, brought to the disk and renamed. Whatever happens on the way (a
full disk, Ctrl-C, loss of power), its place holds the old file or the new one. A sealed file ends with a checksum of
all before it; formats that know their own length, such as HDF5, do not look there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import IO

from bayessel.errors import DamagedFileError

_MARK = b"\nbayessel sha256 "
_SEAL = len(_MARK) + hashlib.sha256().digest_size


def write_whole(path: str | Path, content: bytes) -> Path:
    """Write a file; return its path.

    Raises
    ------
    OSError
        With the reason; what was at `path` before is as it was.
    """
    place = Path(path)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(6)}")
    try:
        # O_EXCL follows no link, and rename replaces a link instead of what it points to
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with contextlib.suppress(OSError):
                os.chmod(beside, stat.S_IMODE(os.stat(place).st_mode))
            rest = memoryview(content)
            while len(rest):
                rest = rest[os.write(descriptor, rest) :]
            sync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, place)
    except OSError as error:
        _remove(beside)
        kept = "; the file there before is as it was" if place.exists() else ""
        raise OSError(error.errno, f"{place} was not written ({error.strerror or error}){kept}") from error
    except BaseException:
        _remove(beside)
        raise
    sync_folder(place.parent)
    return place


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def sync(file: int | IO[bytes]) -> None:
    """Wait until everything written is on the disk: to a file descriptor, or to a file without a buffer."""
    os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some file systems cannot; the file itself is on the disk
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)


def sealed(content: bytes) -> bytes:
    """Return the content with a checksum of it at its end."""
    return content + _MARK + hashlib.sha256(content).digest()


def unsealed(path: str | Path, what: str) -> bytes:
    """Read a sealed file: the content, if the checksum at its end fits it.

    Parameters
    ----------
    path
        The file.
    what
        What it should hold, for the message.

    Raises
    ------
    DamagedFileError
        A ``ValueError``: the checksum is missing, or another one.
    """
    data = Path(path).read_bytes()
    content, seal = data[:-_SEAL], data[-_SEAL:]
    if not seal.startswith(_MARK):
        raise DamagedFileError(
            f"{path} holds no {what} that can be trusted: no checksum is at its end, so it was cut short, damaged, or "
            "written by something else; take a copy that is whole"
        )
    if hashlib.sha256(content).digest() != seal[len(_MARK) :]:
        raise DamagedFileError(
            f"{path} is damaged: its {len(content)} bytes do not have the checksum they were written with; take a copy "
            "that is whole"
        )
    return content


def netcdf(tree: object) -> bytes:
    """Return an xarray DataTree as a NetCDF file in memory: the HDF5 library never meets a full disk."""
    return bytes(tree.to_netcdf(engine="h5netcdf"))  # type: ignore[attr-defined]
