"""Slow, plain references for the relevance vector machine, from the papers, sharing no code with the package.

Model: t = Phi w + noise, w_i ~ N(0, 1 / alpha_i), noise precision beta, and C = I / beta + Phi A^-1 Phi'. Everything
follows from S_i = phi_i' C^-1 phi_i and Q_i = phi_i' C^-1 t, which an N x N factor gives however ill-conditioned the
columns are: mu_i = Q_i / alpha_i, gamma_i = 1 - alpha_i Sigma_ii = S_i / alpha_i, t - Phi mu = C^-1 t / beta and
N - sum gamma = tr(C^-1) / beta.
"""

from typing import NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from tests.oracles.linear import DIGITS, _cholesky

Array = NDArray[np.float64]


class Reference(NamedTuple):
    """A fitted model: columns in use with their precisions, the noise precision, the dense evidence."""

    basis: NDArray[np.intp]
    alpha: Array
    beta: float
    log_evidence: float
    steps: int
    converged: bool


# --- dense quantities ---------------------------------------------------------------------------------------------


def covariance(Phi: Array, alpha: Array, beta: float) -> Array:
    """C = I / beta + Phi A^-1 Phi'; infinite alpha leaves its column out."""
    return np.eye(len(Phi)) / beta + (Phi / alpha) @ Phi.T


def factor(Phi: Array, alpha: Array, beta: float) -> tuple[Array, Array, Array]:
    """QR factors of [sqrt(beta) Phi A^-1/2; I]: Q1 (N, M), Q2 (M, M) and R; R'R = K = I + beta A^-1/2 Phi'Phi A^-1/2.

    K is never formed: with wide kernels weights of 1e6 and more occur, whose K (and C) have no Cholesky factor in
    double precision, while all singular values of the stacked matrix are at least one.
    """
    n, m = Phi.shape
    Q, R = np.linalg.qr(np.vstack([np.sqrt(beta / alpha) * Phi, np.eye(m)]))
    return Q[:n], Q[n:], R


def evidence(Phi: Array, t: Array, alpha: Array, beta: float) -> float:
    """log N(t | 0, C), in nats, every constant kept: |C| = |K| / beta^N and t'C^-1 t = beta t'(I - Q1 Q1')t."""
    n = len(t)
    Q1, Q2, R = factor(Phi, alpha, beta)
    v = Q1.T @ t
    r, Av = t - Q1 @ v, Q2 @ v  # t'C^-1 t = beta |t - Phi mu|^2 + mu'A mu, no difference of large numbers
    cost = beta * (r @ r + Av @ Av)
    return float(-0.5 * (n * np.log(2 * np.pi / beta) + cost) - np.log(np.abs(np.diag(R))).sum())


def sq(F: Array, t: Array, Phi: Array, alpha: Array, beta: float) -> tuple[Array, Array]:
    """S and Q of every column of F under the model (Phi, alpha, beta), as sums of squares: S is never negative."""
    Q1, Q2, _ = factor(Phi, alpha, beta)
    V, v = Q1.T @ F, Q1.T @ t
    RF, AF, r, a = F - Q1 @ V, Q2 @ V, t - Q1 @ v, Q2 @ v
    return beta * (np.sum(RF**2, axis=0) + np.sum(AF**2, axis=0)), beta * (RF.T @ r + AF.T @ a)


def exact_evidence(Phi: Array, t: Array, alpha: Array, beta: float, digits: int = DIGITS) -> mpmath.mpf:
    """log N(t | 0, C) at sixty digits, the doubles taken as exact, by the smaller of C and K."""
    n, m = Phi.shape
    with mpmath.workdps(digits):
        b, a = mpmath.mpf(float(beta)), [mpmath.mpf(float(v)) for v in alpha]
        y = [mpmath.mpf(float(v)) for v in t]
        root = [mpmath.sqrt(b / v) for v in a]
        W = [[mpmath.mpf(float(v)) * s for v in column] for column, s in zip(Phi.T, root, strict=True)]
        total = mpmath.fdot(y, y)
        if m < n:
            L = _cholesky([[mpmath.fdot(W[i], W[j]) + (i == j) for j in range(i + 1)] for i in range(m)])
            u = _forward(L, [mpmath.fdot(w, y) for w in W])
            cost = total - mpmath.fdot(u, u)
        else:
            rows = [list(row) for row in zip(*W, strict=True)]
            L = _cholesky([[mpmath.fdot(rows[i], rows[j]) + (i == j) for j in range(i + 1)] for i in range(n)])
            u = _forward(L, y)
            cost = mpmath.fdot(u, u)
        log_det_K = 2 * mpmath.fsum(mpmath.log(L[i][i]) for i in range(len(L)))
        return -(n * mpmath.log(2 * mpmath.pi / b) + log_det_K + b * cost) / 2


def _forward(L: list[list[mpmath.mpf]], y: list[mpmath.mpf]) -> list[mpmath.mpf]:
    u: list[mpmath.mpf] = []
    for row, v in zip(L, y, strict=True):
        u.append((v - mpmath.fdot(row[: len(u)], u)) / row[len(u)])
    return u


def moments(Phi: Array, t: Array, alpha: Array, beta: float) -> tuple[Array, Array, float, Array]:
    """gamma_i, mu_i, N - sum gamma and the residuals t - Phi mu; by Cholesky of K where that loses little (faster)."""
    scale = np.sqrt(beta / alpha)
    W = scale * Phi
    if Phi.shape[1] > 30 and np.sum(W**2) < 1e11:
        Kinv = cho_solve(cho_factor(np.eye(Phi.shape[1]) + W.T @ W, lower=True), np.eye(Phi.shape[1]))
        mu, gamma = scale * (Kinv @ (W.T @ t)), 1 - np.diag(Kinv)
        return gamma, mu, float(len(t) - gamma.sum()), t - Phi @ mu
    Q1, Q2, _ = factor(Phi, alpha, beta)
    v = Q1.T @ t
    r = t - Q1 @ v
    well_determined = 1 - np.sum(Q2**2, axis=1)  # K^-1 = Q2 Q2'
    badly_determined = np.sum(W * (W - Q1 @ (Q1.T @ W)), axis=0)
    gamma = np.where(np.sum(W**2, axis=0) < 1, badly_determined, well_determined)
    return gamma, scale * (Q2 @ v), float(len(t) - np.sum(Q1**2)), r


# --- (a) MacKay's updates from the full model (Tipping 2001) ------------------------------------------------------


def mackay(
    F: Array,
    t: Array,
    *,
    start: float | None = None,
    beta: float | None = None,
    max_steps: int = 20_000,
    prune: float = 1e12,
    tol: float = 1e-5,
    patience: int = 100,
) -> Reference:
    """alpha_i = gamma_i / mu_i^2 and 1 / beta = |t - Phi mu|^2 / (N - sum gamma) until all stand still.

    All alpha start at ``start`` (default 1 / P^2, as Tipping's SparseBayes does); a column is dropped for good once its
    alpha passes ``prune``. Converged when the evidence gained less than ``tol`` over the last ``patience`` updates.
    """
    p = F.shape[1]
    basis = np.flatnonzero(np.any(F != 0, axis=0))
    alpha = np.full(len(basis), 1 / p**2 if start is None else start)
    noise = beta is None
    b = 1 / (0.1 * np.var(t)) if beta is None else beta
    last, step, converged = -np.inf, 0, False
    for step in range(1, max_steps + 1):
        Phi = F[:, basis]
        gamma, mu, free, residual = moments(Phi, t, alpha, b)
        with np.errstate(divide="ignore", over="ignore"):
            new, new_b = np.maximum(gamma, 1e-300) / mu**2, b
        if noise:
            new_b = min(max(free, 1e-8) / float(residual @ residual), 1e14 / float(np.mean(t**2)))
        still = bool(np.all(np.abs(new / alpha - 1) < 1e-7)) and abs(new_b / b - 1) < 1e-7
        keep = new < prune
        basis, alpha, b = basis[keep], new[keep], new_b
        if still or len(basis) == 0:
            converged = True
            break
        if step % patience == 0:
            now = evidence(F[:, basis], t, alpha, b)
            if now - last < tol and keep.all():
                converged = True
                break
            last = now
    return Reference(basis, alpha, float(b), evidence(F[:, basis], t, alpha, b), step, converged)


# --- (b) greedy sequential updates (Tipping & Faul 2003) ----------------------------------------------------------


def gains(S: Array, Q: Array, alpha: Array) -> tuple[Array, Array]:
    """Best move of each column alone, given S and Q and alpha (infinite outside the model): exact gain and new alpha.

    Outside s = S, q = Q; inside s = alpha S / (alpha - S), q = alpha Q / (alpha - S). The best alpha is s^2 / (q^2 - s)
    if q^2 > s, else infinity, and the three formulas are those of adding, re-estimating and deleting.
    """
    inside = np.isfinite(alpha)
    a = np.where(inside, alpha, 1.0)
    with np.errstate(all="ignore"):
        s = np.where(inside, a * S / (a - S), S)
        q = np.where(inside, a * Q / (a - S), Q)
        theta = q**2 - s
        new = np.where(theta > 0, s**2 / theta, np.inf)
        delta = 1 / new - 1 / a
        add = 0.5 * ((Q**2 - S) / S + np.log(S / Q**2))
        estimate = np.where(delta == 0, 0.0, 0.5 * (Q**2 / (S + 1 / delta) - np.log1p(S * delta)))
        delete = 0.5 * (Q**2 / (S - a) - np.log(1 - S / a))
    gain = np.where(inside, np.where(theta > 0, estimate, delete), np.where(theta > 0, add, 0.0))
    return np.where(np.isnan(gain), 0.0, gain), new


def greedy(
    F: Array,
    t: Array,
    *,
    beta: float | None = None,
    every: int = 1,
    start: Reference | None = None,
    max_steps: int = 20_000,
    tol: float = 1e-8,
) -> Reference:
    """The action of largest exact gain first, the noise re-estimated after ``every`` so many actions.

    Begins with the column most correlated with the target and the noise variance at a tenth of the target's (or at
    ``start``); ends when no action gains more than ``tol`` and the noise stands still.
    """
    n, p = F.shape
    usable = np.any(F != 0, axis=0)
    alpha = np.full(p, np.inf)
    if start is None:
        b = 1 / (0.1 * np.var(t)) if beta is None else beta
        square, correlation = np.sum(F**2, axis=0), F.T @ t
        first = int(np.argmax(np.divide(correlation**2, square, out=np.full(p, -np.inf), where=usable)))
        excess = correlation[first] ** 2 / square[first] - 1 / b
        alpha[first] = square[first] / excess if excess > 0 else square[first] / (0.1 * t @ t / n)
    else:
        b = start.beta
        alpha[start.basis] = start.alpha
    step, converged = 0, False
    for step in range(1, max_steps + 1):
        basis = np.flatnonzero(np.isfinite(alpha))
        S, Q = sq(F, t, F[:, basis], alpha[basis], b)
        gain, new = gains(S, Q, alpha)
        gain[~usable] = 0.0
        if len(basis) == 1:
            gain[basis] = np.where(np.isinf(new[basis]), 0.0, gain[basis])
        pick = int(np.argmax(gain))
        acted, moved = gain[pick] > tol, False
        if acted:
            alpha[pick] = new[pick]
        if beta is None and (step % every == 0 or not acted):
            basis = np.flatnonzero(np.isfinite(alpha))
            _, _, free, r = moments(F[:, basis], t, alpha[basis], b)
            b_new = min(max(free, 1e-8) / float(r @ r), 1e14 / float(np.mean(t**2)))
            moved, b = abs(np.log(b_new / b)) > 1e-7, b_new
        if not acted and not moved:
            converged = True
            break
    basis = np.flatnonzero(np.isfinite(alpha))
    return Reference(basis, alpha[basis], float(b), evidence(F[:, basis], t, alpha[basis], b), step, converged)


# --- the reference experiment ------------------------------------------------------------------------------------

COSINE_LOG_RHO = np.round(np.arange(-1.5, 0.31, 0.1), 1)


def cosine(seed: int) -> tuple[Array, Array, Array]:
    """Inputs x, targets cos(x^2) + U(-0.1, 0.1) and the noiseless curve: 200 equally spaced x in [-3, 3]."""
    x = np.linspace(-3, 3, 200)
    truth = np.cos(x**2)
    return x, truth + np.random.default_rng(seed).uniform(-0.1, 0.1, len(x)), truth


def cosine_design(x: Array, log_rho: float) -> Array:
    """exp(-d^2 / (2 rho^2)) at every input, and a column of ones last."""
    rho = 10.0**log_rho
    return np.column_stack([np.exp(-(np.subtract.outer(x, x) ** 2) / (2 * rho**2)), np.ones(len(x))])
