"""Records listed several times: the fit is that of the different rows, and rows that agree by themselves stay.

Guards `bayessel.estimators.listed_records`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights
from bayessel.estimators.listed_records import FEW_COPIES, records

pytestmark = pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
SIX = (
    bs.EvidenceRegressor(),
    bs.RidgeRBFRegressor(),
    bs.RVMRegressor(),
    bs.BasisSearchRegressor(),
    bs.ForwardSelectionRegressor(),
    bs.GPRegressor(random_state=0),
)
WEIGHTED = SIX[:5]


def table(rng, n=40, D=2):
    X = rng.normal(size=(n, D))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("model", SIX, ids=lambda model: type(model).__name__)
def test_copies_of_all_rows_change_nothing(rng, model):
    X, y = table(rng)
    order = rng.permutation(3 * len(X))  # in any order, the first of each as in the table
    order = np.concatenate([np.arange(len(X)), len(X) + np.argsort(order[: 2 * len(X)])])
    plain, listed = model.fit(X, y), None
    expected, left_out = plain.predict(X[:9] + 0.1, return_std=True), plain.leave_one_out()
    noise, status, name = plain.noise_std_, plain.status_, plain.fingerprint_
    listed = model.fit(np.tile(X, (3, 1))[order], np.tile(y, 3)[order])
    for one, other in zip(listed.predict(X[:9] + 0.1, return_std=True), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert listed.noise_std_ == pytest.approx(noise, rel=1e-12)
    assert bs.Status.COPIES_COUNT_ONCE in listed.notes_
    assert status is not bs.Status.CONVERGED or listed.status_ is bs.Status.COPIES_COUNT_ONCE
    assert "listed several times" in listed.describe()
    assert listed.fingerprint_ == fingerprint(np.tile(X, (3, 1))[order], np.tile(y, 3)[order]) != name
    rows = listed.leave_one_out()  # of every row given, with all its copies
    for part in ("errors", "variances", "log_densities", "pit"):
        np.testing.assert_allclose(getattr(rows, part), np.tile(getattr(left_out, part), 3)[order], rtol=1e-9)


@pytest.mark.parametrize("model", WEIGHTED, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("k", [2.0, 2.5, 1000.0])
def test_weights_of_all_rows_change_nothing(rng, model, k):
    X, y = table(rng)
    expected = model.fit(X, y).predict(X[:9] + 0.1, return_std=True)
    listed = model.fit(X, y, sample_weight=np.full(len(X), k))
    for one, other in zip(listed.predict(X[:9] + 0.1, return_std=True), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    with pytest.raises(ValueError, match="alike"):
        bs.EvidenceRegressor().fit(X, y, sample_weight=np.full(len(X), k)).partial_fit(X, y)


def test_uneven_copies_keep_the_noise():
    """Bootstrap samples: without the rule the noise goes to zero, or the constant takes over."""
    rng = np.random.default_rng(4)
    X, y = table(rng, 120)
    new = rng.normal(size=(400, 2))
    target = np.sin(2 * new[:, 0]) + 0.3 * rng.normal(size=400)
    for size in (120, 360):
        drawn = rng.integers(0, 120, size)
        model = bs.EvidenceRegressor().fit(X[drawn], y[drawn])
        mean, std = model.predict(new, return_std=True)
        assert 0.2 < model.noise_std_ < 0.45  # of some 80 to 115 records: four standard errors are 0.1
        assert np.sqrt(np.mean((mean - target) ** 2)) < 0.6
        # errors of a mean that is common to rows, beside the noise of 400
        assert 0.8 < np.mean(np.abs(target - mean) < 1.645 * std) < 0.97
        again = bs.EvidenceRegressor().fit(X, y, sample_weight=np.bincount(drawn, minlength=120))
        np.testing.assert_allclose(again.predict(new), mean, atol=1e-5)


def test_rows_that_come_and_go(rng):
    """Rows added later are records that may be listed as well; all rows given can be taken away again."""
    X, y = table(rng, 30)
    twice = bs.EvidenceRegressor().fit(np.tile(X[:25], (2, 1)), np.tile(y[:25], 2))
    twice.partial_fit(np.tile(X[25:], (2, 1)), np.tile(y[25:], 2))
    plain = bs.EvidenceRegressor().fit(X, y)
    np.testing.assert_allclose(twice.predict(X), plain.predict(X), rtol=1e-9)
    twice.forget(X, y)
    assert bs.Status.COPIES_COUNT_ONCE not in twice.notes_
    np.testing.assert_allclose(twice.predict(X), plain.predict(X), rtol=1e-9)


def counts(found, n):
    return np.ones(n) if found.weights is None else found.weights.count


def test_counts_keep_their_ratios_and_sum_to_the_records(rng):
    X, y = table(rng, 20)
    w = rng.integers(1, 6, size=20).astype(float)
    s = rng.uniform(0.5, 2.0, size=20)
    found = records(X, y, RowWeights.of(20, s, w))
    np.testing.assert_allclose(counts(found, 20), w * 20 / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(found.weights.noise_std, s, rtol=1e-12)
    again = np.repeat(np.arange(20), w.astype(int))
    repeated = records(X[again], y[again], RowWeights.of(len(again), s[again]))
    np.testing.assert_array_equal(repeated.X, X)
    np.testing.assert_array_equal(repeated.place, again)
    np.testing.assert_allclose(repeated.weights.count, found.weights.count, rtol=1e-12)
    # read from two instruments, a row is two records
    both = records(np.tile(X, (2, 1)), np.tile(y, 2), RowWeights.of(40, np.repeat([1.0, 2.0], 20)))
    assert both.place is None
    # a few copies, and weights that count no more than the rows, stay as they are
    few = np.r_[np.arange(20), np.zeros(int(20 * FEW_COPIES), dtype=int)]
    assert records(X[few], y[few], None).place is None
    assert records(X, y, RowWeights.of(20, None, w / w.sum() * 20)).place is None


def binary(rng):
    X = rng.integers(0, 2, size=(500, 2)).astype(float)
    return X, (rng.random(500) < 0.3 + 0.4 * X[:, 0]).astype(float)


def table_of_exclusive_or(rng):
    X = np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (rng.integers(100, 150), 1))
    return X, (X[:, 0] != X[:, 1]).astype(float)


def categories(rng):
    which = rng.integers(0, 10, size=300)
    return np.eye(10)[which], which.astype(float) ** 2


def rare_class(rng):
    X = rng.integers(0, 8, size=(640, 2)).astype(float)
    return X, (rng.permutation(640) < 4).astype(float)


def counted(rng):
    X = rng.integers(0, 10, size=(300, 1)).astype(float)
    return X, rng.poisson(1.0 + X[:, 0]).astype(float)


def observed_again(rng):
    X = np.repeat(rng.normal(size=(30, 3)), 3, axis=0)
    return X, np.round(X[:, 0] + rng.normal(size=90), 1)


LEGITIMATE = (binary, table_of_exclusive_or, categories, rare_class, counted, observed_again)


@pytest.mark.parametrize("make", LEGITIMATE)
def test_rows_that_agree_by_themselves_all_count(rng, make):
    X, y = make(rng)
    assert records(X, y, None).place is None
    # the same table as counts of cells
    rows, times = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    assert records(rows[:, :-1], rows[:, -1], RowWeights.of(len(rows), None, times)).place is None


@pytest.mark.parametrize("make", [rare_class, counted, observed_again])
def test_a_whole_table_listed_again_counts_once(rng, make):
    """Replicates stay what they are, and the copies of the table are taken away."""
    X, y = make(rng)
    found = records(np.tile(X, (3, 1)), np.tile(y, 3), None)
    rows, times = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    order = np.lexsort(np.column_stack([found.X, found.y]).T[::-1])
    least = times.min()
    if (times % least).any():
        least = 1
    np.testing.assert_array_equal(np.column_stack([found.X, found.y])[order], rows)
    np.testing.assert_allclose(counts(found, len(rows))[order], times / least, rtol=1e-12)


def test_several_targets_and_integer_targets_of_real_inputs(rng):
    X, y = table(rng, 60)
    Y = np.column_stack([np.round(y), np.round(3 * X[:, 1])])
    found = records(np.tile(X, (2, 1)), np.tile(Y, (2, 1)), None)
    np.testing.assert_array_equal(found.y, Y)
    zeros = np.zeros(60)
    zeros[0] = 1.0  # nearly all targets agree anyhow: that inputs do is what tells
    assert len(records(np.tile(X, (2, 1)), np.tile(zeros, 2), None).y) == 60
    both = bs.EvidenceRegressor().fit(np.tile(X, (2, 1)), np.tile(Y, (2, 1)))
    np.testing.assert_allclose(both.predict(X), bs.EvidenceRegressor().fit(X, Y).predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        bs.EvidenceRegressor(inference="type2"),
        bs.EvidenceRegressor(width=1.0),
        bs.RVMRegressor(width=1.0),
        bs.BasisSearchRegressor(width=1.0),
        bs.GPRegressor(inference="map", random_state=0),
    ],
    ids=str,
)
def test_fits_with_settings_of_the_user_count_every_row(rng, model):
    X, y = table(rng, 20, 1)
    fit = model.fit(np.tile(X, (2, 1)), np.tile(y, 2)).fit_
    assert fit.n_rows == 40
    assert bs.Status.COPIES_COUNT_ONCE not in fit.notes
