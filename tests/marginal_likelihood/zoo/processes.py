"""Gaussian processes, random walks and series: Normal given a few parameters, which a grid integrates over."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import gammaln, logsumexp

import bayessel as bs
from bayessel.covariance import Prior, SquaredExponential
from tests.marginal_likelihood.zoo.case import (
    Case,
    between,
    in_parts,
    line,
    log_integral,
    log_joint_normal,
    log_normal,
    positive,
)
from tests.marginal_likelihood.zoo.hierarchies import log_half_normal

X = np.sort(np.random.default_rng(10).uniform(-2.0, 2.0, 14))
SQUARES = (X[:, None] - X) ** 2
Y = np.sin(2.0 * X) + 0.2 * np.random.default_rng(11).normal(size=14)


def log_gaussian_process(height, length, noise):
    """Log density of Y for vectors of parameters."""

    def part(h, ell, s):
        K = h[:, None, None] ** 2 * np.exp(-0.5 * SQUARES / ell[:, None, None] ** 2)
        return log_joint_normal(Y, np.zeros(14), K + s[:, None, None] ** 2 * np.eye(14))

    return in_parts(part, *np.broadcast_arrays(height, length, noise))


def log_log_normal(x, mean, sd):
    """Log density of exp of a Normal."""
    return log_normal(np.log(x), mean, sd) - np.log(x)


def process(height, length, noise):
    """Declare the data of the context's model."""
    K = height**2 * pt.exp(-0.5 * SQUARES / length**2) + noise**2 * pt.eye(14)
    pm.MvNormal("y", np.zeros(14), cov=K, observed=Y)


def process_1():
    """The noise is unknown."""
    with pm.Model() as model:
        process(1.0, 0.8, pm.HalfNormal("noise", 0.5))

    def density(s):
        return log_gaussian_process(1.0, 0.8, s) + log_half_normal(s, 0.5)

    return Case(model, log_integral(density, positive(0.02, 4.0)), "nothing")


def process_2():
    """Length and noise are unknown."""
    with pm.Model() as model:
        process(1.0, pm.LogNormal("length", 0.0, 1.0), pm.HalfNormal("noise", 0.5))

    def density(ell, s):
        return log_gaussian_process(1.0, ell, s) + log_log_normal(ell, 0.0, 1.0) + log_half_normal(s, 0.5)

    truth = log_integral(density, positive(0.005, 60.0, 161), positive(1e-3, 4.0, 81))
    return Case(model, truth, "two explanations: a function, or noise")


def process_3():
    """Height, length and noise are unknown."""
    with pm.Model() as model:
        height, length = pm.HalfNormal("height", 2.0), pm.LogNormal("length", 0.0, 1.0)
        process(height, length, pm.HalfNormal("noise", 0.5))

    def density(h, ell, s):
        prior = log_half_normal(h, 2.0) + log_log_normal(ell, 0.0, 1.0) + log_half_normal(s, 0.5)
        return log_gaussian_process(h, ell, s) + prior

    truth = log_integral(
        density, positive(0.003, 12.0, 41), positive(0.02, 40.0, 61), positive(0.02, 3.0, 41), within=2e-3
    )
    return Case(model, truth, "parameters that trade")


def process_of_the_package():
    """`bs.models.gp` with Normal priors on three logarithms: amplitude, weight (of squares), noise variance."""
    prior = Prior.join(Prior.normal(0.0, 1.0), Prior.normal(0.5, 1.0), Prior.normal(-3.0, 1.0))
    model = bs.models.gp(X[:, None], Y, SquaredExponential(), prior=prior)
    assert list(model.coords["parameter"]) == ["log v0", "log w[0]", "log r2"]

    def density(a, b, c):
        prior = log_normal(a, 0.0, 1.0) + log_normal(b, 0.5, 1.0) + log_normal(c, -3.0, 1.0)
        return log_gaussian_process(np.exp(0.5 * a), np.exp(-0.5 * b), np.exp(0.5 * c)) + prior

    truth = log_integral(density, line(-4.5, 5.5, 33), line(-4.5, 5.5, 41), line(-7.5, 1.5, 41), within=2e-3)
    return Case(model, truth, "a density without parts")


# --- series -------------------------------------------------------------------------------------------------------


def seen_walk():
    """Brownian motion at forty times: steps and errors of measurement have unknown scales."""
    n = 40
    rng = np.random.default_rng(12)
    y = np.cumsum(0.3 * rng.normal(size=n)) + 0.5 * rng.normal(size=n)
    times = np.minimum.outer(np.arange(1, n + 1), np.arange(1, n + 1)).astype(float)

    def density(step, error):
        V = step[:, None, None] ** 2 * times + error[:, None, None] ** 2 * np.eye(n)
        prior = log_log_normal(step, -1.0, 1.0) + log_log_normal(error, -1.0, 1.0)
        return log_joint_normal(y, np.zeros(n), V) + prior

    truth = log_integral(lambda a, b: in_parts(density, a, b), positive(0.01, 3.0, 81), positive(0.01, 3.0, 81))
    return y, truth


def brownian_motion():
    """The walk is among the unknowns: forty-two dimensions."""
    y, truth = seen_walk()
    with pm.Model() as model:
        step, error = pm.LogNormal("step", -1.0, 1.0), pm.LogNormal("error", -1.0, 1.0)
        walk = pm.GaussianRandomWalk("walk", sigma=step, init_dist=pm.Normal.dist(0.0, step), steps=len(y) - 1)
        pm.Normal("y", walk, error, observed=y)
    return Case(model, truth, "forty-two dimensions, in which annealing ends some tenths low", may_flag=True)


def brownian_motion_non_centred():
    """The same number from the steps of the walk in units of their scale."""
    y, truth = seen_walk()
    with pm.Model() as model:
        step, error = pm.LogNormal("step", -1.0, 1.0), pm.LogNormal("error", -1.0, 1.0)
        z = pm.Normal("z", 0.0, 1.0, shape=len(y))
        pm.Normal("y", step * pt.cumsum(z), error, observed=y)
    return Case(model, truth, "forty-two dimensions, in which annealing ends some tenths low", may_flag=True)


def autoregression():
    """A stationary series of first order with unknown persistence and scale."""
    rng = np.random.default_rng(13)
    y = [0.4]
    for _ in range(29):
        y.append(0.85 * y[-1] + 0.5 * rng.normal())
    y = np.array(y)
    with pm.Model() as model:
        rho = pm.Uniform("rho", -1.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("first", 0.0, sigma / pt.sqrt(1.0 - rho**2), observed=y[0])
        pm.Normal("y", rho * y[:-1], sigma, observed=y[1:])

    def density(rho, sigma):
        found = log_normal(y[0], 0.0, sigma / np.sqrt(1.0 - rho**2)) + log_half_normal(sigma, 1.0) - np.log(2.0)
        return found + log_normal(y[1:], rho[:, None] * y[:-1], sigma[:, None]).sum(axis=1)

    truth = log_integral(density, between(-1.0, 1.0, 401), positive(0.2, 2.0, 81))
    return Case(model, truth, "mass near a wall")


def log_gaussian_cox():
    """Counts in four cells; the logarithm of their rates is a Gaussian process with an unknown mean and height."""
    y, place = np.array([2, 7, 11, 1]), np.arange(4.0)
    K = np.exp(-np.abs(place[:, None] - place) / 1.5)
    L = np.linalg.cholesky(K)
    with pm.Model() as model:
        height = pm.Gamma("height", 4.0, 4.0)
        z = pm.Normal("z", 0.0, 1.0, shape=4)
        pm.Poisson("y", pm.math.exp(1.0 + height * (L @ z)), observed=y)

    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    z = np.stack([v.ravel() for v in np.meshgrid(*[nodes] * 4, indexing="ij")])
    log_w = np.log(weights / np.sqrt(2.0 * np.pi))
    log_w = sum(v.ravel() for v in np.meshgrid(*[log_w] * 4, indexing="ij"))
    f = L @ z

    def density(height):
        found = []
        for h in height:
            theta = 1.0 + h * f
            found.append(logsumexp((y[:, None] * theta - np.exp(theta)).sum(axis=0) + log_w))
        prior = 4.0 * np.log(4.0) - gammaln(4.0) + 3.0 * np.log(height) - 4.0 * height
        return np.array(found) - gammaln(y + 1.0).sum() + prior

    return Case(model, log_integral(density, positive(0.02, 6.0, 25), within=5e-3), "skewed in five directions")


CASES = [
    process_1,
    process_2,
    process_3,
    process_of_the_package,
    brownian_motion,
    brownian_motion_non_centred,
    autoregression,
    log_gaussian_cox,
]
