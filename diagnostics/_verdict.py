"""What may be concluded from criteria over kernel widths, in sentences: finished numbers in, words out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from bayessel.diagnostics._curves import (
    CRITERIA,
    GOOD_STATUS,
    STRONG_NATS,
    credible_widths,
    cut_off,
    listing,
    number,
    optima,
    preferences,
)

# Why families of criteria may prefer different widths, and who belongs to them.
_FAMILY_WHY = {
    "evidence": (("evidence", "model-evidence"), "how probable these data are under the prior of a width"),
    "prediction": (("gcv", "loo", "fpe", "uev"), "how large the error (or the noise) of predictions is"),
    "parsimony": (("bic",), "the same at a higher price per parameter"),
}

#: The share of an error estimate a reader may lose and shrug: mostly less than its own sampling error.
SMALL_LOSS = 0.05


def verdict(table: pd.DataFrame, criteria: Sequence[str], interrupted: bool = False, planned: int | None = None) -> str:
    """Say what the curves allow one to say, in a few sentences and no more than they allow."""
    return " ".join(verdict_sentences(table, criteria, interrupted, planned))


def verdict_sentences(
    table: pd.DataFrame, criteria: Sequence[str], interrupted: bool = False, planned: int | None = None
) -> list[str]:
    """Return the thoughts of :func:`verdict` one by one, the most important first."""
    if len(table) and (table["status"] == "CONSTANT_TARGET").all():
        return ["The target does not vary: there is nothing to compare, and what the columns differ by is rounding."]
    silent = cut_off(table, criteria)
    heard = [name for name in criteria if name not in silent] or list(criteria)
    chosen = preferences(table, heard)
    if not chosen:
        return ["No criterion has a finite value at any width: look at the statuses."]
    said = _preference(table, chosen)
    if len(table) > 1:
        said += [*_ends(table, heard), *_spread(table, criteria, chosen)]
    said += [*_statuses(table, chosen), *_interpolation(silent, len(silent) < len(criteria))]
    if interrupted:
        of = f" of {planned}" if planned else ""
        said.append(f"The run was interrupted: {len(table)}{of} widths were finished, spread over the grid.")
    return said


def _who(names: Sequence[str]) -> str:
    words = {"evidence": "the evidence", "model-evidence": "the model evidence"}
    return listing([words.get(name, CRITERIA[name].label) for name in names])


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
            f"The criteria name different widths, but r = {number(reference)} serves them all.",
            f"Best are {groups}. At r = {number(reference)} the others come within {_largest(losses)} of their best.",
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


def _spread(table: pd.DataFrame, criteria: Sequence[str], chosen: Mapping[float, tuple[str, ...]]) -> list[str]:
    """Say how many widths the evidence cannot tell from its best."""
    if "evidence" not in criteria:
        return []
    near = credible_widths(table)
    if len(near) < 2:
        return ["No other width of the grid comes within 3 nats (odds of 20 to 1) of the best log evidence."]
    said = f"The {len(near)} widths from {number(near[0])} to {number(near[-1])} have a log evidence within 3 nats"
    if near != tuple(table.index[(table.index >= near[0]) & (table.index <= near[-1])]):
        said = f"{len(near)} widths between {number(near[0])} and {number(near[-1])} have a log evidence within 3 nats"
    said += " (odds below 20 to 1) of the best"
    found = optima(table.index, table["evidence"], higher_is_better=True)
    rivals = [one.width for one in found[1:] if one.width in near]
    if rivals:
        said += f", with a second peak at r = {number(rivals[0])}"
    if len(chosen) > 1 and set(chosen) <= set(near):
        said += ", and all the preferred ones are among them"
    return [f"{said}: by the evidence the data do not tell these apart."]


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


def _interpolation(silent: Sequence[str], others: bool) -> list[str]:
    """Say why UEV, FPE or BIC are not heard."""
    if not silent:
        return []
    one = len(silent) == 1
    verb, they, them = ("has", "it vanishes", "it") if one else ("have", "they vanish", "them")
    say = f"{verb} no say" if others else f"{verb} little to say"
    return [
        f"{_who(silent)} {say} here: with this many functions {they} where the fit passes through every row, whatever "
        f"the data. Fewer centres would give {them} a voice."
    ]
