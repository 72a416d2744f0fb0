"""Regressions that are not Normal, over a grid of two or three dimensions; one by a long simulation."""

import warnings

import numpy as np
import pymc as pm
from pymc.exceptions import ImputationWarning
from scipy import optimize, stats
from scipy.special import gammaln, logsumexp

from tests.marginal_likelihood.zoo.case import (
    Case,
    in_parts,
    line,
    log_integral,
    log_joint_normal,
    log_normal,
    positive,
)
from tests.marginal_likelihood.zoo.hierarchies import log_half_normal


def log_logistic(A, y, w):
    """Log likelihood of ones and noughts for the rows of w."""
    eta = w @ A.T
    return eta @ y - np.logaddexp(0.0, eta).sum(axis=1)


def logistic(A, y, sd):
    """A model with Normal priors."""
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, sd, shape=A.shape[1])
        pm.Bernoulli("y", logit_p=A @ w, observed=y)
    return model


def by_grid(A, y, sd, *axes):
    """Its log evidence."""

    def density(*w):
        w = np.column_stack(w)
        return log_logistic(A, y, w) + log_normal(w, 0.0, sd).sum(axis=1)

    return log_integral(lambda *w: in_parts(density, *w, size=5000), *axes)


def logistic_3():
    """Three weights, sixty rows."""
    rng = np.random.default_rng(20)
    A = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    y = (rng.uniform(size=60) < 1.0 / (1.0 + np.exp(-A @ [0.4, 1.2, -0.8]))).astype(int)
    truth = by_grid(A, y, 2.5, *[line(c - 4.0, c + 4.0, 49) for c in (0.5, 1.5, -1.0)])
    return Case(logistic(A, y, 2.5), truth, "nothing")


def logistic_separated():
    """The classes do not overlap: the likelihood rises without end."""
    x = np.array([-2.1, -1.3, -0.8, -0.2, 0.3, 0.9, 1.4, 2.2])
    A, y = np.column_stack([np.ones(8), x]), (x > 0.0).astype(int)
    truth = by_grid(A, y, 10.0, line(-60.0, 60.0, 401), line(-70.0, 70.0, 401))
    return Case(logistic(A, y, 10.0), truth, "a plateau that ends in the prior")


def cancer(columns):
    """Wisconsin's breast cancers: standardised columns beside ones."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, columns]
    return np.column_stack([np.ones(len(X)), (X - X.mean(axis=0)) / X.std(axis=0)]), y


def cancer_2():
    """By mean radius and mean texture."""
    A, y = cancer([0, 1])
    truth = by_grid(A, y, 5.0, line(-0.8, 2.3, 31), line(-7.5, -1.5, 41), line(-2.6, 0.4, 31))
    return Case(logistic(A, y, 5.0), truth, "nothing")


def cancer_8():
    """By eight correlated columns, against importance sampling with a Student t at the mode."""
    A, y = cancer([0, 1, 2, 3, 4, 5, 6, 7])
    k, sd, n, blocks = A.shape[1], 5.0, 4000, 50

    def loss(w):
        eta = A @ w
        gradient = A.T @ (1.0 / (1.0 + np.exp(-eta)) - y) + w / sd**2
        return np.logaddexp(0.0, eta).sum() - eta @ y + 0.5 * (w @ w) / sd**2, gradient

    mode = optimize.minimize(loss, np.zeros(k), jac=True, method="BFGS", options={"gtol": 1e-6}).x
    p = 1.0 / (1.0 + np.exp(-A @ mode))
    C = np.linalg.inv((A.T * (p * (1.0 - p))) @ A + np.eye(k) / sd**2)
    proposal = stats.multivariate_t(mode, 1.1 * C, df=7.0, seed=1)
    log_z = []
    for _ in range(blocks):
        w = proposal.rvs(n)
        log_ratio = log_logistic(A, y, w) + log_normal(w, 0.0, sd).sum(axis=1) - proposal.logpdf(w)
        log_z.append(logsumexp(log_ratio) - np.log(n))
    truth = logsumexp(log_z) - np.log(blocks)
    error = np.std(np.exp(np.array(log_z) - truth), ddof=1) / np.sqrt(blocks)
    return Case(logistic(A, y, sd), float(truth), "nine dimensions, correlations of 0.99", truth_error=float(error))


def censored_lifetimes():
    """Weibull times of which the longest are only known to be longer."""
    time = np.array([0.7, 1.9, 2.4, 0.3, 3.1, 1.2, 2.8, 4.0, 4.0, 4.0])
    upper = 4.0
    with pm.Model() as model:
        shape = pm.LogNormal("shape", 0.0, 0.7)
        scale = pm.LogNormal("scale", 1.0, 1.0)
        pm.Censored("y", pm.Weibull.dist(shape, scale), lower=None, upper=upper, observed=time)
    seen, censored = time[time < upper], int((time >= upper).sum())

    def density(a, b):
        u = np.log(seen / b[:, None])
        found = (np.log(a / b)[:, None] + (a[:, None] - 1.0) * u - np.exp(a[:, None] * u)).sum(axis=1)
        prior = log_normal(np.log(a), 0.0, 0.7) - np.log(a) + log_normal(np.log(b), 1.0, 1.0) - np.log(b)
        return found - censored * (upper / b) ** a + prior

    return Case(model, log_integral(density, positive(0.1, 8.0), positive(0.5, 300.0)), "outcomes that are bounds")


def negative_binomial():
    """Counts with a slope and an unknown dispersion."""
    rng = np.random.default_rng(21)
    x = np.linspace(-1.0, 1.0, 30)
    y = rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(1.0 + 0.8 * x)))
    with pm.Model() as model:
        a, b = pm.Normal("a", 0.0, 2.0), pm.Normal("b", 0.0, 2.0)
        alpha = pm.Exponential("alpha", 0.5)
        pm.NegativeBinomial("y", mu=pm.math.exp(a + b * x), alpha=alpha, observed=y)

    def density(a, b, alpha):
        mu, r = np.exp(a[:, None] + b[:, None] * x), alpha[:, None]
        terms = gammaln(y + r) - gammaln(y + 1.0) - gammaln(r) + r * np.log(r / (r + mu)) + y * np.log(mu / (r + mu))
        prior = log_normal(a, 0.0, 2.0) + log_normal(b, 0.0, 2.0) + np.log(0.5) - 0.5 * alpha
        return terms.sum(axis=1) + prior

    axes = line(-0.7, 2.7, 31), line(-1.5, 2.7, 31), positive(0.15, 60.0, 61)
    return Case(model, log_integral(lambda *p: in_parts(density, *p), *axes, within=2e-3), "a tail of the dispersion")


def robust_line():
    """A line with Student t errors and an outlier, scale unknown."""
    x = np.linspace(-1.0, 1.0, 12)
    y = 0.5 + 1.5 * x + 0.2 * np.random.default_rng(22).normal(size=12)
    y[9] += 8.0
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 3.0, shape=2)
        s = pm.HalfNormal("s", 2.0)
        pm.StudentT("y", nu=3.0, mu=w[0] + w[1] * x, sigma=s, observed=y)

    def density(a, b, s):
        z = (y - a[:, None] - b[:, None] * x) / s[:, None]
        constant = gammaln(2.0) - gammaln(1.5) - 0.5 * np.log(3.0 * np.pi)
        terms = (constant - 2.0 * np.log1p(z**2 / 3.0)).sum(axis=1) - len(y) * np.log(s)
        return terms + log_normal(a, 0.0, 3.0) + log_normal(b, 0.0, 3.0) + log_half_normal(s, 2.0)

    axes = line(-1.2, 2.4, 121), line(-1.4, 5.0, 161), positive(0.04, 4.0, 61)
    return Case(model, log_integral(lambda *p: in_parts(density, *p), *axes, within=2e-3), "an outlier")


def probit_steps():
    """Ordered outcomes with two cut points, ordered by a positive gap."""
    x = np.linspace(-2.0, 2.0, 20)
    y = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 2, 1, 2, 1, 2, 2, 2, 2])
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0)
        low = pm.Normal("low", 0.0, 3.0)
        gap = pm.Exponential("gap", 1.0)
        pm.OrderedLogistic("y", eta=slope * x, cutpoints=pm.math.stack([low, low + gap]), compute_p=False, observed=y)

    def density(slope, low, gap):
        def above(cut):  # log P(y > its class), log P(y ≤ it)
            u = cut[:, None] - slope[:, None] * x
            return -np.logaddexp(0.0, u), -np.logaddexp(0.0, -u)

        first, second = above(low), above(low + gap)
        middle = second[1] + np.log(-np.expm1(first[1] - second[1]))
        terms = np.select([y == 0, y == 1], [first[1], middle], second[0])
        return terms.sum(axis=1) + log_normal(slope, 0.0, 2.0) + log_normal(low, 0.0, 3.0) - gap

    axes = line(-1.0, 8.0, 61), line(-6.0, 4.0, 61), positive(0.05, 20.0, 61)
    return Case(model, log_integral(lambda *p: in_parts(density, *p), *axes, within=2e-3), "cut points")


def correlated_pair():
    """Two standard deviations and a correlation by `pm.LKJCholeskyCov`, mean known."""
    y = np.random.default_rng(23).multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 2.0]], size=12)
    eta = 2.0
    with pm.Model() as model:
        L, _, _ = pm.LKJCholeskyCov("L", n=2, eta=eta, sd_dist=pm.HalfNormal.dist(2.0), compute_corr=True)
        pm.MvNormal("y", np.zeros(2), chol=L, observed=y)

    S = y.T @ y

    def density(a, b, u):
        rho, log_c = np.tanh(u), -2.0 * np.logaddexp(u, -u) + 2.0 * np.log(2.0)  # log (1 − ρ²) = −2 log cosh u
        quadratic = (S[0, 0] / a**2 - 2.0 * rho * S[0, 1] / (a * b) + S[1, 1] / b**2) / np.exp(log_c)
        terms = -len(y) * (np.log(2.0 * np.pi * a * b) + 0.5 * log_c) - 0.5 * quadratic
        # ρ ~ (1 − ρ²)^(η−1), which is a Beta(η, η) on (−1, 1); dρ = (1 − ρ²) du
        log_beta = 2.0 * gammaln(eta) - gammaln(2.0 * eta) + (2.0 * eta - 1.0) * np.log(2.0)
        prior = log_half_normal(a, 2.0) + log_half_normal(b, 2.0) + eta * log_c - log_beta
        return terms + prior

    truth = log_integral(density, positive(0.3, 6.0, 61), positive(0.4, 9.0, 61), line(-2.0, 3.5, 81))
    return Case(model, truth, "a covariance matrix", may_flag=False)


def missing_outcomes():
    """Outcomes that were not seen are unknowns too, and change nothing."""
    X = np.column_stack([np.ones(8), np.linspace(-1.0, 1.0, 8)])
    y = np.array([0.1, np.nan, 0.7, 0.4, np.nan, 1.3, 1.1, 1.9])
    seen = ~np.isnan(y)
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", ImputationWarning)  # that is what is meant
        w = pm.Normal("w", 0.0, 2.0, shape=2)
        pm.Normal("y", X @ w, 0.4, observed=np.ma.masked_invalid(y))
    V = 0.16 * np.eye(6) + 4.0 * X[seen] @ X[seen].T
    return Case(model, float(log_joint_normal(y[seen], np.zeros(6), V)), "outcomes among the unknowns")


CASES = [
    logistic_3,
    logistic_separated,
    cancer_2,
    cancer_8,
    censored_lifetimes,
    negative_binomial,
    robust_line,
    probit_steps,
    correlated_pair,
    missing_outcomes,
]
