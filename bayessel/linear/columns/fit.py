"""What models on some columns of a dictionary have in common once they are fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray, as_matrix
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights
from bayessel.criteria.capabilities import Message
from bayessel.fit import Evidence, LeaveOneOut, Status
from bayessel.linear.coded_weights import message_of
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import LinearFit, fit_evidence
from bayessel.linear.weight_posterior import PosteriorFit
from bayessel.prediction import Prediction


@dataclass(frozen=True)
class ColumnChoice:
    """Columns of a dictionary, and what they are worth.

    Attributes
    ----------
    value : float
        Of what was searched by: the best seen of that size on a path, the height of a local optimum.
    basis : tuple of int
        Columns in the order they came.
    """

    value: float
    basis: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnsFit(PosteriorFit):
    """Base of the results of `fit_rvm`, `search` and `forward_select`.

    Attributes
    ----------
    basis, coef : (k,) arrays
        Columns in use, ascending, and their weights.
    n_candidates : int
        Columns of the dictionary.
    design, target : (N, k), (N,) arrays
        The columns in use and the target.
    """

    evidence: Evidence
    basis: npt.NDArray[np.intp]
    coef: FloatArray
    n_candidates: int
    status: Status
    notes: tuple[Status, ...] = field(repr=False)
    optima: tuple[Any, ...] = field(repr=False)
    history: tuple[Mapping[str, Any], ...] = field(repr=False)
    seconds: float
    design: FloatArray = field(repr=False)
    target: FloatArray = field(repr=False)
    fingerprint: str = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return len(self.target)

    @cached_property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return fingerprint(self.target)

    @property
    def fitted(self) -> FloatArray:
        """The fit at the training rows."""
        return np.asarray(self.design @ self.coef + self.intercept)

    @property
    def residuals(self) -> FloatArray:
        """Target minus fit."""
        return np.asarray(self.target - self.fitted)

    def message(self) -> Message:
        """What a description length sends."""
        weights = self.posterior.spectrum.row_weights
        columns = self.design if weights is None else weights.scale(self.design)
        sizes = np.sqrt(np.einsum("ij,ij->j", columns, columns))
        return message_of(self.posterior, self.coef, sizes, self.intercept, self.alpha, self.n_candidates)

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others with these columns and precisions, exactly."""
        return self.posterior.leave_one_out(self.target)

    def predict(self, rows: npt.ArrayLike) -> Prediction:
        """Predictive distributions at new rows of the dictionary: all its columns, or those of `basis` alone."""
        inside = in_use(rows, self.basis, self.n_candidates)
        variance = self._variance(inside)
        return Prediction.normal(inside @ self.coef + self.intercept, variance + 1.0 / self.beta, variance)

    def mean(self, rows: npt.ArrayLike) -> FloatArray:
        """Means of `predict` alone, without the cost of the variances."""
        return np.asarray(in_use(rows, self.basis, self.n_candidates) @ self.coef + self.intercept)

    def _variance(self, rows: FloatArray) -> FloatArray:
        """Variance of the function at rows of the columns in use."""
        if self.n_basis:
            return self.posterior.variance(rows)
        spectrum = self.posterior.spectrum  # of a bias alone
        squares = spectrum.n_rows if spectrum.row_weights is None else float(np.sum(spectrum.row_weights.root**2))
        return np.full(len(rows), spectrum.n_flat / (self.beta * squares))


@dataclass(frozen=True, eq=False, kw_only=True)
class ChosenColumnsFit(ColumnsFit):
    """Base of the results of `search` and `forward_select`, which choose columns one by one.

    Attributes
    ----------
    order : (k,) array
        The columns in use in the order in which they came.
    path : dict
        Size -> `ColumnChoice`, the best model seen of that size.
    evidence_fit : LinearFit
        The chosen columns under one precision of all weights and one of the noise, both at their best: what `evidence`,
        `alpha`, `beta` and `model_evidence` (both integrated out) say of this choice, so that it compares with others.
    """

    order: IntArray = field(repr=False)
    path: Mapping[int, ColumnChoice] = field(repr=False)
    evidence_fit: LinearFit = field(repr=False)

    @property
    def alpha(self) -> float:
        """Precision of the weights."""
        return self.evidence_fit.alpha

    @property
    def model_evidence(self) -> float:
        """Third-level evidence: both precisions integrated out; NaN without columns."""
        return self.evidence_fit.model_evidence if self.n_basis else np.nan


def evidence_of(design: FloatArray, t: FloatArray, centre: bool, weights: RowWeights | None = None) -> LinearFit:
    """Precisions of these columns at the highest evidence; without columns the target is noise."""
    body = design if design.shape[1] else np.zeros((len(t), 1))  # a column of zeros stands for an empty design
    return fit_evidence(Spectrum.of(body, t, centre=centre, rows=True, weights=weights))


def in_use(rows: npt.ArrayLike, basis: npt.NDArray[np.intp], n_candidates: int) -> FloatArray:
    """The columns `basis` of new rows of the dictionary; rows that hold these alone come back as they are."""
    empty = np.ndim(rows) == 2 and np.shape(rows)[1] == 0  # rows of a model without columns
    rows = np.asarray(rows, dtype=float) if empty else as_matrix(rows, "Phi")
    if rows.shape[1] == n_candidates:
        return np.asarray(rows[:, basis])
    if rows.shape[1] != len(basis):
        raise ValueError(
            f"Phi must have the {n_candidates} columns of the dictionary, or the {len(basis)} in use; got shape "
            f"{rows.shape}"
        )
    return np.asarray(rows)
