"""Fits of a comparison of widths in a folder, each found again by its width and by what it started from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from bayessel._fingerprint import fingerprint
from bayessel.criteria.holdout import HOLDOUT
from bayessel.widths._problem import Candidate, WidthOutcome, WidthProblem
from bayessel.widths.curves import DrawnFit
from bayessel.work.json_values import dumps, to_tree
from bayessel.work.result_store import ResultStore


def sweep_store(folder: str | os.PathLike[str], problem: WidthProblem, model: str) -> ResultStore[WidthOutcome | None]:
    """Open the folder; one with fits of other data, or with other settings, is refused."""
    settings = {
        "model": model,
        "criteria": list(problem.criteria),
        "centers": fingerprint(problem.centres),
        "bias": problem.bias,
        HOLDOUT.name: None if problem.held is None else fingerprint(*problem.held),
        "random_state": problem.seed,
    }
    return ResultStore(folder, "comparison of widths", settings, fingerprint(problem.X, problem.t), _packed, _unpacked)


def unit_key(place: Candidate, starts: Sequence[Any], beaten: float) -> str:
    """Name of a fit: the kind of function, the width, and a digest of the fits it starts from."""
    name = f"{place.kind} {float(place.width).hex()}"
    if not starts:
        return name
    return f"{name} {hashlib.sha256(dumps(to_tree([list(starts), float(beaten)])).encode()).hexdigest()[:16]}"


def _packed(outcome: WidthOutcome | None) -> Any:
    """An outcome as a dictionary of numbers, text and arrays."""
    if outcome is None:
        return None
    return {**vars(outcome), "prediction": vars(outcome.prediction)}


def _unpacked(packed: Any) -> WidthOutcome | None:
    if packed is None:
        return None
    known = {field.name for field in fields(DrawnFit)}
    drawn = DrawnFit(**{name: value for name, value in packed["prediction"].items() if name in known})
    return WidthOutcome(**{**packed, "prediction": drawn})
