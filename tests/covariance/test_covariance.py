"""Covariance functions against twins written out pair by pair; derivatives against complex steps, exact to rounding.

Guards `bayessel.covariance._squares`, `bayessel.covariance.algebra`, `bayessel.covariance.arcsin`,
`bayessel.covariance.base`, `bayessel.covariance.constant_linear_noise`, `bayessel.covariance.periodic`,
`bayessel.covariance.prior`, `bayessel.covariance.standard`, `bayessel.covariance.stationary`,
`bayessel.covariance.stationary_evaluation`.
"""

import pickle

import numpy as np
import pytest
from scipy import stats

from bayessel import covariance as cov
from bayessel.covariance import Prior, algebra
from tests.oracles.covariance import TWINS, derivatives, standard

ALL = {**TWINS, "standard": (cov.Standard(), standard)}


def near_start(covariance, rng, m=3, spread=0.4):
    return covariance.start(m) + spread * rng.normal(size=covariance.size(m))


@pytest.fixture(params=ALL)
def pair(request):
    return ALL[request.param]


def test_matrix_and_diagonal_are_the_formula(rng, pair):
    covariance, twin = pair
    X, Z, theta = rng.normal(size=(70, 3)), rng.normal(size=(5, 3)), near_start(covariance, rng)
    np.testing.assert_allclose(covariance.matrix(theta, X), twin(theta, X, X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(covariance.matrix(theta, X, Z), twin(theta, X, Z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(covariance.diagonal(theta, X), np.diag(twin(theta, X, X)), rtol=1e-13)
    np.testing.assert_array_equal(np.diag(covariance.matrix(theta, X)), covariance.diagonal(theta, X))


def test_any_block_with_any_weights_is_pulled(rng, pair):
    """Not only panels of a triangle, and in any number of pieces."""
    covariance, twin = pair
    X, theta = rng.normal(size=(40, 3)), near_start(covariance, rng)
    X[31] = X[5]
    H = rng.normal(size=(20, 15))
    evaluation = covariance.at(theta, X)
    for rows, cols in [((0, 13), (25, 31)), ((13, 20), (25, 40)), ((0, 13), (31, 40))]:
        evaluation.pull(slice(*rows), slice(*cols), H[rows[0] : rows[1], cols[0] - 25 : cols[1] - 25])
    expected = derivatives(lambda th: np.sum(H * twin(th, X[:20], X[25:])), theta)
    np.testing.assert_allclose(evaluation.gradient(), expected, rtol=1e-10, atol=1e-11)


def test_moving_forgets_what_was_pulled(rng, pair):
    covariance, _ = pair
    X, theta, H = rng.normal(size=(12, 3)), near_start(covariance, rng), rng.normal(size=(12, 12))
    whole = slice(0, 12)
    evaluation = covariance.evaluation(X, keep=True)
    found = []
    for at in (theta, theta + 0.3, theta + 12.0, theta):  # differences are taken first at the third
        evaluation.at(at)
        first = np.array(evaluation.values(whole, whole))
        np.testing.assert_array_equal(evaluation.again(whole, whole), first)
        evaluation.pull(whole, whole, H)
        evaluation.pull_diagonal(H[0])
        found.append(evaluation.gradient())
    np.testing.assert_array_equal(found[0], found[3])
    assert np.abs(found[0] - found[1]).max() > 1e-3


def test_derivatives_of_the_diagonal(rng, pair):
    covariance, twin = pair
    X, theta, h = rng.normal(size=(9, 3)), near_start(covariance, rng), rng.normal(size=9)
    evaluation = covariance.at(theta, X)
    evaluation.pull_diagonal(h)
    expected = derivatives(lambda th: h @ np.diag(twin(th, X, X)), theta)
    np.testing.assert_allclose(evaluation.gradient(), expected, rtol=1e-11, atol=1e-13)


def test_derivatives_in_the_inputs(rng, pair):
    """Rows held fixed, columns moved."""
    covariance, twin = pair
    X, theta, H = rng.normal(size=(14, 3)), near_start(covariance, rng), rng.normal(size=(8, 6))
    found = covariance.at(theta, X).pull_inputs(slice(0, 8), slice(8, 14), H)
    flat = X[8:].ravel()
    expected = derivatives(lambda z: np.sum(H * twin(theta, X[:8], z.reshape(6, 3))), flat).reshape(6, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_only_differences_matter_where_inputs_are_years(rng):
    """The expanded square is taken around the mean: inputs such as 2000.25 lose no digits."""
    X, theta = rng.normal(size=(30, 3)), np.array([0.1, 0.2, -0.3, 0.4])
    far = np.round(X * 1024) / 1024 + np.array([2000.0, -4096.0, 8192.0])
    for covariance in (cov.SquaredExponential(), cov.Matern12(), cov.Matern52()):
        near = covariance.matrix(theta, far - np.array([2000.0, -4096.0, 8192.0]))
        np.testing.assert_allclose(covariance.matrix(theta, far), near, rtol=1e-12)
        assert not covariance.at(theta, far).squares.far  # at the speed of a product of matrices


@pytest.mark.parametrize("name", ["squared exponential", "matern 1/2", "matern 3/2", "matern 5/2", "periodic"])
@pytest.mark.parametrize("log_w", [-60.0, 8.0, 12.0, 25.0, 700.0])
def test_weights_from_nil_to_infinity(rng, name, log_w):
    """Where the expanded square would lose digits, differences are taken first; rows that coincide stay correlated."""
    covariance, twin = TWINS[name]
    X = rng.normal(size=(30, 3))
    X[7] = X[3]
    X[8] = X[3] + np.exp(-0.5 * log_w) * np.array([0.5, 0.0, 0.0])
    theta = near_start(covariance, rng)
    theta[1] = log_w
    K = twin(theta, X, X)
    np.testing.assert_allclose(covariance.matrix(theta, X), K, rtol=1e-10, atol=1e-11)
    H = rng.normal(size=(30, 30))
    evaluation = covariance.at(theta, X)
    evaluation.pull(slice(0, 30), slice(0, 30), H)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = derivatives(lambda th: np.sum(H * twin(th, X, X)), theta)
    if name == "periodic" and log_w == 700.0:
        return  # sin² of complex numbers overflows in the twin
    np.testing.assert_allclose(evaluation.gradient(), expected, rtol=1e-9, atol=1e-9)


def test_close_rows_keep_the_kink_of_matern_12():
    """e^{−r} shows √ of the rounding errors of r²: 1e-8 of a difference of 1e-9 would be noise."""
    X = np.array([[0.3], [0.3 + 1e-9], [0.3 + 3e-6], [-20.0], [20.0]])
    theta = np.array([0.0, np.log(2.0)])
    covariance, twin = cov.Matern12(), TWINS["matern 1/2"][1]
    np.testing.assert_allclose(1 - covariance.matrix(theta, X), 1 - twin(theta, X, X), rtol=1e-6, atol=1e-16)
    H = np.zeros((5, 5))
    H[0, 1:3] = 1.0
    evaluation = covariance.at(theta, X)
    evaluation.pull(slice(0, 5), slice(0, 5), H)
    expected = derivatives(lambda th: np.sum(H * twin(th, X, X)), theta)
    np.testing.assert_allclose(evaluation.gradient(), expected, rtol=1e-9)


def test_limits_tie_the_families_together(rng):
    X = rng.normal(size=(12, 2))
    theta = np.array([0.3, -0.2, 0.5])
    exponential = cov.SquaredExponential().matrix(theta, X)
    rational = cov.RationalQuadratic().matrix(np.r_[theta, 18.0], X)
    np.testing.assert_allclose(rational, exponential, rtol=1e-6)
    # a long period is none: 4 sin²(πd/p) w → (2πd/p)² w
    period = 9.0
    long = cov.Periodic().matrix(np.r_[theta[0], theta[1:] + 2 * (period - np.log(2 * np.pi)), period, period], X)
    np.testing.assert_allclose(long, exponential, rtol=1e-5)


def test_the_arcsine_is_a_wide_network(rng):
    """E[erf(√2 uᵀx̃) erf(√2 uᵀx̃')] over u ~ N(0, Σ/2): within four Monte Carlo standard errors; a wrong Σ is not."""
    from scipy.special import erf

    X, theta = rng.normal(size=(4, 2)), np.array([0.0, -0.3, 0.4, -0.2])
    sigma = np.exp(theta[1:])
    u = rng.normal(size=(200_000, 3)) * np.sqrt(sigma)
    hidden = erf(u @ np.c_[np.ones(4), X].T)
    products = hidden[:, :, None] * hidden[:, None]
    mean, error = products.mean(axis=0), products.std(axis=0) / np.sqrt(len(u))
    assert (np.abs(cov.Arcsin().matrix(theta, X) - mean) < 4 * error).all()
    assert (np.abs(cov.Arcsin().matrix(theta + np.log([1, 1, 2, 1]), X) - mean) > 4 * error).any()


def test_names_of_every_family():
    assert cov.Standard().names(2) == ("log v0", "log r2", "log w[0]", "log w[1]", "log a0", "log a1")
    assert cov.Standard().on([3]).names(5) == ("log v0", "log r2", "log w[3]", "log a0", "log a1")
    assert cov.SquaredExponential(ard=False, amplitude=False).names(4) == ("log w",)
    assert cov.RationalQuadratic().on([1]).names(2) == ("log v0", "log w[1]", "log alpha")
    assert cov.Periodic().on([2, 0]).names(3) == ("log v0", "log w[2]", "log w[0]", "log p[2]", "log p[0]")
    assert cov.Arcsin().names(1) == ("log v0", "log b", "log w[0]")
    two = cov.SquaredExponential().on([0]) + cov.SquaredExponential().on([1]) + cov.Noise()
    assert two.names(2) == ("1: log v0", "log w[0]", "2: log v0", "log w[1]", "log r2")
    nested = (cov.Bias() + cov.Linear()) * cov.Linear() + cov.Linear() + cov.Noise()
    assert nested.names(1) == ("log a0", "1.1.2: log a1", "1.2: log a1", "2: log a1", "log r2")


def test_start_and_prior_have_an_entry_for_every_name(pair):
    covariance, _ = pair
    for m in (3, 5):
        assert len(covariance.start(m)) == len(covariance.prior(m).first) == covariance.size(m)
        assert np.isfinite(covariance.prior(m).log_density(covariance.start(m)))


def test_start_of_the_thesis():
    np.testing.assert_allclose(np.exp(cov.Standard().start(4)), [1.0, np.exp(-2), *[0.25] * 4, np.exp(-2), np.exp(-2)])


def test_prior_of_the_thesis():
    """Eq. 4.18 with m = 8 and the normal priors, by hand."""
    theta, m = cov.Standard().start(8) + 0.3, 8
    log_w = theta[2:-2]
    expected = stats.norm(-1, 1).logpdf(theta[0]) + stats.norm(-3, 3).logpdf(theta[[1, -2, -1]]).sum()
    expected += np.sum(-np.log(m) - 0.5 * np.log(2 * np.pi) - log_w / 2 - np.exp(-log_w) / (2 * m**2))
    np.testing.assert_allclose(cov.Standard().prior(m).log_density(theta), expected, rtol=1e-13)


def test_prior_derivatives_and_normalisation():
    prior = Prior.join(Prior.normal(-1.0, 2.0), Prior.inverse_gamma(0.7, 0.3))
    theta = np.array([0.3, -0.4])
    step = 1e-5 * np.eye(2)
    slope = [(prior.log_density(theta + e) - prior.log_density(theta - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(prior.gradient(theta), slope, rtol=1e-8)
    bend = [(prior.gradient(theta + e) - prior.gradient(theta - e)).sum() / 2e-5 for e in step]
    np.testing.assert_allclose(prior.hessian_diagonal(theta), bend, rtol=1e-8)
    grid = np.linspace(-8.0, 60.0, 20_001)
    density = [np.exp(Prior.inverse_gamma(0.7, 0.3).log_density(np.array([x]))) for x in grid]
    np.testing.assert_allclose(np.trapezoid(density, grid), 1.0, rtol=1e-6)


def test_prior_draws_are_of_the_prior(rng):
    prior = Prior.join(Prior.normal(-1.0, 2.0), Prior.inverse_gamma(0.7, 0.3))
    draws = prior.draw(rng, 4000)
    assert stats.kstest(draws[:, 0], stats.norm(-1, 2).cdf).pvalue > 1e-3
    assert stats.kstest(np.exp(-draws[:, 1]), stats.gamma(0.7, scale=1 / 0.3).cdf).pvalue > 1e-3
    assert stats.kstest(np.exp(-draws[:, 1]), stats.gamma(0.8, scale=1 / 0.3).cdf).pvalue < 1e-3
    assert prior.draw(rng).shape == (2,)


def test_relevance_belongs_to_inputs(rng):
    two = cov.SquaredExponential().on([2]) + cov.Matern32().on([0, 2]) + cov.Linear()
    theta = np.log([9.0, 0.5, 9.0, 3.0, 0.2, 9.0])
    np.testing.assert_allclose(two.relevance(theta, 4), [3.0, 0.0, 0.5, 0.0])
    np.testing.assert_allclose(cov.SquaredExponential(ard=False).relevance(np.log([9.0, 2.0]), 3), [2.0] * 3)
    np.testing.assert_allclose(cov.Arcsin().on([1]).relevance(np.log([9.0, 9.0, 4.0]), 2), [0.0, 4.0])
    assert (cov.Linear() + cov.Noise()).relevance(np.zeros(2), 3) is None


def test_noise_is_found_in_sums():
    total = cov.Linear() + cov.Noise() + cov.Bias()
    assert total.noisy and cov.Standard().noisy and not (cov.Linear() * cov.Bias()).noisy
    assert total.noise(np.log([2.0, 0.25, 3.0]), 2) == pytest.approx(0.25)
    assert cov.Standard().noise(np.log([1, 0.5, 1, 1, 1.0]), 1) == pytest.approx(0.5)
    assert cov.Matern12().noise(np.zeros(2), 1) == 0.0
    assert cov.Standard().with_noise() == cov.Standard() and total.with_noise() == total
    assert cov.Bias().with_noise() == cov.Bias() + cov.Noise()
    np.testing.assert_array_equal(cov.Noise().matrix(np.zeros(1), np.ones((3, 1))), 0.0)


def test_descriptions_are_values():
    """Equal when they say the same, of use as keys, and they travel."""
    a = cov.SquaredExponential().on([0]) + cov.Noise()
    b = cov.SquaredExponential(columns=(0,)) + cov.Noise()
    assert a == b and hash(a) == hash(b) and pickle.loads(pickle.dumps(a)) == a
    assert a != cov.SquaredExponential().on([1]) + cov.Noise()
    assert cov.Matern32() != cov.Matern52()
    assert (cov.Bias() + cov.Linear()) + cov.Noise() == cov.Bias() + (cov.Linear() + cov.Noise())
    assert cov.Bias() + cov.Linear() != cov.Bias() * cov.Linear()


def test_descriptions_read_as_they_are_written():
    text = "(SquaredExponential(ard=False).on([0, 2]) + Bias()) * Periodic(amplitude=False) + Noise()"
    assert repr(eval(text, vars(cov))) == text
    assert repr(algebra.Sum(cov.Bias())) == "Sum(Bias())"


def test_on_counts_among_the_inputs_in_use(rng):
    X, theta = rng.normal(size=(6, 4)), np.zeros(2)
    inner = cov.Matern32().on([1, 3]).on([1])
    np.testing.assert_array_equal(inner.matrix(theta, X), cov.Matern32().matrix(theta, X[:, [3]]))


TWO = np.ones((3, 2))


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (lambda: cov.Noise() * cov.Bias(), ValueError, "add the noise last"),
        (lambda: cov.Standard() * cov.Bias(), ValueError, "noise term"),
        (lambda: cov.Bias().on([]), ValueError, "at least one"),
        (lambda: cov.Bias().on([0, 0]), ValueError, "different"),
        (lambda: cov.Bias().on([-1]), ValueError, "at least 0"),
        (lambda: cov.Bias().on([0.5]), TypeError, "integer"),
        (lambda: cov.Matern12().on([1, 2]).on([2]), ValueError, "among the 2"),
        (lambda: cov.Matern12().on([3]).names(2), ValueError, "input 3, but there are 2"),
        (lambda: algebra.Sum(cov.Bias(), 3), TypeError, "covariances, got int"),
        (lambda: algebra.Sum(), ValueError, "at least one"),
        (lambda: cov.Bias() + 1.0, TypeError, "unsupported operand"),
        (lambda: cov.SquaredExponential(ard="no"), TypeError, "ard must be True or False, got 'no'"),
        (lambda: cov.Periodic(amplitude=0), TypeError, "amplitude must be True or False, got 0"),
        (lambda: cov.Bias().on(0), TypeError, r"numbers of inputs, such as \[0\], got 0"),
        (lambda: (cov.Bias() + cov.Noise()).on(0), TypeError, r"numbers of inputs, such as \[0\], got 0"),
        (
            lambda: cov.Bias().matrix([0.0, 1.0], TWO),
            ValueError,
            r"1 entry \(log a0\), got shape \(2,\)",
        ),
        (lambda: cov.Matern12().diagonal([0.0], TWO), ValueError, r"3 entries \(log v0, log w\[0\], log w\[1\]\)"),
        (lambda: cov.Bias().matrix([0.0], TWO, np.ones((3, 1))), ValueError, "Z must have 2 inputs as X has, got 1"),
        (lambda: cov.Bias().matrix([0.0], np.ones(3)), ValueError, "X must be 2-D"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_overflow_is_said_and_not_computed(pair):
    covariance, _ = pair
    X = np.ones((2, 3))
    for value in (800.0, np.inf, np.nan):
        theta = np.full(covariance.size(3), value)
        assert not covariance.at(theta, X).finite
        assert np.isnan(covariance.matrix(theta, X)).all()
    covariance.at(np.full(covariance.size(3), -800.0), X)


def test_the_arcsine_has_a_slope_wherever_it_says_it_is_finite(rng):
    """Beyond, the correlation of a row with itself rounds to one, where the slope of the arcsine is infinite."""
    X, H, whole = rng.normal(size=(6, 2)), rng.normal(size=(6, 6)), slice(0, 6)
    found = []
    for log_b in np.linspace(10.0, 60.0, 26):
        evaluation = cov.Arcsin().at(np.array([0.0, log_b, 0.0, 0.0]), X)
        found.append(evaluation.finite)
        if evaluation.finite:
            with np.errstate(all="raise"):
                evaluation.pull(whole, whole, H)
            assert np.isfinite(evaluation.gradient()).all()
    assert found[0] and not found[-1]
