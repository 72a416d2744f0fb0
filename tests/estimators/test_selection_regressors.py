"""BasisSearchRegressor and ForwardSelectionRegressor: scikit-learn's protocol, numbers against oracles, pictures.

Guards `bayessel.estimators.basis_search`, `bayessel.estimators.forward_selection`,
`bayessel.estimators._selecting_regressor`, `bayessel.estimators._sparse_attributes`.
"""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import rich.console
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel._fingerprint import fingerprint
from bayessel.errors import NumericalWarning
from bayessel.estimators import _selecting_regressor, basis_search
from bayessel.fit import Status
from bayessel.linear import fit_abf, forward_select, search
from tests.oracles import linear as oracles

S, F = bs.BasisSearchRegressor, bs.ForwardSelectionRegressor
CHECKED = {
    "search": S(width=1.0),
    "search, widths of all functions": S(),
    "sffs, no bias": S(width=1.0, strategy="sffs", bias=False),
    "ols": F(width=1.0),
    "ols, widths of all functions": F(),
    "rfs": F(width=1.0, method="rfs", stop="bic"),
    "rols, cv": F(width=1.0, method="rols", stop="cv"),
    "backward, no bias": F(width=1.0, method="backward", bias=False),
}
FAST = ("search", "ols")
#: cross-validation holds out the whole of a row, and elimination takes no weights (docs/weights.md)
NOT_WEIGHTED = {"rols, cv": "check_sample_weight_equivalence", "backward, no bias": "sample_weight"}
SOME = [S(width=0.4), S(width=0.4, bias=False, strategy="sffs"), F(width=0.4), F(width=0.4, method="rfs", bias=False)]


def wave(rng, n=60, noise=0.2, d=1):
    X = rng.uniform(0, 1, (n, d))
    return X, 3.0 + np.sin(6 * X[:, 0]) + noise * rng.normal(size=n)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in CHECKED])
def test_every_check_of_scikit_learn_passes(name):
    left, count = {}, 0
    for candidate, check in estimator_checks_generator(CHECKED[name]):
        count += 1
        if NOT_WEIGHTED.get(name, "no check") in check.func.__name__:
            continue
        try:
            check(candidate)
        except BaseException as error:
            if not str(error).startswith("SCIPY_ARRAY_API is not set"):
                left[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert count > 45 and left == {}


@pytest.mark.parametrize("name", CHECKED)
def test_no_tag_skips_a_check(name):
    tags = CHECKED[name].__sklearn_tags__()
    assert (tags.estimator_type, tags.requires_fit, tags.no_validation) == ("regressor", True, False)
    assert (tags.non_deterministic, tags._skip_test, tags.regressor_tags.poor_score) == (False, False, False)
    assert tags.target_tags.required and tags.target_tags.single_output and tags.target_tags.multi_output


# --- the numbers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gaussian", "cauchy"])
@pytest.mark.parametrize("model", SOME, ids=str)
def test_attributes_are_those_of_the_model_they_describe(rng, model, kind):
    X, y = wave(rng, d=2)
    model = clone(model).set_params(kind=kind, width=[0.4, 2.0]).fit(X, y)
    H = oracles.radial(kind, X, X, [0.4, 2.0])
    kernels = model.basis_[model.basis_ < len(X)]
    assert model.n_basis_ == len(model.basis_) == len(model.coef_) == len(kernels) + model.bias
    if model.bias:
        assert model.basis_[-1] == len(X) == model.dictionary_.n_columns - 1
    exact = oracles.exact(H[:, kernels], y, model.alpha_, model.beta_, centre=model.bias)
    assert oracles.relative(model.log_evidence_, exact.log_evidence) < 1e-8
    assert model.noise_std_ == pytest.approx(model.beta_**-0.5)
    Phi = np.c_[H[:, kernels], np.ones((len(X), int(model.bias)))]
    assert_allclose(model.predict(X), Phi @ model.coef_, rtol=1e-10)
    if isinstance(model, S):
        assert_allclose(model.coef_[: len(kernels)], [float(w) for w in exact.mean], rtol=1e-5)
        assert model.n_added_ - model.n_removed_ >= 0 and model.seconds_ > 0
    assert isinstance(model.status_, bs.Status)
    assert isinstance(model.history_, list) and isinstance(model.history_[0], dict)
    assert set(model.path_[len(kernels)].basis) == set(kernels.tolist())
    assert model.fingerprint_ == fingerprint(X, y)


def test_they_are_the_engines(rng):
    X, y = wave(rng)
    H = oracles.radial("gaussian", X, X, 0.3)
    model = S(width=0.3, strategy="pta(2,1)", objective="loo").fit(X, y)
    assert model.basis_[:-1].tolist() == search(H, y, "pta(2,1)", score="loo", centre=True).basis.tolist()
    best = clone(model).set_params(within=0.0).fit(X, y)
    assert best.basis_[:-1].tolist() == search(H, y, "pta(2,1)", score="loo", centre=True, within=0.0).basis.tolist()
    for method, stop in (("ols", "cv"), ("rols", "bic"), ("backward", "loo")):
        model = F(width=0.3, method=method, stop=stop, folds=4, random_state=2).fit(X, y)
        fit = forward_select(H, y, method, stop, centre=True, folds=4, random_state=2)
        assert model.basis_[:-1].tolist() == fit.basis.tolist()
        assert_allclose(model.coef_, [*fit.coef, fit.intercept], rtol=1e-6)


@pytest.mark.parametrize("model", [S(width=0.4), F(width=0.4), F(width=0.4, method="rols"), F(width=0.4, bias=False)])
def test_error_bars_are_those_of_dense_algebra(rng, model):
    X, y = wave(rng)
    model = clone(model).fit(X, y)
    new = rng.uniform(0, 1, (5, 1))
    mean, std = model.predict(new, return_std=True)
    H = oracles.radial("gaussian", X, X, 0.4)[:, model.fit_.order]
    rows = oracles.radial("gaussian", new, X, 0.4)[:, model.fit_.order]
    if model.bias:
        rows, H = rows - H.mean(axis=0), H - H.mean(axis=0)
    penalty = model.fit_.lam * np.eye(H.shape[1])
    if getattr(model, "method", "") == "rols":
        R = np.linalg.qr(H)[1]
        U = R / np.diag(R)[:, None]
        penalty = model.fit_.lam * U.T @ U
    R = np.linalg.qr(np.vstack([H, np.linalg.cholesky(penalty).T if penalty.any() else penalty]))[1]
    root = np.linalg.solve(R.T, rows.T)
    expected = (1.0 + (root**2).sum(axis=0) + model.bias / len(X)) / model.beta_
    assert_allclose(std, np.sqrt(expected), rtol=1e-5)
    assert_allclose(
        model.log_predictive_density(new, np.full(5, 3.0)), scipy.stats.norm(mean, std).logpdf(3.0), rtol=1e-10
    )


def test_widths_come_from_all_functions_together(rng):
    X, y = wave(rng, 80, d=2)
    found = fit_abf(X, y)
    for model in (S(inference="type2").fit(X, y), F(inference="type2").fit(X, y)):
        assert_allclose(model.width_, found.widths, rtol=1e-6)
        assert model.width_[1] > 5 * model.width_[0]
    one = F(width="abf").fit(X[:, :1], y)
    assert isinstance(one.width_, float)


@pytest.mark.slow
def test_widths_of_many_rows_come_from_some_of_them(rng):
    X, y = wave(rng, 1500)
    model = F(method="rfs").fit(X, y)
    assert 0.1 < model.width_ < 1.5
    assert np.mean((model.predict(X) - 3 - np.sin(6 * X[:, 0])) ** 2) < 0.01


def test_an_offset_of_the_target_changes_nothing_else(rng):
    X, y = wave(rng)
    for model in (S(width=0.3), F(width=0.3), F(width=0.3, method="rfs")):
        here, there = clone(model).fit(X, y), clone(model).fit(X, y + 1e6)
        assert here.basis_.tolist() == there.basis_.tolist()
        assert_allclose(there.predict(X) - 1e6, here.predict(X), atol=1e-6)
        assert there.log_evidence_ == pytest.approx(here.log_evidence_, abs=1e-4)


# --- the protocol ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", SOME, ids=str)
def test_a_pickle_predicts_the_same(rng, model):
    X, y = wave(rng)
    model = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X, return_std=True), model.predict(X, return_std=True), rtol=0)
    assert clone(model).get_params() == model.get_params()


def test_pipelines_searches_and_frames(rng):
    X, y = wave(rng)
    grid = GridSearchCV(make_pipeline(StandardScaler(), S()), {"basissearchregressor__width": [0.5, 2.0]}, cv=3)
    assert grid.fit(X, y).score(X, y) > 0.8
    frame = pd.DataFrame({"a": X[:, 0]})
    assert F(width=0.4).fit(frame, y).feature_names_in_.tolist() == ["a"]


def test_compare_puts_strategies_on_one_table(rng):
    X, y = wave(rng, 80)
    fits = {strategy: S(width=0.3, strategy=strategy).fit(X, y) for strategy in ("pta(1,0)", "pta(2,1)", "sffs")}
    fits |= {"ols": F(width=0.3).fit(X, y), "rvm": bs.RVMRegressor(width=0.3).fit(X, y)}
    fits |= {"all": bs.EvidenceRegressor(width=0.3).fit(X, y)}
    table = bs.diagnostics.compare(fits, by="model-evidence")
    assert set(table.index) == set(fits)
    numbers = table[["evidence", "model-evidence", "mdl-w", "mdl-alpha", "loo", "elpd-loo", "gcv", "bic", "n_basis"]]
    assert np.isfinite(numbers.to_numpy(float)).all()
    assert table.loc["sffs", "n_basis"] == fits["sffs"].n_basis_
    assert (table.loc[["pta(1,0)", "pta(2,1)", "sffs", "ols"], "seconds"] > 0).all()
    assert table.loc["sffs", "loo"] == pytest.approx(np.mean(fits["sffs"].leave_one_out().errors ** 2))
    H = oracles.radial("gaussian", X, X, 0.3)[:, fits["sffs"].fit_.basis]
    exact = oracles.exact(H, y, fits["sffs"].alpha_, fits["sffs"].beta_, centre=True)
    assert table.loc["sffs", "loo"] == pytest.approx(float(exact.loo), rel=1e-6)


def test_it_goes_to_pymc(rng):
    X, y = wave(rng, 30)
    model = S(width=0.4).fit(X, y)
    declared = model.to_pymc()
    assert {"w", "alpha", "beta"} <= {v.name for v in declared.free_RVs}


def test_pictures_show_path_and_centres(rng):
    X, y = wave(rng, 60, d=2)
    first, second = S(width=0.5, strategy="sffs").fit(X, y), F(width=0.5).fit(X, y)
    ax = first.plot_path(label="SFFS")
    line = ax.lines[0]
    known = {k: p.value for k, p in first.path_.items() if np.isfinite(p.value)}
    assert_allclose(line.get_xdata(), sorted(known))
    assert_allclose(line.get_ydata(), [known[k] for k in sorted(known)])
    assert second.plot_path(ax=ax) is ax and len(ax.lines) == 4
    centres = first.plot_centres()
    assert len(centres.collections[0].get_offsets()) == len(first.fit_.basis)
    assert_allclose(centres.collections[0].get_offsets(), X[first.fit_.basis])
    with pytest.raises(ValueError, match="inputs must be two different ones"):
        first.plot_centres(inputs=(0, 5))
    flat = S(width=0.5).fit(X[:, :1], y).plot_centres(label="one input")
    assert flat.get_title() == "one input"


def test_a_long_search_shows_where_it_stands(rng, monkeypatch, capsys):
    X, y = wave(rng, 40)
    S(width=0.5).fit(X, y)
    assert capsys.readouterr() == ("", "")  # a pipe sees nothing, ...
    monkeypatch.setattr(basis_search, "QUIET", 0.0)
    S(width=0.5).fit(X, y)
    assert capsys.readouterr() == ("", "")  # ... however long it takes
    monkeypatch.setattr(rich.console.Console, "is_terminal", True)
    S(width=0.5, progressbar=False).fit(X, y)
    assert capsys.readouterr() == ("", "")
    S(width=0.5).fit(X, y)
    assert "searching: " in capsys.readouterr().err
    with pytest.raises(TypeError, match="progressbar must be"):
        S(width=0.5, progressbar="no").fit(X, y)


def test_a_picture_is_never_empty(rng):
    X, y = wave(rng, 60)
    without = F(width=0.5, stop=None, max_size=4).fit(X, y)
    line = without.plot_path().lines[0]
    assert_allclose(line.get_ydata(), [entry["error"] for entry in without.history_])
    assert without.plot_path().get_ylabel() == "squared error of the training rows"
    with pytest.warns(NumericalWarning, match="CONSTANT_TARGET"):
        nothing = S(width=0.5).fit(X, np.ones(60)).plot_path()
    assert "CONSTANT_TARGET" in nothing.texts[0].get_text()


def test_more_folds_than_rows_are_as_many_as_rows(rng):
    X, y = wave(rng, 12)
    for many in (50, np.int64(50)):
        model = F(width=0.5, stop="cv", folds=many).fit(X, y)
        assert_allclose(model.coef_, F(width=0.5, stop="cv", folds=12).fit(X, y).coef_)


def test_widths_that_were_interrupted_are_said_to_be(rng, monkeypatch):
    X, y = wave(rng, 60)
    inner = _selecting_regressor.fit_abf

    def cut(*arguments, **options):
        found = inner(*arguments, **options)
        return replace(found, status=Status.INTERRUPTED, notes=(*found.notes, Status.INTERRUPTED))

    monkeypatch.setattr(_selecting_regressor, "fit_abf", cut)
    assert S(width="abf").fit(X, y).status_ is Status.INTERRUPTED


@pytest.mark.filterwarnings("ignore:(CONSTANT_TARGET|PURE_NOISE|DOUBTFUL_SIGNAL):bayessel.errors.NumericalWarning")
def test_noise_and_constants_have_an_answer(rng):
    X, y = rng.uniform(0, 1, (40, 1)), rng.normal(size=40)
    for model in (S(width=0.2), F(width=0.2, stop="bic"), S(width=0.2, bias=False), F(width=0.2, bias=False)):
        noise = clone(model).fit(X, y)
        assert np.isfinite(noise.predict(X, return_std=True)).all()
        constant = clone(model).fit(X, np.zeros(40))
        assert_allclose(constant.predict(X), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "error", "said"),
    [
        (S(width="wide"), ValueError, "width must be one of 'abf'"),
        (S(width=-1.0), ValueError, "width must be positive"),
        (S(width=1.0, strategy="sfs"), ValueError, "strategy"),
        (S(width=1.0, objective="aic"), ValueError, "objective must be one of"),
        (S(width=1.0, bias="no"), TypeError, "bias must be True or False"),
        (S(width=1.0, kind="box"), ValueError, "kind must be one of"),
        (F(width=1.0, method="omp"), ValueError, "method must be one of"),
        (F(width=1.0, stop="aic"), ValueError, "stop must be one of"),
        (F(width=1.0, stop=None), ValueError, "say how many"),
        (F(width=1.0, centers=np.ones((3, 5))), ValueError, "centers must have the 1 columns of X"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(rng, model, error, said):
    X, y = wave(rng, 20)
    with pytest.raises(error, match=said):
        model.fit(X, y)


@pytest.mark.parametrize("model", [S(), F()], ids=str)
def test_an_unfitted_model_says_so(model):
    for call in (model.plot_path, model.plot_centres, model.leave_one_out, model.to_pymc):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(NotFittedError):
        model.predict([[1.0]])
