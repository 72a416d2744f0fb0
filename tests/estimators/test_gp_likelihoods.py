"""GPRegressor under other noise than normal: outliers, counts and their exposures, odd data, refusals.

Guards `bayessel.estimators._latent_regression`, `bayessel.estimators._process_estimator`,
`bayessel.gp.latent.uneven_noise_marginal`.
"""

import pickle
import warnings
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.count_prediction import CountPrediction
from bayessel.covariance import Bias, Matern52
from bayessel.errors import NumericalWarning
from bayessel.fit import Status
from bayessel.gp.latent import fit_latent_process
from bayessel.prediction import Prediction


def wave(rng, n=100):
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1]


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.slow
def test_checks_of_scikit_learn():
    for estimator, check in estimator_checks_generator(bs.GPRegressor(inference="map", likelihood="student")):
        try:
            check(estimator)
        except SkipTest:
            continue


def test_outliers_cost_little_under_heavy_tails(rng):
    X, f = wave(rng)
    y = f + 0.1 * rng.normal(size=100)
    dirty = y.copy()
    dirty[:8] += 6.0 * rng.normal(size=8)
    new, truth = wave(rng, 300)

    def error(model, target):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            model.fit(X, target)
        return float(np.sqrt(np.mean((model.predict(new) - truth) ** 2) + 0.01))

    clean = error(bs.GPRegressor(), y)
    assert error(bs.GPRegressor(likelihood="student"), y) < 1.1 * clean
    assert error(bs.GPRegressor(likelihood="student"), dirty) < 1.25 * clean
    assert error(bs.GPRegressor(), dirty) > 2.0 * clean


def test_units_of_the_target_move_the_evidence_by_their_logarithm(rng):
    X, f = wave(rng, 60)
    y, new = f + 0.1 * rng.standard_t(3, size=60), rng.uniform(-3.0, 3.0, size=(5, 2))
    one, other = (bs.GPRegressor(likelihood="student").fit(X, scale * y + shift) for scale, shift in ((1, 0), (50, 7)))
    np.testing.assert_allclose(other.log_evidence_, one.log_evidence_ - 60 * np.log(50.0), atol=1e-3)
    np.testing.assert_allclose(other.predict(new), 50.0 * one.predict(new) + 7.0, rtol=1e-3)
    np.testing.assert_allclose(other.noise_std_, 50.0 * one.noise_std_, rtol=1e-3)
    assert isinstance(one.predictive(new), Prediction)
    assert (one.predictive(new, noise=False).std < one.predictive(new).std).all()
    assert one.kind_ == "type2-laplace"


def test_the_noise_is_what_predictions_add_to_the_function(rng):
    X, f = wave(rng, 50)
    model = bs.GPRegressor("map", likelihood="student").fit(X, 9.0 * (f + 0.1 * rng.standard_t(4, size=50)))
    there = model.predictive(X[:3])
    np.testing.assert_allclose(there.variance - there.function.variance, model.noise_std_**2, rtol=0.02)


def test_many_rows_are_predicted_in_pieces(rng):
    X, f = wave(rng, 30)
    model = bs.GPRegressor("map", likelihood="student").fit(X, f + 0.1 * rng.normal(size=30))
    new = rng.uniform(-3.0, 3.0, size=(40, 2))
    mean, std = model.predict(new, return_std=True)
    model.fit_.__dict__["most_rows"] = 7
    again = model.predict(new, return_std=True)
    np.testing.assert_allclose(again, [mean, std], rtol=1e-9)
    assert model._piece() == 7


def test_uneven_noise_is_found_where_it_is(rng):
    x = rng.uniform(-2.0, 2.0, size=(120, 1))
    std = np.exp(x[:, 0] - 1.5)
    seen = 5.0 * (np.sin(2.0 * x[:, 0]) + std * rng.normal(size=120))
    model = bs.GPRegressor(likelihood="heteroscedastic").fit(x, seen)
    new = np.linspace(-1.8, 1.8, 9)[:, None]
    ratio = model.predict(new, return_std=True)[1] / (5.0 * np.exp(new[:, 0] - 1.5))
    assert (np.abs(np.log(ratio)) < np.log(2.0)).all()
    np.testing.assert_allclose(model.noise_std_, 5.0 * np.sqrt(np.mean(std**2)), rtol=0.4)
    test = rng.uniform(-2.0, 2.0, size=(500, 1))
    y = 5.0 * (np.sin(2.0 * test[:, 0]) + np.exp(test[:, 0] - 1.5) * rng.normal(size=500))
    with pytest.warns(NumericalWarning, match="UNEVEN_NOISE|HEAVY_TAILS"):
        even = bs.GPRegressor().fit(x, seen)
    gain = model.log_predictive_density(test, y) - even.log_predictive_density(test, y)
    assert gain.mean() > 4.0 * gain.std() / np.sqrt(500)
    low, high = model.predictive(test).quantile([0.05, 0.95])
    for half in (test[:, 0] < 0.0, test[:, 0] >= 0.0):
        assert abs(np.mean(((y > low) & (y < high))[half]) - 0.9) < 0.07


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_counts_with_exposures(likelihood, rng):
    X, f = wave(rng)
    exposure = rng.uniform(0.5, 5.0, size=100)
    rate = np.exp(1.0 + f)
    drawn = rate if likelihood == "poisson" else rng.gamma(4.0, rate / 4.0)
    y = rng.poisson(drawn * exposure)
    model = bs.GPRegressor(likelihood=likelihood).fit(X, y, exposure=exposure)
    new, truth = wave(rng, 400)
    there = model.predictive(new)
    assert isinstance(there, CountPrediction)
    np.testing.assert_allclose(there.mean, model.predict(new))
    assert np.sqrt(np.mean((np.log(model.predict(new)) - 1.0 - truth) ** 2)) < 0.45
    fresh = np.exp(1.0 + truth)
    counts = rng.poisson(fresh if likelihood == "poisson" else rng.gamma(4.0, fresh / 4.0))
    low, high = there.quantile([0.05, 0.95])
    inside = np.mean((counts >= low) & (counts <= high))
    assert 0.85 < inside <= 1.0  # intervals of counts hold at least their level
    np.testing.assert_allclose(model.log_predictive_density(new, counts), there.log_density(counts), rtol=1e-9)
    mean, std, quantiles = model.predict(new, return_std=True, return_quantiles=[0.05, 0.95])
    np.testing.assert_allclose(quantiles, [low, high])
    np.testing.assert_allclose(std, there.std)
    assert mean.shape == (400,)
    assert np.isnan(model.noise_std_)
    left_out = model.leave_one_out()
    assert np.isfinite(left_out.log_densities).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict(new), model.predict(new), rtol=1e-6)
    with pytest.raises(ValueError, match="no noise apart"):
        model.predictive(new, noise=False)
    with pytest.raises(ValueError, match="counts have steps"):
        bs.diagnostics.predictive_calibration(model)
    with pytest.raises(ValueError, match="predicts counts"):
        bs.diagnostics.predictive_calibration(model, new, counts)


def test_an_exposure_is_a_unit_of_the_rate(rng):
    X, f = wave(rng, 60)
    y = rng.poisson(np.exp(2.0 + f))
    one = bs.GPRegressor(likelihood="poisson").fit(X, y)
    hours = bs.GPRegressor(likelihood="poisson").fit(X, y, exposure=np.full(60, 24.0))
    np.testing.assert_allclose(24.0 * hours.predict(X), one.predict(X), rtol=1e-6)
    np.testing.assert_allclose(hours.log_evidence_, one.log_evidence_, rtol=1e-9)


def test_large_and_rare_counts(rng):
    X, f = wave(rng, 60)
    model = bs.GPRegressor(likelihood="poisson").fit(X, rng.poisson(np.exp(12.0 + f)))
    np.testing.assert_allclose(np.log(model.predict(X)), 12.0 + f, atol=0.05)
    with pytest.warns(NumericalWarning):
        nothing = bs.GPRegressor(likelihood="poisson").fit(X, np.zeros(60))
    assert (nothing.predict(X) < 0.1).all()


@pytest.mark.parametrize("size", [1e6, 1e12])
def test_outliers_of_any_size_change_nothing_else(size, rng):
    X, f = wave(rng, 60)
    y, rest = f + 0.1 * rng.normal(size=60), slice(3, None)
    y[:3] = size * np.array([1.0, -1.0, 0.1])
    model = bs.GPRegressor("map", likelihood="student").fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert np.sqrt(np.mean((model.predict(X) - f)[rest] ** 2)) < 0.15
    densities = model.log_predictive_density(X, y)
    assert densities[rest].mean() > -1.0
    assert (densities[:3] > -200.0).all()  # a tail falls like a power
    assert np.isfinite(model.leave_one_out().log_densities).all()


@pytest.mark.parametrize("likelihood", ["student", "heteroscedastic"])
@pytest.mark.parametrize("case", ["constant", "one that differs", "copies", "no noise", "half of them alike"])
def test_odd_targets_are_fitted_or_doubted(likelihood, case, rng):
    X, f = wave(rng, 25)
    y = {
        "constant": np.full(25, 3.0),
        "one that differs": np.append(np.full(24, 3.0), 3.0 + 1e-9),
        "copies": np.tile(f[:5], 5),
        "no noise": np.sin(X[:, 0]),
        "half of them alike": np.where(np.arange(25) < 14, 0.0, f),
    }[case]
    X = np.tile(X[:5], (5, 1)) if case == "copies" else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        model = bs.GPRegressor("map", likelihood=likelihood).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()
    assert np.isfinite(model.leave_one_out().log_densities).all()
    # nothing is predicted with confidence that is wrong
    assert (np.abs(mean - y) < 8.0 * std + 1e-9).mean() > 0.9
    if case in ("copies", "no noise"):
        np.testing.assert_allclose(mean, y, atol=1e-3)


def test_mode_alone_is_the_engine(rng):
    X, f = wave(rng, 50)
    y = rng.poisson(np.exp(f))
    model = bs.GPRegressor("map", Matern52() + Bias(), standardise=False, likelihood="poisson").fit(X, y)
    offset = np.full(50, np.log(y.mean()))
    fit = fit_latent_process(X, y, "poisson", Matern52() + Bias(), offset=offset)
    np.testing.assert_allclose(model.predict(X), fit.predict(X, offset).mean, rtol=1e-6)
    np.testing.assert_allclose(model.log_evidence_, fit.log_evidence)


def test_refusals(rng):
    X, f = wave(rng, 30)
    with pytest.raises(ValueError, match="likelihood must be"):
        bs.GPRegressor(likelihood="cauchy").fit(X, f)
    with pytest.raises(ValueError, match="are for likelihood='gaussian'"):
        bs.GPRegressor("mc", likelihood="student").fit(X, f)
    with pytest.raises(ValueError, match="y must be counts"):
        bs.GPRegressor(likelihood="poisson").fit(X, f)
    with pytest.raises(ValueError, match="exposure is of counts"):
        bs.GPRegressor().fit(X, f, exposure=np.ones(30))
    with pytest.raises(ValueError, match="exposure"):
        bs.GPRegressor(likelihood="poisson").fit(X, np.ones(30), exposure=np.zeros(30))
    with pytest.raises(ValueError, match="exposure"):
        bs.GPRegressor(likelihood="poisson").fit(X, np.ones(30), exposure=np.ones(29))
    with pytest.raises(ValueError, match="exposure has values of size 1e-300"):
        bs.GPRegressor(likelihood="poisson").fit(X, np.ones(30), exposure=1e-300)
    with pytest.raises(ValueError, match=r"got -1\.0; for rates"):
        bs.GPRegressor(likelihood="poisson").fit(X, np.append(np.ones(29), -1))
