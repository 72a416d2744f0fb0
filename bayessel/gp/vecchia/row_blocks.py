"""Rows in blocks of fixed size, worked through by threads: compiled code holds no lock, and blocks share nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bayessel.work.jobs import core_count

#: rows of a block: some milliseconds of work
BLOCK = 512


def over_blocks(work: Callable[[int, int], Any], n: int, threads: int | None = None) -> list[Any]:
    """Results of work(begin, end) for all blocks of n rows, in their order whoever did them."""
    begins = range(0, n, BLOCK)
    threads = min(core_count() if threads is None else threads, len(begins))
    if threads <= 1:
        return [work(begin, min(begin + BLOCK, n)) for begin in begins]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda begin: work(begin, min(begin + BLOCK, n)), begins))
