"""Processes with uneven noise against dense matrices, differences, even noise and refits.

Guards `bayessel.gp.latent.uneven_noise_marginal`.
"""

import numpy as np
from scipy import optimize, stats

from bayessel.covariance import Noise, SquaredExponential
from bayessel.gp import Marginal
from bayessel.gp.latent.latent_predictor import LatentPredictor
from bayessel.gp.latent.uneven_noise_marginal import LEAST_NOISE, UnevenNoiseMarginal


def problem(rng, n=30):
    X = rng.uniform(-2.0, 2.0, size=(n, 1))
    return X, np.sin(2.0 * X[:, 0]) + np.exp(X[:, 0] - 1.5) * rng.normal(size=n)


def test_gradient_is_that_of_differences(rng):
    marginal = UnevenNoiseMarginal(*problem(rng), None)
    theta = marginal.start() + 0.3 * rng.normal(size=marginal.size)
    value, gradient = marginal.value_and_gradient(theta)
    step = 1e-4
    moves = step * np.eye(marginal.size)
    wanted = [(marginal.value(theta + move) - marginal.value(theta - move)) / (2 * step) for move in moves]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=2e-4)
    np.testing.assert_allclose(marginal.value(theta), value, rtol=1e-8)


def test_evidence_is_that_of_a_plain_search_for_the_mode_of_the_noise(rng):
    X, t = problem(rng, 15)
    marginal = UnevenNoiseMarginal(X, t, SquaredExponential(), SquaredExponential())
    theta = marginal.start()
    n, level = len(t), theta[-1]
    K_f, K_g = (SquaredExponential().matrix(theta[2 * k : 2 * k + 2], X) for k in range(2))
    L = np.linalg.cholesky(K_g + 1e-11 * np.eye(n))

    def height(v):
        noise = np.diag(np.exp(L @ v + level))
        return 0.5 * v @ v - stats.multivariate_normal(np.zeros(n), K_f + noise).logpdf(t)

    end = optimize.minimize(height, np.zeros(n), method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    determinant = np.linalg.slogdet(np.eye(n) + 0.5 * K_g)[1]
    np.testing.assert_allclose(marginal.value(theta), -end.fun - 0.5 * determinant, atol=1e-4)
    # the same of f: all that is known of it given the noise
    np.testing.assert_allclose(marginal.noise_variances(theta), np.exp(L @ end.x + level), rtol=1e-3)
    C = K_f + np.diag(marginal.noise_variances(theta))
    there = marginal.function(marginal.state(theta), theta, X)
    np.testing.assert_allclose(there.mean[:, 0], K_f @ np.linalg.solve(C, t), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(there.variance[:, 0], np.diag(K_f - K_f @ np.linalg.solve(C, K_f)), rtol=1e-6)
    precise = np.diag(K_g - K_g @ np.linalg.solve(K_g + 2.0 * np.eye(n), K_g))
    np.testing.assert_allclose(there.variance[:, 1], precise, rtol=1e-6)


def test_evidence_of_two_rows_is_near_the_integral(rng):
    # at a common mode of function and noise the noise follows the residuals, and the evidence is further off
    marginal = UnevenNoiseMarginal([[0.0], [0.7]], [0.4, -0.9], SquaredExponential(), SquaredExponential())
    theta = np.array([0.0, 0.5, 0.0, -0.5, -1.0])
    K_f, K_g = (SquaredExponential().matrix(theta[2 * k : 2 * k + 2], marginal.X) for k in range(2))
    x, w = np.polynomial.hermite_e.hermegauss(60)
    z = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2) @ np.linalg.cholesky(K_g).T
    values = [stats.multivariate_normal(np.zeros(2), K_f + np.diag(np.exp(g - 1.0))).pdf(marginal.t) for g in z]
    exact = np.log(np.outer(w, w).ravel() @ values / (2.0 * np.pi))
    assert abs(marginal.value(theta) - exact) < 0.35


def test_without_a_second_function_it_is_even_noise(rng):
    X, t = problem(rng)
    marginal = UnevenNoiseMarginal(X, t, SquaredExponential(), SquaredExponential())
    theta = np.array([0.1, 0.2, -40.0, 0.0, -1.0])
    exact = Marginal(X, t, SquaredExponential() + Noise())
    np.testing.assert_allclose(marginal.value(theta), exact.value(theta[[0, 1, 4]]), rtol=1e-9)
    np.testing.assert_allclose(
        marginal.value_and_gradient(theta)[1][[0, 1, 4]], exact.value_and_gradient(theta[[0, 1, 4]])[1], rtol=1e-6
    )


def test_targets_of_one_value_and_of_nearly_one_have_a_least_noise():
    for last in (0.0, 30.0):
        X, t = np.linspace(-1.0, 1.0, 30)[:, None], np.append(np.zeros(29), last)
        marginal = UnevenNoiseMarginal(X, t, None)
        for level in (-3.0, -60.0, -200.0):
            theta = marginal.start()
            theta[-1] = level
            value, gradient = marginal.value_and_gradient(theta)
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()
            least = LEAST_NOISE * (np.var(t) or 1.0)
            assert (marginal.noise_variances(theta) >= least).all()


def test_rows_left_out_are_about_those_of_a_refit(rng):
    X, t = problem(rng)
    marginal = UnevenNoiseMarginal(X, t, None)
    theta = marginal.start()
    logs = marginal.left_out(theta).log_densities
    for i in (0, 11, 23):
        keep = np.flatnonzero(np.arange(len(t)) != i)
        there = LatentPredictor(marginal.part(keep), theta)(X[i : i + 1])
        assert abs(logs[i] - there.log_density(t[i : i + 1])[0]) < 0.6
