"""What a criterion says along the path of a selection, and what is to be said of how the path ended."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel.criteria import CRITERIA
from bayessel.criteria.evidence import EVIDENCE
from bayessel.criteria.leave_one_out import LOO
from bayessel.criteria.registry import OF_RIDGE, OF_SUMS, from_sums
from bayessel.fit import Status
from bayessel.linear.columns.greedy import INTERRUPTED
from bayessel.linear.forward.methods import LeastSquaresSteps
from bayessel.linear.reported_sums import left_out
from bayessel.linear.type2 import fit_evidence

#: criteria that `record` computes cheaply at every size, and "cv": rows held out
STOPS = (*OF_RIDGE, EVIDENCE.name, "cv")


def record(method: LeastSquaresSteps, stop: str | None) -> dict[str, Any]:
    """Every criterion that is cheap at the present size, and the one that stops the search as ``value``."""
    g = method.growth
    S, trace = method.sums()
    out: dict[str, Any] = {"size": g.n_columns, "column": g.chosen[-1] if g.chosen else -1}
    out |= {"error": S / g.n_counted, "gamma": g.n_counted - trace, "lam": method.lam}
    out |= {name: float(from_sums(name, g.n_counted, S, trace)) for name in OF_SUMS}
    if stop == LOO.name:
        out[LOO.name] = float(np.sum(left_out(*method.left_out()) ** 2) / g.n_counted)
    elif stop == EVIDENCE.name:
        out[EVIDENCE.name] = fit_evidence(LeastSquaresSteps(g).spectrum).log_evidence if g.n_columns else np.nan
    out["value"] = judged(out, stop, g.n_counted)
    return out


def judged(at: dict[str, Any], stop: str | None, n_rows: float) -> float:
    """Value of the stopping criterion, infinite where it says nothing because too few rows are left to the noise."""
    if stop is None or stop == "cv":
        return np.nan
    if stop == EVIDENCE.name:
        return -float(at[EVIDENCE.name])
    return float(at[stop]) if CRITERIA[stop].has_meaning(n_rows, at["gamma"]) else np.inf


def notes_of(stopped: str, stop: str | None, best: int, reached: int, skipped: bool) -> list[Status]:
    """What is to be said of how a path ended."""
    notes = []
    if best == reached and reached > 0:  # it was still getting better
        if stopped == "ill-conditioned":
            notes.append(Status.ILL_CONDITIONED)
        elif stopped == "max_size" and stop is not None:  # else so many were asked for
            notes.append(Status.STEP_LIMIT)
    if skipped:
        notes.append(Status.COLLINEAR_SKIPPED)
    if stopped == INTERRUPTED:
        notes.append(Status.INTERRUPTED)
    elif best == 0:
        notes.append(Status.PURE_NOISE)
    return notes
