"""The conjugate conditionals: distributions against SciPy's and quadrature, Gaussian draws exactly, digit by digit.

Guards `bayessel.samplers.conditionals`, `bayessel.samplers.log_scales`.
"""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from bayessel.samplers import conditionals, log_scales
from bayessel.samplers.conditionals import GaussianFactor, GaussianSpectrum, gaussian
from bayessel.samplers.log_scales import LogConcave

# --- precisions and scales --------------------------------------------------------------------------------------


def is_from(draws, distribution):
    """Kolmogorov-Smirnov p-value of independent draws."""
    return stats.kstest(np.ravel(draws), distribution.cdf).pvalue


@pytest.mark.parametrize("shape", [0.02, 0.4, 0.5, 3.0, 400.0])
def test_log_gamma_is_the_logarithm_of_a_gamma_variable(rng, shape):
    draws = conditionals.log_gamma(np.full(4000, shape), rng)
    assert is_from(draws, stats.loggamma(shape)) > 1e-4
    assert is_from(draws, stats.loggamma(1.2 * shape + 0.05)) < 1e-4


def test_log_gamma_where_the_variable_itself_underflows(rng):
    draws = conditionals.log_gamma(np.full(4000, 1e-5), rng)
    assert np.isfinite(draws).all() and np.mean(draws < -745.0) > 0.9
    # log x = −E/a up to the bounded rest
    assert is_from(draws * -1e-5, stats.expon()) > 1e-4


def test_precision_and_variance_given_residuals(rng):
    n, S = np.full(4000, 7.0), 3.3
    precision = np.exp(conditionals.log_precision(1.5, 0.7, n, S, rng))
    assert is_from(precision, stats.gamma(1.5 + 3.5, scale=1 / (0.7 + 1.65))) > 1e-4
    assert is_from(precision, stats.gamma(1.5 + 3.0, scale=1 / (0.7 + 1.65))) < 1e-4
    variance = np.exp(conditionals.draw_log_variance(1.5, 0.7, n, S, rng))
    assert is_from(variance, stats.invgamma(1.5 + 3.5, scale=0.7 + 1.65)) > 1e-4
    assert is_from(variance, stats.invgamma(1.5 + 3.0, scale=0.7 + 1.65)) < 1e-4


def half_student_conditional(df, A, n, S):
    """Quantile and distribution function of log x given residuals, by quadrature on a grid of log x."""
    u = np.linspace(-12.0, 12.0, 20_001)
    log_p = stats.t(df, scale=A).logpdf(np.exp(u)) + u - n * u - 0.5 * S * np.exp(-2.0 * u)
    p = np.exp(log_p - log_p.max())
    cdf = np.cumsum(p) / p.sum()
    return (lambda q: np.interp(q, cdf, u)), (lambda x: np.interp(x, u, cdf))


@pytest.mark.parametrize(("df", "A", "n", "S"), [(1.0, 1.0, 1.0, 0.1), (1.0, 0.3, 12.0, 40.0), (4.0, 2.0, 3.0, 1.0)])
def test_a_half_student_scale_stays_in_its_conditional(rng, df, A, n, S):
    quantile, cdf = half_student_conditional(df, A, n, S)
    start = quantile(rng.random(20_000))
    count = np.full(start.shape, n)
    end = conditionals.log_half_student_scale(start, df, A, count, S, rng)
    assert stats.kstest(end, cdf).pvalue > 1e-4
    wrong = conditionals.log_half_student_scale(start, df, A, count + 1.0, S, rng)
    assert stats.kstest(wrong, cdf).pvalue < 1e-4
    # it does move: rank correlation well below one
    assert abs(stats.spearmanr(start, end).statistic) < 0.9


# --- Gaussian blocks: a draw is affine in the normal numbers it uses, so its moments can be read off exactly -----


class Replay:
    """A generator whose normal numbers are given: zeros, but for one of them."""

    def __init__(self, one=None):
        self.one, self.used = one, 0

    def standard_normal(self, size):
        numbers = np.zeros(size)
        if self.one is not None and self.used <= self.one < self.used + size:
            numbers[self.one - self.used] = 1.0
        self.used += size
        return numbers


def square_root(draw):
    """Mean of ``draw(rng)`` and F with covariance FFᵀ, exact but for rounding."""
    replay = Replay()
    mean = draw(replay)
    return mean, np.column_stack([draw(Replay(j)) - mean for j in range(replay.used)])


def moments(draw):
    mean, F = square_root(draw)
    return mean, F @ F.T


def dense(factors, d, m):
    """Mean and covariance by plain algebra."""
    P = np.diag(d) + sum(A.T @ (np.broadcast_to(tau, len(A))[:, None] * A) for A, tau, _ in factors)
    pull = d * m + sum(A.T @ (tau * y) for A, tau, y in factors)
    return np.linalg.solve(P, pull), np.linalg.inv(P)


def check(factors, d, m, rtol=1e-8):
    expected_mean, expected_cov = dense(factors, d, m)
    sd = np.sqrt(np.diag(expected_cov))
    for kept in (True, False):
        prepared = [(GaussianFactor(A, kept=kept), tau, y) for A, tau, y in factors]
        mean, cov = moments(lambda rng: gaussian(prepared, d, m, rng))  # noqa: B023 used at once
        assert_allclose(mean / sd, expected_mean / sd, atol=rtol * (1.0 + np.abs(mean / sd).max()))
        assert_allclose(cov / np.outer(sd, sd), expected_cov / np.outer(sd, sd), atol=rtol)


@pytest.mark.parametrize(("n", "m"), [(9, 4), (6, 6), (3, 8), (4, 5), (1, 1), (1, 2)])
@pytest.mark.parametrize("weights", ["one", "many"])
def test_a_gaussian_draw_has_the_moments_of_the_posterior(rng, n, m, weights):
    A, y = rng.normal(size=(n, m)), rng.normal(size=n)
    tau = 1.7 if weights == "one" else rng.gamma(2.0, size=n)
    check([(A, tau, y)], rng.gamma(1.0, size=m), rng.normal(size=m))


def test_several_factors_and_members_without_a_prior_of_their_own(rng):
    factors = [(rng.normal(size=(n, 5)), tau, rng.normal(size=n)) for n, tau in [(7, 0.3), (2, 11.0), (6, 1.0)]]
    check(factors, rng.gamma(1.0, size=5), rng.normal(size=5))
    check(factors, np.array([0.0, 0.0, 2.0, 0.0, 1.0]), rng.normal(size=5))
    check([], rng.gamma(1.0, size=5), rng.normal(size=5))


def test_the_moments_see_a_wrong_precision(rng):
    A, y, d, m = rng.normal(size=(6, 3)), rng.normal(size=6), np.ones(3), np.zeros(3)
    mean, cov = moments(lambda r: gaussian([(GaussianFactor(A), 1.1, y)], d, m, r))
    expected = dense([(A, 1.0, y)], d, m)
    assert np.abs(mean - expected[0]).max() > 1e-3 and np.abs(cov - expected[1]).max() > 1e-3


@pytest.mark.parametrize(("n", "m"), [(9, 4), (6, 6), (3, 8)])
@pytest.mark.parametrize("centred", [False, True])
def test_the_diagonalised_draw_is_the_same_distribution(rng, n, m, centred):
    A, y, c = rng.normal(size=(n, m)), rng.normal(size=n), rng.gamma(3.0, size=m)
    prior_mean = rng.normal(size=m) if centred else np.zeros(m)
    spectrum = GaussianSpectrum(A, c)
    centre = spectrum.forth @ prior_mean if centred else None
    mean, cov = moments(lambda r: spectrum.draw(0.8, 2.3, spectrum.project(y), centre, r))
    expected_mean, expected_cov = dense([(A, 2.3, y)], 0.8 * c**2, prior_mean)
    assert_allclose(mean, expected_mean, atol=1e-10)
    assert_allclose(cov, expected_cov, atol=1e-10)


# --- ill-conditioned designs, against 60 digits ------------------------------------------------------------------


def exact(A, tau, y, d):
    """Mean and covariance with a prior mean of zero, and those of the fit Aw, in 60 digits."""
    with mpmath.workdps(60):
        A, y = mpmath.matrix(A.tolist()), mpmath.matrix(y.tolist())
        P = tau * (A.T * A) + mpmath.diag([mpmath.mpf(float(v)) for v in d])
        cov = P**-1
        mean = cov * (A.T * y) * tau
        found = mean, cov, A * mean, A * cov * A.T
        return [np.squeeze(np.array(v.tolist(), dtype=float)) for v in found]


def bumps(n, m, width):
    x, c = np.linspace(-1, 1, n), np.linspace(-1, 1, m)
    return np.exp(-(((x[:, None] - c) / width) ** 2))


CASES = {
    # name: rows, columns, width, lowest log α, thresholds that count as too few digits, the functions to be reached
    "few rows": (8, 18, 0.5, -14, {}, {"_by_rows"}),
    "few rows, weights almost without prior": (8, 18, 0.5, -32, {}, {"_by_rows"}),
    "few rows, no squares": (8, 18, 0.5, -32, {"_SAFE": 2.0}, {"_by_rows", "_triangle"}),
    "low rank": (18, 18, 6.0, -22, {}, {"_by_rows"}),
    "low rank, weights almost without prior": (18, 18, 3.0, -32, {}, {"_by_rows"}),
    "large but harmless": (16, 16, 0.35, -36, {}, set()),
    "near the edge": (12, 12, 2.0, -17, {}, set()),
    "refined": (12, 12, 2.0, -36, {}, {"_perturbed"}),
    "refined, harmless": (16, 16, 0.35, -14, {"_SAFE": 2.0}, {"_perturbed"}),
    "orthogonal": (12, 12, 2.0, -32, {"_SAFE": 2.0, "_REFINABLE": 2.0}, {"_orthogonal"}),
    "orthogonal, harmless": (16, 16, 0.35, -14, {"_SAFE": 2.0, "_REFINABLE": 2.0}, {"_orthogonal"}),
}


@pytest.mark.parametrize("case", CASES)
def test_ill_conditioned_draws_against_60_digits(rng, monkeypatch, case):
    n, m, width, low, thresholds, paths = CASES[case]
    for name, value in thresholds.items():
        monkeypatch.setattr(conditionals, name, value)
    A = bumps(n, m, width)
    d = np.exp(rng.permutation(np.linspace(low, 4, m)))
    y = np.sin(3 * np.linspace(-1, 1, n)) + 0.01 * rng.normal(size=n)
    tau = 100.0
    reached = set()
    for path in ("_by_rows", "_triangle", "_perturbed", "_orthogonal"):
        original = getattr(conditionals, path)
        monkeypatch.setattr(
            conditionals, path, lambda *a, path=path, original=original: reached.add(path) or original(*a)
        )
    likelihood = GaussianFactor(A)
    mean, F = square_root(lambda r: gaussian([(likelihood, tau, y)], d, np.zeros(m), r))
    assert reached == paths
    expected_mean, expected_cov, fit, fit_cov = exact(A, tau, y, d)
    # far below the Monte Carlo error of any run
    sd = np.sqrt(np.diag(expected_cov))
    assert np.abs((mean - expected_mean) / sd).max() < 1e-4
    assert np.abs((F @ F.T - expected_cov) / np.outer(sd, sd)).max() < 1e-4
    # and what the data determine: small differences of large weights
    sd = np.sqrt(np.diag(fit_cov))
    assert np.abs((A @ mean - fit) / sd).max() < 1e-4
    assert np.abs(((A @ F) @ (A @ F).T - fit_cov) / np.outer(sd, sd)).max() < 1e-4


def test_columns_of_very_different_sizes_are_all_kept(rng):
    A = rng.normal(size=(4, 12))
    size = np.logspace(-120, 120, 12)
    y = rng.normal(size=4)
    likelihood = GaussianFactor(A * size)
    mean, cov = moments(lambda r: gaussian([(likelihood, 1.0, y)], size**2, np.zeros(12), r))
    expected_mean, expected_cov = dense([(A, 1.0, y)], np.ones(12), np.zeros(12))
    assert_allclose(mean * size, expected_mean, atol=1e-9)
    assert_allclose(cov * size * size[:, None], expected_cov, atol=1e-9)


# --- scales under other priors: log-concave in log x --------------------------------------------------------------

# name: c, (a, p) pairs, the rest of h
DENSITIES = {
    "half-normal scale": (1 - 12, [(0.5, 2.0), (3.0, -2.0)], {}),
    "half-normal scale of one residual near zero": (1 - 1, [(0.5, 2.0), (1e-4, -2.0)], {}),
    "exponential scale": (1 - 3, [(1.0, 1.0), (5.0, -2.0)], {}),
    "half-Cauchy scale": (1 - 1, [(0.2, -2.0)], {"r": 1.0, "t": 1.0}),
    "log-normal precision": (2.0, [(2.0, 1.0)], {"q": 1.0, "m": 0.3}),
    "gamma, little shape": (0.02, [(1.0, 1.0)], {}),
    "many residuals": (1 - 1e5, [(1.0, 2.0), (5e4, -2.0)], {}),
    "gamma variance": (1.5 - 6, [(2.0, 1.0), (1e-8, -1.0)], {}),
}


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("many", [False, True])
def test_log_concave_draws_follow_their_density(rng, name, many):
    c, terms, rest = DENSITIES[name]
    n = 4000 if many else 1500
    with np.errstate(all="ignore"):
        if many:
            draws = log_scales.draw(LogConcave((n,), c, terms, **rest), np.zeros(n), np.zeros(n), rng)
        else:
            one = LogConcave((1,), c, terms, **rest)
            draws = np.array([log_scales.draw(one, np.zeros(1), np.zeros(1), rng)[0] for _ in range(n)])
        u = np.linspace(draws.min() - 2 * np.ptp(draws), draws.max() + 2 * np.ptp(draws), 100_001)
        # written out once more
        log_p = c * u - 0.5 * rest.get("q", 0.0) * (u - rest.get("m", 0.0)) ** 2
        if "r" in rest:
            log_p -= rest["r"] * np.log1p(rest["t"] * np.exp(2 * u))
        log_p -= sum(a * np.exp(p * u) for a, p in terms)
    p = np.exp(log_p - log_p.max())
    cdf = np.cumsum(p) / p.sum()
    assert stats.kstest(draws, lambda x: np.interp(x, u, cdf)).pvalue > 1e-4
    # a width 8 % off is seen
    stretched = draws.mean() + 1.08 * (draws - draws.mean())
    if many:
        assert stats.kstest(stretched, lambda x: np.interp(x, u, cdf)).pvalue < 0.05


def test_an_improper_density_keeps_its_value(rng):
    with np.errstate(all="ignore"):
        for size in (1, 3):
            h = LogConcave((size,), -2.0, [(1.0, 2.0)])
            assert_allclose(log_scales.draw(h, np.zeros(size), np.full(size, 0.7), rng), 0.7)
