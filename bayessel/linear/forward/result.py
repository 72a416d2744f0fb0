"""What forward selection found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import override

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.linear.columns.fit import ColumnChoice, ColumnsFit
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import LinearFit


@dataclass(frozen=True, eq=False, kw_only=True)
class ForwardFit(ColumnsFit):
    r"""Columns chosen one by one, and the model on them.

    The weights are the method's own: least squares ('ols'), or penalised by `lam`. The evidence, `alpha`, `beta` and
    the noise level are those of the chosen columns under one prior precision, both at their best (`evidence_fit`): what
    the evidence says of this choice, so that it compares with other models.

    Attributes
    ----------
    order : (k,) array
        The same columns in the order of selection.
    lam : float
        Penalty of the weights.
    evidence, model_evidence, alpha, beta : Evidence, float
        Of the chosen columns; see above.
    stop, value
        The criterion and its value at this size.
    path : dict
        Size -> `ColumnChoice`: the criterion, and the columns in the order of selection.
    optima : tuple of ColumnChoice
        The model that is returned.
    history : tuple of dict
        One record per size, from 0 (no function): size, column, error (mean squared residual), gamma, lam, gcv, uev,
        fpe, bic; condition, of the chosen columns at unit length (an estimate of it in the 1-norm where it is small or
        the columns are many); and value, what the search was stopped by (minus the evidence, or what is made small).
    stopped : str
        Why the path ends: 'criterion', 'ill-conditioned', 'candidates', 'max_size', 'rows' or 'interrupted'.
    U, orthogonal_coef : (k, k), (k,) arrays
        :math:`H = \tilde HU` in the order of selection, and the weights :math:`\tilde w = U w` of the orthogonalised
        columns; None for backward elimination.
    """

    order: IntArray
    alpha: float
    lam: float
    gamma: float
    method: str
    stop: str | None
    value: float
    path: dict[int, ColumnChoice] = field(repr=False)
    stopped: str
    evidence_fit: LinearFit = field(repr=False)
    spectrum: Spectrum = field(repr=False)
    turn: FloatArray | None = field(repr=False)
    U: FloatArray | None = field(default=None, repr=False)
    orthogonal_coef: FloatArray | None = field(default=None, repr=False)

    @property
    def model_evidence(self) -> float:
        """Evidence of the chosen columns with both precisions integrated out."""
        return self.evidence_fit.model_evidence

    @override
    def _variance(self, rows: FloatArray) -> FloatArray:
        if not self.n_basis:
            return np.full(len(rows), self.spectrum.n_flat / (self.beta * self.n_rows))
        return self.posterior.variance(rows if self.turn is None else rows @ self.turn)
