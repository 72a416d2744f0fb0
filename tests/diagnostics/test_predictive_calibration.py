"""Calibration of predictions: numbers against closed forms, refits and simulations, and controls without it.

Guards `bayessel.diagnostics._predictive_calibration`, `bayessel.diagnostics._predictive_calibration_plots`.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayessel as bs
from bayessel.diagnostics import predictive_calibration
from bayessel.diagnostics._predictive_calibration import distance_from_uniform
from bayessel.diagnostics._predictive_calibration_plots import band
from bayessel.gp import Predictor
from bayessel.prediction import Prediction


def linear(rng, n=80, noise=0.3):
    Phi = rng.normal(size=(n, 4))
    return Phi, Phi @ rng.normal(size=4) + noise * rng.normal(size=n)


def test_numbers_of_normal_predictions(rng):
    y, mean, std = rng.normal(size=500), 0.3 * rng.normal(size=500), rng.uniform(0.5, 1.5, size=500)
    found = predictive_calibration(Prediction.normal(mean, std**2), y=y)
    z = (y - mean) / std
    np.testing.assert_allclose(found.pit, norm.cdf(z), rtol=1e-10)
    for level in (0.5, 0.8, 0.9, 0.95):
        inside = np.abs(z) <= norm.ppf(0.5 + 0.5 * level)
        assert found.coverage.loc[level, "covered"] == inside.mean()
        assert found.coverage.loc[level, "se"] == pytest.approx(np.sqrt(level * (1 - level) / 500))
    assert found.variance_factor == pytest.approx(np.mean(z**2))
    assert found.variance_factor_se == pytest.approx(np.std(z**2, ddof=1) / np.sqrt(500))
    assert found.mean_std == pytest.approx(std.mean())
    assert found.relative_std == pytest.approx(std.mean() / y.std(ddof=1))
    assert found.mean_width == pytest.approx(2.0 * norm.ppf(0.95) * std.mean())
    assert found.log_density == pytest.approx(norm.logpdf(y, mean, std).mean())
    crps = std * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    assert found.crps == pytest.approx(crps.mean())
    assert found.n_rows == 500 and found.rows == "new rows"


def test_distance_from_uniform_is_its_integral(rng):
    pit = rng.beta(2.0, 1.0, size=7)

    def apart(u):
        return abs(np.mean(pit <= u) - u)

    expected = quad(apart, 0.0, 1.0, points=np.sort(pit), limit=200, epsabs=1e-9)[0]
    assert distance_from_uniform(pit) == pytest.approx(expected, abs=1e-6)
    assert distance_from_uniform(np.full(9, 1e-12)) == pytest.approx(0.5)
    assert distance_from_uniform((np.arange(1000) + 0.5) / 1000) < 1e-3


@pytest.mark.parametrize("centre", [False, True])
def test_coverage_of_rows_left_out_is_that_of_refits(rng, centre):
    Phi, t = linear(rng, 30)
    fit = bs.linear.fit_evidence(Phi, t, centre=centre)
    inside, pit = [], []
    for i in range(30):
        others = np.arange(30) != i
        there = bs.linear.posterior(Phi[others], t[others], fit.alpha, fit.beta, centre=centre).predict(Phi[[i]])
        pit.append(norm.cdf(t[i], there.mean[0], there.std[0]))
        low, high = there.quantile([0.05, 0.95])[:, 0]
        inside.append(low <= t[i] <= high)
    found = predictive_calibration(fit)
    assert found.coverage.loc[0.9, "covered"] == np.mean(inside)
    np.testing.assert_allclose(found.pit, pit, rtol=1e-6, atol=1e-9)


def test_transforms_of_a_process_are_those_of_refits(rng):
    X = rng.normal(size=(25, 2))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=25)
    fit = bs.gp.fit_map(X, y)
    found = predictive_calibration(fit)
    for i in (0, 7, 24):
        others = np.arange(25) != i
        there = Predictor(X[others], y[others], fit.covariance, fit.theta)(X[[i]])
        assert found.pit[i] == pytest.approx(norm.cdf(y[i], there.mean[0], there.std[0]), abs=1e-8)


#: what is simulated -> what multiplies the noise in the data
FACTORS = {"calibrated": 1.0, "too sure": 2.0, "not sure enough": 0.5}


@pytest.mark.parametrize("what", FACTORS)
def test_transforms_of_a_well_specified_model_are_uniform_and_others_are_not(rng, what):
    """Data from the prior of a linear model, predicted with its own precisions; controls have another noise."""
    first, p_values, distances = [], [], []
    for _ in range(200):
        Phi = rng.normal(size=(40, 5))
        t = Phi @ rng.normal(size=5) + FACTORS[what] * rng.normal(size=40)
        found = predictive_calibration(_known(Phi, t))
        first.append(found.pit[0])  # one per data set: those of one set depend on each other a little
        p_values.append(found.p_value)
        distances.append(found.miscalibration)
    said = kstest(first, "uniform").pvalue
    doubted = np.mean(np.array(p_values) < 0.05)
    if what == "calibrated":
        assert said > 1e-4
        assert doubted < 0.07 + 4.0 * np.sqrt(0.07 * 0.93 / 200)  # the combination of tests says 0.05 of 0.06 of them
        # the mean of |F - u| is sqrt(2 u (1 - u) / (pi n)), whose integral is sqrt(2 / pi) pi / 8 / sqrt(n)
        expected = np.sqrt(2.0 / np.pi) * np.pi / 8.0 / np.sqrt(40.0)
        assert abs(np.mean(distances) - expected) < 4.0 * np.std(distances) / np.sqrt(200)
    else:
        assert said < 1e-4 and doubted > 0.5
        assert np.mean(distances) > 0.06


def _known(Phi, t):
    """A fit with the precisions that made the data."""
    return bs.linear.RidgeState(Phi, t, 1.0).fit(beta=1.0)


def test_a_well_specified_process_is_calibrated(rng):
    """Draws of a process, predicted at the hyperparameters that made them."""
    covariance = bs.covariance.Standard()
    X = rng.uniform(-2.0, 2.0, size=(30, 1))
    fit = bs.gp.fit_map(X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=30), covariance)
    K = fit.covariance.matrix(fit.theta, X, X) + fit.noise_std**2 * np.eye(30)
    root = np.linalg.cholesky(K + 1e-10 * np.eye(30))
    pit = []
    for _ in range(300):
        t = root @ rng.normal(size=30)
        left_out = Predictor(X, t, fit.covariance, fit.theta[None]).leave_one_out()
        pit.append(norm.cdf(t[11], left_out.means[0, 11], np.sqrt(left_out.variances[0, 11])))
    assert kstest(pit, "uniform").pvalue > 1e-4
    sure = norm.cdf(1.6 * norm.ppf(np.clip(pit, 1e-12, 1.0 - 1e-12)))
    assert kstest(sure, "uniform").pvalue < 1e-3


def test_verdicts_say_what_is_wrong(rng):
    n, zero = 600, np.zeros(600)
    cases = {
        "Calibrated": (rng.normal(size=n), 1.0),
        "too sure": (rng.normal(size=n), 0.5),
        "not sure enough": (rng.normal(size=n), 2.0),
        "too low": (rng.normal(size=n) + 0.5, 1.0),
        "too high": (rng.normal(size=n) - 0.5, 1.0),
        "another shape": (rng.choice([-1.0, 1.0], size=n) * rng.normal(1.0, 0.05, size=n), 1.0),
    }
    for what, (y, variance) in cases.items():
        found = predictive_calibration(Prediction.normal(zero, variance), y=y)
        assert what in found.describe().splitlines()[0], found.describe()
        assert found.calibrated is (what == "Calibrated")
        assert what in found._repr_html_()
        assert str(found) == found.describe()


def test_the_band_holds_uniform_transforms(rng):
    points, lower, upper = band(100)
    outside = 0
    for _ in range(400):
        ecdf = np.searchsorted(np.sort(rng.uniform(size=100)), points, side="right") / 100
        outside += bool(((ecdf < lower) | (ecdf > upper)).any())
    assert abs(outside / 400 - 0.05) < 0.05  # four standard errors of 0.05, of the band's own simulation as well


def test_everything_that_predicts_is_read(rng):
    X = rng.normal(size=(90, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=90)
    new, seen = X[60:], y[60:]
    X, y = X[:60], y[:60]
    gp = bs.GPRegressor(inference="map").fit(X, y)
    direct = predictive_calibration(gp, new, seen)
    np.testing.assert_allclose(direct.prediction.mean, gp.predict(new))
    np.testing.assert_array_equal(predictive_calibration(gp.fit_, new, seen).pit, direct.pit)
    scaled = make_pipeline(StandardScaler(), bs.RVMRegressor()).fit(X, y)
    there = scaled[-1].predictive(scaled[:-1].transform(new))
    parts = np.exp(there.log_weights) * norm.cdf(seen, there.means, np.sqrt(there.variances))
    np.testing.assert_allclose(predictive_calibration(scaled, new, seen).pit, parts.sum(axis=0), rtol=1e-8)
    assert predictive_calibration(scaled).n_rows == 60
    searched = GridSearchCV(bs.EvidenceRegressor(width=1.0), {"width": [1.0, 2.0]}, cv=2).fit(X, y)
    assert predictive_calibration(searched).n_rows == 60 and predictive_calibration(searched, new, seen).n_rows == 30
    theirs = BayesianRidge().fit(X, y)
    mean, std = theirs.predict(new, return_std=True)
    np.testing.assert_allclose(predictive_calibration(theirs, new, seen).pit, norm.cdf(seen, mean, std), rtol=1e-8)
    several = bs.EvidenceRegressor(width=1.0).fit(X, np.column_stack([y, X[:, 0]]))
    one = bs.EvidenceRegressor(width=1.0).fit(X, y)
    np.testing.assert_allclose(
        predictive_calibration(several, output=0).pit, predictive_calibration(one).pit, rtol=1e-6
    )
    found = predictive_calibration(several, new, np.column_stack([seen, new[:, 0]]), output=1)
    assert found.n_rows == 30
    assert list(found.numbers.index)[:2] == ["coverage 50 %", "coverage 80 %"] and np.isfinite(found.numbers).all()
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.pit, found.pit)


def test_rows_without_a_prediction_are_left_aside_and_counted(rng):
    y = rng.normal(size=40)
    mean = np.zeros(40)
    mean[:3] = np.nan
    found = predictive_calibration(Prediction.normal(mean, 1.0), y=y)
    assert found.n_rows == 37 and found.n_unknown == 3 and "3 more have no prediction" in found.describe()


def test_what_cannot_be_judged_is_refused(rng):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    there = Prediction.normal(np.zeros(40), 1.0)
    with pytest.raises(ValueError, match="both X and y"):
        predictive_calibration(bs.linear.fit_evidence(X, y), X)
    with pytest.raises(ValueError, match="Prediction"):
        predictive_calibration(there)
    with pytest.raises(ValueError, match="shape"):
        predictive_calibration(there, y=y[:-1])
    with pytest.raises(ValueError, match="at least 10 rows"):
        predictive_calibration(Prediction.normal(np.zeros(5), 1.0), y=y[:5])
    with pytest.raises(ValueError, match="no width"):
        predictive_calibration(Prediction.normal(np.zeros(40), 0.0), y=y)
    with pytest.raises(ValueError, match="one output"):
        predictive_calibration(there, y=y, output=1)
    several = bs.EvidenceRegressor(width=1.0).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="output=0"):
        predictive_calibration(several)
    with pytest.raises(ValueError, match="output must be"):
        predictive_calibration(several, output=2)
    with pytest.raises(TypeError, match="predicts no distributions"):
        predictive_calibration(LinearRegression().fit(X, y), X, y)
    with pytest.raises(TypeError, match="predicts no distributions"):
        predictive_calibration("model", X, y)
    with pytest.raises(TypeError, match="fitted bayessel estimator"):
        predictive_calibration(3.0)
    labels = bs.LOOMIClassifier().fit(X, y > 0.0)
    for data in ((), (X, y)):
        with pytest.raises((ValueError, TypeError)):
            predictive_calibration(labels, *data)


def test_pictures_show_the_numbers(rng):
    y = rng.normal(size=200)
    found = predictive_calibration(Prediction.normal(np.zeros(200), rng.uniform(0.5, 2.0, size=200)), y=y)
    first, second, third = found.plot().axes
    (line,) = second.lines[1:]
    at, covered = line.get_data()
    for level in (0.5, 0.9):
        assert covered[np.argmin(np.abs(at - level))] == pytest.approx(found.coverage.loc[level, "covered"], abs=0.011)
    assert np.abs(first.lines[1].get_ydata()).max() == pytest.approx(kstest(found.pit, "uniform").statistic, abs=0.006)
    assert len(third.containers) == 1
    for n in (10, 3000):  # few rows, and more than the band is made of
        other = predictive_calibration(Prediction.normal(np.zeros(n), 1.0), y=rng.normal(size=n))
        assert len(other.plot().axes) == 3
