"""What a fit may have beyond the contract of `bayessel.fit`: criteria that need it apply to such fits alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Fit

#: a weight that moves the fit by less, in units of the noise, is as good as zero
VANISHING = 1e-6


@runtime_checkable
class IntegratedEvidence(Protocol):
    """A fit with an evidence whose hyperparameters are integrated out.

    ``model_evidence`` is in nats, NaN where it has no answer.
    """

    @property
    def model_evidence(self) -> Any:
        """Log evidence, hyperparameters integrated out."""


@runtime_checkable
class Smoother(Protocol):
    r"""A fit whose mean is linear in the targets, :math:`\hat t = (I - P)t`, hyperparameters held."""

    @property
    def effective_parameters(self) -> float:
        r"""Well-determined parameters, unpenalised ones included: :math:`\gamma = N - \mathrm{tr}P`."""

    @property
    def sum_squares(self) -> float:
        r"""Squared residuals, :math:`S = t^TP^2t`."""


@runtime_checkable
class Sendable(Protocol):
    """A linear model whose functions in use, weights and precisions a message can name."""

    def message(self) -> Message:
        """Parts of the message."""


def counted_rows(fit: Fit) -> float:
    """Rows that the noise of a fit counts: their number, or the sum of their weights (``n_counted``)."""
    return float(getattr(fit, "n_counted", fit.n_rows))


@dataclass(frozen=True, eq=False)
class Message:
    r"""What a description length sends of a linear model.

    Attributes
    ----------
    weights : (k,) array
        Of the columns in use, the bias among them, but for those that vanish: whose column adds less to the fit than a
        millionth of the noise. Dense fits to pure noise have such weights only, of 1e-12 or less.
    n_basis : int
        Columns in use, the bias among them, whether or not their weight vanishes.
    n_candidates : int
        :math:`k_0`: the columns the model could have used, the bias among them.
    n_precisions : int
        Precisions behind the weights: one per penalised column of a sparse fit, 1 where all weights share one.
    beta, sum_squares : float
        Noise precision, and squared residuals :math:`\|t-\Phi w\|^2`.
    log_evidence : float or None
        At the precisions that are sent; None where it is that of the fit.
    """

    weights: FloatArray
    n_basis: int
    n_candidates: int
    n_precisions: int
    beta: float
    sum_squares: float
    log_evidence: float | None = None


def matters(weights: FloatArray, sizes: Any, beta: float) -> Any:
    """Whether each weight changes the fit by more than a millionth of the noise; `sizes` are lengths of columns."""
    with np.errstate(invalid="ignore", over="ignore"):
        return (weights != 0.0) & ~(np.sqrt(beta) * np.abs(weights) * sizes < VANISHING)
