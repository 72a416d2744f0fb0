"""Evidences of fitted estimators, which know their model, their draws and the units of the data."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from bayessel._types import Seed
from bayessel.marginal_likelihood.model_evidence import ModelEvidence


@runtime_checkable
class FittedWithEvidence(Protocol):
    """A fitted estimator with draws of a posterior, as `GPRegressor` and `MLPRegressor` with ``inference="mc"``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator."""
        ...

    def evidence(self, *, effort: float = 1.0, random_state: Seed = None) -> ModelEvidence:
        """Log probability of its data, in their units."""
        ...


def evidence_of_fitted(fitted: object, effort: float, random_seed: Seed, *, of_its_own: bool) -> ModelEvidence | None:
    """What the method ``evidence`` of an estimator says; None of what is no estimator, refusals of others.

    `of_its_own`: neither draws nor routes are asked for that are not the estimator's.
    """
    if not callable(getattr(fitted, "get_params", None)):
        return None
    name = type(fitted).__name__
    if not isinstance(fitted, FittedWithEvidence):
        raise TypeError(
            "bs.evidence needs a model or an estimator that has draws, GPRegressor, MLPRegressor or MLPClassifier with "
            f"inference='mc', got {name}; of a pipeline pass the last step, of others see model_evidence_, or pass a "
            "PyMC model of it"
        )
    if not of_its_own:
        raise ValueError(
            f"{name} has draws and routes of its own: leave trace and routes out, or call its method evidence with the "
            "settings that this has"
        )
    return fitted.evidence(effort=effort, random_state=random_seed)
