"""The references of the relevance vector machine are themselves checked, against definitions and sixty digits."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.oracles import linear as oracles
from tests.oracles import rvm_reference as reference
from tests.problems import rvm as rvm_problems


def model(rng, n=25, p=10, k=4):
    """A dictionary, a target, and a model of k columns that is not optimal in any way."""
    F = rng.normal(size=(n, p))
    t = F[:, :3] @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=n)
    return F, t, rng.choice(p, k, replace=False), 10 ** rng.uniform(-2, 2, k), 10 ** rng.uniform(-1, 2)


def wide(rng, n=30, width=3.0):
    """Kernels with weights of a million: no Cholesky factor of C or K exists in double precision."""
    x, F = rvm_problems.kernels(rng, n, width)
    return F, np.sin(7 * x) + 0.05 * rng.normal(size=n), 10 ** rng.uniform(-14, -8, n + 1), 400.0


def test_evidence_is_that_of_sixty_digits(rng):
    for _ in range(5):
        F, t, basis, alpha, beta = model(rng)
        exact = oracles.exact_log_evidence(F[:, basis], t, alpha, beta)
        assert oracles.relative(reference.evidence(F[:, basis], t, alpha, beta), exact) < 1e-13
        assert oracles.relative(float(reference.exact_evidence(F[:, basis], t, alpha, beta)), exact) < 1e-15


def test_evidence_survives_wide_kernels(rng):
    for n, m in ((20, 21), (20, 8), (8, 9)):
        F, t, alpha, beta = wide(rng, n)
        F, alpha = F[:, :m], alpha[:m]
        exact = oracles.exact_log_evidence(F, t, alpha, beta)
        assert oracles.relative(reference.evidence(F, t, alpha, beta), exact) < 1e-7
        assert oracles.relative(float(reference.exact_evidence(F, t, alpha, beta)), exact) < 1e-15


def test_s_and_q_are_their_definitions(rng):
    F, t, basis, alpha, beta = model(rng)
    Cinv = np.linalg.inv(oracles.evidence_covariance(F[:, basis], alpha, beta))
    S, Q = reference.sq(F, t, F[:, basis], alpha, beta)
    np.testing.assert_allclose(S, np.diag(F.T @ Cinv @ F), rtol=1e-11)
    np.testing.assert_allclose(Q, F.T @ Cinv @ t, rtol=1e-10)


@pytest.mark.parametrize("columns", [4, 35], ids=["by QR", "by Cholesky"])
def test_moments_are_those_of_the_posterior(rng, columns):
    F, t, basis, alpha, beta = model(rng, n=60, p=40, k=columns)
    mu, Sigma = oracles.posterior(F[:, basis], t, alpha, beta)
    gamma, mean, free, residual = reference.moments(F[:, basis], t, alpha, beta)
    np.testing.assert_allclose(mean, mu, rtol=1e-9)
    np.testing.assert_allclose(gamma, 1 - alpha * np.diag(Sigma), rtol=1e-9)
    np.testing.assert_allclose(free, len(t) - gamma.sum(), rtol=1e-9)
    np.testing.assert_allclose(residual, t - F[:, basis] @ mu, rtol=1e-8, atol=1e-10)


def test_gains_are_differences_of_dense_evidences(rng):
    """Adding, re-estimating and deleting: every formula against the evidence before and after."""
    seen = {"add": 0, "re-estimate": 0, "delete": 0, "nothing": 0}
    for _ in range(10):
        F, t, basis, alpha, beta = model(rng)
        every = np.full(F.shape[1], np.inf)
        every[basis] = alpha
        before = oracles.log_evidence(F[:, basis], t, alpha, beta)
        gain, new = reference.gains(*reference.sq(F, t, F[:, basis], alpha, beta), every)
        for j in range(F.shape[1]):
            after = every.copy()
            after[j] = new[j]
            kept = np.isfinite(after)
            dense = oracles.log_evidence(F[:, kept], t, after[kept], beta) - before
            np.testing.assert_allclose(gain[j], dense, rtol=1e-8, atol=1e-9)
            kind = (("nothing", "add"), ("delete", "re-estimate"))[int(np.isfinite(every[j]))][int(np.isfinite(new[j]))]
            seen[kind] += 1
    assert min(seen.values()) > 3, seen


def test_the_new_precision_is_the_best_one(rng):
    F, t, basis, alpha, beta = model(rng)
    every = np.full(F.shape[1], np.inf)
    every[basis] = alpha
    gain, new = reference.gains(*reference.sq(F, t, F[:, basis], alpha, beta), every)
    before = oracles.log_evidence(F[:, basis], t, alpha, beta)
    for j in range(F.shape[1]):

        def loss(log_alpha, j=j):
            a = every.copy()
            a[j] = np.exp(log_alpha)
            kept = np.isfinite(a)
            return before - oracles.log_evidence(F[:, kept], t, a[kept], beta)

        best = min((minimize_scalar(loss, bracket=(c - 1, c)) for c in (-4.0, 0.0, 4.0)), key=lambda r: r.fun)
        assert gain[j] >= -best.fun - 1e-8
        if np.isfinite(new[j]):
            np.testing.assert_allclose(best.x, np.log(new[j]), atol=1e-4)


FITS = {
    "MacKay": lambda F, t, **options: reference.mackay(F, t, tol=0.0, **options),
    "MacKay, 1/P": lambda F, t, **options: reference.mackay(F, t, start=1 / F.shape[1], tol=0.0, **options),
    "greedy": lambda F, t, **options: reference.greedy(F, t, tol=1e-12, **options),
    "greedy, patient with the noise": lambda F, t, **options: reference.greedy(F, t, every=5, tol=1e-12, **options),
}


@pytest.mark.parametrize("beta", [None, 9.0])
@pytest.mark.parametrize("fit", FITS)
def test_fits_end_where_the_evidence_is_flat(rng, fit, beta):
    F, t, *_ = model(rng, n=40)
    r = FITS[fit](F, t, beta=beta)
    assert r.converged
    assert {0, 1, 2} <= set(r.basis)

    def value(log_precisions):
        free = log_precisions if beta is None else np.append(log_precisions, np.log(beta))
        return oracles.log_evidence(F[:, r.basis], t, np.exp(free[:-1]), np.exp(free[-1]))

    at = np.log(np.append(r.alpha, r.beta) if beta is None else r.alpha)
    np.testing.assert_allclose(oracles.central_difference(value, at, 1e-3), 0, atol=2e-4)
    np.testing.assert_allclose(r.log_evidence, value(at), rtol=1e-10)


def test_fits_agree_where_there_is_one_optimum(rng):
    """Orthogonal columns, known noise: each column is relevant or not by itself, alpha = s^2 / (q^2 - s)."""
    F = np.linalg.qr(rng.normal(size=(40, 12)))[0]
    t = F[:, :4] @ [5.0, -4.0, 3.0, 2.0] + 0.5 * rng.normal(size=40)
    beta, z = 4.0, F.T @ t
    relevant = np.flatnonzero(beta * z**2 > 1)
    for fit in FITS.values():
        r = fit(F, t, beta=beta)
        np.testing.assert_array_equal(r.basis, relevant)
        np.testing.assert_allclose(r.alpha, beta / (beta * z[relevant] ** 2 - 1), rtol=1e-4)


def test_a_start_is_never_made_worse(rng):
    F, t, *_ = model(rng, n=40)
    first = reference.mackay(F, t, max_steps=3)
    unmoved = reference.greedy(F, t, start=first, max_steps=0)
    np.testing.assert_array_equal(unmoved.basis, first.basis)
    np.testing.assert_array_equal(unmoved.alpha, first.alpha)
    assert unmoved.beta == first.beta
    later = reference.greedy(F, t, start=first)
    assert later.log_evidence > first.log_evidence


def test_the_experiment_is_the_one_described():
    x, t, truth = reference.cosine(3)
    assert len(x) == 200 and x[0] == -3 and x[-1] == 3 and np.ptp(np.diff(x)) < 1e-12
    np.testing.assert_array_equal(truth, np.cos(x**2))
    assert 0.09 < np.abs(t - truth).max() <= 0.1
    assert len(reference.COSINE_LOG_RHO) == 19
    F = reference.cosine_design(x, -0.5)
    assert F.shape == (200, 201) and np.all(F[:, -1] == 1)
    np.testing.assert_allclose(F[10, 30], np.exp(-((x[10] - x[30]) ** 2) / (2 * 10**-1.0)), rtol=1e-12)
