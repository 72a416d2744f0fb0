"""Models whose number has no meaning beside that of others, and must say so; constrained priors of which it has."""

import numpy as np
import pymc as pm
from scipy import stats
from scipy.special import gammaln

from tests.marginal_likelihood.zoo.case import Case, line, log_integral, log_joint_normal, log_normal


def flat_priors():
    """Weights with flat priors: N(y; Aw, s²I) integrated over all w."""
    rng = np.random.default_rng(30)
    A = np.column_stack([np.ones(20), rng.normal(size=(20, 2))])
    y, s = A @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=20), 0.5
    with pm.Model() as model:
        w = pm.Flat("w", shape=3)
        pm.Normal("y", A @ w, s, observed=y)
    rest = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    truth = -0.5 * rest @ rest / s**2 - 0.5 * 17 * np.log(2.0 * np.pi * s**2) - 0.5 * np.linalg.slogdet(A.T @ A)[1]
    return Case(model, float(truth), "an improper prior", comparable=False)


def half_flat_scale():
    """A scale with a flat prior on the positive numbers."""
    y = np.array([1.2, -0.4, 0.8, -2.0, 0.3])
    with pm.Model() as model:
        s = pm.HalfFlat("s")
        pm.Normal("y", 0.0, s, observed=y)
    # ∫ s^−n exp(−S/2s²) ds, by the Gamma integral of 1/s²
    n, S = len(y), y @ y
    truth = gammaln((n - 1) / 2) - np.log(2.0) - (n - 1) / 2 * np.log(S / 2.0) - n / 2 * np.log(2.0 * np.pi)
    return Case(model, float(truth), "an improper prior", comparable=False)


def potential():
    """A factor on the density that is no distribution."""
    y = np.array([0.6, 1.4, 0.2])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", mu, 1.0, observed=y)
        pm.Potential("penalty", -2.0 * mu**4)

    def density(mu):
        return log_normal(mu, 0.0, 1.0) + log_normal(y, mu[:, None], 1.0).sum(axis=1) - 2.0 * mu**4

    return Case(model, log_integral(density, line(-4.0, 4.0, 401)), "a potential", comparable=False)


def effects_that_sum_to_zero():
    """`pm.ZeroSumNormal`: a Normal on a plane."""
    y, tau, s = np.array([0.9, -0.4, 1.8, 0.6, -1.1]), 1.3, 0.5
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        effect = pm.ZeroSumNormal("effect", tau, shape=5)
        pm.Normal("y", mu + effect, s, observed=y)
    V = s**2 * np.eye(5) + tau**2 * (np.eye(5) - 0.2) + 4.0
    return Case(model, float(log_joint_normal(y, np.zeros(5), V)), "a prior on a plane")


def truncated_prior():
    """A Normal prior cut off where the data want to be."""
    y = np.array([-0.6, -0.2, 0.1])
    with pm.Model() as model:
        mu = pm.TruncatedNormal("mu", 1.0, 0.8, lower=0.0)
        pm.Normal("y", mu, 0.7, observed=y)
    # prior and likelihood are Normal; what of the posterior is above nought, over what of the prior is
    whole = log_joint_normal(y, np.ones(3), 0.49 * np.eye(3) + 0.64)
    precision = 1 / 0.64 + 3 / 0.49
    mean = (1.0 / 0.64 + y.sum() / 0.49) / precision
    truth = whole + stats.norm.logcdf(mean * np.sqrt(precision)) - stats.norm.logcdf(1.0 / 0.8)
    return Case(model, float(truth), "a wall in the mass")


CASES = [
    flat_priors,
    half_flat_scale,
    potential,
    effects_that_sum_to_zero,
    truncated_prior,
]
