r"""Columns that are given instead of radial functions: signal to noise and noise level integrated out.

The columns are divided by their standard deviations over the rows, so that they vary alike; their weights are then
independent and alike beforehand, and the function :math:`\sum_j w_j\phi_j` has the variance :math:`\sigma^2\rho` in
the mean over the rows, with the priors over :math:`\rho` and :math:`\sigma` of the grid for radial functions. Log
evidences of different dictionaries of the same rows are therefore comparable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_flag, as_matrix, as_target
from bayessel._row_weights import RowWeights, rows_of_the_fit
from bayessel.basis import Dictionary
from bayessel.basis.bound_dictionary import mean_squares
from bayessel.linear.integrated._fit_integrated import constant, look, mixture, varies
from bayessel.linear.integrated.hyperparameter_grid import WhitenedDictionary
from bayessel.linear.integrated.mixture import IntegratedFit
from bayessel.linear.integrated.tridiagonal import Tridiagonal


@dataclass(frozen=True, eq=False)
class FixedDictionary:
    """The one place of a dictionary among those that a fit is integrated over.

    Attributes
    ----------
    X, t : (N, D), (N,) arrays
        Inputs and target of the rows.
    dictionary : Dictionary
        Without a bias.
    centre : bool
        Whether a bias takes the means off.
    row_weights : RowWeights or None
        Counts and noise levels of the rows, where they differ.
    """

    X: FloatArray
    t: FloatArray
    dictionary: Dictionary
    centre: bool
    row_weights: RowWeights | None = None

    @cached_property
    def _columns(self) -> FloatArray:
        return self.dictionary.columns(self.X)

    @cached_property
    def _precisions(self) -> FloatArray:
        """Prior precisions of weights whose function has variance one; infinite for columns that do not vary."""
        sizes = mean_squares(self._columns, self.centre, self.row_weights)
        return np.where(sizes > 0.0, (sizes > 0.0).sum() * sizes, np.inf)

    def place(self, width: float, share: float, typical: float, /) -> WhitenedDictionary | None:
        """The design; None where no column varies."""
        return self._design(self._precisions) if np.isfinite(self._precisions).any() else None

    def tridiagonal(self, width: float, share: float, /) -> Tridiagonal | None:
        """What the evidence needs; None where no column varies."""
        kept = np.isfinite(self._precisions)
        if not kept.any():
            return None
        root = self._columns[:, kept] / np.sqrt(self._precisions[kept])
        root, t = (rows_of_the_fit(rows, self.centre, self.row_weights) for rows in (root, self.t))
        if root.shape[1] >= len(t):
            return Tridiagonal.of(root @ root.T, t)
        return Tridiagonal.of(root.T @ root, root.T @ t, float(t @ t))

    def log_prior(self, width: float, share: float, typical: float, /) -> float:
        """Zero: there is no other place."""
        return 0.0

    def nothing(self) -> WhitenedDictionary:
        """The design of which every column has an infinite precision: the bias alone."""
        return self._design(np.full(self.dictionary.n_columns, np.inf))

    def _design(self, precisions: FloatArray) -> WhitenedDictionary:
        return WhitenedDictionary(self.dictionary, np.zeros((0, 0)), precisions, 0.0, np.nan, 1.0, 0.0)


def fit_integrated_dictionary(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    dictionary: Dictionary,
    *,
    centre: bool = True,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> IntegratedFit:
    """Integrate signal to noise and noise level of a model on given columns out.

    Parameters
    ----------
    X, t
        Inputs (N, D) and target (N,).
    dictionary
        The columns; its bias is not used.
    centre
        Add a bias with a flat prior.
    noise_std, sample_weight
        As in `bayessel.linear.fit_evidence`.

    Where no column varies, the target does not, or less than two rows are left beside the bias, the fit is the constant
    alone (of zero without a bias), and its status says so.
    """
    began = perf_counter()
    rows = as_matrix(X, "X", allow_1d=True)
    weights, columns = RowWeights.of(len(rows), noise_std, sample_weight), dictionary.without_bias()
    grid = FixedDictionary(rows, as_target(t, len(rows)), columns, as_flag(centre, "centre"), weights)
    looked = look(grid, [(np.inf, 1.0)], 1.0) if varies(grid) else {}
    fit = mixture(grid, looked, 1.0, True) if looked else constant(grid)
    return replace(fit, seconds=perf_counter() - began)
