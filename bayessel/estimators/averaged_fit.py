r"""Fits averaged instead of one picked: the mixture of their predictions.

.. math:: p(t_*|x_*, t) = \sum_k w_k\, p(t_*|x_*, t, H_k),

with weights of `bayessel.estimators.member_weights`: a committee of all models (Barrio, Romero and Belanche 2010, § 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, override

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.estimators.member_predictions import leaves_rows_out, left_out_of, predictive_of
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class AveragedFit(Fit):
    """Several fits of the same rows, and their weights.

    Attributes
    ----------
    members : mapping
        Name -> fit or fitted estimator, those without weight included.
    weights : (K,) array
        Weights that sum to one, in this order.
    table : pandas.DataFrame
        The weights and where they come from.
    evidence : Evidence or None
        Where the weights are by evidence: log of the sum of prior times evidence, of the members' kind.
    """

    members: Mapping[str, Any] = field(repr=False)
    weights: FloatArray
    table: pd.DataFrame = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    n_rows: int
    fingerprint: str
    target_fingerprint: str
    seconds: float
    evidence: Evidence | None = None

    @property
    def optima(self) -> tuple[Any, ...]:
        """The heaviest member."""
        return (list(self.members.values())[int(np.argmax(self.weights))],)

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]:
        """The rows of the table of weights."""
        return tuple({"member": name, **dict(row)} for name, row in self.table.iterrows())

    def _weighed(self) -> list[tuple[str, Any, float]]:
        return [
            (name, member, float(w))
            for (name, member), w in zip(self.members.items(), self.weights, strict=True)
            if w > 0.0
        ]

    @override
    def predict(self, rows: Any) -> Prediction:
        """Mixtures of the members' predictive distributions."""
        chosen = self._weighed()
        return Prediction.mixture([predictive_of(member, rows) for _, member, _ in chosen], [w for *_, w in chosen])

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others by every member; the weights stay."""
        chosen = self._weighed()
        found = [left_out_of(member, name) for name, member, _ in chosen]
        weights = np.array([w for *_, w in chosen])
        errors, variances = np.array([one.errors for one in found]), np.array([one.variances for one in found])
        logs = np.array([one.log_densities for one in found]) + np.log(weights)[:, None]
        densities = logsumexp(logs, axis=0)
        with np.errstate(invalid="ignore"):  # one row alone: nothing predicts it
            error = weights @ errors
            variance = weights @ (variances + (errors - error) ** 2)
        parts = [one.prediction for one in found if one.prediction is not None]
        whole = Prediction.mixture(parts, weights) if len(parts) == len(found) else None
        return LeaveOneOut(error, variance, densities, whole)

    @property
    @override
    def leaves_rows_out(self) -> bool:
        """Whether every member with weight leaves rows out."""
        return bool(self.target_fingerprint) and all(leaves_rows_out(member) for _, member, _ in self._weighed())

    @property
    @override
    def details(self) -> tuple[str, ...]:
        """The members with their weights, and why."""
        width = max(map(len, self.members))
        weighed = self.table.sort_values("weight", ascending=False, kind="stable")
        return tuple(f"{row['weight']:6.1%} {name:{width}}  {row['why']}" for name, row in weighed.iterrows())
