"""Sums over row blocks in one pass: blocks are checked and turned into columns; the first ones decide how to sum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bayessel._check import FloatArray, as_float_array
from bayessel.basis import Dictionary
from bayessel.linear.moments import TILE, Moments
from bayessel.linear.row_partitions import Block
from bayessel.linear.spectrum import suits_gram


def design_blocks(blocks: Iterable[Block], dictionary: Dictionary | None) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Columns and targets, block by block; other blocks than pairs of a design (or inputs) and a target are refused."""
    for number, block in enumerate(blocks):
        if not isinstance(block, tuple | list) or len(block) != 2:
            parts = f" of {len(block)}" if isinstance(block, tuple | list) else ""
            raise TypeError(f"block {number} must be a pair (Phi, t), got {type(block).__name__}{parts}")
        X, t = as_float_array(block[0], f"Phi of block {number}"), as_float_array(block[1], f"t of block {number}")
        if X.ndim == 1 and dictionary is not None:
            X = X[:, None]
        if X.ndim != 2 or t.ndim != 1 or len(X) != len(t):
            raise ValueError(
                f"block {number} must be a (rows, columns) array and a (rows,) target, got {X.shape} and {t.shape}"
            )
        if X.shape[1] == 0:
            raise ValueError(f"Phi of block {number} must have at least one column, got shape {X.shape}")
        if len(t) == 0:
            continue
        if dictionary is None:
            yield X, t
            continue
        # tile by tile: arrays that large are cleared page by page by the system whenever they are made
        for start in range(0, len(t), TILE):
            yield dictionary.columns(X[start : start + TILE]), t[start : start + TILE]


def summed_blocks(
    designs: Iterator[tuple[FloatArray, FloatArray]], centre: bool, exact: bool | None, moments: Moments | None = None
) -> Moments:
    """Sum one pass; with ``exact=None`` the first rows decide between sums of squares and QR.

    With `moments`, statistics of no rows, the rows are added to these.
    """
    waiting: list[tuple[FloatArray, FloatArray]] = []
    width = None if moments is None else moments.n_columns
    for number, (Phi, t) in enumerate(designs):
        width = width or Phi.shape[1]
        if Phi.shape[1] != width:
            raise ValueError(f"block {number} has {Phi.shape[1]} columns, the first had {width}")
        if moments is None:
            waiting.append((Phi, t))
            if exact is None and sum(len(y) for _, y in waiting) < 4 * Phi.shape[1]:
                continue
            moments = begun(waiting, centre, exact)
            waiting = []
        else:
            moments.update(Phi, t)
        if not moments.is_finite():
            raise ValueError(
                f"block {number} contains NaN or infinity; drop or impute those rows (and rescale values beyond 1e150)"
            )
    if moments is None:
        if not waiting:
            raise ValueError(
                "the stream is empty: it needs at least one block with at least one row (a callable must return a "
                "fresh iterator at every call, since a second pass may be needed)"
            )
        moments = begun(waiting, centre, True if exact is None else exact)
        if not moments.is_finite():
            raise ValueError(
                "a block contains NaN or infinity; drop or impute those rows (and rescale values beyond 1e150)"
            )
    return moments


def begun(waiting: list[tuple[FloatArray, FloatArray]], centre: bool, exact: bool | None) -> Moments:
    """Statistics of the first blocks, by the arithmetic that suits them."""
    if exact is None:
        enough = max(4 * waiting[0][0].shape[1], 4096)
        probe = Moments.of(*((Phi[:enough], t[:enough]) for Phi, t in waiting), centre=centre, exact=True)
        exact = not suits_gram(probe.condition())
    return Moments.of(*waiting, centre=centre, exact=exact)
