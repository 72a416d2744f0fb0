"""Fits by Vecchia's approximation: the dense fit where all rows are neighbours, and what they say of themselves.

Guards `bayessel.gp.vecchia.vecchia_fit`, `bayessel.gp.vecchia.vecchia_search`,
`bayessel.gp.vecchia.conditional_predictor`, `bayessel.estimators._process_method`,
`bayessel.estimators._process_predictions`.
"""

import pickle

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel.covariance import Matern32, Matern52, Noise, Standard
from bayessel.errors import NumericalWarning
from bayessel.estimators import _process_method
from bayessel.fit import Status
from bayessel.gp import Marginal, Predictor, fit_map, fit_vecchia
from bayessel.gp.loo import leave_one_out
from bayessel.gp.vecchia import vecchia_search
from bayessel.gp.vecchia.vecchia_marginal import VecchiaMarginal
from tests.paths import SHARED_DATA


def wave(rng, n=400, inputs=2, noise=0.1):
    X = rng.uniform(-2.0, 2.0, size=(n, inputs))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, -1] + noise * rng.normal(size=n)


def test_with_all_rows_for_neighbours_it_is_the_dense_fit(rng):
    X, t = wave(rng, 150)
    dense, near = fit_map(X, t), fit_vecchia(X, t, neighbours=149, n_inducing=0, tol=1e-6)
    assert near.evidence.kind == "type2-vecchia" and near.status is Status.CONVERGED
    assert near.model_evidence.kind == "laplace-vecchia"
    np.testing.assert_allclose(near.log_posterior, dense.log_posterior, atol=1e-4)
    np.testing.assert_allclose(near.theta, dense.theta, atol=0.05)
    np.testing.assert_allclose(near.model_evidence.value, dense.model_evidence.value, atol=0.02)
    np.testing.assert_allclose(near.relevance["std"], dense.relevance["std"], rtol=0.05)
    np.testing.assert_allclose(near.gamma, dense.gamma, rtol=0.01)
    new = rng.uniform(-2.0, 2.0, size=(30, 2))
    there, expected = near.predict(new), Predictor(X, t, Standard(), near.theta)(new)
    np.testing.assert_allclose(there.mean, expected.mean, atol=1e-8)
    np.testing.assert_allclose(there.variance, expected.variance, rtol=1e-8)
    np.testing.assert_allclose(there.function.variance, expected.function.variance, rtol=1e-6)
    errors, variances = leave_one_out(Marginal(X, t).factor(near.theta))
    np.testing.assert_allclose(near.leave_one_out().errors, errors, atol=1e-8)
    np.testing.assert_allclose(near.leave_one_out().variances, variances, rtol=1e-8)


def test_few_neighbours_and_inducing_inputs_are_near_the_dense_process(rng):
    X, t = wave(rng, 1500)
    near = fit_vecchia(X, t, neighbours=15)
    dense = Marginal(X, t).value(near.theta)
    assert abs(near.log_evidence - dense) < 1.0  # nats, of 1500 rows
    new = rng.uniform(-2.0, 2.0, size=(200, 2))
    there, expected = near.predict(new), Predictor(X, t, None, near.theta)(new)
    np.testing.assert_allclose(there.mean, expected.mean, atol=0.05 * 0.1)
    np.testing.assert_allclose(there.std, expected.std, rtol=0.01)
    assert near.gain_of_neighbours < 1e-3 and Status.ROUGH_APPROXIMATION not in near.notes


def test_leave_one_out_is_the_precision_of_the_approximate_distribution(rng):
    X, t = wave(rng, 60)
    near = fit_vecchia(X, t, neighbours=4, n_inducing=5, max_evaluations=3)
    marginal = near._marginal
    found = marginal.factors(near.theta)
    U = marginal.sparse(found.b / np.sqrt(found.v)[:, None]).toarray()
    P = np.linalg.inv(np.linalg.inv(U.T @ U) + found.part.F @ found.part.F.T)
    out = near.leave_one_out()
    np.testing.assert_allclose(out.variances[marginal.order], 1.0 / np.diag(P), rtol=1e-7)
    np.testing.assert_allclose(out.errors[marginal.order], P @ marginal.targets / np.diag(P), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shared", [0, 5])
def test_a_block_left_out_is_conditioned_on_the_rest(rng, shared):
    X, t = wave(rng, 60)
    near = fit_vecchia(X, t, neighbours=59, n_inducing=shared, max_evaluations=2)
    rows = np.array([3, 40, 17, 8])
    rest = np.setdiff1d(np.arange(60), rows)
    Q = Standard().matrix(near.theta, X) + near.noise_std**2 * np.eye(60)
    weights = np.linalg.solve(Q[np.ix_(rest, rest)], Q[np.ix_(rest, rows)])
    mean, covariance = near.leave_block_out(rows)
    np.testing.assert_allclose(mean, weights.T @ t[rest], atol=1e-7)
    np.testing.assert_allclose(covariance, Q[np.ix_(rows, rows)] - weights.T @ Q[np.ix_(rest, rows)], atol=1e-7)


@pytest.mark.parametrize("shared", [0, 5])
def test_draws_have_the_joint_moments_of_the_function(rng, shared):
    """Means, variances and covariances of 4000 draws, in their standard errors."""
    X, t = wave(rng, 60)
    near = fit_vecchia(X, t, neighbours=60, n_inducing=shared, max_evaluations=2)
    new = rng.uniform(-2.0, 2.0, size=(7, 2))
    Q = Standard().matrix(near.theta, X) + near.noise_std**2 * np.eye(60)
    across = Standard().matrix(near.theta, X, new)
    mean = across.T @ np.linalg.solve(Q, t)
    covariance = Standard().matrix(near.theta, new) - across.T @ np.linalg.solve(Q, across)
    draws = near.draw(new, 4000, random_state=1)
    assert draws.shape == (4000, 7)
    std = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) < 4.5 * std / np.sqrt(4000)).all()
    errors = np.sqrt((np.outer(std, std) ** 2 + covariance**2) / 4000)
    assert (np.abs(np.cov(draws.T) - covariance) < 4.5 * errors).all()
    np.testing.assert_array_equal(near.draw(new, 2, random_state=1), near.draw(new, 2, random_state=1))


def test_new_rows_whose_neighbours_have_no_factor_get_fewer(rng):
    """Copies of rows without noise: the covariance of a row's neighbours is singular."""
    X = np.repeat(rng.uniform(-2.0, 2.0, size=(20, 1)), 3, axis=0)
    t = np.sin(2.0 * X[:, 0])
    start = np.log([1.0, 1e-10, 1.0, 0.1, 0.1])
    near = fit_vecchia(X, t, neighbours=4, n_inducing=0, start=start, max_evaluations=1)
    there = near.predict(X[:9])
    np.testing.assert_allclose(there.mean, t[:9], atol=1e-2)
    assert (there.variance > 0.0).all()


def test_what_is_lost_is_said(rng):
    X, t = wave(rng, 600, noise=0.5)
    rough = fit_vecchia(X, t, neighbours=2, n_inducing=0, max_evaluations=5)
    assert rough.gain_of_neighbours > 0.01 and Status.ROUGH_APPROXIMATION in rough.notes
    assert "twice as many neighbours would gain" in rough.describe()


def test_given_and_fixed_parameters_and_seeds(rng):
    X, t = wave(rng, 300)
    start = Standard().start(2)
    one = fit_vecchia(X, t, start=start, fixed={"log r2": -4.0}, n_inducing=0, neighbours=10, random_state=3)
    assert one.theta[1] == -4.0 and not one.free[1]
    again = fit_vecchia(X, t, start=start, fixed={"log r2": -4.0}, n_inducing=0, neighbours=10, random_state=3)
    np.testing.assert_array_equal(one.theta, again.theta)
    likelihood = fit_vecchia(X, t, Matern32(), prior=None, n_inducing=0, neighbours=10)
    assert likelihood.prior is None and np.isnan(likelihood.model_evidence.value)
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(copy.predict(X[:5]).mean, one.predict(X[:5]).mean)


def test_a_search_that_is_interrupted_keeps_the_best(rng, monkeypatch):
    X, t = wave(rng, 200)
    count = [0]
    both = VecchiaMarginal.value_and_gradient

    def stopped(self, theta):
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt
        return both(self, theta)

    monkeypatch.setattr(VecchiaMarginal, "value_and_gradient", stopped)
    fit = fit_vecchia(X, t, n_inducing=0, neighbours=10, start=Standard().start(2))
    assert fit.status is Status.INTERRUPTED and np.isfinite(fit.log_evidence)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"neighbours": 0}, ValueError, "neighbours must be at least 1"),
        ({"n_inducing": -1}, ValueError, "n_inducing must be at least 0"),
        ({"start": [0.0]}, ValueError, "start must have 6 entries"),
        ({"tol": 0.0}, ValueError, "tol must be positive"),
        ({"prior": "flat"}, ValueError, "prior must be"),
        ({"fixed": {"log q": 0.0}}, ValueError, "fixed names 'log q'"),
    ],
)
def test_bad_arguments_are_refused(rng, arguments, error, text):
    with pytest.raises(error, match=text):
        fit_vecchia(*wave(rng, 20), **arguments)


def test_new_rows_are_checked(rng):
    fit = fit_vecchia(*wave(rng, 30), max_evaluations=2)
    with pytest.raises(ValueError, match="must have the 2 columns"):
        fit.predict(np.ones((3, 3)))


# --- the estimator --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "options", "expected"),
    [
        (3000, {}, "dense"),
        (3001, {}, "vecchia"),
        (10**6, {"inputs": 30}, "vecchia"),
        (5000, {"covariance": bs.covariance.Periodic()}, "inducing"),
        (100, {"inducing": 5}, "inducing"),
        (100, {"method": "vecchia"}, "vecchia"),
        (10**5, {"method": "dense"}, "dense"),
        (10**5, {"inference": "mc"}, "dense"),
    ],
)
def test_rows_choose_the_method(n, options, expected):
    given = {"method": "auto", "inputs": 2, "covariance": None, "inducing": None, "inference": "auto"} | options
    found = _process_method.chosen_method(n=n, **given)
    assert found.name == expected and found.why


def test_the_estimator_shows_method_and_reason(rng, monkeypatch):
    monkeypatch.setattr(_process_method, "DENSE_ROWS", 100)
    monkeypatch.setattr(vecchia_search, "EXACT_ROWS", 100)
    X, y = wave(rng, 400)
    table = pd.DataFrame(X, columns=["a", "b"])
    model = bs.GPRegressor(neighbours=10, random_state=0, progressbar=False).fit(table, 3.0 + 7.0 * y)
    assert (model.method_, model.kind_) == ("vecchia", "type2-vecchia")
    assert "computed by method='vecchia' (more than 100 rows)" in model.describe()
    assert "10 neighbours" in model.describe()
    mean, std = model.predict(table[:50], return_std=True)
    assert np.mean(np.abs(mean - 3.0 - 7.0 * y[:50]) < 1.96 * std) > 0.8
    assert model.relevance_.index.tolist() == ["a", "b"] and np.isfinite(model.model_evidence_)
    dense = bs.GPRegressor("map", method="dense", random_state=0, progressbar=False).fit(table, 3.0 + 7.0 * y)
    theta, prior = model.fit_.inner.theta, model.covariance_.prior(2)
    declared, exact = (
        float(one.to_pymc().compile_logp()({"theta": theta})) - prior.log_density(theta) for one in (model, dense)
    )
    np.testing.assert_allclose(declared, model.fit_.inner.log_evidence, atol=1.0)  # neighbours by other lengths
    assert abs(declared - exact) > 1e-6
    assert "computed by method='dense' (asked for)" in dense.describe()
    np.testing.assert_allclose(model.log_evidence_, dense.log_evidence_, atol=2.0)
    np.testing.assert_allclose(model.predict(table[:50]), dense.predict(table[:50]), atol=0.05 * 7.0)


def test_many_rows_for_the_dense_method_are_refused_or_warned_of(rng):
    with pytest.raises(ValueError, match="method='vecchia'"):
        _process_method.check_rows(20_001)
    with pytest.warns(NumericalWarning, match="takes some 3 minutes"):
        _process_method.check_rows(7000)


# --- what it is for -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("inputs", "noise"), [(1, 0.2), (2, 0.02), (3, 0.1)])
def test_within_a_nat_per_thousand_rows_of_the_dense_evidence(rng, inputs, noise):
    X, t = wave(rng, 5000, inputs, noise)
    fit = fit_vecchia(X, t)
    assert abs(fit.log_evidence - Marginal(X, t).value(fit.theta)) < 5.0


@pytest.mark.slow
def test_intervals_cover(rng):
    """95 % intervals of 4000 new rows: a binomial standard error is 0.34 %."""
    X, t = wave(rng, 14_000, 3)
    fit = fit_vecchia(X[:10_000], t[:10_000], Matern52() + Noise())
    there = fit.predict(X[10_000:])
    inside = np.abs(t[10_000:] - there.mean) < 1.96 * there.std
    assert 0.935 < inside.mean() < 0.965


@pytest.mark.slow
def test_a_rough_function_of_eight_inputs(rng):
    """kin40k, 36 000 rows for training; sparse variational processes of 1024 inducing inputs are at 0.2 or so."""
    path = SHARED_DATA / "sparsegp" / "kin40k.npz"
    if not path.exists():
        pytest.skip("kin40k is not at hand")
    with np.load(path) as data:
        X = np.vstack([data["x_train"], data["x_test"]]).astype(float)
        t = np.concatenate([data["y_train"].ravel(), data["y_test"].ravel()]).astype(float)
    order = rng.permutation(len(t))
    X, t = X[order], (t[order] - t.mean()) / t.std()
    fit = fit_vecchia(X[:36_000], t[:36_000])
    there = fit.predict(X[36_000:])
    errors = t[36_000:] - there.mean
    assert np.sqrt(np.mean(errors**2)) < 0.10
    assert -there.log_density(t[36_000:]).mean() < -0.9
    assert 0.93 < np.mean(np.abs(errors) < 1.96 * there.std) < 0.97
