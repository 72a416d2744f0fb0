"""Maximum a posteriori fits of Gaussian processes."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bayessel.covariance import Standard
from bayessel.gp import Marginal, fit_map
from bayessel.result import Status


def waves(rng, n, m=3, noise=0.2):
    X = rng.normal(size=(n, m))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + noise * rng.normal(size=n)


def test_the_optimum_is_that_of_scipy(rng):
    X, t = waves(rng, 80)
    fit = fit_map(X, t, starts=1)
    marginal, prior = Marginal(X, t), Standard().prior(3)

    def objective(theta):
        value, gradient = marginal.value_and_gradient(theta)
        return -value - prior.log_density(theta), -gradient - prior.gradient(theta)

    peer = minimize(objective, Standard().start(3), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-8})
    assert fit.status is Status.CONVERGED
    np.testing.assert_allclose(fit.log_posterior, -peer.fun, atol=2e-5)
    np.testing.assert_allclose(fit.theta, peer.x, atol=0.02)
    np.testing.assert_allclose(fit.log_evidence, marginal.value(fit.theta), rtol=1e-12)


@pytest.mark.parametrize("prior", ["default", None])
def test_noise_and_relevant_inputs_are_found(rng, prior):
    X, t = waves(rng, 300)
    fit = fit_map(X, t, prior=prior)
    assert abs(np.log(fit.noise_std / 0.2)) < 0.15
    assert fit.relevance.length.idxmin() == 0
