"""The weights of fitted members by the rule asked for, and whether a constant would do as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.diagnostics.comparable_fits import refuse_mixed_kinds, third_level
from bayessel.diagnostics.fit_reader import read
from bayessel.estimators.held_out import N_FOLDS, stacking_weights, unsure
from bayessel.estimators.member_predictions import ConstantModel, leaves_rows_out, left_out_of
from bayessel.estimators.member_weights import (
    CONSTANT,
    PRIOR_ROWS,
    STEPS,
    MemberWeights,
    beside_constant,
    by_evidence,
    by_stacking,
    without_folds,
)
from bayessel.fit import Evidence, Status

#: weights that maximise the density of rows held out
STACKING = "stacking"
#: ways to weigh, beside a mapping
RULES = (STACKING, EVIDENCE.name, MODEL_EVIDENCE.name)


def weights_by_evidence(
    members: Mapping[str, Any], by: str, prior: Mapping[str, float] | None
) -> tuple[MemberWeights, Evidence]:
    """Weights in proportion to prior times evidence, of one kind for all, and the sum of these products."""
    readings = {name: read(member, repr(name)) for name, member in members.items()}
    refuse_mixed_kinds(
        readings,
        by,
        f"they are different numbers and cannot weigh models against each other; take weights={STACKING!r}, or "
        "members of one kind",
    )
    found = {name: third_level(at) if by == MODEL_EVIDENCE.name else at.fit.evidence for name, at in readings.items()}
    values = {name: np.nan if one is None else float(one.value) for name, one in found.items()}
    if missing := [name for name, value in values.items() if not np.isfinite(value)]:
        raise ValueError(f"{missing[0]!r} has no {by}: take weights={STACKING!r}, or leave it out")
    chosen = by_evidence(values, prior)
    total = float(logsumexp(chosen.table["log_evidence"] + np.log(chosen.table["prior"])))
    first = next(one for one in found.values() if one is not None)
    return chosen, replace(first, value=total, error=None)


def weights_by_left_out(members: Mapping[str, Any], constant: ConstantModel | None) -> MemberWeights:
    """Stacking of leave-one-out densities."""
    if constant is None:
        raise ValueError("the members do not keep their target: pass data=(X, y)")
    alone = constant.leave_one_out().log_densities
    if len(alone) < 2 * N_FOLDS or not np.ptp(constant.target) > 0.0:
        return without_folds(list(members), "too few rows to judge by: equal weights")
    with np.errstate(all="ignore"):
        gains = np.array([left_out_of(member, name).log_densities - alone for name, member in members.items()])
    return by_stacking(list(members), gains, "rows left out at the hyperparameters of all rows")


def guarded(
    chosen: MemberWeights,
    members: Mapping[str, Any],
    constant: ConstantModel | None,
    held_out: FloatArray | None,
    given: bool,
) -> tuple[MemberWeights, list[Status]]:
    """The weights, and whether rows doubt that the mixture is better than a constant.

    Weights by evidence know of no constant: where rows held out (`held_out`: nats over the constant of each under each
    member; without them rows left out) doubt, the constant is a part of the mixture with the weight that stacking gives
    it. Weights that somebody gave stay.
    """
    if chosen.gains is None and constant is not None:
        gains = _mixed_gains(chosen, members, constant, held_out)
        if gains is not None and unsure(gains) and not given:
            pair = np.array([np.where(np.isnan(gains), -np.inf, gains), np.zeros(len(gains))])
            chosen = beside_constant(chosen, float(stacking_weights(pair, 0.5 * PRIOR_ROWS, STEPS)[0]))
        chosen = replace(chosen, gains=gains)
    doubted = chosen.gains is not None and unsure(chosen.gains)
    return chosen, [Status.NO_BETTER_THAN_CONSTANT] if doubted else []


def _mixed_gains(
    chosen: MemberWeights, members: Mapping[str, Any], constant: ConstantModel, held_out: FloatArray | None
) -> FloatArray | None:
    """Nats over the constant of each row under the mixture; None where nothing can be said of them."""
    heavy = {str(name): float(w) for name, w in chosen.table["weight"].items() if w > 0.0}
    with np.errstate(all="ignore"):
        if held_out is not None:
            known = dict(zip(members, held_out, strict=True)) | {CONSTANT: np.zeros(held_out.shape[1])}
            gains = np.array([known[name] for name in heavy])
        else:
            every = {**members, CONSTANT: constant}
            few = len(constant.target) < 2 * N_FOLDS or not np.ptp(constant.target) > 0.0
            if few or not all(leaves_rows_out(every[name]) for name in heavy):
                return None
            alone = constant.leave_one_out().log_densities
            gains = np.array([left_out_of(every[name], name).log_densities - alone for name in heavy])
        return np.asarray(logsumexp(gains + np.log(list(heavy.values()))[:, None], axis=0))
