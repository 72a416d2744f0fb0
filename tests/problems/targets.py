"""Target densities with exact draws and known expectations, as plain array functions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

EULER = 0.5772156649015329


@dataclass(frozen=True)
class Target:
    """Log density with gradient, a way to draw from it, and features whose expectations are known.

    `length` is the shortest distance over which the density changes: a leapfrog step must be shorter than twice that.
    """

    name: str
    size: int
    log_density: Callable
    draw: Callable
    features: Callable
    expected: np.ndarray
    length: float


def skewed(size=1):
    """log p = Σ x − eˣ: the logarithm of a standard exponential variable. E x = −0.5772; a sign error shows at once."""

    def log_density(q):
        e = np.exp(q)
        return float((q - e).sum()), 1.0 - e

    def features(q):
        e = np.exp(q)
        return np.concatenate([q, q**2, e, q * e], axis=-1)

    one = [-EULER, EULER**2 + np.pi**2 / 6.0, 1.0, 1.0 - EULER]
    draw = lambda rng: np.log(rng.exponential(size=size))  # noqa: E731
    return Target("skewed", size, log_density, draw, features, np.repeat(one, size), 1.0)


def gaussian(mean, cov, name="gaussian"):
    """N(mean, cov): raw means and variances, and those along the principal axes in units of their spread."""
    mean, cov = np.asarray(mean, dtype=np.float64), np.asarray(cov, dtype=np.float64)
    variances, axes = np.linalg.eigh(cov)
    precision = (axes / variances) @ axes.T
    spread = np.sqrt(variances)

    def log_density(q):
        gradient = precision @ (mean - q)
        return float(0.5 * (q - mean) @ gradient), gradient

    def features(q):
        z = (q - mean) @ axes / spread
        return np.concatenate([q, (q - mean) ** 2, z, z**2], axis=-1)

    n = len(mean)
    expected = np.concatenate([mean, np.diag(cov), np.zeros(n), np.ones(n)])

    def draw(rng):
        return mean + axes @ (spread * rng.standard_normal(n))

    return Target(name, n, log_density, draw, features, expected, spread[0])


def correlated(rho=0.999):
    return gaussian([1.0, -2.0], [[1.0, rho], [rho, 1.0]], "correlated")


def ill_conditioned(size=100, condition=1e4):
    """Variances from condition^(−1/2) to condition^(1/2) along axes turned at random."""
    axes, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))
    variances = np.geomspace(condition**-0.5, condition**0.5, size)
    return gaussian(np.linspace(-1.0, 1.0, size), (axes * variances) @ axes.T, "ill-conditioned")


def funnel(size=4, spread=1.0):
    """Neal's funnel: v ~ N(0, spread²), x_i | v ~ N(0, eᵛ)."""

    def log_density(q):
        v, x = q[0], q[1:]
        scaled = x * np.exp(-v)
        gradient = np.empty(size)
        gradient[0] = -v / spread**2 + 0.5 * (x @ scaled) - 0.5 * (size - 1)
        gradient[1:] = -scaled
        return float(-0.5 * (v / spread) ** 2 - 0.5 * (x @ scaled) - 0.5 * (size - 1) * v), gradient

    def draw(rng):
        v = spread * rng.standard_normal()
        return np.concatenate([[v], np.exp(0.5 * v) * rng.standard_normal(size - 1)])

    def features(q):
        v, x = q[..., :1], q[..., 1:]
        size_of_x = np.log(np.abs(x))
        return np.concatenate([v, v**2, np.tanh(x), size_of_x, size_of_x**2, v * size_of_x], axis=-1)

    # log|z| of a standard normal z: mean −(γ + log 2)/2, variance π²/8
    m = -0.5 * (EULER + np.log(2.0))
    second = m * m + np.pi**2 / 8.0 + spread**2 / 4.0
    per_x = np.repeat([0.0, m, second, 0.5 * spread**2], size - 1)
    return Target("funnel", size, log_density, draw, features, np.concatenate([[0.0, spread**2], per_x]), 0.5)


def half_normal():
    """|z| of a standard normal z: the density ends at a wall, where it fails."""

    def log_density(q):
        if q[0] <= 0.0:
            return -np.inf, np.full(1, np.nan)
        return float(-0.5 * q[0] ** 2), -q

    def features(q):
        return np.concatenate([q, q**2, (q < 0.3).astype(float)], axis=-1)

    expected = np.array([np.sqrt(2.0 / np.pi), 1.0, 0.2358228])
    return Target("half-normal", 1, log_density, lambda rng: np.abs(rng.standard_normal(1)), features, expected, 1.0)


def linear_gaussian(n=30, m=4, alpha=0.7, beta=4.0):
    """Posterior of w for t = Φw + N(0, 1/β), w ~ N(0, 1/α): N(S Φᵀt β, S), S = (αI + βΦᵀΦ)⁻¹.

    The log density is written from the model (residuals and weights), the expectations from the closed form.
    """
    rng = np.random.default_rng(1)
    Phi = rng.standard_normal((n, m)) * np.geomspace(0.3, 3.0, m)
    t = Phi @ rng.standard_normal(m) + beta**-0.5 * rng.standard_normal(n)
    cov = np.linalg.inv(alpha * np.eye(m) + beta * Phi.T @ Phi)
    exact = gaussian(beta * cov @ Phi.T @ t, cov, "linear-Gaussian")

    def log_density(w):
        residual = t - Phi @ w
        value = -0.5 * beta * (residual @ residual) - 0.5 * alpha * (w @ w)
        return float(value), beta * (Phi.T @ residual) - alpha * w

    return Target(exact.name, m, log_density, exact.draw, exact.features, exact.expected, exact.length)
