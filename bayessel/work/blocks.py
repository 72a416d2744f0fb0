"""Rows in blocks of fixed size, worked through by threads: compiled loops hold no lock, and blocks share nothing.

Processes would have to be sent the data first. Sums over blocks are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bayessel.work.jobs import core_count

#: rows of a block: some milliseconds of work
BLOCK = 512


def over_blocks[Found](work: Callable[[int, int], Found], n: int, threads: int | None = None) -> list[Found]:
    """Results of work(begin, end) for all blocks of n rows, in their order whoever did them."""
    begins = range(0, n, BLOCK)
    threads = min(core_count() if threads is None else threads, len(begins))
    if threads <= 1:
        return [work(begin, min(begin + BLOCK, n)) for begin in begins]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda begin: work(begin, min(begin + BLOCK, n)), begins))
