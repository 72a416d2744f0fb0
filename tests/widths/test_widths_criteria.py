"""Criteria over the widths against dense twins.

Guards `bayessel.widths._evidence`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize, minimize_scalar

import bayessel as bs
from tests.oracles import linear as oracles
from tests.problems.widths import LOWER, WIDTHS, noisy_sine, three_widths


@pytest.fixture(scope="module")
def data():
    return noisy_sine()


@pytest.fixture(scope="module")
def comparison():
    return three_widths()


def design(x, r, kind="gaussian"):
    return oracles.radial(kind, x[:, None], x[:, None], r)


def dense_evidence(Phi, t):
    """Highest log evidence by a general optimiser on the dense covariance, a bias with a flat prior integrated out."""
    Phi, t = Phi - Phi.mean(axis=0), t - t.mean()

    def negative(logs):
        return -oracles.log_evidence(Phi, t, *np.exp(logs)) + 0.5 * (logs[1] + np.log(t @ t))

    starts = [(a, b) for a in (-3.0, 0.0, 3.0) for b in (0.0, 3.0)]
    found = [minimize(negative, s, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-11}) for s in starts]
    best = min(found, key=lambda result: result.fun)
    return -best.fun, np.exp(best.x)


def dense_minimum(name, Phi, t, bias=True):
    """Smallest value of a criterion over lambda: fine grid, then a bounded search around its best point."""
    if bias:
        Phi = np.column_stack([Phi, np.ones(len(t))])

    def value(log_lam):
        lam = np.full(Phi.shape[1], np.exp(log_lam))
        if bias:
            lam[-1] = 0.0
        return oracles.criteria(Phi, t, lam)[name]

    grid = np.linspace(-12, 8, 161)
    k = int(np.argmin([value(g) for g in grid]))
    return minimize_scalar(value, bounds=(grid[k] - 0.2, grid[k] + 0.2), method="bounded", options={"xatol": 1e-9}).fun


@pytest.mark.parametrize("r", WIDTHS)
def test_evidence_is_the_dense_maximum(r, data, comparison):
    value, (alpha, beta) = dense_evidence(design(data[0], r), data[1])
    row = comparison.table.loc[r]
    assert_allclose(row["evidence"], value, rtol=1e-8)
    assert_allclose(row["lam"], alpha / beta, rtol=1e-3)
    assert_allclose(row["noise_std"], beta**-0.5, rtol=1e-3)
    Phi = design(data[0], r)
    _, Sigma = oracles.posterior(Phi - Phi.mean(axis=0), data[1], alpha, beta)
    gamma = len(Sigma) - alpha * np.trace(Sigma)
    assert_allclose(row["gamma"], gamma, rtol=1e-3)
    third = value + 0.5 * np.log(2 / gamma) + 0.5 * np.log(2 / (len(data[1]) - 1 - gamma))
    assert_allclose(row["model-evidence"], third, rtol=1e-5)


def test_third_level_is_integrated_where_the_approximation_is_poor(data):
    """Wide functions leave fewer than 3 well-determined parameters: against a sum over (log alpha, log beta)."""
    x, y = data[0], data[0] + data[1] - np.sin(3 * data[0])  # a straight line with noise
    r = 6.0
    row = bs.compare_widths(x, y, [r], criteria=["evidence", "model-evidence"], progressbar=False).table.loc[r]
    assert row["gamma"] < 3
    assert "QUADRATURE(model-evidence)" in row["notes"]
    Phi = design(x, r)
    Phi, t = Phi - Phi.mean(axis=0), y - y.mean()
    log_beta = -2 * np.log(row["noise_std"]) + np.linspace(-4, 3, 36)
    log_alpha = np.log(row["lam"]) - 2 * np.log(row["noise_std"]) + np.linspace(-12, 25, 186)
    logs = [
        [oracles.log_evidence(Phi, t, *np.exp([a, b])) - 0.5 * (b + np.log(t @ t)) for b in log_beta] for a in log_alpha
    ]
    total = np.log(np.exp(np.array(logs) - np.max(logs)).sum() * 0.2 * 0.2) + np.max(logs)
    assert_allclose(row["model-evidence"], total - np.log(2 * np.pi), atol=0.02)


def test_third_level_is_missing_where_it_has_no_answer(rng):
    """Narrow functions, one per row, pass through noise: the approximation would be infinite there."""
    x, y = np.arange(60.0), rng.normal(size=60)
    table = bs.compare_widths(x, y, [0.3, 3.0], progressbar=False).table
    assert not np.isinf(table["model-evidence"]).any()
    missing = table["model-evidence"].isna()
    assert missing.any()
    assert (table["notes"].str.contains("UNDETERMINED(model-evidence)", regex=False) == missing).all()


@pytest.mark.parametrize("r", WIDTHS)
@pytest.mark.parametrize("name", LOWER)
def test_criteria_are_the_dense_minima(name, r, data):
    x, y = data
    centers = np.linspace(-2, 2, 8)
    got = bs.compare_widths(x, y, [r], centers=centers, criteria=[name], progressbar=False)
    Phi = oracles.radial("gaussian", x[:, None], centers[:, None], r)
    assert_allclose(got.table.loc[r, name], dense_minimum(name, Phi, y), rtol=1e-7)
    assert got.table.loc[r, "notes"] == "" or "AT_BOUND" not in got.table.loc[r, "notes"]


@pytest.mark.parametrize("r", WIDTHS[:2])
@pytest.mark.parametrize("name", ["gcv", "loo"])
def test_criteria_are_the_dense_minima_with_one_function_per_row(name, r, data, comparison):
    assert_allclose(comparison.table.loc[r, name], dense_minimum(name, design(data[0], r), data[1]), rtol=1e-7)


@pytest.mark.parametrize("name", ["uev", "fpe", "bic"])
def test_the_interpolating_end_is_no_minimum(name, data):
    """One function per row: the criterion vanishes at lambda = 0, where the fit passes through every row."""
    x, y = data
    grid = [0.03, 0.06, 0.1, 0.15]
    got = bs.compare_widths(x, y, grid, criteria=[name], progressbar=False)
    lams = np.exp(np.linspace(-16, 16, 1601))
    for r in grid:
        Phi = np.column_stack([design(x, r), np.ones(len(x))])
        curve = [oracles.criteria(Phi, y, np.append(np.full(len(x), lam), 0.0)) for lam in lams]
        values, rows_left = (np.array([one[key] for one in curve]) for key in (name, "gamma"))
        rows_left = len(x) - rows_left
        inner = [
            values[k]
            for k in range(1, len(lams) - 1)
            if values[k] < min(values[k - 1], values[k + 1]) and rows_left[k] >= len(x) / 4
        ]
        assert values[rows_left < 2].min() < 0.7 * min(inner, default=np.inf)  # what must not be returned
        found = got.table.loc[r, name]
        if np.isfinite(found):
            # the scan may also find the flat far end, where the weights are nothing: var(y), no inner minimum
            assert_allclose(found, min(inner, default=values[-1]), rtol=2e-3)
        else:
            assert not inner
        assert f"INTERPOLATION({name})" in got.table.loc[r, "notes"]
    if np.isfinite(got.table[name]).any():
        assert "has little to say here" in got.verdict()


@pytest.mark.parametrize("kind", ["multiquadric", "inverse_multiquadric", "cauchy"])
def test_other_kinds_and_no_bias(kind, data):
    x, y = data
    got = bs.compare_widths(x, y - 5, [0.4], criteria=["gcv"], kind=kind, bias=False, progressbar=False)
    assert_allclose(got.table.loc[0.4, "gcv"], dense_minimum("gcv", design(x, 0.4, kind), y - 5, bias=False), rtol=1e-7)


def test_stored_fit_is_the_dense_prediction(data, comparison):
    x, y = data
    r = comparison.best("evidence")
    _, (alpha, beta) = dense_evidence(design(x, r), y)
    Phi = np.column_stack([design(x, r), np.ones(len(x))])
    precision = beta * Phi.T @ Phi + np.diag([alpha] * len(x) + [0.0])
    Sigma = np.linalg.inv(precision)
    fit = comparison.fits[r]
    assert_allclose(fit.mean, Phi @ (beta * Sigma @ Phi.T @ y), atol=1e-4)
    assert_allclose(fit.std, np.sqrt(1 / beta + np.einsum("ij,jk,ik->i", Phi, Sigma, Phi)), rtol=1e-3)
    on_grid = oracles.radial("gaussian", fit.grid[:, None], x[:, None], r)
    assert_allclose(
        fit.grid_mean, np.column_stack([on_grid, np.ones(len(fit.grid))]) @ (beta * Sigma @ Phi.T @ y), atol=1e-4
    )
    assert fit.grid[0] == x.min() and fit.grid[-1] == x.max()


def test_offset_changes_nothing_and_scale_shifts_the_evidence(data, comparison):
    x, y = data
    moved = bs.compare_widths(x, 10.0 * y + 1e6, WIDTHS, progressbar=False).table
    assert_allclose(moved["evidence"], comparison.table["evidence"] - len(y) * np.log(10.0), rtol=1e-7)
    for name in LOWER:
        assert_allclose(moved[name], 100.0 * comparison.table[name], rtol=1e-6)
    assert_allclose(moved["lam"], comparison.table["lam"], rtol=1e-4)
