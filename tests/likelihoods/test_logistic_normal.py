"""Averages of the logistic function over normal distributions against 30 digits.

Guards `bayessel.likelihoods.logistic_normal`.
"""

import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_expit

from bayessel.likelihoods.bernoulli import LogitLabels
from bayessel.likelihoods.logistic_normal import log_averaged_logistic


@pytest.mark.parametrize("variance", [0.01, 1.0, 40.0])
def test_averages_have_almost_all_digits(variance):
    means = np.array([-25.0, -8.0, -1.0, 0.0, 0.3, 12.0])
    with mp.workdps(30):
        root = mp.sqrt(variance)
        expected = [
            float(
                mp.log(
                    mp.quad(
                        lambda x, m=m: mp.npdf(x) / (1 + mp.exp(-(m + root * x))),
                        [-40, -20, -10, -5, -2, 0, 2, 5, 10, 20, 40],
                    )
                )
            )
            for m in means
        ]
    np.testing.assert_allclose(log_averaged_logistic(means, np.full(6, variance)), expected, rtol=1e-9, atol=1e-14)


def test_limits():
    means = np.array([-2000.0, -100.0, -31.0, -29.0, 0.0, 5.0, 800.0])
    np.testing.assert_allclose(log_averaged_logistic(means, np.zeros(7)), log_expit(means), rtol=1e-8, atol=1e-15)
    assert log_averaged_logistic(np.zeros(1), np.array([1e300]))[0] == pytest.approx(-np.log(2.0))
    assert len(log_averaged_logistic(np.zeros(0), np.zeros(0))) == 0


def test_predictions_are_those_of_the_quadrature(rng):
    mean, variance = 4.0 * rng.normal(size=200), rng.gamma(1.0, 5.0, 200)
    found = LogitLabels().predict(mean, variance, np.zeros(0)).probabilities
    exact = np.exp(LogitLabels().tilted(np.ones(200), mean, variance, np.zeros(0)).log_z)
    np.testing.assert_allclose(found[:, 1], exact, rtol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
