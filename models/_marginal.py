"""The marginal likelihood of a linear model with one prior precision per weight, fused with its gradient.

t ~ N(0, I/β + ΦA⁻¹Φᵀ). With ΦR-decomposed once, Φ = QR with k = min(N, M) rows of R, all that changes between
evaluations is k × k or k × M: with z = Qᵀt and U = √β R A^{-1/2}, K = I + UUᵀ,

    log p = −½ [N log(2π/β) + log|K| + β zᵀK⁻¹z + β ‖t − Qz‖²],
    ∂/∂log α_i = ½ [u_iᵀK⁻¹u_i − β (u_iᵀK⁻¹z)²],    ∂/∂log β = ½ [N − γ − β‖K⁻¹z‖² − β‖t − Qz‖²],   γ = k − tr K⁻¹.

Where K would lose digits (its largest eigenvalue is beyond 1e7), a singular value decomposition of U takes over.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy.linalg import blas, lapack, svd

from bayessel._check import FloatArray
from bayessel._pymc import numba_funcify, numba_njit
from bayessel.models._row_terms import RowTerms, beyond, conditional_densities, outside

#: Cholesky of K keeps about eps · trace(K) of relative precision.
SAFE_TRACE = 1e-9 / np.finfo(float).eps


def scaled_solve(R: FloatArray, log_alpha: FloatArray, log_beta: float, z: FloatArray) -> tuple[Any, ...]:
    """(log|K|, K⁻¹z, U, diag(UᵀK⁻¹U), tr K⁻¹) for R with no more rows than columns.

    The first is infinite where the precisions leave double precision.
    """
    with np.errstate(all="ignore"):
        U = R * np.exp(0.5 * (log_beta - log_alpha))
        trace = float(np.einsum("ij,ij->", U, U))
    k = len(z)
    if not np.isfinite(trace):
        return np.inf, z, U, np.zeros_like(log_alpha), 0.0
    if trace < SAFE_TRACE:
        K = U @ U.T
        K[np.diag_indices(k)] += 1.0
        factor, failed = lapack.dpotrf(K.T, lower=1, clean=1)
        if not failed:
            # dtrsm and not LAPACK's dtrtrs, which wakes several threads for a matrix of any size
            half = blas.dtrsm(1.0, factor, np.hstack([U, np.eye(k)]), lower=1)
            inverse, m = half[:, -k:], U.shape[1]
            leverage = np.einsum("ij,ij->j", half[:, :m], half[:, :m])
            trace = float(np.einsum("ij,ij->", inverse, inverse))
            return 2.0 * np.log(np.diag(factor)).sum(), inverse.T @ (inverse @ z), U, leverage, trace
    left, s, right = svd(U, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    shrunk = 1.0 / (1.0 + s * s)
    log_det = float(np.log1p(s * s).sum())
    return log_det, left @ (shrunk * (left.T @ z)), U, (s * s * shrunk) @ right**2, float(shrunk.sum())


def marginal_and_gradient(
    log_alpha: FloatArray, log_beta: FloatArray, z: FloatArray, R: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Log N(z | 0, I/β + RA⁻¹Rᵀ) in nats and its derivatives in log α, log β and z."""
    log_det, solved, U, leverage, trace = scaled_solve(R, log_alpha, float(log_beta), z)
    beta = float(np.exp(log_beta))
    quadratic = beta * float(z @ solved)
    value = -0.5 * (len(z) * (np.log(2.0 * np.pi) - float(log_beta)) + log_det + quadratic)
    if not np.isfinite(value):
        return np.asarray(-np.inf), np.zeros_like(log_alpha), np.asarray(0.0), np.zeros_like(z)
    by_alpha = 0.5 * (leverage - beta * (solved @ U) ** 2)
    by_beta = 0.5 * (trace - beta * float(solved @ solved))
    return np.asarray(value), by_alpha, np.asarray(by_beta), -beta * solved


class MarginalOp(Op):
    """(log α, log β, z, R) -> (log density, its derivatives in log α, log β and z)."""

    __props__ = ()
    gufunc_signature = "(m),(),(k),(k,m)->(),(m),(),(k)"

    def make_node(self, *inputs: Any) -> Apply:
        """One node with the value and the derivatives as outputs, so that the gradient costs nothing more."""
        return Apply(
            self, [pt.as_tensor_variable(x) for x in inputs], [pt.dscalar(), pt.dvector(), pt.dscalar(), pt.dvector()]
        )

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        for cell, value in zip(outputs, marginal_and_gradient(*inputs), strict=True):
            cell[0] = value

    def connection_pattern(self, node: Any) -> Any:
        """Only the value may be differentiated, and not in R, which is data."""
        return [[True, False, False, False]] * 3 + [[False] * 4]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """The derivatives are there already."""
        if not all(isinstance(g.type, DisconnectedType) for g in cotangents[1:]):
            raise NotImplementedError("the marginal likelihood of the relevance vector machine has first derivatives")
        return [cotangents[0] * outputs[1], cotangents[0] * outputs[2], cotangents[0] * outputs[3], disconnected_type()]


log_marginal = MarginalOp()


@numba_funcify.register(MarginalOp)
def _numba_marginal(op: Any, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node; the call itself costs a few microseconds."""

    @numba_njit
    def marginal(log_alpha: Any, log_beta: Any, z: Any, R: Any) -> Any:
        with numba.objmode(value="float64", by_alpha="float64[::1]", by_beta="float64", by_z="float64[::1]"):
            result = marginal_and_gradient(log_alpha, log_beta, z, R)
            value, by_alpha, by_beta, by_z = float(result[0]), result[1], float(result[2]), result[3]
        return np.asarray(value), by_alpha, np.asarray(by_beta), by_z

    return marginal


class SeparateRowTerms(RowTerms):
    """(t, log α, log β, Q, R) -> the terms of N(t | 0, I/β + QRA⁻¹RᵀQᵀ)."""

    gufunc_signature = "(n),(m),(),(n,k),(k,m)->(n)"

    def terms(self, t: FloatArray, *parameters: Any) -> FloatArray:
        """With K⁻¹ = HᵀH and K = I + UUᵀ, Λ/β = QK⁻¹Qᵀ + I − QQᵀ."""
        log_alpha, log_beta, left, right = parameters
        beta = float(np.exp(log_beta))
        U = right * np.exp(0.5 * (float(log_beta) - log_alpha))
        H = _root_of_inverse(U, float(np.einsum("ij,ij->", U, U)))
        z, half = left.T @ t, H @ left.T
        precision = beta * (outside(left) + np.einsum("ij,ij->j", half, half))
        return conditional_densities(beta * (beyond(left, z, t) + half.T @ (H @ z)), precision)


def _root_of_inverse(U: FloatArray, trace: float) -> FloatArray:
    k = len(U)
    if not np.isfinite(trace):
        return np.full((k, k), np.nan)
    if trace < SAFE_TRACE:
        K = U @ U.T
        K[np.diag_indices(k)] += 1.0
        factor, failed = lapack.dpotrf(K.T, lower=1, clean=1)
        if not failed:
            return np.asarray(blas.dtrsm(1.0, factor, np.eye(k), lower=1))
    vectors, s, _ = svd(U, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return np.asarray((vectors / np.hypot(1.0, s)).T)


left_out = SeparateRowTerms()


def weights_given(left: Any, right: Any, alpha: Any, beta: Any, t: Any, given: Any) -> Any:
    """A draw of the weights in symbols, from their prior, or where `given` is not nil from their posterior.

    By Bhattacharya, Chakraborty and Mallick (2016), see `draw_weights`.
    """
    u = pm.Normal.dist(0.0, 1.0, size=right.shape[1:]) / pt.sqrt(alpha)
    v = pt.dot(right, u) + pm.Normal.dist(0.0, 1.0, size=right.shape[:1]) / pt.sqrt(beta)
    scaled = right * pt.sqrt(beta / alpha)
    K = pt.dot(scaled, scaled.T) + pt.eye(right.shape[0])
    solved = pt.linalg.solve(K, pt.dot(left.T, t) - v, assume_a="pos")
    return u + pt.switch(pt.neq(given, 0), pt.dot(right.T, solved) * beta / alpha, 0.0)
