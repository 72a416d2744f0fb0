"""The prior whose top-level mean is unknown: against quadrature over it, differences, and distributions of SciPy.

Guards `bayessel.covariance.prior`.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import approx_fprime

from bayessel.covariance import Prior, Standard
from bayessel.covariance.prior import UnknownMeanPrior

GIVEN = Prior.join(Prior.normal(-1.0, 2.0), Prior.inverse_gamma(0.5, 0.125, 2), Prior.inverse_gamma(1.5, 0.7))


def by_quadrature(theta, a):
    """log p(θ) with ρ integrated numerically, from SciPy's distributions."""
    tau, shape, rate = np.exp(-theta[1:]), np.array([0.5, 0.5, 1.5]), np.array([0.125, 0.125, 0.7])

    def joint(log_rho):
        rho = np.exp(log_rho)
        inner = stats.gamma(shape, scale=1.0 / (rho * rate)).logpdf(tau).sum()
        return np.exp(inner + stats.gamma(a, scale=1.0 / a).logpdf(rho) + log_rho)

    # |dτ/dθ| = τ
    return (
        np.log(quad(joint, -30.0, 15.0, limit=400, epsabs=0.0)[0])
        - theta[1:].sum()
        + stats.norm(-1, 2).logpdf(theta[0])
    )


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0])
def test_density_is_the_integral_over_the_unknown_factor(rng, a):
    theta = rng.normal(size=4)
    assert UnknownMeanPrior(GIVEN, a).log_density(theta) == pytest.approx(by_quadrature(theta, a), rel=1e-7)


def test_gradient_and_hessian_are_differences(rng):
    prior, theta = UnknownMeanPrior(GIVEN), rng.normal(size=4)
    np.testing.assert_allclose(
        prior.gradient(theta), approx_fprime(theta, prior.log_density, 1e-6), rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(prior.hessian(theta), approx_fprime(theta, prior.gradient, 1e-6), rtol=1e-4, atol=1e-4)


def test_a_sure_factor_of_one_is_the_prior_given(rng):
    theta = rng.normal(size=4)
    assert UnknownMeanPrior(GIVEN, 1e8).log_density(theta) == pytest.approx(GIVEN.log_density(theta), abs=1e-4)
    normal = Prior.normal(1.0, 3.0, 2)
    assert UnknownMeanPrior(normal).log_density(theta[:2]) == pytest.approx(normal.log_density(theta[:2]), rel=1e-12)


def test_many_long_lengths_make_another_long_one_likelier():
    prior, m = UnknownMeanPrior(Standard().prior(8)), 8
    theta = Standard().start(m)

    def step(others):
        here = theta.copy()
        here[3 : 2 + m] = others
        return prior.gradient(here)[2]

    assert step(-9.0) < step(0.0)


def test_draws_are_of_the_density(rng):
    draws = UnknownMeanPrior(GIVEN, 2.0).draw(rng, 4000)
    # τ rate / a is the ratio of Gamma(shape) to Gamma(a)
    for column, shape, rate in ((1, 0.5, 0.125), (3, 1.5, 0.7)):
        assert stats.kstest(np.exp(-draws[:, column]) * rate / 2.0, stats.betaprime(shape, 2.0).cdf).pvalue > 1e-3
    assert stats.spearmanr(draws[:, 1], draws[:, 2])[0] > 0.1  # one factor for all
    assert stats.kstest(draws[:, 0], stats.norm(-1, 2).cdf).pvalue > 1e-3
    assert UnknownMeanPrior(GIVEN).draw(rng).shape == (4,)


def test_lengths_of_nothing_have_no_density():
    assert UnknownMeanPrior(GIVEN).log_density(np.array([0.0, -800.0, 0.0, 0.0])) == -np.inf
