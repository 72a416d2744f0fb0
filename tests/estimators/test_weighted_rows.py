"""`sample_weight` and `noise_std` of the estimators: repeated rows, coverage where noise levels are known, bad input.

Guards `bayessel.estimators.weighted_rows`, `bayessel.estimators.held_out`.
"""

import pickle

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel._row_weights import RowWeights, without_copies
from bayessel.baselines import LinearBaseline
from bayessel.basis import RBFDictionary
from bayessel.estimators.found_width import robust_spread
from bayessel.estimators.held_out import gains_over_constant, mean_gain, stacking_weights, unsure
from bayessel.linear.integrated import fit_integrated
from bayessel.prediction import Prediction

#: columns that do not depend on the rows
FIXED = RBFDictionary([[-2.0], [-1.0], [0.0], [1.0], [2.0]], 1.0)
ALL = (
    bs.EvidenceRegressor,
    bs.RidgeRBFRegressor,
    bs.RVMRegressor,
    bs.BasisSearchRegressor,
    bs.ForwardSelectionRegressor,
)
pytestmark = pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")


def two_instruments(rng, n=60):
    """Inputs, targets and noise levels: of the rows half are read from a much worse instrument."""
    X = rng.uniform(-2, 2, size=(n, 1))
    s = np.where(rng.uniform(size=n) < 0.5, 0.05, 0.8)
    return X, np.sin(2 * X[:, 0]) + s * rng.normal(size=n), s


def close(one, other, X, tol=1e-6):
    for a, b in zip(one.predict(X, return_std=True), other.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize("make", [*ALL[:2], *(pytest.param(one, marks=pytest.mark.slow) for one in ALL[2:])])
def test_scikit_learns_checks_of_weights(make):
    checks = [(e, c) for e, c in estimator_checks_generator(make()) if "sample_weight" in c.func.__name__]
    assert len(checks) == 7
    for estimator, check in checks:
        check(estimator)


@pytest.mark.parametrize(
    "model",
    [
        bs.EvidenceRegressor(),
        bs.EvidenceRegressor(bias=False, kind="multiquadric"),
        bs.EvidenceRegressor(inference="type2"),
        bs.EvidenceRegressor(width=0.8),
        bs.EvidenceRegressor(width="fit", centers=[[-1.0], [0.0], [1.0]]),
        bs.RidgeRBFRegressor(centers=[[-1.0], [0.0], [1.0]]),
        bs.RidgeRBFRegressor(width=0.8),
        bs.RidgeRBFRegressor(penalty="local", centers=[[-1.0], [0.0], [1.0]]),
        bs.EvidenceRegressor(dictionary=FIXED),
        bs.EvidenceRegressor(dictionary=FIXED, inference="type2"),
        bs.RVMRegressor(dictionary=FIXED),
        bs.RVMRegressor(centers=[[-1.0], [0.0], [1.0]]),
        bs.RVMRegressor(width=0.8),
        bs.RVMRegressor(inference="type2"),
        bs.BasisSearchRegressor(centers=[[-1.0], [0.0], [1.0]]),
        bs.BasisSearchRegressor(width=0.8),
        bs.BasisSearchRegressor(dictionary=FIXED),
        bs.ForwardSelectionRegressor(),
        bs.ForwardSelectionRegressor(width=0.8),
        bs.ForwardSelectionRegressor(width=0.8, method="rfs", stop="evidence", bias=False),
        bs.ForwardSelectionRegressor(dictionary=FIXED, inference="type2"),
    ],
    ids=str,
)
def test_a_weight_is_a_repeated_row(rng, model):
    X, y, s = two_instruments(rng, 24)
    y = y + 0.2 * rng.normal(size=24)
    w = rng.integers(0, 3, size=24)
    one = clone(model).fit(X, y, sample_weight=w, noise_std=s)
    other = clone(model).fit(*(np.repeat(a, w, axis=0) for a in (X, y)), noise_std=np.repeat(s, w))
    close(one, other, np.linspace(-3, 3, 20)[:, None], 1e-4)
    np.testing.assert_allclose(one.noise_std_, other.noise_std_, rtol=1e-4)
    np.testing.assert_allclose(one.log_evidence_, other.log_evidence_, rtol=1e-4, atol=1e-3)
    assert one.n_rows_ == (w > 0).sum()


@pytest.mark.parametrize("make", [*ALL[:2], *(pytest.param(one, marks=pytest.mark.slow) for one in ALL[2:])])
def test_noise_levels_cover_at_good_rows_and_bad_ones(make):
    """Coverage is nominal at good and at bad rows where the levels are known, and at neither where they are not."""
    rng = np.random.default_rng(5)
    inside = {name: {0.05: [], 0.8: []} for name in ("known", "ignored")}
    for _ in range(3):
        X, y, s = two_instruments(rng, 100)
        new, there, levels = two_instruments(rng, 400)
        known, ignored = make().fit(X, y, noise_std=7.0 * s), make().fit(X, y)
        mean, std = known.predict(new, return_std=True, noise_std=7.0 * levels)
        plain, wide = ignored.predict(new, return_std=True)
        for level in (0.05, 0.8):
            at = levels == level
            inside["known"][level].append((np.abs(there - mean) < norm.ppf(0.95) * std)[at].mean())
            inside["ignored"][level].append((np.abs(there - plain) < norm.ppf(0.95) * wide)[at].mean())
        assert np.sqrt(np.mean((mean - np.sin(2 * new[:, 0])) ** 2)) < np.sqrt(
            np.mean((plain - np.sin(2 * new[:, 0])) ** 2)
        )
    for level in (0.05, 0.8):
        # 600 rows of each level; the error of a fit is common to its rows
        assert abs(np.mean(inside["known"][level]) - 0.9) < 0.07
    assert np.mean(inside["ignored"][0.05]) > 0.985 and np.mean(inside["ignored"][0.8]) < 0.86


@pytest.mark.parametrize("make", ALL)
def test_densities_and_deviations_follow_the_levels_of_new_rows(rng, make):
    X, y, s = two_instruments(rng)
    model = make(width=1.0).fit(X, y, noise_std=s)
    mean, std = model.predict(X, return_std=True, noise_std=s)
    _, typical = model.predict(X, return_std=True)
    unit = np.exp(np.log(s).mean())
    np.testing.assert_allclose(
        std**2 - typical**2, model.noise_std_**2 * ((s / unit) ** 2 - 1.0), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(model.log_predictive_density(X, y, noise_std=s), norm(mean, std).logpdf(y), rtol=1e-9)
    np.testing.assert_allclose(model.predict(X, return_std=True, noise_std=float(unit))[1], typical, rtol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X, return_std=True, noise_std=s)[1], std)


def test_integrated_densities_of_new_rows_are_mixtures(rng):
    X, y, s = two_instruments(rng)
    model = bs.EvidenceRegressor().fit(X, y, noise_std=s)
    there = model.fit_.predict(X)
    ratio = s / np.exp(np.log(s).mean())
    noise = 1.0 / model.fit_.cells.beta[:, None]
    variances = there.function_variances + noise * ratio**2
    expected = Prediction(there.means, variances, there.log_weights).log_density(y)
    np.testing.assert_allclose(model.log_predictive_density(X, y, noise_std=s), expected, rtol=1e-8)


def test_gains_and_stacking_count_rows(rng):
    t, w = rng.normal(size=12), rng.integers(1, 4, size=12)
    fold = np.arange(12) % 3
    weights = RowWeights.of(12, None, w)

    def constant(k, train, seen):
        n = int((~train).sum()) if len(seen) < 13 else int(np.repeat(~train, 1).sum())
        return Prediction.normal(np.zeros(n), np.ones(n), np.full(n, 0.1))

    some = gains_over_constant(t[:, None], fold, constant, weights)
    many = gains_over_constant(np.repeat(t, w)[:, None], np.repeat(fold, w), constant)
    np.testing.assert_allclose(np.repeat(some, w), many, rtol=1e-10)
    np.testing.assert_allclose(mean_gain(some, weights), mean_gain(many), rtol=1e-10)
    assert unsure(some, weights) == unsure(many)
    densities = rng.normal(size=(3, 12))
    np.testing.assert_allclose(
        stacking_weights(densities, of_rows=weights), stacking_weights(np.repeat(densities, w, axis=1)), rtol=1e-9
    )
    X = np.column_stack([rng.normal(size=12), rng.integers(0, 2, size=12), np.where(np.arange(12) < 3, t, 0.0)])
    np.testing.assert_allclose(robust_spread(X, weights), robust_spread(np.repeat(X, w, axis=0)), rtol=1e-12)


def test_copies_are_counted(rng):
    X, t = rng.integers(0, 2, size=(20, 2)).astype(float), rng.integers(0, 2, size=20).astype(float)
    rows, targets, weights = without_copies(X, t, None)
    assert weights is not None and len(rows) <= 8
    back = np.column_stack(
        [np.repeat(rows, weights.count.astype(int), axis=0), np.repeat(targets, weights.count.astype(int))]
    )
    np.testing.assert_array_equal(np.sort(np.column_stack([X, t]).view("f8,f8,f8"), axis=0).view(float),
                                  np.sort(back.view("f8,f8,f8"), axis=0).view(float))  # fmt: skip
    assert without_copies(rows, targets, weights)[2] is weights


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(
    "given, kind, said",
    [
        ({"sample_weight": np.ones(5)}, ValueError, "one per row"),
        ({"sample_weight": -np.ones(20)}, ValueError, "non-negative"),
        ({"sample_weight": np.zeros(20)}, ValueError, "zero for all rows"),
        ({"sample_weight": np.full(20, 0.01)}, ValueError, "noise_std = weights"),
        ({"sample_weight": np.full(20, np.nan)}, ValueError, "sample_weight"),
        ({"noise_std": np.zeros(20)}, ValueError, "no row is free of noise"),
        ({"noise_std": np.geomspace(1, 1e12, 20)}, ValueError, "within a factor"),
        ({"noise_std": 1.0}, TypeError, "one per row"),
    ],
)
def test_bad_weights_are_refused(rng, make, given, kind, said):
    X, y, _ = two_instruments(rng, 20)
    with pytest.raises(kind, match=said):
        make().fit(X, y, **given)


def test_what_knows_no_weights_says_so(rng):
    X, y, s = two_instruments(rng, 30)
    model = bs.EvidenceRegressor(width=1.0).fit(X, y, noise_std=s)
    for refused in (
        model.to_pymc,
        lambda: model.partial_fit(X, y),
        lambda: model.forget(X[:1], y[:1]),
        model.reestimate,
    ):
        with pytest.raises(ValueError, match="rows that are all alike"):
            refused()
    with pytest.raises(ValueError, match="rows that are all alike"):
        bs.RVMRegressor(width=1.0, augment=True).fit(X, y, noise_std=s)
    with pytest.raises(ValueError, match="pass noise_std to fit too"):
        bs.EvidenceRegressor(width=1.0).fit(X, y).predict(X, return_std=True, noise_std=s)
    with pytest.raises(ValueError, match="noise_std"):
        model.predict(X, return_std=True, noise_std=s[:3])


def test_several_targets_share_the_weights(rng):
    X, y, s = two_instruments(rng, 30)
    both = bs.EvidenceRegressor(width=1.0).fit(X, np.column_stack([y, 2.0 * y + X[:, 0]]), noise_std=s)
    one = bs.EvidenceRegressor(width=1.0).fit(X, y, noise_std=s)
    mean, std = both.predict(X, return_std=True, noise_std=s)
    np.testing.assert_allclose(mean[:, 0], one.predict(X), rtol=1e-8)
    np.testing.assert_allclose(std[:, 0], one.predict(X, return_std=True, noise_std=s)[1], rtol=1e-8)


@pytest.mark.parametrize(
    "make",
    [
        bs.GPRegressor,
        bs.MLPRegressor,
        bs.MLPClassifier,
        bs.LOOMIClassifier,
        bs.EvidenceClassifier,
        bs.RVMClassifier,
        bs.average,
    ],
)
def test_estimators_without_weights_name_those_with(make):
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1])
    with pytest.raises(TypeError, match="BasisSearchRegressor and ForwardSelectionRegressor do"):
        make().fit(X, y, sample_weight=np.ones(6))
    with pytest.raises(TypeError, match="takes no noise_std"):
        make().fit(X, y, noise_std=np.ones(6))


def test_averages_refuse_members_that_know_weights(rng):
    X, y, s = two_instruments(rng, 30)
    plain = bs.EvidenceRegressor(width=1.0).fit(X, y)
    for known in (
        bs.EvidenceRegressor(width=1.0).fit(X, y, noise_std=s),
        bs.RVMRegressor(width=1.0).fit(X, y, sample_weight=2 * np.ones(30)),
        bs.gp.fit_map(X, y, noise_std=s),
        fit_integrated(X, y, spread=[1.0], noise_std=s),
    ):
        with pytest.raises(ValueError, match="weighs all rows alike"):
            bs.average({"plain": plain, "known": known})


def test_new_rows_of_others_have_no_levels(rng):
    X, y, s = two_instruments(rng, 30)
    with pytest.raises(TypeError, match="takes no noise_std"):
        LinearBaseline().fit(X, y).log_predictive_density(X, y, noise_std=s)


def test_one_row_that_outweighs_all_others_is_named(rng):
    X, y, weights = rng.normal(size=(60, 2)), rng.normal(size=60), np.ones(60)
    weights[7] = 2000.0
    for make in (bs.EvidenceRegressor, bs.RVMRegressor, bs.RidgeRBFRegressor):
        with pytest.raises(ValueError, match=r"largest is 2e\+03 of 2.06e\+03, and all other rows together count 1.7 "):
            make().fit(X, y, sample_weight=weights)
