"""Comparing widths under a Gaussian process: numbers against dense algebra, choices against made-up functions.

Guards `bayessel.widths._gp`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

import bayessel as bs
from bayessel.criteria import CRITERIA
from bayessel.widths import WidthComparison
from bayessel.widths.arguments import MODELS

EVERY = ("evidence", "model-evidence", "loo", "elpd-loo", "gcv")
WIDTHS = np.geomspace(0.3, 5.0, 6)


def compare(x, y, widths=WIDTHS, **options):
    return bs.compare_widths(x, y, widths, model="gp", progressbar=False, **options)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(-2, 2, 40))
    return x, 20.0 + 3.0 * np.sin(3 * x) + 0.4 * rng.normal(size=40)


@pytest.fixture(scope="module")
def comparison(data):
    return compare(*data, criteria=EVERY)


def covariance_matrix(x, row, r):
    """Q in units of the target."""
    K = row["signal_std"] ** 2 * np.exp(-((x[:, None] - x) ** 2) / r**2)
    return K + row["noise_std"] ** 2 * np.eye(len(x))


@pytest.mark.parametrize("r", [WIDTHS[1], WIDTHS[3]])
def test_a_row_is_what_dense_algebra_says(data, r):
    """Without a bias: the row's own signal and noise say everything."""
    x, y = data
    t = y - 20.0
    found = compare(x, t, [r], criteria=EVERY, bias=False)
    row, n = found.table.loc[r], len(t)
    Q = covariance_matrix(x, row, r)
    assert_allclose(row["evidence"], multivariate_normal(np.zeros(n), Q).logpdf(t), rtol=1e-8)
    errors, densities = [], []
    for i in range(n):
        rest = np.arange(n) != i
        weights = np.linalg.solve(Q[np.ix_(rest, rest)], Q[rest, i])
        error, variance = t[i] - weights @ t[rest], Q[i, i] - weights @ Q[rest, i]
        errors.append(error**2)
        densities.append(-0.5 * np.log(2 * np.pi * variance) - 0.5 * error**2 / variance)
    assert_allclose(row["loo"], np.mean(errors), rtol=1e-6)
    assert_allclose(row["elpd-loo"], np.sum(densities), rtol=1e-6)
    assert_allclose(row["loo_se"], np.std(errors, ddof=1) / np.sqrt(n), rtol=1e-6)
    P = row["noise_std"] ** 2 * np.linalg.inv(Q)
    assert_allclose(row["gamma"], n - np.trace(P), rtol=1e-6)
    assert_allclose(row["gcv"], n * (t @ P @ P @ t) / np.trace(P) ** 2, rtol=1e-6)
    fit = found.fits[r]
    assert_allclose(fit.mean, t - P @ t, rtol=1e-6, atol=1e-8)
    K = Q - row["noise_std"] ** 2 * np.eye(n)
    assert_allclose(fit.std**2, np.diag(Q - K @ np.linalg.solve(Q, K)), rtol=1e-6)


def test_the_signal_and_noise_are_at_the_mode(data):
    """No other signal or noise has a higher posterior density; the priors are those of the thesis, for unit targets."""
    x, y = data
    t, r = y - 20.0, WIDTHS[2]
    row = compare(x, t, [r], bias=False).table.loc[r]
    scale = np.mean(np.abs(t))

    def log_posterior(log_v0, log_r2):
        Q = np.exp(log_v0) * np.exp(-((x[:, None] - x) ** 2) / r**2) + np.exp(log_r2) * np.eye(40)
        value = multivariate_normal(np.zeros(40), Q).logpdf(t / scale)
        return value - 0.5 * (log_v0 + 1.0) ** 2 - 0.5 * ((log_r2 + 3.0) / 3.0) ** 2

    at = 2.0 * np.log([row["signal_std"] / scale, row["noise_std"] / scale])
    best = log_posterior(*at)
    for move in ([0.05, 0.0], [-0.05, 0.0], [0.0, 0.05], [0.0, -0.05]):
        assert log_posterior(*(at + move)) < best


def test_the_right_width_is_found_and_wrong_ones_are_not(comparison):
    assert set(comparison.criteria) == set(EVERY)
    best = comparison.best("evidence")
    assert 0.5 < best < 2.0  # of sin 3x
    assert comparison.best("loo") in comparison.table.index[1:4]
    table = comparison.table
    assert table["evidence"].max() - table["evidence"].iloc[-1] > 10.0
    assert (table["model-evidence"] < table["evidence"]).all()
    assert_allclose(table.loc[best, "noise_std"], 0.4, rtol=0.3)


def test_other_units_of_the_target_shift_evidences_and_scale_errors(data, comparison):
    x, y = data
    other = compare(x, 10.0 * y, criteria=EVERY).table
    table = comparison.table
    assert_allclose(other["evidence"], table["evidence"] - 40 * np.log(10.0), atol=1e-3)
    assert_allclose(other["model-evidence"], table["model-evidence"] - 40 * np.log(10.0), atol=2e-3)
    assert_allclose(other["elpd-loo"], table["elpd-loo"] - 40 * np.log(10.0), atol=0.05)
    for name in ("loo", "gcv"):
        assert_allclose(other[name], 100.0 * table[name], rtol=0.01)


def test_a_level_far_from_zero_needs_the_bias(data):
    x, y = data
    with_bias, without = (compare(x, y, [1.0], bias=bias).table.loc[1.0, "evidence"] for bias in (True, False))
    assert with_bias > without + 5.0


def test_noise_alone_is_called_no_signal(rng):
    x, y = np.linspace(-2, 2, 40), rng.normal(size=40)
    table = compare(x, y).table
    assert table["notes"].str.contains(r"NO_SIGNAL\(model-evidence\)").any()
    signal = compare(x, np.sin(3 * x) + 0.1 * y, [1.0]).table
    assert not signal["notes"].str.contains("NO_SIGNAL").any()


def test_searches_reports_files_and_several_inputs(rng, tmp_path):
    X = rng.uniform(-2, 2, size=(45, 2))
    y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=45)
    found = compare(X, y, (0.3, 6.0), search=["evidence"], budget=18, tol=0.1, holdout=0.2)
    assert {"holdout", "evidence", "signal_std"} <= set(found.table)
    assert len(found.table) > 13
    assert "Gaussian process" in found.facts() and "by the" in found.verdict()
    found.to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "at their mode" in text and "one sparse model is fitted" not in text
    found.to_netcdf(tmp_path / "result.nc")
    again = WidthComparison.from_netcdf(tmp_path / "result.nc")
    assert_allclose(again.table["evidence"], found.table["evidence"])


@pytest.mark.slow
def test_two_workers_give_the_numbers_of_one(data, comparison):
    other = compare(*data, criteria=EVERY, n_jobs=2)
    assert_allclose(other.table["evidence"], comparison.table["evidence"], rtol=0, atol=0)


@pytest.mark.parametrize("model", ["gp", "rvm", "search"])
def test_what_one_fit_can_answer_is_offered_or_refused_with_a_reason(model):
    engine = MODELS[model]
    assert {name for name, one in CRITERIA.items() if one.of_one_fit} <= {*engine.criteria, *engine.refused}
    assert not set(engine.criteria) & set(engine.refused) and all(engine.refused.values())
