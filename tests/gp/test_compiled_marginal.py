"""The compiled value and gradient: many digits, dense twins, the evaluation in NumPy, limits.

Guards `bayessel.gp.compiled_marginal`.
"""

import pickle

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayessel.covariance import Noise, SquaredExponential
from bayessel.covariance.standard import Standard
from bayessel.fit import Status
from bayessel.gp import Marginal
from bayessel.gp.compiled_marginal import BLOCK, CompiledMarginal, invert, marginal_of, routines
from bayessel.gp.marginal import KEEP


def problem(rng, n, m=3):
    X = rng.normal(size=(n, m))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def near_start(rng, m):
    return Standard().start(m) + 0.3 * rng.normal(size=m + 4)


def exact(theta, X, t):
    """The definition with many digits."""
    m, n = X.shape[1], len(t)
    v0, r2, *w, a0, a1 = (mpmath.exp(one) for one in theta)
    X, t = ([[mpmath.mpf(float(x)) for x in row] for row in X]), mpmath.matrix([float(one) for one in t])
    Q = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(n):
            s = sum(w[f] * (X[i][f] - X[j][f]) ** 2 for f in range(m))
            Q[i, j] = v0 * mpmath.exp(-s / 2) + a0 + a1 * sum(X[i][f] * X[j][f] for f in range(m)) + r2 * (i == j)
    quadratic = (t.T * mpmath.lu_solve(Q, t))[0]
    return -(mpmath.log(mpmath.det(Q)) + quadratic + n * mpmath.log(2 * mpmath.pi)) / 2


def test_value_and_gradient_to_many_digits(rng):
    X, t = problem(rng, 7, 2)
    theta = near_start(rng, 2)
    value, gradient = CompiledMarginal(X, t).value_and_gradient(theta)
    with mpmath.workdps(50):
        point = [mpmath.mpf(float(one)) for one in theta]
        expected = exact(point, X, t)
        h = mpmath.mpf(10) ** -15
        for i in range(6):
            up, down = ([one + sign * h * (j == i) for j, one in enumerate(point)] for sign in (1, -1))
            slope = (exact(up, X, t) - exact(down, X, t)) / (2 * h)
            assert_allclose(gradient[i], float(slope), rtol=1e-11, atol=1e-12)
    assert_allclose(value, float(expected), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 200])
@pytest.mark.parametrize("m", [1, 3, 9])
def test_the_same_as_in_numpy(n, m, rng):
    X, t = problem(rng, n, m)
    compiled, plain = CompiledMarginal(X, t), Marginal(X, t)
    for _ in range(3):
        theta = near_start(rng, m)
        value, gradient = compiled.value_and_gradient(theta)
        expected, slope = plain.value_and_gradient(theta)
        assert_allclose([value, compiled.value(theta)], expected, rtol=1e-11)
        assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())


def test_some_of_the_inputs(rng):
    X, t = problem(rng, 40, 4)
    covariance = Standard().on([3, 1])
    theta = near_start(rng, 2)
    found = marginal_of(X, t, covariance)
    assert isinstance(found, CompiledMarginal)
    value, gradient = found.value_and_gradient(theta)
    expected, slope = Marginal(X[:, [3, 1]], t).value_and_gradient(theta)
    assert_allclose(value, expected, rtol=1e-11)
    assert_allclose(gradient, slope, rtol=1e-9, atol=1e-10 * np.abs(slope).max())


def test_far_inputs_and_great_weights(rng):
    # differences are taken: an offset of all inputs costs the digits of the inputs and no more
    X, t = problem(rng, 30, 2)
    X = np.round(X * 2**20) / 2**20
    theta = near_start(rng, 2)
    theta[-1] = -60.0  # the plane sees the offset, and rightly
    near, far = (CompiledMarginal(X + offset, t).value_and_gradient(theta) for offset in (0.0, 2.0**20))
    assert_allclose(far[0], near[0], rtol=1e-9)
    theta[2:4] = [600.0, -700.0]
    value, gradient = CompiledMarginal(X, t).value_and_gradient(theta)
    assert_allclose(value, Marginal(X, t).value(theta), rtol=1e-11)
    assert_allclose(gradient[2:4], 0.0, atol=1e-100)


@pytest.mark.parametrize("i", range(7))
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 710.0])
def test_where_there_is_no_density_it_is_nil(i, bad, rng):
    X, t = problem(rng, 12)
    marginal, theta = CompiledMarginal(X, t), Standard().start(3)
    theta[i] = bad
    value, gradient = marginal.value_and_gradient(theta)
    assert value == marginal.value(theta) == -np.inf and marginal.status is Status.ILL_CONDITIONED
    assert_array_equal(gradient, 0.0)
    assert np.isfinite(marginal.value(Standard().start(3))) and marginal.status is Status.CONVERGED


def test_copies_without_noise_are_ill_conditioned(rng):
    X, t = problem(rng, 12)
    theta = Standard().start(3)
    theta[1] = -80.0
    marginal = CompiledMarginal(np.tile(X, (2, 1)), np.tile(t, 2))
    assert marginal.value(theta) == -np.inf


@pytest.mark.parametrize("n", [1, BLOCK, 150])
def test_the_inverse(n, rng):
    A = rng.normal(size=(n, 2 * n))
    A = A @ A.T + np.eye(n)
    Q = np.linalg.cholesky(A)  # its lower triangle by rows is the upper one by columns
    invert(Q, routines(), np.zeros(8, dtype=np.int32), np.frombuffer(b"UNTLR", dtype=np.uint8).copy())
    assert_allclose(np.tril(Q), np.tril(np.linalg.inv(A)), rtol=1e-8, atol=1e-12)


def test_what_is_compiled_and_that_it_travels(rng):
    X, t = problem(rng, 20)
    assert isinstance(marginal_of(X, t, Standard()), CompiledMarginal)
    assert type(marginal_of(X, t, SquaredExponential() + Noise())) is Marginal
    assert type(marginal_of(np.zeros((KEEP + 1, 1)), np.zeros(KEEP + 1), Standard())) is Marginal
    marginal, theta = CompiledMarginal(X, t), Standard().start(3)
    value = marginal.value(theta)
    again = pickle.loads(pickle.dumps(marginal))
    assert again.value(theta) == value
    with pytest.raises(ValueError, match="theta must have 7 entries"):
        marginal.value(theta[:-1])
