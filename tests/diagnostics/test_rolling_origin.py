"""Rolling origins against loops written out, and standard errors against the truth of autoregressions.

Guards `bayessel.diagnostics._rolling_origin`, `bayessel.diagnostics.fresh_estimators`.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayessel as bs
from bayessel.basis import PolynomialDictionary, lagged
from bayessel.diagnostics import rolling_origin
from bayessel.diagnostics._rolling_origin import block_length, block_standard_error
from bayessel.errors import SamplingWarning


def autoregression(rng, n, share):
    """Values of variance one, each `share` of the one before."""
    x = np.empty(n)
    x[0] = rng.normal()
    for k, e in enumerate(rng.normal(size=n - 1) * np.sqrt(1.0 - share**2)):
        x[k + 1] = share * x[k] + e
    return x


@pytest.fixture
def series(rng):
    return lagged(autoregression(rng, 60, 0.8), 2)


class Last:
    """Predicts the newest value; no class of scikit-learn."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


# --- what is predicted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "origins"),
    [
        ({}, range(29, 58)),
        ({"initial": 40}, range(40, 58)),
        ({"initial": 40, "step": 4}, range(40, 58, 4)),
        ({"initial": 40, "horizon": 5}, (40, 45, 50)),
        ({"initial": 40, "horizon": 5, "step": 2}, range(40, 54, 2)),
        ({"initial": 40, "gap": 3}, range(40, 55)),
        ({"initial": 40, "gap": 3, "window": 10, "horizon": 2}, range(40, 54, 2)),
    ],
)
def test_each_prediction_is_that_of_a_fit_to_the_rows_before(series, options, origins):
    X, y, _ = series
    found = rolling_origin({"a": BayesianRidge()}, X, y, **options)
    horizon, gap, window = options.get("horizon", 1), options.get("gap", 0), options.get("window")
    place = 0
    for origin in origins:
        begin = 0 if window is None else origin - window
        model = BayesianRidge().fit(X[begin:origin], y[begin:origin])
        for k in range(horizon):
            row = origin + gap + k
            mean, std = model.predict(X[[row]], return_std=True)
            line = found.rows.iloc[place]
            assert (line["row"], line["ahead"], line["origin"], line["target"]) == (row, k + 1, origin + gap, y[row])
            np.testing.assert_allclose(line["squared_error"], (y[row] - mean[0]) ** 2)
            np.testing.assert_allclose(line["log_density"], norm(mean[0], std[0]).logpdf(y[row]))
            interval = norm(mean[0], std[0]).interval(0.9)
            np.testing.assert_allclose([line["lower"], line["upper"]], interval)
            assert line["coverage"] == (interval[0] <= y[row] <= interval[1])
            place += 1
    assert place == len(found.rows)
    np.testing.assert_allclose(found.table.loc["a", "log_density"], found.rows["log_density"].mean())


def test_differences_are_of_the_same_origins(series):
    X, y, _ = series
    found = rolling_origin({"line": LinearRegression(), "mean": DummyRegressor(), "last": Last()}, X, y, initial=30)
    errors = found.rows.pivot_table(index="row", columns="model", values="squared_error")
    for (a, b), line in found.differences.iterrows():
        apart = (errors[a] - errors[b]).to_numpy()
        np.testing.assert_allclose(line["squared_error"], apart.mean(), atol=1e-12)
        np.testing.assert_allclose(line["squared_error_se"], block_standard_error(apart, block_length(apart)))
    assert len(found.differences) == 3
    assert found.table["log_density"].isna().all() and found.table["coverage_se"].isna().all()
    assert list(found.table.index) == list(errors.mean().sort_values().index)  # no density: by the squared error
    # the errors of two models at the same origins go together: their difference is surer than either
    assert found.differences["squared_error_se"].min() < found.table["squared_error_se"].min()


def test_mixtures_are_judged_as_mixtures(series):
    X, y, _ = series
    model = bs.EvidenceRegressor(dictionary=PolynomialDictionary(1))
    found = rolling_origin({"a": model}, X, y, initial=50, level=0.5)
    line = found.rows.iloc[3]
    there = bs.EvidenceRegressor(dictionary=PolynomialDictionary(1)).fit(X[:53], y[:53]).predictive(X[[53]])
    np.testing.assert_allclose([line["lower"], line["upper"]], there.quantile([0.25, 0.75])[:, 0], rtol=1e-8)
    np.testing.assert_allclose(line["log_density"], there.log_density(y[[53]])[0], rtol=1e-10)
    assert not hasattr(model, "fit_")


def test_the_best_comes_first_and_tables_keep_their_times(rng):
    times = pd.date_range("2000-01-01", periods=80, freq="MS")
    X, y, index = lagged(pd.Series(autoregression(rng, 80, 0.95), index=times), 1)
    useless = pd.DataFrame(rng.normal(size=X.shape), index=X.index, columns=X.columns)
    models = {"mean": make_pipeline(StandardScaler(), BayesianRidge(alpha_init=1.0)), "lag": BayesianRidge()}
    found = rolling_origin(models, X, y, initial=40)
    assert found.rows["row"].iloc[0] == index[40]
    none = rolling_origin({"useless": BayesianRidge()}, useless, y, initial=40)
    assert none.table["log_density"].iloc[0] < found.table["log_density"].iloc[0]
    assert "intervals of 90%" in str(found) and "lag" in str(found)


def test_coverage_is_that_of_the_level(rng):
    y = rng.normal(size=1200)
    found = rolling_origin({"a": BayesianRidge()}, np.ones((1200, 1)), y, initial=200, step=50, horizon=50, level=0.8)
    assert abs(found.table.loc["a", "coverage"] - 0.8) < 4.0 * np.sqrt(0.16 / 1000)


# --- standard errors -------------------------------------------------------------------------------------------


def test_blocks_of_one_are_the_textbook(rng):
    x = rng.normal(size=30)
    np.testing.assert_allclose(block_standard_error(x, 1), x.std(ddof=1) / np.sqrt(30))
    by_hand = np.array([x[k : k + 4].mean() for k in range(27)]) - x.mean()
    np.testing.assert_allclose(block_standard_error(x, 4), np.sqrt(4 / (26 * 27) * (by_hand**2).sum()))
    assert np.isnan(block_standard_error(x[:7], 4)) and np.isnan(block_standard_error(x[:1], 1))


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_standard_errors_are_those_of_correlated_losses(rng, share):
    """The variance of the mean of an autoregression is known; one of independent values would be far too small."""
    m = 400
    lags = np.arange(1, m)
    truth = (1.0 + 2.0 * ((1.0 - lags / m) * share**lags).sum()) / m
    found = []
    for _ in range(300):
        x = autoregression(rng, m, share)
        found.append(block_standard_error(x, block_length(x)) ** 2)
    ratio = np.mean(found) / truth
    error = np.std(found) / np.sqrt(300) / truth
    assert 0.82 - 4.0 * error < ratio < 1.0 + 4.0 * error  # blocks miss what goes on beyond them
    if share:
        assert 1.0 / m < 0.5 * truth


def test_blocks_grow_with_the_correlation(rng):
    lengths = [block_length(autoregression(rng, 500, share)) for share in (0.0, 0.5, 0.9)]
    assert lengths == sorted(lengths) and lengths[0] <= 4 < lengths[2] <= 125
    assert block_length(np.zeros(20), least=3) == 3 and block_length(rng.normal(size=20), least=6) >= 6
    assert block_length(np.full(5, np.nan)) == 1


def test_overlapping_horizons_are_in_one_block(series):
    X, y, _ = series
    found = rolling_origin({"a": BayesianRidge()}, X, y, initial=20, step=1, horizon=6)
    assert found.block["squared_error"] >= 6
    assert rolling_origin({"a": BayesianRidge()}, X, y, initial=20, block=2).block["log_density"] == 2


# --- seeds, processes, trouble ---------------------------------------------------------------------------------


class Random:
    """Predicts a random number of its seed."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, **values):
        self.__dict__.update(values)
        return self

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.random.default_rng(self.random_state).normal(size=len(X))


def test_the_same_seed_gives_the_same_numbers(series):
    X, y, _ = series
    a, b, c = (rolling_origin({"r": Random(), "s": Random()}, X, y, random_state=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(a.rows, b.rows)
    assert not np.allclose(a.rows["mean"], c.rows["mean"])
    assert len(set(a.rows["mean"])) == len(a.rows)  # each model at each origin has a seed of its own


@pytest.mark.slow
def test_processes_give_the_same_numbers(series):
    X, y, _ = series
    models = {"evidence": bs.EvidenceRegressor(dictionary=PolynomialDictionary(2)), "random": BayesianRidge()}
    one, two = (rolling_origin(models, X, y, initial=50, n_jobs=jobs) for jobs in (1, 2))
    pd.testing.assert_frame_equal(one.rows, two.rows)


def test_warnings_of_fits_are_counted(rng):
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    found = rolling_origin({"noise": bs.EvidenceRegressor(dictionary=PolynomialDictionary(2))}, X, y, initial=36)
    (counts,) = found.warnings.values()
    assert found.table.loc["noise", "warned"] == max(counts.values()) / 4


class Stopped(Last):
    """Ctrl-C comes while it is fitted to so many rows."""

    def __init__(self, at):
        self.at = at

    def fit(self, X, y):
        if len(X) >= self.at:
            raise KeyboardInterrupt
        return self


def test_ctrl_c_keeps_the_origins_that_are_done(series):
    X, y, _ = series
    with pytest.warns(SamplingWarning, match="interrupted after 5 of 18 origins"):
        found = rolling_origin({"a": LinearRegression(), "b": Stopped(45)}, X, y, initial=40)
    assert found.table["origins"].tolist() == [5.0, 5.0]
    with pytest.raises(KeyboardInterrupt):
        rolling_origin({"b": Stopped(0)}, X, y, initial=40)


class Broken(Last):
    def predict(self, X):
        return np.full(len(X), np.nan)


@pytest.mark.parametrize(
    ("models", "options", "error", "says"),
    [
        ([LinearRegression()], {}, TypeError, "models must be a dict"),
        ({}, {}, TypeError, "at least one"),
        ({"a": LinearRegression}, {}, TypeError, "'a' must be an estimator"),
        ({"a": 3}, {}, TypeError, "'a' must be an estimator"),
        ({"a": Broken()}, {}, ValueError, "must predict a finite number"),
        ({"a": Last()}, {"initial": 58}, ValueError, "lower initial"),
        ({"a": Last()}, {"initial": 1}, ValueError, "initial must be at least 2"),
        ({"a": Last()}, {"horizon": 0}, ValueError, "horizon must be at least 1"),
        ({"a": Last()}, {"step": 0}, ValueError, "step must be at least 1"),
        ({"a": Last()}, {"gap": -1}, ValueError, "gap must be at least 0"),
        ({"a": Last()}, {"window": 1}, ValueError, "window must be at least 2"),
        ({"a": Last()}, {"level": 90}, ValueError, "level must be in"),
        ({"a": Last()}, {"block": 0}, ValueError, "block must be at least 1"),
        ({"a": Last()}, {"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"a": Last()}, {"progressbar": "no"}, TypeError, "progressbar must be True or False"),
    ],
)
def test_bad_arguments_are_refused(series, models, options, error, says):
    with pytest.raises(error, match=says):
        rolling_origin(models, *series[:2], **options)


def test_rows_that_do_not_match_are_refused(series):
    X, y, _ = series
    with pytest.raises(ValueError, match="one row for each of the 57 values"):
        rolling_origin({"a": Last()}, X, y[:-1])
    with pytest.raises(ValueError, match="y must be finite"):
        rolling_origin({"a": Last()}, X, np.append(y[:-1], np.nan))
    with pytest.raises(ValueError, match="y must be 1-D"):
        rolling_origin({"a": Last()}, X, X)
