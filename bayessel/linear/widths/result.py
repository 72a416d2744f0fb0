"""What a fit of widths found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel.basis import RBFDictionary
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.linear.rvm import RVMFit
from bayessel.linear.type2 import LinearFit
from bayessel.prediction import Prediction


@dataclass(frozen=True)
class WidthOptimum:
    """A local optimum of the evidence over widths, and the number of functions in use there."""

    widths: FloatArray
    n_basis: int
    log_evidence: float


@dataclass(frozen=True, eq=False, kw_only=True)
class WidthFit(Fit):
    """Widths fitted by the evidence.

    Attributes
    ----------
    widths : (1,) or (D,) array
        r of all inputs, or of each; far larger than the spread of the input means that it is irrelevant.
    fit : LinearFit or RVMFit
        The fit at these widths.
    dictionary : RBFDictionary
        The functions at these widths.
    optima : tuple of WidthOptimum
        Every distinct local optimum that the starts led to, highest first.
    status, notes
        MULTIPLE_OPTIMA when rivals within 10 nats were found, AT_BOUND when the one width of a relevance vector machine
        lies at an end of its range.
    history : tuple of dict
        Of all functions, one entry per start; of a relevance vector machine the coarse scan: width (in units of each
        input's spread for one width per input) and log_evidence.
    """

    widths: FloatArray
    fit: LinearFit | RVMFit = field(repr=False)
    dictionary: RBFDictionary = field(repr=False)
    optima: tuple[WidthOptimum, ...]
    history: tuple[Mapping[str, float], ...] = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    evidence: Evidence
    n_rows: int
    fingerprint: str
    target_fingerprint: str
    seconds: float

    def predict(self, rows: npt.ArrayLike) -> Prediction:
        """Predictive distributions at new inputs (N, D), widths taken as known."""
        return self.fit.predict(self.dictionary.design(rows))

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others at these widths, columns and precisions."""
        return self.fit.leave_one_out()
