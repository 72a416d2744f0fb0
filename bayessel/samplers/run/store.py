"""A run on disk: a folder with a header and one append-only file of records per chain.

``header.json`` says what the run is (model, data, seed, steps, …) and is written once. ``chain-<k>.log`` begins with
the identity of the store and the number of the chain; each record after it (`bayessel.work.journal`) holds a block,
first draw and number of draws in its head: draws, statistics, the position after it, from which the chain goes on. A
crash can only cut the last record, which is then left out and sampled again. Anything else that does not fit its
checksums is damage, and is refused: what follows it could not be trusted. Payloads are JSON and raw numbers, never
pickles.
"""

from __future__ import annotations

import os
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bayessel.samplers.run.kernel import Array, Block, Position
from bayessel.work.journal import Journal, JournalFolder, Record, Tear
from bayessel.work.json_values import dumps, loads

FORMAT = "bayessel run 1"
_MAGIC = b"bsr1"
_NAME = struct.Struct("<8s16sI")
_FIRST = b"bschain1"


@dataclass
class Found:
    """What a store holds of one chain: its blocks, and where it stands."""

    blocks: list[Block]
    position: Position


class ChainStore:
    """One run's folder, locked against a second writer while open.

    Parameters
    ----------
    folder : str or path
        Made if it does not exist. A folder with other files in it is refused.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._place = JournalFolder(folder, FORMAT, "run", _ours)
        self.folder = self._place.folder
        self._journals: dict[int, Journal] = {}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """File descriptors that child processes must not keep."""
        return self._place.descriptors

    @property
    def begun(self) -> bool:
        """Whether there is a run in the folder."""
        return self._place.begun

    def create(self, header: Mapping[str, Any], positions: list[Position]) -> None:
        """Begin a run: write its header, and where each chain starts."""
        for path in sorted(self.folder.glob("chain-*.log")):
            if path.stat().st_size > _NAME.size:  # of a chain that the new run would not have
                raise ValueError(
                    f"{path} holds draws, but header.json is missing from {self.folder}: the run cannot be identified; "
                    "restore the header, or begin another store"
                )
        chains = [position.chain for position in positions]
        made = self._place.begin(header, lambda identity: [self._journal(chain, identity) for chain in chains], "draws")
        self._journals = dict(zip(chains, made, strict=True))
        self._open()
        for position in positions:
            nothing = Block(position.chain, position.done, 0, {}, {}, position, [], 0.0)
            self.append(nothing)

    def header(self) -> dict[str, Any]:
        """Return what the run is; a damaged header is refused."""
        return self._place.header()

    def read(self, header: Mapping[str, Any], pattern: Mapping[str, Array]) -> list[Found | None]:
        """Read all chains, cut off what a crash left half-written, and make ready to append.

        `pattern` is a point of the model: names, shapes and dtypes of the draws. A chain without any record (the crash
        came before its first) is None.
        """
        identity = uuid.UUID(header["identity"])
        self._journals = {chain: self._journal(chain, identity) for chain in range(int(header["chains"]))}
        tune = int(header["tune"])
        found = [_chain(chain, journal, identity, tune, pattern) for chain, journal in self._journals.items()]
        self._open()
        return found

    def append(self, block: Block) -> None:
        """Write a block; it is on the disk when this returns."""
        self._journals[block.chain].append(block.start, block.count, _payload(block))

    def close(self) -> None:
        """Close the files and let go of the lock."""
        for journal in self._journals.values():
            journal.close()
        self._journals.clear()
        self._place.release()

    def _journal(self, chain: int, identity: uuid.UUID) -> Journal:
        return Journal(self.folder / f"chain-{chain}.log", _NAME.pack(_FIRST, identity.bytes, chain), _MAGIC)

    def _open(self) -> None:
        for journal in self._journals.values():
            journal.open()


def _chain(chain: int, journal: Journal, identity: uuid.UUID, tune: int, pattern: Mapping[str, Array]) -> Found | None:
    """What a journal holds of a chain."""
    path = journal.path
    found: Found | None = None
    for record in _records(journal, chain, identity):
        if found is not None and record.first != found.position.done:
            raise ValueError(
                f"{path} goes from draw {found.position.done} on to draw {record.first}: records are missing or "
                "repeated; restore the file, or begin another store"
            )
        block = _unpacked(record.payload, chain, record.first, record.size, tune, pattern, path)
        if found is None:
            found = Found([], block.after)
        if record.size:
            found.blocks.append(block)
        found.position = block.after
    return found


def _records(journal: Journal, chain: int, identity: uuid.UUID) -> list[Record]:
    def alien(data: bytes) -> str:
        return (
            f"is not chain {chain} of this store ({_whose(data)}; needed was chain {chain} of store "
            f"{identity.bytes.hex()}); chains of different runs are not mixed"
        )

    def lost(tear: Tear) -> str:
        count = "an unknown number of" if tear.size is None else tear.size
        return f"{count} draws of this chain are lost and will be sampled again"

    return journal.load(alien, lost, lambda tear: _draws(tear.first, tear.size))


def _draws(first: int | None, count: int | None) -> str:
    return "" if first is None or count is None else f" (draws {first} to {first + count - 1})"


def _payload(block: Block) -> bytes:
    """A block: a line of JSON, raw numbers."""
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
    return b"".join([dumps(line).encode(), b"\n", *(array.tobytes() for array in arrays)])


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
    return name.startswith("chain-") and name.endswith(".log")


def _whose(data: bytes) -> str:
    if len(data) < _NAME.size or data[: len(_FIRST)] != _FIRST:
        return "it does not begin as a chain's file"
    _, identity, chain = _NAME.unpack_from(data)
    return f"it is chain {chain} of store {identity.hex()}"
