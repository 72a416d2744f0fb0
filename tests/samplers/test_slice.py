"""Slice sampling: distributions with and without log-concavity, from good and bad widths.

Guards `bayessel.samplers.slice`.
"""

import math

import numpy as np
import pytest
from scipy import stats

from bayessel.samplers.slice import slice_sample

TARGETS = {
    "log of an exponential": (lambda x: x - math.exp(min(x, 700.0)), stats.gumbel_l(), {}),
    "Student t": (lambda x: -2 * math.log1p(x * x / 3), stats.t(3), {}),
    "gamma of shape 1/2": (lambda x: -0.5 * math.log(x) - x if x > 0 else -math.inf, stats.gamma(0.5), {"lower": 0.0}),
    "uniform": (lambda x: 0.0, stats.uniform(), {"lower": 0.0, "upper": 1.0}),
    "normal, end unknown": (lambda x: -0.5 * x * x if x > 1 else -math.inf, stats.truncnorm(1, math.inf), {}),
}


def chain(log_density, distribution, rng, size, width, thin=1, **arguments):
    """Draws `thin` apart, starting from the distribution itself."""
    x, kept, evaluations = float(distribution.rvs(random_state=rng)), [], 0
    for i in range(size * thin):
        x, taken, _ = slice_sample(log_density, x, rng, width, **arguments)
        evaluations += taken
        if i % thin == thin - 1:
            kept.append(x)
    return np.array(kept), evaluations / (size * thin)


@pytest.mark.parametrize("name", TARGETS)
def test_draws_follow_the_distribution(name, rng):
    log_density, distribution, ends = TARGETS[name]
    x, _ = chain(log_density, distribution, rng, 2_000, 2.0, thin=8, **ends)
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("width", [0.3, 2.0, 30.0])
def test_many_draws_follow_the_distribution(name, width, rng):
    log_density, distribution, ends = TARGETS[name]
    x, _ = chain(log_density, distribution, rng, 20_000, width, thin=15, **ends)
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-3


def test_a_limit_on_the_steps_does_not_bias_the_draws(rng):
    log_density, distribution, _ = TARGETS["log of an exponential"]
    x, _ = chain(log_density, distribution, rng, 1_500, 0.7, thin=25, max_steps=2)
    assert stats.kstest(x, distribution.cdf).pvalue > 1e-3


@pytest.mark.parametrize("most", [1, 2, 7])
def test_the_interval_is_as_many_widths_as_there_may_be_steps(rng, most):
    """Neal's m: where every step outwards stays in the slice the interval is m widths long, its ends anywhere."""
    draws = [slice_sample(lambda x: 0.0, 0.0, rng, 0.5, max_steps=most) for _ in range(400)]
    np.testing.assert_allclose([draw.interval for draw in draws], 0.5 * most, rtol=1e-12)
    # the interval lies around the state uniformly, and so do the draws: their variance is twice that of its place
    assert np.mean([draw.x**2 for draw in draws]) == pytest.approx((0.5 * most) ** 2 / 6.0, rel=0.35)


def test_shrinking_to_one_side_only_would_be_seen(rng):
    def one_sided(log_density, x, rng):
        level, width = log_density(x) + math.log(rng.random()), 6.0
        left = x - 0.2 * width * rng.random()  # the interval is not placed uniformly around x
        right = left + width
        while True:
            new = rng.uniform(left, right)
            if log_density(new) > level:
                return new
            left, right = (new, right) if new < x else (left, new)

    log_density, distribution, _ = TARGETS["log of an exponential"]
    x, kept = 0.0, []
    for i in range(16_000):
        x = one_sided(log_density, x, rng)
        if i % 8 == 0:
            kept.append(x)
    assert stats.kstest(kept, distribution.cdf).pvalue < 1e-3


@pytest.mark.parametrize("width", [1e-3, 1.0, 1e12])
def test_the_cost_of_a_wrong_width_is_bounded(rng, width):
    log_density, distribution, _ = TARGETS["Student t"]
    _, evaluations = chain(log_density, distribution, rng, 100, width, max_steps=100)
    assert evaluations < 110


def test_same_seed_same_draws():
    one, other = (slice_sample(lambda x: -x * x, 0.1, np.random.default_rng(3), 1.0) for _ in range(2))
    assert one == other


@pytest.mark.parametrize(
    ("log_density", "x", "arguments", "error", "text"),
    [
        (lambda x: -x * x, 0.0, {"width": 0.0}, ValueError, "width must be positive"),
        (lambda x: -x * x, 0.0, {"width": "wide"}, TypeError, "width must be a positive number"),
        (lambda x: -x * x, 0.0, {"max_steps": 0}, ValueError, "max_steps must be at least 1"),
        (lambda x: -x * x, 2.0, {"upper": 1.0}, ValueError, "must start where the density is positive"),
        (lambda x: -math.inf, 2.0, {}, ValueError, "must start where the density is positive"),
        (lambda x: math.nan, 2.0, {}, ValueError, "must be a number or -inf"),
    ],
)
def test_bad_input_is_refused(rng, log_density, x, arguments, error, text):
    with pytest.raises(error, match=text):
        slice_sample(log_density, x, rng, **{"width": 1.0, **arguments})
