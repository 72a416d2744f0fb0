"""What is asked of a forward selection or a backward elimination, and the conditions at which a selection ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights
from bayessel.criteria.error_estimates import GCV
from bayessel.criteria.registry import OF_SUMS
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.columns.greedy import BestSize
from bayessel.linear.columns.growing_model import GrowingModel
from bayessel.linear.forward.methods import LeastSquaresSteps, OrthogonalRidgeSteps, RidgeSteps

#: condition number of the chosen columns at which their normal equations have no digit left, ...
SINGULAR = float(np.finfo(float).eps ** -0.5)
#: ... beyond which a criterion has to fall at least every so many columns, ...
HURRY = 2
#: ... and at which an orthogonal factorisation has few digits left for the weights
MAX_CONDITION = 1e12
#: squared share outside the model below which a candidate is no longer offered without a penalty
LEAST = 1e-20


@dataclass(frozen=True)
class ForwardSettings:
    """The arguments of `forward_select`."""

    method: str
    stop: str | None
    centre: bool
    gain: str
    lam: float | None
    reestimate: bool
    max_size: int
    max_condition: float | None
    weights: RowWeights | None = None

    @property
    def checks_condition(self) -> bool:
        """Whether weights are solved from the chosen columns without a penalty to keep them apart."""
        return self.method != "rfs"

    @property
    def largest_condition(self) -> float:
        """Condition number of the chosen columns that is not passed."""
        return MAX_CONDITION if self.max_condition is None else self.max_condition

    def is_singular(self, models: list[LeastSquaresSteps], watch: BestSize) -> bool:
        """Whether normal equations have become singular while the criterion does not fall any more."""
        return (
            self.checks_condition
            and self.max_condition is None
            and models[0].growth.n_columns - watch.best > HURRY
            and max(model.growth.condition for model in models) > SINGULAR
        )

    def start(self, columns: Columns, t: FloatArray, train: Any = None) -> LeastSquaresSteps:
        """A model without functions."""
        growth = GrowingModel(
            columns,
            t,
            centre=self.centre,
            train=train,
            keep_products=self.method == "rfs",
            row_weights=self.weights,
            least=min(LEAST, self.largest_condition**-2.0) if self.checks_condition else 0.0,
        )
        if self.method == "ols":
            return LeastSquaresSteps(growth)
        criterion = self.stop if self.stop in OF_SUMS else GCV.name
        kind = RidgeSteps if self.method == "rfs" else OrthogonalRidgeSteps
        return kind(growth, self.gain, self.lam, criterion if self.reestimate else None)
