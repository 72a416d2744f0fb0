"""GPRegressor of several targets against one estimator for each.

Guards `bayessel.estimators._several_processes`.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.fit import Status


def two(rng, n=40):
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, np.column_stack([np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n), 50.0 * X[:, 1] + rng.normal(size=n)])


@pytest.mark.parametrize("settings", [{}, {"inference": "map"}, {"inference": "map", "likelihood": "student"}])
def test_each_target_has_what_an_estimator_of_its_own_says(settings, rng):
    X, Y = two(rng)
    new, there = rng.uniform(-2.0, 2.0, size=(7, 2)), two(rng, 7)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        model = bs.GPRegressor(**settings).fit(X, Y)
        each = [bs.GPRegressor(**settings).fit(X, t) for t in Y.T]
    np.testing.assert_allclose(model.predict(new), np.column_stack([one.predict(new) for one in each]), rtol=1e-9)
    mean, std, quantiles = model.predict(new, return_std=True, return_quantiles=[0.1, 0.9])
    assert mean.shape == std.shape == (7, 2)
    assert quantiles.shape == (2, 7, 2)
    for k, one in enumerate(each):
        _, wanted, levels = one.predict(new, return_std=True, return_quantiles=[0.1, 0.9])
        np.testing.assert_allclose(std[:, k], wanted, rtol=1e-9)
        np.testing.assert_allclose(quantiles[:, :, k], levels, rtol=1e-6)
        np.testing.assert_allclose(model.noise_std_[k], one.noise_std_)
        np.testing.assert_allclose(model.predictive(new, noise=False).std[:, k], one.predictive(new, noise=False).std)
    densities = sum(one.log_predictive_density(new, t) for one, t in zip(each, there.T, strict=True))
    np.testing.assert_allclose(model.log_predictive_density(new, there), densities, rtol=1e-9)
    np.testing.assert_allclose(model.log_evidence_, sum(one.log_evidence_ for one in each))
    np.testing.assert_allclose(model.model_evidence_, sum(one.model_evidence_ for one in each))
    left_out, others = model.leave_one_out(), [one.leave_one_out() for one in each]
    np.testing.assert_allclose(left_out.errors, np.column_stack([one.errors for one in others]), rtol=1e-6)
    np.testing.assert_allclose(left_out.log_densities, sum(one.log_densities for one in others), rtol=1e-6)
    assert "2 outputs, a process each" in model.describe()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict(new), mean)
    assert clone(model).get_params() == model.get_params()


def test_what_is_of_one_process_is_found_with_its_output(rng):
    X, Y = two(rng, 25)
    model = bs.GPRegressor("map").fit(pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame(Y))
    assert model.kind_ == "type2"
    assert len(model.theta_) == len(model.outputs_) == 2
    assert model.outputs_[0].relevance_["length"]["a"] < model.outputs_[1].relevance_["length"]["a"]
    for name in ("covariance_", "width_", "relevance_", "to_pymc"):
        with pytest.raises(AttributeError, match=r"see outputs_\[0\]"):
            getattr(model, name)()
    with pytest.raises(ValueError, match="none: use inference='mc'"):
        model.evidence()
    assert model.trace_ is None
    assert model.fit(X, Y[:, 0]).outputs_ is None
    assert model.predict(X).shape == (25,)


def test_the_worst_of_all_is_said_and_counts_are_refused(rng):
    X, Y = two(rng, 25)
    with pytest.warns(NumericalWarning, match="CONSTANT_TARGET"):
        model = bs.GPRegressor("map").fit(X, np.column_stack([Y[:, 0], np.full(25, 3.0)]))
    assert model.status_ is Status.CONSTANT_TARGET
    np.testing.assert_allclose(model.predict(X)[:, 1], 3.0)
    with pytest.raises(ValueError, match="counts and exposures are of one output"):
        bs.GPRegressor(likelihood="poisson").fit(X, np.ones((25, 2)))
    with pytest.raises(ValueError, match="counts and exposures are of one output"):
        bs.GPRegressor().fit(X, Y, exposure=np.ones(25))


def test_rows_that_came_twice(rng):
    X, Y = two(rng, 25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        model = bs.GPRegressor().fit(np.vstack([X, X]), np.vstack([Y, Y]))
    left_out = model.leave_one_out()
    assert left_out.errors.shape == (50, 2)
    assert model.fit_.n_rows == 50
    assert Status.COPIES_COUNT_ONCE in model.notes_
    np.testing.assert_allclose(left_out.errors[:25], left_out.errors[25:])
