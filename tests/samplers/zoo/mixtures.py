"""Mixtures, and what is censored, cut off or missing."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.exceptions import ImputationWarning
from scipy import stats
from scipy.special import logsumexp

from tests.samplers.zoo.case import Case, G, H, W, between, line, on_grid, positive

Y = np.array([-1.3, -0.9, -1.6, 0.8, 1.4, 1.0, 0.4])
norm = stats.norm.logpdf


def mixture_of_normals():
    """`pm.NormalMixture` with means in order, by the transform."""
    with pm.Model() as model:
        w = pm.Beta("w", 2.0, 2.0)
        mu = pm.Normal("mu", [-1.0, 1.0], 1.0, transform=pm.distributions.transforms.ordered, shape=2)
        pm.NormalMixture("y", w=pt.stack([w, 1.0 - w]), mu=mu, sigma=0.7, observed=Y)

    # the second mean by its distance from the first
    def density(w, a, gap):
        b = a + gap
        log_p = stats.beta.logpdf(w, 2.0, 2.0) + norm(a, -1.0) + norm(b, 1.0)
        return log_p + sum(np.logaddexp(np.log(w) + norm(v, a, 0.7), np.log1p(-w) + norm(v, b, 0.7)) for v in Y)

    axes = {"w": between(n=51, reach=12.0), "mu[0]": line(-4.0, 4.0), "_gap": positive(1e-5, 8.0)}
    return Case(model, {"w": H, "mu": H}, on_grid(density, axes, lambda w, a, gap: {"mu[1]": (a + gap, 0.0)}))


def mixture_of_coins():
    """Two kinds of coins with ten tosses each; the kind is summed out by `pm.Mixture`."""
    heads = np.array([1, 2, 8, 7, 9, 2])
    with pm.Model() as model:
        w = pm.Beta("w", 3.0, 3.0)
        p = pm.Beta("p", [2.0, 6.0], [6.0, 2.0], shape=2)
        kinds = [pm.Binomial.dist(10, p[0]), pm.Binomial.dist(10, p[1])]
        pm.Mixture("heads", w=pt.stack([w, 1.0 - w]), comp_dists=kinds, observed=heads)

    def density(w, a, b):
        log_p = stats.beta.logpdf(w, 3.0, 3.0) + stats.beta.logpdf(a, 2.0, 6.0) + stats.beta.logpdf(b, 6.0, 2.0)
        for k in heads:
            one, other = (stats.binom.logpmf(k, 10, q) for q in (a, b))
            log_p = log_p + np.logaddexp(np.log(w) + one, np.log1p(-w) + other)
        return log_p

    axes = {"w": between(n=61), "p[0]": between(n=61), "p[1]": between(n=61)}
    return Case(model, {"w": H, "p": H}, on_grid(density, axes))


def zero_inflated():
    counts = np.array([0, 0, 3, 1, 0, 5, 2, 0])
    with pm.Model() as model:
        psi = pm.Beta("psi", 2.0, 2.0)
        mu = pm.Gamma("mu", 2.0, 1.0)
        pm.ZeroInflatedPoisson("y", psi, mu, observed=counts)

    def density(psi, mu):
        log_p = stats.beta.logpdf(psi, 2.0, 2.0) + stats.gamma.logpdf(mu, 2.0)
        for k in counts:
            some = np.log(psi) + stats.poisson.logpmf(k, mu)
            log_p = log_p + (np.logaddexp(np.log1p(-psi), some) if k == 0 else some)
        return log_p

    return Case(model, {"psi": H, "mu": H}, on_grid(density, {"psi": between(), "mu": positive(0.05, 20.0)}))


def censored():
    """`pm.Censored` from both sides: a Normal inside, which is not the Normal of the finder."""
    y = np.clip(Y, -1.0, 1.0)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        sigma = pm.HalfNormal("sigma", 2.0)
        pm.Censored("y", pm.Normal.dist(mu, sigma), lower=-1.0, upper=1.0, observed=y)

    def density(mu, sigma):
        log_p = norm(mu, 0.0, 2.0) + stats.halfnorm(scale=2.0).logpdf(sigma)
        low, high = stats.norm.logcdf(-1.0, mu, sigma), stats.norm.logsf(1.0, mu, sigma)
        return log_p + sum(low if v <= -1.0 else high if v >= 1.0 else norm(v, mu, sigma) for v in y)

    axes = {"mu": line(-8.0, 8.0, 161), "sigma": positive(0.2, 20.0, 121)}
    return Case(model, {"mu": H, "sigma": H}, on_grid(density, axes))


def intervals():
    """Each number is known up to an interval: a difference of distribution functions in a potential."""
    low, high = np.array([0.0, 1.0, -1.0, 0.5]), np.array([1.0, 2.0, 0.5, 3.0])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        sigma = pm.InverseGamma("sigma", 3.0, 2.0)
        inside = pm.Normal.dist(mu, sigma)
        upper, lower = pm.logcdf(inside, high), pm.logcdf(inside, low)
        pm.Potential("interval", pm.math.logdiffexp(upper, lower).sum())

    def density(mu, sigma):
        log_p = norm(mu, 0.0, 2.0) + stats.invgamma(3.0, scale=2.0).logpdf(sigma)
        for a, b in zip(low, high, strict=True):
            log_p = log_p + np.log(stats.norm.cdf(b, mu, sigma) - stats.norm.cdf(a, mu, sigma))
        return log_p

    axes = {"mu": line(-5.0, 7.0, 161), "sigma": positive(0.1, 40.0, 121)}
    return Case(model, {"mu": H, "sigma": H}, on_grid(density, axes))


def truncated():
    """Cut off at zero by `pm.Truncated`, whose normaliser depends on the mean."""
    y = np.array([0.2, 0.9, 1.7, 0.4, 0.6])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Truncated("y", pm.Normal.dist(mu, sigma), lower=0.0, observed=y)

    def density(mu, sigma):
        log_p = norm(mu) + stats.halfnorm.logpdf(sigma)
        return log_p + sum(norm(v, mu, sigma) - stats.norm.logsf(0.0, mu, sigma) for v in y)

    axes = {"mu": line(-6.0, 5.0, 161), "sigma": positive(0.1, 8.0, 121)}
    return Case(model, {"mu": H, "sigma": H}, on_grid(density, axes))


def survival():
    """Weibull lifetimes, those that outlived the study censored by `pm.Censored`."""
    y = np.array([0.5, 1.2, 2.0, 0.9, 2.0, 1.6])
    with pm.Model() as model:
        shape = pm.Gamma("shape", 3.0, 2.0)
        scale = pm.HalfNormal("scale", 3.0)
        pm.Censored("y", pm.Weibull.dist(shape, scale), lower=None, upper=2.0, observed=y)

    def density(shape, scale):
        log_p = stats.gamma.logpdf(shape, 3.0, scale=0.5) + stats.halfnorm(scale=3.0).logpdf(scale)
        hazard = stats.weibull_min(shape, scale=scale)
        return log_p + sum(hazard.logsf(2.0) if v >= 2.0 else hazard.logpdf(v) for v in y)

    return Case(
        model, {"shape": H, "scale": H}, on_grid(density, {"shape": positive(0.1, 12.0), "scale": positive(0.2, 25.0)})
    )


def missing_outcomes():
    """Two outcomes are missing: variables of the model, Normal ones."""
    y = np.ma.masked_invalid([0.3, np.nan, 1.2, 0.8, np.nan])
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", ImputationWarning)
        mu = pm.Normal("mu", 0.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu, sigma, observed=y)

    def density(mu, sigma):
        return norm(mu) + stats.halfnorm.logpdf(sigma) + sum(norm(v, mu, sigma) for v in y.compressed())

    truth = on_grid(
        density,
        {"mu": line(-4.0, 5.0), "sigma": positive(0.05, 7.0)},
        lambda mu, sigma: {"y_unobserved[0]": (mu, sigma**2), "y[4]": (mu, sigma**2)},
    )
    return Case(model, {"mu": W, "sigma": G, "y_unobserved": W}, truth)


def missing_inputs():
    """A missing input of a regression: the slope and the input are multiplied, and observed inputs stand beside it."""
    x = np.ma.masked_invalid([0.5, np.nan, -1.0, 1.5])
    y = np.array([0.4, 1.5, -1.2, 1.1])
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", ImputationWarning)
        slope = pm.Normal("slope", 0.0, 1.0)
        inputs = pm.Normal("x", 0.3, 1.0, observed=x)
        pm.Normal("y", slope * inputs, 0.5, observed=y)

    def density(slope, x_1):
        log_p = norm(slope) + norm(x_1, 0.3) + norm(y[1], slope * x_1, 0.5)
        return log_p + sum(norm(y[i], slope * x[i], 0.5) for i in (0, 2, 3))

    truth = on_grid(density, {"slope": line(-3.0, 4.0, 141), "x_unobserved[0]": line(-5.0, 6.0, 141)})
    return Case(model, {"slope": H, "x_unobserved": H}, truth)


def dirichlet_process():
    """Sticks of a truncated Dirichlet process with known places."""
    places = np.array([-1.2, 0.2, 1.2])
    with pm.Model() as model:
        alpha = pm.LogNormal("alpha", 0.5, 0.4)
        v = pm.Beta("v", 1.0, alpha, shape=2)
        left = pt.concatenate([pt.ones(1), pt.cumprod(1.0 - v)])
        w = pm.Deterministic("w", pt.concatenate([v, pt.ones(1)]) * left)
        pm.NormalMixture("y", w=w, mu=places, sigma=0.6, observed=Y)

    def density(alpha, a, b):
        log_p = norm(np.log(alpha), 0.5, 0.4) - np.log(alpha) + sum(stats.beta.logpdf(s, 1.0, alpha) for s in (a, b))
        w = [a, (1.0 - a) * b, (1.0 - a) * (1.0 - b)]
        for value in Y:
            log_p = log_p + logsumexp([np.log(k) + norm(value, m, 0.6) for k, m in zip(w, places, strict=True)], axis=0)
        return log_p

    def further(alpha, a, b):
        return {"w[2]": ((1.0 - a) * (1.0 - b), 0.0)}

    axes = {"alpha": positive(0.2, 15.0, 51), "v[0]": between(n=61, reach=20.0), "v[1]": between(n=81, reach=30.0)}
    return Case(model, {"alpha": H, "v": H}, on_grid(density, axes, further))


CASES = [
    mixture_of_normals,
    mixture_of_coins,
    zero_inflated,
    censored,
    intervals,
    truncated,
    survival,
    missing_outcomes,
    missing_inputs,
    dirichlet_process,
]
