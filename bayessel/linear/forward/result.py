"""What forward selection found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import override

from bayessel._check import FloatArray
from bayessel.linear.columns.fit import ChosenColumnsFit


@dataclass(frozen=True, eq=False, kw_only=True)
class ForwardFit(ChosenColumnsFit):
    r"""Columns chosen one by one, and the model on them.

    The weights are the method's own: least squares ('ols'), or penalised by `lam`; the evidence, `alpha`, `beta` and
    the noise level are those of `evidence_fit`.

    Attributes
    ----------
    lam, gamma : float
        Penalty of the weights, and the parameters that are well determined with it.
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

    lam: float
    gamma: float
    method: str
    stop: str | None
    value: float
    stopped: str
    turn: FloatArray | None = field(repr=False)
    U: FloatArray | None = field(default=None, repr=False)
    orthogonal_coef: FloatArray | None = field(default=None, repr=False)

    @override
    def _variance(self, rows: FloatArray) -> FloatArray:
        return super()._variance(rows if self.turn is None else rows @ self.turn)
