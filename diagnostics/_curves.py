"""Reading criteria over kernel widths: which way is better, where the optima lie, how the numbers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

#: A note beside the statuses: the criterion vanishes where the fit passes through every row.
INTERPOLATION = "INTERPOLATION"
#: A note beside the statuses: the Gaussian approximation is poor, so the value was integrated exactly.
QUADRATURE = "QUADRATURE"
#: A note beside the statuses: the exact integral depends on the range of lambda, so there is no value.
UNDETERMINED = "UNDETERMINED"

#: Evidence ratios of 20 to 1 are commonly called strong; on the logarithm that is about 3 nats.
STRONG_NATS = float(np.log(20.0))

#: Statuses that need no attention here; few well-determined parameters spoil only the approximation, which is seen to.
GOOD_STATUS = frozenset({"CONVERGED", "FEW_WELL_DETERMINED"})


@dataclass(frozen=True)
class Criterion:
    """One way of judging a model: its name, its direction and what it answers."""

    name: str
    label: str
    higher_is_better: bool
    unit: str
    family: str
    meaning: str


CRITERIA: Mapping[str, Criterion] = {
    entry.name: entry
    for entry in (
        Criterion(
            "evidence",
            "Log evidence",
            True,
            "nats",
            "evidence",
            "log p(y | width, best alpha and beta): how probable the data are under this width's prior over functions, "
            "with the two precisions at their best values. Only differences count: 3 nats are odds of 20 to 1.",
        ),
        Criterion(
            "model-evidence",
            "Log model evidence",
            True,
            "nats, up to a constant",
            "evidence",
            "The evidence with alpha and beta averaged out (third level, Gaussian approximation on their logarithms): "
            "it adds what finding the two precisions costs. Integrated exactly where fewer than 3 parameters are well "
            "determined or fewer than 3 rows are left for the noise; missing where even that has no answer.",
        ),
        Criterion(
            "gcv",
            "GCV",
            False,
            "squared units of the target",
            "prediction",
            "Generalised cross-validation: estimated mean squared prediction error on new rows, lambda at its minimum.",
        ),
        Criterion(
            "loo",
            "LOO",
            False,
            "squared units of the target",
            "prediction",
            "Leave-one-out: mean squared error of predicting each row from all others (exact, without refitting).",
        ),
        Criterion(
            "uev",
            "UEV",
            False,
            "squared units of the target",
            "prediction",
            "Unbiased estimate of the noise variance: the residuals, with gamma parameters paid for. The mildest.",
        ),
        Criterion(
            "fpe",
            "FPE",
            False,
            "squared units of the target",
            "prediction",
            "Final prediction error: the residuals corrected for gamma parameters; milder than GCV.",
        ),
        Criterion(
            "bic",
            "BIC",
            False,
            "squared units of the target",
            "parsimony",
            "Bayesian information criterion in its error form: every parameter costs ln N instead of 2, so it "
            "leans to smoother fits the more rows there are.",
        ),
    )
}


class Optimum(NamedTuple):
    """A local optimum of a criterion over the grid of widths."""

    width: float
    value: float
    at_end: bool


@dataclass(frozen=True)
class Prediction:
    """Predictions of one fit: at the inputs and, for a single input, along a grid as well (else empty arrays)."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    grid: NDArray[np.float64]
    grid_mean: NDArray[np.float64]
    grid_std: NDArray[np.float64]


def optima(widths: ArrayLike, values: ArrayLike, higher_is_better: bool) -> tuple[Optimum, ...]:
    """Every local optimum of a curve given at sorted widths, best first.

    A stretch that is flat to one part in 1e9, or to rounding, counts as one optimum, or as none. Rounding is 1e-9 nats
    where higher is better; of an error it is the square of the machine precision times the largest one. The first
    and the last width can be optima too: they are marked ``at_end``, because the curve may go on improving beyond
    them. Values that are not finite are passed over.
    """
    r, v = np.asarray(widths, dtype=float), np.asarray(values, dtype=float)
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
            found.append((height[peak], Optimum(float(r[peak]), float(v[peak]), at_end)))
    return tuple(optimum for _, optimum in sorted(found, key=lambda pair: -pair[0]))


def preferences(table: pd.DataFrame, criteria: Sequence[str]) -> dict[float, tuple[str, ...]]:
    """Map every width some criterion prefers to the criteria that prefer it, in increasing width."""
    chosen: dict[float, tuple[str, ...]] = {}
    for name in criteria:
        best = optima(table.index, table[name], CRITERIA[name].higher_is_better)
        if best:
            chosen[best[0].width] = (*chosen.get(best[0].width, ()), name)
    return dict(sorted(chosen.items()))


def credible_widths(table: pd.DataFrame, criterion: str = "evidence", nats: float = STRONG_NATS) -> tuple[float, ...]:
    """Widths whose log evidence is within ``nats`` of the best one (default: odds below 20 to 1)."""
    values = table[criterion].to_numpy(dtype=float)
    if not np.isfinite(values).any():
        return ()
    near = values >= np.nanmax(values[np.isfinite(values)]) - nats
    return tuple(float(r) for r in table.index[near & np.isfinite(values)])


def number(value: float, strip: bool = True) -> str:
    """Four significant digits, the way a person writes them; ``strip`` drops trailing zeros after the point."""
    if not np.isfinite(value):
        return str(value)
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.3e}"
    digits = 3 - int(np.floor(np.log10(abs(value)))) if value else 0
    text = f"{value:.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if strip and "." in text else text


def entry(name: str, value: float) -> str:
    """Text of a number in a column of the table: hundredths of nats, else four significant digits."""
    if np.isnan(value):
        return "–"
    if name == "n_basis":
        return str(int(value))
    return f"{value:.2f}" if name in CRITERIA and CRITERIA[name].higher_is_better else number(value, strip=False)


def listing(words: Sequence[str]) -> str:
    """Join words as in a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def notes_of(text: str) -> dict[str, list[str]]:
    """Read a cell of the column notes, such as 'MULTIPLE_OPTIMA(gcv,loo) AT_BOUND(uev)': criteria by status."""
    pairs = (word.removesuffix(")").split("(") for word in text.split())
    return {status: names.split(",") for status, names in pairs}


def cut_off(table: pd.DataFrame, criteria: Sequence[str]) -> tuple[str, ...]:
    """Criteria whose best width lies beside (or in) the widths at which they vanish at interpolation.

    There the curve stops because a minimum was refused, not because a width is better: no choice to rely on.
    """
    notes = [notes_of(str(text)).get(INTERPOLATION, []) for text in table.get("notes", [""] * len(table))]
    found = []
    for name in criteria:
        best = optima(table.index, table[name], CRITERIA[name].higher_is_better)
        at = int(np.flatnonzero(table.index.to_numpy(dtype=float) == best[0].width)[0]) if best else 0
        near = notes[max(at - 1, 0) : at + 2] if best else notes
        if any(name in each for each in near):
            found.append(name)
    return tuple(found)
