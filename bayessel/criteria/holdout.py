"""The error on rows that took no part in a fit."""

from __future__ import annotations

from bayessel.criteria._criterion import Criterion

HOLDOUT = Criterion(
    name="holdout",
    label="Held-out error",
    phrase="the held-out error",
    higher_is_better=False,
    unit="squared units of the target",
    family="prediction",
    column_rank=4,
    question="Mean squared error on rows that took no part in any fit.",
    distrust="Few rows held out make it uncertain: look at its standard error.",
)
