"""Hierarchies: given the parameters at the top the groups are independent, and integrals of one dimension each."""

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import gammaln, logsumexp

from tests.marginal_likelihood.zoo.case import (
    Case,
    effects,
    in_parts,
    line,
    log_integral,
    log_joint_normal,
    log_normal,
    positive,
)

SCHOOLS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def log_half_cauchy(x, scale):
    """Log density of the positive half of a Cauchy distribution."""
    return np.log(2.0 / np.pi / scale) - np.log1p((x / scale) ** 2)


def log_half_normal(x, scale):
    """Log density of the positive half of a Normal."""
    return np.log(2.0) + log_normal(x, 0.0, scale)


def of_schools():
    """mu is integrated out with the effects: one dimension is left. −31.31135."""

    def density(tau):
        V = np.einsum("i,jk->ijk", tau**2, np.eye(8)) + np.diag(ERRORS**2) + 25.0
        return log_joint_normal(SCHOOLS, np.zeros(8), V) + log_half_cauchy(tau, 5.0)

    return log_integral(density, positive(1e-8, 1e7, 801))


def eight_schools():
    """Centred: a funnel."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        theta = pm.Normal("theta", mu, tau, shape=8)
        pm.Normal("y", theta, ERRORS, observed=SCHOOLS)
    return Case(model, of_schools(), "a funnel with heavy tails")


def eight_schools_non_centred():
    """The same number from other coordinates."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        z = pm.Normal("z", 0.0, 1.0, shape=8)
        pm.Normal("y", mu + tau * z, ERRORS, observed=SCHOOLS)
    return Case(model, of_schools(), "heavy tails")


def eight_schools_student():
    """Effects with a Student t, which no closed form integrates out."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfNormal("tau", 10.0)
        z = pm.StudentT("z", nu=4.0, mu=0.0, sigma=1.0, shape=8)
        pm.Normal("y", mu + tau * z, ERRORS, observed=SCHOOLS)

    # tails far out are reached in equal steps of asinh z
    u = np.linspace(-9.0, 9.0, 181)
    z = np.sinh(u)
    log_p = stats.t(4.0).logpdf(z) + np.log(np.cosh(u) * (u[1] - u[0]))

    def density(mu, tau):
        theta = mu[:, None, None] + tau[:, None, None] * z[:, None]
        terms = logsumexp(log_normal(SCHOOLS, theta, ERRORS) + log_p[:, None], axis=1).sum(axis=1)
        return terms + log_normal(mu, 0.0, 5.0) + log_half_normal(tau, 10.0)

    truth = log_integral(lambda m, t: in_parts(density, m, t), line(-25.0, 30.0, 61), positive(1e-6, 80.0, 121))
    return Case(model, truth, "heavy tails in nine directions")


def analysis_of_variance():
    """Four groups of unequal size, both scales unknown."""
    group = np.repeat([0, 1, 2, 3], [3, 5, 2, 4])
    y = np.array([1.0, -2.0, 0.0, 0.5])[group] + np.random.default_rng(4).normal(size=len(group))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 3.0)
        between = pm.HalfNormal("between", 2.0)
        within = pm.HalfNormal("within", 2.0)
        theta = pm.Normal("theta", mu, between, shape=4)
        pm.Normal("y", theta[group], within, observed=y)

    same = (group[:, None] == group).astype(float)

    def density(a, s):
        V = a[:, None, None] ** 2 * same + s[:, None, None] ** 2 * np.eye(len(y)) + 9.0
        return log_joint_normal(y, np.zeros(len(y)), V) + log_half_normal(a, 2.0) + log_half_normal(s, 2.0)

    truth = log_integral(density, positive(1e-6, 20.0, 161), positive(0.2, 12.0, 81))
    return Case(model, truth, "two scales that trade")


COUNTS = np.array([4, 0, 9, 3, 17, 2, 6, 1, 0, 5])


def of_counts():
    """Counts with Normal effects on the logarithm of their rate."""

    def density(mu, tau):
        def terms(theta):
            return COUNTS * theta - np.exp(theta) - gammaln(COUNTS + 1)

        return effects(terms, mu, tau) + log_normal(mu, 1.0, 1.5) + log_half_normal(tau, 1.0)

    return log_integral(lambda m, t: in_parts(density, m, t), line(-4.0, 5.0, 61), positive(1e-6, 8.0, 121))


def counts():
    """Poisson data with a random effect each, centred."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 1.0, 1.5)
        tau = pm.HalfNormal("tau", 1.0)
        theta = pm.Normal("theta", mu, tau, shape=10)
        pm.Poisson("y", pm.math.exp(theta), observed=COUNTS)
    return Case(model, of_counts(), "a funnel with skewed sides")


def counts_non_centred():
    """The same number from other coordinates."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 1.0, 1.5)
        tau = pm.HalfNormal("tau", 1.0)
        z = pm.Normal("z", 0.0, 1.0, shape=10)
        pm.Poisson("y", pm.math.exp(mu + tau * z), observed=COUNTS)
    return Case(model, of_counts(), "a ridge where scale and effects trade")


def trials():
    """Twenty-two binomial groups with random log odds."""
    rng = np.random.default_rng(8)
    n = rng.integers(3, 20, 22)
    y = rng.binomial(n, 1.0 / (1.0 + np.exp(-rng.normal(-0.5, 0.9, 22))))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        tau = pm.HalfCauchy("tau", 1.0)
        theta = pm.Normal("theta", mu, tau, shape=22)
        pm.Binomial("y", n, logit_p=theta, observed=y)
    ways = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)

    def density(mu, tau):
        def terms(theta):
            return ways + y * theta - n * np.logaddexp(0.0, theta)

        # where tau is large, the spacing of the effects is too: more of them
        found = effects(terms, mu, tau, n=241)
        return found + log_normal(mu, 0.0, 2.0) + log_half_cauchy(tau, 1.0)

    truth = log_integral(
        lambda m, t: in_parts(density, m, t, size=200), line(-5.0, 4.0, 121), positive(1e-4, 30.0, 101), within=1e-3
    )
    return Case(model, truth, "twenty-four dimensions, a funnel")


def horseshoe():
    """Five coefficients with half-Cauchy scales, one observation each."""
    y = np.array([0.1, 2.0, -0.4, 0.2, -3.5])
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 0.5)
        lam = pm.HalfCauchy("lam", 1.0, shape=5)
        z = pm.Normal("z", 0.0, 1.0, shape=5)
        pm.Normal("y", tau * lam * z, 0.5, observed=y)

    u = np.linspace(np.log(1e-8), np.log(1e8), 401)
    lam_ = np.exp(u)
    log_p = log_half_cauchy(lam_, 1.0) + u + np.log(u[1] - u[0])

    def density(tau):
        sd = np.sqrt((tau[:, None] * lam_) ** 2 + 0.25)[:, :, None]
        terms = logsumexp(log_normal(y, 0.0, sd) + log_p[:, None], axis=1).sum(axis=1)
        return terms + log_half_cauchy(tau, 0.5)

    return Case(model, log_integral(density, positive(1e-8, 1e8, 401)), "tails of Cauchy times Cauchy", may_flag=True)


def seen_funnel(likelihood_, log_terms):
    """Neal's funnel of ten dimensions, each of its nine sides seen once."""
    y = np.array([0.3, -1.2, 0.5, 2.4, -0.1, 0.7, -0.9, 1.6, 0.2])
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 3.0)
        x = pm.Normal("x", 0.0, pm.math.exp(0.5 * v), shape=9)
        likelihood_(x, y)
    return model, log_integral(lambda v: log_terms(v, y) + log_normal(v, 0.0, 3.0), line(-24.0, 24.0, 401))


def funnel():
    """Seen with Normal errors."""
    model, truth = seen_funnel(
        lambda x, y: pm.Normal("y", x, 1.0, observed=y),
        lambda v, y: log_normal(y, 0.0, np.sqrt(np.exp(v)[:, None] + 1.0)).sum(axis=1),
    )
    return Case(model, truth, "a funnel")


def funnel_student():
    """Seen with errors of a Student t: nothing is conjugate."""

    def log_terms(v, y):
        u = np.linspace(-4.5, 4.5, 2001)  # of asinh z: dense near nought, where a wide prior meets a narrow likelihood
        z = np.sinh(u)
        log_p = log_normal(z, 0.0, 1.0) + np.log(np.cosh(u) * (u[1] - u[0]))

        def part(v):
            theta = np.exp(0.5 * v)[:, None, None] * z[:, None]
            return logsumexp(stats.t.logpdf(y, 3.0, theta, 1.0) + log_p[:, None], axis=1).sum(axis=1)

        return in_parts(part, v, size=50)

    model, truth = seen_funnel(lambda x, y: pm.StudentT("y", nu=3.0, mu=x, sigma=1.0, observed=y), log_terms)
    return Case(model, truth, "a funnel that no closed form opens")


CASES = [
    eight_schools,
    eight_schools_non_centred,
    eight_schools_student,
    analysis_of_variance,
    counts,
    counts_non_centred,
    trials,
    horseshoe,
    funnel,
    funnel_student,
]
