"""Few functions beside all of them: error bars of the reference about the mean of the few, replaced where they fail.

Guards `bayessel._wrapped_fit`, `bayessel.estimators.referenced_fit`, `bayessel.estimators._sparse_attributes`.
"""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_regression

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.estimators.referenced_fit import LARGEST_LOSS, SMALLEST_LOSS, ReferencedFit
from bayessel.fit import Status
from benchmarks.defaults import smooth

SPARSE = (bs.RVMRegressor, bs.BasisSearchRegressor, bs.ForwardSelectionRegressor)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(420, 3))
    return X, smooth(X) + 0.3 * rng.normal(size=420)


@pytest.fixture(scope="module", params=SPARSE, ids=lambda make: make.__name__)
def model(request, data):
    X, y = data
    return request.param().fit(X[:120], y[:120])


def test_error_bars_are_the_expected_error_of_the_few_under_the_reference(model, data, rng):
    """Draws from the reference's mixture: their mean square about the mean of the few is the variance given."""
    X, _ = data
    fit, new = model.fit_, X[120:126]
    assert isinstance(fit, ReferencedFit) and not fit.falls_back
    there, columns = fit.reference.predict(new), model.dictionary_.design(new)
    mean = columns[:, model.basis_] @ model.coef_
    draws = 40_000
    for n in range(len(new)):
        weights = np.exp(there.log_weights[:, n]) if there.log_weights is not None else np.full(len(there.means), 1.0)
        part = rng.choice(len(weights), draws, p=weights / weights.sum())
        drawn = there.means[part, n] + np.sqrt(there.variances[part, n]) * rng.normal(size=draws)
        squares = (drawn - mean[n]) ** 2
        error = squares.std() / np.sqrt(draws)
        _, std = model.predict(new[n : n + 1], return_std=True)
        assert abs(std[0] ** 2 - squares.mean()) < 4.0 * error
    np.testing.assert_allclose(model.predict(new), mean)


def test_the_mean_needs_no_reference(model, data):
    X, _ = data
    alone, (both, std) = model.predict(X[120:]), model.predict(X[120:], return_std=True)
    np.testing.assert_allclose(alone, both)
    np.testing.assert_allclose(model.predictive(X[120:]).std, std)


def test_log_densities_have_the_shape_of_the_reference(model, data):
    """Written out: its components, moved to the mean of the few and widened by the squared distance."""
    X, y = data
    mean, there = model.predict(X[120:]), model.fit_.reference.predict(X[120:])
    weights = np.exp(there.log_weights) if there.log_weights is not None else np.full_like(there.means, 1.0)
    weights = weights / weights.sum(axis=0)
    moved = mean - (weights * there.means).sum(axis=0)
    densities = (weights * norm.pdf(y[120:], there.means + moved, np.sqrt(there.variances + moved**2))).sum(axis=0)
    np.testing.assert_allclose(model.log_predictive_density(X[120:], y[120:]), np.log(densities))


def test_rows_left_out_are_as_far_from_the_reference_as_with_all_rows(model, data):
    X, _ = data
    found, all_functions = model.leave_one_out(), model.fit_.reference.leave_one_out()
    moved = model.predict(X[:120]) - model.fit_.reference.predict(X[:120]).mean
    np.testing.assert_allclose(found.errors, all_functions.errors - moved)
    np.testing.assert_allclose(found.variances, all_functions.variances + moved**2)
    assert 0.8 < found.coverage(0.9) <= 1.0


def test_selected_functions_come_closest_to_the_reference(model, data):
    """Where they lie between the rows is not looked at: at the rows and at crossed rows no other weights are closer."""
    X, _ = data
    fit = model.fit_
    rng = np.random.default_rng(5)
    crossed = np.column_stack([rng.choice(column, 4000) for column in X[:120].T])
    places = np.vstack([X[:120], np.where(rng.random((4000, 3)) < 0.5, X[rng.integers(0, 120, 4000)], crossed)])
    counts = np.r_[np.full(120, 1 / 120), np.full(4000, 1 / 4000)]
    there = fit.reference.predict(places)
    distance = np.sum(counts * (fit.summary(places) - there.mean) ** 2 / there.variance)
    columns = model.dictionary_.design(places)[:, model.basis_]
    engine = columns @ np.append(fit.inner.coef, fit.inner.intercept)
    assert distance < np.sum(counts * (engine - there.mean) ** 2 / there.variance)
    root = np.sqrt(counts / there.variance)
    best = np.linalg.lstsq(root[:, None] * columns, root * there.mean, rcond=1e-6)[0]
    assert distance < 1.3 * np.sum(counts * (columns @ best - there.mean) ** 2 / there.variance)


def test_ridge_regression_keeps_the_weights_of_its_penalty(data):
    X, y = data
    model = bs.RidgeRBFRegressor().fit(X[:120], y[:120])
    fit = model.fit_
    assert not fit.falls_back
    np.testing.assert_allclose(fit.weights[0], fit.inner.coef)
    np.testing.assert_allclose(model.leave_one_out().errors, fit.inner.leave_one_out().errors)


def test_loss_is_that_of_normal_predictions(model, data):
    """Written out at the rows: half the mean log ratio of the expected squared errors."""
    X, _ = data
    fit = model.fit_
    there = fit.reference.predict(X[:120])
    moved = model.dictionary_.design(X[:120])[:, model.basis_] @ model.coef_ - there.mean
    at_rows = 0.5 * np.mean(np.log((there.variance + moved**2) / there.variance))
    assert fit.loss >= at_rows - 1e-12
    assert fit.loss < LARGEST_LOSS


@pytest.fixture(scope="module")
def correlated():
    """Two inputs that hardly differ: crossed rows lie where no row is."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=80)
    X = np.c_[10.0 + z, z + 0.3 * rng.normal(size=80)]
    y = np.sin(2.0 * z) + X[:, 1] + 0.3 * rng.normal(size=80)
    return bs.BasisSearchRegressor().fit(X, y), X, y


def expected_loss(fit, X):
    """Means of the loss at inputs, and the standard deviation over them."""
    there = fit.reference.predict(X)
    losses = 0.5 * np.log1p((fit.predict(X).mean - there.mean) ** 2 / there.variance)
    return losses.mean(), losses.std()


def test_loss_is_taken_at_crossed_rows_too(correlated):
    """Every way to take one input from one row and the other from another; the fit takes three hundred of them."""
    model, X, _ = correlated
    every = np.array([[a, b] for a in X[:, 0] for b in X[:, 1]])
    at_rows, _ = expected_loss(model.fit_, X)
    mixed, deviation = expected_loss(model.fit_, every)
    crossed = 0.5 * at_rows + 0.5 * mixed  # half of the draws take both inputs from one row
    assert not model.fit_.falls_back
    assert crossed > 1.5 * at_rows
    assert abs(model.fit_.loss - crossed) < 4.0 * deviation / np.sqrt(300)


def test_loss_outside_is_taken_away_from_the_median_of_each_input(correlated):
    model, X, _ = correlated
    middle = np.median(X, axis=0)
    outside, _ = expected_loss(model.fit_, middle + 1.3 * (X - middle))
    np.testing.assert_allclose(model.fit_.loss_outside, outside)


def test_the_order_of_the_rows_changes_no_loss(correlated, rng):
    model, X, y = correlated
    order = rng.permutation(len(X))
    other = bs.BasisSearchRegressor().fit(X[order], y[order])
    np.testing.assert_allclose(other.fit_.loss, model.fit_.loss, rtol=1e-6)
    np.testing.assert_allclose(other.fit_.loss_outside, model.fit_.loss_outside, rtol=1e-6)


def test_what_is_not_noise_holds_the_error_of_the_few(model, data):
    """Of the variance of a new observation the noise of the reference is apart from the rest."""
    X, _ = data
    few, reference = model.fit_.predict(X[120:]), model.fit_.reference.predict(X[120:])
    noise = reference.variance - reference.function.variance
    np.testing.assert_allclose(few.variance - few.function.variance, noise)
    assert (few.function.variance > reference.function.variance).all()


def test_a_selection_that_fails_falls_back(data):
    X, y = data
    with pytest.warns(NumericalWarning, match="FELL_BACK"):
        fit = bs.BasisSearchRegressor(max_size=2).fit(X[:120], y[:120]).fit_
    assert fit.loss > LARGEST_LOSS and fit.falls_back
    assert fit.status is Status.FELL_BACK and Status.FELL_BACK in fit.notes
    there, reference = fit.predict(X[120:]), fit.reference.predict(X[120:])
    np.testing.assert_array_equal(there.mean, reference.mean)
    np.testing.assert_array_equal(fit.mean(X[120:]), reference.mean)
    np.testing.assert_array_equal(fit.leave_one_out().errors, fit.reference.leave_one_out().errors)


def test_what_may_be_lost_is_a_quarter_of_what_there_is(data):
    X, y = data
    fit = bs.BasisSearchRegressor().fit(X[:120], y[:120]).fit_
    loss = fit.loss
    assert 0.001 < loss < LARGEST_LOSS
    assert replace(fit, gain=loss).falls_back is (loss > SMALLEST_LOSS)
    assert not replace(fit, gain=4.5 * loss).falls_back
    assert not replace(fit, gain=np.nan).falls_back  # without folds nothing is known of its worth


def test_a_fall_back_is_said():
    """Sixty inputs of which five matter, and fifty rows: a slope too many passes through them."""
    X, y = make_regression(100, 60, n_informative=5, noise=20.0, random_state=3)
    with pytest.warns(NumericalWarning, match="FELL_BACK"):
        model = bs.BasisSearchRegressor().fit(X[:50], y[:50])
    np.testing.assert_allclose(model.predict(X[50:]), model.fit_.reference.predict(X[50:]).mean)


def test_off_the_range_error_bars_grow_back(model, data):
    X, _ = data
    far = 6.0 * X[120:] / np.linalg.norm(X[120:], axis=1)[:, None]
    _, std = model.predict(far, return_std=True)
    _, near = model.predict(X[120:], return_std=True)
    assert np.median(std) > 2.0 * np.median(near)


def test_a_pickle_predicts_the_same(model, data):
    X, _ = data
    again = pickle.loads(pickle.dumps(model))
    both = [one.predict(X[120:], return_std=True) for one in (again, model)]
    np.testing.assert_array_equal(*both)


def test_its_own_width_has_no_reference(data):
    X, y = data
    model = bs.BasisSearchRegressor(width=2.0).fit(X[:120], y[:120])
    assert not isinstance(model.fit_, ReferencedFit)
