r"""The sums a result reports, with the digits kept where :math:`\beta/\alpha` approaches 1e16.

The design is :math:`\Phi` (N, M), the target `t` (N,), the penalty :math:`\lambda = \alpha/\beta`. A singular value
decomposition is exact for a design that differs from :math:`\Phi` by about eps times its norm. At
:math:`\beta/\alpha = 10^{16}` such a difference moves the evidence in the 8th digit and the leverage of a nearly
interpolated row in the 7th. Where that error would pass 1e-11, :math:`P = (I+\Phi\Phi^T/\lambda)^{-1}` is polished by
iterative refinement: the residuals of its defining equations are measured with twice the digits and solved with the
factorisation at hand. The determinant is taken after a congruence with the same factorisation, which leaves a matrix
close to the identity whose entries are computed with twice the digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayessel._check import FloatArray, as_positive
from bayessel._numerics import accurate_residual
from bayessel.linear.spectrum import Spectrum

#: refine when eps * s_max / sqrt(lambda), the relative error of the plain formulas, passes this ...
REFINE_ABOVE = 1e-11
#: ... a second time where the error that a first round leaves, some hundred times its square, may pass 1e-15
REFINE_AGAIN = 2e-9
#: ... and some sixty products of N x N matrices stay affordable
MAX_REFINED_ROWS = 400


@dataclass(frozen=True, eq=False)
class Sums:
    """What evidence and criteria are made of, at one penalty.

    Attributes
    ----------
    quad, sum_squares : float
        t^T P t and t^T P^2 t.
    trace_p, gamma : float
        tr P, and the well-determined parameters (unpenalised directions not counted).
    log_det : float
        log |I + Phi Phi^T / lambda|.
    residuals, diag_p : (N,) arrays or None
        P t and the diagonal of P, where the rows were kept.
    """

    quad: float
    sum_squares: float
    trace_p: float
    gamma: float
    log_det: float
    residuals: FloatArray | None
    diag_p: FloatArray | None

    @property
    def loo_residuals(self) -> FloatArray:
        """Errors of each row under the model trained on all others, (P t)_i / P_ii."""
        assert self.residuals is not None and self.diag_p is not None
        return left_out(self.residuals, self.diag_p)


def left_out(residuals: FloatArray, complement: FloatArray) -> FloatArray:
    """Errors of rows under the model of all others, (P t)_i / P_ii; infinite where a row alone decides its fit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(complement > 0.0, residuals / complement, np.inf)


def sums(spectrum: Spectrum, lam: float, *, rows: bool = False, determinant: bool = True) -> Sums:
    """Evaluate at one penalty; refined where the plain formulas would lose digits.

    Without its `determinant`, which no criterion but the evidence needs, refinement takes little more than half the
    time; `log_det` is then NaN.
    """
    if (error := _relative_error(spectrum, lam)) > REFINE_ABOVE:
        return _refined(spectrum, lam, 2 if error > REFINE_AGAIN else 1, determinant)
    with np.errstate(divide="ignore"):
        log_det = float(spectrum.log_det(lam)) if lam > 0.0 else np.inf
    at = np.array([lam])
    return Sums(
        quad=float(spectrum.quad(lam)),
        sum_squares=float(spectrum.sum_squares(lam)),
        trace_p=float(spectrum.trace_p(lam)),
        gamma=float(spectrum.gamma(lam)),
        log_det=log_det,
        residuals=spectrum.residuals(at)[0] if rows else None,
        diag_p=spectrum.leverage_complement(at)[0] if rows else None,
    )


def loo_residuals(spectrum: Spectrum, lam: float) -> FloatArray:
    r"""Exact leave-one-out residuals :math:`(Pt)_i/P_{ii}`: each row predicted by the model trained on all others.

    Parameters
    ----------
    spectrum
        A factorisation that kept its rows (``Spectrum.of(..., rows=True)``).
    lam
        The penalty, the same for every held-out row.
    """
    if not isinstance(spectrum, Spectrum):
        raise TypeError(f"loo_residuals needs a Spectrum.of(Phi, t, rows=True), got {type(spectrum).__name__}")
    return sums(spectrum, as_positive(lam, "lam"), rows=True).loo_residuals


def _relative_error(spectrum: Spectrum, lam: float) -> float:
    """Relative error of the plain formulas; zero where they are all there is."""
    if spectrum.design is None or not 1 <= spectrum.n_rows <= MAX_REFINED_ROWS or lam <= 0.0 or not len(spectrum.s):
        return 0.0
    # columns without penalty beside the bias are rare, and left to the plain formulas
    if spectrum.n_flat > int(spectrum.centred):
        return 0.0
    return float(np.finfo(float).eps * spectrum.s[0] / np.sqrt(lam))


def _refined(spectrum: Spectrum, lam: float, rounds: int, determinant: bool) -> Sums:
    r"""Refine P e_i for all i, and P t.

    r = P e solves the ridge problem :math:`\min\|e - \Phi w - bu\|^2 + \lambda\|w\|^2`, that is
    :math:`r + \Phi w + bu = e`, :math:`\Phi^Tr = \lambda w`, :math:`u^Tr = 0` (b and the last equation only with a
    bias, whose column u is 1 where rows have no weights).
    """
    assert spectrum.design is not None and spectrum.target is not None and spectrum.U is not None
    Phi, n, U, Vt = spectrum.design, spectrum.n_rows, spectrum.U, spectrum.Vt
    g = (lam / (spectrum.s**2 + lam))[:, None]
    f = (spectrum.s / (spectrum.s**2 + lam))[:, None]
    full = len(spectrum.s) + spectrum.n_flat >= n  # the design spans everything: nothing is left outside but rounding

    of_rows = spectrum.row_weights
    bias = np.ones(n) if of_rows is None else of_rows.root  # the column of the bias

    def along_bias(Y: FloatArray) -> FloatArray:
        return np.asarray(Y.mean(axis=0) if of_rows is None else of_rows.along(Y))

    def project(Y: FloatArray) -> FloatArray:
        return _without_bias(spectrum, Y)

    def apply_p(Y: FloatArray) -> FloatArray:
        c = U.T @ Y
        inside = U @ (g * c)
        return np.asarray(inside if full else Y - U @ c + inside)

    def ridge(Y: FloatArray) -> FloatArray:
        return np.asarray(Vt.T @ (f * (U.T @ Y)))

    right = np.column_stack([np.eye(n), spectrum.target])
    r, w = apply_p(project(right)), ridge(project(right))
    wide = np.hstack([Phi, bias[:, None]]) if spectrum.centred else Phi
    mean, length2 = along_bias(Phi)[:, None], float(bias @ bias)
    # each round multiplies the relative error by about eps s_max/sqrt(lambda): from 1e-6, where beta/alpha approaches
    # 1e16, the first comes to 1e-13 and the second to rounding
    for _ in range(rounds):
        unknown = w
        if spectrum.centred:
            unknown = np.vstack([w, along_bias(right - r - Phi @ w)])
        first = project(accurate_residual(right, wide, unknown, less=r))  # e - r - Phi w - b u
        second = accurate_residual(lam * w, np.ascontiguousarray(Phi.T), r)  # lambda w - Phi^T r
        if spectrum.centred:
            # r is corrected along u as well, and never projected as a whole: that would round its tiny entries
            shift = accurate_residual(np.zeros((1, n + 1)), bias[None], r) / length2
            second = second - mean * (length2 * shift)
            r = r + bias[:, None] * shift
        along = Vt @ second
        r = r + (apply_p(first) + U @ (f * along))
        w = w + ridge(first) - Vt.T @ (along / (spectrum.s**2 + lam)[:, None]) - (second - Vt.T @ along) / lam
    residual, weights, diag_p = r[:, -1], w[:, -1], np.diagonal(r[:, :n]).copy()
    return Sums(
        quad=float(residual @ residual + lam * (weights @ weights)),
        sum_squares=float(residual @ residual),
        trace_p=float(diag_p.sum()) + (spectrum.n_counted - n),
        gamma=float((1.0 - diag_p).sum()) - spectrum.n_flat,
        log_det=_log_det(spectrum, lam) if determinant else np.nan,
        residuals=residual,
        diag_p=diag_p,
    )


def _log_det(spectrum: Spectrum, lam: float) -> float:
    r"""log|B| = log|L^T B L| - 2 log|L| with B = I + Phi^T Phi/lambda and L = V sqrt(g), g = lambda/(s^2 + lambda).

    With more columns than rows B = I + Phi Phi^T/lambda, which has the same determinant, and L = U sqrt(g).
    """
    assert spectrum.design is not None and spectrum.U is not None
    Phi, k = spectrum.design, len(spectrum.s)
    root = np.sqrt(lam / (spectrum.s**2 + lam))
    if k == spectrum.n_columns:
        basis, other = spectrum.Vt.T, Phi
    else:
        basis, other = _without_bias(spectrum, spectrum.U), Phi.T
    L = basis * root
    W = -accurate_residual(np.zeros((other.shape[0], k)), np.ascontiguousarray(other), L)
    if k == spectrum.n_columns:
        W = _without_bias(spectrum, W)
    near_identity = L.T @ L + (W / np.sqrt(lam)).T @ (W / np.sqrt(lam))
    # the singular vectors are orthogonal to a few eps: log|basis^T basis| is its trace's excess
    excess = float(np.einsum("ij,ij->", basis, basis)) - k
    return float(np.linalg.slogdet(near_identity)[1] - 2.0 * np.log(root).sum() - excess)


def _without_bias(spectrum: Spectrum, Y: FloatArray) -> FloatArray:
    """Rows without what the bias of a centred fit explains of them."""
    if not spectrum.centred:
        return Y
    return Y - Y.mean(axis=0) if spectrum.row_weights is None else spectrum.row_weights.without_bias(Y)
