"""Approximate evidences of latent processes against dense twins, quadrature, refits, and the exact normal case.

Guards `bayessel.gp.latent.latent_process`, `bayessel.gp.latent.laplace_marginal`,
`bayessel.gp.latent.propagation_marginal`, `bayessel.gp.latent.latent_predictor`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from bayessel.covariance import Bias, Linear, Noise, SquaredExponential
from bayessel.fit import Status
from bayessel.gp import Marginal, Predictor
from bayessel.gp.latent import fit_latent_process
from bayessel.gp.latent.laplace_marginal import LaplaceMarginal
from bayessel.gp.latent.latent_predictor import LatentPredictor
from bayessel.gp.latent.latent_process import LatentWorkspace
from bayessel.gp.latent.propagation_marginal import PropagationMarginal
from bayessel.likelihoods import LIKELIHOODS, as_likelihood

SMOOTH = SquaredExponential() + Linear() + Bias()
BOTH = (LaplaceMarginal, PropagationMarginal)
CASES = [
    (name, kind) for name in LIKELIHOODS for kind in BOTH if kind is LaplaceMarginal or as_likelihood(name).log_concave
]


def problem(name, rng, n=30, m=2):
    X = rng.normal(size=(n, m))
    f = 1.5 * np.sin(2.0 * X[:, 0])
    likelihood = as_likelihood(name)
    phi = likelihood.start(f)
    return X, likelihood.draw(f, phi, rng), likelihood


def dense(marginal, theta):
    """K and φ, from the covariance's own matrix."""
    k = marginal.n_covariance
    return marginal.covariance.matrix(theta[:k], marginal.X), theta[k:]


@pytest.mark.parametrize("kind", BOTH)
def test_with_normal_noise_everything_is_exact(kind, rng):
    X, t, likelihood = problem("gaussian", rng)
    offset = rng.normal(size=len(t))
    latent = kind(X, t + offset, SMOOTH, likelihood, offset)
    exact = Marginal(X, t, SMOOTH + Noise())
    theta = latent.start() + 0.3
    for a, b in zip(latent.value_and_gradient(theta), exact.value_and_gradient(theta), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)
    new = rng.normal(size=(7, 2))
    there, wanted = LatentPredictor(latent, theta)(new), Predictor(X, t, SMOOTH + Noise(), theta)(new)
    np.testing.assert_allclose(there.mean, wanted.mean, rtol=1e-8)
    np.testing.assert_allclose(there.variance, wanted.variance, rtol=1e-8)
    (found,) = LatentPredictor(latent, theta).left_out()
    left_out = Predictor(X, t, SMOOTH + Noise(), theta).leave_one_out()
    np.testing.assert_allclose(found.log_densities, left_out.log_density(t), rtol=1e-7)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_gradients_are_those_of_differences(name, kind, rng):
    X, t, likelihood = problem(name, rng)
    marginal = kind(X, t, SMOOTH, likelihood, 0.3 * rng.normal(size=len(t)))
    theta = marginal.start() + 0.4 * rng.normal(size=marginal.size)
    value, gradient = marginal.value_and_gradient(theta)
    np.testing.assert_allclose(marginal.value(theta), value, rtol=1e-9)
    step, wanted = 1e-4, []
    for j in range(len(theta)):
        move = step * (np.arange(len(theta)) == j)
        wanted.append((marginal.value(theta + move) - marginal.value(theta - move)) / (2.0 * step))
    np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-4)
    assert marginal.status is Status.CONVERGED


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_laplace_is_that_of_a_plain_search_for_the_mode(name, rng):
    X, t, likelihood = problem(name, rng, n=15)
    marginal = LaplaceMarginal(X, t, SMOOTH, likelihood)
    theta = marginal.start() - 0.5
    K, phi = dense(marginal, theta)
    L = np.linalg.cholesky(K + 1e-12 * np.eye(len(t)))

    def height(v):
        f = L @ v
        found = likelihood.derivatives(t, f, phi)
        return 0.5 * v @ v - found.value.sum(), v - L.T @ found.slope

    end = optimize.minimize(height, np.zeros(len(t)), jac=True, method="BFGS", options={"gtol": 1e-9})
    W = likelihood.information(t, L @ end.x, phi).value
    wanted = -end.fun - 0.5 * np.linalg.slogdet(np.eye(len(t)) + K * W)[1]
    np.testing.assert_allclose(marginal.value(theta), wanted, rtol=1e-7)


def test_the_mode_under_small_noise_is_found_from_far_away(rng):
    """Steps by the expected information are a part of 1e-5 of the way where residuals are 1e5 times the noise."""
    X = rng.uniform(-2.0, 2.0, size=(20, 1))
    t = np.sin(2.0 * X[:, 0])
    marginal = LaplaceMarginal(X, t, SMOOTH, as_likelihood("student"))
    theta = marginal.start()
    theta[-2] = 2.0 * np.log(1e-5)
    assert marginal.value(theta) > 20.0 * 3.0
    assert marginal.status is Status.CONVERGED
    np.testing.assert_allclose(marginal.marginals(theta).mean, t, atol=1e-4)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_counts_left_out_are_about_those_of_the_other_rows(name, rng):
    X, t = rng.uniform(-1.0, 1.0, size=(14, 1)), rng.poisson(4.0, size=14).astype(float)
    t[3] = 15.0
    fit = fit_latent_process(X, t, name, Bias(), offset=np.full(14, 0.3))
    left_out = fit.leave_one_out()
    for i in (0, 3, 9):
        keep = np.arange(14) != i
        there = LatentPredictor(fit.marginal.part(np.flatnonzero(keep)), fit.theta)(X[i : i + 1], 0.3)
        np.testing.assert_allclose(t[i] - left_out.errors[i], there.mean[0], rtol=0.1)
        np.testing.assert_allclose(left_out.variances[i], there.variance[0], rtol=0.15)
        np.testing.assert_allclose(left_out.log_densities[i], there.log_density(t[i : i + 1])[0], atol=0.2)


def test_states_are_weighed_without_the_row_left_out(rng):
    """p(t_i | others) is one over the mean of one over p(t_i | others, θ) under the posterior of θ."""
    X, t, likelihood = problem("poisson", rng, n=12, m=1)
    fit = fit_latent_process(X, t, likelihood, Bias() + Linear())
    thetas = fit.theta + np.array([[0.0], [1.5], [-1.5]])
    logs = np.log([0.5, 0.2, 0.3])
    mixed = replace(fit, thetas=thetas, log_weights=logs)
    each = np.array([fit.marginal.left_out(theta).log_densities for theta in thetas])
    wanted = -np.log(np.exp(logs) @ np.exp(-each))
    np.testing.assert_allclose(mixed.leave_one_out().log_densities, wanted, rtol=1e-6)


def slow_propagation(K, t, likelihood, phi, rounds=60):
    """Site after site, with the posterior computed anew by inverses after each."""
    n = len(t)
    tau, nu = np.zeros(n), np.zeros(n)
    for _ in range(rounds):
        for i in range(n):
            S = K - K @ np.diag(np.sqrt(tau)) @ np.linalg.solve(
                np.eye(n) + np.sqrt(tau)[:, None] * K * np.sqrt(tau), np.diag(np.sqrt(tau)) @ K
            )
            mean = S @ nu
            precision, shift = 1.0 / S[i, i] - tau[i], mean[i] / S[i, i] - nu[i]
            m, v = shift / precision, 1.0 / precision
            # moments by a sum over many points
            f = np.linspace(m - 12.0 * np.sqrt(v), m + 12.0 * np.sqrt(v), 4001)
            w = np.exp(likelihood.derivatives(np.full(len(f), t[i]), f, phi).value) * stats.norm(m, np.sqrt(v)).pdf(f)
            z = w.sum()
            new_mean = w @ f / z
            new_variance = w @ (f - new_mean) ** 2 / z
            tau[i], nu[i] = 1.0 / new_variance - precision, new_mean / new_variance - shift
    S = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    return S @ nu, np.diag(S)


@pytest.mark.parametrize("name", ["probit", "logit", "poisson"])
def test_propagation_ends_where_one_site_at_a_time_does(name, rng):
    X, t, likelihood = problem(name, rng, n=8)
    marginal = PropagationMarginal(X, t, SMOOTH, likelihood)
    theta = marginal.start() - 0.5
    K, phi = dense(marginal, theta)
    mean, variance = slow_propagation(K, t, likelihood, phi, rounds=15)
    found = marginal.marginals(theta)
    np.testing.assert_allclose(found.mean, mean, atol=2e-5)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-4)


@pytest.mark.parametrize("name", ["probit", "logit", "poisson", "negative-binomial"])
def test_one_row_is_exact_under_propagation(name, rng):
    likelihood, t = as_likelihood(name), np.ones(1)
    marginal = PropagationMarginal(np.zeros((1, 1)), t, SMOOTH, likelihood)
    theta = marginal.start()
    K, phi = dense(marginal, theta)
    wanted = likelihood.tilted(t, np.zeros(1), np.diag(K), phi).log_z[0]
    np.testing.assert_allclose(marginal.value(theta), wanted, rtol=1e-9)


@pytest.mark.parametrize("name", ["probit", "logit", "poisson", "student", "negative-binomial"])
def test_two_rows_against_the_integral(name, rng):
    likelihood, X = as_likelihood(name), np.array([[0.0], [0.7]])
    t = np.array([1.0, 0.0])
    theta = LaplaceMarginal(X, t, SMOOTH, likelihood).start() - 0.7
    K, phi = dense(LaplaceMarginal(X, t, SMOOTH, likelihood), theta)
    x = np.linspace(-9.0, 9.0, 801)
    u, v = np.meshgrid(x, x)
    f = np.stack([u, v]).reshape(2, -1)
    L = np.linalg.cholesky(K)
    g = L @ f
    logs = sum(likelihood.derivatives(np.full(g.shape[1], t[i]), g[i], phi).value for i in range(2))
    truth = np.log(np.sum(np.exp(logs - 0.5 * (f**2).sum(axis=0))) * (x[1] - x[0]) ** 2 / (2 * np.pi))
    by_mode = LaplaceMarginal(X, t, SMOOTH, likelihood).value(theta)
    assert abs(by_mode - truth) < 0.3
    if likelihood.log_concave:
        by_moments = PropagationMarginal(X, t, SMOOTH, likelihood).value(theta)
        assert abs(by_moments - truth) < 2e-3
        assert abs(by_moments - truth) < abs(by_mode - truth)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_rows_left_out_are_about_those_of_a_refit(name, kind, rng):
    X, t, likelihood = problem(name, rng)
    marginal = kind(X, t, SMOOTH, likelihood)
    theta = marginal.start() - 0.3
    logs = LatentPredictor(marginal, theta).left_out()[0].log_densities
    k = marginal.n_covariance
    for i in (0, 7, 20):
        keep = np.arange(len(t)) != i
        others = LatentPredictor(marginal.part(np.flatnonzero(keep)), theta)
        (there,) = others.function(X[i : i + 1])
        wanted = likelihood.tilted(t[i : i + 1], *there, theta[k:]).log_z[0]
        # Student's noise: the information of Fisher is that of a typical row
        tolerance = 0.02 if kind is PropagationMarginal else 0.25
        assert abs(logs[i] - wanted) < tolerance


def test_variances_of_rows_that_say_nothing_keep_their_digits(rng):
    X = rng.normal(size=(12, 2))
    work = LatentWorkspace(X, SMOOTH)
    assert work.covariances(SMOOTH.start(2))
    precisions = np.where(np.arange(12) % 2, 10.0 ** -np.arange(12.0), 2.0)
    assert work.factorise(precisions)
    K = SMOOTH.matrix(SMOOTH.start(2), X)
    root = np.sqrt(precisions)
    B = np.eye(12) + root[:, None] * K * root
    S = K - K * root @ np.linalg.solve(B, root[:, None] * K)
    variances, left = work.invert()
    np.testing.assert_allclose(variances, np.diag(S), rtol=1e-9)
    np.testing.assert_allclose(left, np.diag(np.linalg.inv(B)), rtol=1e-9)


def test_evaluations_do_not_depend_on_what_was_asked_before(rng):
    X, t, likelihood = problem("logit", rng, n=40)
    for kind in BOTH:
        asked, fresh = kind(X, t, None, likelihood), kind(X, t, None, likelihood)
        theta = asked.start()
        asked.value(theta + 6.0)
        asked.value(theta - 3.0)
        np.testing.assert_allclose(asked.value(theta), fresh.value(theta), rtol=1e-7)


def test_refusals(rng):
    X, t, likelihood = problem("student", rng)
    with pytest.raises(ValueError, match="log-concave"):
        PropagationMarginal(X, t, None, likelihood)
    with pytest.raises(ValueError, match="no noise term"):
        LaplaceMarginal(X, t, SMOOTH + Noise(), likelihood)
    assert LaplaceMarginal(X, t, None, likelihood).value(np.full(7, 800.0)) == -np.inf
