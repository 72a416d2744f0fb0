"""Data that leave something undetermined: the evidence procedure answers with numbers and a status.

Guards `bayessel.linear.type2`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel import linear
from tests.oracles import linear as oracles
from tests.problems import linear as problems

DEGENERATE = {
    "constant target": lambda rng: (rng.normal(size=(20, 3)), np.full(20, 4.0)),
    "zero target": lambda rng: (rng.normal(size=(20, 3)), np.zeros(20)),
    "one row": lambda rng: (rng.normal(size=(1, 3)), np.array([2.0])),
    "two rows": lambda rng: (rng.normal(size=(2, 3)), np.array([2.0, -1.0])),
    "two rows, one column": lambda rng: (rng.normal(size=(2, 1)), np.array([2.0, -1.0])),
    "noise-free, more rows": lambda rng: (lambda P: (P, P @ [1.0, 2.0, 3.0]))(rng.normal(size=(20, 3))),
    "noise-free, more columns": lambda rng: (lambda P: (P, P @ np.ones(30)))(rng.normal(size=(10, 30))),
    "zero design": lambda rng: (np.zeros((10, 2)), rng.normal(size=10)),
    "tiny numbers": lambda rng: (1e-60 * rng.normal(size=(10, 2)), 1e-60 * rng.normal(size=10)),
    "huge numbers": lambda rng: (1e60 * rng.normal(size=(10, 2)), 1e60 * rng.normal(size=10)),
}


@pytest.mark.parametrize("method", ["profile", "mackay", "em"])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_data_get_numbers_and_a_status(rng, case, centre, method):
    Phi, t = DEGENERATE[case](rng)
    fit = linear.fit_evidence(Phi, t, centre=centre, method=method)
    assert np.isfinite([fit.log_evidence, fit.alpha, fit.beta, fit.noise_std, fit.intercept]).all()
    assert fit.alpha > 0
    assert fit.beta > 0
    assert np.isfinite(fit.coef).all()
    there = fit.predict(Phi)
    assert np.isfinite([there.mean, there.std]).all()
    assert fit.status in fit.notes or fit.status is bs.Status.CONVERGED
    if method == "profile" and case not in ("tiny numbers", "huge numbers"):
        assert fit.status is not bs.Status.CONVERGED, "nothing was said"


def test_a_constant_target_is_its_mean(rng):
    fit = linear.fit_evidence(rng.normal(size=(20, 3)), np.full(20, 4.0), centre=True)
    assert fit.status is bs.Status.CONSTANT_TARGET
    np.testing.assert_allclose(fit.predict(rng.normal(size=(3, 3))).mean, 4.0, rtol=1e-9)


def test_pure_noise_is_recognised():
    """A target orthogonal to every column: the evidence rises all the way to no signal."""
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.normal(size=(40, 10)))[0]
    t = rng.normal(size=40)
    t -= Q @ (Q.T @ t)
    fit = linear.fit_evidence(Q, t)
    assert fit.status is bs.Status.PURE_NOISE
    np.testing.assert_allclose(fit.coef, 0.0, atol=1e-6)
    np.testing.assert_allclose(fit.noise_std, np.sqrt(np.mean(t**2)), rtol=1e-6)


@pytest.mark.parametrize("method", ["profile", "mackay", "em"])
@pytest.mark.parametrize("centre", [False, True])
def test_noise_free_targets_are_fitted_and_announced(rng, centre, method):
    """The noise level is the rounding of the largest target, and is called a floor."""
    Phi = rng.normal(size=(20, 3))
    t = Phi @ [1.0, 2.0, 3.0]
    fit = linear.fit_evidence(Phi, t, centre=centre, method=method)
    assert fit.status is bs.Status.NOISE_AT_FLOOR
    assert set(fit.notes) == {bs.Status.NOISE_AT_FLOOR, bs.Status.ILL_CONDITIONED}
    np.testing.assert_allclose(fit.noise_std, 4 * problems.EPS * np.abs(t).max(), rtol=1e-9)
    np.testing.assert_allclose(fit.coef, [1, 2, 3], rtol=1e-9)
    noisy = linear.fit_evidence(Phi, t + 0.1 * rng.normal(size=20), centre=centre, method=method)
    assert bs.Status.NOISE_AT_FLOOR not in noisy.notes


@pytest.mark.parametrize("n", [10, 30, 60])
def test_centring_does_not_invent_a_noise_free_model(n):
    """As many gaussians as rows, and a free mean: N - 1 directions are left, and the noise must be judged by those.

    Counting N of them the profile grows like -log(lambda)/2 for ever as lambda falls, and the fit interpolates.
    """
    rng = np.random.default_rng([1, n])
    X = rng.uniform(-1, 1, (n, 8))
    t = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)
    Phi = oracles.radial("gaussian", X, X, 2.0)
    complement = np.linalg.svd(np.ones((1, n)))[2][1:]  # orthonormal rows spanning what is orthogonal to a constant
    grid = np.geomspace(1e-10, 1e10, 800)
    values = oracles.profile(complement @ Phi, complement @ t, grid)
    lam = grid[values.argmax()]
    if lam > 1e-9:
        fit = linear.fit_evidence(Phi, t, centre=True)
        assert lam / 3 < fit.lam < 3 * lam or values.max() - np.interp(np.log(fit.lam), np.log(grid), values) < 1.0


ODD = [range(60), pytest.param(range(60, 900), marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", ODD, ids=["60", "840 more"])
def test_odd_problems_get_finite_fits_and_exact_evidences(seeds):
    """Warnings are errors here: nothing overflows or divides by zero on the way."""
    for seed in seeds:
        Phi, t = problems.odd_problem(seed)
        for centre in (False, True):
            for method in ("profile", "mackay", "em"):
                fit = linear.fit_evidence(Phi, t, centre=centre, method=method)
                assert np.isfinite([fit.log_evidence, fit.alpha, fit.beta, fit.gamma, fit.intercept]).all(), seed
                assert np.isfinite(fit.coef).all(), seed
                there = fit.predict(Phi)
                assert np.isfinite([there.mean, there.std]).all(), seed
                at_floor = bs.Status.NOISE_AT_FLOOR in fit.notes or np.ptp(t) <= 1e-12 * np.abs(t).max()
                if method == "profile" and not at_floor:  # a noise level of rounding has an evidence of rounding
                    exact = oracles.exact_log_evidence(Phi, t, fit.alpha, fit.beta, centre=centre)
                    reach = np.sqrt(fit.beta / fit.alpha) * max(1.0, np.abs(Phi).max())
                    error = oracles.relative(fit.log_evidence, exact, floor=1.0)
                    assert error <= max(1e-8, 10 * problems.EPS * reach), (seed, centre)
