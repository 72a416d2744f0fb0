"""Lagged designs written out entry by entry; gaps and uneven steps are refused or left out.

Guards `bayessel.basis.lagged_design`.
"""

import numpy as np
import pandas as pd
import pytest

from bayessel.basis import lagged


@pytest.mark.parametrize("lags", [3, [1, 2, 3], [4, 1]])
@pytest.mark.parametrize("horizon", [1, 3])
def test_every_entry_is_the_value_that_many_steps_back(rng, lags, horizon):
    s = rng.normal(size=15)
    X, y, index = lagged(s, lags, horizon)
    past = [1, 2, 3] if lags == 3 else lags
    assert len(X) == len(y) == len(index) == 15 - horizon - max(past) + 1
    for row, t in enumerate(index):
        assert y[row] == s[t]
        assert X[row].tolist() == [s[t - horizon - lag + 1] for lag in past]


def test_a_pandas_series_keeps_names_and_times(rng):
    s = pd.Series(rng.normal(size=24), index=pd.date_range("2020-01-31", periods=24, freq="ME"), name="load")
    X, y, index = lagged(s, [1, 12])
    assert list(X.columns) == ["lag_1", "lag_12"] and y.name == "load"
    assert X.index.equals(s.index[12:]) and y.index.equals(index)
    np.testing.assert_array_equal(X["lag_12"].to_numpy(), s.to_numpy()[:12])
    np.testing.assert_array_equal(y.to_numpy(), s.to_numpy()[12:])
    twin = lagged(s.to_numpy(), [1, 12])
    np.testing.assert_array_equal(X.to_numpy(), twin.X)
    assert twin.index.tolist() == list(range(12, 24))


def test_several_series_are_all_inputs(rng):
    frame = pd.DataFrame(rng.normal(size=(10, 2)), columns=["a", "b"])
    X, y, _ = lagged(frame, 2, target="b")
    assert list(X.columns) == ["a_lag_1", "a_lag_2", "b_lag_1", "b_lag_2"] and y.name == "b"
    for name in ("a", "b"):
        for lag in (1, 2):
            np.testing.assert_array_equal(X[f"{name}_lag_{lag}"], frame[name].to_numpy()[2 - lag : 10 - lag])
    twin = lagged(frame.to_numpy(), 2, target=1)
    np.testing.assert_array_equal(twin.X, X)
    np.testing.assert_array_equal(twin.y, y)
    both = lagged(frame, 2).y
    assert both.shape == (8, 2) and list(both.columns) == ["a", "b"]


def test_gaps_are_refused_or_left_out(rng):
    s = rng.normal(size=12)
    s[5] = np.nan
    with pytest.raises(ValueError, match=r"3 of 10 rows need.*gaps='drop'"):
        lagged(s, 2)
    X, y, index = lagged(s, 2, gaps="drop")
    assert index.tolist() == [2, 3, 4, 8, 9, 10, 11]
    np.testing.assert_array_equal(y, s[index])
    np.testing.assert_array_equal(X, np.column_stack([s[index - 1], s[index - 2]]))


@pytest.mark.parametrize(
    "index",
    [
        [0, 1, 2, 4, 5, 6, 7, 8],
        [7, 6, 5, 4, 3, 2, 1, 0],
        [0, 0, 1, 2, 3, 4, 5, 6],
        pd.to_datetime(["2020-01-01", *[f"2020-01-{d:02d}" for d in range(3, 10)]]),
        pd.date_range("2020-01-01", periods=8)[::-1],
        pd.PeriodIndex(["2020", *[str(y) for y in range(2022, 2029)]], freq="Y"),
    ],
    ids=["a number missing", "backwards", "a number twice", "a day missing", "days backwards", "a year missing"],
)
def test_uneven_times_are_refused(index):
    with pytest.raises(ValueError, match="does not rise by equal steps"):
        lagged(pd.Series(np.arange(8.0), index=index), 2)


@pytest.mark.parametrize(
    "index",
    [
        list("abcdefgh"),
        np.arange(1871, 1879),
        np.linspace(0.0, 0.7, 8),
        pd.date_range("2020-01-01", periods=8, freq="MS"),
        pd.date_range("2020-01-01", periods=8, freq="B"),
        pd.period_range("2020-01", periods=8, freq="M"),
        pd.timedelta_range("1h", periods=8, freq="1h"),
    ],
    ids=["names", "years", "fractions", "months", "business days", "periods", "time spans"],
)
def test_even_times_are_taken(index):
    assert lagged(pd.Series(np.arange(8.0), index=index), 2).y.tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize(
    ("series", "lags", "options", "error", "says"),
    [
        (np.arange(5.0), 0, {}, ValueError, "lags must be at least 1"),
        (np.arange(5.0), 2.0, {}, TypeError, "lags must be an integer"),
        (np.arange(5.0), "12", {}, TypeError, "lags must be an integer"),
        (np.arange(5.0), [], {}, ValueError, "list of different lags"),
        (np.arange(5.0), [1, 1], {}, ValueError, "list of different lags"),
        (np.arange(5.0), [0, 1], {}, ValueError, "at least 1"),
        (np.arange(5.0), 5, {}, ValueError, "need more than 5 values, got 5"),
        (np.arange(5.0), 2, {"horizon": 0}, ValueError, "horizon must be at least 1"),
        (np.arange(5.0), 2, {"gaps": "fill"}, ValueError, "gaps must be one of"),
        (np.arange(5.0), 2, {"target": 3}, ValueError, "one of the series"),
        (np.zeros((3, 3, 3)), 1, {}, ValueError, r"series must be \(N,\)"),
        ([], 1, {}, ValueError, "at least one value"),
        (["a", "b", "c"], 1, {}, TypeError, "must be numeric"),
        ([1.0, np.inf, 2.0], 1, {}, ValueError, "infinite"),
        (np.full(6, np.nan), 1, {"gaps": "drop"}, ValueError, "no row of the design"),
        (None, 1, {}, TypeError, "got None"),
    ],
)
def test_bad_arguments_are_refused(series, lags, options, error, says):
    with pytest.raises(error, match=says):
        lagged(series, lags, **options)
