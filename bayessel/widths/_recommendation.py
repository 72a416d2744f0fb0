"""Which width to take for which purpose, or why that is undecided: finished numbers in, a sentence each out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from bayessel._text import number
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W
from bayessel.criteria.error_estimates import BIC, FPE, GCV, UEV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.holdout import HOLDOUT
from bayessel.criteria.leave_one_out import ELPD_LOO, LOO
from bayessel.criteria.prequential import PREQUENTIAL
from bayessel.fit import Status
from bayessel.policy import SEPARATE_WIDTHS
from bayessel.widths._verdict import allowed_loss, finds_no_signal, loss, who
from bayessel.widths.curves import (
    CurveOptimum,
    curves,
    cut_off,
    needs_attention,
    say,
    scales,
    turning_points,
    value_at,
    width_of,
)

#: what a person wants, and the criteria that answer it, the first that was computed speaks
PURPOSES = {
    "To predict new rows": (HOLDOUT, ELPD_LOO, LOO, GCV, FPE, UEV),
    "To describe the data in few words": (MDL_W, MDL_ALPHA, BIC),
    "To say what is probable": (MODEL_EVIDENCE, EVIDENCE, PREQUENTIAL),
}


class Recommendation(NamedTuple):
    """What to do for one purpose.

    Attributes
    ----------
    purpose : str
    decided : bool
        Whether the data decide it.
    advice : str
        Which width, or why none.
    """

    purpose: str
    decided: bool
    advice: str

    def __str__(self) -> str:
        return f"{self.purpose}: {self.advice}"


def recommendations(table: pd.DataFrame, criteria: Sequence[str]) -> list[Recommendation]:
    """One for each purpose that some criterion of the table answers."""
    silent = cut_off(table, criteria)
    none = len(table) > 0 and finds_no_signal(table, criteria)
    found = []
    for purpose, able in PURPOSES.items():
        names = [one.name for one in able if one.name in criteria and one.name not in silent]
        names = [name for name in names if turning_points(table, name)]
        mute = [one.name for one in able if one.name in silent]
        if mute and not names:
            why = f"{who(mute)} only {'rewards' if len(mute) == 1 else 'reward'} fits that pass through every row"
            said = f"undecided, because {why}: offer fewer or wider functions, or hold rows out (holdout=0.2)."
            found.append(Recommendation(purpose, False, said))
        if names:
            found.append(Recommendation(purpose, *_advised(table, names[0], none)))
    return found


def _advised(table: pd.DataFrame, name: str, none: bool) -> tuple[bool, str]:
    """Whether it is decided, and what to take."""
    phrase, best = CRITERIA[name].phrase, turning_points(table, name)[0]
    if none:
        return (
            False,
            "undecided, because no function pays for itself at any width: take none, or look for other inputs.",
        )
    if len(table) == 1:
        return False, f"undecided, because {say(best.label)} is the only width that was tried."
    if best.at_end:
        side = "below" if best.width <= _middle(table, best) else "above"
        grid = f"widen the grid {side} {number(best.width)}"
        return False, f"undecided, because {phrase} still improves at the end of the grid: {grid} and run again."
    status = str(table["status"][best.label])
    care = f" Look at the fit first: {Status[status].words}." if _named(status) and needs_attention(status) else ""
    sparse = "n_basis" in table and table["n_basis"].nunique() > 1
    size = int(value_at(table, "n_basis", best.label)) if sparse else 0
    functions = f", {size} function{'s' if size != 1 else ''}" if size else ""
    as_good = [label for label in table.index if loss(table, name, label) <= allowed_loss(table, name, label)]
    others = [one for one in scales(table, name)[1:] if one.label in as_good]
    if others:
        rivals = " or ".join(say(one.label) for one in (best, *others))
        return False, f"undecided between {rivals}, because {phrase} hardly tells them apart.{care}"
    kind = best.kind
    near = sorted(width_of(label) for label in as_good if not isinstance(label, tuple) or label[0] == kind)
    low, high = near[0], near[-1]
    take = f"take {say(best.label)}{functions}, by {phrase}"
    if high > SEPARATE_WIDTHS**2 * low:
        return True, f"{take}; any width from {number(low)} to {number(high)} does about as well.{care}"
    return True, f"{take}.{care}"


def _named(status: str) -> bool:
    return status in Status.__members__


def _middle(table: pd.DataFrame, best: CurveOptimum) -> float:
    """The geometric middle of the widths of its kind."""
    widths = curves(table)[best.kind].index.to_numpy(dtype=float)
    return float(np.sqrt(widths[0]) * np.sqrt(widths[-1]))
