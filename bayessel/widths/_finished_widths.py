"""What is finished so far: rows of the table, their terms, the fits worth drawing."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W
from bayessel.criteria.evidence import EVIDENCE
from bayessel.widths._problem import Candidate, WidthOutcome, WidthProblem
from bayessel.widths.curves import DrawnFit, Label, preferences, row_of, scales, turning_points

#: Numbers kept beside the table at most (40 MB of them): beyond, only the leaders' fits, and no further terms.
KEPT = 5_000_000
#: The criterion whose separate optima are drawn, by the first of these that was asked for.
_SCALES_BY = (MDL_W.name, MDL_ALPHA.name, EVIDENCE.name)


class FinishedWidths:
    """Finished places. What it gives back does not depend on the order in which they were entered."""

    def __init__(self, problem: WidthProblem, kinds: Sequence[str]) -> None:
        self.problem, self.kinds = problem, tuple(kinds)
        self.rows: dict[Candidate, dict[str, Any]] = {}
        self._grids: dict[str, list[float]] = {kind: [] for kind in kinds}
        self.starts: dict[Candidate, Any] = {}
        self.evidences: dict[Candidate, float] = {}
        self._predictions: dict[Candidate, DrawnFit] = {}
        self._losses: dict[Candidate, dict[str, FloatArray]] = {}

    def enter(self, place: Candidate, outcome: WidthOutcome) -> None:
        """Enter a finished place, or what replaces it."""
        if place not in self.rows:
            insort(self._grids[place.kind], place.width)
        self.rows[place] = outcome.row
        self.starts[place], self.evidences[place] = outcome.start, outcome.log_evidence
        self._predictions[place] = outcome.prediction
        self._losses[place] = outcome.losses
        size = 2 * len(self.problem.t) + 1000
        if size * len(self._predictions) > KEPT:
            leading = self._leading()
            self._predictions = {old: kept for old, kept in self._predictions.items() if old in leading}
        if len(self.problem.t) * sum(map(len, self._losses.values())) > KEPT:
            self._losses[place] = {}

    def places(self) -> list[Candidate]:
        """Finished places: by kind in the order asked for, then by width."""
        return [Candidate(kind, r) for kind in self.kinds for r in self._grids[kind]]

    def dented(self, place: Candidate) -> bool:
        """Whether the evidence lies below the line through its neighbours on the logarithm of the width.

        At the optimum of every width it is a smooth curve, and bends down around its peaks: a local optimum that a
        neighbour escaped shows as a dent. At the ends the line goes on through the two nearest widths.
        """
        grid, at = self._grids[place.kind], self._position(place)
        near = [k for k in (at - 1, at + 1) if 0 <= k < len(grid)]
        if len(near) == 1:
            near += [k for k in (at - 2, at + 2) if 0 <= k < len(grid)]
        if len(near) < 2:
            return True
        (u, v), here = np.log([grid[k] for k in near]), np.log(place.width)
        low, high = (self.evidences[Candidate(place.kind, grid[k])] for k in near)
        return bool(self.evidences[place] < low + (high - low) * (here - u) / (v - u))

    def neighbours(self, place: Candidate) -> list[Candidate]:
        """Return the finished places on both sides, the narrower first."""
        grid, at = self._grids[place.kind], self._position(place)
        return [Candidate(place.kind, r) for r in grid[max(at - 1, 0) : at + 2] if r != place.width]

    def _position(self, place: Candidate) -> int:
        return bisect_left(self._grids[place.kind], place.width)

    def table(self) -> pd.DataFrame:
        """One row per finished place: by kind in the order asked for, then by width."""
        places = self.places()
        index: Any = pd.Index([place.width for place in places], name="width", dtype=np.float64)
        if len(self.kinds) > 1:
            index = pd.MultiIndex.from_tuples(places, names=["kind", "width"])
        table = pd.DataFrame([self.rows[place] for place in places], index=index)
        return self._with_errors(table, places)

    def fits(self, table: pd.DataFrame) -> dict[Label, DrawnFit]:
        """Fits at the places that some criterion prefers, and at the separate optima of the first that has a scale."""
        wanted = set(preferences(table, self.problem.criteria))
        for name in _SCALES_BY:
            if name in self.problem.criteria:
                wanted |= {one.label for one in scales(table, name)}
                break
        by_label = {self._label(place): kept for place, kept in self._predictions.items()}
        return {label: by_label[label] for label in table.index if label in wanted and label in by_label}

    def _label(self, place: Candidate) -> Label:
        return (place.kind, place.width) if len(self.kinds) > 1 else place.width

    def _leading(self) -> set[Candidate]:
        """Places that are the best so far by some criterion; of equals the narrowest."""
        leading = set()
        for name in self.problem.criteria:
            sign = CRITERIA[name].sign
            known = [(sign * row[name], -place.width, place) for place, row in self.rows.items()]
            known = [one for one in known if np.isfinite(one[0])]
            if known:
                leading.add(max(known)[2])
        return leading

    def _with_errors(self, table: pd.DataFrame, places: Sequence[Candidate]) -> pd.DataFrame:
        """Append standard errors: of criteria that are means or sums over rows, and of their difference to the best.

        The rows are the same everywhere, so most of their scatter cancels in the difference.
        """
        for name in self.problem.criteria:
            terms = [self._losses[place].get(name) for place in places]
            if all(one is None for one in terms):
                continue
            best = turning_points(table, name)
            reference = terms[row_of(table, best[0].label)] if best else None
            gaps = [None if one is None or reference is None else one - reference for one in terms]
            after = int(table.columns.get_loc(name)) + 1  # type: ignore[arg-type]
            table.insert(after, f"{name}_se", [_standard_error(name, one) for one in terms])
            table.insert(after + 1, f"{name}_diff_se", [_standard_error(name, gap) for gap in gaps])
        return table


def _standard_error(name: str, terms: FloatArray | None) -> float:
    """Of the mean of the terms, or of their sum where the criterion is one."""
    if terms is None or len(terms) < 2:
        return float("nan")
    spread = float(terms.std(ddof=1))
    return spread * len(terms) ** 0.5 if CRITERIA[name].summed else spread / len(terms) ** 0.5
