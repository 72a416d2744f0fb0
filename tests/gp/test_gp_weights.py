"""Processes whose rows count differently or have noise levels of their own: dense densities, repeated rows, refits.

Guards `bayessel.gp.marginal`, `bayessel.gp.loo`, `bayessel.gp.predict`, `bayessel.gp.map_result`,
`bayessel.gp.mode_fit`.
"""

import numpy as np
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from bayessel import gp
from bayessel._row_weights import RowWeights
from bayessel.covariance import Noise, SquaredExponential

COVARIANCE = SquaredExponential() + Noise()


def data(rng, n=12):
    X, s = rng.normal(size=(n, 2)), np.exp(0.7 * rng.normal(size=n))
    return X, np.sin(2 * X[:, 0]) + 0.2 * s * rng.normal(size=n), s, rng.integers(1, 4, size=n)


def test_marginal_is_a_density_and_counts_copies(rng):
    X, t, s, w = data(rng)
    theta = rng.normal(size=4)
    std = s / np.exp(np.log(s).mean())
    # the function alone, without noise
    K = COVARIANCE.matrix(theta, X, X)
    Q = K + COVARIANCE.noise(theta, 2) * np.diag(std**2)
    found = gp.Marginal(X, t, COVARIANCE, RowWeights.of(12, s)).value(theta)
    np.testing.assert_allclose(found, multivariate_normal(np.zeros(12), Q).logpdf(t), rtol=1e-9)
    one = gp.Marginal(X, t, COVARIANCE, RowWeights.of(12, s, w))
    many = [np.repeat(a, w, axis=0) for a in (X, t, s)]
    other = gp.Marginal(many[0], many[1], COVARIANCE, RowWeights.of(len(many[1]), many[2]))
    for a, b in zip(one.value_and_gradient(theta), other.value_and_gradient(theta), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)
    slope = approx_fprime(theta, one.value, 1e-6)
    np.testing.assert_allclose(one.value_and_gradient(theta)[1], slope, rtol=1e-4, atol=1e-4)


def test_rows_left_out_are_predicted_with_their_own_noise(rng):
    X, t, s, w = data(rng)
    fit = gp.fit_map(X, t, COVARIANCE, noise_std=s, sample_weight=w)
    found, weights = fit.leave_one_out(), RowWeights.of(12, s, w)
    assert weights is not None
    for i in (0, 7):
        rest = np.delete(np.arange(12), i)
        there = gp.Predictor(X[rest], t[rest], fit.covariance, fit.theta, weights.part(rest))(X[[i]])
        variance = there.function.variance[0] + (weights.std[i] * fit.noise_std) ** 2
        np.testing.assert_allclose(found.errors[i], t[i] - there.mean[0], rtol=1e-6)
        np.testing.assert_allclose(found.variances[i], variance, rtol=1e-6)
