"""Several targets on one design: one fit for each, shown as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.linear.design_fit import DesignFit, given_arrays
from bayessel.linear.ridge import PenaltyOptimum
from bayessel.linear.type2 import Maximum
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class SeveralOutputs(Fit):
    """Independent fits of K targets to the same design.

    Attributes
    ----------
    parts : tuple of DesignFit
        The fit of each target.
    """

    parts: tuple[DesignFit, ...]

    @property
    def n_outputs(self) -> int:
        """Number of targets, K."""
        return len(self.parts)

    @property
    def notes(self) -> tuple[Status, ...]:
        """Those of every part, each once."""
        return tuple(dict.fromkeys(note for part in self.parts for note in part.notes))

    @property
    def status(self) -> Status:
        """The most serious of all parts."""
        return worst(part.status for part in self.parts)

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return self.parts[0].n_rows

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

    @property
    def evidence(self) -> Evidence | None:
        """The sum over targets; None where one has none."""
        found = [part.evidence for part in self.parts if part.evidence is not None]
        if len(found) < len(self.parts):
            return None
        return replace(found[0], value=float(sum(one.value for one in found)))

    @property
    def optima(self) -> tuple[tuple[Maximum | PenaltyOptimum, ...], ...]:
        """One entry: the best optimum of each part."""
        return (tuple(part.optima[0] for part in self.parts),)

    @property
    def history(self) -> tuple[Mapping[str, float], ...]:
        """That of every part, in order, with the number of the output."""
        return tuple({"output": k, **step} for k, part in enumerate(self.parts) for step in part.history)

    @property
    def seconds(self) -> float:
        """Time by the clock, all parts together."""
        return float(sum(part.seconds for part in self.parts))

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters of all parts together."""
        return float(sum(part.effective_parameters for part in self.parts))

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
