"""Predictions of a Gaussian process at many test points, from one state of the hyperparameters or many.

With k the covariances of a test point with the rows and Q = LLᵀ: mean kᵀQ⁻¹t, variance C(x, x) − ‖L⁻¹k‖² (+ r² for an
observation). Per test point and state that is O(n) and O(n²) operations, done for blocks of test points at the speed of
matrix products (Rasmussen 1996, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import blas

from bayessel._check import FloatArray, as_float_array, as_matrix, check_magnitude
from bayessel._row_weights import RowWeights
from bayessel.covariance import Covariance
from bayessel.gp.loo import leave_one_out, own_noise
from bayessel.gp.marginal import Factor, Marginal
from bayessel.prediction import Prediction

#: bytes of the block of covariances that is worked on
BLOCK = 8e6
#: bytes of factors that are kept between calls
KEPT = 4e8


class Predictor:
    """Predictions from S states of the hyperparameters.

    Parameters
    ----------
    X : (n, m) array
    t : (n,) array
        The training data.
    covariance : Covariance or None
        None: `bayessel.covariance.Standard`.
    thetas : (k,) or (S, k) array
        The states.
    weights : RowWeights, optional
        Counts and noise levels of the rows; a new row has the noise of a typical one.

    Notes
    -----
    A factor costs n³/3 operations. As many as 400 MB hold are kept for the next call; a pickle has none.

    Examples
    --------
    >>> from bayessel.gp import fit_map
    >>> x = np.linspace(-2.0, 2.0, 15)[:, None]
    >>> fit = fit_map(x, np.sin(x[:, 0]), random_state=0)
    >>> both = Predictor(x, np.sin(x[:, 0]), None, [fit.theta, fit.theta + 0.1])
    >>> both([[0.5], [3.0]]).means.shape
    (2, 2)
    """

    def __init__(
        self,
        X: ArrayLike,
        t: ArrayLike,
        covariance: Covariance | None,
        thetas: ArrayLike,
        weights: RowWeights | None = None,
    ) -> None:
        self.marginal = Marginal(X, t, covariance, weights)
        self.thetas = np.atleast_2d(as_float_array(thetas, "thetas"))
        if self.thetas.ndim != 2 or self.thetas.shape[1] != self.marginal.size or not len(self.thetas):
            raise ValueError(
                f"thetas must be states of {self.marginal.size} parameters each, got shape {np.shape(thetas)}"
            )
        self._factors: dict[int, Factor] = {}
        self._left_out: Prediction | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_factors": {}, "_left_out": None}

    def __len__(self) -> int:
        return len(self.thetas)

    def factor(self, state: int) -> Factor:
        """The factor at a state."""
        if state in self._factors:
            return self._factors[state]
        factor = self.marginal.factor(self.thetas[state])
        if 8.0 * len(factor.a) ** 2 * (len(self._factors) + 1) <= KEPT:
            self._factors[state] = factor
        return factor

    def __call__(
        self,
        Xnew: ArrayLike,
        variance: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> Prediction:
        """Predictive distributions of new observations at new inputs, and of the function there.

        Parameters
        ----------
        Xnew : (N, m) array
        variance
            False leaves the variances nil, at O(n) operations a test point and state: enough for the mean.
        progress
            Called with (test points done, test points in all) over all states, now and then.
        """
        X, covariance = self.marginal.X, self.marginal.covariance
        new = as_matrix(Xnew, "Xnew")
        if new.shape[1] != X.shape[1]:
            raise ValueError(f"Xnew must have the {X.shape[1]} columns of X, got shape {new.shape}")
        check_magnitude(new, "Xnew", tiny=True)
        means, variances = np.empty((len(self), len(new))), np.zeros((len(self), len(new)))
        noise = np.array([[covariance.noise(theta, X.shape[1]) if variance else 0.0] for theta in self.thetas])
        rows = max(1, int(BLOCK / (8.0 * len(X))))
        done, total = 0, len(self) * len(new)
        for state, theta in enumerate(self.thetas):
            factor = self.factor(state)
            for begin in range(0, len(new), rows):
                part = slice(begin, begin + rows)
                across = covariance.matrix(theta, X, new[part])
                means[state, part] = factor.a @ across
                if variance:
                    prior = covariance.diagonal(theta, new[part])
                    # rounding may take more than there is
                    left = prior - explained(factor.L, across)
                    variances[state, part] = np.maximum(left, np.finfo(float).eps * prior)
                done += across.shape[1]
                if progress is not None:
                    progress(done, total)
        return Prediction(means, variances + noise, None, variances)

    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> Prediction:
        """Predictions of each row from all others at each state: exact there, a mixture with equal weights.

        The posterior of the hyperparameters is that of all rows; weights ∝ 1 / density make it that without the row.
        """
        if self._left_out is None:
            rows = []
            for state, theta in enumerate(self.thetas):
                # each factor is needed once: none is kept for this
                rows.append(leave_one_out(self._factors.get(state) or self.marginal.factor(theta)))
                if progress is not None:
                    progress(state + 1, len(self))
            errors, variances = (np.array(part) for part in zip(*rows, strict=True))
            if self.marginal.weights is not None:
                m = self.marginal.X.shape[1]
                noise = np.array([[self.marginal.covariance.noise(theta, m)] for theta in self.thetas])
                variances = variances + noise * own_noise(self.marginal.weights)
            self._left_out = Prediction(self.marginal.t - errors, variances)
        return self._left_out


def explained(L: FloatArray, across: FloatArray) -> FloatArray:
    """Variance that the rows explain at each test point, ‖L⁻¹k‖²; `across` (n, N) is overwritten."""
    if across.flags.c_contiguous and L.flags.c_contiguous:
        # V = L⁻¹K as Vᵀ Lᵀ = Kᵀ: both transposes are in the order that BLAS wants, nothing is copied
        solved = blas.dtrsm(1.0, L.T, across.T, side=1, lower=0, overwrite_b=1)
        return np.asarray(np.einsum("ij,ij->i", solved, solved))
    solved = blas.dtrsm(1.0, L, across, lower=1)
    return np.asarray(np.einsum("ij,ij->j", solved, solved))
