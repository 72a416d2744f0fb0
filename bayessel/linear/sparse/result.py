"""What a relevance vector machine found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_matrix
from bayessel.linear.posterior import Posterior
from bayessel.linear.sparse.state import IntArray
from bayessel.result import Status, fingerprint


@dataclass(frozen=True, eq=False)
class SparseFit:
    r"""A sparse linear model whose precisions were chosen by the evidence.

    Attributes
    ----------
    log_evidence : float
        log N(t | 0, I/beta + sum_i phi_i phi_i^T / alpha_i) in nats, every constant included.
    model_evidence : float
        Third level: log precisions integrated out; see `bayessel.linear.sparse.occam`.
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

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise."""
        return float(self.beta**-0.5)

    @property
    def n_basis(self) -> int:
        """Number of columns in use."""
        return len(self.basis)

    @property
    def gamma(self) -> float:
        """Well-determined parameters, the sum of 1 - alpha_i Sigma_ii."""
        return self.posterior.gamma if self.n_basis else 0.0

    @property
    def fingerprint(self) -> str:
        """Name of the target this was fitted to."""
        return fingerprint(self.target)

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

    @property
    def fitted(self) -> FloatArray:
        """Posterior mean at the training rows."""
        return np.asarray(self.design @ self.coef)

    @property
    def residuals(self) -> FloatArray:
        """Target minus posterior mean."""
        return np.asarray(self.target - self.fitted)

    @property
    def sum_squares(self) -> float:
        """Sum of squared residuals."""
        return self.posterior.sum_squares

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Errors of each row predicted from all others at these precisions, and the variances of those predictions."""
        return self.posterior.leave_one_out()

    @property
    def loo_residuals(self) -> FloatArray:
        """Errors of each row predicted from all others at these precisions."""
        return self.leave_one_out()[0]

    @property
    def loo_variances(self) -> FloatArray:
        """Variances of the leave-one-out predictions, noise included."""
        return self.leave_one_out()[1]

    def predict(self, Phi: Any, return_std: bool = False) -> Any:
        """Mean at new rows of the dictionary, and the standard deviation of a new observation (noise included).

        `Phi` holds all columns of the dictionary, or those of `basis` alone.
        """
        rows = as_matrix(Phi, "Phi") if not (np.ndim(Phi) == 2 and np.shape(Phi)[1] == 0) else np.asarray(Phi, float)
        if rows.shape[1] == self.n_candidates:
            rows = rows[:, self.basis]
        elif rows.shape[1] != self.n_basis:
            raise ValueError(
                f"Phi must have the {self.n_candidates} columns of the dictionary, or the {self.n_basis} in use; "
                f"got shape {rows.shape}"
            )
        mean = np.asarray(rows @ self.coef)
        if not return_std:
            return mean
        variance = self.posterior.variance(rows) if self.n_basis else np.zeros(len(rows))
        return mean, np.sqrt(variance + 1.0 / self.beta)
