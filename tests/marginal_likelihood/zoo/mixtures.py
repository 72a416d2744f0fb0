"""Mixtures with known variances: a sum over all allocations, each of which is Normal."""

from itertools import product

import numpy as np
import pymc as pm
from scipy.special import gammaln, logsumexp

from tests.marginal_likelihood.zoo.case import Case, log_integral, log_normal, positive
from tests.marginal_likelihood.zoo.hierarchies import log_half_normal

TWO = np.array([-2.1, -1.7, -2.6, 1.8, 2.4, -1.9, 2.2, 1.5, 2.0, -2.3])
THREE = np.array([-4.2, -3.6, 0.1, 0.6, 4.1, 4.4, -0.3, 3.7, -4.0])


def allocations(n, k):
    """All ways to put n observations into k components, (kⁿ, n)."""
    return np.array(list(product(range(k), repeat=n)))


def log_means_integrated(y, where, k, mean, prior_sd, sd):
    """Log probability of the data for each allocation: y ~ N(m_k, sd²), m_k ~ N(mean, prior_sd²)."""
    found = np.zeros(len(where))
    for j in range(k):
        inside = where == j
        n, total, squares = inside.sum(axis=1), inside @ (y - mean), inside @ (y - mean) ** 2
        # determinant and quadratic form of sd² I + prior_sd² 11ᵀ
        grown = sd**2 + n * prior_sd**2
        log_det = n * np.log(sd**2) + np.log(grown / sd**2)
        quadratic = squares / sd**2 - prior_sd**2 * total**2 / (sd**2 * grown)
        found -= 0.5 * (n * np.log(2.0 * np.pi) + log_det + quadratic)
    return found


def two_components():
    """Known weights that differ: two modes, of which one is smaller."""
    weights = np.array([0.6, 0.4])
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 3.0, shape=2)
        pm.NormalMixture("y", weights, m, sigma=0.8, observed=TWO)
    where = allocations(len(TWO), 2)
    truth = logsumexp(np.log(weights)[where].sum(axis=1) + log_means_integrated(TWO, where, 2, 0.0, 3.0, 0.8))
    return Case(model, float(truth), "two modes of different mass", may_flag=True)


def log_three():
    """Three components of equal weight."""
    where = allocations(len(THREE), 3)
    return float(logsumexp(log_means_integrated(THREE, where, 3, 0.0, 4.0, 0.6)) - len(THREE) * np.log(3.0))


def three_components():
    """Six equal modes."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 4.0, shape=3)
        pm.NormalMixture("y", np.ones(3) / 3.0, m, sigma=0.6, observed=THREE)
    return Case(model, log_three(), "six equal modes", may_flag=True)


def three_in_order():
    """One sixth of the mass: an ordered transform leaves the prior as it was, on a sixth of its space."""
    with pm.Model() as model:
        ordered = pm.distributions.transforms.ordered
        m = pm.Normal("m", 0.0, 4.0, shape=3, transform=ordered, initval=np.array([-1.0, 0.0, 1.0]))
        pm.NormalMixture("y", np.ones(3) / 3.0, m, sigma=0.6, observed=THREE)
    return Case(model, log_three() - np.log(6.0), "a prior that is not normalised", may_flag=True, comparable=False)


def unknown_weights():
    """Weights with a Dirichlet prior: six equal modes in five dimensions."""
    alpha = 1.5
    with pm.Model() as model:
        w = pm.Dirichlet("w", alpha * np.ones(3))
        m = pm.Normal("m", 0.0, 4.0, shape=3)
        pm.NormalMixture("y", w, m, sigma=0.6, observed=THREE)
    where = allocations(len(THREE), 3)
    n = np.stack([(where == j).sum(axis=1) for j in range(3)])
    log_p = gammaln(3 * alpha) - gammaln(3 * alpha + len(THREE)) + (gammaln(alpha + n) - gammaln(alpha)).sum(axis=0)
    truth = logsumexp(log_p + log_means_integrated(THREE, where, 3, 0.0, 4.0, 0.6))
    return Case(model, float(truth), "six equal modes", may_flag=True)


def four_that_overlap():
    """Four components for data that want two: many modes that run into each other."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 3.0, shape=4)
        pm.NormalMixture("y", np.ones(4) / 4.0, m, sigma=0.8, observed=TWO[:8])
    where = allocations(8, 4)
    truth = logsumexp(log_means_integrated(TWO[:8], where, 4, 0.0, 3.0, 0.8)) - 8 * np.log(4.0)
    return Case(model, float(truth), "fourteen modes that run into each other", may_flag=True)


def contaminated():
    """A share of outliers of an unknown width beside a known Normal."""
    y = np.array([0.3, -0.8, 1.1, 0.2, -7.0, 0.6, -1.2, 9.5, 0.1, -0.4])
    with pm.Model() as model:
        share = pm.Beta("share", 1.0, 4.0)
        wide = pm.HalfNormal("wide", 8.0)
        parts = [pm.Normal.dist(0.0, 1.0), pm.Normal.dist(0.0, 1.0 + wide)]
        pm.Mixture("y", pm.math.stack([1.0 - share, share]), parts, observed=y)
    p, w = np.polynomial.legendre.leggauss(60)
    p, w = 0.5 * (p + 1.0), 0.5 * w

    def density(wide):
        inner = log_normal(y, 0.0, 1.0)[:, None]
        outer = log_normal(y, 0.0, 1.0 + wide[:, None])[:, :, None]
        terms = np.logaddexp(np.log1p(-p) + inner, np.log(p) + outer).sum(axis=1)
        log_prior = np.log(4.0) + 3.0 * np.log1p(-p)
        return logsumexp(terms + log_prior + np.log(w), axis=1) + log_half_normal(wide, 8.0)

    return Case(model, log_integral(density, positive(1e-7, 60.0, 401)), "a share near nought")


CASES = [
    two_components,
    three_components,
    three_in_order,
    unknown_weights,
    four_that_overlap,
    contaminated,
]
