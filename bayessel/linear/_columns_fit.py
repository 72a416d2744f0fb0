"""What models on some columns of a dictionary have in common once they are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_matrix
from bayessel.fit import fingerprint
from bayessel.linear.posterior import Posterior


class ColumnsFit:
    """Base of the results of `fit_rvm`, `search` and `forward_select`, which are dataclasses with these fields."""

    basis: npt.NDArray[np.intp]
    coef: FloatArray
    intercept: float
    beta: float
    n_candidates: int
    design: FloatArray
    target: FloatArray
    posterior: Posterior

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise."""
        return float(self.beta**-0.5)

    @property
    def n_basis(self) -> int:
        """Number of columns in use, the bias of a centred fit not counted."""
        return len(self.basis)

    @property
    def fingerprint(self) -> str:
        """Name of the target this was fitted to."""
        return fingerprint(self.target)

    @property
    def fitted(self) -> FloatArray:
        """The fit at the training rows."""
        return np.asarray(self.design @ self.coef + self.intercept)

    @property
    def residuals(self) -> FloatArray:
        """Target minus fit."""
        return np.asarray(self.target - self.fitted)

    @property
    def sum_squares(self) -> float:
        """Sum of squared residuals."""
        return self.posterior.sum_squares

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Errors of each row predicted from all others with these columns and precisions, and their variances.

        The variances are those of the predictions, noise included.
        """
        found = self.posterior.leave_one_out()
        return found.errors, found.variances

    @property
    def loo_residuals(self) -> FloatArray:
        """Errors of each row predicted from all others with these columns and precisions."""
        return self.leave_one_out()[0]

    @property
    def loo_variances(self) -> FloatArray:
        """Variances of the leave-one-out predictions, noise included."""
        return self.leave_one_out()[1]

    def predict(self, Phi: Any, return_std: bool = False) -> Any:
        """Mean at new rows of the dictionary, and the standard deviation of a new observation (noise included).

        `Phi` holds all columns of the dictionary, or those of `basis` alone.
        """
        rows = in_use(Phi, self.basis, self.n_candidates)
        mean = np.asarray(rows @ self.coef + self.intercept)
        return (mean, np.sqrt(self._variance(rows) + 1.0 / self.beta)) if return_std else mean

    def _variance(self, rows: FloatArray) -> FloatArray:
        """Variance of the function at rows of the columns in use."""
        return self.posterior.variance(rows) if self.n_basis else np.zeros(len(rows))


def in_use(Phi: Any, basis: npt.NDArray[np.intp], n_candidates: int) -> FloatArray:
    """The columns `basis` of new rows of the dictionary; rows that hold these alone come back as they are."""
    empty = np.ndim(Phi) == 2 and np.shape(Phi)[1] == 0  # rows of a model without columns
    rows = np.asarray(Phi, dtype=float) if empty else as_matrix(Phi, "Phi")
    if rows.shape[1] == n_candidates:
        return rows[:, basis]
    if rows.shape[1] != len(basis):
        raise ValueError(
            f"Phi must have the {n_candidates} columns of the dictionary, or the {len(basis)} in use; got shape "
            f"{rows.shape}"
        )
    return rows
