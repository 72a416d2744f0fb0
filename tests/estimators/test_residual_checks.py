"""Residuals that are no normal noise are named, normal ones are not.

Guards `bayessel.estimators.residual_checks`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.estimators.residual_checks import MOST_LEFT_OUT, remarks_on_fit, remarks_on_patterns, remarks_on_residuals
from bayessel.fit import LeaveOneOut


@pytest.mark.parametrize("n", [20, 60, 400])
def test_normal_noise_is_not_remarked_on(rng, n):
    flagged = [bool(remarks_on_residuals(rng.normal(size=n))) for _ in range(400)]
    assert np.mean(flagged) < 0.02  # 0.004 of 20 rows, less of more


@pytest.mark.parametrize("n", [20, 25, 40, 60, 150])
@pytest.mark.parametrize("sets", [2000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_one_row_of_a_few_is_named_as_far_as_normal_noise_allows(rng, n, sets):
    """In one of 1000 normal samples; eight robust standard deviations lie beyond that whatever their number."""
    flagged = np.mean([bool(remarks_on_residuals(rng.normal(size=n))) for _ in range(sets)])
    assert flagged < 0.0015 + 4.0 * np.sqrt(0.0015 / sets)
    errors = rng.normal(size=n)
    errors -= np.median(errors)
    errors /= 1.4826 * np.median(np.abs(errors))
    errors[np.argmax(errors)] = 8.0  # in the same halves before and after
    assert remarks_on_residuals(errors) == (bs.Status.HEAVY_TAILS,)


@pytest.mark.parametrize("make", [bs.EvidenceRegressor, bs.RidgeRBFRegressor, bs.RVMRegressor, bs.BasisSearchRegressor])
@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_rows_that_the_fit_follows_are_named(rng, make):
    """Residuals hide what a fit follows; rows left out, in units of what is unknown of them, show it."""
    X = rng.normal(size=(60, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(1.0, size=60)
    y[np.argmax(X[:, 2])] = 12.0  # at the edge, where nothing beside it says otherwise
    assert bs.Status.HEAVY_TAILS in make().fit(X, y).notes_


def test_heavy_tails_are(rng):
    flagged = [bool(remarks_on_residuals(rng.standard_t(1.2, size=100))) for _ in range(50)]
    assert np.mean(flagged) > 0.95
    both = np.column_stack([rng.normal(size=100), rng.standard_t(1.0, size=100)])
    assert remarks_on_residuals(both) == (bs.Status.HEAVY_TAILS,)
    assert remarks_on_residuals(np.append(np.zeros(99), 5.0)) == ()  # no robust standard deviation


TREND, UNEVEN = bs.Status.TREND_IN_RESIDUALS, bs.Status.UNEVEN_NOISE


def remarks(errors, X, fitted):
    return remarks_on_patterns(LeaveOneOut.normal(errors, np.ones_like(errors)), X, fitted + errors)


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("inputs", [1, 8])
@pytest.mark.parametrize("sets", [400, pytest.param(2000, marks=pytest.mark.slow)])
def test_even_noise_without_a_trend_is_not_remarked_on(rng, n, inputs, sets):
    seen = {TREND: 0, UNEVEN: 0}
    for _ in range(sets):
        X = rng.normal(size=(n, inputs))
        for status in remarks(rng.standard_t(4.0, size=n), X, X[:, 0]):
            seen[status] += 1
    for count in seen.values():
        assert count / sets < 0.006 + 4.0 * np.sqrt(0.006 / sets)


#: what is left in the errors, of places x in (-1, 1), fitted values f, the number of the row in (0, 1) and noise e
PATTERNS = {
    "a line along an input": (TREND, lambda x, f, i, e: 1.2 * x + e),
    "a bow along an input": (TREND, lambda x, f, i, e: 2.0 * x**2 + e),
    "a fast wave along an input": (TREND, lambda x, f, i, e: 1.5 * np.sin(15.0 * x) + e),
    "a bow along the fitted values": (TREND, lambda x, f, i, e: 0.7 * f**2 + e),
    "a drift": (TREND, lambda x, f, i, e: 2.0 * i + e),
    "rows that follow each other": (TREND, lambda x, f, i, e: np.convolve(e, [1.0, 0.8, 0.6, 0.4], mode="same")),
    "noise that grows along an input": (UNEVEN, lambda x, f, i, e: np.exp(1.2 * x) * e),
    "noise at both ends": (UNEVEN, lambda x, f, i, e: (0.3 + 2.0 * x**2) * e),
    "noise that grows with the fitted values": (UNEVEN, lambda x, f, i, e: np.exp(0.8 * f) * e),
    "noise that grows with the rows": (UNEVEN, lambda x, f, i, e: (0.3 + 2.0 * i) * e),
}


@pytest.mark.parametrize("what", PATTERNS)
def test_patterns_are_named(rng, what):
    status, made = PATTERNS[what]
    found = []
    for _ in range(20):
        X = rng.uniform(-1.0, 1.0, size=(150, 3))
        fitted = X[:, 1] + rng.normal(size=150)
        errors = made(X[:, 0], fitted, np.linspace(0.0, 1.0, 150), rng.normal(size=150))
        found.append(status in remarks(errors, X, fitted))
    assert np.mean(found) > 0.8


def test_what_says_nothing_is_not_looked_at(rng):
    X, errors = rng.normal(size=(100, 2)), rng.normal(size=100)
    assert remarks(np.zeros(100), X, X[:, 0]) == ()
    assert remarks(np.where(np.arange(100) == 3, np.nan, 5.0 * X[:, 0]), X, X[:, 0]) == ()
    assert remarks(5.0 * X[:20, 0], X[:20], X[:20, 0]) == ()  # too few rows
    assert remarks(errors, np.ones((100, 2)), np.zeros(100)) == ()  # inputs that do not vary
    flags = np.column_stack([X[:, 0] > 0.0, X[:, 1]]).astype(float)  # two values: means and sizes are compared
    assert TREND in remarks(errors + 2.0 * flags[:, 0], flags, X[:, 1])
    assert UNEVEN in remarks(errors * (1.0 + 4.0 * flags[:, 0]), flags, X[:, 1])
    # fitted values that are those of a constant are opposite to the errors of rows left out
    assert remarks(errors, X, -errors / 99.0) == ()
    both = np.column_stack([errors, errors + 3.0 * X[:, 0]])
    assert remarks(both, X, np.zeros((100, 2))) == (TREND,)


def test_many_rows_are_looked_at_without_leaving_any_out(rng):
    n = MOST_LEFT_OUT + 1
    X, errors = rng.normal(size=(n, 1)), rng.normal(size=n)
    assert remarks_on_fit(None, errors, X, errors) == ()
    assert remarks_on_fit(None, errors + X[:, 0], X, errors + X[:, 0]) == (TREND,)


@pytest.mark.parametrize("make", [bs.RVMRegressor, bs.EvidenceRegressor, bs.RidgeRBFRegressor])
@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_regressors_with_a_width_of_their_own_name_what_it_leaves(rng, make):
    X = np.linspace(-3.0, 3.0, 120)[:, None]
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=120)
    model = make(width=6.0).fit(X, y)
    assert TREND in model.notes_ and "TREND_IN_RESIDUALS" in model.describe()
    y = np.sin(X[:, 0]) + np.exp(0.8 * X[:, 0] - 2.0) * rng.normal(size=120)
    model = make(width=2.0).fit(X, y)
    assert UNEVEN in model.notes_


@pytest.mark.parametrize(
    "make",
    [
        lambda: bs.EvidenceRegressor(width=2.0),
        bs.EvidenceRegressor,
        lambda: bs.RVMRegressor(width=2.0),
        lambda: bs.BasisSearchRegressor(width=2.0),
        bs.GPRegressor,
    ],
)
def test_fits_to_outliers_warn(rng, make):
    X = np.sort(rng.uniform(-3.0, 3.0, size=(120, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=120)
    y[::15] += rng.choice([-30.0, 30.0], size=8)
    with pytest.warns(NumericalWarning) as said:
        model = make().fit(X, y)
    assert model.status_.severity >= bs.Status.HEAVY_TAILS.severity
    assert any(name in str(said[0].message) for name in ("HEAVY_TAILS", "NO_BETTER_THAN_CONSTANT", "PURE_NOISE"))
