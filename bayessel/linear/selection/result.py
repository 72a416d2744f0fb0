"""What a selection of basis functions found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights
from bayessel.linear.columns.fit import ChosenColumnsFit, evidence_of


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchFit(ChosenColumnsFit):
    r"""A linear model on columns that a search guided by the evidence selected, one precision for all weights.

    Attributes
    ----------
    evidence : Evidence
        log p(t | alpha, beta) of the selected columns in nats, every constant included.
    alpha, lam, gamma : float
        Weight precision, alpha/beta, well-determined parameters (the bias of a centred fit not counted).
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
    """

    n_added: int
    n_removed: int
    score: str
    strategy: str

    @property
    def lam(self) -> float:
        """alpha / beta."""
        return self.evidence_fit.lam

    @property
    def gamma(self) -> float:
        """Well-determined parameters."""
        return self.evidence_fit.gamma


def evidence_fields(
    design: FloatArray, t: FloatArray, centre: bool, weights: RowWeights | None = None
) -> dict[str, Any]:
    """Fields of a `SearchFit` that follow from the columns in use; the weights are those of the evidence."""
    fit = evidence_of(design, t, centre, weights)
    return {
        "evidence_fit": fit,
        "evidence": fit.evidence,
        "coef": fit.coef[: design.shape[1]],
        "posterior": fit.posterior,
        "design": design,
    }
