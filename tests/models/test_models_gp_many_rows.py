"""Gaussian processes of many rows as PyMC models: density and gradient are those of the engine.

Guards `bayessel.models._gp_op`.
"""

import pickle

import numpy as np
import pytest

import bayessel as bs
from bayessel.covariance import Periodic, Standard
from bayessel.gp import Marginal
from bayessel.models._gp_op import ChosenNeighbours, LogMarginal


def wave(rng, n=120):
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_density_and_gradient_are_those_of_the_approximation(rng):
    X, t = wave(rng)
    model = bs.models.gp(X, t, method="vecchia", neighbours=6, inducing=10)
    theta = Standard().start(2) + 0.2 * rng.normal(size=6)
    marginal = ChosenNeighbours(6, 10).marginal(X, t, Standard())
    value, gradient = marginal.value_and_gradient(theta)
    prior = Standard().prior(2)
    point = {"theta": theta}
    np.testing.assert_allclose(model.compile_logp()(point), value + prior.log_density(theta), rtol=1e-10)
    np.testing.assert_allclose(model.compile_dlogp()(point), gradient + prior.gradient(theta), rtol=1e-8, atol=1e-8)
    assert abs(value - Marginal(X, t).value(theta)) > 1e-6


def test_all_rows_for_neighbours_are_the_dense_node(rng):
    X, t = wave(rng, 30)
    theta = Standard().start(2)
    node = pickle.loads(pickle.dumps(LogMarginal(Standard(), near=ChosenNeighbours(29, 0))))
    value, gradient = node.both(theta, X, t)
    expected = LogMarginal(Standard()).both(theta, X, t)
    np.testing.assert_allclose(value, expected[0], rtol=1e-9)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-8, atol=1e-8)
    assert node != LogMarginal(Standard())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "sparse"}, "method must be one of"),
        ({"method": "vecchia", "likelihood": "student"}, "method='vecchia' is for likelihood='gaussian'"),
        ({"method": "vecchia", "neighbours": 0}, "neighbours must be at least 1"),
        ({"method": "vecchia", "covariance": Periodic()}, "method='vecchia' takes sums of"),
    ],
)
def test_bad_options_are_refused(rng, options, text):
    with pytest.raises(ValueError, match=text):
        bs.models.gp(*wave(rng, 9), **options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_draws_agree_with_laplace(rng):
    X, t = wave(rng, 400)
    trace = bs.sample(
        bs.models.gp(X, t, method="vecchia"), draws=200, tune=200, chains=2, random_seed=1, progressbar=False
    )
    fit = bs.gp.fit_vecchia(X, t)
    drawn = trace["posterior"]["theta"].values.reshape(-1, 6)
    assert abs(drawn[:, 1].mean() - fit.theta[1]) < 3 * fit.theta_std[1]
