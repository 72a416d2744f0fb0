"""Posteriors for the samplers' benchmarks, each written once for everybody. NumPy and SciPy alone: peers import it.

A density takes a flat vector q, the data and an `Algebra`: NumPy's, JAX's or PyTensor's functions of the same names. So
all contestants sample one and the same formula, and what they return is read by one and the same code. Densities leave
constants out. Positive parameters stand as logarithms, Jacobians included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sl
from scipy.linalg import blas, lapack

from benchmarks.rvm_cases import Array, sinc

#: shape and rate of every Gamma prior on a precision of a linear model
SHAPE = RATE = 1e-2
#: inputs of the Gaussian process where a case does not say; it has a parameter for each, and four more
GP_INPUTS = 8
#: below this the Cholesky factor of I + UUᵀ keeps about four decimals of its log determinant
SAFE_TRACE = 1e11


class Algebra(NamedTuple):
    """A module with NumPy's names, and its triangular solver with SciPy's arguments."""

    xp: Any
    solve_triangular: Callable[..., Any]


NUMPY = Algebra(np, sl.solve_triangular)
Data = Mapping[str, Any]
Draws = dict[str, Array]


class Target(NamedTuple):
    """A density over vectors of length `size`.

    `finish` turns draws (chain, draw, size) into named arrays; it is part of a contestant's work and timed.
    `value_and_gradient` is a hand-written pair for those who can use one.
    """

    size: int
    data: dict[str, Array]
    density: Callable[[Any, Data, Algebra], Any]
    finish: Callable[[Array, np.random.Generator], Draws]
    value_and_gradient: Callable[[Array], tuple[float, Array]] | None = None


# --- linear models: t = Φw + N(0, 1/β), w_i ~ N(0, 1/α_i), with one α for all weights or one each


class Regression(NamedTuple):
    """Design (N, M), targets (N,), rows of the design at which to predict, number of precisions α (1 or M)."""

    Phi: Array
    t: Array
    Phi_new: Array
    precisions: int


def rvm(n: int) -> Regression:
    """1-D sinc, noise 0.1: gaussians of r = 2 at the n inputs and a bias, a precision for each weight."""
    data = sinc(n)
    new = data._replace(X=np.linspace(-9.5, 9.5, 10)[:, None])
    return Regression(data.design(), data.t, new.design(), n + 1)


def linear(n: int, m: int) -> Regression:
    """Independent normal columns, weights of size 0.3, noise 1, one precision for all weights."""
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((n, m))
    t = Phi @ (0.3 * rng.standard_normal(m)) + rng.standard_normal(n)
    return Regression(Phi, t, rng.standard_normal((10, m)), 1)


def _hyperpriors(log_alpha: Any, log_beta: Any, xp: Any) -> Any:
    """Log densities of log α and log β under Gamma(SHAPE, RATE) priors of α and β."""
    alpha = xp.sum(SHAPE * log_alpha - RATE * xp.exp(log_alpha))
    return alpha + SHAPE * log_beta - RATE * xp.exp(log_beta)


def explicit(problem: Regression, centred: bool) -> Target:
    """q = (log α, log β, w), or with z = √α w for w."""
    (n, m), p = problem.Phi.shape, problem.precisions

    def density(q: Any, data: Data, algebra: Algebra) -> Any:
        xp = algebra.xp
        log_alpha, log_beta, v = q[:p], q[p], q[p + 1 :]
        if centred:
            w = v
            prior = 0.5 * (m / p) * xp.sum(log_alpha) - 0.5 * xp.sum(xp.exp(log_alpha) * w**2)
        else:
            w = v * xp.exp(-0.5 * log_alpha)
            prior = -0.5 * xp.sum(v**2)
        e = data["t"] - xp.dot(data["Phi"], w)
        fit = 0.5 * n * log_beta - 0.5 * xp.exp(log_beta) * xp.sum(e**2)
        return _hyperpriors(log_alpha, log_beta, xp) + prior + fit

    def finish(q: Array, rng: np.random.Generator) -> Draws:
        log_alpha, v = q[..., :p], q[..., p + 1 :]
        return {"log_alpha": log_alpha, "log_beta": q[..., p], "w": v if centred else v * np.exp(-0.5 * log_alpha)}

    return Target(p + 1 + m, {"Phi": problem.Phi, "t": problem.t}, density, finish)


def reduced(problem: Regression) -> tuple[Array, Array, float]:
    """R, z = Qᵀt and ‖t − Qz‖² of Φ = QR: no more rows than the design has dimensions."""
    n, m = problem.Phi.shape
    if n <= m:
        return problem.Phi, problem.t, 0.0
    Q, R = sl.qr(problem.Phi, mode="economic")
    z = Q.T @ problem.t
    return R, z, float(np.sum((problem.t - Q @ z) ** 2))


def collapsed(problem: Regression) -> Target:
    """q = (log α, log β), the weights integrated out and drawn afterwards: one Cholesky factor of size k = min(N, M).

    With U = √β R A^{-1/2} and K = I + UUᵀ: log p = ½N log β − ½ log|K| − ½β(zᵀK⁻¹z + ‖t − Qz‖²).
    """
    n = len(problem.t)
    R, z, rest = reduced(problem)

    def density(q: Any, data: Data, algebra: Algebra) -> Any:
        xp = algebra.xp
        log_alpha, log_beta = q[:-1], q[-1]
        U = data["R"] * xp.exp(0.5 * (log_beta - log_alpha))
        factor = xp.linalg.cholesky(xp.dot(U, U.T) + data["unit"])
        half = algebra.solve_triangular(factor, data["z"], lower=True)
        quadratic = xp.exp(log_beta) * (xp.sum(half**2) + rest)
        fit = 0.5 * n * log_beta - xp.sum(xp.log(xp.diag(factor))) - 0.5 * quadratic
        return _hyperpriors(log_alpha, log_beta, xp) + fit

    def finish(q: Array, rng: np.random.Generator) -> Draws:
        w = np.empty((*q.shape[:2], R.shape[1]))
        for index in np.ndindex(*q.shape[:2]):
            w[index] = draw_weights(R, z, q[index][:-1], q[index][-1], rng)
        return {"log_alpha": q[..., :-1], "log_beta": q[..., -1], "w": w}

    def value_and_gradient(q: Array) -> tuple[float, Array]:
        return collapsed_value_and_gradient(q, R, z, rest, n)

    data = {"R": R, "z": z, "unit": np.eye(len(z))}
    return Target(problem.precisions + 1, data, density, finish, value_and_gradient)


def collapsed_value_and_gradient(q: Array, R: Array, z: Array, rest: float, n: int) -> tuple[float, Array]:
    """The same and its gradient by hand.

    ∂/∂log α_i = ½ [u_iᵀK⁻¹u_i − β (u_iᵀK⁻¹z)²], summed for a common α; ∂/∂log β = ½ [N − tr(I − K⁻¹) − β‖K⁻¹z‖² − …].
    """
    log_alpha, log_beta, k = q[:-1], q[-1], len(z)
    with np.errstate(all="ignore"):
        U = R * np.exp(0.5 * (log_beta - log_alpha))
        trace = np.einsum("ij,ij->", U, U)
    if not np.isfinite(trace):
        return -np.inf, np.zeros_like(q)
    if trace < SAFE_TRACE:
        K = U @ U.T
        K[np.diag_indices(k)] += 1.0
        lower = lapack.dpotrf(K, lower=1, overwrite_a=1)[0]
    else:  # KᵀK from a factor of its root: nothing is squared
        stacked = np.vstack([U.T, np.eye(k)])
        lower = np.triu(lapack.dgeqrf(np.asfortranarray(stacked), overwrite_a=1)[0][:k]).T
    half = blas.dtrsm(1.0, lower, np.column_stack([U, np.eye(k), z]), lower=1)
    m = U.shape[1]
    inverse, v = half[:, m:-1], half[:, -1]
    solved = inverse.T @ v
    beta = np.exp(log_beta)
    value = 0.5 * n * log_beta - np.log(np.abs(np.diag(lower))).sum() - 0.5 * beta * (v @ v + rest)
    by_alpha = 0.5 * (np.einsum("ij,ij->j", half[:, :m], half[:, :m]) - beta * (solved @ U) ** 2)
    if len(log_alpha) == 1:
        by_alpha = by_alpha.sum(keepdims=True)
    by_beta = 0.5 * (n - k + np.einsum("ij,ij->", inverse, inverse) - beta * (solved @ solved + rest))
    gradient = np.append(by_alpha, by_beta) + SHAPE - RATE * np.exp(q)
    return float(value + _hyperpriors(log_alpha, log_beta, np)), gradient


def spectral(problem: Regression) -> Target:
    """`collapsed` for one common α, in the singular vectors of Φ (N > M): M numbers for a density or a draw."""
    n = len(problem.t)
    R, z, rest = reduced(problem)
    left, s, right = sl.svd(R)
    z = left.T @ z

    def density(q: Any, data: Data, algebra: Algebra) -> Any:
        xp = algebra.xp
        log_alpha, log_beta = q[0], q[1]
        K = 1.0 + data["s2"] * xp.exp(log_beta - log_alpha)
        quadratic = xp.exp(log_beta) * (xp.sum(data["z"] ** 2 / K) + rest)
        return _hyperpriors(log_alpha, log_beta, xp) + 0.5 * n * log_beta - 0.5 * xp.sum(xp.log(K)) - 0.5 * quadratic

    def finish(q: Array, rng: np.random.Generator) -> Draws:
        alpha, beta = np.exp(q[..., :1]), np.exp(q[..., 1:])
        precision = alpha + beta * s**2
        w = (beta * s * z / precision + rng.standard_normal(precision.shape) / np.sqrt(precision)) @ right
        return {"log_alpha": q[..., :1], "log_beta": q[..., 1], "w": w}

    return Target(2, {"z": z, "s2": s**2}, density, finish)


def draw_weights(R: Array, z: Array, log_alpha: Array, log_beta: float, rng: np.random.Generator) -> Array:
    """One w ~ N(βΣRᵀz, Σ), Σ = (βRᵀR + A)⁻¹, through a QR decomposition: nothing is squared.

    The least squares solution x of [√β R A^{-1/2}; I] x = [√β z; 0] + noise has the law of A^{1/2} w.
    """
    k, m = R.shape
    scale, noise = np.exp(-0.5 * log_alpha) * np.ones(m), np.exp(0.5 * log_beta)
    stacked = np.zeros((k + m, m + 1), order="F")
    np.multiply(R, noise * scale, out=stacked[:k, :m])
    stacked[k + np.arange(m), np.arange(m)] = 1.0
    stacked[:k, m] = noise * z
    stacked[:, m] += rng.standard_normal(k + m)
    triangle = lapack.dgeqrf(stacked, overwrite_a=1)[0][: m + 1]
    return np.asarray(scale * sl.solve_triangular(triangle[:m, :m], triangle[:m, m], check_finite=False))


def log_evidence(R: Array, z: Array, rest: float, n: int, log_alpha: Array, log_beta: float) -> float:
    """Log N(t | 0, I/β + ΦA⁻¹Φᵀ) in nats, every constant kept: |R_jj| of the same decomposition, target column last."""
    k, m = R.shape
    noise = np.exp(0.5 * log_beta)
    stacked = np.zeros((k + m, m + 1), order="F")
    np.multiply(R, noise * np.exp(-0.5 * log_alpha), out=stacked[:k, :m])
    stacked[k + np.arange(m), np.arange(m)] = 1.0
    stacked[:k, m] = noise * z
    size = np.abs(np.diag(lapack.dgeqrf(stacked, overwrite_a=1)[0]))
    quadratic = size[m] ** 2 + noise**2 * rest
    return float(-0.5 * (n * (np.log(2.0 * np.pi) - log_beta) + quadratic) - np.log(size[:m]).sum())


def regression_quantities(problem: Regression, draws: Draws) -> Draws:
    """What contestants are compared by: log β, the log evidence of the draw, predictions at new rows."""
    log_alpha, log_beta = draws["log_alpha"], draws["log_beta"]
    if log_alpha.ndim == log_beta.ndim:
        log_alpha = log_alpha[..., None]
    R, z, rest = reduced(problem)
    evidence = np.empty(log_beta.shape)
    for index in np.ndindex(*log_beta.shape):
        evidence[index] = log_evidence(R, z, rest, len(problem.t), log_alpha[index], float(log_beta[index]))
    predictions = draws["w"] @ problem.Phi_new.T
    named = {f"prediction {j}": predictions[..., j] for j in range(predictions.shape[-1])}
    return {"log beta": log_beta, "log evidence": evidence} | named


# --- Gaussians


def gaussian(d: int, rotated: bool) -> Target:
    """Standard deviations 0.01 to 1, evenly spaced on a log scale, along the axes or along random directions."""
    deviations = np.geomspace(0.01, 1.0, d)
    directions = np.eye(d)
    if rotated:
        directions, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))

    def density(q: Any, data: Data, algebra: Algebra) -> Any:
        x = algebra.xp.dot(data["whiten"], q) if rotated else q / data["deviations"]
        return -0.5 * algebra.xp.sum(x**2)

    def finish(q: Array, rng: np.random.Generator) -> Draws:
        return {"x": q @ directions / deviations}

    data = {"whiten": directions.T / deviations[:, None]} if rotated else {"deviations": deviations}
    return Target(d, data, density, finish)


# --- a Gaussian process: a0 + a1 x·x' + v0 exp(−½ Σ w_i (x_i − x'_i)²), noise r²; θ = log(v0, r², w, a0, a1)


def gp(n: int, m: int = GP_INPUTS) -> Target:
    """Friedman's function of the first five of m uniform inputs, noise 1; inputs and targets standardised.

    With fewer than five inputs it is 10 sin(2πx₀), and 20 (x₁ − ½)² more where there is a second.

    Priors: log v0 ~ N(−1, 1); log a0, log a1, log r² ~ N(−3, 3²); 1/w_i ~ Gamma(1/2, 1/(2 m²)), m inputs.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, m))
    if m < 5:
        t = 10 * np.sin(2 * np.pi * X[:, 0]) + 20 * np.sum((X[:, 1:2] - 0.5) ** 2, axis=1)
    else:
        t = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    X, t = (_standard(v) for v in (X, t + rng.standard_normal(n)))
    data = {"X": X, "t": t, "unit": np.eye(n)}
    return Target(m + 4, data, gp_density, lambda q, rng: {"theta": q}, GaussianProcess(X, t))


def _standard(v: Array) -> Array:
    """Median 0, mean absolute deviation 1, by column."""
    v = v - np.median(v, axis=0)
    return np.asarray(v / np.mean(np.abs(v), axis=0))


def _gp_prior(theta: Any, m: int, xp: Any) -> Any:
    log_w = theta[2 : m + 2]
    normal = -0.5 * (theta[0] + 1.0) ** 2 - 0.5 * ((theta[1] + 3.0) / 3.0) ** 2
    normal = normal - 0.5 * xp.sum(((theta[m + 2 :] + 3.0) / 3.0) ** 2)
    return normal - xp.sum(0.5 * log_w + xp.exp(-log_w) / (2.0 * m**2))


def gp_density(theta: Any, data: Data, algebra: Algebra) -> Any:
    """Log p(t | θ) + log p(θ), for automatic differentiation."""
    xp, X, t, m = algebra.xp, data["X"], data["t"], data["X"].shape[1]
    Z = X * xp.exp(0.5 * theta[2 : m + 2])
    s = xp.sum(Z**2, axis=1)
    E = xp.exp(theta[0] + xp.dot(Z, Z.T) - 0.5 * s[:, None] - 0.5 * s[None, :])
    Q = E + xp.exp(theta[m + 2]) + xp.exp(theta[m + 3]) * xp.dot(X, X.T) + xp.exp(theta[1]) * data["unit"]
    factor = xp.linalg.cholesky(Q)
    half = algebra.solve_triangular(factor, t, lower=True)
    return -0.5 * xp.sum(half**2) - xp.sum(xp.log(xp.diag(factor))) + _gp_prior(theta, m, xp)


class GaussianProcess:
    """The same and its gradient by hand, from one Cholesky factor and one inverse, in workspace that is kept.

    With W = Q⁻¹ − Q⁻¹ttᵀQ⁻¹: ∂ log p/∂θ_i = −½ tr(W ∂Q/∂θ_i). E is the v0 exp(…) term alone, and of its derivative
    ∂E/∂log w_i = −½ w_i (x_i − x'_i)² E the square is expanded, so that all inputs together are one product (W∘E) X.
    """

    def __init__(self, X: Array, t: Array) -> None:
        n, m = X.shape
        self.t, self.X1, self.X2 = t, np.asfortranarray(np.column_stack([X, np.ones(n)])), X**2
        self.products = X @ X.T
        self.E, self.Q = np.empty((n, n)), np.empty((n, n))
        self.left, self.right = np.ones((n, m + 2)), np.ones((n, m + 2))

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient at θ; the value is −∞ where Q is not positive definite."""
        t, X1, E, Q, left, right = self.t, self.X1, self.E, self.Q, self.left, self.right
        m = self.X2.shape[1]
        X = X1[:, :m]
        with np.errstate(all="ignore"):
            w = np.exp(theta[2 : m + 2])
            r2, a0, a1 = np.exp(theta[[1, m + 2, m + 3]])
            np.multiply(X, np.sqrt(w), out=left[:, :m])
            s = 0.5 * np.einsum("ij,ij->i", left[:, :m], left[:, :m])
            right[:, :m] = left[:, :m]
            np.subtract(theta[0], s, out=left[:, m])
            np.negative(s, out=right[:, m + 1])
            np.dot(left, right.T, out=E)
            np.exp(E, out=E)
            np.multiply(self.products, a1, out=Q)
            Q += E
            Q += a0
            Q.ravel()[:: len(t) + 1] += r2
            factor, failed = lapack.dpotrf(Q.T, lower=0, overwrite_a=1, clean=0)
        if failed or not np.isfinite(factor[-1, -1]):
            return -np.inf, np.zeros_like(theta)
        half_log_det = np.log(np.diag(factor)).sum()
        a = lapack.dpotrs(factor, t, lower=0)[0]
        W = lapack.dpotri(factor, lower=0, overwrite_c=1)[0]  # one triangle of it, and so below
        W = blas.dsyr(-1.0, a, a=W, lower=0, overwrite_a=1)
        WX = blas.dsymm(1.0, W, X1, lower=0)
        noise = r2 * np.trace(W)
        np.multiply(W.T, E, out=E)
        PX = blas.dsymm(1.0, E.T, X1, lower=0)
        rows = PX[:, m]
        gradient = np.empty_like(theta)
        gradient[0], gradient[1] = -0.5 * rows.sum() - (theta[0] + 1.0), -0.5 * noise
        gradient[2 : m + 2] = 0.5 * w * (rows @ self.X2 - np.einsum("ij,ij->j", X, PX[:, :m]))
        gradient[2 : m + 2] += np.exp(-theta[2 : m + 2]) / (2.0 * m**2) - 0.5
        gradient[m + 2], gradient[m + 3] = -0.5 * a0 * WX[:, m].sum(), -0.5 * a1 * np.einsum("ij,ij->", X, WX[:, :m])
        gradient[[1, m + 2, m + 3]] -= (theta[[1, m + 2, m + 3]] + 3.0) / 9.0
        return float(-0.5 * (t @ a) - half_log_det + _gp_prior(theta, m, np)), gradient


# --- by name

FORMS = {
    "centred": lambda problem: explicit(problem, True),
    "non-centred": lambda problem: explicit(problem, False),
    "collapsed": collapsed,
    "spectral": spectral,
}


def regression(case: str) -> Regression:
    """'rvm 200' or 'linear 1000 100'."""
    kind, *sizes = case.split()
    return {"rvm": rvm, "linear": linear}[kind](*map(int, sizes))


def target(case: str, form: str = "") -> Target:
    """Return the density of a case in one of its FORMS: 'rvm 200', 'linear 90 9', 'gp 100 2', 'mlp friedman 256'."""
    kind, *sizes = case.split()
    if kind == "mlp":
        from benchmarks.network_cases import network

        return network(case, form)
    if kind == "gp":
        return gp(*map(int, sizes))
    if kind in ("gaussian", "rotated"):
        return gaussian(int(sizes[0]), kind == "rotated")
    return FORMS[form](regression(case))


def quantities(case: str, draws: Draws) -> Draws:
    """(chain, draw) arrays by which contestants are compared; not timed."""
    if case.split()[0] in ("rvm", "linear"):
        return regression_quantities(regression(case), draws)
    if case.startswith("mlp"):
        from benchmarks.network_cases import predictions

        return predictions(case, draws)
    return {f"{name} {j}": values[..., j] for name, values in draws.items() for j in range(values.shape[-1])}
