"""A process at its rows as one node: values, slopes against differences, in every mode; data, threads, pickles.

Guards `bayessel.models._latent_op`.
"""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bayessel.covariance import Bias, Linear, Matern52, Noise, RationalQuadratic, SquaredExponential, Standard
from bayessel.models._latent_op import JITTER, LatentAtNew, LatentSlopes, LatentValues, given_values

PYTHON = "FAST_COMPILE"
COVARIANCES = [
    Standard(),
    SquaredExponential() + Bias() + Linear(),
    SquaredExponential(amplitude=False) * Matern52(ard=False) + Noise(),
    RationalQuadratic(),
]


def dense(covariance, theta, X):
    """Lower factor of the covariance at the rows, by NumPy."""
    K = covariance.matrix(theta, X)
    noise = covariance.noise(theta, X.shape[1])
    return np.linalg.cholesky(K + (noise + JITTER * (np.mean(np.diag(K)) + noise)) * np.eye(len(X)))


def somewhere(covariance, rng, n=14, m=2):
    X = rng.standard_normal((n, m))
    return covariance.start(m) + 0.3 * rng.standard_normal(covariance.size(m)), X, rng.standard_normal(n)


@pytest.mark.parametrize("mode", [None, PYTHON])
@pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
def test_values_and_slopes(rng, covariance, mode):
    theta, X, v = somewhere(covariance, rng)
    pull = rng.standard_normal(len(X))
    symbols = pt.dvector("theta"), pt.dmatrix("X"), pt.dvector("v")
    f, _ = LatentValues(covariance)(*symbols)
    total = (pull * pt.sin(f)).sum()
    function = pytensor.function([*symbols], [f, *pytensor.grad(total, [symbols[0], symbols[2]])], mode=mode)
    found, by_theta, by_v = function(theta, X, v)
    assert_allclose(found, dense(covariance, theta, X) @ v, rtol=1e-9, atol=1e-9)

    def value(theta, v):
        return pull @ np.sin(dense(covariance, theta, X) @ v)

    for slope, at, of in ((by_theta, theta, 0), (by_v, v, 1)):
        steps = 1e-4 * np.eye(len(at))
        differences = []
        for e in steps:
            pairs = [((theta + k * e, v) if of == 0 else (theta, v + k * e)) for k in (-2, -1, 1, 2)]
            far, low, high, farther = (value(*pair) for pair in pairs)
            differences.append((far - 8.0 * low + 8.0 * high - farther) / 12e-4)
        assert_allclose(slope, differences, rtol=1e-5, atol=1e-6)


def test_more_rows_than_a_panel(rng):
    covariance = Standard()
    theta, X, v = somewhere(covariance, rng, n=150)
    op, slopes = LatentValues(covariance), LatentSlopes(covariance)
    f, L = op.values(theta, X, v)
    assert_allclose(f, dense(covariance, theta, X) @ v, rtol=1e-8, atol=1e-8)
    pull = rng.standard_normal(150)
    by_theta, by_v = slopes.slopes(theta, X, v, L, pull)
    assert_allclose(by_v, L.T @ pull, rtol=1e-10)
    for k, e in enumerate(1e-5 * np.eye(len(theta))):
        difference = pull @ (op.values(theta + e, X, v)[0] - op.values(theta - e, X, v)[0]) / 2e-5
        assert_allclose(by_theta[k], difference, rtol=1e-5, atol=1e-5)


def test_rows_twice_the_same_have_a_factor(rng):
    """A smooth function at equal inputs: the same value to the jitter."""
    covariance = SquaredExponential()
    X = np.repeat(np.linspace(-1.0, 1.0, 30), 2)[:, None]
    f, _ = LatentValues(covariance).values(covariance.start(1), X, rng.standard_normal(60))
    assert np.isfinite(f).all()
    assert_allclose(f[::2], f[1::2], atol=6e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 900.0])
def test_where_there_is_no_factor_nothing_is_a_number(rng, bad):
    covariance = Standard()
    theta, X, v = somewhere(covariance, rng)
    theta[0] = bad
    f, L = LatentValues(covariance).values(theta, X, v)
    assert np.isnan(f).all() and np.isnan(L).all()
    by_theta, by_v = LatentSlopes(covariance).slopes(theta, X, v, L, np.ones(len(v)))
    assert np.isnan(by_theta).all() and np.isnan(by_v).all()


def test_other_inputs_are_seen_even_in_the_same_array(rng):
    covariance = Standard()
    theta, X, v = somewhere(covariance, rng)
    op = LatentValues(covariance)
    op.values(theta, X, v)
    X[3] += 1.0
    assert_allclose(op.values(theta, X, v)[0], dense(covariance, theta, X) @ v, rtol=1e-9, atol=1e-9)
    assert_allclose(op.values(theta, X[:5], v[:5])[0], dense(covariance, theta, X[:5]) @ v[:5], rtol=1e-9, atol=1e-9)
    with pytest.raises(ValueError, match="the data in the model are not those of the trace"):
        op.values(theta, X[:5], v)


def test_only_first_derivatives_and_nothing_of_the_factor(rng):
    theta, X, v = pt.dvector("theta"), pt.dmatrix("X"), pt.dvector("v")
    f, L = LatentValues(Standard())(theta, X, v)
    with pytest.raises(NotImplementedError, match="not for further use"):
        pytensor.grad(f.sum() + L.sum(), theta)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        pytensor.grad(pytensor.grad((f**2).sum(), theta).sum(), theta)


def test_threads_and_pickles(rng):
    covariance = Standard()
    theta, X, v = somewhere(covariance, rng, n=90)
    op = pickle.loads(pickle.dumps(LatentSlopes(covariance)))
    assert op == LatentSlopes(covariance)
    thetas = theta + 0.2 * rng.standard_normal((20, len(theta)))
    factors = [LatentValues(covariance).values(one, X, v)[1] for one in thetas]
    expected = [op.slopes(one, X, v, L, v)[0] for one, L in zip(thetas, factors, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: op.slopes(thetas[k % 20], X, v, factors[k % 20], v)[0], range(60)))
    for k, one in enumerate(found):
        assert_array_equal(one, expected[k % 20])


def test_new_inputs_given_the_values_at_the_rows(rng):
    for covariance in (SquaredExponential() + Bias(), Standard()):
        theta, X, v = somewhere(covariance, rng, n=6)
        new = rng.standard_normal((3, 2))
        noise = covariance.noise(theta, 2)
        both = covariance.matrix(theta, np.vstack([X, new])) + noise * np.eye(9)
        L = dense(covariance, theta, X)
        gain = np.linalg.solve(L @ L.T, both[:6, 6:]).T
        mean, rest = given_values(covariance, theta, v, X, new)
        assert_allclose(mean, gain @ (L @ v), rtol=1e-6, atol=1e-7)
        assert_allclose(rest, both[6:, 6:] - gain @ both[:6, 6:], atol=1e-7)
        op = LatentAtNew(covariance)
        at = [op.draw(theta, v, X, new, np.int64(1), z) for z in (np.zeros(3), *np.eye(3))]
        assert_allclose(at[0], mean)
        B = np.array(at[1:]).T - mean[:, None]
        assert_allclose(B @ B.T, rest, atol=1e-7)
