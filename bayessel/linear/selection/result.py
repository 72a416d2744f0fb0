"""What a selection of basis functions found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status
from bayessel.linear._columns_fit import ColumnsFit
from bayessel.linear.posterior import Posterior
from bayessel.linear.rvm.state import IntArray
from bayessel.linear.selection.driver import PathPoint
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.third_level import gaussian_approximation, model_evidence_quadrature


@dataclass(frozen=True, eq=False)
class SelectionFit(ColumnsFit):
    r"""A linear model on selected columns, one precision for all weights.

    Attributes
    ----------
    log_evidence : float
        log p(t | alpha, beta) of the selected columns in nats, every constant included.
    alpha, beta, gamma : float
        Weight precision, noise precision, well-determined parameters (the bias of a centred fit not counted).
    basis, coef : (k,) arrays
        Columns in use, ascending, and their weights.
    order : (k,) array
        The same columns in the order in which they came.
    intercept : float
        The bias of a centred fit, else 0.
    n_rows, n_candidates : int
        Size of the problem.
    status, notes
        The most serious remark, and all of them.
    history : tuple of dict
        The steps: action, column, and n_basis, value, log_evidence, alpha, beta, gamma, noise_std after it.
    path : dict
        Size -> `PathPoint`, the best model seen of that size. A value is larger where the model is better: the model
        evidence, or minus the criterion `score` named.
    n_added, n_removed : int
        Functions added and removed on the way.
    seconds : float
        Time by the clock.
    score : str
        What was searched by.
    design, target, spectrum, posterior
        The columns in use, the target, their factorisation, the posterior of the weights.
    """

    log_evidence: float
    alpha: float
    beta: float
    gamma: float
    basis: IntArray
    coef: FloatArray
    intercept: float
    n_rows: int
    n_candidates: int
    status: Status
    notes: tuple[Status, ...] = field(repr=False)
    order: IntArray = field(repr=False)
    history: tuple[dict[str, Any], ...] = field(repr=False)
    path: Mapping[int, PathPoint] = field(repr=False)
    n_added: int
    n_removed: int
    seconds: float
    score: str
    design: FloatArray = field(repr=False)
    target: FloatArray = field(repr=False)
    spectrum: Spectrum = field(repr=False)
    posterior: Posterior = field(repr=False)
    kind: str = "type2"

    @property
    def lam(self) -> float:
        """alpha / beta."""
        return self.alpha / self.beta

    @property
    def model_evidence(self) -> float:
        """Third-level evidence: both precisions integrated out; see `bayessel.linear.third_level`.

        The Gaussian approximation where 3 parameters or more are well determined and 3 rows or more are left for the
        noise, the exact quadrature over its default range elsewhere.
        """
        if not self.n_basis or self.spectrum.n_free < 1:
            return np.nan
        if min(self.gamma, self.spectrum.n_free - self.gamma) >= 3.0:
            return gaussian_approximation(self.log_evidence, self.gamma, self.spectrum.n_free)
        return model_evidence_quadrature(self.spectrum).value


@dataclass(frozen=True, eq=False)
class SearchFit(SelectionFit):
    """What a search guided by the evidence found.

    Attributes
    ----------
    strategy : str
        The order in which functions came and went; for the rest see `SelectionFit`.
    """

    strategy: str = ""
