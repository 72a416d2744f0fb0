"""Displays of estimators: what is drawn are the model's own numbers, of arrays and of frames with categories.

Guards `bayessel.diagnostics.fit_display`, `bayessel.diagnostics.relevance_display`,
`bayessel.diagnostics.calibration_display`, `bayessel.diagnostics.input_columns`.
"""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.linear_model import LinearRegression, LogisticRegression

import bayessel as bs
from bayessel.diagnostics import FitDisplay, PredictiveCalibrationDisplay, RelevanceDisplay
from bayessel.diagnostics.input_columns import InputColumns
from bayessel.diagnostics.relevance_display import measured_slopes


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    return X, y, bs.EvidenceRegressor(width=1.0).fit(X, y)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {"age": rng.uniform(20, 60, 90), "sort": rng.choice(["a", "b"], 90), "height": rng.normal(size=90)}
    )
    y = pd.Series(0.1 * X["age"] + (X["sort"] == "b") + 0.1 * rng.normal(size=90), name="wage")
    return X, y, bs.EvidenceRegressor(width=3.0).fit(X, y)


def test_the_curve_is_the_models_own_mean_and_its_error_bars(wave):
    X, y, model = wave
    shown = FitDisplay.from_estimator(model, X, y)
    (one,) = shown.slices
    mean, std = model.predict(one.values[:, None], return_std=True)
    np.testing.assert_allclose(one.mean, mean)
    np.testing.assert_allclose(one.std, std)
    np.testing.assert_array_equal(one.x, X[:, 0])
    np.testing.assert_array_equal(one.y, y)
    drawn = next(line for line in shown.ax_.lines if line.get_label() == "mean")
    np.testing.assert_allclose(drawn.get_ydata(), mean)


def test_slices_move_one_column_of_a_frame_and_keep_the_others(people):
    X, y, model = people
    shown = FitDisplay.from_estimator(model, X, y)
    by_name = {one.name: one for one in shown.slices}
    assert shown.target == "wage" and set(by_name) == {"age", "sort", "height"}
    at = pd.DataFrame(
        {"age": [np.sort(X["age"])[45]] * 2, "sort": ["a", "b"], "height": [np.sort(X["height"])[45]] * 2}
    )
    np.testing.assert_allclose(by_name["sort"].mean, model.predict(at), rtol=1e-6)
    # a row that lies on the slice is its own dot; elsewhere it keeps its error
    missed = y - model.predict(X)
    age = by_name["age"]
    np.testing.assert_allclose(age.y - np.interp(age.x, age.values, age.mean), missed, atol=1e-9)


def test_of_many_inputs_those_are_drawn_that_matter():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 7))
    model = LinearRegression().fit(X, 3 * X[:, 5] - 2 * X[:, 1])
    shown = FitDisplay.from_estimator(model, X, most=2)
    assert [one.name for one in shown.slices] == ["x[1]", "x[5]"]
    assert shown.slices[0].std is None
    named = FitDisplay.from_estimator(model, X, features=[3])
    assert [one.name for one in named.slices] == ["x[3]"] and np.ptp(named.slices[0].mean) < 1e-9
    with pytest.raises(ValueError, match="no input"):
        FitDisplay.from_estimator(model, X, features=["width"])


def test_classifiers_show_probabilities():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 1))
    model = LogisticRegression().fit(X, X[:, 0] > 0)
    shown = FitDisplay.from_estimator(model, X, X[:, 0] > 0)
    (one,) = shown.slices
    np.testing.assert_allclose(one.mean, model.predict_proba(one.values[:, None]))
    assert shown.classes == (False, True)


def test_axes_that_are_given_are_drawn_into(wave):
    X, y, model = wave
    figure, (left, right) = pyplot.subplots(1, 2)
    assert FitDisplay.from_estimator(model, X, y, ax=left).ax_ is left
    shown = PredictiveCalibrationDisplay.from_estimator(model, ax=right)
    assert shown.figure_ is figure and len(shown.axes_) == 3
    assert shown._repr_html_() is None  # the figure shows itself


def test_slopes_of_a_line_are_its_own():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": 10.0 * rng.normal(size=200), "c": ["x"] * 200})
    line = LinearRegression().fit(X[["a", "b"]], 2 * X["a"] + 0.1 * X["b"])

    class OfTwo:
        def predict(self, rows):
            return line.predict(rows[["a", "b"]])

    table = measured_slopes(OfTwo(), X, X["a"])
    np.testing.assert_allclose(table["slope"], [2.0, 0.1])
    expected = np.array([2.0 * X["a"].std(ddof=0), 0.1 * X["b"].std(ddof=0)]) / X["a"].std(ddof=0)
    np.testing.assert_allclose(table["standardised"], expected)


def test_relevance_is_the_estimators_own_where_it_has_one(wave):
    X, y, model = wave
    with pytest.raises(ValueError, match="rows X"):
        RelevanceDisplay.from_estimator(model)
    assert RelevanceDisplay.from_estimator(model, X, y).table["slope"].iloc[0] > 0.1
    process = bs.GPRegressor(inference="map").fit(X, y)
    (one,) = FitDisplay.from_estimator(process, X).slices
    there = process.predictive(one.values[:, None])
    np.testing.assert_allclose(one.function_std, there.function.std)
    assert (one.function_std < one.std).all()
    pd.testing.assert_frame_equal(RelevanceDisplay.from_estimator(process).table, process.relevance_)


def test_typical_rows_keep_their_types():
    frame = pd.DataFrame({"n": [1, 5, 9], "c": pd.Categorical(["u", "v", "v"]), "b": [True, True, False]})
    typical = InputColumns.of(frame).typical(2).frame
    assert typical.to_dict("list") == {"n": [5, 5], "c": ["v", "v"], "b": [True, True]}
    assert (typical.dtypes == frame.dtypes).all()
    assert InputColumns.of(np.arange(3.0)).names == ["x[0]"]
