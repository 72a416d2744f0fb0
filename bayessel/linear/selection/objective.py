r"""What a search makes large: the model evidence, or minus another criterion at the precisions of the evidence.

The evidence alone can score every candidate at once. The others are worked out one by one for the few candidates that
the evidence likes best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bayessel._check import FloatArray, one_of
from bayessel._formulas import FLAGS, flag_code_length, log_normal, precision_code_length, weight_code_length
from bayessel.criteria.capabilities import matters
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W, PRECISION_DELTA, WEIGHT_DELTA
from bayessel.criteria.evidence import EVIDENCE
from bayessel.criteria.leave_one_out import ELPD_LOO, LOO
from bayessel.linear.reported_sums import left_out
from bayessel.linear.selection.precisions import PrecisionLevel, SingularModel
from bayessel.linear.selection.working_model import WorkingModel

SCORES = (EVIDENCE.name, LOO.name, ELPD_LOO.name, MDL_W.name, MDL_ALPHA.name)
#: candidates that a criterion other than the evidence is worked out for
SHORTLIST = 8


@dataclass(frozen=True, eq=False)
class TrialModel:
    """A model to be judged: `rows` returns its Q^T and the residual of the target outside its span."""

    small: SingularModel
    level: PrecisionLevel
    active: Sequence[int]
    rows: Callable[[], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class SelectionObjective:
    """Judge of models; larger is better."""

    name: str = EVIDENCE.name

    @classmethod
    def named(cls, name: str) -> SelectionObjective:
        """Check the name."""
        return cls(one_of(name, "score", SCORES))

    @property
    def shortlist(self) -> int:
        """Candidates that are tried one by one; 0 where the scores of all are the objective itself."""
        return 0 if self.name == EVIDENCE.name else SHORTLIST

    @property
    def needs_rows(self) -> bool:
        """Whether it looks at single rows."""
        return self.name in (LOO.name, ELPD_LOO.name)

    @property
    def unit(self) -> float:
        """What differences near zero are measured by: a nat, or nothing where the target's unit squared is the unit."""
        return 0.0 if self.name == LOO.name else 1.0

    def of(self, model: WorkingModel, trial: TrialModel) -> float:
        """Judge a model, in the units of the user's target; minus infinity where there is no answer."""
        at, n, unit = trial.level, model.n_counted, model.t_unit
        shift = -n * float(np.log(unit))
        if self.name == EVIDENCE.name:
            return at.value + shift
        if self.name == MDL_ALPHA.name:
            flags = self._flags(model, self._weights(model, trial))
            return -precision_code_length(at.log_evidence + shift, n, 1, PRECISION_DELTA, flags)
        if self.name == MDL_W.name:
            weights = self._weights(model, trial)
            shrink = at.lam / (trial.small.s**2 + at.lam)
            misfit = trial.small.rss + float(shrink**2 @ trial.small.z**2)
            flags = self._flags(model, weights)
            return -weight_code_length(misfit * unit**2, at.beta / unit**2, weights, n, WEIGHT_DELTA, flags)
        errors, variances = self._left_out(model, trial)
        if self.name == LOO.name:
            return -float(np.mean(errors**2)) * unit**2
        return float(log_normal(errors, variances).sum()) + shift

    def behind(self, value: float, best: float, n_rows: float) -> float:
        """How many nats a value is worse than the best.

        Evidence and lengths are in nats. A mean squared error is made a log density of `n_rows` errors whose variance
        it is.
        """
        if self.name == LOO.name:
            return float(0.5 * n_rows * np.log(value / best)) if best < 0.0 else (0.0 if value == best else np.inf)
        return best - value

    def _flags(self, model: WorkingModel, weights: FloatArray) -> float:
        return flag_code_length(len(weights), model.n_columns + int(model.centre), FLAGS[0])

    def _weights(self, model: WorkingModel, trial: TrialModel) -> FloatArray:
        """Weights that do not vanish, in the user's units, that of a bias among them."""
        small, at, active = trial.small, trial.level, list(trial.active)
        w = small.Vt.T @ (small.s / (small.s**2 + at.lam) * small.z)
        sizes = np.sqrt(model.outside_bias[active])
        sent = matters(w, sizes, at.beta)
        weights = w[sent] * (model.t_unit / model.unit)
        if model.centre:
            bias = model.t_mean - float(model.means[active] @ w)
            if matters(np.array(bias), np.sqrt(model.n_rows), at.beta):
                weights = np.append(weights, bias * model.t_unit)
        return np.asarray(weights)

    def _left_out(self, model: WorkingModel, trial: TrialModel) -> tuple[FloatArray, FloatArray]:
        """Leave-one-out errors and the variances of those predictions, in the units of the search."""
        small, at = trial.small, trial.level
        Qt, residual = trial.rows()
        g = at.lam / (small.s**2 + at.lam)
        W = small.U.T @ Qt
        left = np.maximum(1.0 - np.einsum("ij,ij->j", Qt, Qt) - (1.0 / model.n_rows if model.centre else 0.0), 0.0)
        left = left + g @ W**2
        return left_out(residual + (g * small.z) @ W, left), left_out(np.full(len(left), 1.0 / at.beta), left)
