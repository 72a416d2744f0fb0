r"""The marginal likelihood of a linear model whose design is a variable, fused with its gradient in the design.

d = t − b ~ N(0, I/β + ΦA⁻¹Φᵀ). With U = √β ΦA^{-1/2}, K = I + UUᵀ and s = K⁻¹d,

    log p = −½ [N log(2π/β) + log|K| + β dᵀs],
    ∂/∂U = β s sᵀU − K⁻¹U,    ∂/∂log β = ½ [tr K⁻¹ − β sᵀs],    ∂/∂d = −β s,

and Φ and log α have their derivatives from that in U. The factor is that of K, or with fewer columns than rows that of
H = I + UᵀU; where these would lose digits, a singular value decomposition of U takes over.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy.linalg import lapack, svd

from bayessel._check import FloatArray
from bayessel._pymc import numba_funcify, numba_njit
from bayessel.models._joint_normal import declare_noise, declare_rest, declare_tied
from bayessel.models._marginal import SAFE_TRACE, weights_given
from bayessel.models._origin import origin
from bayessel.models._row_terms import RowTerms, beyond, conditional_densities, outside


def _factored(U: FloatArray, d: FloatArray) -> tuple[float, FloatArray, float, FloatArray, float]:
    """(log|K|, s = K⁻¹d, dᵀs, K⁻¹U, tr K⁻¹)."""
    n, m = U.shape
    wide = n <= m
    if float(np.einsum("ij,ij->", U, U)) < SAFE_TRACE:
        inner = U @ U.T if wide else U.T @ U
        inner[np.diag_indices(len(inner))] += 1.0
        L, failed = lapack.dpotrf(inner.T, lower=1, clean=1)
        if not failed:
            log_det = 2.0 * float(np.log(np.diag(L)).sum())
            inverse, _ = lapack.dpotrs(L, np.eye(len(inner)), lower=1)
            if wide:
                solved = inverse @ d
                return log_det, solved, float(d @ solved), inverse @ U, float(np.trace(inverse))
            weights = inverse @ (U.T @ d)
            solved = d - U @ weights
            # errors of the weights enter squared, those of dᵀs would not
            square = float(solved @ solved) + float(weights @ weights)
            return log_det, solved, square, U @ inverse, n - m + float(np.trace(inverse))
    left, size, axes = svd(U, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    shrunk = 1.0 / (1.0 + size * size)
    z = left.T @ d
    rest = beyond(left, z, d)
    solved = rest + left @ (shrunk * z)
    square = float(rest @ rest) + float(z @ (shrunk * z))
    across = (left * (size * shrunk)) @ axes
    return float(np.log1p(size * size).sum()), solved, square, across, n - len(size) + float(shrunk.sum())


def design_marginal(
    log_alpha: FloatArray, log_beta: FloatArray, d: FloatArray, Phi: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Log N(d | 0, I/β + ΦA⁻¹Φᵀ) in nats and its derivatives in log α, log β, d and Φ."""
    nothing = (np.asarray(-np.inf), np.zeros_like(log_alpha), np.asarray(0.0), np.zeros_like(d), np.zeros_like(Phi))
    with np.errstate(all="ignore"):
        scale = np.exp(0.5 * (float(log_beta) - log_alpha))
        U, beta = Phi * scale, float(np.exp(log_beta))
        if not np.isfinite(np.einsum("ij,ij->", U, U)):
            return nothing
        log_det, solved, square, across, trace = _factored(U, d)
        value = -0.5 * (len(d) * (np.log(2.0 * np.pi) - float(log_beta)) + log_det + beta * square)
        by_U = beta * np.outer(solved, solved @ U) - across
        by_alpha = -0.5 * np.einsum("ij,ij->j", by_U, U)
        by_beta = 0.5 * (trace - beta * float(solved @ solved))
        by_Phi = np.ascontiguousarray(by_U * scale)
    if not (np.isfinite(value) and np.isfinite(by_Phi).all()):
        return nothing
    return np.asarray(value), by_alpha, np.asarray(by_beta), -beta * solved, by_Phi


class DesignMarginalOp(Op):
    """(log α, log β, d, Φ) -> (log density, its derivatives in log α, log β, d and Φ)."""

    __props__ = ()
    gufunc_signature = "(m),(),(n),(n,m)->(),(m),(),(n),(n,m)"

    def make_node(self, *inputs: Any) -> Apply:
        """One node with the value and the derivatives as outputs, so that the gradient costs nothing more."""
        outputs = [pt.dscalar(), pt.dvector(), pt.dscalar(), pt.dvector(), pt.dmatrix()]
        return Apply(self, [pt.as_tensor_variable(x) for x in inputs], outputs)

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """NumPy at run time."""
        for cell, value in zip(outputs, design_marginal(*inputs), strict=True):
            cell[0] = value

    def connection_pattern(self, node: Any) -> Any:
        """Only the value may be differentiated."""
        return [[True, False, False, False, False]] * 4

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """The derivatives are there already."""
        if not all(isinstance(g.type, DisconnectedType) for g in cotangents[1:]):
            raise NotImplementedError("the marginal likelihood of a design with a width has first derivatives")
        return [cotangents[0] * derivative for derivative in outputs[1:]]


log_design_marginal = DesignMarginalOp()


@numba_funcify.register(DesignMarginalOp)
def _numba_design_marginal(op: Any, node: Any, **kwargs: Any) -> Any:
    """Numba calls back into Python for this one node; the call itself costs a few microseconds."""

    @numba_njit
    def marginal(log_alpha: Any, log_beta: Any, d: Any, Phi: Any) -> Any:
        with numba.objmode(
            value="float64", by_alpha="float64[::1]", by_beta="float64", by_d="float64[::1]", by_Phi="float64[:,::1]"
        ):
            result = design_marginal(log_alpha, log_beta, d, Phi)
            value, by_alpha, by_beta, by_d, by_Phi = float(result[0]), result[1], float(result[2]), result[3], result[4]
        return np.asarray(value), by_alpha, np.asarray(by_beta), by_d, by_Phi

    return marginal


class DesignRowTerms(RowTerms):
    """(d, log α, log β, Φ) -> the terms of N(d | 0, I/β + ΦA⁻¹Φᵀ)."""

    gufunc_signature = "(n),(m),(),(n,m)->(n)"

    def terms(self, t: FloatArray, *parameters: Any) -> FloatArray:
        """With U = Q diag(s) Vᵀ, Λ/β = Q diag(1/(1 + s²)) Qᵀ + I − QQᵀ."""
        log_alpha, log_beta, Phi = parameters
        beta = float(np.exp(log_beta))
        U = Phi * np.exp(0.5 * (float(log_beta) - log_alpha))
        if not np.isfinite(U).all():
            return np.full(len(t), np.nan)
        left, size, _ = svd(U, full_matrices=False, check_finite=False)
        shrunk = 1.0 / (1.0 + size * size)
        z = left.T @ t
        precision = beta * (outside(left) + left**2 @ shrunk)
        return conditional_densities(beta * (beyond(left, z, t) + left @ (shrunk * z)), precision)


left_out = DesignRowTerms()


def declare_symbolic(
    Phi: Any, t_data: Any, alpha: Any, beta: Any, shift: Any, width: Any, data: tuple[Any, ...]
) -> Any:
    """Declare the observed t ~ N(b, I/β + ΦA⁻¹Φᵀ) of a design Φ that moves, in the model on the stack."""
    each = alpha * pt.ones(Phi.shape[1])
    t: Any = pm.CustomDist(
        "t",
        Phi,
        each,
        beta,
        shift,
        t_data,
        origin(declare_width_tied(width, beta, t_data, *data), width, each, beta, shift),
        logp=lambda value, Phi, alpha, beta, shift, *seen: left_out(value - shift, pt.log(alpha), pt.log(beta), Phi),
        dist=_draw,
        signature="(n,m),(m),(),(),(n),()->(n)",
        observed=t_data,
        dims="row",
    )
    deviation = t_data - shift
    marginal: Any = log_design_marginal(pt.log(each), pt.log(beta), deviation, Phi)
    terms: Any = left_out(deviation, pt.log(each), pt.log(beta), Phi)
    declare_rest(t, marginal[0], terms)
    return t


def declare_width_tied(width: Any, beta: Any, *data: Any) -> Any:
    """What goes with the data and moves with the draws: ``noise``, or where that is fixed ``log_width``."""
    if hasattr(beta, "get_value"):
        return declare_tied("log_width", pt.log(width), *data)
    return declare_noise(1.0 / pt.sqrt(beta), *data)


def _draw(Phi: Any, alpha: Any, beta: Any, shift: Any, t: Any, given: Any, size: Any) -> Any:
    """Draw new targets: weights from their prior, or given those that were seen, then noise."""
    w = weights_given(pt.eye(Phi.shape[0]), Phi, alpha, beta, t - shift, given)
    return shift + pt.dot(Phi, w) + pm.Normal.dist(0.0, 1.0, size=Phi.shape[:1]) / pt.sqrt(beta)
