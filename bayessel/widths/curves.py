"""Reading criteria over kernel widths: where the optima lie, how deep they are, how the numbers are written.

A table has one row per candidate. Its index is the width, or (kind, width) where several kinds of function are
compared; a row's *label* is its entry in that index: a float, or a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayessel._text import number
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import DELTAS
from bayessel.criteria.evidence import EVIDENCE
from bayessel.policy import HARMLESS, SEPARATE_WIDTHS, STRONG_NATS
from bayessel.widths._notes import INTERPOLATION, notes_of

#: a width, or a kind of function and its width
Label = float | tuple[str, float]


class CurveOptimum(NamedTuple):
    """A local optimum of a criterion over the widths of one kind.

    ``depth`` is by how much the criterion gets worse on the way to anything better (infinite for the best of all):
    nats, or a share of the error. ``kind`` is empty where only one is compared.
    """

    width: float
    value: float
    at_end: bool
    depth: float = np.inf
    kind: str = ""

    @property
    def label(self) -> Label:
        """The optimum's entry in the index of the table."""
        return (self.kind, self.width) if self.kind else self.width


@dataclass(frozen=True, eq=False)
class DrawnFit:
    """Predictions of one fit: at the inputs and, for a single input, along a grid as well (else empty arrays).

    A sparse fit also says which columns it uses (``basis``: the centre's number, one more for the bias), their weights
    and the precisions of these.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    grid: NDArray[np.float64]
    grid_mean: NDArray[np.float64]
    grid_std: NDArray[np.float64]
    basis: NDArray[Any] = field(default_factory=lambda: np.empty(0, dtype=int))
    coef: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    alpha: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


def optima(widths: ArrayLike, values: ArrayLike, higher_is_better: bool, kind: str = "") -> tuple[CurveOptimum, ...]:
    """Every local optimum of a curve given at sorted widths, best first.

    A stretch that is flat to one part in 1e9, or to rounding, counts as one optimum, or as none. Rounding is 1e-9 nats
    where higher is better; of an error it is the square of the machine precision times the largest one. The first
    and the last width can be optima too: they are marked ``at_end``, because the curve may go on improving beyond
    them. Values that are not finite are passed over. Depths are differences of the values.
    """
    r, v = np.asarray(widths, dtype=float), np.asarray(values, dtype=float)
    if r.ndim != 1 or r.shape != v.shape:
        raise ValueError(f"widths and values must be two lists of one length, got shapes {r.shape} and {v.shape}")
    if (np.diff(r) < 0.0).any():
        raise ValueError("widths must be sorted, narrow ones first, with the values in the same order")
    known = np.isfinite(v)
    if not known.any():
        return ()
    ends = {float(r[0]), float(r[-1])}
    r, v = r[known], v[known]
    height = v if higher_is_better else -v
    # an error is a square, and its residuals carry the rounding of a target about as large as the largest of them
    floor = 1e-9 if higher_is_better else np.finfo(float).eps ** 2 * float(np.abs(height).max())
    tol = np.maximum(1e-9 * np.abs(height), floor)
    starts = [0] + [i for i in range(1, len(v)) if abs(height[i] - height[i - 1]) > max(tol[i], tol[i - 1])]
    stops = [*starts[1:], len(v)]
    found = []
    for start, stop in zip(starts, stops, strict=True):
        peak = start + int(np.argmax(height[start:stop]))
        rises = start == 0 or height[start] > height[start - 1]
        falls = stop == len(v) or height[stop - 1] > height[stop]
        if rises and falls:
            at_end = float(r[start]) in ends or float(r[stop - 1]) in ends
            depth = _depth(height, start, stop, float(height[peak]))
            found.append((height[peak], CurveOptimum(float(r[peak]), float(v[peak]), at_end, depth, kind)))
    return tuple(optimum for _, optimum in sorted(found, key=lambda pair: -pair[0]))


def _depth(height: NDArray[np.float64], start: int, stop: int, peak: float) -> float:
    """How far one must go down from a peak before a higher place can be reached."""
    passes = []
    for side in (height[:start][::-1], height[stop:]):
        higher = np.flatnonzero(side > peak)
        if len(higher):
            passes.append(float(side[: higher[0] + 1].min()))
    return peak - max(passes) if passes else float("inf")


def curves(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One frame per kind of function, index ``width``; a table of one kind comes back under the empty name."""
    if table.index.nlevels == 1:
        return {"": table}
    kinds = table.index.get_level_values(0)
    return {str(kind): table[kinds == kind].droplevel(0) for kind in dict.fromkeys(kinds)}


def turning_points(table: pd.DataFrame, name: str) -> tuple[CurveOptimum, ...]:
    """Every local optimum of a criterion, over all kinds, best first; depths of errors as a share of the error."""
    criterion = CRITERIA[name]
    found = [
        one
        for kind, frame in curves(table).items()
        for one in optima(frame.index, frame[name], criterion.higher_is_better, kind)
    ]
    if not criterion.in_nats:
        found = [one._replace(depth=one.depth / one.value if one.value > 0 else one.depth) for one in found]
    return tuple(sorted(found, key=lambda one: -one.value if criterion.higher_is_better else one.value))


def scales(table: pd.DataFrame, name: str, most: int = 3) -> tuple[CurveOptimum, ...]:
    """Optima that a good margin parts from each other: the best one, and others as deep as a reader may rely on.

    Between them the criterion is worse by more than 3 nats, or 5 % of the error, and their widths differ by a factor of
    1.5 at least. Two of them in a series usually are two time scales.
    """
    found = turning_points(table, name)
    kept: list[CurveOptimum] = []
    for one in found:
        apart = all(abs(np.log(one.width / other.width)) > np.log(SEPARATE_WIDTHS) for other in kept)
        sure = not kept or (one.depth > CRITERIA[name].negligible_loss and not one.at_end)
        if one.kind == found[0].kind and sure and apart:
            kept.append(one)
    return tuple(kept[:most])


def preferences(table: pd.DataFrame, criteria: Sequence[str]) -> dict[Label, tuple[str, ...]]:
    """Map every candidate some criterion prefers to the criteria that prefer it, in the order of the table."""
    chosen: dict[Label, tuple[str, ...]] = {}
    for name in criteria:
        best = turning_points(table, name)
        if best:
            chosen[best[0].label] = (*chosen.get(best[0].label, ()), name)
    return {label: chosen[label] for label in table.index if label in chosen}


def credible_widths(
    table: pd.DataFrame, criterion: str = EVIDENCE.name, nats: float = STRONG_NATS
) -> tuple[Label, ...]:
    """Candidates whose log evidence is within ``nats`` of the best one (default: odds below 20 to 1)."""
    values = table[criterion].to_numpy(dtype=float)
    if not np.isfinite(values).any():
        return ()
    height = values if CRITERIA[criterion].higher_is_better else -values
    near = np.isfinite(height) & (height >= np.max(height[np.isfinite(height)]) - nats)
    return tuple(label for label, kept in zip(table.index, near, strict=True) if kept)


def with_delta(table: pd.DataFrame, name: str, delta: float) -> pd.DataFrame:
    """Return the table with a description length as it would be with weights (or precisions) sent to another ``delta``.

    Both lengths contain -k log delta and nothing else of it, so no fit is needed.
    """
    shift = table["n_basis"].to_numpy(dtype=float) * np.log(delta / DELTAS[name])
    return table.assign(**{name: table[name].to_numpy(dtype=float) - shift})


def needs_attention(status: str) -> bool:
    """Whether the name of a status in a table is one that warns."""
    return status not in {one.name for one in HARMLESS}


def width_of(label: Label) -> float:
    """Return the width in a label."""
    return float(label[1] if isinstance(label, tuple) else label)


def row_of(table: pd.DataFrame, label: Label) -> int:
    """Return the number of the row with that label."""
    return int(table.index.get_loc(label))  # type: ignore[arg-type]


def value_at(table: pd.DataFrame, column: str, label: Label) -> float:
    """Return the number in a column at the row with that label; NaN where there is no such column."""
    return float(table[column].to_numpy(dtype=float)[row_of(table, label)]) if column in table else np.nan


def say(label: Label) -> str:
    """Write a label as in a sentence: r = 0.3, or cauchy r = 0.3."""
    kind = f"{label[0].replace('_', ' ')} " if isinstance(label, tuple) else ""
    return f"{kind}r = {number(width_of(label))}"


def entry(name: str, value: float) -> str:
    """Text of a number in a column of the table: hundredths of nats, else four significant digits."""
    if np.isnan(value):
        return "–"
    if name == "n_basis":
        return str(int(value))
    base = name.removesuffix("_se").removesuffix("_diff")
    return f"{value:.2f}" if base in CRITERIA and CRITERIA[base].in_nats else number(value, strip=False)


def cut_off(table: pd.DataFrame, criteria: Sequence[str]) -> tuple[str, ...]:
    """Criteria whose best width lies beside (or in) the widths at which they vanish at interpolation.

    There the curve stops because a minimum was refused, not because a width is better: no choice to rely on.
    """
    if "notes" not in table:
        return ()
    found = []
    for name in criteria:
        best = turning_points(table, name)
        frame = curves(table)[best[0].kind] if best else table
        notes = [notes_of(str(text)).get(INTERPOLATION, []) for text in frame["notes"]]
        at = int(np.flatnonzero(frame.index.to_numpy(dtype=float) == best[0].width)[0]) if best else 0
        near = notes[max(at - 1, 0) : at + 2] if best else notes
        if any(name in each for each in near):
            found.append(name)
    return tuple(found)
