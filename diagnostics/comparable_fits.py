"""Whether fits may be compared: the same data, and evidences that are one kind of number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE, integrated
from bayessel.diagnostics.fit_reader import Reading
from bayessel.errors import DataMismatchError
from bayessel.fit import Evidence


def refuse_different_data(readings: Mapping[str, Reading]) -> None:
    """Targets must be the same, and so must the inputs wherever two fits know theirs."""
    for attribute, what in (("target_fingerprint", "targets"), ("data_fingerprint", "data")):
        known = [(name, getattr(at, attribute)) for name, at in readings.items() if getattr(at, attribute) is not None]
        for name, fingerprint in known[1:]:
            first, other = known[0]
            if fingerprint != other:
                raise DataMismatchError(
                    f"{first!r} and {name!r} were fitted to different {what} (fingerprints {other} and {fingerprint}): "
                    "their numbers cannot be compared; fit both to the same rows, in the same order and units"
                )
    sizes = {at.fit.n_rows for at in readings.values()}
    if len(sizes) > 1:  # a result without a fingerprint comes from a stream
        raise DataMismatchError(f"the fits have different numbers of rows: {sorted(sizes)}")


def refuse_mixed_kinds(readings: Mapping[str, Reading], by: str, remedy: str) -> None:
    """Evidences must be one kind of number; `remedy` says what to do where they are not."""
    kinds: dict[str, str] = {}
    for name, at in readings.items():
        if kind := kind_of_evidence(at, by):  # empty: there is no number to rank
            kinds.setdefault(kind, name)
    if len(kinds) > 1:
        said = ", ".join(f"{name!r} has {kind}" for kind, name in kinds.items())
        raise ValueError(f"the fits have different kinds of evidence ({said}): {remedy}")


def kind_of_evidence(at: Reading, by: str) -> str:
    """What sort of number a fit has in column `by`; empty where it has none."""
    if by == MODEL_EVIDENCE.name:
        third = third_level(at)
        return "" if third is None else third.kind
    return at.fit.evidence.kind if EVIDENCE.applies(at.fit) and at.fit.evidence is not None else ""


def third_level(at: Reading) -> Evidence | None:
    """Evidence with the hyperparameters integrated out; None where the fit has none."""
    found = integrated(at.fit)
    return found if found is not None and np.isfinite(found.value) else None
