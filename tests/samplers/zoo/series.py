"""Time series."""

from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy import stats

from tests.samplers.zoo.case import Case, G, H, W, between, gaussian, line, on_grid, positive, stacked

Y = np.array([0.4, 1.1, 0.7, -0.3, 0.2, 0.9, 1.6, 0.8])
norm = stats.norm.logpdf


def autoregression():
    """The past is data: an ordinary regression."""
    with pm.Model() as model:
        rho = pm.Normal("rho", 0.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", rho * Y[:-1], sigma, observed=Y[1:])

    def density(rho, sigma):
        prior = norm(rho) + stats.halfnorm.logpdf(sigma)
        return prior + sum(norm(b, rho * a, sigma) for a, b in pairwise(Y))

    truth = on_grid(density, {"rho": line(-3, 4), "sigma": positive(0.1, 6.0)})
    return Case(model, {"rho": W, "sigma": G}, truth)


def second_order():
    """`pm.AR`, observed, with a constant; its density is a loop over time."""
    with pm.Model() as model:
        rho = pm.Normal("rho", [0.2, 0.3, -0.2], 0.5, shape=3)
        sigma = pm.Exponential("sigma", 1.0)
        pm.AR("y", rho=rho, sigma=sigma, constant=True, init_dist=pm.Normal.dist(0.0, 5.0, shape=2), observed=Y)

    # linear in rho: given sigma, y[2:] is Gaussian
    A = np.column_stack([np.ones(len(Y) - 2), Y[1:-1], Y[:-2]])
    m, V = np.array([0.2, 0.3, -0.2]), 0.25 * np.eye(3)

    def given(sigma):
        return gaussian(A, m, V, Y[2:], stacked(sigma, lambda s: s**2 * np.eye(len(Y) - 2)))

    def further(sigma):
        _, mean, cov = given(sigma)
        return {f"rho[{i}]": (mean[:, i], cov[:, i, i]) for i in range(3)}

    truth = on_grid(lambda s: given(s)[0] - s, {"sigma": positive(0.02, 20.0, 301)}, further)
    return Case(model, {"rho": H, "sigma": H}, truth)


def latent_autoregression():
    """`pm.AR` that is not observed itself, but with noise."""
    y = Y[:4]
    with pm.Model() as model:
        rho = pm.Uniform("rho", -1.0, 1.0)
        x = pm.AR("x", rho=[rho], sigma=0.7, init_dist=pm.Normal.dist(0.0, 1.0), shape=4)
        pm.Normal("y", x, 0.4, observed=y)

    def prior(r):
        L = np.array([[r ** (i - j) if j <= i else 0.0 for j in range(4)] for i in range(4)])
        return L @ np.diag([1.0, 0.49, 0.49, 0.49]) @ L.T

    def given(rho):
        return gaussian(np.eye(4), np.zeros(4), stacked(rho, prior), y, 0.16 * np.eye(4))

    def further(rho):
        _, mean, cov = given(rho)
        return {f"x[{i}]": (mean[:, i], cov[:, i, i]) for i in (0, 3)}

    truth = on_grid(lambda rho: given(rho)[0], {"rho": between(-1.0, 1.0, 301)}, further)
    return Case(model, {"rho": H, "x": H}, truth)


def walk(prior, axis, **more):
    """`pm.GaussianRandomWalk` with noise, and a prior of its scale: a function of a name, and its log density."""
    y = Y[:5]
    make, log_prior = prior
    with pm.Model() as model:
        sigma = make("sigma")
        x = pm.GaussianRandomWalk("x", sigma=sigma, init_dist=pm.Normal.dist(0.0, 2.0), steps=4)
        pm.Normal("y", x, 0.3, observed=y)

    L = np.tril(np.ones((5, 5)))

    def given(sigma):
        V = stacked(sigma, lambda s: L @ np.diag([4.0, *[s**2] * 4]) @ L.T)
        return gaussian(np.eye(5), np.zeros(5), V, y, 0.09 * np.eye(5))

    def further(sigma):
        _, mean, cov = given(sigma)
        return {f"x[{i}]": (mean[:, i], cov[:, i, i]) for i in (0, 2, 4)}

    truth = on_grid(lambda s: given(s)[0] + log_prior(s), {"sigma": axis}, further)
    return Case(model, {"sigma": H, "x": H}, truth, **more)


def random_walk():
    """The prior of the scale keeps it away from zero."""
    prior = (lambda name: pm.InverseGamma(name, 3.0, 1.0), stats.invgamma(3.0).logpdf)
    return walk(prior, positive(0.02, 20.0, 301))


def narrowing_walk():
    """The prior of the scale reaches to zero, where the walk has no room: a funnel."""
    prior = (lambda name: pm.HalfNormal(name, 0.8), stats.halfnorm(scale=0.8).logpdf)
    return walk(prior, positive(1e-6, 8.0, 401), draws=10_000, narrow=True)


def local_level():
    """A level that is the running sum of Normal steps, and a precision of each kind."""
    y = Y[:5]
    with pm.Model() as model:
        first = pm.Normal("first", 0.0, 2.0)
        tau = pm.Gamma("tau", 3.0, 1.0)
        moves = pm.Normal("moves", 0.0, tau=tau, shape=4)
        noise = pm.InverseGamma("noise", 3.0, 0.5)
        level = pm.Deterministic("level", first + pt.concatenate([pt.zeros(1), pt.cumsum(moves)]))
        pm.Normal("y", level, pt.sqrt(noise), observed=y)

    L = np.tril(np.ones((5, 5)))

    def given(tau, noise):
        V = np.zeros((len(tau), 5, 5))
        V[:, 0, 0] = 4.0
        V[:, range(1, 5), range(1, 5)] = 1.0 / tau[:, None]
        return gaussian(L, np.zeros(5), V, y, noise[:, None, None] * np.eye(5))

    def density(tau, noise):
        prior = stats.gamma(3.0).logpdf(tau) + stats.invgamma(3.0, scale=0.5).logpdf(noise)
        return prior + given(tau, noise)[0]

    def further(tau, noise):
        _, mean, cov = given(tau, noise)
        return {
            "first": (mean[:, 0], cov[:, 0, 0]),
            "level[4]": (mean.sum(axis=1), cov.sum(axis=(1, 2))),
        }

    truth = on_grid(density, {"tau": positive(0.02, 40.0, 71), "noise": positive(0.01, 20.0, 71)}, further)
    return Case(model, {"first": W, "moves": W, "tau": G, "noise": G}, truth, draws=2000)


def chain_of_scalars():
    """Each state is a variable of its own, written in a loop; the coefficient is random too."""
    y = Y[:4]
    with pm.Model() as model:
        phi = pm.Normal("phi", 0.5, 0.5)
        x = [pm.Normal("x_0", 0.0, 1.0)]
        for t in range(1, 4):
            x.append(pm.Normal(f"x_{t}", phi * x[-1], 0.6))
        pm.Normal("y", pt.stack(x), 0.5, observed=y)

    def prior(phi):
        L = np.array([[phi ** (i - j) if j <= i else 0.0 for j in range(4)] for i in range(4)])
        return L @ np.diag([1.0, 0.36, 0.36, 0.36]) @ L.T

    def given(phi):
        return gaussian(np.eye(4), np.zeros(4), stacked(phi, prior), y, 0.25 * np.eye(4))

    def further(phi):
        _, mean, cov = given(phi)
        return {f"x_{i}": (mean[:, i], cov[:, i, i]) for i in (0, 3)}

    truth = on_grid(lambda phi: given(phi)[0] + norm(phi, 0.5, 0.5), {"phi": line(-2.5, 3.5, 301)}, further)
    return Case(model, dict.fromkeys(("phi", "x_0", "x_1", "x_2", "x_3"), W), truth, draws=2000)


def moving_average():
    """MA(1) by a Python loop over the errors."""
    with pm.Model() as model:
        theta = pm.Uniform("theta", -1.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        errors = [pt.as_tensor(Y[0])]
        for value in Y[1:]:
            errors.append(value - theta * errors[-1])
        pm.Potential("likelihood", pm.logp(pm.Normal.dist(0.0, sigma), pt.stack(errors)).sum())

    def density(theta, sigma):
        log_p, error = stats.halfnorm.logpdf(sigma), 0.0
        for value in Y:
            error = value - theta * error
            log_p = log_p + norm(error, 0.0, sigma)
        return log_p

    truth = on_grid(density, {"theta": between(-1.0, 1.0, 121), "sigma": positive(0.1, 6.0)})
    return Case(model, {"theta": H, "sigma": H}, truth)


def stochastic_volatility():
    """Three returns, each with a log variance of its own."""
    y = np.array([0.3, -1.4, 0.8])
    with pm.Model() as model:
        h = [pm.Normal("h_0", 0.0, 1.0)]
        for t in (1, 2):
            h.append(pm.Normal(f"h_{t}", 0.9 * h[-1], 0.5))
        pm.Normal("y", 0.0, pt.exp(0.5 * pt.stack(h)), observed=y)

    def density(*h):
        prior = norm(h[0]) + norm(h[1], 0.9 * h[0], 0.5) + norm(h[2], 0.9 * h[1], 0.5)
        return prior + sum(norm(v, 0.0, np.exp(0.5 * x)) for v, x in zip(y, h, strict=True))

    truth = on_grid(density, {f"h_{i}": line(-5.0, 6.0, 71) for i in range(3)})
    return Case(model, dict.fromkeys(("h_0", "h_1", "h_2"), H), truth)


def garch():
    """GARCH(1, 1) by a scan."""
    y = 1.5 * Y
    with pm.Model() as model:
        omega = pm.Exponential("omega", 1.0)
        alpha = pm.Beta("alpha", 2.0, 4.0)
        beta = pm.Beta("beta", 3.0, 2.0)
        variances = pytensor.scan(
            lambda v, s2, omega, alpha, beta: omega + alpha * v**2 + beta * s2,
            sequences=[pt.as_tensor(y[:-1])],
            outputs_info=[pt.as_tensor(np.float64(1.0))],
            non_sequences=[omega, alpha, beta],
            return_updates=False,
        )
        pm.Normal("y", 0.0, pt.sqrt(variances), observed=y[1:])

    def density(omega, alpha, beta):
        log_p = -omega + stats.beta.logpdf(alpha, 2.0, 4.0) + stats.beta.logpdf(beta, 3.0, 2.0)
        s2 = 1.0
        for past, value in pairwise(y):
            s2 = omega + alpha * past**2 + beta * s2
            log_p = log_p + norm(value, 0.0, np.sqrt(s2))
        return log_p

    axes = {"omega": positive(1e-6, 15.0, 81), "alpha": between(n=61), "beta": between(n=61)}
    return Case(model, {"omega": H, "alpha": H, "beta": H}, on_grid(density, axes))


CASES = [
    autoregression,
    second_order,
    latent_autoregression,
    random_walk,
    narrowing_walk,
    local_level,
    chain_of_scalars,
    moving_average,
    stochastic_volatility,
    garch,
]
