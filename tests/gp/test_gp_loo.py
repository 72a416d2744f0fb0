"""Leave-one-out predictions, against predictions that really leave a row out.

Guards `bayessel.gp.loo`.
"""

import numpy as np
import pytest
import scipy.stats

from bayessel import gp
from bayessel.covariance import Standard
from bayessel.gp.loo import inverse_diagonal, leave_one_out


@pytest.mark.parametrize("n", [2, 3, 40])
def test_they_are_the_predictions_without_the_row(rng, n):
    X = rng.normal(size=(n, 2))
    t = np.cos(X[:, 0]) + 0.2 * rng.normal(size=n)
    for theta in Standard().start(2) + rng.normal(size=(4, 6)):
        errors, variances = leave_one_out(gp.Marginal(X, t).factor(theta))
        for i in range(n):
            others = np.arange(n) != i
            alone = gp.Predictor(X[others], t[others], None, theta)(X[[i]])
            assert t[i] - errors[i] == pytest.approx(alone.means[0, 0], rel=1e-8, abs=1e-9)
            assert variances[i] == pytest.approx(alone.variances[0, 0], rel=1e-8)


def test_one_row_is_predicted_by_the_prior():
    theta, X = np.array([0.3, -1.0, 0.2, -1.0, -2.0]), np.array([[2.0]])
    errors, variances = leave_one_out(gp.Marginal(X, np.array([1.5])).factor(theta))
    assert errors[0] == pytest.approx(1.5)
    assert variances[0] == pytest.approx(np.exp(0.3) + np.exp(-1.0) + np.exp(-1.0) + 4 * np.exp(-2.0))


def test_duplicate_rows_help_each_other(rng):
    X = np.repeat(rng.normal(size=(6, 1)), 2, axis=0)
    t = np.sin(3 * X[:, 0]) + 0.01 * rng.normal(size=12)
    errors, variances = leave_one_out(gp.Marginal(X, t).factor(np.array([0.0, np.log(1e-4), 2.0, -9.0, -9.0])))
    assert (variances < 2.1e-4).all() and (np.abs(errors) < 0.06).all()


def test_the_diagonal_is_that_of_the_inverse_whatever_lies_above_the_factor(rng):
    A = rng.normal(size=(13, 13))
    Q = A @ A.T + np.eye(13)
    L = np.linalg.cholesky(Q)
    expected = np.diag(np.linalg.inv(Q))
    before = L + np.triu(rng.normal(size=(13, 13)), 1)
    for factor in (L, np.asfortranarray(L), before):
        kept = factor.copy()
        np.testing.assert_allclose(inverse_diagonal(factor), expected, rtol=1e-11)
        assert np.array_equal(factor, kept)


def test_the_mixture_of_several_states_has_their_leave_one_out_as_components(rng):
    X, t = rng.normal(size=(20, 2)), rng.normal(size=20)
    thetas = Standard().start(2) + 0.3 * rng.normal(size=(3, 6))
    told = []
    found = gp.Predictor(X, t, None, thetas).leave_one_out(lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    for s, theta in enumerate(thetas):
        errors, variances = leave_one_out(gp.Marginal(X, t).factor(theta))
        np.testing.assert_allclose(found.means[s], t - errors, rtol=1e-12)
        np.testing.assert_allclose(found.variances[s], variances, rtol=1e-12)


def test_errors_are_calibrated_where_the_model_is_right(rng):
    """For data from the model a_i/√[Q⁻¹]_ii is standard normal: its mean square is 1, in standard errors over sets."""
    theta = np.array([0.0, -2.0, 0.5, -2.0, -2.0])
    X = rng.normal(size=(25, 1))
    K = Standard().matrix(theta, X)
    root = np.linalg.cholesky(K + np.exp(-2.0) * np.eye(25))
    squares, wrong = [], []
    for _ in range(400):
        marginal = gp.Marginal(X, root @ rng.normal(size=25))
        for shift, into in ((0.0, squares), (0.35, wrong)):
            errors, variances = leave_one_out(marginal.factor(theta + shift * np.array([0, 1, 0, 0, 0])))
            into.append((errors**2 / variances).mean())
    for into, right in ((squares, True), (wrong, False)):
        z = (np.mean(into) - 1.0) / scipy.stats.sem(into)
        assert (abs(z) < 4.0) == right
