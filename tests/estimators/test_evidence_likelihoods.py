"""EvidenceRegressor seen through other likelihoods than even normal noise.

Guards `bayessel.estimators._latent_radial`, `bayessel.estimators.radial_latent_fit`,
`bayessel.estimators.latent_member`.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.count_prediction import CountPrediction
from bayessel.errors import NumericalWarning
from bayessel.estimators.latent_widths import compare_latent_widths
from bayessel.fit import Status
from bayessel.likelihoods import as_likelihood
from bayessel.linear.latent import fit_latent
from bayessel.prediction import Prediction

E = bs.EvidenceRegressor


def wave(rng, n=120, outliers=0.0):
    X = rng.uniform(-3.0, 3.0, size=(n, 1))
    far = np.where(rng.random(n) < outliers, 8.0 * rng.normal(size=n), 0.0)
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=n) + far


def counts(rng, n=150):
    X = rng.uniform(-2.0, 2.0, size=(n, 1))
    return X, rng.poisson(np.exp(1.0 + np.sin(2.0 * X[:, 0])))


def quietly(model, X, y, **known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        return model.fit(X, y, **known)


NEW = np.linspace(-2.5, 2.5, 60)[:, None]


def error(model):
    return float(np.sqrt(np.mean((model.predict(NEW) - np.sin(2.0 * NEW[:, 0])) ** 2)))


def test_outliers_do_not_decide(rng):
    X, y = wave(rng, outliers=0.08)
    student, normal = quietly(E(likelihood="student"), X, y), quietly(E(), X, y)
    assert error(student) < 0.08 < 0.5 * error(normal)
    assert student.leave_one_out().log_density > normal.leave_one_out().log_density + 30.0
    assert 0.8 < student.leave_one_out().coverage(0.9) < 0.98
    there = student.predictive(NEW)
    assert isinstance(there, Prediction)
    mean, std = student.predict(NEW, return_std=True)
    np.testing.assert_allclose(there.mean, mean)
    np.testing.assert_allclose(there.std, std)
    np.testing.assert_allclose(student.log_predictive_density(X, y), student.predictive(X).log_density(y))


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_counts_have_distributions_of_counts(likelihood, rng):
    X, y = counts(rng)
    model = quietly(E(likelihood=likelihood), X, y)
    inside = np.linspace(-1.8, 1.8, 30)[:, None]
    truth = np.exp(1.0 + np.sin(2.0 * inside[:, 0]))
    assert np.mean(np.abs(np.log(model.predict(inside) / truth))) < 0.15
    there = model.predictive(inside)
    assert isinstance(there, CountPrediction) and np.isnan(model.noise_std_)
    mean, std = model.predict(inside, return_std=True)
    np.testing.assert_allclose((mean, std), (there.mean, there.std))
    assert (std > np.sqrt(0.9 * mean)).all()
    left_out = model.leave_one_out()
    constant = stats.poisson(y.mean()).logpmf(y).sum()
    assert left_out.log_density > constant + 20.0
    np.testing.assert_allclose(left_out.errors.mean(), 0.0, atol=0.3)


def test_variances_of_large_counts_keep_their_digits():
    f, v = np.log(np.array([[1e15], [1.1e15]])), np.array([[1e-14], [2e-14]])
    there = CountPrediction(f, v, np.zeros(2))
    m = np.exp(f + v / 2.0)
    expected = (m + m**2 * v).mean() + m.var()  # exp(v) - 1 is v here
    np.testing.assert_allclose(there.variance, [expected], rtol=1e-9)
    one = CountPrediction(f[:1], v[:1], np.zeros(1))
    np.testing.assert_allclose(one.variance, m[0] + m[0] ** 2 * v[0], rtol=1e-9)


def test_a_given_width_is_the_engine_on_its_design(rng):
    X, y = counts(rng, 60)
    model = quietly(E(width=1.0, likelihood="poisson"), X, y)
    engine = fit_latent(bs.RBFDictionary(X, 1.0).without_bias().columns(X), y, "poisson")
    assert model.log_evidence_ == pytest.approx(engine.log_evidence, rel=1e-12)
    np.testing.assert_allclose(model.coef_, engine.coef)
    columns = bs.RBFDictionary(X, 1.0).without_bias().columns(NEW)
    np.testing.assert_allclose(model.predict(NEW), engine.predict(columns).mean)
    np.testing.assert_allclose(model.leave_one_out().log_densities, engine.leave_one_out().log_densities)


@pytest.mark.parametrize("likelihood", ["student", "poisson"])
def test_widths_are_weighed_by_evidence_and_prior(likelihood, rng):
    X, y = wave(rng, 40) if likelihood == "student" else counts(rng, 40)
    model = quietly(E(likelihood=likelihood), X, y)
    inner = model.fit_.inner
    values = np.array([one.fits[0].log_evidence + one.log_prior for one in inner.members])
    np.testing.assert_allclose([one.log_weight for one in inner.members], values - logsumexp(values))
    # rows left out: a mixture whose shares are those without the row
    densities = np.array([one.fits[0].leave_one_out().log_densities for one in inner.members])
    expected = -logsumexp((values - logsumexp(values))[:, None] - densities, axis=0)
    np.testing.assert_allclose(inner.leave_one_out().log_densities, expected)
    left_out = inner.leave_one_out()
    if likelihood == "student":
        np.testing.assert_allclose(left_out.prediction.log_density(left_out.target), expected, rtol=1e-6, atol=1e-8)
    single = quietly(E(likelihood=likelihood, inference="type2"), X, y)
    assert len(single.fit_.inner.members) == 1
    assert single.width_ == pytest.approx(model.found_width_.best * model.found_width_.spread)


def test_units_of_the_target_shift_the_evidence_alone(rng):
    X, y = wave(rng, 50, outliers=0.05)
    one, other = quietly(E(likelihood="student"), X, y), quietly(E(likelihood="student"), X, 1e3 * y + 5e4)
    np.testing.assert_allclose(other.predict(NEW), 1e3 * one.predict(NEW) + 5e4, rtol=1e-6)
    assert other.log_evidence_ == pytest.approx(one.log_evidence_ - 50 * np.log(1e3), abs=1e-4)
    assert other.noise_std_ == pytest.approx(1e3 * one.noise_std_, rel=1e-6)
    np.testing.assert_allclose(other.coef_, 1e3 * one.coef_, rtol=1e-4, atol=1e-3)
    assert other.alpha_ == pytest.approx(1e-6 * one.alpha_, rel=1e-5)
    left_out = [each.leave_one_out().log_density for each in (one, other)]
    assert left_out[1] == pytest.approx(left_out[0] - 50 * np.log(1e3), abs=1e-3)


@pytest.mark.parametrize("likelihood", ["student", "poisson"])
def test_a_weight_of_two_is_a_row_that_came_twice(likelihood, rng):
    X, y = counts(rng, 40) if likelihood == "poisson" else wave(rng, 40, outliers=0.05)
    y = (
        y if likelihood == "poisson" else 100.0 * y + 7.0
    )  # in units of their own, in which each counted row has a density
    weights = rng.integers(0, 3, 40)
    again = np.repeat(np.arange(40), weights)
    model = E(width=0.8, centers=np.linspace(-2.0, 2.0, 9)[:, None], likelihood=likelihood)
    weighed = quietly(clone(model), X, y, sample_weight=weights)
    twice = quietly(clone(model), X[again], y[again])
    np.testing.assert_allclose(weighed.predict(NEW), twice.predict(NEW), rtol=1e-5)
    assert weighed.log_evidence_ == pytest.approx(twice.log_evidence_, abs=1e-4)


def test_rows_that_come_and_go_are_fitted_anew(rng):
    X, y = counts(rng, 50)
    whole = quietly(E(likelihood="poisson"), X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        grown = E(likelihood="poisson").fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
        np.testing.assert_allclose(grown.predict(NEW), whole.predict(NEW), rtol=1e-8)
        grown.forget(X[40:], y[40:]).reestimate()
        np.testing.assert_allclose(
            grown.predict(NEW), E(likelihood="poisson").fit(X[:40], y[:40]).predict(NEW), rtol=1e-8
        )


def test_several_targets_tables_pickles_and_pymc(rng):
    X, y = wave(rng, 40, outliers=0.05)
    table = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(rng.choice(["a", "b"], 40))})
    model = quietly(E(likelihood="student"), table, np.column_stack([y, -y]))
    one = quietly(E(likelihood="student"), table, y)
    np.testing.assert_allclose(model.predict(table)[:, 0], one.predict(table), rtol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(one)).predict(table), one.predict(table))
    assert clone(one).likelihood == "student" and "likelihood student" in one.describe()
    given = quietly(E(width=1.0, centers=[[-1.0], [0.0], [1.0]], likelihood="student"), X, y).to_pymc()
    assert {"nu", "w", "alpha", "noise"} <= set(given.named_vars)
    found = bs.diagnostics.compare({"student": one, "normal": quietly(E(), table, y)}, by="elpd-loo")
    assert found.index[0] == "student"


def test_columns_of_the_user(rng):
    X, y = counts(rng, 60)
    model = quietly(E(dictionary=bs.basis.PolynomialDictionary(3), likelihood="poisson"), X, y)
    assert model.width_ is None and model.n_basis_ == 3
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.5


@pytest.mark.parametrize(
    ("settings", "known", "said"),
    [
        ({"likelihood": "heteroscedastic"}, {}, "likelihood must be one of"),
        ({"likelihood": "student"}, {"noise_std": np.ones(9)}, "noise_std is of likelihood='gaussian'"),
        ({"likelihood": "student", "width": "fit"}, {}, "width='fit' works with likelihood='gaussian'"),
        ({"likelihood": "poisson"}, {}, "counts|whole|integers"),
    ],
)
def test_bad_settings_are_refused(settings, known, said, rng):
    X, y = wave(rng, 9)
    with pytest.raises(ValueError, match=said):
        quietly(E(**settings), X, y, **known)


@pytest.mark.parametrize("n", [1, 2, 5, 60])
@pytest.mark.parametrize("likelihood", ["student", "poisson", "negative-binomial"])
def test_few_rows_and_constant_targets(n, likelihood):
    X = np.random.default_rng(0).normal(size=(n, 3))
    for value in (0.0, 3.0):
        model = quietly(E(likelihood=likelihood), X, np.full(n, value))
        assert {Status.CONSTANT_TARGET, Status.TOO_FEW_ROWS} & set(model.notes_)
        mean, std = model.predict(np.zeros((1, 3)), return_std=True)
        # of few rows the mean of a rate is that of a wide prior
        assert np.isfinite([mean, std]).all() and abs(mean - value) < (10.0 if n < 5 else 0.7 * value or 1.0)


def test_many_rows_are_compared_on_some_of_them(rng):
    X, y = rng.uniform(-2.0, 2.0, size=(2400, 1)), rng.poisson(2.0, 2400).astype(float)
    settings = {"centers": np.linspace(-2.0, 2.0, 5)[:, None], "kind": "gaussian", "bias": True}
    alone = compare_latent_widths(X, y, [y], as_likelihood("poisson"), **settings)
    counted = compare_latent_widths(X, y, [y], as_likelihood("poisson"), count=np.full(2400, 2.0), **settings)
    np.testing.assert_allclose(counted.log_posterior.max(), 2.0 * alone.log_posterior.max(), rtol=0.02)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [{}, {"width": 1.0}], ids=["default", "width"])
def test_every_check_of_scikit_learn_passes(settings):
    left = {}
    for candidate, check in estimator_checks_generator(E(likelihood="student", **settings)):
        name = getattr(check, "func", check).__name__
        try:
            check(candidate)
        except Exception as failure:
            left[name] = f"{type(failure).__name__}: {failure}"[:200]
    # functions stand once at each row that is listed, and twice where a row is
    left.pop("check_sample_weight_equivalence_on_dense_data", None)
    left.pop("check_sample_weight_equivalence_on_sparse_data", None)
    assert not {name: why for name, why in left.items() if "Skip" not in why}
