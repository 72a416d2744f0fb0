"""How probable the data are: with the hyperparameters at their best, and with them integrated out."""

from __future__ import annotations

import numpy as np

from bayessel.criteria._capabilities import IntegratedEvidence
from bayessel.criteria._criterion import Criterion
from bayessel.fit import Fit

EVIDENCE = Criterion(
    name="evidence",
    label="Log evidence",
    phrase="the evidence",
    higher_is_better=True,
    unit="nats",
    family="evidence",
    question="log p(y | width, best precisions): how probable the data are under this width's prior over functions, "
    "with the precisions at their best values. Only differences count: 3 nats are odds of 20 to 1.",
    distrust="Each hyperparameter at its best value flatters a little, so distrust it between models with many of them "
    "and models with few.",
    applies=lambda fit: fit.evidence is not None,
    value=lambda fit: fit.log_evidence,
)


def _integrated(fit: Fit) -> float:
    assert isinstance(fit, IntegratedEvidence)
    value = float(fit.model_evidence)
    return value if np.isfinite(value) else np.nan


MODEL_EVIDENCE = Criterion(
    name="model-evidence",
    label="Log model evidence",
    phrase="the model evidence",
    higher_is_better=True,
    unit="nats, up to a constant",
    family="evidence",
    question="The evidence with the precisions averaged out (third level, Gaussian approximation on their logarithms): "
    "it adds what finding the precisions costs. With one precision for all weights it is integrated exactly where "
    "fewer than 3 parameters are well determined or fewer than 3 rows are left for the noise; missing where even that "
    "has no answer.",
    distrust="Distrust it between kinds of models: constants that all of one kind share are left out.",
    applies=lambda fit: isinstance(fit, IntegratedEvidence),
    value=_integrated,
    pays=True,
)
