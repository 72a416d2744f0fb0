"""RVMRegressor: scikit-learn's protocol, every number against an oracle, healed predictions, pickles, odd data.

Guards `bayessel.estimators.rvm`.
"""

import os
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.errors import NumericalWarning, VersionWarning
from tests.oracles import linear as oracles
from tests.paths import ROOT

V = bs.RVMRegressor
CHECKED = {
    "plain": V(),
    "augmented": V(augment=True),
    "function": V(augment="function", augment_precision="mean"),
    "no bias, cauchy": V(bias=False, kind="cauchy"),
    "multiquadric": V(kind="multiquadric", augment=True),
    "greedy": V(init="greedy"),
    "fitted width": V(width="fit"),
}


def wave(rng, n=40, noise=0.2, d=1):
    X = rng.uniform(0, 1, (n, d))
    return X, 3.0 + np.sin(6 * X[:, 0]) + noise * rng.normal(size=n)


def columns(model, X):
    """Columns in use, from the formula."""
    H = np.c_[oracles.radial(model.kind, X, model.dictionary_.centers, model.width_), np.ones(len(X))]
    return H[:, model.basis_]


#: what is added off the range takes no weights, and widths that are maximised follow copies (docs/weights.md)
NOT_REPEATED = ("augmented", "function", "multiquadric", "fitted width")


# --- scikit-learn's own checks ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n if n == "greedy" else pytest.param(n, marks=pytest.mark.slow) for n in CHECKED])
def test_every_check_of_scikit_learn_passes(name):
    left, count = {}, 0
    for candidate, check in estimator_checks_generator(CHECKED[name]):
        count += 1
        try:
            check(candidate)
        except BaseException as error:
            # the one check that needs a variable set before SciPy is imported runs in the next test
            if not str(error).startswith("SCIPY_ARRAY_API is not set"):
                left[check.func.__name__] = f"{type(error).__name__}: {error}"
    if name in NOT_REPEATED:
        left = {key: value for key, value in left.items() if "sample_weight" not in key}
    assert count > 45 and left == {}


def test_the_array_api_check_passes_where_it_can_run():
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "import bayessel as bs\n"
        "from sklearn.utils.estimator_checks import estimator_checks_generator\n"
        "pairs = list(estimator_checks_generator(bs.RVMRegressor()))\n"
        "some = [(e, c) for e, c in pairs if 'array_api' in c.func.__name__]\n"
        "assert some\n"
        "[c(e) for e, c in some]\n"
        "print(len(some), 'passed')"
    )
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout.strip().endswith("passed"), done.stderr[-800:]


@pytest.mark.parametrize("name", CHECKED)
def test_no_tag_skips_a_check(name):
    tags = CHECKED[name].__sklearn_tags__()
    assert (tags.estimator_type, tags.requires_fit, tags.no_validation) == ("regressor", True, False)
    assert (tags.non_deterministic, tags._skip_test, tags.regressor_tags.poor_score) == (False, False, False)
    assert tags.target_tags.required and tags.target_tags.single_output and tags.target_tags.multi_output
    assert tags.input_tags.two_d_array and not (tags.input_tags.sparse or tags.input_tags.allow_nan)


# --- the numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gaussian", "multiquadric", "inverse_multiquadric", "cauchy"])
@pytest.mark.parametrize("bias", [True, False])
def test_attributes_are_those_of_the_model_they_describe(rng, kind, bias):
    X, y = wave(rng, d=2)
    model = V(width=[0.4, 2.0], kind=kind, bias=bias).fit(X, y)
    Phi = columns(model, X)
    np.testing.assert_allclose(model.dictionary_.design(X)[:, model.basis_], Phi, rtol=1e-12)
    exact = oracles.exact(Phi, y, model.alpha_, model.beta_)
    assert oracles.relative(model.log_evidence_, exact.log_evidence) < 1e-8
    assert model.gamma_ == pytest.approx(float(exact.gamma), rel=1e-6)
    np.testing.assert_allclose(model.coef_, [float(w) for w in exact.mean], rtol=1e-5, atol=1e-8)
    assert model.n_basis_ == len(model.basis_) == len(model.coef_) == len(model.alpha_) < 40
    assert model.noise_std_ == pytest.approx(model.beta_**-0.5, rel=1e-12)
    assert isinstance(model.status_, bs.Status) and isinstance(model.history_, list)
    assert model.fingerprint_ == fingerprint(X, y) and model.version_ == bs.__version__
    assert np.isfinite(model.model_evidence_)


def test_prediction_is_the_dense_posterior(rng):
    X, y = wave(rng)
    model = V(width=0.3).fit(X, y)
    new = np.array([[-1.0], [0.0], [0.31], [0.9], [2.0]])
    mu, Sigma = oracles.posterior(columns(model, X), y, model.alpha_, model.beta_)
    rows = columns(model, new)
    mean, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(mean, rows @ mu, rtol=1e-7, atol=1e-9)
    expected = np.sqrt(1 / model.beta_ + np.einsum("ij,jk,ik->i", rows, Sigma, rows))
    np.testing.assert_allclose(std, expected, rtol=1e-7)
    assert np.array_equal(model.predict(new), mean)
    values = wave(rng, 5)[1]
    np.testing.assert_allclose(
        model.log_predictive_density(new, values), scipy.stats.norm.logpdf(values, mean, std), rtol=1e-7
    )


def healed_by_hand(model, X, y, new, kind, variance):
    """Dense process, or dense refits with one more column; noise included."""
    d = model.dictionary_
    Phi, rows = columns(model, X), columns(model, new)
    alpha, beta = model.alpha_, model.beta_
    if kind == "function":
        out = []
        for i in range(len(new)):
            wide = np.c_[Phi, oracles.radial(d.kind, X, new[[i]], model.width_)]
            mu, Sigma = oracles.posterior(wide, y, np.append(alpha, 1 / variance), beta)
            row = np.append(rows[i], 1.0)
            out.append((row @ mu, np.sqrt(1 / beta + row @ Sigma @ row)))
        return np.array(out).T
    bias = 0.0 if not model.bias or len(d.centers) in model.basis_ else variance + y.mean() ** 2
    K, k = (oracles.radial(d.kind, X, Z, model.width_) for Z in (X, new))
    C = np.eye(len(y)) / beta + (Phi / alpha) @ Phi.T + variance * K + bias
    across = (Phi / alpha) @ rows.T + variance * k + bias
    solved = np.linalg.solve(C, across)
    prior = (rows**2 / alpha).sum(axis=1) + variance + bias
    return solved.T @ y, np.sqrt(1 / beta + prior - (across * solved).sum(axis=0))


NEW = np.array([[-2.0], [-0.4], [0.0], [0.31], [0.9], [1.3], [8.0]])


@pytest.mark.parametrize("kind", ["gaussian", "inverse_multiquadric", "cauchy"])
@pytest.mark.parametrize("how", ["function", "process"])
@pytest.mark.parametrize("precision", [0.5, "var", "mean"])
def test_healed_prediction_is_the_dense_one(rng, kind, how, precision):
    X, y = wave(rng, 25)
    model = V(width=0.3, kind=kind, augment=how, augment_precision=precision).fit(X, y)
    kernels = model.basis_ < 25
    variance = {"var": y.var(), "mean": np.mean(1 / model.alpha_[kernels])}.get(precision, 2.0)
    expected = healed_by_hand(model, X, y, NEW, how, variance)
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(std, expected[1], rtol=1e-5)
    later = V(width=0.3, kind=kind, augment_precision=precision).fit(X, y)
    np.testing.assert_array_equal(later.predict(NEW, return_std=True, augment=how), (mean, std))
    plain = model.predict(NEW, return_std=True, augment=False)
    np.testing.assert_array_equal(plain, later.predict(NEW, return_std=True))
    values = np.linspace(0, 5, len(NEW))
    np.testing.assert_allclose(
        model.log_predictive_density(NEW, values), scipy.stats.norm.logpdf(values, mean, std), rtol=1e-9
    )


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_the_process_variance_maximises_the_evidence_of_a_process(rng, noise):
    """By a grid over the variance and the noise of a dense process with a flat bias."""
    X, y = wave(rng, 30, noise)
    model = V(width=0.3, augment=True).fit(X, y)
    far = model.predict([[1e3]], return_std=True)[1][0]
    complement = np.linalg.svd(np.ones((1, 30)))[2][1:]
    s, U = np.linalg.eigh(complement @ oracles.radial("gaussian", X, X, 0.3) @ complement.T)
    z2 = (U.T @ (complement @ y)) ** 2
    variance, noise = np.geomspace(0.02, 200, 900)[:, None, None], np.geomspace(1e-3, 0.5, 400)[:, None]
    C = variance * s.clip(0) + noise
    height = -0.5 * (np.log(C) + z2 / C).sum(axis=-1)
    best = float(variance[np.unravel_index(height.argmax(), height.shape)[0], 0, 0])
    best = max(best, y.var() - model.noise_std_**2)
    expected = healed_by_hand(model, X, y, np.array([[1e3]]), "process", best)[1][0]
    assert far == pytest.approx(expected, rel=0.01)
    assert far > 2 * model.predict([[1e3]], return_std=True, augment=False)[1][0]


def test_true_is_the_process_where_the_kernel_is_a_covariance(rng):
    X, y = wave(rng, 25)
    for kind, how in (("gaussian", "process"), ("multiquadric", "function")):
        model = V(width=0.5, kind=kind).fit(X, y)
        np.testing.assert_array_equal(
            model.predict(NEW, return_std=True, augment=True), model.predict(NEW, return_std=True, augment=how)
        )


def test_large_dictionaries_are_made_column_by_column(rng, monkeypatch):
    from bayessel.estimators import rvm

    X, y = wave(rng, 60)
    stored = V(width=0.3).fit(X, y)
    monkeypatch.setattr(rvm, "STORED", 100)
    lazy = V(width=0.3).fit(X, y)
    assert lazy.log_evidence_ == pytest.approx(stored.log_evidence_, abs=1e-6)
    np.testing.assert_allclose(lazy.predict(NEW, True), stored.predict(NEW, True), rtol=1e-4)


def test_fitted_widths_are_reported(rng):
    X, y = wave(rng, 20)
    model = V(width="fit", init="greedy").fit(X, y)
    assert np.ndim(model.width_) == 0 and model.optima_[0].log_evidence == model.log_evidence_
    assert model.log_evidence_ >= V(width=model.width_).fit(X, y).log_evidence_ - 1e-6
    assert model.log_evidence_ > V(width=2 * model.width_).fit(X, y).log_evidence_


@pytest.mark.slow
def test_one_width_per_input(rng):
    X, y = wave(rng, 60, noise=0.05, d=2)
    model = V(width="ard").fit(X, y)
    assert model.width_.shape == (2,) and model.width_[1] > 5 * model.width_[0]
    assert model.log_evidence_ > V(width="fit").fit(X, y).log_evidence_


def test_the_pymc_model_is_that_of_the_fit(rng):
    X, y = wave(rng, 15)
    fitted = V(width=0.4).fit(X, y)
    for which, M in (("used", fitted.n_basis_), ("all", 16)):
        model = fitted.to_pymc(columns=which)
        assert {v.name for v in model.free_RVs} == {"w", "alpha", "beta"} and len(model.coords["basis"]) == M
        assert np.array_equal(model["t_data"].get_value(), y)
    used = fitted.to_pymc()
    np.testing.assert_allclose(used["Phi"].get_value(), columns(fitted, X), rtol=1e-12)
    assert set(used.coords["basis"]) <= set(fitted.dictionary_.names)
    assert "tau" in {v.name for v in fitted.to_pymc(prior="horseshoe", collapsed=True).free_RVs}
    with pytest.raises(ValueError, match="columns must be one of"):
        fitted.to_pymc(columns="some")


# --- protocol --------------------------------------------------------------------------------------------------


def test_a_column_target_is_ravelled_with_a_warning(rng):
    X, y = wave(rng)
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = V().fit(X, y[:, None])
    assert np.array_equal(model.coef_, V().fit(X, y).coef_) and model.predict(X).shape == (40,)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_frames_pipelines_searches_and_clones(rng):
    X, y = wave(rng, 60, d=2)
    frame = pd.DataFrame(X, columns=["length", "height"])
    model = V().fit(frame, pd.Series(y, name="target"))
    assert model.feature_names_in_.tolist() == ["length", "height"] and model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["height", "length"]])
    search = GridSearchCV(make_pipeline(StandardScaler(), V()), {"rvmregressor__width": [1.0, 2.0]}, cv=3)
    search.fit(frame, y)
    assert search.best_estimator_.predict(frame).shape == (60,) and search.best_score_ > 0.5
    other = clone(V(width=[0.5, 2.0], kind="cauchy", bias=False, init="full", augment="function"))
    assert other.get_params()["width"] == [0.5, 2.0] and not hasattr(other, "coef_")
    assert other.get_params()["init"] == "full" and other.get_params()["augment"] == "function"


@pytest.mark.parametrize(
    "name", ["plain", "augmented", "function", pytest.param("fitted width", marks=pytest.mark.slow)]
)
def test_a_pickled_estimator_predicts_identically(rng, name, tmp_path):
    X, y = wave(rng, 25)
    model = clone(CHECKED[name]).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for back in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
            assert np.array_equal(back.predict(NEW, return_std=True), model.predict(NEW, return_std=True))
            assert np.array_equal(
                back.predict(NEW, return_std=True, augment=True), model.predict(NEW, return_std=True, augment=True)
            )
            assert back.status_ is model.status_ and back.log_evidence_ == model.log_evidence_
            assert back.fingerprint_ == model.fingerprint_ and back.version_ == bs.__version__


@pytest.mark.parametrize("make", [V, bs.EvidenceRegressor, bs.RidgeRBFRegressor])
def test_a_fit_of_another_version_is_loaded_with_a_warning(rng, make):
    X, y = wave(rng, 20)
    model = make(width=0.3).fit(X, y)
    model.version_ = "0.0.1"
    stored = pickle.dumps(model)
    with pytest.warns(VersionWarning, match=r"fitted by bayessel 0\.0\.1"):
        back = pickle.loads(stored)
    assert np.array_equal(back.predict(X), model.predict(X))
    pickle.loads(pickle.dumps(make()))  # an estimator without a fit has no version to compare


def test_a_pickle_is_of_the_size_of_the_data(rng):
    X, y = wave(rng, 1500)
    model = V(width=0.3, centers=np.linspace(0, 1, 30)[:, None]).fit(X, y)
    assert len(pickle.dumps(model)) < 8 * 1500 * (4 * model.n_basis_ + 20)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"width": 0.0}, ValueError, "width must be positive"),
        ({"width": [1.0, 2.0]}, ValueError, "width must be one number or 1 numbers"),
        ({"width": "auto"}, ValueError, "width must be one of 'fit', 'ard'"),
        ({"width": {}}, TypeError, "width must be numeric, got dict"),
        ({"kind": "sinc"}, ValueError, "kind must be one of"),
        ({"bias": "no"}, TypeError, "bias must be True or False"),
        ({"init": "warm"}, ValueError, "init must be one of"),
        ({"centers": np.ones((3, 2))}, ValueError, "centers must have the 1 columns"),
        ({"augment": "yes"}, ValueError, "augment must be True, False, 'function' or 'process'"),
        ({"augment": 1}, ValueError, "augment must be True, False"),
        ({"augment": "process", "kind": "multiquadric"}, ValueError, "the multiquadric is none"),
        ({"augment_precision": "small"}, ValueError, "augment_precision must be one of"),
        ({"augment_precision": -1.0}, ValueError, "augment_precision must be positive"),
        ({"augment_precision": [1.0, 2.0]}, TypeError, "augment_precision must be a positive number"),
    ],
)
def test_bad_parameters_are_refused_at_the_door(rng, arguments, error, text):
    X, y = wave(rng, 10)
    with pytest.raises(error, match=text):
        V(**arguments).fit(X, y)


@pytest.mark.parametrize(
    ("X", "y", "error", "text"),
    [
        ([[np.nan], [1.0]], [0.0, 1.0], ValueError, "NaN"),
        ([[0.0], [1.0]], [0.0, np.inf], ValueError, "infinity"),
        ([0.0, 1.0], [0.0, 1.0], ValueError, "Expected 2D array"),
        ([[0.0], [1.0]], [0.0, 1.0, 2.0], ValueError, "inconsistent numbers of samples"),
        ([["a"], ["b"]], [0.0, 1.0], ValueError, "must be numeric"),
        (np.empty((0, 1)), [], ValueError, "0 sample"),
        ([[0.0], [1.0]], np.ones((2, 2, 2)), ValueError, "dim 3"),
        ([[0.0], [1.0]], None, ValueError, "requires y"),
        ([[0.0], [1.0]], [1e200, 0.0], ValueError, "rescale"),
        ([[0.0], [1.0]], [1j, 0.0], ValueError, "Complex data not supported"),
    ],
)
def test_bad_data_is_refused_at_the_door(X, y, error, text):
    with pytest.raises(error, match=text):
        V().fit(X, y)


def test_bad_calls_after_the_fit(rng):
    with pytest.raises(NotFittedError):
        V().predict([[0.0]])
    model = V(width=0.3).fit(*wave(rng))
    with pytest.raises(ValueError, match="1 features"):
        model.predict([[0.0, 1.0]])
    with pytest.raises(ValueError, match="augment must be"):
        model.predict([[0.0]], augment="more")


# --- odd data --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-6, 250.0])
@pytest.mark.parametrize("augment", [False, True, "function"])
def test_the_unit_of_the_target_scales_the_answer(rng, scale, augment):
    X, y = wave(rng)
    plain, scaled = V(width=0.3, augment=augment).fit(X, y), V(width=0.3, augment=augment).fit(X, scale * y)
    assert scaled.log_evidence_ == pytest.approx(plain.log_evidence_ - 40 * np.log(scale), abs=1e-4)
    mean, std = plain.predict(NEW, return_std=True)
    np.testing.assert_allclose(scaled.predict(NEW, return_std=True), (scale * mean, scale * std), rtol=1e-3)


def test_an_offset_is_left_to_the_bias(rng):
    X, y = wave(rng)
    far = V(width=0.3, augment=True).fit(X, y + 1e6)
    near = V(width=0.3, augment=True).fit(X, y)
    assert far.dictionary_.n_columns - 1 in far.basis_
    np.testing.assert_allclose(far.predict(X) - 1e6, near.predict(X), atol=0.1)
    std = far.predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(std, near.predict(NEW, return_std=True)[1], rtol=0.25)
    assert far.noise_std_ == pytest.approx(near.noise_std_, rel=0.1)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize(
    ("width", "augment"),
    [(0.5, False), (0.5, True), (0.5, "function"), ("fit", False), pytest.param("ard", True, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.3]], [2.0]),
        ([[0.3], [0.9]], [2.0, 2.5]),
        ([[0.3], [0.3]], [2.0, 2.5]),
        (np.linspace(0, 1, 8)[:, None], np.full(8, 3.0)),
        (np.linspace(0, 1, 8)[:, None], np.zeros(8)),
        (np.repeat(np.linspace(0, 1, 5), 2)[:, None], [0, 0.1, 1, 1.1, 0, 0.1, -1, -0.9, 0, 0.1]),
        (np.ones((6, 1)), np.arange(6.0)),
    ],
    ids=["one row", "two rows", "equal rows", "constant", "zero", "duplicates", "one input value"],
)
def test_degenerate_data_get_a_sensible_answer(X, y, width, augment):
    y = np.asarray(y, dtype=float)
    model = V(width=width, augment=augment, augment_precision="mean" if augment == "function" else None)
    model.set_params(init="greedy" if width == "fit" else "auto").fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all() and (std > 0).all()
    assert np.abs(mean).max() <= 1.5 * np.abs(y).max() + 1e-9
    far_mean, far_std = model.predict([[50.0]], return_std=True)
    assert np.isfinite(far_mean).all() and np.isfinite(far_std).all()
    assert isinstance(model.status_, bs.Status) and np.isfinite(model.log_evidence_)
    if np.ptp(y) == 0.0:
        assert model.status_.name in ("CONSTANT_TARGET", "NOISE_AT_FLOOR", "TOO_FEW_ROWS")
        np.testing.assert_allclose(mean, y, rtol=1e-6, atol=1e-9)


def test_numerical_trouble_is_a_status_and_a_warning():
    X = np.linspace(0, 1, 25)[:, None]
    with pytest.warns(NumericalWarning, match="NOISE_AT_FLOOR|ILL_CONDITIONED"):
        model = V(width=0.5).fit(X, np.exp(-((X[:, 0] - X[10, 0]) ** 2) / 0.25))
    assert model.status_ in (bs.Status.NOISE_AT_FLOOR, bs.Status.ILL_CONDITIONED)
    np.testing.assert_allclose(model.predict(X), np.exp(-((X[:, 0] - X[10, 0]) ** 2) / 0.25), atol=1e-6)


@pytest.mark.filterwarnings("ignore:(PURE_NOISE|DOUBTFUL_SIGNAL):bayessel.errors.NumericalWarning")
def test_pure_noise_gives_an_honest_answer(rng):
    X, y = rng.uniform(0, 1, (60, 1)), rng.normal(size=60)
    model = V(width=0.2, augment=True).fit(X, y)
    mean, std = model.predict(NEW, return_std=True)
    assert model.n_basis_ < 15 and (std > 0.5).all() and np.abs(mean).max() < 3


def test_the_same_input_gives_the_same_result(rng):
    X, y = wave(rng)
    first, second = V(width=0.3).fit(X, y), V(width=0.3).fit(X, y)
    assert np.array_equal(first.coef_, second.coef_) and first.log_evidence_ == second.log_evidence_
