"""Processes with uneven noise against dense matrices, differences, even noise and refits.

Guards `bayessel.gp.latent.uneven_noise_marginal`.
"""

import numpy as np
from scipy import optimize, stats

from bayessel.covariance import Noise, SquaredExponential
from bayessel.gp import Marginal
from bayessel.gp.latent.latent_predictor import LatentPredictor
from bayessel.gp.latent.uneven_noise_marginal import UnevenNoiseMarginal


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


def test_evidence_is_that_of_a_plain_search_for_the_mode(rng):
    X, t = problem(rng, 15)
    marginal = UnevenNoiseMarginal(X, t, SquaredExponential(), SquaredExponential())
    theta = marginal.start()
    n, level = len(t), theta[-1]
    K = [SquaredExponential().matrix(theta[2 * k : 2 * k + 2], X) for k in range(2)]
    L = [np.linalg.cholesky(one + 1e-11 * np.eye(n)) for one in K]

    def height(v):
        f, g = L[0] @ v[:n], L[1] @ v[n:]
        return 0.5 * v @ v - stats.norm(f, np.exp(0.5 * (g + level))).logpdf(t).sum()

    end = optimize.minimize(height, np.zeros(2 * n), method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    precision = np.exp(-(L[1] @ end.x[n:]) - level)
    determinants = np.linalg.slogdet(np.eye(n) + K[0] * precision)[1] + np.linalg.slogdet(np.eye(n) + 0.5 * K[1])[1]
    np.testing.assert_allclose(marginal.value(theta), -end.fun - 0.5 * determinants, atol=1e-4)


def test_without_a_second_function_it_is_even_noise(rng):
    X, t = problem(rng)
    marginal = UnevenNoiseMarginal(X, t, SquaredExponential(), SquaredExponential())
    theta = np.array([0.1, 0.2, -40.0, 0.0, -1.0])
    exact = Marginal(X, t, SquaredExponential() + Noise())
    np.testing.assert_allclose(marginal.value(theta), exact.value(theta[[0, 1, 4]]), rtol=1e-9)
    np.testing.assert_allclose(
        marginal.value_and_gradient(theta)[1][[0, 1, 4]], exact.value_and_gradient(theta[[0, 1, 4]])[1], rtol=1e-6
    )


def test_rows_left_out_are_about_those_of_a_refit(rng):
    X, t = problem(rng)
    marginal = UnevenNoiseMarginal(X, t, None)
    theta = marginal.start()
    logs = marginal.left_out(theta).log_densities
    for i in (0, 11, 23):
        keep = np.flatnonzero(np.arange(len(t)) != i)
        there = LatentPredictor(marginal.part(keep), theta)(X[i : i + 1])
        assert abs(logs[i] - there.log_density(t[i : i + 1])[0]) < 0.6
