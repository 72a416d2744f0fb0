"""Reading criteria over kernel widths: which way is better, where the optima lie, what may be concluded.

Everything here takes finished numbers (a table with one row per width) and gives words and optima back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

#: A note beside the statuses: the criterion vanishes where the fit passes through every row.
INTERPOLATION = "INTERPOLATION"

#: Evidence ratios of 20 to 1 are commonly called strong; on the logarithm that is about 3 nats.
STRONG_NATS = float(np.log(20.0))

#: Statuses that need no attention.
GOOD_STATUS = frozenset({"CONVERGED"})


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
            "it adds what finding the two precisions costs. Doubtful where gamma or N - gamma is below 3.",
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

# Why families of criteria may prefer different widths, and who belongs to them.
_FAMILY_WHY = {
    "evidence": (("evidence", "model-evidence"), "how probable these data are under the prior of a width"),
    "prediction": (("gcv", "loo", "fpe", "uev"), "how large the error (or the noise) of predictions is"),
    "parsimony": (("bic",), "the same at a higher price per parameter"),
}

#: The share of an error estimate a reader may lose and shrug: mostly less than its own sampling error.
SMALL_LOSS = 0.05


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

    A stretch that is flat to one part in 1e9 counts as one optimum, or as none. The first and the last width can be
    optima too: they are marked ``at_end``, because the curve may go on improving beyond them. Values that are not
    finite are passed over.
    """
    r, v = np.asarray(widths, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(v)
    if not known.any():
        return ()
    ends = {float(r[0]), float(r[-1])}
    r, v = r[known], v[known]
    height = v if higher_is_better else -v
    tol = 1e-9 * np.maximum(1e-300, np.abs(height))
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


def _who(names: Sequence[str]) -> str:
    words = {"evidence": "the evidence", "model-evidence": "the model evidence"}
    return listing([words.get(name, CRITERIA[name].label) for name in names])


def verdict(table: pd.DataFrame, criteria: Sequence[str], interrupted: bool = False, planned: int | None = None) -> str:
    """Say what the curves allow one to say, in a few sentences and no more than they allow."""
    return " ".join(verdict_sentences(table, criteria, interrupted, planned))


def verdict_sentences(
    table: pd.DataFrame, criteria: Sequence[str], interrupted: bool = False, planned: int | None = None
) -> list[str]:
    """Return the thoughts of :func:`verdict` one by one, the most important first."""
    chosen = preferences(table, criteria)
    if not chosen:
        return ["No criterion has a finite value at any width: look at the statuses."]
    said = _preference(table, chosen)
    if len(table) > 1:
        said += [*_ends(table, criteria), *_spread(table, criteria)]
    said += [*_statuses(table, chosen), *_interpolation(table)]
    if interrupted:
        of = f" of {planned}" if planned else ""
        said.append(f"The run was interrupted: {len(table)}{of} widths were finished, spread over the grid.")
    return said


def _preference(table: pd.DataFrame, chosen: Mapping[float, tuple[str, ...]]) -> list[str]:
    """A headline, and what is behind it where the criteria differ."""
    count = sum(len(names) for names in chosen.values())
    widths = list(chosen)
    if len(table) == 1:
        return [f"Only one width was tried, r = {number(widths[0])}: there is nothing to compare."]
    if len(widths) == 1:
        who = f"all {count} criteria prefer" if count > 1 else f"{_who(chosen[widths[0]])} prefers"
        return [f"{who[0].upper()}{who[1:]} r = {number(widths[0])}."]
    apart = np.ptp(np.searchsorted(table.index.to_numpy(dtype=float), widths))
    # the first criterion in the usual order speaks first: the evidence if it was asked for
    reference = next(r for name in CRITERIA for r in widths if name in chosen[r])
    order = sorted(widths, key=lambda r: (r != reference, -len(chosen[r]), r))
    groups = "; ".join(f"r = {number(r)} by {_who(chosen[r])}" for r in order)
    if apart == 1:
        return [f"The {count} criteria agree to within one step of the grid: {groups}."]
    losses = {name: _loss(table, name, reference) for r in order[1:] for name in chosen[r]}
    worst = max(losses, key=lambda name: losses[name] / _shrugged(name))
    if losses[worst] <= _shrugged(worst):
        return [
            "The criteria name different widths, but little hangs on it.",
            f"Best are {groups}. The curves are flat between them: at r = {number(reference)} the others come within "
            f"{_largest(losses)} of their best.",
        ]
    behind = "short of" if CRITERIA[worst].higher_is_better else "above"
    return [
        "The criteria disagree.",
        f"Best are {groups}. It matters: at r = {number(reference)} {_who([worst])} is "
        f"{_largest({worst: losses[worst]})} {behind} its best. {_why(chosen)}",
    ]


def _shrugged(name: str) -> float:
    """The largest loss of a criterion that a reader may shrug off."""
    return STRONG_NATS if CRITERIA[name].higher_is_better else SMALL_LOSS


def _in(chosen: Mapping[float, tuple[str, ...]], name: str) -> bool:
    return any(name in names for names in chosen.values())


def _loss(table: pd.DataFrame, name: str, r: float) -> float:
    """What a criterion loses at width r against its own best: nats, or a fraction of the best error."""
    criterion = CRITERIA[name]
    best = optima(table.index, table[name], criterion.higher_is_better)[0].value
    here = float(table[name].to_numpy(dtype=float)[table.index.to_numpy(dtype=float) == r][0])
    if not np.isfinite(here):
        return float("inf")
    if criterion.higher_is_better:
        return best - here
    return here / best - 1.0 if best > 0 else float("inf") if here > best else 0.0


def _largest(losses: Mapping[str, float]) -> str:
    """The largest loss in each unit, as text: 2.3 % and 0.4 nats."""
    nats = [loss for name, loss in losses.items() if CRITERIA[name].higher_is_better]
    parts = [100 * loss for name, loss in losses.items() if not CRITERIA[name].higher_is_better]
    said = [f"{max(parts):.1f} %" if max(parts) < 100 else f"{max(parts):.0f} %"] if parts else []
    return " and ".join([*said, *([f"{max(nats):.1f} nats"] if nats else [])])


def _why(chosen: Mapping[float, tuple[str, ...]]) -> str:
    """Say which questions the criteria at hand answer, where they are different ones."""
    asked = []
    for members, question in _FAMILY_WHY.values():
        names = [name for name in members if _in(chosen, name)]
        if names:
            asked.append(f"{_who(names)} {'asks' if len(names) == 1 else 'ask'} {question}")
    if len(asked) == 1:
        return "They ask the same question, but punish parameters differently hard."
    return f"They answer different questions: {'; '.join(asked)}."


def _spread(table: pd.DataFrame, criteria: Sequence[str]) -> list[str]:
    if "evidence" not in criteria:
        return []
    near = credible_widths(table)
    if len(near) < 2:
        return ["No other width of the grid comes within 3 nats (odds of 20 to 1) of the best log evidence."]
    said = f"Widths from {number(near[0])} to {number(near[-1])} are within 3 nats (odds below 20 to 1) of the best"
    found = optima(table.index, table["evidence"], higher_is_better=True)
    rivals = [one.width for one in found[1:] if one.width in near]
    if rivals:
        said += f", with a second peak at r = {number(rivals[0])}"
    return [f"{said} log evidence: the data do not tell these apart."]


def _ends(table: pd.DataFrame, criteria: Sequence[str]) -> list[str]:
    ends: dict[str, list[str]] = {}
    for name in criteria:
        found = optima(table.index, table[name], CRITERIA[name].higher_is_better)
        if found and found[0].at_end:
            low = abs(found[0].width - table.index[0]) < abs(found[0].width - table.index[-1])
            ends.setdefault("low" if low else "high", []).append(name)
    said = []
    for side, names in ends.items():
        limit = number(float(table.index[0] if side == "low" else table.index[-1]))
        where = f"below {limit}" if side == "low" else f"above {limit}"
        what = "optimum" if len(names) == 1 else "optima"
        verb = "lies" if len(names) == 1 else "lie"
        said.append(f"The {what} of {_who(names)} {verb} at the end of the grid: widen it {where}.")
    return said


def _statuses(table: pd.DataFrame, chosen: Mapping[float, tuple[str, ...]]) -> list[str]:
    """Name the warnings that bear on a preferred width; count the rest."""
    warned = {float(r): str(s) for r, s in table["status"].items() if s not in GOOD_STATUS}  # type: ignore[arg-type]
    said = []
    for status in dict.fromkeys(warned[r] for r in chosen if r in warned):
        at = [f"r = {number(r)} ({_who(chosen[r])})" for r in chosen if warned.get(r) == status]
        said.append(f"Status of the evidence fit at the preferred {listing(at)}: {status}.")
    others = [status for r, status in warned.items() if r not in chosen]
    if others:
        one = len(others) == 1
        kinds = listing(sorted(set(others)))
        said.append(f"{len(others)} other width{' carries' if one else 's carry'} a warning status ({kinds}).")
    return said


def notes_of(text: str) -> dict[str, list[str]]:
    """Read a cell of the column notes, such as 'MULTIPLE_OPTIMA(gcv,loo) AT_BOUND(uev)': criteria by status."""
    pairs = (word.removesuffix(")").split("(") for word in text.split())
    return {status: names.split(",") for status, names in pairs}


def _interpolation(table: pd.DataFrame) -> list[str]:
    """Warn where UEV, FPE or BIC vanish at the interpolating end, so that an inner minimum had to be taken."""
    at = [names for text in table.get("notes", []) if (names := notes_of(str(text)).get(INTERPOLATION))]
    if not at:
        return []
    names = [name for name in CRITERIA if any(name in each for each in at)]
    one = len(names) == 1
    return [
        f"With this many functions {_who(names)} {'vanishes' if one else 'vanish'} where the fit passes through every "
        f"row ({len(at)} of {len(table)} widths); only minima that leave a quarter of the rows to the noise count. "
        f"Trust {'it' if one else 'them'} less, or take fewer centres."
    ]
