"""Linear baseline and nearest neighbours: against slow twins, and with scikit-learn's protocol.

Guards `bayessel.baselines.linear`, `bayessel.baselines.knn`, `bayessel.baselines.engines.linear_fit`,
`bayessel.baselines.engines.neighbours`, `bayessel.baselines.engines.neighbours_compiled`.
"""

import pickle

import numpy as np
import pytest
import scipy.stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.baselines.engines import neighbours
from bayessel.baselines.engines.linear_fit import fit_linear_baseline
from bayessel.baselines.engines.neighbours import fit_neighbours
from bayessel.errors import NumericalWarning
from tests.oracles import baselines as twins

Lin, KNN = bs.baselines.LinearBaseline, bs.baselines.KNNRegressorCV
BOTH = pytest.mark.parametrize("make", [Lin, KNN])


def wave(rng, n=40, d=2, noise=0.2):
    X = rng.normal(size=(n, d))
    return X, 3.0 + np.sin(2 * X[:, 0]) + noise * rng.normal(size=n)


# --- lin-1 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "copied", "nearly copied", "wide"])
def test_the_linear_baseline_equals_its_twin(rng, kind):
    X, y = wave(rng, n=30, d=4)
    new = rng.normal(size=(7, 4))
    if kind == "copied":
        X[:, 3], new[:, 3] = X[:, 2], new[:, 2]
    if kind == "nearly copied":
        X[:, 3] = X[:, 2] + 1e-5 * rng.normal(size=30)
    if kind == "wide":
        X, new = X[:, :1] * [1, 2, 3, 4], new[:, :1] * [1, 2, 3, 4]
    mean, variance = twins.linear(X, y, new)
    model = Lin(standardise=False).fit(X, y)
    m, s = model.predict(new, return_std=True)
    np.testing.assert_allclose(m, mean, rtol=1e-8)
    np.testing.assert_allclose(s**2, variance, rtol=1e-8)
    assert model.rank_ == {"plain": 5, "copied": 4, "nearly copied": 4, "wide": 2}[kind]
    assert (model.status_ is bs.Status.COLLINEAR_SKIPPED) == (kind != "plain")


def test_the_variance_of_the_linear_baseline_scales_with_the_target(rng):
    # as printed, eq. (3.9) adds a number without units to a squared target
    X, y = wave(rng)
    one, many = Lin().fit(X, y), Lin().fit(X, 1000.0 * y)
    np.testing.assert_allclose(many.predict(X, True)[1], 1000.0 * one.predict(X, True)[1], rtol=1e-9)


def test_error_bars_of_the_linear_baseline_cover_as_they_say(rng):
    # (y - mean)/std has the t distribution: the one with n - 4 degrees of freedom
    inside, n, trials = 0.0, 60, 200
    for _ in range(trials):
        X = rng.normal(size=(n + 1, 3))
        y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=n + 1)
        mean, std = Lin().fit(X[:n], y[:n]).predict(X[n:], return_std=True)
        inside += float(abs(y[n] - mean[0]) < std[0])
    expected = scipy.stats.t(n - 4).cdf(1.0) * 2 - 1
    assert abs(inside / trials - expected) < 4 * np.sqrt(expected * (1 - expected) / trials)


def test_weights_are_in_the_units_of_the_data(rng):
    X, y = wave(rng)
    X = X * [100.0, 0.01] + [5.0, -3.0]
    reference = LinearRegression().fit(X, y)
    model = Lin().fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-9)
    two = Lin().fit(X, np.c_[y, -y])
    np.testing.assert_allclose(two.coef_, [model.coef_, -model.coef_], rtol=1e-9)
    np.testing.assert_allclose(two.predict(X)[:, 1], -model.predict(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:TOO_FEW_ROWS:bayessel.errors.NumericalWarning")
def test_few_rows_leave_the_noise_to_the_targets(rng):
    X, y = wave(rng, n=4, d=6)
    model = Lin().fit(X, y)
    assert model.status_ is bs.Status.TOO_FEW_ROWS
    np.testing.assert_allclose(model.noise_std_, y.std())
    assert np.isfinite(model.log_predictive_density(X, y)).all()
    with pytest.warns(NumericalWarning, match="NOISE_AT_FLOOR"):
        Lin().fit(X := rng.normal(size=(20, 2)), X @ [1.0, 2.0])


# --- knn-cv-1 ----------------------------------------------------------------------------------------------------


def tied(rng, n=24):
    """Inputs on a coarse grid, so that most distances are shared, and some rows twice."""
    X = rng.integers(0, 3, size=(n, 2)).astype(float)
    return X, rng.normal(size=n).round(1)


PROBLEMS = {"smooth": wave, "tied": tied}


@pytest.mark.parametrize("name", PROBLEMS)
def test_leave_one_out_equals_its_twin(rng, name):
    X, y = PROBLEMS[name](rng)
    expected = twins.leave_one_out(X, y)
    fit = fit_neighbours(X, y[:, None])
    np.testing.assert_allclose(fit.loo, expected, rtol=1e-9, atol=1e-12)
    assert fit.first_variance[0] == pytest.approx(twins.first_neighbour_variance(X, y), rel=1e-12)
    for column, loss in enumerate(("squared", "absolute", "log")):
        assert expected[fit.k[loss] - 1, column] == pytest.approx(expected[:, column].min(), rel=1e-12)


def test_ties_are_those_within_the_tolerance(rng):
    X, y = tied(rng)
    expected = twins.leave_one_out(X, y)
    jitter = rng.normal(size=X.shape)
    np.testing.assert_allclose(fit_neighbours(X + 1e-8 * jitter, y[:, None]).loo, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(fit_neighbours(X + 1e-3 * jitter, y[:, None]).loo - expected).max() > 1e-3


@pytest.mark.parametrize("name", PROBLEMS)
def test_predictions_equal_their_twin(rng, name):
    X, y = PROBLEMS[name](rng)
    new = np.vstack([X[:5], PROBLEMS[name](rng)[0][:5]])
    model = KNN(standardise=False).fit(X, y)
    first = twins.first_neighbour_variance(X, y)
    k = model.k_
    expected = [
        (
            twins.neighbour_predictions(X, y, x, k["squared"], first)[0],
            twins.neighbour_predictions(X, y, x, k["absolute"], first)[1],
            *twins.neighbour_predictions(X, y, x, k["log"], first)[::2],
        )
        for x in new
    ]
    mean, median, log_mean, variance = np.array(expected).T
    m, s = model.predict(new, return_std=True)
    np.testing.assert_allclose(m, mean, rtol=1e-10)
    np.testing.assert_allclose(s**2, variance, rtol=1e-10)
    np.testing.assert_allclose(model.predict_median(new), median, rtol=1e-10)
    np.testing.assert_allclose(KNN("absolute", False).fit(X, y).predict(new), median, rtol=1e-10)
    np.testing.assert_allclose(KNN("log", False).fit(X, y).predict(new), log_mean, rtol=1e-10)
    density = scipy.stats.norm(log_mean, np.sqrt(variance)).logpdf(0.3)
    np.testing.assert_allclose(model.log_predictive_density(new, np.full(10, 0.3)), density, rtol=1e-9)


def test_every_size_of_block_gives_the_same(rng, monkeypatch):
    X, y = wave(rng, n=60)
    whole = fit_neighbours(X, y[:, None])
    monkeypatch.setattr(neighbours, "BLOCK", 130)
    pieces = fit_neighbours(X, y[:, None])
    np.testing.assert_allclose(pieces.loo, whole.loo, rtol=1e-12)
    np.testing.assert_array_equal(pieces.mean(X), whole.mean(X))


def test_several_outputs_share_the_sum_of_their_losses(rng):
    X, y = wave(rng)
    Y = np.c_[y, rng.normal(size=40)]
    both = fit_neighbours(X, Y)
    np.testing.assert_allclose(both.loo, fit_neighbours(X, Y[:, :1]).loo + fit_neighbours(X, Y[:, 1:]).loo, rtol=1e-12)
    model = KNN().fit(X, Y)
    assert model.predict(X).shape == model.log_predictive_density(X, Y).shape == (40, 2)


def test_units_do_not_matter(rng):
    X, y = wave(rng)
    one, other = KNN().fit(X, y), KNN().fit(X * [1e3, 1e-3] + 7.0, 5.0 - 1e6 * y)
    assert one.k_ == other.k_
    np.testing.assert_allclose(other.predict(X * [1e3, 1e-3] + 7.0), 5.0 - 1e6 * one.predict(X), rtol=1e-9)


def test_an_interruption_leaves_what_there_is(rng, monkeypatch):
    X, y = wave(rng, n=60)

    def stop(seen, of):
        if seen > 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(neighbours, "BLOCK", 600)
    fit = fit_neighbours(X, y[:, None], step=stop)
    assert fit.status is bs.Status.INTERRUPTED
    assert np.isfinite(fit.loo).all()
    assert fit.mean(X).shape == (60, 1)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.filterwarnings("ignore:TOO_FEW_ROWS:bayessel.errors.NumericalWarning")
def test_one_and_two_rows_are_answered(rng, n):
    X, y = wave(rng, n=n)
    model = KNN().fit(X, y)
    assert model.status_ is bs.Status.TOO_FEW_ROWS
    assert np.isfinite(model.predict(X, return_std=True)).all()


@pytest.mark.filterwarnings("ignore:CONSTANT_TARGET:bayessel.errors.NumericalWarning")
def test_a_constant_target_is_said(rng):
    X = rng.normal(size=(20, 2))
    for make in (Lin, KNN):
        model = make().fit(X, np.full(20, 3.0))
        assert model.status_ is bs.Status.CONSTANT_TARGET
        np.testing.assert_allclose(model.predict(X), 3.0)
        assert (model.predict(X, return_std=True)[1] > 0.0).all()


def test_from_far_away_all_rows_are_equally_near(rng):
    """Squared distances to such rows leave double precision; until then the nearest by direction counts."""
    X, y = wave(rng)
    model = KNN().fit(X, y)
    mean, std = model.predict([[1e300, 0.0], [0.0, -1e250]], return_std=True)
    np.testing.assert_allclose(mean, y.mean())
    assert np.isfinite(std).all()


def test_copied_rows_do_not_make_an_infinite_density(rng):
    X, y = wave(rng, n=20)
    with pytest.warns(NumericalWarning, match="NOISE_AT_FLOOR"):
        model = KNN().fit(np.r_[X, X], np.r_[y, y])
    assert np.isfinite(model.log_predictive_density(X, y)).all()


# --- both --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@BOTH
def test_every_check_of_scikit_learn_passes(make):
    left = {}
    for candidate, check in estimator_checks_generator(make()):
        try:
            check(candidate)
        except BaseException as error:
            if "SCIPY_ARRAY_API is not set" not in str(error):
                left[check.func.__name__] = repr(error)
    assert left == {}


@BOTH
def test_pickles_and_clones_predict_the_same(rng, make):
    X, y = wave(rng)
    model = make().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X, True), model.predict(X, True))
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), model.predict(X))


BAD = {
    "standardise": (lambda X, y: Lin(standardise="no").fit(X, y), TypeError, "standardise must be True or False"),
    "loss": (lambda X, y: KNN(loss="hinge").fit(X, y), ValueError, "loss must be one of 'squared', 'absolute', 'log'"),
    "tolerance": (lambda X, y: KNN(tolerance=0.0).fit(X, y), ValueError, "tolerance must be positive"),
    "progressbar": (lambda X, y: KNN(progressbar=1).fit(X, y), TypeError, "progressbar must be True or False"),
    "return_std": (lambda X, y: Lin().fit(X, y).predict(X, "no"), TypeError, "return_std must be True or False"),
    "columns": (lambda X, y: KNN().fit(X, y).predict(X[:, :1]), ValueError, "expecting 2 features"),
    "text": (lambda X, y: Lin().fit([["a"], ["b"]], y[:2]), ValueError, "must be numeric"),
    "NaN": (lambda X, y: KNN().fit(np.where(X > 2, np.nan, X) * np.nan, y), ValueError, "NaN"),
    "huge X": (lambda X, y: Lin(standardise=False).fit(1e200 * X, y), ValueError, "X has values of size .*rescale"),
    "huge X, knn": (
        lambda X, y: KNN(standardise=False).fit(1e200 * X, y),
        ValueError,
        "X has values of size .*rescale",
    ),
    "huge": (lambda X, y: Lin().fit(X, 1e150 * y), ValueError, "leave double precision; rescale"),
    "shape": (
        lambda X, y: KNN().fit(X, y).log_predictive_density(X, np.c_[y, y]),
        ValueError,
        "y must have the shape of the training target",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_at_the_door(rng, name):
    call, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        call(*wave(rng))


def test_the_engine_takes_arrays(rng):
    X, y = wave(rng)
    fit = fit_linear_baseline(X, y[:, None])
    assert fit.predict(X).shape == fit.variance(X).shape == (40, 1)
