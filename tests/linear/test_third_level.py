"""Integrals over what was maximised or left flat: both precisions, and the bias.

Guards `bayessel.linear.third_level`.
"""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

import bayessel as bs
from bayessel import linear
from bayessel.linear.third_level import model_evidence_quadrature
from tests.oracles import linear as oracles
from tests.problems import linear as problems


@pytest.mark.parametrize("centre", [False, True])
def test_the_third_level_evidence(rng, centre):
    """Two widths: sqrt(2 / gamma) for log alpha, sqrt(2 / (n - gamma)) for log beta; n = N, a free mean takes one."""
    Phi, t = problems.regression_problem(rng, 60, 8)
    fit = linear.fit_evidence(Phi, t, centre=centre)
    exact = oracles.exact(Phi, t, fit.alpha, fit.beta, centre=centre)
    gamma, free = float(exact.gamma) - centre, 60 - centre
    want = float(exact.log_evidence) + 0.5 * np.log(2 / gamma) + 0.5 * np.log(2 / (free - gamma))
    np.testing.assert_allclose(fit.model_evidence, want, rtol=1e-9)


def test_the_evidence_with_a_free_mean_is_an_integral_over_the_bias(rng):
    """Flat prior of density 1 / (sqrt(2 pi) s) on the bias, s the standard deviation of the target."""
    Phi, t = problems.regression_problem(rng, 9, 4)
    Phi, t = Phi - Phi.mean(axis=0), t + 3.0
    alpha, beta = 0.7, 2.0
    top = oracles.log_evidence(Phi, t - t.mean(), alpha, beta)
    middle, scale = t.mean(), 20 / np.sqrt(beta)
    total, _ = quad(
        lambda b: np.exp(oracles.log_evidence(Phi, t - b, alpha, beta) - top), middle - scale, middle + scale, limit=500
    )
    want = top + np.log(total) - 0.5 * np.log(2 * np.pi * np.var(t))
    np.testing.assert_allclose(linear.log_evidence(Phi + 5.0, t, alpha, beta, centre=True), want, rtol=1e-8)
    np.testing.assert_allclose(oracles.exact_log_evidence(Phi + 5.0, t, alpha, beta, centre=True), want, rtol=1e-8)


@pytest.mark.parametrize(("n", "m"), [(60, 8), (10, 3), (12, 12), (4, 1)])
def test_the_exact_third_level_integral_is_the_double_integral(n, m):
    """Brute force over (log lambda, log beta), less log 2 pi as in the approximation."""
    rng = np.random.default_rng([31, n, m])
    Phi, t = problems.regression_problem(rng, n, m)
    fit = linear.fit_evidence(Phi, t)
    lower, upper = 1e-3 * fit.lam, 1e3 * fit.lam
    mu = np.maximum(np.linalg.eigvalsh(Phi @ Phi.T), 0)
    U = np.linalg.eigh(Phi @ Phi.T)[1]
    z2 = (U.T @ t) ** 2
    top = oracles.log_evidence(Phi, t, fit.alpha, fit.beta)

    def density(v: float, u: float) -> float:
        K, b = 1 + mu / np.exp(u), np.exp(v)
        return float(np.exp(-0.5 * (n * np.log(2 * np.pi) - n * v + np.log(K).sum() + b * (z2 / K).sum()) - top))

    def span(u: float) -> tuple[float, float]:
        q = (z2 / (1 + mu / np.exp(u))).sum()
        centre = np.log(n / q)
        return centre - 12 * np.sqrt(2 / n) - 6, centre + 12 * np.sqrt(2 / n)

    total, _ = dblquad(
        density, np.log(lower), np.log(upper), lambda u: span(u)[0], lambda u: span(u)[1], epsabs=0, epsrel=1e-7
    )
    got = model_evidence_quadrature(fit.spectrum, lower, upper)
    np.testing.assert_allclose(got.value, top + np.log(total) - np.log(2 * np.pi), atol=2e-5)


def test_the_gaussian_approximation_is_good_where_it_should_be():
    """Many well-determined parameters and many spare rows: within a tenth of a nat of the integral."""
    rng = np.random.default_rng(5)
    Phi, t = problems.regression_problem(rng, 200, 60)
    fit = linear.fit_evidence(Phi, t)
    exact = model_evidence_quadrature(fit.spectrum).value
    assert abs(fit.model_evidence - exact) < 0.1
    assert fit.status is bs.Status.CONVERGED


def test_few_well_determined_parameters_are_announced():
    rng = np.random.default_rng(6)
    Phi, t = problems.regression_problem(rng, 50, 2)
    assert bs.Status.FEW_WELL_DETERMINED in linear.fit_evidence(Phi, t).notes


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"points": 0}, ValueError, "points must be at least 3, got 0"),
        ({"points": 1}, ValueError, "points must be at least 3, got 1"),
        ({"points": 2.5}, TypeError, "points must be an integer"),
        ({"lower": -1.0}, ValueError, "lower must be positive and finite, got -1.0"),
        ({"lower": np.nan}, ValueError, "lower must be positive and finite"),
        ({"upper": np.inf}, ValueError, "upper must be positive and finite"),
        ({"upper": "1"}, TypeError, "upper must be a positive number"),
        ({"lower": 2.0, "upper": 1.0}, ValueError, "lower must be less than upper"),
    ],
)
def test_bad_ranges_of_the_integral_are_refused(rng, change, error, message):
    spectrum = linear.Spectrum.of(*problems.regression_problem(rng, 20, 3))
    with pytest.raises(error, match=message):
        model_evidence_quadrature(spectrum, **change)


def test_the_integral_wants_a_factorisation(rng):
    fit = linear.fit_evidence(*problems.regression_problem(rng, 20, 3))
    for other in (fit, None, np.ones((3, 3))):
        with pytest.raises(TypeError, match=r"needs a Spectrum \(fit.spectrum"):
            model_evidence_quadrature(other)


def test_no_row_beside_the_bias_is_said(rng):
    found = model_evidence_quadrature(linear.Spectrum.of(rng.normal(size=(1, 2)), [3.0], centre=True))
    assert np.isnan(found.value) and found.status is bs.Status.TOO_FEW_ROWS


@pytest.mark.parametrize("ends", [{"lower": 1e-300}, {"upper": 1e300}])
def test_a_range_beyond_all_reason_is_refused(rng, ends):
    spectrum = linear.Spectrum.of(1e30 * rng.normal(size=(9, 2)), rng.normal(size=9))
    with pytest.raises(ValueError, match="must lie within 1e-200 and 1e200"):
        model_evidence_quadrature(spectrum, **ends)


def test_a_fit_with_few_well_determined_parameters_is_integrated(rng):
    """Between 1 and 3 of them the Gaussian approximation is off by tenths of a nat, and the quadrature is reported."""
    Phi = rng.normal(size=(30, 2))
    few = linear.fit_evidence(Phi, Phi @ [2.0, -1.0] + 0.1 * rng.normal(size=30))
    assert 1.0 < few.gamma < 3.0
    exact = model_evidence_quadrature(few.spectrum).value
    approximate = few.log_evidence + 0.5 * np.log(2.0 / few.gamma) + 0.5 * np.log(2.0 / (30 - few.gamma))
    assert few.model_evidence == exact and abs(exact - approximate) > 1e-3


@pytest.mark.parametrize("factor", [1.5, 2.0, 5.0, 20.0])
def test_a_range_that_cuts_the_evidence_off_is_said(factor):
    """Twentieths of the range at both ends, against a sum of the dense profile over it; said beyond 5 %."""
    Phi, t = problems.regression_problem(np.random.default_rng(4), 40, 6)
    lam = linear.fit_evidence(Phi, t).lam
    places = np.linspace(-1.0, 1.0, 4001)
    mu, U = np.linalg.eigh(Phi @ Phi.T)
    K = 1.0 + np.maximum(mu, 0.0) / (lam * factor**places)[:, None]
    logs = -0.5 * len(t) * np.log(((U.T @ t) ** 2 / K).sum(axis=1)) - 0.5 * np.log(K).sum(axis=1)
    weights = np.exp(logs - logs.max())
    share = float(weights[np.abs(places) > 0.9].sum() / weights.sum())
    found = model_evidence_quadrature(linear.Spectrum.of(Phi, t), lam / factor, lam * factor)
    np.testing.assert_allclose(found.edge_mass, share, rtol=0.02)
    assert found.status is (bs.Status.AT_BOUND if share > 0.05 else bs.Status.CONVERGED)
