"""The judges: log evidence computed in ways that share no code with the engines, from fast to exact."""

from __future__ import annotations

from operator import mul
from typing import Any

import mpmath
import numpy as np
from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

Array = np.ndarray[Any, np.dtype[np.float64]]


class Judge:
    """Log evidence of any (alpha, beta) on one well-conditioned problem, from the eigenvalues of its Gram matrix."""

    def __init__(self, Phi: Array, t: Array) -> None:
        self.n_rows = len(t)
        self.eigenvalues, V = np.linalg.eigh(Phi.T @ Phi)
        self.along2 = (V.T @ (Phi.T @ t)) ** 2
        self.tss = float(t @ t)

    def log_evidence(self, alpha: float, beta: float) -> float:
        """log N(t | 0, I/beta + Phi Phi^T/alpha), in nats."""
        h = alpha + beta * self.eigenvalues
        log_det = np.log(h).sum() - len(h) * np.log(alpha) - self.n_rows * np.log(beta)
        quad = beta * self.tss - beta**2 * (self.along2 / h).sum()
        return float(-0.5 * (self.n_rows * np.log(2 * np.pi) + log_det + quad))


def extended(Phi: Array, t: Array, alpha: float, beta: float) -> float:
    r"""Log evidence with 64-bit mantissas, by Householder QR of :math:`[\Phi; \sqrt\lambda I]`, :math:`[t; 0]`.

    The normal equations are never formed, so what is lost is 1e-19 sqrt(beta/alpha) s_max, not its square: good to
    1e-10 where mpmath would take hours (where long double is no longer than double: no better than the engines).
    """
    n, m = Phi.shape
    lam = np.longdouble(alpha) / np.longdouble(beta)
    A = np.zeros((m + 1, n + m), dtype=np.longdouble)  # transposed: a column of the problem is a row here
    A[:m, :n], A[m, :n] = Phi.T, t
    A[np.arange(m), n + np.arange(m)] = np.sqrt(lam)
    log_det = np.longdouble(0.0)
    for k in range(m):
        # rows n + k + 1 ... of the problem are still zero in columns up to k: the reflection does not touch them
        x = A[k, k : n + k + 1].copy()
        size = -np.copysign(np.sqrt(x @ x), x[0])
        x[0] -= size
        A[k:, k : n + k + 1] -= np.multiply.outer((A[k:, k : n + k + 1] @ x) * (2 / (x @ x)), x)
        log_det += 2 * np.log(abs(size))
    rest = A[m, m:]
    log_det -= m * np.log(lam)
    quad = rest @ rest
    b = np.longdouble(beta)
    return float(-(n * np.log(2 * np.longdouble(np.pi)) - n * np.log(b) + log_det + b * quad) / 2)


def exact(Phi: Array, t: Array, alpha: float, beta: float, digits: int = 50) -> Any:
    """Log evidence by a Cholesky factorisation of I + Phi Phi^T/lambda at `digits` digits, an mpmath number."""
    with mpmath.workdps(digits):
        n = len(t)
        a, b = mpmath.mpf(float(alpha)), mpmath.mpf(float(beta))
        rows = [[mpmath.mpf(float(v)) for v in row] for row in Phi]
        y = [mpmath.mpf(float(v)) for v in t]
        L: list[list[Any]] = []
        for i in range(n):
            row: list[Any] = []
            for j in range(i):
                row.append((b / a * mpmath.fdot(rows[i], rows[j]) - mpmath.fdot(row, L[j][:j])) / L[j][j])
            row.append(mpmath.sqrt(1 + b / a * mpmath.fdot(rows[i], rows[i]) - mpmath.fdot(row, row)))
            L.append(row)
        half: list[Any] = []  # L^-1 t
        for i in range(n):
            half.append((y[i] - mpmath.fdot(L[i][:i], half)) / L[i][i])
        log_det = 2 * mpmath.fsum(mpmath.log(L[i][i]) for i in range(n))
        return -(n * mpmath.log(2 * mpmath.pi) + log_det - n * mpmath.log(b) + b * mpmath.fdot(half, half)) / 2


def relative_error(value: float, reference: Any) -> float:
    """|value - reference| / |reference|; infinite where there is no value."""
    if not np.isfinite(value):
        return float("inf")
    return float(abs((mpmath.mpf(float(value)) - reference) / reference))


def sparse_evidence(columns: Array, t: Array, alpha: Array, beta: float) -> float:
    """log N(t | 0, I/beta + sum_i phi_i phi_i^T/alpha_i), through the Cholesky factor of the N x N matrix itself."""
    n = len(t)
    C = (columns / alpha) @ columns.T
    C[np.diag_indices(n)] += 1.0 / beta
    factor = cholesky(C, lower=True, overwrite_a=True, check_finite=False)
    half = solve_triangular(factor, t, lower=True, check_finite=False)
    return float(-0.5 * (n * np.log(2 * np.pi) + 2 * np.log(factor.diagonal()).sum() + half @ half))


def sparse_evidence_tall(columns: Array, t: Array, alpha: Array, beta: float) -> float:
    """Compute the same where N x N is too much, by Householder QR of [sqrt(beta) Phi A^-1/2; I]; never Phi^T Phi."""
    n, k = columns.shape
    A = np.zeros((n + k, k + 1))
    A[:n, :k], A[:n, k] = columns * np.sqrt(beta / alpha), np.sqrt(beta) * t
    A[np.arange(n, n + k), np.arange(k)] = 1.0
    (R,) = qr(A, mode="r", overwrite_a=True, check_finite=False)
    pivots = np.abs(R.diagonal())
    return float(-0.5 * (n * np.log(2 * np.pi / beta) + 2 * np.log(pivots[:k]).sum() + pivots[k] ** 2))


def sparse_judge(columns: Array, t: Array, alpha: Array, beta: float) -> float:
    """Log evidence of a sparse model: at 60 digits up to 1000 rows; beyond, dense, where need be by QR."""
    if not len(alpha):
        return float(0.5 * (len(t) * np.log(beta / (2 * np.pi)) - beta * (t @ t)))
    if len(t) <= 1000:
        return float(sparse_exact(columns, t, alpha, beta))
    try:
        return (
            sparse_evidence(columns, t, alpha, beta)
            if len(t) <= 5000
            else sparse_evidence_tall(columns, t, alpha, beta)
        )
    except LinAlgError:
        return sparse_evidence_tall(columns, t, alpha, beta)


def sparse_exact(columns: Array, t: Array, alpha: Array, beta: float, digits: int = 60) -> Any:
    """`sparse_evidence` at `digits` digits, an mpmath number.

    Columns and target are doubles: as integers at a common power of two their products are exact, and the rest happens
    in k x k: |C| = beta^-N |H| / |A| and t^T C^-1 t = beta t^T t - beta² h^T H^-1 h with H = A + beta Phi^T Phi and
    h = Phi^T t.
    """
    n, k = columns.shape
    with mpmath.workdps(digits + 30):
        whole = [_whole(column) for column in (*columns.T, t)]

        def dot(i: int, j: int) -> Any:
            (a, p), (b, q) = whole[i], whole[j]
            return mpmath.ldexp(mpmath.mpf(sum(map(mul, a, b))), p + q)

        A, b = [mpmath.mpf(float(v)) for v in alpha], mpmath.mpf(float(beta))
        L: list[list[Any]] = []
        half: list[Any] = []
        for i in range(k):
            row: list[Any] = []
            for j in range(i):
                row.append((b * dot(i, j) - mpmath.fdot(row, L[j][:j])) / L[j][j])
            row.append(mpmath.sqrt(A[i] + b * dot(i, i) - mpmath.fdot(row, row)))
            L.append(row)
            half.append((b * dot(i, k) - mpmath.fdot(row[:i], half)) / row[i])
        log_det = 2 * mpmath.fsum(mpmath.log(L[i][i]) for i in range(k)) - mpmath.fsum(map(mpmath.log, A))
        log_det -= n * mpmath.log(b)
        return -(n * mpmath.log(2 * mpmath.pi) + log_det + b * dot(k, k) - mpmath.fdot(half, half)) / 2


def _whole(x: Array) -> tuple[list[int], int]:
    """Integers v and an exponent e with x = v 2^e exactly."""
    mantissa, exponent = np.frexp(x)
    low = int(exponent.min()) - 53
    return [int(m) << int(e) for m, e in zip(mantissa * 2.0**53, exponent - 53 - low, strict=True)], low
