"""Dense scales: exact for a Gaussian whatever the draws, sensible for few draws, and masses that are given.

Guards `bayessel.samplers.metric`, `bayessel.samplers.tuning`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayessel.samplers import metric, tuning


def gaussian(rng, size):
    """Mean, covariance over some decades of scale, and its inverse."""
    A = rng.standard_normal((size, size + 2))
    scale = np.geomspace(1e-2, 1e2, size)
    cov = (A @ A.T) * np.outer(scale, scale) / size
    return 3.0 * scale, cov, np.linalg.inv(cov)


def test_geometric_mean(rng):
    C, G = (A @ A.T for A in rng.standard_normal((2, 4, 6)))
    found = metric.geometric_mean(G, C)
    assert_allclose(found @ G @ found, C, rtol=1e-6)
    assert (np.linalg.eigvalsh(found) > 0.0).all()
    assert_allclose(metric.geometric_mean(np.linalg.inv(C), C), C, rtol=1e-6)


def window(draws, mean, precision, dense=True):
    """The draws gone through a window, as a chain that tunes would."""
    state = tuning.begin(10_000, draws.shape[1], 0.9, 0.1, dense)
    for q in draws:
        state = tuning.record(state, q, precision @ (mean - q))
    return state


def how_far(scale, cov):
    """Largest ratio between the variance along any direction and what the scale says, either way."""
    ratios = np.linalg.eigvalsh(np.linalg.solve(scale, np.linalg.solve(scale, cov).T))
    return max(ratios.max(), 1.0 / ratios.min())


def test_a_gaussian_is_found_from_draws_that_depend_on_each_other(rng):
    mean, cov, precision = gaussian(rng, 6)
    root = np.linalg.cholesky(cov)
    z = np.zeros(6)
    draws = []
    for _ in range(60):
        z = 0.9 * z + np.sqrt(0.19) * rng.standard_normal(6)
        draws.append(mean + root @ z)
    state = window(np.array(draws), mean, precision)
    closed, scale = tuning.close_window(state, np.eye(6))
    assert how_far(scale, cov) < 1.5
    # the draws by themselves do not know half of it
    assert how_far(np.linalg.cholesky(np.cov(np.transpose(draws))), cov) > 3.0
    assert_allclose(np.triu(scale, 1), 0.0)
    assert closed.window.spread.shape == (6, 6) and closed.seen == 0 and not closed.window.spread.any()
    # where the gradient is nil
    assert_allclose(tuning.centre(state, np.linalg.cholesky(cov)), mean, rtol=1e-6)
    assert np.abs(np.linalg.solve(root, tuning.centre(state, scale) - mean)).max() < 0.3


def test_fewer_draws_than_dimensions_are_better_than_the_diagonal(rng):
    mean, cov, precision = gaussian(rng, 12)
    draws = mean + rng.standard_normal((8, 12)) @ np.linalg.cholesky(cov).T
    _, dense = tuning.close_window(window(draws, mean, precision), np.eye(12))
    _, diagonal = tuning.close_window(window(draws, mean, precision, dense=False), np.ones(12))
    assert how_far(dense, cov) < how_far(np.diag(diagonal), cov)


def test_draws_that_say_nothing_leave_the_diagonal():
    stuck = np.ones((40, 3))
    _, scale = tuning.close_window(window(stuck, np.ones(3), np.eye(3)), np.diag([1.0, 2.0, 3.0]))
    assert_allclose(scale @ scale.T, np.diag([1.0, 4.0, 9.0]))
    assert metric.dense_scale(np.full((2, 2), np.nan), np.eye(2), 9, np.ones(2)) is None
    assert metric.dense_scale(np.eye(2), np.eye(2), 9, np.full(2, np.inf)) is None


def test_a_draw_without_gradient_is_only_counted(rng):
    state = tuning.begin(100, 2, 0.9, 0.1, True)
    after = tuning.record(state, rng.standard_normal(2), None)
    assert after.draw == 1 and after.seen == 0 and not after.window.spread.any() and len(after.kept) == 0


def test_given_masses(rng):
    assert_allclose(metric.scale_of([4.0, 1.0], 2), [0.5, 1.0])
    assert_allclose(metric.scale_of(0.25, 2), [2.0, 2.0])
    _, cov, precision = gaussian(rng, 5)
    S = metric.scale_of(precision, 5)
    assert_allclose(S @ S.T, cov, rtol=1e-6)
    for bad, said in [
        (np.eye(2), r"\(5, 5\) matrix, got shape \(2, 2\)"),
        (np.triu(np.ones((5, 5))), "mass must be symmetric"),
        (np.diag([1.0, 1.0, -1.0, 1.0, 1.0]), "mass must be positive definite, got smallest eigenvalue -1"),
        (np.full((5, 5), np.nan), "mass must be finite"),
    ]:
        with pytest.raises(ValueError, match=said):
            metric.scale_of(bad, 5)
