"""What may be concluded from criteria over kernel widths, in sentences: finished numbers in, words out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from bayessel._text import capitalised, listing, number
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import MDL_W
from bayessel.criteria.error_estimates import BIC, GCV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.leave_one_out import ELPD_LOO, LOO
from bayessel.criteria.prequential import PREQUENTIAL
from bayessel.criteria.registry import CHARGING
from bayessel.fit import Status
from bayessel.policy import CLOSE_WIDTHS
from bayessel.widths._notes import NO_SIGNAL, notes_of
from bayessel.widths.curves import (
    Label,
    credible_widths,
    curves,
    cut_off,
    needs_attention,
    preferences,
    say,
    scales,
    turning_points,
    value_at,
    width_of,
    with_delta,
)

# Why families of criteria may prefer different widths, and who belongs to them.
_FAMILY_WHY = {
    EVIDENCE.family: "how probable these data are under the prior of a width",
    MDL_W.family: "how short a message is that sends the functions in use and then the residuals",
    GCV.family: "how large the error (or the noise) of predictions is",
    PREQUENTIAL.family: "how well each row is foretold from those before it",
    BIC.family: "how large the error is at a higher price per parameter",
}

#: per cents beyond which the number itself says nothing
_ABSURD = 1000


def verdict_sentences(
    table: pd.DataFrame,
    criteria: Sequence[str],
    interrupted: bool = False,
    planned: int | None = None,
    offered: int | None = None,
    unsettled: Sequence[str] = (),
) -> list[str]:
    """Say what the curves allow one to say, and no more than they allow; the most important thought first.

    ``offered`` is the number of functions a sparse model could choose from; ``unsettled`` are the criteria a search had
    to leave before their optima were known well enough.
    """
    if len(table) and (table["status"] == Status.CONSTANT_TARGET.name).all():
        return ["The target does not vary: there is nothing to compare, and what the columns differ by is rounding."]
    silent = cut_off(table, criteria)
    heard = [name for name in criteria if name not in silent] or list(criteria)
    chosen = preferences(table, heard)
    if not chosen:
        return ["No criterion has a finite value at any width: look at the statuses."]
    said = [*_no_signal(table, criteria), *_preference(table, chosen, offered)]
    if len(table) > 1:
        said += [*_kinds(table, chosen), *_scales(table, heard), *_deltas(table, heard)]
        said += [*_ends(table, heard), *_spread(table, criteria, chosen)]
    said += [*_statuses(table, chosen), *_interpolation(silent, len(silent) < len(criteria))]
    if unsettled:
        said.append(_unsettled(unsettled, len(table)))
    if interrupted:
        said.append(_interrupted(len(table), planned))
    return said


def _no_signal(table: pd.DataFrame, criteria: Sequence[str]) -> list[str]:
    """Say which criteria that charge for functions would rather have none, at every width.

    The model evidence is asked in the place of others where none of them was.
    """
    noted = [notes_of(str(text)).get(NO_SIGNAL, []) for text in table.get("notes", ())]
    asked = [name for name in CHARGING if name in criteria] or [MODEL_EVIDENCE.name]

    def sees_none(name: str) -> bool:
        known = np.isfinite(table[name].to_numpy(dtype=float)) if name in table else np.ones(len(table), dtype=bool)
        return bool(known.any()) and all(name in names for names, k in zip(noted, known, strict=True) if k)

    if not len(noted) or not any(noted) or not (none := [name for name in asked if sees_none(name)]):
        return []
    where = "at no width do they pay" if len(table) > 1 else "they do not pay"
    if len(none) < len([name for name in asked if name not in table or table[name].notna().any()]):
        return [f"By {who(none)} the functions find no signal: {where} for themselves."]
    return [
        f"No criterion that charges for the functions in use ({who(none)}) finds a signal: {where} for themselves, and "
        "the model without functions does at least as well. What follows ranks fits to noise, as far as they can tell."
    ]


def finds_no_signal(table: pd.DataFrame, criteria: Sequence[str]) -> bool:
    """Whether every criterion that charges for functions would rather have none, at every width."""
    return any(said.startswith("No criterion") for said in _no_signal(table, criteria))


def who(names: Sequence[str]) -> str:
    """Write criteria as in a sentence: the evidence, GCV and LOO."""
    return listing([CRITERIA[name].phrase for name in names])


def _reference(chosen: Mapping[Label, tuple[str, ...]]) -> tuple[str, Label]:
    """Who speaks first, and its choice: the evidence if it was asked for, else the first in the usual order."""
    order = [EVIDENCE.name, MODEL_EVIDENCE.name, *CRITERIA]
    return next((name, label) for name in order for label in chosen if name in chosen[label])


def _preference(table: pd.DataFrame, chosen: Mapping[Label, tuple[str, ...]], offered: int | None) -> list[str]:
    """A headline, and what is behind it where the criteria differ."""
    count = sum(len(names) for names in chosen.values())
    labels = list(chosen)
    if len(table) == 1:
        return [f"Only one width was tried, {say(labels[0])}: there is nothing to compare."]
    if len(labels) == 1:
        those = f"all {count} criteria prefer" if count > 1 else f"{who(chosen[labels[0]])} prefers"
        return [f"{capitalised(those)} {say(labels[0])}."]
    _, reference = _reference(chosen)
    order = sorted(labels, key=lambda label: (label != reference, -len(chosen[label]), labels.index(label)))
    groups = "; ".join(f"{say(label)} by {who(chosen[label])}" for label in order)
    by_name = [f"{who(chosen[label])} {say(label)}" for label in order]
    by_name[0] = f"{who(chosen[order[0]])} {'prefers' if len(chosen[order[0]]) == 1 else 'prefer'} {say(order[0])}"
    if near := _near(table, labels):
        return [f"The {count} criteria agree to within {near}: {groups}."]
    losses = {name: loss(table, name, reference) for label in order[1:] for name in chosen[label]}
    worst = max(losses, key=lambda name: losses[name] / allowed_loss(table, name, reference))
    if losses[worst] <= allowed_loss(table, worst, reference):
        return [
            f"The criteria name different widths, but {say(reference)} serves them all.",
            f"Best are {groups}. At {say(reference)} the others come within {_largest(losses)} of their best"
            + (", or within one standard error." if _by_error_only(table, losses, reference) else "."),
        ]
    behind = "short of" if CRITERIA[worst].higher_is_better else "above"
    cost = f"is {_largest({worst: losses[worst]})} {behind} its best"
    if np.isinf(losses[worst]):
        cost = "has no value that means anything"
    many = len(order) > 3
    headline = f"{by_name[0]}; the {count} criteria name {len(order)} widths" if many else ", ".join(by_name)
    return [
        f"{capitalised(headline)}{' and disagree' if many else ': the criteria disagree'}.",
        (f"Best are {groups}. " if many else "") + f"It matters: at {say(reference)} {who([worst])} {cost}.",
        _why(table, chosen, offered),
    ]


def _near(table: pd.DataFrame, labels: Sequence[Label]) -> str:
    """Say how close the preferred widths are, if they are close; else the empty text."""
    kinds = {label[0] if isinstance(label, tuple) else "" for label in labels}
    if len(kinds) > 1:
        return ""
    grid = curves(table)[kinds.pop()].index.to_numpy(dtype=float)
    widths = np.array([width_of(label) for label in labels])
    if np.ptp(np.searchsorted(grid, widths)) <= 1:
        return "one step of the grid"
    apart = float(widths.max() / widths.min() - 1.0)
    return f"{100 * apart:.0f} %" if apart < CLOSE_WIDTHS else ""


def allowed_loss(table: pd.DataFrame, name: str, label: Label) -> float:
    """The largest loss against its best that is no reason to worry: the reader's, or one standard error of it."""
    criterion = CRITERIA[name]
    error = value_at(table, f"{name}_diff_se", label)
    if not criterion.in_nats:
        best = turning_points(table, name)[0].value
        error = error / best if best > 0 else np.nan
    return max(criterion.negligible_loss, error) if np.isfinite(error) else criterion.negligible_loss


def _by_error_only(table: pd.DataFrame, losses: Mapping[str, float], label: Label) -> bool:
    return any(loss > CRITERIA[name].negligible_loss for name, loss in losses.items())


def loss(table: pd.DataFrame, name: str, label: Label) -> float:
    """What a criterion loses at a row against its own best: nats, or a fraction of the best error."""
    criterion = CRITERIA[name]
    best = turning_points(table, name)[0].value
    here = value_at(table, name, label)
    if not np.isfinite(here):
        return float("inf")
    if criterion.in_nats:
        return best - here if criterion.higher_is_better else here - best
    return here / best - 1.0 if best > 0 else float("inf") if here > best else 0.0


def _largest(losses: Mapping[str, float]) -> str:
    """The largest loss in each unit, as text: 2.3 % and 0.4 nats."""
    nats = [loss for name, loss in losses.items() if CRITERIA[name].in_nats]
    parts = [100 * loss for name, loss in losses.items() if not CRITERIA[name].in_nats]
    said = []
    if parts:
        most = max(parts)
        said = [f"{most:.1f} %" if most < 100 else f"{most:.0f} %" if most < _ABSURD else f"over {_ABSURD} %"]
    return " and ".join([*said, *([f"{max(nats):.1f} nats"] if nats else [])])


def _why(table: pd.DataFrame, chosen: Mapping[Label, tuple[str, ...]], offered: int | None) -> str:
    """Say which questions the criteria at hand answer, where they are different ones, and what functions cost them."""
    by_family: dict[str, list[str]] = {}
    for name in (name for name in CRITERIA if any(name in names for names in chosen.values())):
        by_family.setdefault(CRITERIA[name].family, []).append(name)
    if len(by_family) == 1:
        return "They ask the same question, but punish parameters differently hard."
    asked = [
        f"{who(by_family[family])} {'asks' if len(by_family[family]) == 1 else 'ask'} {question}"
        for family, question in _FAMILY_WHY.items()
        if family in by_family
    ]
    said = f"They answer different questions: {'; '.join(asked)}."
    if MDL_W.family in by_family and offered:
        names = {name: label for label in chosen for name in chosen[label]}
        mdl = by_family[MDL_W.family][0]
        size = {name: _functions(table, label) for name, label in names.items()}
        rival = next(
            (name for name in (LOO.name, ELPD_LOO.name, GCV.name, EVIDENCE.name) if size.get(name, 0) > size[mdl]), None
        )
        said += (
            f" MDL pays {np.log(offered):.1f} nats (ln {offered}) to name each function"
            f"{', and more to send its weight' if mdl == MDL_W.name else ''}, and stops at {size[mdl]} of them"
        )
        if rival == EVIDENCE.name:
            said += f"; the evidence pays less and takes {size[rival]}."
        elif rival:
            said += (
                f"; {who([rival])} takes {size[rival]}, and pays nothing for having picked them by these very rows, "
                "which flatters narrow widths."
            )
        else:
            said += "."
    return said


def _kinds(table: pd.DataFrame, chosen: Mapping[Label, tuple[str, ...]]) -> list[str]:
    """Say how far the other kinds of function are behind, by the criterion that speaks first."""
    if table.index.nlevels == 1:
        return []
    speaker, reference = _reference(chosen)
    criterion = CRITERIA[speaker]
    behind = []
    for kind in curves(table):
        found = [one for one in turning_points(table, speaker) if one.kind == kind]
        if isinstance(reference, tuple) and kind == reference[0]:
            continue
        if not found:
            behind.append(f"{kind.replace('_', ' ')} functions have no finite value")
            continue
        gap = _largest({speaker: loss(table, speaker, found[0].label)})
        verb = "short" if criterion.higher_is_better else "above"
        behind.append(f"the best {kind.replace('_', ' ')} width ({say(found[0].width)}) is {gap} {verb}")
    return [f"By {who([speaker])} {listing(behind)}."]


def _scales(table: pd.DataFrame, criteria: Sequence[str]) -> list[str]:
    """Name further optima that a good margin parts from the best: other scales in the same data."""
    said = []
    for name in (name for name in criteria if CRITERIA[name].family in (MDL_W.family, EVIDENCE.family)):
        found = scales(table, name)
        if len(found) < 2:
            continue
        others = [
            f"{say(one.label)} ({_size(table, one.label)}{_largest({name: loss(table, name, one.label)})} worse, "
            f"beyond a rise of {one.depth:.1f} nats)"
            for one in found[1:]
        ]
        best = say(found[0].label)
        said.append(
            f"{capitalised(who([name]))} has separate optima: besides {best} also {listing(others)}. The data may hold "
            "structure on more than one scale; look at each fit."
        )
        break
    return said


def _size(table: pd.DataFrame, label: Label) -> str:
    if "n_basis" not in table or table["n_basis"].nunique() == 1:
        return ""
    size = _functions(table, label)
    return f"{size} function{'s' if size != 1 else ''}, "


def _functions(table: pd.DataFrame, label: Label) -> int:
    return int(value_at(table, "n_basis", label))


def _deltas(table: pd.DataFrame, criteria: Sequence[str]) -> list[str]:
    """Say whether the choice of MDL-w hangs on the precision its weights are sent with."""
    if MDL_W.name not in criteria:
        return []
    found = {delta: turning_points(with_delta(table, MDL_W.name, delta), MDL_W.name) for delta in (0.01, 0.1, 1.0)}
    best = {delta: each[0].label for delta, each in found.items() if each}
    if len(set(best.values())) <= 1 or _near(table, list(dict.fromkeys(best.values()))):
        return ["MDL-w hardly depends on the precision delta of its weights: 0.01 and 1 lead to the same width."]
    by_label: dict[Label, list[str]] = {}
    for delta, label in best.items():
        by_label.setdefault(label, []).append(f"{delta:g}")
    choices = listing([f"{say(label)} at {listing(deltas)}" for label, deltas in by_label.items()])
    return [f"MDL-w depends on the precision delta of its weights: {choices}."]


def _spread(table: pd.DataFrame, criteria: Sequence[str], chosen: Mapping[Label, tuple[str, ...]]) -> list[str]:
    """Say how many widths the evidence cannot tell from its best."""
    if EVIDENCE.name not in criteria:
        return []
    near = credible_widths(table)
    if len(near) < 2:
        return ["No other width of the grid comes within 3 nats (odds of 20 to 1) of the best log evidence."]
    widths = sorted({width_of(label) for label in near})
    between = table.index[[widths[0] <= width_of(label) <= widths[-1] for label in table.index]]
    what = f"{len(near)} candidates" if table.index.nlevels > 1 else f"{len(near)} widths"
    said = f"The {what} from {number(widths[0])} to {number(widths[-1])} have a log evidence within 3 nats"
    if near != tuple(between):
        said = f"{what} between {number(widths[0])} and {number(widths[-1])} have a log evidence within 3 nats"
    said += " (odds below 20 to 1) of the best"
    rivals = [one.label for one in turning_points(table, EVIDENCE.name)[1:] if one.label in near]
    if rivals:
        said += f", with a second peak at {say(rivals[0])}"
    if len(chosen) > 1 and set(chosen) <= set(near):
        said += ", and all the preferred ones are among them"
    return [f"{said}: by the evidence the data do not tell these apart."]


def _ends(table: pd.DataFrame, criteria: Sequence[str]) -> list[str]:
    ends: dict[str, list[str]] = {}
    limits = {}
    for name in criteria:
        found = turning_points(table, name)
        if found and found[0].at_end:
            grid = curves(table)[found[0].kind].index.to_numpy(dtype=float)
            side = "below" if abs(found[0].width - grid[0]) < abs(found[0].width - grid[-1]) else "above"
            limits[side] = grid[0] if side == "below" else grid[-1]
            ends.setdefault(side, []).append(name)
    said = []
    for side, names in ends.items():
        what, verb = ("optimum", "lies") if len(names) == 1 else ("optima", "lie")
        where = f"{side} {number(float(limits[side]))}"
        said.append(f"The {what} of {who(names)} {verb} at the end of the grid: widen it {where}.")
    return said


def _statuses(table: pd.DataFrame, chosen: Mapping[Label, tuple[str, ...]]) -> list[str]:
    """Name the warnings that bear on a preferred width; count the rest."""
    warned = {label: str(s) for label, s in table["status"].items() if needs_attention(str(s))}
    said = []
    for status in dict.fromkeys(warned[label] for label in chosen if label in warned):
        at = [f"{say(label)} ({who(chosen[label])})" for label in chosen if warned.get(label) == status]
        said.append(f"Status of the fit at the preferred {listing(at)}: {status}.")
    others = [status for label, status in warned.items() if label not in chosen]
    if others:
        one = len(others) == 1
        kinds = listing(sorted(set(others)))
        said.append(f"{len(others)} other width{' carries' if one else 's carry'} a warning status ({kinds}).")
    return said


def _interpolation(silent: Sequence[str], others: bool) -> list[str]:
    """Say why some criteria are not heard."""
    if not silent:
        return []
    one = len(silent) == 1
    verb, they, them = ("has", "it rewards", "it") if one else ("have", "they reward", "them")
    words = f"{verb} no say" if others else f"{verb} little to say"
    return [
        f"{capitalised(who(silent))} {words} here: with this many functions {they} a fit that passes through every "
        f"row, whatever the data. Fewer centres, or wider functions, would give {them} a voice."
    ]


def _unsettled(names: Sequence[str], visited: int) -> str:
    return (
        f"The search ended with its budget, after {visited} widths, before every optimum of {who(names)} was known to "
        "tol: raise the budget, or search by fewer criteria."
    )


def _interrupted(finished: int, planned: int | None) -> str:
    if planned == finished:
        return "The run was interrupted while fits were being improved from their neighbours."
    of = f" of {planned}" if planned else ""
    return f"The run was interrupted: {finished}{of} widths were finished, spread over the grid."
