"""What a relevance vector machine found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status
from bayessel.linear._columns_fit import ColumnsFit
from bayessel.linear.posterior import Posterior
from bayessel.linear.rvm.state import IntArray


@dataclass(frozen=True, eq=False)
class SparseFit(ColumnsFit):
    r"""A sparse linear model whose precisions were chosen by the evidence.

    Attributes
    ----------
    log_evidence : float
        log N(t | 0, I/beta + sum_i phi_i phi_i^T / alpha_i) in nats, every constant included.
    model_evidence : float
        Third level: log precisions integrated out; see `bayessel.linear.rvm.occam`.
    basis : (k,) array
        Columns of the dictionary in use, ascending.
    alpha, coef : (k,) arrays
        Their precisions and posterior means.
    beta : float
        Noise precision.
    n_rows, n_candidates : int
        Size of the problem.
    status, notes
        The most serious remark, and all of them.
    history : tuple of dict
        The steps of the winning start: start, action, log_evidence, n_basis, noise_std.
    starts : dict
        Log evidence each start reached.
    design, target
        The columns in use and the target.
    posterior : Posterior
        Of the weights of the columns in use.
    intercept : float
        0: a bias is one of the columns.
    """

    log_evidence: float
    model_evidence: float
    basis: IntArray
    alpha: FloatArray
    coef: FloatArray
    beta: float
    n_rows: int
    n_candidates: int
    status: Status
    notes: tuple[Status, ...] = field(repr=False)
    history: tuple[dict[str, Any], ...] = field(repr=False)
    starts: dict[str, float]
    design: FloatArray = field(repr=False)
    target: FloatArray = field(repr=False)
    posterior: Posterior = field(repr=False)
    kind: str = "type2"
    intercept: float = field(default=0.0, init=False, repr=False)

    @property
    def gamma(self) -> float:
        """Well-determined parameters, the sum of 1 - alpha_i Sigma_ii."""
        return self.posterior.gamma if self.n_basis else 0.0

    @cached_property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the weights in use."""
        if not self.n_basis:
            return np.zeros((0, 0))
        spectrum = self.posterior.spectrum
        root = self.posterior.scale / np.sqrt(self.beta)
        along = spectrum.Vt.T * (spectrum.s**2 + self.posterior.lam) ** -0.5
        inner = along @ along.T
        if spectrum.Vt.shape[0] < spectrum.Vt.shape[1]:
            outside = np.eye(len(root)) - spectrum.Vt.T @ spectrum.Vt
            inner = inner + outside / self.posterior.lam
        return np.asarray(root[:, None] * inner * root)
