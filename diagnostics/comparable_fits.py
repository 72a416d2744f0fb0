"""Whether fits may be compared: the same data, and evidences that are one kind of number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayessel._check import FloatArray
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE, integrated
from bayessel.diagnostics.fit_reader import Reading
from bayessel.errors import DataMismatchError
from bayessel.fit import Evidence


def refuse_different_data(readings: Mapping[str, Reading]) -> None:
    """Targets must be the same, how often rows count, and the inputs wherever two fits know theirs."""
    once = [name for name, at in readings.items() if at.listed_once]
    every = [name for name, at in readings.items() if not at.listed_once]
    if once and every and readings[once[0]].target_fingerprint != readings[every[0]].target_fingerprint:
        raise DataMismatchError(
            f"{once[0]!r} counts rows that are listed several times once (COPIES_COUNT_ONCE), and {every[0]!r} counts "
            "each: their numbers are of different rows; fit both to a table without copies (numpy.unique, or "
            "drop_duplicates of a data frame)"
        )
    for attribute, what in (("target_fingerprint", "targets"), ("data_fingerprint", "data")):
        known = [(name, getattr(at, attribute)) for name, at in readings.items() if getattr(at, attribute) is not None]
        for name, fingerprint in known[1:]:
            first, other = known[0]
            if fingerprint != other:
                raise DataMismatchError(
                    f"{first!r} and {name!r} were fitted to different {what} (fingerprints {other} and {fingerprint}): "
                    "their numbers cannot be compared; fit both to the same rows, in the same order and units"
                )
    (first, of_first), *others = readings.items()
    for name, at in others:
        if at.fit is not of_first.fit and not _same(of_first.counts, at.counts):
            raise DataMismatchError(
                f"{first!r} and {name!r} count the rows differently (sample_weight): their evidences and criteria are "
                "of different numbers of rows; fit both with the same weights, or both without"
            )
    sizes = {at.fit.n_rows for at in readings.values()}
    if len(sizes) > 1:  # a result without a fingerprint comes from a stream
        raise DataMismatchError(f"the fits have different numbers of rows: {sorted(sizes)}")


def _same(one: FloatArray | None, other: FloatArray | None) -> bool:
    """Whether rows count alike; weights that are equal but for rounding do."""
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-9, atol=0.0))


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
