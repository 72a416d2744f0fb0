"""What a selection of basis functions found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bayessel._check import IntArray
from bayessel.linear.columns.fit import ColumnChoice, ColumnsFit
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.third_level import model_evidence


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchFit(ColumnsFit):
    r"""A linear model on columns that a search guided by the evidence selected, one precision for all weights.

    Attributes
    ----------
    evidence : Evidence
        log p(t | alpha, beta) of the selected columns in nats, every constant included.
    alpha, gamma : float
        Weight precision, well-determined parameters (the bias of a centred fit not counted).
    order : (k,) array
        The columns in use in the order in which they came.
    history : tuple of dict
        The steps: action, column, and n_basis, value, log_evidence, alpha, beta, gamma, noise_std after it.
    path : dict
        Size -> `ColumnChoice`, the best model seen of that size. A value is larger where the model is better: the model
        evidence, or minus the criterion `score` named.
    optima : tuple of ColumnChoice
        The model that is returned.
    n_added, n_removed : int
        Functions added and removed on the way.
    score, strategy : str
        What was searched by, and the order in which functions came and went.
    spectrum : Spectrum
        Factorisation of the columns in use.
    """

    alpha: float
    gamma: float
    order: IntArray = field(repr=False)
    path: Mapping[int, ColumnChoice] = field(repr=False)
    n_added: int
    n_removed: int
    score: str
    strategy: str
    spectrum: Spectrum = field(repr=False)

    @property
    def lam(self) -> float:
        """alpha / beta."""
        return self.alpha / self.beta

    @property
    def model_evidence(self) -> float:
        """Third-level evidence, both precisions integrated out (`bayessel.linear.third_level`); NaN without columns."""
        return model_evidence(self.spectrum, self.log_evidence, self.gamma) if self.n_basis else np.nan
