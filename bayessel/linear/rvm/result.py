"""What a relevance vector machine found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.columns.fit import ColumnsFit
from bayessel.linear.rvm.reported_evidence import covariance_times


@dataclass(frozen=True, eq=False, kw_only=True)
class RVMFit(ColumnsFit):
    r"""A sparse linear model whose precisions were chosen by the evidence.

    The bias is one of its columns, with a precision of its own, or with ``centre=True`` the `intercept`.

    Attributes
    ----------
    evidence : Evidence
        log N(t | 0, I/beta + sum_i phi_i phi_i^T / alpha_i) in nats, every constant included.
    model_evidence : float
        Third level: log precisions integrated out; see `bayessel.linear.rvm.third_level`.
    alpha : (k,) array
        Precisions of the weights.
    optima : tuple of ColumnChoice
        Different columns that the starts led to, with their log evidence in nats; first those that are returned.
    starts : dict
        Log evidence each start reached.
    history : tuple of dict
        The steps of the winning start: start, action, log_evidence, n_basis, noise_std.

    Examples
    --------
    >>> from bayessel.linear import fit_rvm
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(40, 10))
    >>> fit = fit_rvm(Phi, 3.0 * Phi[:, 2] - Phi[:, 7] + 0.1 * rng.normal(size=40))
    >>> {2, 7} <= set(fit.basis.tolist()), fit.n_basis < 10, fit.status.name
    (True, True, 'CONVERGED')
    """

    model_evidence: float
    alpha: FloatArray
    starts: dict[str, float]

    @property
    def gamma(self) -> float:
        """Well-determined parameters, the sum of 1 - alpha_i Sigma_ii."""
        return self.posterior.gamma if self.n_basis else float(self.posterior.spectrum.n_flat)

    @cached_property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the weights in use."""
        return covariance_times(self.posterior, np.eye(self.n_basis)) if self.n_basis else np.zeros((0, 0))
