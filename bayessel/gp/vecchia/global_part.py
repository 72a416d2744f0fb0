"""What all rows share: the features of bias and plane, and the columns of inducing inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bayessel._check import FloatArray
from bayessel.covariance import Covariance
from bayessel.gp.inducing.covariance_parts import parts_of
from bayessel.gp.vecchia.covariance_terms import CovarianceTerms

#: added to the diagonal of K_ZZ, relative to its mean
JITTER = 1e-8


class GlobalValues(NamedTuple):
    """Columns of the part that all rows share at one θ.

    Attributes
    ----------
    F : (n, q) array
        All columns: first V, then features scaled by their prior deviations.
    V : (n, M) array
        Columns L⁻¹k(Z, x) of the inducing inputs.
    L : (M, M) array
        Lower Cholesky factor of their covariance.
    """

    F: FloatArray
    V: FloatArray
    L: FloatArray


class GlobalPart:
    """Features and inducing inputs of some rows."""

    def __init__(
        self, covariance: Covariance, terms: CovarianceTerms, rows: FloatArray, inducing: FloatArray | None
    ) -> None:
        self.terms, self.rows, self.inducing = terms, rows, inducing
        self.parts = None if inducing is None else parts_of(covariance, rows.shape[1])
        self.design = terms.design(rows)

    def at(self, theta: FloatArray) -> GlobalValues | None:
        """The columns at θ; None where the inducing inputs have no factor."""
        n = len(self.rows)
        V, L = np.empty((n, 0)), np.empty((0, 0))
        if self.parts is not None:
            assert self.inducing is not None
            kernels = self.parts.at(theta, self.rows, self.inducing)
            K = np.asarray(np.sum([kernel.among() for kernel in kernels], axis=0))
            K.flat[:: len(K) + 1] += JITTER * np.trace(K) / len(K)
            L, info = lapack.dpotrf(K, lower=1) if np.isfinite(K).all() else (K, 1)
            if info:
                return None
            V = self._columns(theta, self.rows, L)
        F = np.hstack([V, self.design * self.terms.scales(theta)])
        return GlobalValues(F, V, L)

    def _columns(self, theta: FloatArray, rows: FloatArray, L: FloatArray) -> FloatArray:
        assert self.parts is not None and self.inducing is not None
        kernels = self.parts.at(theta, rows, self.inducing)
        every = slice(0, len(rows))
        across = sum(kernel.values(every, np.empty((len(rows), len(L)))) for kernel in kernels)
        return np.ascontiguousarray(solve_triangular(L, np.asarray(across).T, lower=True, check_finite=False).T)

    def elsewhere(self, theta: FloatArray, rows: FloatArray, values: GlobalValues) -> tuple[FloatArray, FloatArray]:
        """F and V at other rows."""
        V = np.empty((len(rows), 0)) if self.parts is None else self._columns(theta, rows, values.L)
        return np.hstack([V, self.terms.design(rows) * self.terms.scales(theta)]), V

    def pull(self, theta: FloatArray, values: GlobalValues, pull: FloatArray, out: FloatArray) -> None:
        """Add to the derivatives by θ those that come through V, given derivatives by its entries."""
        assert self.parts is not None and self.inducing is not None
        # what V is used for does not change when its columns are rotated: dV = dK L⁻ᵀ − ½V L⁻¹ dK_ZZ L⁻ᵀ will do
        by_across = np.ascontiguousarray(
            solve_triangular(values.L, pull.T, lower=True, trans="T", check_finite=False).T
        )
        inner = values.V.T @ pull
        half = solve_triangular(values.L, -0.25 * (inner + inner.T), lower=True, trans="T", check_finite=False)
        by_among = solve_triangular(values.L, half.T, lower=True, trans="T", check_finite=False)
        by_among.flat[:: len(by_among) + 1] += JITTER * np.trace(by_among) / len(by_among)
        kernels = self.parts.at(theta, self.rows, self.inducing)
        every, by_Z = slice(0, len(self.rows)), np.zeros_like(self.inducing)
        for kernel in kernels:
            K = kernel.values(every, np.empty_like(by_across))
            kernel.pull(every, by_across.copy(), K)
            kernel.pull_among(by_among, kernel.among())
            kernel.add_gradient(out, by_Z)
