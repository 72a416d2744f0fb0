"""Several targets on one design: one fit for each, shown as one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel.fit import LeaveOneOut
from bayessel.linear.design_fit import DesignFit, given_arrays
from bayessel.prediction import Prediction
from bayessel.several_fits import SeveralFits


@dataclass(frozen=True, eq=False)
class SeveralOutputs(SeveralFits):
    """Independent fits of K targets to the same design.

    Attributes
    ----------
    parts : tuple of DesignFit
        The fit of each target.
    """

    parts: tuple[DesignFit, ...]

    @cached_property
    def fingerprint(self) -> str:
        """Name of the design (or the inputs) and the (N, K) targets."""
        return fingerprint(given_arrays(self.parts[0])[0], self._targets)

    @cached_property
    def target_fingerprint(self) -> str:
        """Name of the (N, K) targets."""
        return fingerprint(self._targets)

    @property
    def _targets(self) -> FloatArray:
        return np.column_stack([given_arrays(part)[1] for part in self.parts])

    def predict(self, rows: npt.ArrayLike) -> Prediction:
        """Predictive distributions (N, K) at new rows of the design."""
        found = [part.predict(rows) for part in self.parts]
        return Prediction.normal(*(np.column_stack(each) for each in zip(*map(_normal, found), strict=True)))

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others: errors and variances (N, K), log densities (N,) of all targets."""
        found = [part.leave_one_out() for part in self.parts]
        errors, variances = (np.column_stack([getattr(one, name) for one in found]) for name in ("errors", "variances"))
        together = LeaveOneOut.normal(errors, variances, self._targets)
        return replace(together, log_densities=np.sum([one.log_densities for one in found], axis=0))


def _normal(one: Prediction) -> tuple[FloatArray, FloatArray, FloatArray]:
    return one.mean, one.variance, one.function.variance
