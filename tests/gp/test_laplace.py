"""Laplace's approximation around a mode: Hessian, error bars, evidence.

Guards `bayessel.gp.laplace`, `bayessel.gp.map_result`.
"""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayessel.covariance import Noise, Prior, SquaredExponential, Standard
from bayessel.gp import Marginal, fit_map
from bayessel.gp.laplace import covariance_of, hessian_of, log_volume


def waves(rng, n):
    X = rng.normal(size=(n, 2))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * rng.normal(size=n)


def test_the_hessian_of_a_quadratic_is_exact(rng):
    A = rng.normal(size=(4, 4))
    A = A @ A.T
    free = np.array([True, False, True, True])
    H = hessian_of(lambda x: A @ x, rng.normal(size=4), free)
    np.testing.assert_allclose(H, A[np.ix_(free, free)], rtol=1e-9)


def test_the_volume_is_that_of_a_gaussian(rng):
    A = rng.normal(size=(3, 3))
    A = A @ A.T + np.eye(3)
    np.testing.assert_allclose(log_volume(A), 1.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(A)[1], rtol=1e-12)
    np.testing.assert_allclose(covariance_of(A), np.linalg.inv(A), rtol=1e-9)
    assert log_volume(np.zeros((0, 0))) == 0.0


@pytest.mark.parametrize("H", [np.diag([1.0, -1.0]), np.array([[np.nan]])])
def test_where_there_is_no_peak_there_is_no_number(H):
    assert np.isnan(log_volume(H))
    assert np.isnan(covariance_of(H)).all()


def test_the_noise_alone_has_a_closed_form(rng):
    """t ~ N(0, r²): the curvature of −log p in log r² is Σt²/(2 r²), and 1/sd² is the prior's."""
    t = 0.5 * rng.normal(size=40)
    fit = fit_map(np.zeros((40, 1)), t, Noise(), prior=Prior.normal(-1.0, 2.0))
    (theta,) = fit.theta
    curvature = 0.5 * (t @ t) * np.exp(-theta) + 1.0 / 4.0
    np.testing.assert_allclose(fit.hessian, [[curvature]], rtol=1e-6)
    np.testing.assert_allclose(fit.theta_std, [curvature**-0.5], rtol=1e-6)
    np.testing.assert_allclose(
        fit.model_evidence.value, fit.log_posterior + 0.5 * np.log(2 * np.pi / curvature), rtol=1e-9
    )


def test_the_hessian_is_that_of_the_values(rng):
    """Second differences of the log posterior itself: no gradient is asked."""
    X, t = waves(rng, 40)
    fit = fit_map(X, t, starts=1)
    marginal, prior, h = Marginal(X, t), Standard().prior(2), 2e-3

    def down(theta):
        return -marginal.value(theta) - prior.log_density(theta)

    k, steps = len(fit.theta), h * np.eye(len(fit.theta))
    H = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            corners = [down(fit.theta + a * steps[i] + b * steps[j]) for a in (1, -1) for b in (1, -1)]
            H[i, j] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * h * h)
    np.testing.assert_allclose(fit.hessian, H, atol=3e-4 * np.abs(H).max())
    np.testing.assert_allclose(fit.theta_std, np.sqrt(np.diag(np.linalg.inv(H))), rtol=0.01)


def quadrature(fit, marginal, points=61, width=6.0):
    """log ∫ p(t|θ) p(θ) dθ over the free parameters, on a grid along the axes of the Hessian."""
    S = np.linalg.inv(fit.hessian[np.ix_(fit.free, fit.free)])
    root = np.linalg.cholesky(S)
    prior = Prior(*(part[fit.free] for part in (fit.prior.is_normal, fit.prior.first, fit.prior.second)))
    z = np.linspace(-width, width, points)
    nodes = np.stack(np.meshgrid(*[z] * len(root), indexing="ij"), axis=-1).reshape(-1, len(root))
    logs = []
    for node in nodes:
        theta = fit.theta.copy()
        theta[fit.free] += root @ node
        logs.append(marginal.value(theta) + prior.log_density(theta[fit.free]))
    return logsumexp(logs) + len(root) * np.log(z[1] - z[0]) + np.linalg.slogdet(root)[1]


@pytest.mark.parametrize("fixed", [{"log w": -0.5}, {"log w": -0.5, "log v0": 0.0}])
def test_the_evidence_is_the_integral_and_ever_closer_with_more_rows(rng, fixed):
    covariance = SquaredExponential(ard=False) + Noise()
    X, t = waves(rng, 200)
    errors = []
    for n in (12, 200):
        fit = fit_map(X[:n], t[:n], covariance, fixed=fixed, starts=1)
        integral = quadrature(fit, Marginal(X[:n], t[:n], covariance), 61 if len(fixed) == 2 else 21, 5.0)
        errors.append(abs(fit.model_evidence.value - integral))
    assert errors[0] < 0.2
    assert errors[1] < 0.03
    assert errors[1] < errors[0]


def test_the_evidence_names_what_was_fitted_and_leaves_out_what_was_given(rng):
    X, t = waves(rng, 40)
    fit = fit_map(X, t, SquaredExponential(ard=False) + Noise(), fixed={"log w": -1.0}, starts=1)
    assert fit.evidence.maximised == fit.model_evidence.integrated == ("log v0", "log r2")


def test_without_a_prior_there_is_no_model_evidence(rng):
    X, t = waves(rng, 30)
    fit = fit_map(X, t, SquaredExponential() + Noise(), prior=None, starts=1)
    assert np.isnan(fit.model_evidence.value)


def test_lengths_carry_the_uncertainty_of_their_weights(rng):
    X, t = waves(rng, 60)
    fit = fit_map(X, t, starts=1)
    table, std = fit.relevance, fit.theta_std[2:4]
    np.testing.assert_allclose(table.length, np.exp(-0.5 * fit.theta[2:4]))
    np.testing.assert_allclose(table["std"], 0.5 * std, rtol=1e-5)
    np.testing.assert_allclose(np.log(table.upper / table.length), 1.96 * 0.5 * std, rtol=1e-3)


def test_a_covariance_without_weights_has_no_relevance(rng):
    t = rng.normal(size=10)
    fit = fit_map(np.zeros((10, 1)), t, Noise())
    assert len(fit.relevance) == 0
