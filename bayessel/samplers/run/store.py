"""A run on disk: a folder with a header and one append-only file of records per chain.

``header.json`` says what the run is (model, data, seed, steps, …) and is written once. ``chain-<k>.log`` begins with
the identity of the store and the number of the chain; each record after it (`bayessel._journal`) holds a block, first
draw and number of draws in its head: draws, statistics, the position after it, from which the chain goes on. A crash
can only cut the last record, which is then left out and sampled again. Anything else that does not fit its checksums is
damage, and is refused: what follows it could not be trusted. Payloads are JSON and raw numbers, never pickles.
"""

from __future__ import annotations

import os
import struct
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bayessel._journal import Lock, packed, read_header, records, sync, write_header
from bayessel.errors import StoreWarning
from bayessel.samplers.run.kernel import Array, Block, Position
from bayessel.samplers.run.state import dumps, loads

FORMAT = "bayessel run 1"
_MAGIC = b"bsr1"
_NAME = struct.Struct("<8s16sI")
_FIRST = b"bschain1"


@dataclass
class Found:
    """What a store holds of one chain: its blocks, and where it stands."""

    blocks: list[Block]
    position: Position


class Store:
    """One run's folder, locked against a second writer while open.

    Parameters
    ----------
    folder : str or path
        Made if it does not exist. A folder with other files in it is refused.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"store must be a folder, and {self.folder} is a file; give another name")
        self._files: dict[int, BinaryIO] = {}
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.begun:
            self._check_alone()
        self._lock = Lock(self.folder / "lock")

    @property
    def descriptors(self) -> tuple[int, ...]:
        """File descriptors that child processes must not keep."""
        return (self._lock.descriptor,)

    @property
    def begun(self) -> bool:
        """Whether there is a run in the folder."""
        return (self.folder / "header.json").exists()

    def _check_alone(self) -> None:
        """Refuse a folder of somebody else's, before anything is written there."""
        strangers = sorted(path.name for path in self.folder.iterdir() if not _ours(path.name))
        if strangers:
            raise ValueError(
                f"the folder {self.folder} holds other files ({', '.join(strangers[:3])}"
                f"{', …' * (len(strangers) > 3)}) and no run; give the store a folder of its own"
            )

    def create(self, header: Mapping[str, Any], positions: list[Position]) -> None:
        """Begin a run: write its header, and where each chain starts."""
        for path in sorted(self.folder.glob("chain-*.log")):
            if path.stat().st_size > _NAME.size:  # records are written after the header only: it was there once
                raise ValueError(
                    f"{path} holds draws, but header.json is missing from {self.folder}: the run cannot be identified; "
                    "restore the header, or begin another store"
                )
        identity = uuid.uuid4()
        for position in positions:  # chain files first: with the header the run is complete
            path = self._path(position.chain)
            with open(path, "wb") as file:
                file.write(_NAME.pack(_FIRST, identity.bytes, position.chain))
                sync(file)
        write_header(self.folder / "header.json", FORMAT, {"identity": identity.hex, **header})
        self._open(range(len(positions)))
        for position in positions:
            nothing = Block(position.chain, position.done, 0, {}, {}, position, [], 0.0)
            self.append(nothing)

    def header(self) -> dict[str, Any]:
        """Return what the run is; a damaged header is refused."""
        return read_header(self.folder / "header.json", FORMAT, "run")

    def read(self, header: Mapping[str, Any], pattern: Mapping[str, Array]) -> list[Found | None]:
        """Read all chains, cut off what a crash left half-written, and make ready to append.

        `pattern` is a point of the model: names, shapes and dtypes of the draws. A chain without any record (the crash
        came before its first) is None.
        """
        identity = uuid.UUID(header["identity"]).bytes
        chains = range(int(header["chains"]))
        found = [self._read_chain(chain, identity, header, pattern) for chain in chains]
        self._open(chains)
        return found

    def append(self, block: Block) -> None:
        """Write a block; it is on the disk when this returns."""
        file = self._files[block.chain]
        file.write(_packed(block))
        sync(file)

    def close(self) -> None:
        """Close the files and let go of the lock."""
        for file in self._files.values():
            file.close()
        self._files.clear()
        self._lock.release()

    def _path(self, chain: int) -> Path:
        return self.folder / f"chain-{chain}.log"

    def _open(self, chains: range) -> None:
        self._files = {chain: open(self._path(chain), "ab") for chain in chains}

    def _read_chain(
        self, chain: int, identity: bytes, header: Mapping[str, Any], pattern: Mapping[str, Array]
    ) -> Found | None:
        path = self._path(chain)
        if not path.exists():
            raise ValueError(f"{path} is missing, and with it that chain; restore the file, or begin another store")
        data = path.read_bytes()
        if data[: _NAME.size] != _NAME.pack(_FIRST, identity, chain):
            raise ValueError(
                f"{path} is not chain {chain} of this store ({_whose(data)}; needed was chain {chain} of store "
                f"{identity.hex()}); chains of different runs are not mixed: restore the file, or begin another store"
            )
        tune = int(header["tune"])
        found: Found | None = None
        end = _NAME.size
        for start, count, payload, stop in _records(data, path):
            if found is not None and start != found.position.done:
                raise ValueError(
                    f"{path} goes from draw {found.position.done} on to draw {start}: records are missing or repeated; "
                    "restore the file, or begin another store"
                )
            block = _unpacked(payload, chain, start, count, tune, pattern, path)
            if found is None:
                found = Found([], block.after)
            if count:
                found.blocks.append(block)
            found.position = block.after
            end = stop
        if end < len(data):
            with open(path, "r+b") as file:
                file.truncate(end)
                sync(file)
        return found


def _records(data: bytes, path: Path) -> Iterator[tuple[int, int, memoryview, int]]:
    """Yield (first draw, draws, payload, end) of each whole record; warn of a tail that is cut off."""
    found, tear = records(data, _NAME.size, _MAGIC)
    if tear is not None and tear.inside:
        raise ValueError(
            f"{path} is damaged at byte {tear.at}, in the middle of its records{_draws(tear.first, tear.size)}: what "
            "follows cannot be trusted; restore the file, or begin another store"
        )
    if tear is not None:
        warnings.warn(
            f"the last record of {path} was cut short or damaged, as by a crash: "
            f"{'an unknown number of' if tear.size is None else tear.size} draws of this chain are lost and will be "
            "sampled again; everything before is kept",
            StoreWarning,
            stacklevel=2,
        )
    yield from found


def _draws(first: int | None, count: int | None) -> str:
    return "" if first is None or count is None else f" (draws {first} to {first + count - 1})"


def _packed(block: Block) -> bytes:
    """A record: lengths and checksums, a line of JSON, raw numbers."""
    arrays = [np.ascontiguousarray(value) for value in (*block.draws.values(), *block.stats.values())]
    line = {
        "draws": list(block.draws),
        "stats": [[name, value.dtype.str, list(value.shape[1:])] for name, value in block.stats.items()],
        "point": block.after.point,
        "state": block.after.state,
        "done": block.after.done,
        "seconds": block.seconds,
        "elapsed": block.elapsed,
        "dropped": list(block.dropped),
    }
    payload = b"".join([dumps(line).encode(), b"\n", *(array.tobytes() for array in arrays)])
    return packed(_MAGIC, block.start, block.count, payload)


def _unpacked(
    payload: memoryview, chain: int, start: int, count: int, tune: int, pattern: Mapping[str, Array], path: Path
) -> Block:
    raw = bytes(payload)
    cut = raw.index(b"\n")
    line = loads(raw[:cut])
    at = cut + 1

    def take(rows: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        nonlocal at
        size = rows * int(np.prod(shape, dtype=int))
        values = np.frombuffer(raw, dtype=dtype, count=size, offset=at).reshape(rows, *shape).copy()
        at += values.nbytes
        return values

    kept = max(0, start + count - max(start, tune))
    try:
        draws = {name: take(kept, pattern[name].dtype, pattern[name].shape) for name in line["draws"]}
        stats = {name: take(count, np.dtype(dtype), tuple(shape)) for name, dtype, shape in line["stats"]}
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path} holds draws of other variables than the model has: {error}") from error
    after = Position(chain, int(line["done"]), dict(line["point"]), line["state"])
    return Block(
        chain, start, count, draws, stats, after, line["seconds"], line["elapsed"], dropped=tuple(line["dropped"])
    )


def _ours(name: str) -> bool:
    return name in ("lock", "header.json", "header.json.new") or (name.startswith("chain-") and name.endswith(".log"))


def _whose(data: bytes) -> str:
    if len(data) < _NAME.size or data[: len(_FIRST)] != _FIRST:
        return "it does not begin as a chain's file"
    _, identity, chain = _NAME.unpack_from(data)
    return f"it is chain {chain} of store {identity.hex()}"
