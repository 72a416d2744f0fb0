"""Widths that are found: spread of the inputs, folds fitted anew, units, rows in any order, statuses that warn.

Guards `bayessel.estimators.found_width`, `bayessel.estimators.held_out`, `bayessel.estimators._radial_dictionary`,
`bayessel.estimators._witnessed_mode`.
"""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.estimators.found_width import N_FOLDS, find_width, robust_spread
from bayessel.estimators.held_out import ranks_of_places, ranks_of_rows
from bayessel.fit import Status
from bayessel.linear import fit_evidence

MAKERS = [
    bs.EvidenceRegressor,
    bs.RVMRegressor,
    bs.RidgeRBFRegressor,
    bs.BasisSearchRegressor,
    bs.ForwardSelectionRegressor,
]
EVERY = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
CRITERIA = pytest.mark.parametrize("criterion", ["gcv", "loo", "uev", "fpe", "bic"])


def odd_units(rng, n=120):
    """Inputs of sizes from 1e-3 to 1e4, a flag, a constant, a heavy tail."""
    Z = rng.normal(size=(n, 3))
    X = np.column_stack([1e-3 * Z[:, 0], 1e4 * Z[:, 1], rng.integers(0, 2, n), np.full(n, 7.0), np.exp(0.5 * Z[:, 2])])
    return X, np.sin(Z[:, 0]) + 0.5 * Z[:, 1] + X[:, 2] + 0.1 * rng.normal(size=n)


# --- the spread


def test_spread_of_a_normal_column_is_its_standard_deviation(rng):
    assert robust_spread(3.0 * rng.normal(size=(20_000, 1)) + 50.0)[0] == pytest.approx(3.0, rel=0.03)


def test_spread_of_flags_constants_long_tails_and_mostly_zeros(rng):
    flags = (np.arange(400) < 4).astype(float)  # one in a hundred: the standard deviation is 0.1
    tail = rng.normal(size=400)
    outlier = tail.copy()
    outlier[0] = 1e6
    zeros = np.zeros(400)
    zeros[:40] = 10.0 + rng.normal(size=40)
    spread = robust_spread(np.column_stack([flags, np.full(400, 3.0), tail, outlier, zeros]))
    assert spread[:2].tolist() == [0.5, 1.0]
    assert spread[3] == pytest.approx(spread[2], rel=0.05)
    assert spread[4] == pytest.approx(10.0, abs=1.0)


def test_spread_of_the_largest_numbers_is_finite():
    assert np.isfinite(robust_spread(np.array([[-1.7e308], [0.0], [1.7e308]]))).all()


# --- the folds


def test_equal_inputs_share_a_fold_and_the_order_of_rows_changes_nothing(rng):
    X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.normal(size=60)
    rank, order = ranks_of_places(X, y), rng.permutation(60)
    assert all(len(set(rank[(X == row).all(axis=1)])) == 1 for row in X)
    assert np.array_equal(ranks_of_places(X[order], y[order]), rank[order])


def test_rows_at_a_few_places_that_were_measured_again_and_again_are_held_out_one_by_one(rng):
    X, y = rng.integers(0, 4, (60, 1)).astype(float), rng.normal(size=60)
    rank, order = ranks_of_rows(X, y), rng.permutation(60)
    assert np.array_equal(np.argsort(rank), np.argsort(y))
    assert np.array_equal(ranks_of_rows(X[order], y[order]), rank[order])
    flags = np.repeat([0.0, 1.0, 0.0, 1.0], 15)  # two targets at two places: ties follow the inputs
    rank = ranks_of_rows(flags[:, None], np.repeat([0.0, 1.0], 30))
    assert np.array_equal(rank // 15, np.repeat(np.arange(4), 15))
    # places that stay together: copies of whole rows; three measurements each, as if more places were to come
    copies = np.repeat(np.arange(10.0), 6)
    assert np.array_equal(ranks_of_rows(copies[:, None], copies), copies)
    few = np.repeat(np.arange(20.0), 3)
    assert np.array_equal(ranks_of_rows(few[:, None], y), ranks_of_places(few[:, None], y))


@EVERY
@pytest.mark.filterwarnings("ignore:FELL_BACK")
def test_levels_of_a_factor_are_as_good_as_their_means(make, rng):
    """One input of two values, or dummies of ten: each level is seen in every fold, and is predicted by its mean."""
    for levels in (2, 10):
        which = np.arange(120) % levels
        X = which[:, None] * 1.0 if levels == 2 else np.eye(levels)[which]
        y = rng.permutation(np.linspace(-3.0, 3.0, levels))[which] + 0.3 * rng.normal(size=120)
        model = make().fit(X, y)
        means = np.array([y[which == k].mean() for k in range(levels)])
        error = 0.3 / np.sqrt(120 / levels)
        assert model.status_ is not Status.TOO_FEW_ROWS and Status.TREND_IN_RESIDUALS not in model.notes_
        assert np.abs(model.predict(X[:levels]) - means).max() < 2.0 * error
        assert model.found_width_.gain > 0.5


def test_gain_is_that_of_folds_written_out(rng):
    X = rng.uniform(-2, 2, (30, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=30)
    found = find_width(
        X, y[:, None], lambda P, t, _: fit_evidence(P, t, centre=True), centers=None, kind="gaussian", bias=True
    )
    r, spread = max(found.path, key=lambda one: one["gain"])["width"], robust_spread(X)
    np.testing.assert_allclose(found.widths, r * spread, rtol=1e-12)
    fold, gains = np.argsort(np.argsort(y)) % N_FOLDS, np.zeros(30)
    for k in range(N_FOLDS):
        A, a, B, b = X[fold != k], y[fold != k], X[fold == k], y[fold == k]
        one = bs.EvidenceRegressor(width=float(r * spread[0])).fit(A, a)
        mean, std = one.predict(B, return_std=True)
        wide = a.std(ddof=1) * np.sqrt(1.0 + 1.0 / len(a))
        for at, m, s in ((fold == k, mean, std), (fold == k, a.mean(), wide)):
            sign = 1.0 if m is mean else -1.0
            gains[at] += sign * (-np.log(s) - 0.5 * ((b - m) / s) ** 2)
    assert found.gain == pytest.approx(gains.mean(), rel=1e-8)
    assert found.error == pytest.approx(gains.std() / np.sqrt(30), rel=1e-8)


# --- the estimators


# rows at the edge, held out, lie beyond the narrow error bars of a relevance vector machine
EDGE = pytest.mark.filterwarnings("ignore:NO_BETTER_THAN_CONSTANT:bayessel.errors.NumericalWarning")


@EDGE
@EVERY
def test_the_default_is_no_further_from_the_truth_than_ridge_in_odd_units(rng, make):
    X, y = odd_units(rng)
    model = make().fit(X[:80], y[:80])
    ours = np.mean((model.predict(X[80:]) - y[80:]) ** 2)
    assert ours < 1.25 * np.mean((BayesianRidge().fit(X[:80], y[:80]).predict(X[80:]) - y[80:]) ** 2)
    assert model.width_.shape == (5,)
    assert make is bs.RVMRegressor or model.found_width_.gain > 0.5


@EDGE
@EVERY
def test_units_of_the_inputs_change_only_the_widths(rng, make):
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
    units = np.array([2.0**-12, 2.0**9])
    one, other = make().fit(X, y), make().fit(X * units, y)
    np.testing.assert_allclose(other.width_, one.width_ * units, rtol=1e-9)
    np.testing.assert_allclose(other.predict(X * units), one.predict(X), rtol=1e-6, atol=1e-8)


def test_centres_given_are_in_the_units_of_the_inputs(rng):
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
    units = np.array([2.0**-12, 2.0**9])
    one = bs.EvidenceRegressor(centers=X[:15]).fit(X, y)
    other = bs.EvidenceRegressor(centers=X[:15] * units).fit(X * units, y)
    np.testing.assert_allclose(other.width_, one.width_ * units, rtol=1e-9)
    np.testing.assert_allclose(other.found_width_.gain, one.found_width_.gain, rtol=1e-6)


@pytest.mark.parametrize("make", [bs.EvidenceRegressor, bs.RidgeRBFRegressor])
def test_the_order_of_the_rows_changes_nothing(rng, make):
    X = rng.normal(size=(50, 3))
    y = X[:, 0] + np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)
    order = rng.permutation(50)
    one, other = make().fit(X, y), make().fit(X[order], y[order])
    np.testing.assert_allclose(other.width_, one.width_, rtol=1e-6)
    np.testing.assert_allclose(other.predict(X, True), one.predict(X, True), rtol=1e-5, atol=1e-6)


@EVERY
def test_widths_given_stay_what_they_are(rng, make):
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=40)
    model = make(width=1.5).fit(X, y)
    assert model.width_ == 1.5
    assert isinstance(model.width_, float)
    assert model.found_width_ is None


@EVERY
def test_a_fit_no_better_than_a_constant_says_so_aloud(rng, make):
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    with pytest.warns(NumericalWarning, match="NO_BETTER_THAN_CONSTANT|PURE_NOISE"):
        model = make().fit(X, y)
    assert model.status_.distrusted
    assert bs.Status.NO_BETTER_THAN_CONSTANT in model.found_width_.notes


@EVERY
def test_a_few_rows_and_one_row_are_fitted(make):
    for n in (1, 2, 5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)
            model = make().fit(np.arange(2.0 * n).reshape(n, 2), np.arange(n))
        assert np.isfinite(model.predict(np.zeros((1, 2)))).all()


def test_several_targets_share_a_width(rng):
    X = rng.normal(size=(60, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(60, 2))
    model = bs.EvidenceRegressor(inference="type2").fit(X, Y)
    assert model.predict(X).shape == (60, 2)
    assert model.found_width_.gain > 1.0


def test_ctrl_c_keeps_the_best_width_so_far(rng, monkeypatch):
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    calls = []

    def interrupted(Phi, t=None, **options):
        calls.append(1)
        if len(calls) == 4 * N_FOLDS:
            raise KeyboardInterrupt
        return fit_evidence(Phi, t, **options)

    monkeypatch.setattr("bayessel.estimators.evidence.fit_evidence", interrupted)
    model = bs.EvidenceRegressor(inference="type2").fit(X, y)
    assert model.status_ is bs.Status.INTERRUPTED
    assert len(model.found_width_.path) == 3


def test_the_classifier_finds_its_width_in_odd_units(rng):
    Z = rng.normal(size=(200, 2))
    labels = (Z**2).sum(axis=1) < 1.2
    X = Z * [1e-3, 1e4]
    model = bs.LOOMIClassifier().fit(X[:120], labels[:120])
    assert model.width_.shape == (2,)
    assert np.mean(model.predict(X[120:]) == labels[120:]) > 0.9


# --- ridge regression whose criterion falls to interpolation


def problem(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n), rng.normal(size=(50, d)), rng.permutation(n)


@CRITERIA
@pytest.mark.parametrize(("n", "d", "width"), [(200, 8, 1.0), (60, 8, 1.0), (30, 3, 0.3), (60, 8, None)])
@pytest.mark.parametrize("seed", range(3))
def test_no_standard_deviation_is_far_beyond_that_of_the_target(n, d, width, criterion, seed):
    X, y, new, order = problem(n, d, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        one = bs.RidgeRBFRegressor(width=width, criterion=criterion).fit(X, y)
        other = bs.RidgeRBFRegressor(width=width, criterion=criterion).fit(X[order], y[order])
    mean, std = one.predict(new, return_std=True)
    assert std.max() < 6.0 * y.std()  # of few functions: their distance from all functions included
    np.testing.assert_allclose(other.predict(new, return_std=True), (mean, std), rtol=1e-5, atol=1e-6)
    ours, theirs = one.leave_one_out(), other.leave_one_out()
    for name in ("errors", "variances", "log_densities"):
        np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name)[order], rtol=1e-5, atol=1e-6)
    target = mean + std
    np.testing.assert_allclose(
        other.log_predictive_density(new, target), one.log_predictive_density(new, target), rtol=1e-5, atol=1e-6
    )


@CRITERIA
def test_a_criterion_that_falls_to_interpolation_leaves_the_constant_and_warns(criterion):
    X, y, new, _ = problem(60, 8, 0)
    with pytest.warns(NumericalWarning, match="INTERPOLATION"):
        model = bs.RidgeRBFRegressor(width=1.0, criterion=criterion).fit(X, y)
    np.testing.assert_allclose(model.predict(new), y.mean(), atol=1e-6)


# --- statuses


def test_statuses_that_ask_for_a_second_look():
    said = {status.name for status in bs.Status if not status.distrusted}
    assert said == {
        "CONVERGED",
        "COLLINEAR_SKIPPED",
        "SAMPLED_CANDIDATES",
        "COPIES_COUNT_ONCE",
        "FEW_WELL_DETERMINED",
        "ONE_AGAINST_REST",
        "IMPROPER_PRIOR",
        "MULTIPLE_OPTIMA",
        "CANDIDATES_USED_UP",
        "AT_BOUND",
        "ROUGH_APPROXIMATION",
        "UNEVEN_NOISE",
        "TREND_IN_RESIDUALS",
        "TIME_BUDGET",
        "INTERRUPTED",
    }


SILENT = {
    "evidence": bs.EvidenceRegressor(),
    "evidence at a width": bs.EvidenceRegressor(width=1.0),
    "rvm": bs.RVMRegressor(),
    "search": bs.BasisSearchRegressor(),
    "forward": bs.ForwardSelectionRegressor(),
    "ridge": bs.RidgeRBFRegressor(),
    "ridge at a width": bs.RidgeRBFRegressor(width=1.0),
    "process": bs.GPRegressor(),
    "mode": bs.GPRegressor("map"),
    "inducing inputs": bs.GPRegressor("map", inducing=3),
    "drawn process": bs.GPRegressor("mc", draws=4, tune=4, chains=1, cores=1, random_state=0),
    "drawn networks": bs.MLPRegressor(
        "mc", hidden=1, draws=4, tune=4, updates_per_draw=1, chains=1, cores=1, random_state=0
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_inputs_none_of_which_varies_are_said_to_carry_nothing(rng, name):
    X, y = np.ones((40, 2)), rng.normal(size=40)
    with pytest.warns(NumericalWarning, match="PURE_NOISE: the inputs carry nothing: none of them varies"):
        model = SILENT[name].fit(X, y)
    assert model.status_ is bs.Status.PURE_NOISE
    errors = 4.0 if name.startswith("drawn") else 1.0  # a draw of the mean is off by a standard error
    assert abs(model.predict(X)[0] - y.mean()) < errors * y.std(ddof=1) / np.sqrt(len(y))


def test_no_remark_hides_a_status_that_warns():
    remarks = [s for s in bs.Status if not s.distrusted and s not in (bs.Status.TIME_BUDGET, bs.Status.INTERRUPTED)]
    assert max(s.severity for s in remarks) < min(s.severity for s in bs.Status if s.distrusted)


@pytest.mark.parametrize("status", list(bs.Status), ids=lambda status: status.name)
def test_an_estimator_warns_of_distrusted_statuses_alone(status):
    model = bs.EvidenceRegressor()
    model.status_ = status
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model._warn()
    assert len(caught) == int(status.distrusted)
    assert all(status.value in str(one.message) for one in caught)


@pytest.mark.parametrize("seed", range(4))
def test_a_process_fitted_to_noise_says_so(seed):
    r = np.random.default_rng(seed)
    X, y = r.normal(size=(40, 5)), r.normal(size=40)
    with pytest.warns(NumericalWarning, match="NO_BETTER_THAN_CONSTANT"):
        model = bs.GPRegressor().fit(X, y)
    assert Status.NO_BETTER_THAN_CONSTANT in model.notes_


def test_a_process_fitted_to_a_signal_is_not_accused(rng):
    X = rng.normal(size=(60, 2))
    model = bs.GPRegressor().fit(X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=60))
    assert Status.NO_BETTER_THAN_CONSTANT not in model.notes_
