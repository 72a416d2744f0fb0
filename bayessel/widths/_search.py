"""The next widths of a search: the gaps beside every optimum that is followed are halved until they are small."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayessel.criteria import CRITERIA
from bayessel.policy import SEPARATE_WIDTHS
from bayessel.widths._finished_widths import FinishedWidths
from bayessel.widths._problem import Candidate
from bayessel.widths.curves import CurveOptimum, curves, optima

#: widths of the first look at an interval
FIRST_SCAN = 13
#: optima per criterion and kind that are followed
_FOLLOWED = 4


def finer(ledger: FinishedWidths, criteria: Sequence[str], budget: int, tol: float) -> list[Candidate]:
    """Return the widths to visit next; none when every optimum is known to ``tol`` or the budget is spent.

    Halving needs no smoothness: the curves of a sparse model have steps where functions come and go.
    """
    wanted: list[Candidate] = []
    table = ledger.table()
    for kind, frame in curves(table).items():
        name_of_kind = kind or ledger.kinds[0]
        widths = frame.index.to_numpy(dtype=float)
        room = budget - len(widths)
        gaps: dict[float, None] = {}
        for name in criteria:
            for one in _followed(optima(widths, frame[name], CRITERIA[name].higher_is_better)):
                at = int(np.searchsorted(widths, one.width))
                for lo, hi in ((at - 1, at), (at, at + 1)):
                    if lo >= 0 and hi < len(widths) and widths[hi] > widths[lo] * (1.0 + tol):
                        gaps[float(np.sqrt(widths[lo]) * np.sqrt(widths[hi]))] = None
        wanted += [Candidate(name_of_kind, r) for r in list(gaps)[: max(room, 0)]]
    return wanted


def unsettled(ledger: FinishedWidths, criteria: Sequence[str], tol: float) -> tuple[str, ...]:
    """Criteria of which an optimum is not known to ``tol`` yet."""
    boundless = len(ledger.rows) + 10**6
    return tuple(name for name in criteria if finer(ledger, [name], boundless, tol))


def _followed(found: Sequence[CurveOptimum]) -> list[CurveOptimum]:
    """Return the best optima that lie apart from each other.

    How deep one is does not matter yet: between widths far from each other a deep one may show as a scratch.
    """
    kept: list[CurveOptimum] = []
    for one in found:
        if all(abs(np.log(one.width / other.width)) > np.log(SEPARATE_WIDTHS) for other in kept):
            kept.append(one)
    return kept[:_FOLLOWED]
