"""Quantiles of mixtures of normals against root finding on the distribution function, row by row.

Guards `bayessel._mixture_quantiles`.
"""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from bayessel._mixture_quantiles import mixture_quantile
from bayessel.prediction import Prediction


def by_roots(means, std, weights, level):
    """One column at a time; of the upper half by the upper tail, which keeps its digits."""
    found = []
    for m, s, w in zip(means.T, std.T, weights.T, strict=True):
        ends = m + s * norm.ppf(level)
        if level <= 0.5:
            off = lambda y, m=m, s=s, w=w: w @ norm.cdf(y, m, s) / level - 1.0  # noqa: E731
        else:
            off = lambda y, m=m, s=s, w=w: w @ norm.sf(y, m, s) / (1.0 - level) - 1.0  # noqa: E731
        found.append(brentq(off, ends.min(), ends.max(), xtol=1e-15, rtol=1e-14, maxiter=500))
    return np.array(found)


@pytest.mark.parametrize("count", [2, 5, 64, 300])
@pytest.mark.parametrize("level", [1e-200, 1e-9, 0.05, 0.5, 0.73, 1.0 - 1e-6])
def test_quantiles_are_roots_of_the_distribution_function(count, level, rng):
    weights = rng.dirichlet(np.full(count, 0.3), size=7).T
    means, std = 2.0 * rng.normal(size=(count, 7)), np.exp(rng.normal(size=(count, 7)))
    found = mixture_quantile(means, std, weights, level)
    np.testing.assert_allclose(found, by_roots(means, std, weights, level), rtol=1e-9, atol=1e-9)


def test_heavy_tails_of_many_components(rng):
    # a Student distribution with three degrees of freedom by 5000 normals of unlike widths, and a second far away
    scale = np.sqrt(3.0 / np.random.default_rng(1).chisquare(3, size=5000))[:, None] * np.array([1.0, 1e-6, 1e6])
    means = np.where(np.arange(5000)[:, None] % 2 == 0, 0.0, 1e3) * np.array([1.0, 1e-6, 1e6])
    weights = np.full((5000, 3), 1.0 / 5000)
    for level in (0.01, 0.4, 0.6, 0.999):
        found = mixture_quantile(means, scale, weights, level)
        np.testing.assert_allclose(found, by_roots(means, scale, weights, level), rtol=1e-9)
        np.testing.assert_allclose(found, found[0] * np.array([1.0, 1e-6, 1e6]), rtol=1e-9)


def test_peaks_far_apart_points_and_components_of_no_weight():
    means, std = np.array([[-1e8, 0.0, 2.0], [1e8, 0.0, 3.0]]), np.array([[1.0, 1e-150, 1.0], [1.0, 1e-150, 1.0]])
    half = np.full((2, 3), 0.5)
    found = mixture_quantile(means, std, half, 0.5)
    assert -1e8 <= found[0] <= 1e8
    assert abs(found[1]) < 1e-140
    np.testing.assert_allclose(found[2], 2.5)
    np.testing.assert_allclose(mixture_quantile(means, std, half, 0.25)[0], -1e8)
    alone = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(mixture_quantile(means, std, alone, 0.9)[2], 2.0 + norm.ppf(0.9), rtol=1e-10)
    nothing = np.concatenate([np.tile(alone[:1], (1, 1)), np.zeros((90, 3))])
    many = np.repeat(means[:1], 91, axis=0), np.repeat(std[:1], 91, axis=0)
    np.testing.assert_allclose(mixture_quantile(*many, nothing, 0.9)[2], 2.0 + norm.ppf(0.9), rtol=1e-10)


def test_what_is_left_out_of_predictions_changes_no_quantile(rng):
    means, variances = rng.normal(size=(400, 6)), np.exp(2.0 * rng.normal(size=(400, 6)))
    logs = np.broadcast_to(-0.2 * np.arange(400.0)[:, None], (400, 6))
    logs = logs - np.logaddexp.reduce(logs, axis=0)
    there = Prediction(means, variances, logs)
    for level in (1e-8, 0.05, 0.5, 0.95):
        wanted = by_roots(means, np.sqrt(variances), np.exp(logs), level)
        np.testing.assert_allclose(there.quantile(level), wanted, rtol=1e-8, atol=1e-8)
    several = Prediction(*(each.reshape(400, 3, 2) for each in (means, variances, logs)))
    np.testing.assert_array_equal(several.quantile([0.1, 0.5]).reshape(2, 6), there.quantile([0.1, 0.5]))


@pytest.mark.slow
def test_thousands_of_components_take_little_time(rng):
    from time import process_time

    means, variances = rng.normal(size=(3000, 500)), np.exp(rng.normal(size=(3000, 500)))
    logs = np.full((3000, 500), -np.log(3000.0))
    begun = process_time()
    Prediction(means, variances, logs).quantile([0.05, 0.5, 0.95])
    assert process_time() - begun < 3.0
