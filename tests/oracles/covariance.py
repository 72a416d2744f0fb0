"""Covariance functions written out pair by pair, from the papers, for real or complex parameters.

With complex parameters a derivative is exact to rounding: ∂f/∂θ = Im f(θ + ih)/h with h so small that h² is nothing
(Squire and Trapp 1998). Nothing is subtracted, so no digit is lost.
"""

from collections.abc import Callable

import numpy as np

from bayessel import covariance as cov

STEP = 1e-30


def squares(X, Z, w):
    """Σ w_i (x_i − z_i)², differences first."""
    return np.tensordot((X[:, None] - Z[None]) ** 2, w, axes=1)


def stationary(profile: Callable):
    """A twin of θ = (log v0, log w...)."""

    def kernel(theta, X, Z):
        return np.exp(theta[0]) * profile(squares(X, Z, np.exp(theta[1 : 1 + X.shape[1]])))

    return kernel


def rational_quadratic(theta, X, Z):
    alpha = np.exp(theta[-1])
    return np.exp(theta[0]) * (1 + squares(X, Z, np.exp(theta[1:-1])) / (2 * alpha)) ** -alpha


def periodic(theta, X, Z):
    m = X.shape[1]
    w, p = np.exp(theta[1 : 1 + m]), np.exp(theta[1 + m :])
    return np.exp(theta[0]) * np.exp(-2 * (np.sin(np.pi * (X[:, None] - Z[None]) / p) ** 2) @ w)


def arcsin(theta, X, Z):
    sigma = np.exp(theta[1:])
    X1, Z1 = np.c_[np.ones(len(X)), X], np.c_[np.ones(len(Z)), Z]
    own, others = 1 + 2 * (X1 * X1) @ sigma, 1 + 2 * (Z1 * Z1) @ sigma
    return np.exp(theta[0]) * 2 / np.pi * np.arcsin(2 * (X1 * sigma) @ Z1.T / np.sqrt(np.outer(own, others)))


def linear(theta, X, Z):
    return np.exp(theta[0]) * X @ Z.T


def linear_in_one(theta, X, Z):
    return np.exp(theta[0]) * np.outer(X[:, 2], Z[:, 2])


def bias(theta, X, Z):
    return np.exp(theta[0]) * np.ones((len(X), len(Z)))


def root(s):
    """√s, differentiable at nil, where all that is made of it is flat in the parameters."""
    return np.where(s == 0, 0, np.sqrt(np.where(s == 0, 1, s)))


def matern12(s):
    return np.exp(-root(s))


def matern32(s):
    return (1 + root(3 * s)) * np.exp(-root(3 * s))


def matern52(s):
    r = root(5 * s)
    return (1 + r + r * r / 3) * np.exp(-r)


exponential = stationary(lambda s: np.exp(-s / 2))


def standard(theta, X, Z):
    return exponential(np.r_[theta[0], theta[2:-2]], X, Z) + bias(theta[-2:-1], X, Z) + linear(theta[-1:], X, Z)


def additive(theta, X, Z):
    """Of inputs 0 and 2, of 1, and a plane."""
    a = exponential(theta[:3], X[:, [0, 2]], Z[:, [0, 2]])
    return a + stationary(matern32)(theta[3:5], X[:, [1]], Z[:, [1]]) + linear(theta[5:], X, Z)


def isotropic(theta, X, Z):
    return exponential(np.r_[theta[0], np.repeat(theta[1], X.shape[1])], X, Z)


def product(theta, X, Z):
    """(SE + bias) · periodic of input 1 without amplitude · plane."""
    smooth = exponential(theta[:4], X, Z) + bias(theta[4:5], X, Z)
    wave = periodic(np.r_[0.0, theta[5:7]], X[:, [1]], Z[:, [1]])
    return smooth * wave * linear(theta[7:], X, Z)


def mixed(theta, X, Z):
    return arcsin(theta[:4], X[:, [2, 0]], Z[:, [2, 0]]) + product(theta[4:], X, Z)


_PRODUCT = (cov.SquaredExponential() + cov.Bias()) * cov.Periodic(amplitude=False).on([1]) * cov.Linear()
#: name -> (covariance without noise, twin), for three inputs
TWINS: dict[str, tuple[cov.Covariance, Callable]] = {
    "squared exponential": (cov.SquaredExponential(), exponential),
    "isotropic": (cov.SquaredExponential(ard=False), isotropic),
    "matern 1/2": (cov.Matern12(), stationary(matern12)),
    "matern 3/2": (cov.Matern32(), stationary(matern32)),
    "matern 5/2": (cov.Matern52(), stationary(matern52)),
    "rational quadratic": (cov.RationalQuadratic(), rational_quadratic),
    "periodic": (cov.Periodic(), periodic),
    "arcsin": (cov.Arcsin(), arcsin),
    "linear": (cov.Linear(), linear),
    "linear in one": (cov.Linear(columns=(2,)), linear_in_one),
    "bias": (cov.Bias(), bias),
    "additive": (cov.SquaredExponential().on([0, 2]) + cov.Matern32().on([1]) + cov.Linear(), additive),
    "product": (_PRODUCT, product),
    "mixed": (cov.Arcsin().on([2, 0]) + _PRODUCT, mixed),
}


def log_marginal(Q, t):
    """log N(t | 0, Q) of a real or complex symmetric matrix, by elimination."""
    A, total = np.array(Q), 0.0
    for k in range(len(A)):
        total = total + np.log(A[k, k])
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :]) / A[k, k]
    return -0.5 * (total + t @ np.linalg.solve(Q, t) + len(t) * np.log(2 * np.pi))


def derivatives(f: Callable, theta) -> np.ndarray:
    """∂f/∂θ by complex steps: (k, ...)."""
    return np.array([np.imag(f(theta + 1j * STEP * e)) / STEP for e in np.eye(len(theta))])


def gradient(twin: Callable, theta, X, t) -> tuple[float, np.ndarray]:
    """Value and gradient of log N(t | 0, K + r²I), θ = (twin's, log r²)."""

    def f(theta):
        return log_marginal(twin(theta[:-1], X, X) + np.exp(theta[-1]) * np.eye(len(X)), t)

    return float(np.real(f(theta))), derivatives(f, theta)
