"""The judges: log evidence computed in ways that share no code with the engines, from fast to exact."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

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
