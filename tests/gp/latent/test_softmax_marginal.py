"""Processes for several classes against dense matrices, differences, two classes by log odds, and refits.

Guards `bayessel.gp.latent.softmax_marginal`, `bayessel.likelihoods.softmax`.
"""

import numpy as np
import pytest
from scipy.special import log_softmax

from bayessel.covariance import SquaredExponential
from bayessel.gp.latent.laplace_marginal import LaplaceMarginal
from bayessel.gp.latent.latent_predictor import LatentPredictor
from bayessel.gp.latent.softmax_marginal import SoftmaxMarginal
from bayessel.likelihoods.bernoulli import LogitLabels
from bayessel.likelihoods.softmax import as_classes, mean_log_softmax


def problem(rng, n=30):
    X = rng.normal(size=(n, 2))
    scores = np.stack([X[:, 0], X[:, 1], -X.sum(axis=1)]) + 0.5 * rng.normal(size=(3, n))
    t = scores.argmax(axis=0)
    t[:3] = 0, 1, 2
    return X, t


def test_gradient_is_that_of_differences(rng):
    marginal = SoftmaxMarginal(*problem(rng), None)
    theta = marginal.start() + 0.3 * rng.normal(size=marginal.size)
    value, gradient = marginal.value_and_gradient(theta)
    step = 1e-4
    wanted = [(marginal.value(theta + step * e) - marginal.value(theta - step * e)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(marginal.value(theta), value, rtol=1e-9)


def test_evidence_and_predictions_are_those_of_dense_matrices(rng):
    X, t = problem(rng)
    marginal = SoftmaxMarginal(X, t, SquaredExponential())
    theta = marginal.start() - 0.2
    value = marginal.value(theta)
    n, C, K = len(t), 3, marginal.covariance.matrix(theta, X)
    one = np.eye(C)[t].T
    whole, f = np.kron(np.eye(C), K), np.zeros((C, n))
    for _ in range(100):  # Newton's method on all functions at a time
        pi = np.exp(log_softmax(f, axis=0))
        P = np.vstack([np.diag(p) for p in pi])
        W = np.diag(pi.ravel()) - P @ P.T
        f = np.linalg.solve(np.eye(n * C) + whole @ W, whole @ (W @ f.ravel() + (one - pi).ravel())).reshape(C, n)
    pi = np.exp(log_softmax(f, axis=0))
    a = one - pi  # K⁻¹f at the mode
    height = (one * log_softmax(f, axis=0)).sum() - 0.5 * (a * f).sum()
    np.testing.assert_allclose(value, height - 0.5 * np.linalg.slogdet(np.eye(n * C) + whole @ W)[1], rtol=1e-8)
    new = rng.normal(size=(4, 2))
    across, prior = np.kron(np.eye(C), marginal.covariance.matrix(theta, X, new)), np.exp(theta[0])
    R = W @ np.linalg.inv(np.eye(n * C) + whole @ W)
    covariance = prior * np.eye(4 * C).reshape(C, 4, C, 4) * np.eye(4)[None, :, None, :]
    covariance = covariance - (across.T @ R @ across).reshape(C, 4, C, 4)
    (there,) = LatentPredictor(marginal, theta).function(new)
    np.testing.assert_allclose(there.mean, (a @ marginal.covariance.matrix(theta, X, new)).T, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(there.variance, np.einsum("cndn->ncd", covariance), rtol=1e-6, atol=1e-9)


def test_two_classes_are_those_of_log_odds_with_twice_the_variance(rng):
    X, t = problem(rng)
    t = (t == 1).astype(int)
    two, odds = SoftmaxMarginal(X, t, SquaredExponential()), LaplaceMarginal(X, t, SquaredExponential(), LogitLabels())
    theta = two.start()
    double = theta + np.array([np.log(2.0), 0.0, 0.0])
    np.testing.assert_allclose(two.value(theta), odds.value(double), rtol=1e-8)
    new = rng.normal(size=(5, 2))
    np.testing.assert_allclose(
        LatentPredictor(two, theta)(new).probabilities, LatentPredictor(odds, double)(new).probabilities, atol=2e-4
    )
    np.testing.assert_allclose(two.left_out(theta).log_densities, odds.left_out(double).log_densities, atol=2e-3)


def test_rows_left_out_are_about_those_of_a_refit(rng):
    X, t = problem(rng)
    marginal = SoftmaxMarginal(X, t, None)
    theta = marginal.start() - 0.3
    logs = marginal.left_out(theta).log_densities
    for i in (5, 20):
        keep = np.flatnonzero(np.arange(len(t)) != i)
        there = LatentPredictor(marginal.part(keep), theta)(X[i : i + 1])
        assert abs(logs[i] - np.log(there.probabilities[0, t[i]])) < 0.1


def test_mean_softmax_is_that_of_many_draws(rng):
    mean, root = np.array([[0.5, -1.0, 2.0]]), rng.normal(size=(3, 3))
    f = mean + rng.normal(size=(200_000, 3)) @ root.T
    p = np.exp(log_softmax(f, axis=1))
    found = np.exp(mean_log_softmax(mean, (root @ root.T)[None]))[0]
    error = p.std(axis=0) / np.sqrt(len(p))
    assert (np.abs(found - p.mean(axis=0)) < 4.0 * error + 1e-3).all()
    np.testing.assert_allclose(found.sum(), 1.0)


def test_classes_are_numbered_from_nought():
    assert as_classes([0, 1, 2, 1]).shape == (4, 3)
    for wrong in ([0, 2], [1, 1], [0.5, 1.0]):
        with pytest.raises(ValueError, match="numbers of at least two classes"):
            as_classes(wrong)
