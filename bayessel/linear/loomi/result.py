"""What the selection of a two-class classifier found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.linear.class_probability import ClassProbability
from bayessel.linear.columns.fit import ColumnChoice, in_use
from bayessel.prediction import ClassPrediction


@dataclass(frozen=True, eq=False, kw_only=True)
class LOOMIFit(Fit):
    """A two-class model f = Φθ and what leaving rows out says of it.

    Attributes
    ----------
    evidence : None
        Least squares on labels has no likelihood of labels.
    n_candidates : int
        Number of columns on offer P.
    basis : (M,) int array
        Columns in use, in the order they were chosen.
    coef : (M,) array
        Their weights θ.
    penalties : (M,) array
        λ of every term in the orthogonal form.
    mutual_information : float
        J, bits, between the labels and the leave-one-out labels; negative when those are worse than chance.
    loo_error, loo_mse : float
        Weighted share of wrong leave-one-out labels; weighted mean of (y - f^(-k))².
    loo_output : (N,) array
        f^(-k)(x_k): output for each row of the model fitted without it.
    target, weights : (N,) arrays
        Labels -1 and 1; weights of the rows, of mean 1.
    optima : tuple of ColumnChoice
        The model that is returned and its J.
    history : tuple of dict
        One entry per stage: column, mutual_information, loo_error, loo_mse, penalty, ties (how many candidates shared
        the largest J).
    """

    evidence: Evidence | None = None
    n_rows: int
    n_candidates: int
    basis: npt.NDArray[np.intp]
    coef: FloatArray
    penalties: FloatArray
    mutual_information: float
    loo_error: float
    loo_mse: float
    loo_output: FloatArray = field(repr=False)
    target: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    design: FloatArray = field(repr=False)
    A: FloatArray = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    optima: tuple[ColumnChoice, ...] = field(repr=False)
    history: tuple[Mapping[str, Any], ...] = field(repr=False)
    seconds: float
    fingerprint: str = field(repr=False)
    target_fingerprint: str = field(repr=False)

    @property
    def n_basis(self) -> int:
        """Number of terms M."""
        return len(self.basis)

    @property
    def penalty_matrix(self) -> FloatArray:
        """AᵀΛA, the penalty on θ: leaving a row out and fitting again with it gives `loo_output` exactly."""
        return np.asarray((self.A.T * self.penalties) @ self.A)

    @property
    def loo_labels(self) -> FloatArray:
        """Label, -1 or 1, that each row gets from the model fitted without it; an output of exactly 0 counts as -1."""
        return np.where(self.loo_output * self.target > 0.0, self.target, -self.target)

    @cached_property
    def calibration(self) -> ClassProbability:
        """From outputs and columns in use to probabilities."""
        return ClassProbability(self.design, self.loo_output, self.target, self.weights)

    def decision(self, rows: npt.ArrayLike) -> FloatArray:
        """Output f at new rows, from all columns, (n, P), or, if fewer, from those in use as in `basis`, (n, M)."""
        return np.asarray(in_use(rows, self.basis, self.n_candidates) @ self.coef)

    def predict(self, rows: npt.ArrayLike) -> ClassPrediction:
        """Probabilities of the labels -1 and 1 at new rows, which are given as for `decision`."""
        inside = in_use(rows, self.basis, self.n_candidates)
        p = self.calibration.probability(inside @ self.coef, inside)
        return ClassPrediction(np.array([-1.0, 1.0]), np.column_stack([1.0 - p, p]))

    @property
    def predicts_labels(self) -> bool:
        """Targets are labels."""
        return True

    def leave_one_out(self) -> LeaveOneOut:
        """Each label y = ±1 predicted from the other rows, with the probability p of the label 1.

        The errors are y - (2p - 1), the variances those of the label, 4p(1 - p), the log densities log p(y).
        """
        p = self.calibration.loo_probability
        with np.errstate(divide="ignore"):
            log_densities = np.log(np.where(self.target > 0.0, p, 1.0 - p))
        return LeaveOneOut(self.target - (2.0 * p - 1.0), 4.0 * p * (1.0 - p), log_densities)
