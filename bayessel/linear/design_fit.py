"""The base of fits on a dense design: predictions, leave-one-out and the names of the data, from one factorisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray
from bayessel._fingerprint import fingerprint
from bayessel.basis import LazyDesign
from bayessel.criteria.capabilities import Message
from bayessel.fit import Evidence, LeaveOneOut, Status
from bayessel.linear.coded_weights import message_of, sizes_of
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.weight_posterior import Posterior, PosteriorFit, from_complement
from bayessel.prediction import Prediction

#: entries of a design made at once
_BLOCK = 2**22


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignFit(PosteriorFit):
    """Base of the results on all columns of a design, whose noise is normal.

    The design itself is `spectrum.given`; a fit to a stream has none, its fingerprints are empty strings, and it
    cannot leave rows out.

    Attributes
    ----------
    gamma : float
        Well-determined parameters.
    """

    evidence: Evidence | None
    gamma: float
    optima: tuple[Any, ...]
    status: Status
    notes: tuple[Status, ...]
    history: tuple[dict[str, float], ...]
    seconds: float

    @property
    def spectrum(self) -> Spectrum:
        """Factorisation of the design."""
        return self.posterior.spectrum

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return self.spectrum.n_rows

    @property
    def coef(self) -> FloatArray:
        """Weights of all columns."""
        return self.posterior.coef

    @property
    def basis(self) -> IntArray:
        """Columns in use."""
        return np.arange(len(self.coef))

    def message(self) -> Message:
        """What a description length sends."""
        kept, sizes = self.basis, sizes_of(self.posterior)
        return message_of(self.posterior, self.coef[kept], sizes[kept], self.intercept, self.alpha, len(self.coef))

    @cached_property
    def fingerprint(self) -> str:
        """Name of the design and the target; of the inputs and the target where the columns are made of inputs."""
        return "" if self.spectrum.given is None else fingerprint(*given_arrays(self))

    @property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return self.spectrum.fingerprint or ""

    def predict(self, rows: npt.ArrayLike) -> Prediction:
        """Predictive distributions at new rows of the design."""
        return self.posterior.predict(rows)

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others at these precisions, exactly, without refitting."""
        if self.spectrum.U is not None:
            return self.posterior.leave_one_out(None if self.spectrum.given is None else self.spectrum.given[1])
        if self.spectrum.given is None:
            raise ValueError("a stream keeps no rows to leave out; fit to arrays, or to a sample of the rows")
        return leave_one_out_of(self.posterior, *self.spectrum.given)


def given_arrays(fit: DesignFit) -> tuple[FloatArray, FloatArray]:
    """The design, or the inputs that its columns are made of, and the target."""
    if fit.spectrum.given is None:
        raise ValueError("a stream keeps neither design nor target")
    design, target = fit.spectrum.given
    return (design.X if isinstance(design, LazyDesign) else design), target


def leave_one_out_of(posterior: Posterior, design: FloatArray | LazyDesign, target: FloatArray) -> LeaveOneOut:
    r"""Leave-one-out predictions from the rows: :math:`P_{ii} = 1 - \beta\phi_i^T\Sigma\phi_i`."""
    n, m = design.shape
    step = max(1, _BLOCK // m)
    mean, complement = np.empty(n), np.empty(n)
    for start in range(0, n, step):
        part = slice(start, start + step)
        rows = design.rows(part, np.arange(m)) if isinstance(design, LazyDesign) else design[part]
        there = posterior.predict(rows)
        mean[part], complement[part] = there.mean, 1.0 - posterior.beta * there.function.variance
    errors, weights = target - mean, posterior.spectrum.row_weights
    if weights is not None:
        errors, complement = weights.scale(errors), 1.0 - weights.root**2 * (1.0 - complement)
    return from_complement(errors, complement, posterior.beta, target, weights)
