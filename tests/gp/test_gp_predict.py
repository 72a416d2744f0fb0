"""Predictions of Gaussian processes against the joint Gaussian of rows and test points; mixtures against quadrature.

Guards `bayessel.gp.predict`, `bayessel.prediction`.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad
from scipy.optimize import brentq

from bayessel import _mixture_quantiles, gp
from bayessel.covariance import Standard
from bayessel.gp import Predictor, predict
from bayessel.prediction import Prediction

S = Standard()


def problem(rng, n=25, m=3, states=3, N=7):
    X, new = rng.normal(size=(n, m)), rng.normal(size=(N, m))
    t = np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, t, S.start(m) + 0.5 * rng.normal(size=(states, m + 4)), new


def observed(theta, X):
    """Covariance of observations at the rows of X, written out."""
    m = X.shape[1]
    v0, r2, w, a0, a1 = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2 : 2 + m]), *np.exp(theta[-2:])
    K = np.array([[a0 + a1 * x @ z + v0 * np.exp(-0.5 * w @ (x - z) ** 2) for z in X] for x in X])
    return K + r2 * np.eye(len(X))


def by_precision(theta, X, t, x):
    """Mean and variance of one observation at x given the rows: from the inverse of the joint covariance."""
    precision = np.linalg.inv(observed(theta, np.vstack([X, x])))
    return -precision[-1, :-1] @ t / precision[-1, -1], 1.0 / precision[-1, -1]


# --- components ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 25])
@pytest.mark.parametrize("m", [1, 3])
def test_each_component_is_the_conditional_of_the_joint_gaussian(rng, n, m):
    X, t, thetas, new = problem(rng, n, m)
    found = Predictor(X, t, None, thetas)(new)
    assert found.means.shape == found.variances.shape == (3, 7)
    for s, theta in enumerate(thetas):
        expected = np.array([by_precision(theta, X, t, x) for x in new]).T
        np.testing.assert_allclose(found.means[s], expected[0], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(found.variances[s], expected[1], rtol=1e-9)
    function = Predictor(X, t, None, thetas)(new).function
    np.testing.assert_allclose(found.variances - function.variances, np.exp(thetas[:, [1]]) + np.zeros(7), rtol=1e-9)
    means = Predictor(X, t, None, thetas)(new, variance=False)
    assert np.array_equal(means.means, found.means) and not means.variances.any()


def test_predictions_one_after_the_other_multiply_to_the_evidence(rng):
    """log p(t) = Σ log p(t_i | t_1 … t_{i−1})."""
    X, t, thetas, _ = problem(rng, 30)
    m = X.shape[1]
    for theta in thetas:
        total = scipy.stats.norm.logpdf(t[0], 0, np.sqrt(S.diagonal(theta, X[:1])[0] + S.noise(theta, m)))
        for i in range(1, 30):
            total += Predictor(X[:i], t[:i], None, theta)(X[[i]]).log_density(t[[i]])[0]
        assert total == pytest.approx(gp.log_marginal(theta, X, t), rel=1e-11)


@pytest.mark.parametrize("block", [1.0, 8.0 * 25 * 3])
def test_blocks_layouts_and_kept_factors_change_nothing(rng, monkeypatch, block):
    X, t, thetas, new = problem(rng, N=11)
    predictor = Predictor(X, t, None, thetas)
    expected = predictor(new)
    assert len(predictor._factors) == 3
    monkeypatch.setattr(predict, "BLOCK", block)
    monkeypatch.setattr(predict, "KEPT", 8.0 * 25**2 * 2)
    other = Predictor(np.asfortranarray(X), t, S, thetas)
    for inputs in (new, np.asfortranarray(new), np.repeat(new, 2, axis=0)[::2]):
        found = other(inputs)
        np.testing.assert_allclose(found.means, expected.means, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-11)
    assert len(other._factors) == 2
    back = pickle.loads(pickle.dumps(predictor))
    assert not back._factors and len(pickle.dumps(predictor)) < 5000
    np.testing.assert_allclose(back(new).means, expected.means, rtol=1e-12)


def test_a_factor_in_another_order_gives_the_same(rng):
    A = rng.normal(size=(9, 9))
    L, across = np.linalg.cholesky(A @ A.T + np.eye(9)), rng.normal(size=(9, 4))
    expected = (np.linalg.solve(L, across) ** 2).sum(axis=0)
    for factor in (L, np.asfortranarray(L)):
        for right in (across, np.asfortranarray(across)):
            np.testing.assert_allclose(predict.explained(factor, right.copy(order="K")), expected, rtol=1e-12)


def test_rounding_leaves_no_negative_variance():
    X = np.linspace(-2, 2, 60)[:, None]
    theta = np.array([0.0, -34.0, -4.0, -30.0, -30.0])
    predictor = Predictor(X, np.sin(X[:, 0]), None, theta)
    exact = S.diagonal(theta, X) - predict.explained(predictor.factor(0).L, S.matrix(theta, X, X))
    assert exact.min() < 0.0  # what rounding leaves
    found = predictor(X).function
    assert (found.variances > 0.0).all() and (found.variances < 1e-13).all()
    np.testing.assert_allclose(found.means[0], np.sin(X[:, 0]), atol=1e-4)


def test_progress_is_told_and_ends_at_the_end(rng, monkeypatch):
    X, t, thetas, new = problem(rng, N=11)
    monkeypatch.setattr(predict, "BLOCK", 8.0 * 25 * 4)
    seen = []
    Predictor(X, t, None, thetas)(new, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 33) for done in (4, 8, 11, 15, 19, 22, 26, 30, 33)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([[0.0], [1.0]], [0.0, 1.0], None, np.zeros((2, 4))), r"thetas must be states of 5 parameters.*\(2, 4\)"),
        (([[0.0], [1.0]], [0.0, 1.0], None, np.zeros((0, 5))), "thetas must be states of 5"),
        (([[0.0], [1.0]], [0.0], None, np.zeros(5)), "one value per row"),
    ],
)
def test_bad_predictors_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        Predictor(*arguments)


def test_bad_test_points_are_refused(rng):
    X, t, thetas, new = problem(rng)
    with pytest.raises(ValueError, match=r"Xnew must have the 3 columns of X, got shape \(7, 2\)"):
        Predictor(X, t, None, thetas)(new[:, :2])
    with pytest.raises(ValueError, match="Xnew must be finite"):
        Predictor(X, t, None, thetas)(np.full((1, 3), np.nan))


# --- mixtures --------------------------------------------------------------------------------------------------


def some_mixture(rng, states=6, N=4, weighted=False):
    means, sd = 2.0 * rng.normal(size=(states, N)), np.exp(0.7 * rng.normal(size=(states, N)))
    weights = rng.dirichlet(np.ones(states), size=N).T
    return Prediction(means, sd**2, np.log(weights) if weighted else None)


def parts(mixed, j):
    """Weights, means, widths of one column."""
    weights = np.full(len(mixed.means), 1.0 / len(mixed.means))
    if mixed.log_weights is not None:
        weights = np.exp(mixed.log_weights[:, j])
    return weights, mixed.means[:, j], np.sqrt(mixed.variances[:, j])


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_integrals_of_the_density(rng, weighted):
    mixed = some_mixture(rng, weighted=weighted)
    for j in range(4):

        def density(y, j=j):
            return float(np.exp(mixed.log_density(np.full(4, y))[j]))

        points = {"points": np.sort(mixed.means[:, j]), "limit": 400, "epsabs": 1e-12}
        total, first, second = (quad(lambda y, k=k: y**k * density(y), -60, 60, **points)[0] for k in range(3))
        assert total == pytest.approx(1.0, rel=1e-8)
        assert mixed.mean[j] == pytest.approx(first, rel=1e-7)
        assert mixed.variance[j] == pytest.approx(second - first**2, rel=1e-7)
        assert mixed.std[j] == pytest.approx(np.sqrt(mixed.variance[j]))
        weights, means, sd = parts(mixed, j)
        expected = np.log(weights @ scipy.stats.norm.pdf(0.7, means, sd))
        assert mixed.log_density(np.full(4, 0.7))[j] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_solve_the_distribution_function(rng, weighted):
    mixed = some_mixture(rng, weighted=weighted)
    levels = [0.001, 0.05, 0.3, 0.5, 0.77, 0.99]
    found = mixed.quantile(levels)
    assert found.shape == (6, 4) and np.array_equal(mixed.median, found[3])
    for j in range(4):
        weights, means, sd = parts(mixed, j)
        for level, value in zip(levels, found[:, j], strict=True):

            def gap(y, weights=weights, means=means, sd=sd, level=level):
                return weights @ scipy.stats.norm.cdf(y, means, sd) - level

            assert value == pytest.approx(brentq(gap, -80, 80, xtol=1e-13), abs=1e-9)
    np.testing.assert_allclose(np.exp(mixed.log_cdf(found[1])), 0.05, rtol=1e-9)


def test_quantiles_far_out_keep_their_digits(rng):
    mixed = some_mixture(rng, states=40)
    for level in (1e-300, 1e-12):
        np.testing.assert_allclose(mixed.log_cdf(mixed.quantile(level)), np.log(level), rtol=1e-12)
    upper = Prediction(-mixed.means, mixed.variances).quantile(1e-12)
    # 1 − 1e-12 is known to four digits only; the distance to the mirrored quantile is that rounding
    np.testing.assert_allclose(mixed.quantile(1.0 - 1e-12), -upper, rtol=1e-4)


def test_quantiles_of_peaks_far_apart_and_of_very_different_width():
    apart = Prediction(np.array([[-1e3], [1e3], [1e3]]), np.full((3, 1), 1e-6))
    # a third of the mass is below: quantiles at 1/6 and 2/3 are the medians of the peaks
    np.testing.assert_allclose(apart.quantile([1 / 6, 2 / 3])[:, 0], [-1e3, 1e3], rtol=1e-13)
    even = Prediction(np.array([[-5.0], [5.0]]), np.full((2, 1), 1e-8))
    assert -5.0 < even.median[0] < 5.0
    uneven = Prediction(np.zeros((2, 1)), np.array([[1e-12], [1e12]]))
    value = uneven.quantile(0.9)[0]
    assert np.exp(uneven.log_cdf(np.array([value]))[0]) == pytest.approx(0.9, rel=1e-12) and value > 1e5


def test_one_component_is_the_normal_distribution(rng):
    one = Prediction(np.array([[1.0, -2.0]]), np.array([[4.0, 0.01]]))
    expected = scipy.stats.norm.ppf([[0.05], [0.5], [0.999]], [1.0, -2.0], [2.0, 0.1])
    np.testing.assert_allclose(one.quantile([0.05, 0.5, 0.999]), expected, rtol=1e-14)
    np.testing.assert_array_equal(one.median, one.mean)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, [0.5, 1.5], np.nan, [[0.5]]])
def test_levels_are_probabilities(rng, q):
    with pytest.raises(ValueError, match="quantiles must be probabilities between 0 and 1"):
        some_mixture(rng).quantile(q)


def test_scaling_is_that_of_the_random_variable(rng):
    mixed = some_mixture(rng, weighted=True)
    scaled = mixed.scaled(10.0, 3.0)
    np.testing.assert_allclose(scaled.mean, 10 + 3 * mixed.mean)
    np.testing.assert_allclose(scaled.std, 3 * mixed.std)
    np.testing.assert_allclose(scaled.median, 10 + 3 * mixed.median, rtol=1e-9)
    y = rng.normal(size=4)
    np.testing.assert_allclose(scaled.log_density(10 + 3 * y), mixed.log_density(y) - np.log(3.0), rtol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_function_is_a_mixture_with_the_same_weights(rng, weighted):
    """Its moments by the law of total variance, with the variances that hold no noise."""
    mixed = some_mixture(rng, weighted=weighted)
    mixed = replace(mixed, function_variances=0.3 * mixed.variances)
    function = mixed.function
    for j in range(4):
        weights, means, sd = parts(mixed, j)
        mean = weights @ means
        assert function.mean[j] == pytest.approx(mean, rel=1e-12)
        assert function.variance[j] == pytest.approx(weights @ (0.3 * sd**2 + (means - mean) ** 2), rel=1e-12)
    np.testing.assert_allclose(mixed.scaled(5.0, 3.0).function.std, 3.0 * function.std, rtol=1e-12)
    with pytest.raises(ValueError, match="not known apart from the noise"):
        _ = some_mixture(rng).function


def test_a_component_without_width_has_no_density_beside_itself():
    mixed = Prediction(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]))
    assert mixed.log_density(np.array([0.5]))[0] == pytest.approx(scipy.stats.norm.logpdf(0.5, 1.0) - np.log(2.0))


def widened_by_hand(means, variances):
    """The loop of the program, counting from one."""
    variances = variances.copy()
    k = len(means)
    for i in range(means.shape[1]):
        ordered = sorted(means[:, i])
        ratio = np.sqrt(variances[:, i]).sum() / (ordered[k * 5 // 6 - 1] - ordered[k // 6 - 1])
        if ratio < 1.0:
            variances[:, i] /= ratio**2
    return variances


def test_the_widened_mixture_is_that_of_the_program(rng):
    means, variances = rng.normal(size=(26, 40)), np.exp(rng.normal(-5.2, 0.5, size=(26, 40)))
    found = Prediction(means, variances).widened()
    np.testing.assert_allclose(found.variances, widened_by_hand(means, variances), rtol=1e-12)
    changed = (found.variances != variances).any(axis=0)
    assert changed.any() and not changed.all()
    assert np.array_equal(found.means, means)
    together, middle = np.sqrt(found.variances).sum(axis=0), np.sort(means, axis=0)
    np.testing.assert_allclose(together[changed], (middle[20] - middle[3])[changed], rtol=1e-12)
    one = Prediction(means[:1], variances[:1])
    assert np.array_equal(one.widened().variances, one.variances)


def test_a_mixture_closer_than_newton_may_jump_is_halved(rng, monkeypatch):
    """Without its bounds Newton's method leaves for infinity between two peaks; this sees that the bounds work."""
    mixed = Prediction(np.array([[-50.0], [50.0], [51.0]]), np.ones((3, 1)))
    value = mixed.quantile(1 / 3 + 1e-9)[0]
    assert np.exp(mixed.log_cdf(np.array([value]))[0]) == pytest.approx(1 / 3 + 1e-9, rel=1e-12)
    monkeypatch.setattr(_mixture_quantiles, "_MOST_STEPS", 1)
    assert abs(mixed.quantile(1 / 3 + 1e-9)[0] - value) > 1e-3


@pytest.mark.slow
def test_a_prediction_costs_little_more_than_its_triangular_solve(rng):
    """Per test point n² operations at the speed of BLAS: everything else is a fraction of that."""
    import time

    from scipy.linalg import blas

    X, t, thetas, new = problem(rng, n=1000, m=8, states=1, N=4096)
    predictor = Predictor(X, t, None, thetas)
    upper, right = predictor.factor(0).L.T, rng.normal(size=(1000, 4096)).T
    times = {"solve": [], "all": []}
    for _ in range(9):
        began = time.perf_counter()
        blas.dtrsm(1.0, upper, right, side=1, lower=0, overwrite_b=0)
        middle = time.perf_counter()
        predictor(new)
        times["solve"].append(middle - began)
        times["all"].append(time.perf_counter() - middle)
    assert min(times["all"]) < 1.6 * min(times["solve"])
