"""The least noise of a Gaussian process, for searches and for chains.

Guards `bayessel.gp.noise_floor`, `bayessel.gp.map_problem`, `bayessel.models._gp_op`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import bayessel as bs
from bayessel.covariance import Noise, SquaredExponential, Standard
from bayessel.gp import Marginal, fit_map
from bayessel.gp.noise_floor import LEAST_NOISE, NoiseFloor
from bayessel.models import gp

PYTHON = {"mode": "FAST_COMPILE"}


def copies(rng, n=60, again=20):
    """Rows of which some came twice, with integer targets that they have in common."""
    X = rng.normal(size=(n, 3))
    y = np.round(X[:, 0] + rng.normal(size=n))
    return np.vstack([X, X[:again]]), np.r_[y, y[:again]]


def test_beneath_the_floor_the_likelihood_is_that_of_the_floor(rng):
    X, t = rng.normal(size=(12, 2)), rng.normal(size=12)
    marginal = Marginal(X, t, SquaredExponential() + Noise())
    floor = NoiseFloor.of(marginal)
    at = marginal.names.index("log r2")
    assert floor.index == at and floor.least == np.log(1e-10 * np.mean(t**2)) and LEAST_NOISE == 1e-10
    theta = rng.normal(size=marginal.size)
    for noise, believed in ((-2.0, -2.0), (floor.least - 3.0, floor.least), (-60.0, floor.least)):
        theta[at] = noise
        d2 = np.exp(theta[marginal.names.index("log w[0]")]) * np.subtract.outer(X[:, 0], X[:, 0]) ** 2
        d2 += np.exp(theta[marginal.names.index("log w[1]")]) * np.subtract.outer(X[:, 1], X[:, 1]) ** 2
        K = np.exp(theta[marginal.names.index("log v0")]) * np.exp(-0.5 * d2) + np.exp(believed) * np.eye(12)
        expected = multivariate_normal(np.zeros(12), K).logpdf(t)
        value, gradient = floor.value_and_gradient(marginal, theta)
        assert_allclose([value, floor.value(marginal, theta)], expected, rtol=1e-6)
        assert (gradient[at] == 0.0) == (noise < floor.least) and theta[at] == noise


def test_where_no_single_parameter_is_the_noise_nothing_is_held(rng):
    X = rng.normal(size=(8, 1))
    for covariance, t in ((Noise() + Noise(), rng.normal(size=8)), (Standard(), np.zeros(8))):
        marginal = Marginal(X, t, covariance)
        floor = NoiseFloor.of(marginal)
        theta = np.array(covariance.start(1)) - 1.0
        assert floor.index is None
        assert_allclose(floor.value(marginal, theta), marginal.value(theta), rtol=0)


def test_the_model_in_pymc_has_the_floor(rng):
    X, t = copies(rng)
    t = t - np.median(t)
    model = gp(X, t)
    mode = fit_map(X, t, random_state=0)
    assert bs.Status.NOISE_AT_FLOOR in mode.notes
    at = mode.names.index("log r2")
    value, prior = model.compile_logp(**PYTHON), Standard().prior(3)
    here, far = mode.theta.copy(), mode.theta.copy()
    here[at], far[at] = NoiseFloor.of(Marginal(X, t)).least, -40.0
    likelihood = [float(value({"theta": theta})) - prior.log_density(theta) for theta in (here, far)]
    assert_allclose(likelihood[1], likelihood[0], rtol=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_chains_of_rows_that_came_twice_do_not_stop(rng):
    X, y = copies(rng)
    model = bs.GPRegressor("mc", draws=30, tune=60, chains=1, cores=1, random_state=0, progressbar=False).fit(X, y)
    stats = model.trace_["sample_stats"]
    assert bs.Status.NOISE_AT_FLOOR in model.notes_
    assert stats["n_steps"].values.max() < 200 and stats["step_size"].values.min() > 1e-2
    assert len(np.unique(model.trace_["posterior"]["theta"].values[0, :, 0])) > 20
