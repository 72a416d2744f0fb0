"""Conjugate families: everything is known in closed form."""

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import betaln, gammaln

from tests.marginal_likelihood.zoo.case import Case, log_joint_normal


def beta_binomial():
    """Successes in trials."""
    n, y = np.array([12, 9, 15, 4]), np.array([5, 2, 9, 1])
    with pm.Model() as model:
        p = pm.Beta("p", 2.0, 3.0)
        pm.Binomial("y", n, p, observed=y)
    ways = (gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)).sum()
    return Case(model, ways + betaln(2 + y.sum(), 3 + (n - y).sum()) - betaln(2, 3), "nothing")


def a_million_trials():
    """The posterior is a ten-thousandth of the prior's width."""
    n, y = 1_000_000, 990_017
    with pm.Model() as model:
        p = pm.Beta("p", 1.0, 1.0)
        pm.Binomial("y", n, p, observed=y)
    # a uniform prior makes every number of successes as likely
    return Case(model, -np.log(n + 1.0), "a posterior much narrower than the prior")


def log_counts(y, shape, rate, exposure):
    """Counts of one rate with a Gamma prior."""
    total, time = y.sum(), exposure.sum()
    own = (y * np.log(exposure) - gammaln(y + 1)).sum()
    prior, posterior = shape * np.log(rate) - gammaln(shape), (shape + total) * np.log(rate + time)
    return own + prior + gammaln(shape + total) - posterior


def gamma_poisson():
    """Counts of one rate."""
    y, exposure = np.array([3, 0, 5, 2, 2, 1]), np.array([1.0, 0.4, 2.2, 1.3, 0.8, 1.0])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 0.5)
        pm.Poisson("y", rate * exposure, observed=y)
    return Case(model, log_counts(y, 2.0, 0.5, exposure), "nothing")


def ten_rates():
    """A rate for each of ten counts, some of them nought."""
    y = np.array([0, 1, 14, 3, 0, 122, 7, 2, 5, 1])
    exposure = np.array([1.0, 2.0, 1.5, 1.0, 4.0, 10.0, 1.0, 0.3, 0.7, 1.0])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 1.5, 0.3, shape=10)
        pm.Poisson("y", rate * exposure, observed=y)
    truth = sum(log_counts(y[[i]], 1.5, 0.3, exposure[[i]]) for i in range(10))
    return Case(model, truth, "skewed in ten directions")


def five_classes():
    """Shares of five classes, one of them never seen."""
    y, alpha = np.array([11, 0, 3, 25, 1]), np.array([0.5, 0.5, 1.0, 2.0, 1.0])
    with pm.Model() as model:
        p = pm.Dirichlet("p", alpha)
        pm.Multinomial("y", y.sum(), p, observed=y)
    ways = gammaln(y.sum() + 1) - gammaln(y + 1).sum()
    before = gammaln(alpha.sum()) - gammaln(alpha).sum()
    after = gammaln(alpha + y).sum() - gammaln(alpha.sum() + y.sum())
    return Case(model, ways + before + after, "a simplex with mass in a corner")


def gamma_exponential():
    """Waiting times."""
    y = np.array([0.2, 1.7, 0.9, 3.1, 0.05, 0.6, 2.2])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 3.0, 2.0)
        pm.Exponential("y", rate, observed=y)
    truth = 3.0 * np.log(2.0) - gammaln(3.0) + gammaln(3.0 + len(y)) - (3.0 + len(y)) * np.log(2.0 + y.sum())
    return Case(model, truth, "nothing")


def gamma_precision():
    """Normal data of a known mean and an unknown precision."""
    y = np.array([0.9, -1.4, 0.3, 2.2, -0.6])
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Normal("y", 0.0, tau=tau, observed=y)
    n, S = len(y), (y**2).sum()
    truth = gammaln(2.0 + n / 2) - gammaln(2.0) - (2.0 + n / 2) * np.log1p(S / 2) - n / 2 * np.log(2.0 * np.pi)
    return Case(model, truth, "nothing")


def normal_mean():
    """A mean far from the middle of its prior."""
    y, sd = np.array([31.2, 29.5, 30.4]), 2.0
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 10.0)
        pm.Normal("y", mu, sd, observed=y)
    return Case(model, float(log_joint_normal(y, np.zeros(3), sd**2 * np.eye(3) + 100.0)), "prior and data apart")


def fifty_means():
    """Fifty Normal means with one observation each."""
    y = np.random.default_rng(3).normal(size=50) * 1.1
    with pm.Model() as model:
        theta = pm.Normal("theta", 0.0, 1.0, shape=50)
        pm.Normal("y", theta, 0.3, observed=y)
    return Case(model, float(stats.norm.logpdf(y, 0.0, np.hypot(1.0, 0.3)).sum()), "fifty dimensions")


def inputs(n, k, seed):
    """A design with a column of ones, and targets."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, k - 1))])
    return X, X @ rng.normal(size=k) + 0.7 * rng.normal(size=n)


def known_noise():
    """A regression with five weights."""
    X, y = inputs(25, 5, 1)
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 2.0, shape=5)
        pm.Normal("y", X @ w, 0.7, observed=y)
    truth = log_joint_normal(y, np.zeros(25), 0.49 * np.eye(25) + 4.0 * X @ X.T)
    return Case(model, float(truth), "nothing")


def log_student(y, mean, V, shape, rate):
    """y ~ N(mean, V/τ), τ ~ Gamma(shape, rate): a multivariate Student t."""
    return float(stats.multivariate_t(mean, rate / shape * V, df=2.0 * shape).logpdf(y))


def unknown_noise():
    """A regression whose prior has the noise as its unit."""
    X, y = inputs(25, 5, 2)
    with pm.Model() as model:
        variance = pm.InverseGamma("variance", 3.0, 2.0)
        w = pm.Normal("w", 0.0, pm.math.sqrt(9.0 * variance), shape=5)
        pm.Normal("y", X @ w, pm.math.sqrt(variance), observed=y)
    return Case(model, log_student(y, np.zeros(25), np.eye(25) + 9.0 * X @ X.T, 3.0, 2.0), "nothing")


def of_timber(which):
    """Strength by density, or by density adjusted for resin: two lines that are not nested, in units of thousands.

    The priors are those usually taken for the radiata pine data; the 42 rows here are made up.
    """
    rng = np.random.default_rng(5)
    density = rng.normal(28.0, 5.0, 42)
    adjusted = density - np.abs(rng.normal(1.2, 1.5, 42))
    y = 2990.0 + 185.0 * (adjusted - adjusted.mean()) + 280.0 * rng.normal(size=42)
    x = (density, adjusted)[which]
    x = x - x.mean()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 3.0, 2.0 * 300.0**2)
        alpha = pm.Normal("alpha", 3000.0, tau=0.06 * tau)
        beta = pm.Normal("beta", 185.0, tau=6.0 * tau)
        pm.Normal("y", alpha + beta * x, tau=tau, observed=y)
    A = np.column_stack([np.ones(42), x])
    V = np.eye(42) + A @ np.diag([1 / 0.06, 1 / 6.0]) @ A.T
    return Case(model, log_student(y, A @ [3000.0, 185.0], V, 3.0, 2.0 * 300.0**2), "units far from one")


def timber_by_density():
    """The worse of two lines that are not nested."""
    return of_timber(0)


def timber_by_adjusted_density():
    """The better of two lines that are not nested."""
    return of_timber(1)


CASES = [
    beta_binomial,
    a_million_trials,
    gamma_poisson,
    ten_rates,
    five_classes,
    gamma_exponential,
    gamma_precision,
    normal_mean,
    fifty_means,
    known_noise,
    unknown_noise,
    timber_by_density,
    timber_by_adjusted_density,
]
