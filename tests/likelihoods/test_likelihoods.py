"""Likelihoods against their densities in 30 digits: derivatives, integrals over a normal, predictions, draws.

Guards `bayessel.likelihoods.base`, `bayessel.likelihoods.bernoulli`, `bayessel.likelihoods.counts`,
`bayessel.likelihoods.normal_noise`, `bayessel.likelihoods.registry`, `bayessel.likelihoods.student`,
`bayessel.likelihoods.tilted_quadrature`, `bayessel.count_prediction`.
"""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from bayessel.count_prediction import CountPrediction
from bayessel.likelihoods import LIKELIHOODS, as_likelihood
from bayessel.likelihoods.tilted_quadrature import tilted_by_quadrature

mp.mp.dps = 30

# densities written from their definitions, in mpmath: (t, f, φ) -> log p
TWINS = {
    "gaussian": lambda t, f, phi: -((t - f) ** 2) / (2 * mp.e ** phi[0]) - mp.log(2 * mp.pi * mp.e ** phi[0]) / 2,
    "student": lambda t, f, phi: _student(t - f, mp.e ** phi[0], 2 + mp.e ** phi[1]),
    "logit": lambda t, f, phi: -mp.log1p(mp.e ** (-(2 * t - 1) * f)),
    "probit": lambda t, f, phi: mp.log(mp.erfc(-(2 * t - 1) * f / mp.sqrt(2)) / 2),
    "poisson": lambda t, f, phi: t * f - mp.e**f - mp.loggamma(t + 1),
    "negative-binomial": lambda t, f, phi: _negative_binomial(t, mp.e**f, mp.e ** phi[0]),
}
TARGETS = {
    "logit": (0.0, 1.0),
    "probit": (0.0, 1.0),
    "poisson": (0.0, 3.0, 40.0),
    "negative-binomial": (0.0, 3.0, 40.0),
}
PARAMETERS = {
    "gaussian": ([-1.0], [2.0]),
    "student": ([-1.0, 0.5], [0.3, -2.0], [1.0, 6.0]),
    "negative-binomial": ([0.3], [-2.0], [5.0]),
}
CASES = [
    (name, t, phi)
    for name in LIKELIHOODS
    for t in TARGETS.get(name, (-0.7, 25.0))
    for phi in PARAMETERS.get(name, ([],))
]


def _student(e, variance, nu):
    constant = mp.loggamma((nu + 1) / 2) - mp.loggamma(nu / 2) - mp.log(nu * mp.pi * variance) / 2
    return constant - (nu + 1) / 2 * mp.log1p(e**2 / (nu * variance))


def _negative_binomial(t, mean, r):
    choose = mp.loggamma(t + r) - mp.loggamma(r) - mp.loggamma(t + 1)
    return choose + t * mp.log(mean / (mean + r)) + r * mp.log(r / (mean + r))


def twin(name, t, phi):
    """log p as a function of f and, if asked, of moved parameters."""
    return lambda f, *move: TWINS[name](
        mp.mpf(t),
        f,
        [mp.mpf(p) + m for p, m in zip(phi, move or phi, strict=False)] if move else [mp.mpf(p) for p in phi],
    )


def test_every_likelihood_has_a_twin():
    assert set(TWINS) == set(LIKELIHOODS)


@pytest.mark.parametrize(("name", "t", "phi"), CASES)
def test_derivatives(name, t, phi):
    places = np.array([-60.0, -31.0, -29.0, -8.0, -1.3, 0.0, 0.4, 3.0, 9.0])
    likelihood = as_likelihood(name)
    found = likelihood.derivatives(np.full(len(places), t), places, np.array(phi))
    for i, f in enumerate(places):
        wanted = [mp.diff(twin(name, t, phi), mp.mpf(f), n) for n in range(4)]
        got = [found.value[i], found.slope[i], -found.curvature[i], found.third[i]]
        np.testing.assert_allclose(got[:3], [float(w) for w in wanted[:3]], rtol=1e-9, atol=1e-11, err_msg=str(f))
        np.testing.assert_allclose(got[3], float(wanted[3]), rtol=1e-6, atol=1e-10, err_msg=str(f))


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_information_is_positive_and_its_slope_that_of_differences(name):
    likelihood, f = as_likelihood(name), np.linspace(-3.0, 3.0, 7)
    t, phi = np.full(7, TARGETS.get(name, (0.3,))[-1]), np.array(PARAMETERS.get(name, ([],))[0])
    found = likelihood.information(t, f, phi)
    assert (found.value > 0.0).all()
    step = 1e-5
    up, down = (likelihood.information(t, f + side * step, phi).value for side in (1.0, -1.0))
    np.testing.assert_allclose(found.slope, (up - down) / (2 * step), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("phi", PARAMETERS["student"])
def test_information_of_heavy_tails_is_the_expected_curvature(phi):
    likelihood, phi = as_likelihood("student"), np.array(phi)
    std, nu = np.exp(0.5 * phi[0]), 2.0 + np.exp(phi[1])
    # equal steps of a variable in which the tails fall exponentially
    u = np.linspace(-30.0, 30.0, 200_001)
    x = np.sinh(u)
    curvature = likelihood.derivatives(std * x, np.zeros(len(x)), phi).curvature
    expected = np.trapezoid(stats.t(nu).pdf(x) * curvature * np.cosh(u), u)
    np.testing.assert_allclose(expected, likelihood.information(np.zeros(1), np.zeros(1), phi).value[0], rtol=1e-8)


@pytest.mark.parametrize(("name", "t", "phi"), [case for case in CASES if case[2]])
def test_parameter_derivatives(name, t, phi):
    likelihood, f, phi = as_likelihood(name), np.array([-1.2, 0.4, 2.5]), np.array(phi)
    t, step = np.full(3, t), 1e-5
    found = likelihood.parameter_derivatives(t, f, phi)
    for j in range(len(phi)):
        move = step * (np.arange(len(phi)) == j)
        for part, of in (
            (found.value, lambda p: likelihood.derivatives(t, f, p).value),
            (found.slope, lambda p: likelihood.derivatives(t, f, p).slope),
            (found.information, lambda p: likelihood.information(t, f, p).value),
        ):
            wanted = (of(phi + move) - of(phi - move)) / (2 * step)
            np.testing.assert_allclose(part[j], wanted, rtol=2e-6, atol=1e-7)


# a wide normal against an edge, a narrow one, one far away
NORMALS = [(0.3, 1.0), (-4.0, 25.0), (2.0, 1e-4), (30.0, 100.0), (-1.0, 400.0)]


@pytest.mark.parametrize(("name", "t", "phi"), CASES)
@pytest.mark.parametrize(("mean", "variance"), NORMALS)
def test_integrals_over_a_normal(name, t, phi, mean, variance):
    if name in ("poisson", "negative-binomial") and mean > 10.0:
        mean = 3.0
    likelihood = as_likelihood(name)
    found = likelihood.tilted(np.array([t]), np.array([mean]), np.array([variance]), np.array(phi))
    # a plain sum over 400 000 points, where the integrand is; its terms are those that mpmath has checked
    sd = np.sqrt(variance)
    peak = float(found.slope[0]) * variance + mean
    f = np.linspace(min(mean, peak) - 12 * sd, max(mean, peak) + 12 * sd, 400_001)
    logs = likelihood.derivatives(np.full(len(f), t), f, np.array(phi)).value + stats.norm(mean, sd).logpdf(f)
    top = logs.max()
    terms, z = np.exp(logs - top), (f - mean) / sd
    zero, one, two = (terms @ z**k for k in range(3))
    shift, square = one / zero, two / zero
    np.testing.assert_allclose(found.log_z[0], np.log(zero * (f[1] - f[0])) + top, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.slope[0], shift / sd, rtol=1e-6, atol=1e-7)
    curvature = (1 - (square - shift**2)) / variance
    np.testing.assert_allclose(found.curvature[0], curvature, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "t", "phi"), [case for case in CASES if case[2]])
def test_integrals_move_with_the_parameters_as_differences_say(name, t, phi):
    likelihood, phi = as_likelihood(name), np.array(phi)
    t, mean, variance = np.full(2, t), np.array([0.5, 2.0]), np.array([0.7, 9.0])
    found = likelihood.tilted(t, mean, variance, phi)
    for j in range(len(phi)):
        move = 1e-5 * (np.arange(len(phi)) == j)
        up, down = (likelihood.tilted(t, mean, variance, phi + side * move).log_z for side in (1.0, -1.0))
        np.testing.assert_allclose(found.parameters[j], (up - down) / 2e-5, rtol=1e-5, atol=1e-7)


def test_closed_forms_agree_with_the_quadrature(rng):
    mean, variance, phi = rng.normal(size=5), rng.exponential(size=5), np.array([-0.5])
    for name, t in (("probit", np.array([0.0, 1.0, 1.0, 0.0, 1.0])), ("gaussian", rng.normal(size=5))):
        likelihood = as_likelihood(name)
        used = phi[: len(likelihood.names)]
        by_sums = tilted_by_quadrature(
            lambda f, one=likelihood, t=t, p=used: one.derivatives(t[:, None], f, p)[:3], mean, variance
        )
        closed = likelihood.tilted(t, mean, variance, used)
        for a, b in zip(by_sums[:3], closed[:3], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_probabilities_of_both_labels_sum_to_one_and_are_those_of_integrals():
    mean, variance = np.array([-3.0, 0.0, 5.0]), np.array([0.5, 4.0, 50.0])
    for name, kernel in (("logit", stats.logistic.cdf), ("probit", stats.norm.cdf)):
        found = as_likelihood(name).predict(mean, variance, np.zeros(0)).probabilities
        x = np.linspace(-12.0, 12.0, 20001)
        weight = stats.norm.pdf(x)
        for i in range(3):
            p = np.trapezoid(kernel(mean[i] + np.sqrt(variance[i]) * x) * weight, x)
            np.testing.assert_allclose(found[i], [1 - p, p], atol=1e-9)


def test_student_predictions_are_those_of_scipy_without_doubt_of_the_function():
    phi = np.array([0.4, 0.1])
    nu, std = 2.0 + np.exp(0.1), np.exp(0.2)
    there = as_likelihood("student").predict(np.array([1.5]), np.zeros(1), phi)
    truth = stats.t(nu, loc=1.5, scale=std)
    for y in (-300.0, -2.0, 1.5, 4.0, 60.0):
        np.testing.assert_allclose(there.log_density([y]), truth.logpdf(y), atol=1e-6)
    np.testing.assert_allclose(there.quantile([0.05, 0.5, 0.99])[:, 0], truth.ppf([0.05, 0.5, 0.99]), rtol=1e-6)
    np.testing.assert_allclose(there.mean, [1.5])


@pytest.mark.parametrize("nu", [2.05, 3.0, 6.0, 40.0])
def test_student_predictions_have_their_tails_as_far_as_targets_lie(nu):
    there = as_likelihood("student").predict(np.zeros(6), np.zeros(6), np.array([0.0, np.log(nu - 2.0)]))
    y = np.array([0.3, 5.0, 300.0, 1e5, -1e7, 1e11])
    wrong = there.log_density(y) - stats.t(nu).logpdf(y)
    assert (np.abs(wrong) < [1e-5, 1e-5, 1e-4, 0.02, 0.1, 0.5]).all()
    np.testing.assert_allclose(there.quantile(0.001)[0], stats.t(nu).ppf(0.001), rtol=1e-5)


@pytest.mark.parametrize("phi", PARAMETERS["student"])
def test_bounds_lie_below_the_density_and_touch_it(phi):
    likelihood, t, f = as_likelihood("student"), np.array([25.0]), np.array([0.4])
    found = likelihood.derivatives(t, f, np.array(phi))
    precision = likelihood.bounding(t, f, np.array(phi))
    for moved in (-30.0, -1.0, 1e-3, 0.5, 24.0, 60.0):
        bound = found.value + found.slope * moved - 0.5 * precision * moved**2
        assert bound <= likelihood.derivatives(t, f + moved, np.array(phi)).value + 1e-12


COUNTS = [
    ("poisson", [], lambda rate: stats.poisson(rate)),
    ("negative-binomial", [0.7], lambda rate: stats.nbinom(np.exp(0.7), 1 / (1 + rate / np.exp(0.7)))),
]


@pytest.mark.parametrize(("name", "phi", "truth"), COUNTS)
def test_counts_of_a_known_rate_are_those_of_scipy(name, phi, truth):
    rate = np.array([0.2, 7.0, 900.0])
    there = as_likelihood(name).predict(np.log(rate), np.zeros(3), np.array(phi))
    y = np.array([0.0, 9.0, 850.0])
    np.testing.assert_allclose(there.log_density(y), truth(rate).logpmf(y), rtol=1e-9)
    np.testing.assert_allclose(there.log_cdf(y), truth(rate).logcdf(y), rtol=1e-7)
    np.testing.assert_allclose(there.mean, truth(rate).mean())
    np.testing.assert_allclose(there.std, truth(rate).std())
    for level in (0.025, 0.5, 0.9):
        np.testing.assert_allclose(there.quantile(level), truth(rate).ppf(level))
    assert there.log_density([0.5, -1.0, 3.0])[:2].tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize(("name", "phi", "truth"), COUNTS)
def test_counts_of_an_unknown_rate_are_integrals(name, phi, truth):
    mean, variance = np.array([0.5, 3.0, 8.0]), np.array([0.3, 2.0, 0.5])
    there = as_likelihood(name).predict(mean, variance, np.array(phi))
    x = np.linspace(-10.0, 10.0, 200001)
    weight = stats.norm.pdf(x)
    y = np.array([2.0, 30.0, 2500.0])
    for i in range(3):
        rates = truth(np.exp(mean[i] + np.sqrt(variance[i]) * x))
        log_p = np.log(np.trapezoid(rates.pmf(y[i]) * weight, x))
        np.testing.assert_allclose(there.log_density(y)[i], log_p, atol=1e-7)
        np.testing.assert_allclose(np.exp(there.log_cdf(y)[i]), np.trapezoid(rates.cdf(y[i]) * weight, x), atol=1e-7)
    # the same by the integral that engines use
    found = as_likelihood(name).tilted(y, mean, variance, np.array(phi))
    np.testing.assert_allclose(there.log_density(y), found.log_z, atol=1e-7)


def test_quantiles_of_rates_that_are_hardly_known_end():
    there = CountPrediction(np.array([[5.0, 50.0, -30.0]]), np.array([[400.0, 1.0, 1.0]]), np.zeros(1))
    np.testing.assert_allclose(there.median[:2], np.exp([5.0, 50.0]), rtol=5e-3)
    assert there.median[2] == 0.0
    upper = there.quantile(0.95)
    np.testing.assert_allclose(np.log(upper[0]), 5.0 + 20.0 * stats.norm.ppf(0.95), rtol=1e-3)


def test_mixture_of_count_predictions_weighs_its_parts():
    two = CountPrediction(np.log([[2.0], [20.0]]), np.zeros((2, 1)), np.zeros(2), np.log([0.25, 0.75]))
    wanted = 0.25 * stats.poisson(2).pmf(3) + 0.75 * stats.poisson(20).pmf(3)
    np.testing.assert_allclose(np.exp(two.log_density([3.0])), [wanted])
    np.testing.assert_allclose(two.mean, [0.25 * 2 + 0.75 * 20])
    np.testing.assert_allclose(two.variance, [0.25 * (2 + 4) + 0.75 * (20 + 400) - 15.5**2])


def test_mixture_of_mixtures_of_counts_keeps_the_weights_inside():
    inner = CountPrediction(np.log([[2.0], [20.0]]), np.zeros((2, 1)), np.zeros(2), np.log([0.1, 0.9]))
    other = CountPrediction(np.log([[5.0]]), np.zeros((1, 1)), np.zeros(1))
    whole = CountPrediction.mixture([inner, other], np.array([0.4, 0.6]))
    wanted = 0.04 * stats.poisson(2).pmf(3) + 0.36 * stats.poisson(20).pmf(3) + 0.6 * stats.poisson(5).pmf(3)
    np.testing.assert_allclose(np.exp(whole.log_density([3.0])), [wanted])


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_draws_have_the_distribution_of_the_density(name, rng):
    likelihood, phi = as_likelihood(name), np.array(PARAMETERS.get(name, ([],))[0])
    f, n = 0.8, 20000
    drawn = likelihood.draw(np.full(n, f), phi, rng)
    # the mean of any function of draws within four standard errors of its expectation: here of the score, nil
    score = likelihood.derivatives(drawn, np.full(n, f), phi).slope
    assert abs(score.mean()) < 4.0 * score.std() / np.sqrt(n)
    square = score**2 - likelihood.derivatives(drawn, np.full(n, f), phi).curvature
    assert abs(square.mean()) < 4.0 * square.std() / np.sqrt(n)


def test_targets_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="labels 0 and 1"):
        as_likelihood("logit").targets([0.0, 2.0])
    with pytest.raises(ValueError, match="counts 0, 1, 2"):
        as_likelihood("poisson").targets([0.5])
    with pytest.raises(ValueError, match="must be one of"):
        as_likelihood("cauchy")
    with pytest.raises(TypeError, match="likelihood must be a name"):
        as_likelihood(3)
