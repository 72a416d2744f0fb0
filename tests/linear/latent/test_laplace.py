"""Mode, Laplace evidence and its gradient against scipy's optimiser, quadrature, closed forms and refits.

Guards `bayessel.linear.latent.laplace`.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.optimize import minimize

import bayessel as bs
from bayessel.likelihoods import LIKELIHOODS
from bayessel.likelihoods.bernoulli import LogitLabels
from bayessel.likelihoods.counts import PoissonCounts
from bayessel.likelihoods.normal_noise import NormalNoise
from bayessel.linear.latent.laplace import LatentTargets, find_mode

NONE = np.zeros(0)


def drawn(rng, name, n=40, k=5, count=False):
    """Targets of a likelihood given a linear function, columns and log precisions."""
    likelihood = LIKELIHOODS[name]()
    A, log_alpha = rng.normal(size=(n, k)), rng.normal(size=k)
    f = np.clip(A @ rng.normal(size=k), -4.0, 3.0)
    phi = likelihood.start(f)
    counts = rng.uniform(0.5, 2.0, n) if count else None
    return LatentTargets(likelihood, likelihood.draw(f, phi, rng), counts), A, log_alpha, phi


def negative_log_joint(targets, G, phi):
    return lambda z: 0.5 * z @ z - targets.derivatives(G @ z, phi).value.sum()


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("shape", [(40, 5), (6, 15)], ids=str)
def test_the_mode_is_what_another_optimiser_finds(rng, name, shape):
    targets, A, log_alpha, phi = drawn(rng, name, *shape)
    G = A * np.exp(-0.5 * log_alpha)
    mode = find_mode(targets, G, phi)
    assert mode.converged
    function = negative_log_joint(targets, G, phi)
    other = minimize(function, mode.z + 0.1 * rng.normal(size=len(mode.z)), method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(mode.z, other.x, atol=2e-5)
    assert function(mode.z) <= other.fun + 1e-9
    np.testing.assert_allclose(mode.log_joint, -function(mode.z), rtol=1e-12)


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("count", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("shape", [(40, 5), (6, 15)], ids=str)
def test_the_gradient_is_that_of_central_differences(rng, name, count, shape):
    targets, A, log_alpha, phi = drawn(rng, name, *shape, count)

    def value(log_alpha, phi):
        return find_mode(targets, A * np.exp(-0.5 * log_alpha), phi).log_evidence

    by_columns, by_phi = find_mode(targets, A * np.exp(-0.5 * log_alpha), phi).gradient()
    h = 1e-5
    for j, e in enumerate(np.eye(len(log_alpha))):
        slope = (value(log_alpha + h * e, phi) - value(log_alpha - h * e, phi)) / (2.0 * h)
        np.testing.assert_allclose(by_columns[j], slope, atol=1e-6)
    for j, e in enumerate(np.eye(len(phi))):
        slope = (value(log_alpha, phi + h * e) - value(log_alpha, phi - h * e)) / (2.0 * h)
        np.testing.assert_allclose(by_phi[j], slope, atol=1e-6)


def test_a_gradient_that_forgets_that_the_mode_moves_is_seen(rng):
    targets, A, log_alpha, phi = drawn(rng, "logit")
    mode = find_mode(targets, A * np.exp(-0.5 * log_alpha), phi)
    broken = replace(mode, information_slope=np.zeros(len(A)))
    assert np.abs(mode.gradient()[0] - broken.gradient()[0]).max() > 1e-3


@pytest.mark.parametrize("shape", [(30, 4), (7, 12)], ids=str)
def test_with_normal_noise_the_evidence_is_exact(rng, shape):
    A, t, alpha, beta = rng.normal(size=shape), rng.normal(size=shape[0]), 0.7, 3.0
    mode = find_mode(LatentTargets(NormalNoise(), t), A / np.sqrt(alpha), np.array([-np.log(beta)]))
    np.testing.assert_allclose(mode.log_evidence, bs.linear.log_evidence(A, t, alpha, beta), rtol=1e-8)
    there = bs.linear.posterior(A, t, alpha, beta).predict(A[:3])
    mean, variance = mode.latent(A[:3] / np.sqrt(alpha))
    np.testing.assert_allclose(mean, there.mean, rtol=1e-8)
    np.testing.assert_allclose(variance + 1.0 / beta, there.variance, rtol=1e-8)


def integral(targets, G):
    """log ∫ p(t | Gz) N(z | 0, I) dz of one or two weights by quadrature."""
    mode = find_mode(targets, G, NONE)
    width = 12.0 * np.sqrt(mode.own_variance)
    function = negative_log_joint(targets, G, NONE)

    def relative(*z):
        return np.exp(-function(np.array(z)) - mode.log_joint)

    low, high = mode.z - width, mode.z + width
    if len(mode.z) == 1:
        found = quad(relative, low[0], high[0], epsabs=0.0, epsrel=1e-10, limit=400)[0]
    else:
        found = dblquad(lambda b, a: relative(a, b), low[0], high[0], low[1], high[1], epsrel=1e-8)[0]
    return float(np.log(found)) + mode.log_joint - 0.5 * len(mode.z) * np.log(2.0 * np.pi)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("model", [LogitLabels(), PoissonCounts()], ids=lambda m: m.name)
def test_the_error_of_laplace_falls_with_the_rows(rng, k, model):
    """Against the integral itself: some hundredths of a nat with 20 rows, and about 1/N of that with more."""
    errors = {}
    for n in (20, 320):
        error = []
        for _ in range(3):
            G = rng.normal(size=(n, k))
            targets = LatentTargets(model, model.draw(0.7 * G.sum(axis=1), NONE, rng))
            error.append(abs(find_mode(targets, G, NONE).log_evidence - integral(targets, G)))
        errors[n] = np.mean(error)
    assert 1e-5 < errors[20] < 0.2
    assert errors[320] < 0.25 * errors[20]


def test_rows_that_count_are_copies(rng):
    targets, A, log_alpha, phi = drawn(rng, "logit", 12, 3)
    G, count = A * np.exp(-0.5 * log_alpha), np.arange(12) % 3 + 1
    weighed = find_mode(LatentTargets(targets.likelihood, targets.t, count.astype(float)), G, phi)
    copied = find_mode(LatentTargets(targets.likelihood, np.repeat(targets.t, count)), np.repeat(G, count, axis=0), phi)
    np.testing.assert_allclose(weighed.log_evidence, copied.log_evidence, rtol=1e-12)
    np.testing.assert_allclose(weighed.z, copied.z, rtol=1e-8)


@pytest.mark.parametrize(("name", "close"), [("gaussian", 1e-8), ("logit", 0.02), ("probit", 0.05), ("poisson", 0.1)])
def test_cavities_are_close_to_refits(rng, name, close):
    """Exact with normal noise; of others the site of a row would move, and the error is that of Laplace's method."""
    targets, A, log_alpha, phi = drawn(rng, name, 60, 4)
    G = A * np.exp(-0.5 * log_alpha)
    mode = find_mode(targets, G, phi)
    found, expected = mode.left_out().log_z, []
    for i in range(60):
        keep = np.arange(60) != i
        fewer = find_mode(LatentTargets(targets.likelihood, targets.t[keep]), G[keep], phi)
        mean, variance = fewer.latent(G[i : i + 1])
        expected.append(targets.likelihood.tilted(targets.t[i : i + 1], mean, variance, phi).log_z[0])
    assert np.abs(found - expected).max() < close * max(1.0, np.abs(expected).max())
    assert abs(found.mean() - np.mean(expected)) < 0.2 * close
    plain = targets.derivatives(mode.f, phi).value
    assert abs(plain.mean() - np.mean(expected)) > abs(found.mean() - np.mean(expected))


def test_a_start_far_away_ends_at_the_same_mode(rng):
    for name in ("logit", "poisson", "student"):
        targets, A, _, phi = drawn(rng, name, 30, 3)
        here = find_mode(targets, A, phi)
        for start in (np.full(3, 50.0), np.full(3, 1e6), np.full(3, np.nan)):
            there = find_mode(targets, A, phi, start)
            if name != "student":  # its posterior may have several modes
                np.testing.assert_allclose(there.z, here.z, atol=1e-6)
            assert np.isfinite(there.log_evidence)


def test_labels_that_a_plane_separates_have_a_mode(rng):
    A = rng.normal(size=(30, 2))
    targets = LatentTargets(LogitLabels(), (A[:, 0] > 0.0).astype(float))
    values = [find_mode(targets, scale * A, NONE) for scale in (1.0, 1e2, 1e4, 1e8)]
    assert all(mode.converged and np.isfinite(mode.log_evidence) for mode in values)
    assert values[-1].log_evidence < values[1].log_evidence
