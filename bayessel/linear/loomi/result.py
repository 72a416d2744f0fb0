"""What the selection of a two-class classifier found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel.fit import Status, fingerprint
from bayessel.linear._columns_fit import in_use


@dataclass(frozen=True, eq=False)
class LOOMIFit:
    """A two-class model f = Φθ and what leaving rows out says of it.

    Attributes
    ----------
    n_candidates : int
        Number of columns on offer P.
    basis : (M,) int array
        Columns in use, in the order they were chosen.
    coef : (M,) array
        Their weights θ.
    penalties : (M,) array
        λ of every term in the orthogonal form.
    mutual_information : float
        J, bits, between the labels and the leave-one-out labels; negative when those are worse than chance.
    loo_error, loo_mse : float
        Weighted share of wrong leave-one-out labels; weighted mean of (y - f^(-k))².
    loo_output : (N,) array
        f^(-k)(x_k): output for each row of the model fitted without it.
    history : list of dict
        One entry per stage: column, mutual_information, loo_error, loo_mse, penalty, ties (how many candidates shared
        the largest J).
    status : Status
        How the selection ended.
    """

    n_candidates: int
    basis: npt.NDArray[np.intp]
    coef: FloatArray
    penalties: FloatArray
    mutual_information: float
    loo_error: float
    loo_mse: float
    loo_output: FloatArray
    target: FloatArray
    weights: FloatArray
    design: FloatArray
    A: FloatArray = field(repr=False)
    history: list[dict[str, Any]] = field(repr=False)
    status: Status
    notes: tuple[Status, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows N."""
        return len(self.target)

    @property
    def n_basis(self) -> int:
        """Number of terms M."""
        return len(self.basis)

    @property
    def penalty_matrix(self) -> FloatArray:
        """AᵀΛA, the penalty on θ: leaving a row out and fitting again with it gives `loo_output` exactly."""
        return np.asarray((self.A.T * self.penalties) @ self.A)

    @property
    def loo_labels(self) -> FloatArray:
        """Label, -1 or 1, that each row gets from the model fitted without it; an output of exactly 0 counts as -1."""
        return np.where(self.loo_output * self.target > 0.0, self.target, -self.target)

    @property
    def fingerprint(self) -> str:
        """Name of the data, columns in use and labels."""
        return fingerprint(self.design, self.target)

    def decision(self, columns: Any) -> FloatArray:
        """Output f at new rows, from all columns, (n, P), or, if fewer, from those in use as in `basis`, (n, M)."""
        return np.asarray(in_use(columns, self.basis, self.n_candidates) @ self.coef)
