"""The node of the graph: values and gradients in every mode, the value alone where nobody asks for more, threads.

Guards `bayessel.models._gp_op`.
"""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

import bayessel as bs
from bayessel.covariance import Standard
from bayessel.models._gp_op import LogMarginal

PYTHON = {"mode": "FAST_COMPILE"}


def problem(rng, n=15, m=2):
    X = rng.standard_normal((n, m))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def density(theta, X, t):
    """The definition, by SciPy."""
    covariance = Standard()
    K = covariance.matrix(theta, X) + covariance.noise(theta, X.shape[1]) * np.eye(len(X))
    return multivariate_normal(np.zeros(len(X)), K).logpdf(t)


@pytest.fixture(scope="module")
def compiled():
    """Value, and value and gradient, by Numba and by Python."""
    theta, X, t = pt.dvector("theta"), pt.dmatrix("X"), pt.dvector("t")
    value, _ = LogMarginal(Standard())(theta, X, t)
    gradient = pytensor.grad(3.0 * value, theta)
    return {
        name: (
            pytensor.function([theta, X, t], value, **mode),
            pytensor.function([theta, X, t], [value, gradient], **mode),
        )
        for name, mode in {"numba": {}, "python": PYTHON}.items()
    }


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_value_and_gradient(compiled, mode, rng):
    value, both = compiled[mode]
    X, t = problem(rng)
    theta = Standard().start(2) + 0.3 * rng.standard_normal(6)
    expected = density(theta, X, t)
    assert_allclose(value(theta, X, t), expected, rtol=1e-9)
    found, gradient = both(theta, X, t)
    assert_allclose(found, expected, rtol=1e-9)
    step = 1e-5 * np.eye(6)
    differences = [(density(theta + e, X, t) - density(theta - e, X, t)) / 2e-5 for e in step]
    assert_allclose(gradient, 3.0 * np.array(differences), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["numba", "python"])
def test_other_data_are_seen_even_in_the_same_array(compiled, mode, rng):
    _, both = compiled[mode]
    X, t = problem(rng)
    theta = Standard().start(2)
    both(theta, X, t)
    t[3] += 1.0
    assert_allclose(both(theta, X, t)[0], density(theta, X, t), rtol=1e-9)
    X[0, 1] -= 0.5
    assert_allclose(both(theta, X, t)[0], density(theta, X, t), rtol=1e-9)
    assert_allclose(both(theta, X[:9], t[:9])[0], density(theta, X[:9], t[:9]), rtol=1e-9)


def flags(function):
    return [node.op.gradient for node in function.maker.fgraph.toposort() if isinstance(node.op, LogMarginal)]


def test_the_gradient_is_left_out_where_nobody_asks_for_it(compiled):
    for value, both in compiled.values():
        assert flags(value) == [False]
        assert flags(both) == [True]  # one node, not two


@pytest.mark.parametrize("mode", [{}, PYTHON])
def test_one_node_in_what_samplers_call(mode, rng):
    # PyMC simplifies the density before it differentiates it: the value alone, and then the gradient beside it
    model = bs.models.gp(*problem(rng))
    assert flags(model.logp_dlogp_function(ravel_inputs=True, **mode)._pytensor_function) == [True]
    assert flags(model.compile_logp(**mode).f) == [False]


def test_the_value_alone_can_be_differentiated_too(rng):
    theta, (X, t) = pt.dvector("theta"), problem(rng)
    value = LogMarginal(Standard(), gradient=False)(theta, X, t)
    twin, _ = LogMarginal(Standard())(theta, X, t)
    point = Standard().start(2)
    gradients = [pytensor.grad(v, theta).eval({theta: point}, mode=PYTHON["mode"]) for v in (value, twin)]
    assert_array_equal(*gradients)


def test_no_second_derivatives(rng):
    theta, (X, t) = pt.dvector("theta"), problem(rng)
    gradient = pytensor.grad(LogMarginal(Standard())(theta, X, t)[0], theta)
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        pytensor.grad(gradient.sum(), theta)


@pytest.mark.parametrize("mode", ["numba", "python"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 800.0])
def test_where_there_is_no_density_it_is_nil(compiled, mode, bad, rng):
    value, both = compiled[mode]
    X, t = problem(rng)
    theta = Standard().start(2)
    theta[0] = bad
    if bad == -np.inf:  # no signal at all is a density, but not one of the model's: its prior is nil there
        theta[1] = bad
    assert value(theta, X, t) == -np.inf
    found, gradient = both(theta, X, t)
    assert found == -np.inf
    assert_array_equal(gradient, 0.0)


def test_threads_do_not_write_into_each_other(compiled, rng):
    _, both = compiled["python"]
    op = next(node.op for node in both.maker.fgraph.toposort() if isinstance(node.op, LogMarginal))
    X, t = problem(rng, n=120)
    thetas = Standard().start(2) + 0.3 * rng.standard_normal((40, 6))
    expected = [op.both(theta, X, t) for theta in thetas]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda theta: op.both(theta, X, t), np.repeat(thetas, 5, axis=0)))
    for i, (value, gradient) in enumerate(found):
        assert value == expected[i // 5][0]
        assert_array_equal(gradient, expected[i // 5][1])


def test_it_travels(rng):
    op = LogMarginal(Standard())
    X, t = problem(rng)
    theta = Standard().start(2)
    expected = op.both(theta, X, t)
    other = pickle.loads(pickle.dumps(op))
    value, gradient = other.both(theta, X, t)
    assert value == expected[0]
    assert_array_equal(gradient, expected[1])
