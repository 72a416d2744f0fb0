"""Sums over partitions of rows, by this process, by others, or on a cluster: the same bits whoever sums.

A look at the first rows fixes the shift and the arithmetic for all. Every partition is one unit of work, and the sums
are added in the order of the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayessel._check import FloatArray
from bayessel._types import SupportsSubmit
from bayessel.basis import Dictionary
from bayessel.linear.block_sums import begun, design_blocks, summed_blocks
from bayessel.linear.moments import TILE, Moments
from bayessel.linear.row_partitions import RowPartition
from bayessel.work import WorkUnit, run

#: rows that are looked at before the sums begin, for each column and at least
ROWS_PER_COLUMN, FIRST_ROWS = 4, 8 * TILE


def summed_partitions(
    partitions: Sequence[RowPartition],
    dictionary: Dictionary | None,
    centre: bool,
    exact: bool | None,
    *,
    executor: SupportsSubmit | None,
    n_jobs: int | None,
    progressbar: bool,
) -> Moments:
    """Statistics of all rows; with ``exact=None`` the first rows decide between sums of squares and QR."""
    total = begun(_first_rows(partitions, dictionary), centre, exact).empty()
    units = [WorkUnit(one.key, _sum_of_rows, (one, dictionary, total.empty()), one.key) for one in partitions]
    report = run(units, executor, n_jobs, progress=progressbar, what="summing rows")
    if report.interrupted:
        raise KeyboardInterrupt
    for key, reason in report.lost.items():
        raise RuntimeError(f"the rows of {key} could not be summed up: {reason}")
    for unit in units:
        total.add(report.values[unit.key])
    return total


def _sum_of_rows(partition: RowPartition, dictionary: Dictionary | None, start: Moments) -> Moments:
    """Statistics of one partition; in a worker."""
    try:
        return summed_blocks(design_blocks(partition.blocks(), dictionary), start.centre, start.exact, start)
    except ValueError as error:
        raise ValueError(f"{partition.key}: {error}") from error


def _first_rows(
    partitions: Sequence[RowPartition], dictionary: Dictionary | None
) -> list[tuple[FloatArray, FloatArray]]:
    """Blocks with enough rows to see how large the columns are and how alike."""
    found: list[tuple[FloatArray, FloatArray]] = []
    seen = 0
    for Phi, t in (block for one in partitions for block in design_blocks(one.blocks(), dictionary)):
        found.append((Phi, t))
        seen += len(t)
        if seen >= max(FIRST_ROWS, ROWS_PER_COLUMN * Phi.shape[1]):
            break
    if not found:
        raise ValueError(f"none of the {len(partitions)} partitions has rows")
    return found
