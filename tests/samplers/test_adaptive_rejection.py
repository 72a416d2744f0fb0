"""Adaptive rejection: draws of ten log-concave densities against SciPy's distributions, and what it refuses."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from bayessel.samplers.adaptive_rejection import AdaptiveRejection, NotLogConcaveError, adaptive_rejection

INF = math.inf


def inside(lower, upper, log_density):
    """The density within its support, −inf outside, as a compiled model would say it."""
    return lambda x: log_density(x) if lower < x < upper else (-INF, math.nan)


def _truncated(x):
    return -0.5 * x * x, -x


# name -> (log density up to a constant and its derivative, distribution, start, lower, upper); ends that are not given
# have to be found
LOG_CONCAVE = {
    "normal": (lambda x: (-0.5 * (x - 3) ** 2 / 4, -(x - 3) / 4), stats.norm(3, 2), 0.0, -INF, INF),
    "log of an exponential": (lambda x: (x - math.exp(x), 1 - math.exp(x)), stats.gumbel_l(), 0.0, -INF, INF),
    "gamma": (inside(0, INF, lambda x: (1.5 * math.log(x) - x, 1.5 / x - 1)), stats.gamma(2.5), 1.0, 0.0, INF),
    "gamma, end unknown": (
        inside(0, INF, lambda x: (1.5 * math.log(x) - x, 1.5 / x - 1)),
        stats.gamma(2.5),
        9.0,
        -INF,
        INF,
    ),
    "exponential": (lambda x: (-2 * x, -2.0), stats.expon(scale=0.5), 0.1, 0.0, INF),
    "beta": (
        inside(0, 1, lambda x: (math.log(x) + 2 * math.log1p(-x), 1 / x - 2 / (1 - x))),
        stats.beta(2, 3),
        0.9,
        0.0,
        1.0,
    ),
    "uniform": (lambda x: (0.0, 0.0), stats.uniform(-2, 5), 0.0, -2.0, 3.0),
    "logistic": (
        lambda x: (-abs(x) - 2 * math.log1p(math.exp(-abs(x))), -math.tanh(x / 2)),
        stats.logistic(),
        5.0,
        -INF,
        INF,
    ),
    "laplace": (lambda x: (-abs(x), -math.copysign(1.0, x)), stats.laplace(), 2.0, -INF, INF),
    "normal above 6 sd": (_truncated, stats.truncnorm(6, INF), 7.0, 6.0, INF),
    "weibull": (
        inside(0, INF, lambda x: (2 * math.log(x) - x**3, 2 / x - 3 * x * x)),
        stats.weibull_min(3),
        0.2,
        0.0,
        INF,
    ),
}


def draws(name, rng, size):
    log_density, distribution, start, lower, upper = LOG_CONCAVE[name]
    return adaptive_rejection(log_density, start, rng, size, lower=lower, upper=upper), distribution


def p_value(x, distribution):
    return stats.kstest(x, distribution.cdf).pvalue


@pytest.mark.parametrize("name", LOG_CONCAVE)
def test_draws_follow_the_distribution(name, rng):
    x, distribution = draws(name, rng, 5_000)
    assert p_value(x, distribution) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", LOG_CONCAVE)
def test_many_draws_follow_the_distribution(name, rng):
    x, distribution = draws(name, rng, 100_000)
    assert p_value(x, distribution) > 1e-3
    assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < 4 / np.sqrt(len(x))  # and are independent


@pytest.mark.parametrize("name", LOG_CONCAVE)
def test_first_draws_from_fresh_hulls_follow_it_too(name, rng):
    # in a Gibbs step every hull is used once: no draw may profit from those before it
    log_density, distribution, start, lower, upper = LOG_CONCAVE[name]
    x = [AdaptiveRejection(log_density, start, lower=lower, upper=upper).draw(rng, squeeze=False) for _ in range(2_000)]
    assert p_value(x, distribution) > 1e-3


def test_a_wrong_hull_is_seen(rng, monkeypatch):
    # the mass of each piece of the hull taken for that of its neighbour
    weigh = AdaptiveRejection._weigh

    def swapped(self):
        weigh(self)
        self._cumulative = list(np.cumsum(np.diff([0.0, *self._cumulative])[::-1]))

    monkeypatch.setattr(AdaptiveRejection, "_weigh", swapped)
    x, distribution = draws("log of an exponential", rng, 5_000)
    assert p_value(x, distribution) < 1e-6


def test_acceptance_without_rejection_is_seen(rng, monkeypatch):
    monkeypatch.setattr(AdaptiveRejection, "_chord", lambda self, x: INF)  # every draw of the hull is taken
    x, distribution = draws("normal", rng, 5_000)
    assert p_value(x, distribution) < 1e-6


@pytest.mark.parametrize("name", LOG_CONCAVE)
def test_the_density_lies_between_squeeze_and_hull(name, rng):
    log_density, distribution, start, lower, upper = LOG_CONCAVE[name]
    sampler = AdaptiveRejection(log_density, start, lower=lower, upper=upper)
    for _ in range(30):
        sampler.draw(rng)
    for x in distribution.rvs(200, random_state=rng):
        h = log_density(x)[0]
        assert sampler.squeeze(x) <= h + 1e-9 <= sampler.hull(x) + 2e-9
        assert not sampler.exceeds(x, h) and sampler.exceeds(x, sampler.hull(x) + 1e-6)


def test_the_mass_below_the_hull_is_that_of_quadrature():
    log_density, _, start, _, _ = LOG_CONCAVE["log of an exponential"]
    sampler = AdaptiveRejection(log_density, [start, -2.0, 1.0])
    sampler._weigh()
    edges = [-60.0, *sampler._edges[1:-1], 20.0]
    areas = [integrate.quad(lambda x: math.exp(sampler.hull(x)), a, b)[0] for a, b in pairwise(edges)]
    np.testing.assert_allclose(
        np.array(sampler._cumulative) / sampler._cumulative[-1], np.cumsum(areas) / np.sum(areas), rtol=1e-8
    )


@pytest.mark.parametrize("constant", [0.0, 1e6, -1e6])
@pytest.mark.parametrize("away", [0.0, 3.0, 1e3])
@pytest.mark.parametrize(("mean", "sd"), [(0, 1e-12), (0, 1e12), (1e8, 1e-3), (0, 1e140), (0, 1e-140)])
def test_scale_and_constant_do_not_matter(rng, mean, sd, away, constant):
    def log_density(x):
        z = (x - mean) / sd
        return constant - 0.5 * z * z, -z / sd

    sampler = AdaptiveRejection(log_density, mean + away * sd)
    x = np.array([sampler.draw(rng) for _ in range(1_000)])
    assert p_value((x - mean) / sd, stats.norm) > 1e-4
    assert sampler.evaluations < 600  # a thousand halvings would be the worst, and it is never much more than needed


def test_a_hull_is_good_after_few_evaluations(rng):
    log_density, _, start, _, _ = LOG_CONCAVE["normal"]
    sampler = AdaptiveRejection(log_density, start)
    for _ in range(5_000):
        sampler.draw(rng)
    assert sampler.evaluations < 100


def test_same_seed_same_draws():
    one, other = (draws("weibull", np.random.default_rng(5), 50)[0] for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "log_density", "lower"),
    [
        ("Student t", lambda x: (-2 * math.log1p(x * x / 3), -4 * x / (3 + x * x)), -INF),
        (
            "two normals",
            lambda x: (
                np.logaddexp(-0.5 * (x - 3) ** 2, -0.5 * (x + 3) ** 2),
                -x + 3 * math.tanh(3 * x),
            ),
            -INF,
        ),
        ("gamma of shape 1/2", inside(0, INF, lambda x: (-0.5 * math.log(x) - x, -0.5 / x - 1)), 0.0),
        ("a gap", lambda x: (-abs(x), -math.copysign(1, x)) if not 0.1 < x < 0.9 else (-INF, 0.0), -INF),
    ],
)
def test_other_shapes_are_noticed(rng, name, log_density, lower):
    with pytest.raises(NotLogConcaveError, match="not log-concave"):
        for _ in range(20):
            sampler = AdaptiveRejection(log_density, [0.05, 1.5], lower=lower)
            for _ in range(200):
                sampler.draw(rng, squeeze=False)


def test_a_derivative_of_the_wrong_sign_is_noticed(rng):
    with pytest.raises(ValueError, match=r"not log-concave|cannot be integrated"):
        adaptive_rejection(lambda x: (-0.5 * x * x, x), 0.3, rng, 100)


@pytest.mark.parametrize(
    ("log_density", "arguments", "text"),
    [
        (lambda x: (0.0, 0.0), {}, "does not fall towards -infinity"),
        (lambda x: (x, 1.0), {}, "does not fall towards \\+infinity"),
        (lambda x: (-x, -1.0), {}, "pass lower"),
        (lambda x: (-x * x, -2 * x), {"lower": 2.0, "upper": 1.0}, "lower must be below upper"),
        (lambda x: (-x * x, -2 * x), {"lower": 2.0}, "start must lie between"),
        (lambda x: (-x * x, -2 * x), {"step": 0.0}, "step must be positive"),
        (lambda x: (-x * x, -2 * x), {"size": 0}, "size must be at least 1"),
        (lambda x: (-x * x, math.nan), {}, "derivative of the log density must be finite"),
        (lambda x: (math.nan, 0.0), {}, "must be a number or -inf, got nan"),
        (lambda x: (INF, 0.0), {}, "must be a number or -inf, got inf"),
        (lambda x: (-INF, 0.0), {}, "density is zero at start"),
    ],
)
def test_bad_input_is_refused(rng, log_density, arguments, text):
    with pytest.raises(ValueError, match=text):
        adaptive_rejection(log_density, 0.5, rng, **arguments)


def test_a_value_above_the_hull_or_below_the_squeeze_is_never_let_through():
    log_density, _, start, _, _ = LOG_CONCAVE["log of an exponential"]
    sampler = AdaptiveRejection(log_density, [-1.0, start, 1.0])
    hull, chord = sampler.hull(0.5), sampler.squeeze(0.5)
    sampler._compare(0.5, log_density(0.5)[0], hull)
    with pytest.raises(NotLogConcaveError, match=r"above a tangent$"):
        sampler._compare(0.5, hull + 1e-6, hull)
    with pytest.raises(NotLogConcaveError, match=r"below a chord$"):
        sampler._compare(0.5, chord - 1e-6, hull)


def test_a_full_hull_stays_closed_on_both_sides(rng):
    # all but one of the points are on the falling side: the one that closes the other must not make room
    sampler = AdaptiveRejection(LOG_CONCAVE["normal"][0], list(np.linspace(3.1, 4.0, 64)))
    assert len(sampler._x) == 64 and sampler._slope[0] > 0.0
    assert p_value([sampler.draw(rng) for _ in range(2_000)], LOG_CONCAVE["normal"][1]) > 1e-3
