"""Signal and noise of given columns integrated out: against quadrature of dense densities, and fits without a row.

Guards `bayessel.linear.integrated.fixed_dictionary`.
"""

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal, norm

from bayessel.basis import UserDictionary
from bayessel.fit import Status
from bayessel.linear.integrated.fixed_dictionary import fit_integrated_dictionary


def two(X):
    return np.column_stack([1e3 * X[:, 0], X[:, 0] ** 2])


COLUMNS = UserDictionary(two, ["line", "square"])


@pytest.fixture
def rows(rng):
    x = rng.uniform(-1.0, 1.0, size=(12, 1))
    return x, 1.5 * x[:, 0] - x[:, 0] ** 2 + 0.5 * rng.normal(size=12)


def test_the_evidence_is_the_integral_over_signal_and_noise(rows):
    """Both columns divided by their root mean squares, the function of variance rho in units of the noise's."""
    x, t = rows
    Z = two(x) / np.sqrt((two(x) ** 2).mean(axis=0))
    shape = Z @ Z.T / 2.0

    def joint(log_beta, log_rho):
        C = (np.eye(12) + np.exp(log_rho) * shape) * np.exp(-log_beta)
        return multivariate_normal(np.zeros(12), C).pdf(t) * norm(np.log(5.0), 2.5).pdf(log_rho)

    whole = dblquad(joint, -6.0, 12.0, -4.0, 8.0, epsabs=1e-13, epsrel=1e-4)[0]
    found = fit_integrated_dictionary(x, t, COLUMNS, centre=False)
    assert found.evidence.kind == "grid"
    np.testing.assert_allclose(found.log_evidence, np.log(whole), atol=2e-3)


def test_units_of_columns_change_nothing(rows):
    x, t = rows
    other = UserDictionary(lambda X: two(X) * [1e-6, 40.0], ["a", "b"])
    a, b = (fit_integrated_dictionary(x, t, D) for D in (COLUMNS, other))
    np.testing.assert_allclose(b.log_evidence, a.log_evidence, rtol=1e-10)
    np.testing.assert_allclose(b.coef * [1e-6, 40.0], a.coef, rtol=1e-8)
    np.testing.assert_allclose(b.predict(x).std, a.predict(x).std, rtol=1e-8)
    np.testing.assert_allclose(two(x) @ a.coef + a.intercept, a.posterior.predict(two(x)).mean, rtol=1e-8)


def test_an_offset_of_the_target_is_the_bias(rows):
    x, t = rows
    a, b = (fit_integrated_dictionary(x, one, COLUMNS) for one in (t, t + 50.0))
    np.testing.assert_allclose(b.predict(x).mean, a.predict(x).mean + 50.0, rtol=1e-8)
    np.testing.assert_allclose(b.log_evidence, a.log_evidence, rtol=1e-8)


def test_a_row_left_out_is_one_predicted_by_a_refit(rows):
    """The scale of the columns moves a little with the row: most of a nat stays."""
    x, t = rows
    found = fit_integrated_dictionary(x, t, COLUMNS).leave_one_out()
    for n in (0, 4, 11):
        rest = np.delete(np.arange(12), n)
        refit = fit_integrated_dictionary(x[rest], t[rest], COLUMNS).predict(x[[n]])
        np.testing.assert_allclose(found.log_densities[n], refit.log_density(t[[n]])[0], atol=0.15)
        np.testing.assert_allclose(t[n] - found.errors[n], refit.mean[0], atol=0.1 * t.std())


def test_many_rows_leave_one_out_alike(rng):
    """Without left singular vectors the complement is measured row by row."""
    x = rng.uniform(-1.0, 1.0, size=(1600, 1))
    t = x[:, 0] + 0.5 * rng.normal(size=1600)
    fit = fit_integrated_dictionary(x, t, COLUMNS)
    near = fit.leave_one_out()
    np.testing.assert_allclose(near.log_densities.mean(), norm(0.0, 0.5).logpdf(t - x[:, 0]).mean(), atol=0.01)


@pytest.mark.parametrize(
    ("t", "D", "status"),
    [
        (np.ones(6), COLUMNS, Status.CONSTANT_TARGET),
        (np.arange(6.0), UserDictionary(np.ones_like, ["one"]), Status.PURE_NOISE),
    ],
)
def test_where_nothing_varies_the_constant_is_left(t, D, status):
    x = np.linspace(0.0, 1.0, 6)[:, None]
    fit = fit_integrated_dictionary(x, t, D)
    assert fit.status is status and not fit.coef.any()
    np.testing.assert_allclose(fit.predict(x).mean, t.mean())


def test_a_column_that_does_not_vary_has_no_weight(rows):
    x, t = rows
    more = UserDictionary(lambda X: np.column_stack([two(X), np.full(len(X), 3.0)]), ["a", "b", "c"])
    a, b = (fit_integrated_dictionary(x, t, D) for D in (COLUMNS, more))
    assert b.coef[2] == 0.0
    np.testing.assert_allclose(b.log_evidence, a.log_evidence, rtol=1e-10)
