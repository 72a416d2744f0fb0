"""Weights of few functions that come closest to a large model's means.

Guards `bayessel.estimators.projected_weights`.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from bayessel.estimators.projected_weights import projected_weights
from bayessel.prediction import Prediction


@pytest.fixture
def problem(rng):
    columns, means = rng.normal(size=(40, 3)), rng.normal(size=40)
    return columns, means, rng.uniform(0.1, 4.0, 40), rng.uniform(0.5, 2.0, 40)


@pytest.mark.parametrize("bias", [True, False])
def test_no_other_weights_are_closer(problem, bias):
    """A minimiser that knows nothing of least squares ends at the same weights."""
    columns, means, variances, counts = problem

    def distance(w):
        return np.sum(counts / variances * (means - columns @ w[:3] - (w[3] if bias else 0.0)) ** 2)

    found = minimize(distance, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    weights, intercept = projected_weights(columns, means, variances, counts, bias)
    np.testing.assert_allclose(weights, found[:3], atol=1e-6)
    np.testing.assert_allclose(intercept, found[3] if bias else 0.0, atol=1e-6)


def test_close_predictions_have_the_least_divergence(rng):
    """Integrated over a fine grid: of predictions about other means that differ little, the closest are found."""
    x = np.linspace(-1.0, 1.0, 15)
    columns, variances = np.column_stack([x, x**3]), rng.uniform(0.5, 2.0, 15)
    means = np.sin(x) + 0.02 * np.cos(5.0 * x)
    t = np.linspace(-12.0, 12.0, 4001)

    def divergence(w):
        there = Prediction.normal(means, variances)
        here = there.about(columns @ w)
        log = np.array([[one.log_density(np.full(15, v)) for v in t] for one in (there, here)])
        return float(np.sum(np.exp(log[0]) * (log[0] - log[1])) * (t[1] - t[0]))

    weights, _ = projected_weights(columns, means, variances, np.ones(15), False)
    least = divergence(weights)
    for step in np.vstack([np.eye(2), -np.eye(2)]):
        assert divergence(weights + 0.05 * step) > least


def test_units_copies_and_zeros_change_no_prediction(problem):
    columns, means, variances, counts = problem
    weights, intercept = projected_weights(columns, means, variances, counts, True)
    odd = np.column_stack([columns * [1e8, 1.0, 1e-8], np.zeros(40), columns[:, 1]])
    found, offset = projected_weights(odd, 1e6 + means, variances, counts, True)
    np.testing.assert_allclose(odd @ found + offset - 1e6, columns @ weights + intercept, atol=1e-7)
    assert found[3] == 0.0
    np.testing.assert_allclose(found[1], found[4])  # copies share their weight


def test_counts_are_rows_listed_so_often(problem):
    columns, means, variances, _ = problem
    counts = np.r_[np.full(10, 3.0), np.ones(30)]
    listed = np.repeat(np.arange(40), counts.astype(int))
    once = projected_weights(columns, means, variances, counts, True)
    often = projected_weights(columns[listed], means[listed], variances[listed], np.ones(len(listed)), True)
    np.testing.assert_allclose(np.append(*once), np.append(*often))


def test_without_functions_there_is_the_mean(problem):
    _, means, variances, counts = problem
    weights, intercept = projected_weights(np.zeros((40, 0)), means, variances, counts, True)
    assert len(weights) == 0
    np.testing.assert_allclose(intercept, np.average(means, weights=counts / variances))
    assert projected_weights(np.zeros((40, 0)), means, variances, counts, False)[1] == 0.0
