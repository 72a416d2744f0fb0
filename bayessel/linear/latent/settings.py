"""Arguments that the engines share, checked, and what every fit says of its data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayessel._check import (
    FloatArray,
    as_flag,
    as_matrix,
    as_positive,
    as_positive_vector,
    as_target,
    check_magnitude,
)
from bayessel._fingerprint import fingerprint
from bayessel.fit import Status
from bayessel.likelihoods import Likelihood, as_likelihood
from bayessel.linear.latent.laplace import LatentTargets
from bayessel.linear.latent.shared_precision import COUNTS

#: prior standard deviation of the bias in log odds, as in `bayessel.models.generalised`; for other likelihoods in units
#: of the targets' spread, or of log rates
BIAS_SCALE = 5.0
#: rows from which on a fit has something to say
_FEW_ROWS = 4


@dataclass(frozen=True, eq=False)
class LatentProblem:
    """Checked arguments.

    Attributes
    ----------
    Phi : (N, M) array
        Columns, without a bias.
    targets : LatentTargets
        Of the rows that count.
    bias_scale : float
        Prior standard deviation of the bias; 0 without one.
    rows : tuple of arrays
        All rows and targets, which the fit is named after.
    """

    Phi: FloatArray
    targets: LatentTargets
    bias_scale: float
    rows: tuple[FloatArray, FloatArray]

    @classmethod
    def of(
        cls,
        Phi: npt.ArrayLike,
        t: npt.ArrayLike,
        likelihood: str | Likelihood,
        bias: bool,
        bias_scale: float | None,
        sample_weight: npt.ArrayLike | None,
    ) -> LatentProblem:
        """From arguments as users give them."""
        model = as_likelihood(likelihood)
        design = as_matrix(Phi, "Phi")
        check_magnitude(design, "Phi")
        target = as_target(t, len(design))
        check_magnitude(target, "t")
        target = model.targets(target)
        count = (
            None
            if sample_weight is None
            else as_positive_vector(sample_weight, "sample_weight", len(design), allow_zero=True)
        )
        rows = design, target
        if count is not None:
            used = count > 0.0
            if not used.any():
                raise ValueError("sample_weight must be positive for at least one row, got zeros alone")
            design, target, count = design[used], target[used], count[used]
        scale = default_bias_scale(model, target) if bias_scale is None else as_positive(bias_scale, "bias_scale")
        return cls(design, LatentTargets(model, target, count), scale if as_flag(bias, "bias") else 0.0, rows)

    @property
    def remarks(self) -> list[Status]:
        """What the data themselves ask to be said."""
        t = self.targets.t
        found = [Status.TOO_FEW_ROWS] if len(t) < _FEW_ROWS else []
        return [*found, *([Status.CONSTANT_TARGET] if np.ptp(t) == 0.0 else [])]

    @property
    def names(self) -> tuple[str, str]:
        """Fingerprints of the data and of the target alone."""
        count = [] if self.targets.count is None else [self.targets.count]
        return fingerprint(*self.rows, *count), fingerprint(self.rows[1])


def default_bias_scale(likelihood: Likelihood, t: FloatArray) -> float:
    """Prior standard deviation of the bias where none is given."""
    if likelihood.labels or likelihood.name in COUNTS:
        return BIAS_SCALE
    return BIAS_SCALE * (max(float(np.abs(t).max(initial=0.0)), float(np.finfo(float).tiny)) or 1.0)
