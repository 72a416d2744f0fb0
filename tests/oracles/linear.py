"""Slow, dense twins of the linear core, written from the equations and sharing no code with the package.

Plain numpy where double precision is plenty, mpmath (60 digits) where the question is how many digits the package
keeps. Notation: Phi (N, M) columns, t (N,) targets, weight precisions alpha, noise precision beta, ridge
lambda = alpha / beta (one number, or one per column; infinity removes the column), and
P = (I + Phi Lambda^-1 Phi')^-1 = I - Phi (Phi'Phi + Lambda)^-1 Phi'.
"""

from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
DIGITS = 60


# --- double precision -------------------------------------------------------------------------------------------


def evidence_covariance(Phi: Array, alpha: ArrayLike, beta: float) -> Array:
    """C = I / beta + Phi A^-1 Phi'."""
    weight_variance = 1.0 / np.broadcast_to(np.asarray(alpha, dtype=float), (Phi.shape[1],))
    return np.eye(Phi.shape[0]) / beta + (Phi * weight_variance) @ Phi.T


def log_evidence(Phi: Array, t: Array, alpha: ArrayLike, beta: float) -> float:
    """log N(t | 0, C), in nats, every constant kept."""
    C = evidence_covariance(Phi, alpha, beta)
    return float(-0.5 * (len(t) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + t @ np.linalg.solve(C, t)))


def posterior(Phi: Array, t: Array, alpha: ArrayLike, beta: float) -> tuple[Array, Array]:
    """Mean and covariance of the weights: Sigma = (beta Phi'Phi + A)^-1, mu = beta Sigma Phi't."""
    A = np.diag(np.broadcast_to(np.asarray(alpha, dtype=float), (Phi.shape[1],)))
    Sigma = np.linalg.inv(beta * Phi.T @ Phi + A)
    return beta * Sigma @ Phi.T @ t, Sigma


def ridge_weights(Phi: Array, t: Array, lam: ArrayLike) -> Array:
    """w = (Phi'Phi + Lambda)^-1 Phi't; a column with infinite lambda gets the weight 0."""
    lam = np.broadcast_to(np.asarray(lam, dtype=float), (Phi.shape[1],))
    keep = np.isfinite(lam)
    w = np.zeros(Phi.shape[1])
    kept = Phi[:, keep]
    w[keep] = np.linalg.solve(kept.T @ kept + np.diag(lam[keep]), kept.T @ t)
    return w


def projection(Phi: Array, lam: ArrayLike) -> Array:
    """P = I - Phi (Phi'Phi + Lambda)^-1 Phi', columns with infinite lambda left out."""
    lam = np.broadcast_to(np.asarray(lam, dtype=float), (Phi.shape[1],))
    keep = np.isfinite(lam)
    kept = Phi[:, keep]
    return np.eye(len(Phi)) - kept @ np.linalg.solve(kept.T @ kept + np.diag(lam[keep]), kept.T)


def criteria_from_projection(P: Array, t: Array) -> dict[str, float]:
    """Every prediction-error estimate from P and t alone."""
    n = len(t)
    residual = P @ t
    S = residual @ residual
    gamma = n - np.trace(P)
    return {
        "loo": float(np.mean((residual / np.diag(P)) ** 2)),
        "gcv": float(n * S / np.trace(P) ** 2),
        "uev": float(S / (n - gamma)),
        "fpe": float((n + gamma) / (n - gamma) * S / n),
        "bic": float((n + (np.log(n) - 1) * gamma) / (n - gamma) * S / n),
        "gamma": float(gamma),
    }


def criteria(Phi: Array, t: Array, lam: ArrayLike) -> dict[str, float]:
    return criteria_from_projection(projection(Phi, lam), t)


def loo_by_retraining(Phi: Array, t: Array, lam: ArrayLike, centre: bool = False) -> float:
    """Mean squared error of each row under the model trained on the others, each model solved afresh."""
    errors = []
    for i in range(len(t)):
        rest = np.arange(len(t)) != i
        shift, mean = (Phi[rest].mean(axis=0), t[rest].mean()) if centre else (np.zeros(Phi.shape[1]), 0.0)
        w = ridge_weights(Phi[rest] - shift, t[rest] - mean, lam)
        errors.append(t[i] - mean - (Phi[i] - shift) @ w)
    return float(np.mean(np.square(errors)))


def profile(Phi: Array, t: Array, lam: ArrayLike) -> Array:
    """max over beta of the log evidence at each lambda: beta = N / t'K^-1 t with K = I + Phi Phi' / lambda."""
    values = []
    n = len(t)
    gram = Phi @ Phi.T
    for one in np.atleast_1d(np.asarray(lam, dtype=float)):
        K = np.eye(n) + gram / one
        q = t @ np.linalg.solve(K, t)
        values.append(-0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(K)[1] + n * np.log(q / n) + n))
    return np.array(values)


def criterion_curve(name: str, Phi: Array, t: Array, grid: Array) -> Array:
    """A criterion on a grid of lambda, through the singular vectors: P = U g U', g = lambda / (lambda + s^2)."""
    U, s, _ = np.linalg.svd(Phi)
    mu = np.zeros(len(t))
    mu[: len(s)] = s**2
    g = grid[:, None] / (grid[:, None] + mu)
    z, n = U.T @ t, len(t)
    S, gamma = g**2 @ z**2, n - g.sum(axis=1)
    if name == "loo":
        return np.mean(((g * z) @ U.T / (g @ (U**2).T)) ** 2, axis=1)
    return {
        "gcv": n * S / (n - gamma) ** 2,
        "uev": S / (n - gamma),
        "fpe": (n + gamma) / (n - gamma) * S / n,
        "bic": (n + (np.log(n) - 1) * gamma) / (n - gamma) * S / n,
    }[name]


def local_optima(values: Array, sign: int) -> list[int]:
    """Indices of interior local maxima (sign=+1) or minima (sign=-1) of a sampled curve."""
    v = sign * np.asarray(values)
    return [i for i in range(1, len(v) - 1) if v[i] > v[i - 1] and v[i] >= v[i + 1]]


def radial(kind: str, X: Array, centers: Array, width: ArrayLike) -> Array:
    """phi((x - c)' R^-1 (x - c)), R = diag(width_d^2), one entry at a time."""
    width = np.broadcast_to(np.asarray(width, dtype=float), (X.shape[1],))
    shape = {
        "gaussian": lambda z: np.exp(-z),
        "multiquadric": lambda z: np.sqrt(1 + z),
        "inverse_multiquadric": lambda z: 1 / np.sqrt(1 + z),
        "cauchy": lambda z: 1 / (1 + z),
    }[kind]
    H = np.empty((len(X), len(centers)))
    for n, x in enumerate(X):
        for m, c in enumerate(centers):
            H[n, m] = shape(sum((x[d] - c[d]) ** 2 / width[d] ** 2 for d in range(len(width))))
    return H


# --- sixty digits -----------------------------------------------------------------------------------------------


class Exact(NamedTuple):
    """Values at sixty digits; all but the evidence are ridge quantities of lambda = alpha / beta."""

    log_evidence: Any
    gamma: Any
    loo: Any
    gcv: Any
    mean: list[Any]
    cost: Any  # t'Pt
    error: Any  # t'P^2 t


def _cholesky(A: list[list[Any]]) -> list[list[Any]]:
    L: list[list[Any]] = []
    for i in range(len(A)):
        row: list[Any] = []
        for j in range(i):
            row.append((A[i][j] - mpmath.fdot(row, L[j][:j])) / L[j][j])
        row.append(mpmath.sqrt(A[i][i] - mpmath.fdot(row, row)))
        L.append(row)
    return L


def _inverse_lower(L: list[list[Any]]) -> list[list[Any]]:
    """Columns of L^-1, column j starting at its diagonal entry."""
    columns = []
    for j in range(len(L)):
        col = [1 / L[j][j]]
        for i in range(j + 1, len(L)):
            col.append(-mpmath.fdot(L[i][j:i], col) / L[i][i])
        columns.append(col)
    return columns


def exact(Phi: Array, t: Array, alpha: ArrayLike, beta: float, *, centre: bool = False, digits: int = DIGITS) -> Exact:
    """Evidence, gamma, LOO, GCV and posterior mean through the N x N matrix I + Phi Lambda^-1 Phi' at many digits.

    The doubles are taken as exact. ``centre`` removes column and target means at full precision, and P then contains
    the unpenalised mean: P = (I + Phi_c Lambda^-1 Phi_c')^-1 - 11'/N (so gamma counts the bias). The evidence is then
    the integral over a bias of constant prior density 1 / (sqrt(2 pi) s), s^2 = |t_c|^2 / N:
    log N(t_c | 0, I / beta + Phi_c A^-1 Phi_c') - log(beta |t_c|^2) / 2.
    """
    with mpmath.workdps(digits):
        n, m = Phi.shape
        alphas = [mpmath.mpf(float(a)) for a in np.broadcast_to(np.asarray(alpha, dtype=float), (m,))]
        b = mpmath.mpf(float(beta))
        rows = [[mpmath.mpf(float(v)) for v in row] for row in Phi]
        y = [mpmath.mpf(float(v)) for v in t]
        if centre:
            means = [mpmath.fsum(row[j] for row in rows) / n for j in range(m)]
            rows = [[v - c for v, c in zip(row, means, strict=True)] for row in rows]
            level = mpmath.fsum(y) / n
            y = [v - level for v in y]
        inv_lam = [b / a if mpmath.isfinite(a) else mpmath.mpf(0) for a in alphas]
        scaled = [[v * s for v, s in zip(row, inv_lam, strict=True)] for row in rows]
        K = [[mpmath.fdot(rows[i], scaled[j]) + (i == j) for j in range(i + 1)] for i in range(n)]
        L = _cholesky(K)
        log_det_K = 2 * mpmath.fsum(mpmath.log(L[i][i]) for i in range(n))
        inv = _inverse_lower(L)
        # K^-1 = L^-T L^-1: entry (i, j), j >= i, is the inner product of columns i and j of L^-1
        Kinv = [[mpmath.mpf(0)] * n for _ in range(n)]
        for i in range(n):
            for j in range(i, n):
                Kinv[i][j] = Kinv[j][i] = mpmath.fdot(inv[i][j - i :], inv[j])
        cost = mpmath.fdot(y, [mpmath.fdot(row, y) for row in Kinv])
        log_ev = -(n * mpmath.log(2 * mpmath.pi) + log_det_K - n * mpmath.log(b) + b * cost) / 2
        if centre:
            spread = mpmath.fdot(y, y)
            log_ev -= mpmath.log(b * spread) / 2 if spread > 0 else mpmath.inf
        residual = [mpmath.fdot(row, y) for row in Kinv]  # K^-1 leaves the mean of a centred y at zero
        mean = [s * mpmath.fdot([row[j] for row in rows], residual) for j, s in enumerate(inv_lam)]
        drop = mpmath.mpf(1) / n if centre else mpmath.mpf(0)
        diag = [Kinv[i][i] - drop for i in range(n)]
        trace = mpmath.fsum(diag)
        error = mpmath.fdot(residual, residual)
        loo = (
            mpmath.fsum((r / d) ** 2 for r, d in zip(residual, diag, strict=True)) / n
            if all(d > 0 for d in diag)
            else mpmath.nan
        )
        gcv = n * error / trace**2 if trace > 0 else mpmath.nan
        return Exact(log_ev, n - trace, loo, gcv, mean, cost, error)


def exact_tall(Phi: Array, t: Array, lam: float, beta: float, digits: int = DIGITS) -> tuple[Any, Any, Any]:
    """Evidence, gamma and t'P^2 t of many rows, few columns, through Phi'Phi + lambda I, which sixty digits afford."""
    with mpmath.workdps(digits):
        n, m = Phi.shape
        columns = [[mpmath.mpf(float(v)) for v in column] for column in Phi.T]
        y = [mpmath.mpf(float(v)) for v in t]
        ridge, b = mpmath.mpf(float(lam)), mpmath.mpf(float(beta))
        gram = [[mpmath.fdot(columns[i], columns[j]) for j in range(i + 1)] for i in range(m)]
        L = _cholesky([[v + ridge * (i == j) for j, v in enumerate(row)] for i, row in enumerate(gram)])
        inv = _inverse_lower(L)
        Ainv = [[mpmath.mpf(0)] * m for _ in range(m)]
        for i in range(m):
            for j in range(i, m):
                Ainv[i][j] = Ainv[j][i] = mpmath.fdot(inv[i][j - i :], inv[j])
        corr = [mpmath.fdot(column, y) for column in columns]
        w = [mpmath.fdot(row, corr) for row in Ainv]
        total = mpmath.fdot(y, y)
        cost = total - mpmath.fdot(corr, w)
        log_det_K = 2 * mpmath.fsum(mpmath.log(L[i][i]) for i in range(m)) - m * mpmath.log(ridge)
        log_ev = -(n * mpmath.log(2 * mpmath.pi) + log_det_K - n * mpmath.log(b) + b * cost) / 2
        gamma = m - ridge * mpmath.fsum(Ainv[i][i] for i in range(m))
        return log_ev, gamma, cost - ridge * mpmath.fdot(w, w)


def exact_log_evidence(Phi: Array, t: Array, alpha: ArrayLike, beta: float, *, centre: bool = False) -> float:
    """The evidence alone, rounded to a double at the very end."""
    return float(exact(Phi, t, alpha, beta, centre=centre).log_evidence)


def exact_criteria(Phi: Array, t: Array, lam: ArrayLike, *, centre: bool = False) -> dict[str, float]:
    """Every criterion at sixty digits, rounded at the end; lambda positive, infinite where a column is left out."""
    e = exact(Phi, t, lam, 1.0, centre=centre)
    n = len(t)
    with mpmath.workdps(DIGITS):
        free = n - e.gamma
        uev = e.error / free
        values = {
            "loo": e.loo,
            "gcv": e.gcv,
            "uev": uev,
            "fpe": (n + e.gamma) * uev / n,
            "bic": (n + (mpmath.log(n) - 1) * e.gamma) * uev / n,
            "gamma": e.gamma,
        }
        return {key: float(value) for key, value in values.items()}


def relative(value: float, reference: Any, floor: float = 0.0) -> float:
    """|value - reference| / max(|reference|, floor), the subtraction done at sixty digits."""
    with mpmath.workdps(DIGITS):
        reference = mpmath.mpf(reference)
        return float(abs(mpmath.mpf(float(value)) - reference) / max(abs(reference), mpmath.mpf(floor)))


def central_difference(f: Any, x: ArrayLike, step: float = 1e-5) -> Array:
    """Gradient by symmetric differences with one Richardson step (error of order step^4)."""
    x = np.asarray(x, dtype=float)
    gradient = np.empty(len(x))
    for k in range(len(x)):
        e = np.zeros(len(x))
        e[k] = step
        coarse = (f(x + e) - f(x - e)) / (2 * step)
        fine = (f(x + e / 2) - f(x - e / 2)) / step
        gradient[k] = (4 * fine - coarse) / 3
    return gradient
