"""How probable the data are: with the hyperparameters at their best, and with them integrated out."""

from __future__ import annotations

import numpy as np

from bayessel.criteria._criterion import Criterion
from bayessel.criteria.capabilities import IntegratedEvidence
from bayessel.fit import Evidence, Fit

#: kinds of evidence that leave no hyperparameter at its best value
_INTEGRATED = ("sampled", "exact", "third-level")


def integrated(fit: Fit) -> Evidence | None:
    """The evidence of a fit with its hyperparameters integrated out; None where it has none.

    Of linear models the constants that all of them share are left out: kind "third-level".
    """
    if isinstance(fit, IntegratedEvidence):
        found = fit.model_evidence
        if found is None or isinstance(found, Evidence):
            return found
        kind = "third-level" if fit.evidence is None or fit.evidence.kind == "type2" else fit.evidence.kind
        return Evidence(float(found), kind)
    if fit.evidence is not None and fit.evidence.kind in _INTEGRATED:
        return fit.evidence
    return None


def _value(fit: Fit) -> float:
    found = integrated(fit)
    return found.value if found is not None and np.isfinite(found.value) else np.nan


EVIDENCE = Criterion(
    name="evidence",
    label="Log evidence",
    phrase="the evidence",
    higher_is_better=True,
    unit="nats",
    family="evidence",
    column_rank=3,
    question="log p(y | width, best precisions): how probable the data are under this width's prior over functions, "
    "with the precisions at their best values. Only differences count: 3 nats are odds of 20 to 1.",
    distrust="Each hyperparameter at its best value flatters a little, so distrust it between models with many of them "
    "and models with few.",
    applies=lambda fit: fit.evidence is not None and fit.evidence.kind not in _INTEGRATED,
    value=lambda fit: fit.log_evidence,
)


MODEL_EVIDENCE = Criterion(
    name="model-evidence",
    label="Log model evidence",
    phrase="the model evidence",
    higher_is_better=True,
    unit="nats, up to a constant",
    family="evidence",
    column_rank=8,
    question="The evidence with the precisions averaged out (third level, Gaussian approximation on their logarithms): "
    "it adds what finding the precisions costs. With one precision for all weights it is integrated exactly where "
    "fewer than 3 parameters are well determined or fewer than 3 rows are left for the noise; missing where even that "
    "has no answer.",
    distrust="Distrust it between kinds of models: constants that all of one kind share are left out.",
    applies=lambda fit: integrated(fit) is not None,
    value=_value,
    charges_functions=True,
)
