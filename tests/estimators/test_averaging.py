"""Averages of models: mixtures, weights and folds against scipy and formulas by hand; what is refused.

Guards `bayessel.estimators.averaging`, `bayessel.estimators.averaged_regressor`,
`bayessel.estimators.averaged_fit`, `bayessel.estimators.member_checks`, `bayessel.estimators.member_predictions`,
`bayessel.estimators.member_weights`, `bayessel.estimators.refitted_folds`, `bayessel.estimators.weighing`,
`bayessel.estimators.shared_references`.
"""

import pickle
import re
import warnings
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize
from scipy.special import logsumexp, softmax
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.errors import DataMismatchError, NumericalWarning
from bayessel.estimators import member_weights, shared_references
from bayessel.estimators.averaged_regressor import AveragedRegressor
from bayessel.estimators.member_predictions import ConstantModel, left_out_of, predictive_of, training_rows
from bayessel.fit import Fit, Status
from bayessel.linear import fit_evidence, fit_rvm
from bayessel.prediction import Prediction


def plain(width, **settings):
    return bs.EvidenceRegressor(width=width, inference="type2", **settings)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(60, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=60)


@pytest.fixture(scope="module")
def three(data):
    return {f"r {r}": plain(r).fit(*data) for r in (0.5, 1.5, 4.0)}


# ---- what the mixture says


def dense_cdf(parts, weights, y):
    return sum(w * norm.cdf(y, m, s) for w, (m, s) in zip(weights, parts, strict=True))


def test_the_mixture_is_that_of_scipy(three, rng):
    new, y = rng.uniform(-3, 3, size=(5, 2)), rng.normal(size=5)
    given = {"r 0.5": 1.0, "r 1.5": 2.0, "r 4.0": 1.0}
    model = bs.average(three, weights=given)
    mean, std, (low, high) = model.predict(new, return_std=True, return_quantiles=[0.05, 0.95])
    for n in range(5):
        parts = [
            tuple(float(one[0]) for one in member.predict(new[n : n + 1], return_std=True)) for member in three.values()
        ]
        weights = (0.25, 0.5, 0.25)
        density = np.log(sum(w * norm.pdf(y[n], m, s) for w, (m, s) in zip(weights, parts, strict=True)))
        assert_allclose(model.log_predictive_density(new, y)[n], density, rtol=1e-10)
        first = sum(w * m for w, (m, _) in zip(weights, parts, strict=True))
        second = sum(w * (m**2 + s**2) for w, (m, s) in zip(weights, parts, strict=True))
        assert_allclose([mean[n], std[n]], [first, np.sqrt(second - first**2)], rtol=1e-9)
        for level, found in ((0.05, low[n]), (0.95, high[n])):
            expected = brentq(lambda v, p=parts, q=level: dense_cdf(p, (0.25, 0.5, 0.25), v) - q, -60, 60, xtol=1e-12)
            assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")  # of few rows
def test_members_predict_as_they_do_alone(data, rng):
    """Mixtures stay mixtures, variance factors stay, pipelines and other libraries are asked as they are."""
    X, y = (one[:30] for one in data)
    new, t = rng.uniform(-2, 2, size=(7, 2)), rng.normal(size=7)
    members = {
        "integrated": bs.EvidenceRegressor(),
        "type2": plain(1.0),
        "rvm": bs.RVMRegressor(),
        "forward": bs.ForwardSelectionRegressor(),
        "ridge": bs.RidgeRBFRegressor(width=1.0),
        "gp": bs.GPRegressor(random_state=0),
        "theirs": BayesianRidge(),
    }
    for name, member in members.items():
        member.fit(X, y)
        alone = bs.average({name: member}, weights={name: 1.0})
        if hasattr(member, "log_predictive_density"):
            assert_allclose(alone.log_predictive_density(new, t), member.log_predictive_density(new, t), rtol=1e-9)
            assert_allclose(predictive_of(member, new).log_density(t), member.log_predictive_density(new, t), rtol=1e-9)
        mean, std = member.predict(new, return_std=True)
        assert_allclose(alone.predict(new), mean, rtol=1e-9, atol=1e-12)
        assert_allclose(alone.predict(new, return_std=True)[1], std, rtol=1e-9)
    assert len(predictive_of(members["integrated"], new).means) > 1
    piped = make_pipeline(StandardScaler(), bs.EvidenceRegressor()).fit(X, y)
    assert len(predictive_of(piped, new).means) > 1
    assert_allclose(predictive_of(piped, new).mean, piped.predict(new))


def test_leave_one_out_is_the_mixture_of_the_members(three):
    model = bs.average(three, weights={"r 0.5": 1.0, "r 1.5": 3.0})
    found = model.leave_one_out()
    first, second = (three[name].leave_one_out() for name in ("r 0.5", "r 1.5"))
    assert_allclose(found.errors, 0.25 * first.errors + 0.75 * second.errors)
    expected = np.log(
        0.25 * norm.pdf(first.errors, 0, np.sqrt(first.variances))
        + 0.75 * norm.pdf(second.errors, 0, np.sqrt(second.variances))
    )
    assert_allclose(found.log_densities, expected, rtol=1e-9)
    moment = 0.25 * (first.variances + first.errors**2) + 0.75 * (second.variances + second.errors**2)
    assert_allclose(found.variances, moment - found.errors**2, rtol=1e-9)


def test_the_constant_leaves_rows_out_as_refits_do(rng):
    t = rng.normal(3.0, 2.0, size=9)
    found = ConstantModel(t).leave_one_out()
    for i in range(9):
        rest = np.delete(t, i)
        mean, variance = rest.mean(), rest.var(ddof=1) * (1 + 1 / 8)
        assert_allclose(found.errors[i], t[i] - mean)
        assert_allclose(found.variances[i], variance)
        assert_allclose(ConstantModel(rest).predict(np.zeros((1, 1))).std[0] ** 2, variance)


# ---- weights


def test_weights_by_evidence_are_a_softmax(three):
    model = bs.average(three, weights="evidence")
    logs = [member.log_evidence_ for member in three.values()]
    assert_allclose(model.weights_["weight"][list(three)], softmax(logs), rtol=1e-10)
    assert model.weights_.loc["constant", "weight"] == 0.0
    prior = {"r 0.5": 4.0, "r 1.5": 1.0, "r 4.0": 5.0}
    model = bs.average(three, weights="evidence", prior=prior)
    expected = softmax(np.array(logs) + np.log(list(prior.values())))
    assert_allclose(model.weights_["weight"][list(three)], expected, rtol=1e-10)
    assert model.fit_.evidence.kind == "type2"
    assert_allclose(model.fit_.log_evidence, logsumexp(np.array(logs) + np.log(np.array([4, 1, 5]) / 10)))
    third = bs.average(three, weights="model-evidence")
    assert_allclose(
        third.weights_["weight"][list(three)], softmax([one.fit_.model_evidence for one in three.values()]), rtol=1e-9
    )


def slsqp(gains, prior):
    """Weights by a general optimiser."""

    def minus(w):
        return -(logsumexp(gains + np.log(w)[:, None], axis=0).sum() + prior @ np.log(w))

    start = np.full(len(gains), 1 / len(gains))
    found = minimize(
        minus,
        start,
        method="SLSQP",
        bounds=[(1e-9, 1)] * len(gains),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return found.x


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
def test_stacking_weights_are_those_of_a_general_optimiser(rng, monkeypatch, spread):
    monkeypatch.setattr(member_weights, "LEAST_WEIGHT", 0.0)
    gains = 0.2 + spread * rng.normal(size=(4, 50))
    found = member_weights.by_stacking(list("abcd"), gains, "rows")
    every = np.vstack([gains, np.zeros(50)])
    expected = slsqp(every, np.full(5, 0.2))
    assert_allclose(found.weights, expected, atol=3e-4)
    assert_allclose(found.gains, logsumexp(every + np.log(found.weights)[:, None], axis=0))


def test_stacking_of_left_out_rows_uses_their_densities(three, data):
    _, y = data
    model = bs.average(three, densities="loo")
    rest = [np.delete(y, i) for i in range(len(y))]
    constant = np.array(
        [norm.logpdf(t, r.mean(), r.std(ddof=1) * np.sqrt(1 + 1 / len(r))) for t, r in zip(y, rest, strict=True)]
    )
    gains = np.array([member.leave_one_out().log_densities - constant for member in three.values()])
    assert_allclose(model.weights_["gain"][list(three)], gains.mean(axis=1), rtol=1e-8)
    best = gains[np.argmax(gains.mean(axis=1))]
    assert_allclose(
        model.weights_["difference_error"][list(three)], (best - gains).std(axis=1, ddof=1) / np.sqrt(60), atol=1e-12
    )
    assert_allclose(model.weights_["weight"].sum(), 1.0)


def test_folds_are_fitted_anew(data):
    """The gains of the folds, from refits by hand: rows in the order of the target, every third in one fold."""
    X, y = data
    model = bs.average({"r": plain(1.0), "line": BayesianRidge()}).fit(X, y)
    fold = np.empty(60, dtype=int)
    fold[np.argsort(y)] = np.arange(60) % 3
    gains = np.empty((2, 60))
    for k in range(3):
        for row, member in enumerate((plain(1.0), BayesianRidge())):
            mean, std = member.fit(X[fold != k], y[fold != k]).predict(X[fold == k], return_std=True)
            seen = y[fold != k]
            alone = norm.logpdf(y[fold == k], seen.mean(), seen.std(ddof=1) * np.sqrt(1 + 1 / 40))
            gains[row, fold == k] = norm.logpdf(y[fold == k], mean, std) - alone
    assert_allclose(model.weights_["gain"][:2], gains.mean(axis=1), rtol=1e-8)
    assert_allclose(model.weights_["gain_error"][:2], gains.std(axis=1, ddof=1) / np.sqrt(60), rtol=1e-8)
    weights = model.weights_["weight"].to_numpy()
    stacked = logsumexp(np.vstack([gains, np.zeros(60)]) + np.log(np.maximum(weights, 1e-300))[:, None], axis=0)
    assert_allclose(model.gain_, stacked.mean(), rtol=1e-8)


def test_copies_of_rows_lie_in_one_fold(rng):
    """Noise that is repeated is no signal: a narrow width knows the copies and nothing else."""
    X = np.repeat(rng.uniform(-2, 2, size=(20, 1)), 3, axis=0)
    y = np.repeat(rng.normal(size=20), 3) + 0.01 * rng.normal(size=60)
    with pytest.warns(NumericalWarning, match="NO_BETTER_THAN_CONSTANT"):
        model = bs.average({"narrow": plain(0.05)}).fit(X, y)
    assert model.weights_.loc["constant", "weight"] > 0.5
    assert model.status_ is Status.NO_BETTER_THAN_CONSTANT


def test_two_copies_of_a_member_are_one(data, rng):
    X, y = data
    new, t = rng.uniform(-2, 2, size=(9, 2)), rng.normal(size=9)
    one = bs.average({"a": plain(1.0), "b": BayesianRidge()}).fit(X, y)
    two = bs.average({"a": plain(1.0), "copy": plain(1.0), "b": BayesianRidge()}).fit(X, y)
    assert_allclose(two.log_predictive_density(new, t), one.log_predictive_density(new, t), rtol=1e-9)
    assert_allclose(two.weights_["weight"]["a"], two.weights_["weight"]["copy"])
    assert_allclose(two.weights_["weight"][["a", "copy"]].sum(), one.weights_["weight"]["a"])
    fits = {name: plain(1.0).fit(X, y) for name in ("a", "b")}
    for weights in ("evidence", "stacking"):
        both = bs.average(fits, weights=weights)
        assert_allclose(both.weights_["weight"]["a"], both.weights_["weight"]["b"])
    assert_allclose(
        bs.average(fits, weights="evidence").log_predictive_density(new, t), fits["a"].log_predictive_density(new, t)
    )


def test_fitted_members_are_weighed_as_those_fitted_here(data):
    X, y = data
    members = {"r": plain(1.0), "search": bs.BasisSearchRegressor(width=1.0), "gp": bs.GPRegressor(random_state=1)}
    here = bs.average(members).fit(X, y)
    there = bs.average({name: clone(member).fit(X, y) for name, member in members.items()})
    given = bs.average({name: clone(member).fit(X, y) for name, member in members.items()}, data=(X, y))
    assert_allclose(there.weights_["weight"], here.weights_["weight"], atol=1e-6)
    assert_allclose(given.weights_["weight"], here.weights_["weight"], atol=1e-12)
    assert_allclose(given.predict(X), here.predict(X))
    assert given.fingerprint_ == here.fingerprint_ == there.fingerprint_ == bs.average(given.members_).fingerprint_


def test_estimators_keep_the_rows_that_folds_need(data):
    X, y = data
    for made in (plain(1.0), bs.EvidenceRegressor(), bs.RVMRegressor(width=1.0), bs.GPRegressor(random_state=0)):
        rows, target = training_rows(made.fit(X, y))
        assert_allclose(rows, X, atol=1e-12)
        assert_allclose(target, y, atol=1e-12)


def test_the_reference_counts_where_rows_are_left_out(data):
    X, y = data
    model = bs.RVMRegressor().fit(X, y)
    found, reference = left_out_of(model, "rvm"), model.fit_.reference
    moved = model.predict(X) - reference.predict(X).mean
    there = reference.leave_one_out().prediction
    weights = np.exp(there.log_weights)
    densities = norm.pdf(y, there.means + moved, np.sqrt(there.variances + moved**2))
    assert_allclose(found.log_densities, np.log((weights * densities).sum(axis=0)))


# ---- fits of engines


def test_fits_of_engines_on_one_design(data, rng):
    X, y = data
    Phi = np.exp(-((X[:, None] - X[::4]) ** 2).sum(axis=2))
    new = np.exp(-((rng.uniform(-2, 2, size=(6, 2))[:, None] - X[::4]) ** 2).sum(axis=2))
    fits = {"evidence": fit_evidence(Phi, y), "rvm": fit_rvm(Phi, y)}
    model = bs.average(fits)
    assert isinstance(model.fit_, Fit)
    weights = model.weights_["weight"]
    expected = sum(weights[name] * fit.predict(new).mean for name, fit in fits.items())
    assert_allclose(model.predict(new), expected + weights["constant"] * y.mean())
    with pytest.raises(ValueError, match="densities='loo'"):
        bs.average(fits, densities="folds")
    with pytest.raises(TypeError, match="cannot be fitted anew"):
        model.fit(Phi, y)
    with pytest.raises(DataMismatchError, match="designs"):
        bs.average({"a": fit_evidence(Phi, y), "b": fit_evidence(Phi[:, 1:], y)})


# ---- the guard


def test_a_member_that_is_worse_than_a_constant_gets_next_to_nothing(rng):
    X = rng.normal(size=(60, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        model = bs.average({"wild": plain(0.1, bias=False), "line": BayesianRidge()}).fit(X, 100.0 + y)
    assert model.weights_["weight"]["wild"] < 0.02
    assert model.weights_["weight"]["line"] > 0.8


def test_noise_is_not_predicted_with_confidence(rng):
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    for make in (
        lambda: bs.average({"a": plain(0.5), "b": plain(3.0)}).fit(X, y),
        lambda: bs.average({name: plain(r).fit(X, y) for name, r in (("a", 0.5), ("b", 3.0))}, weights="evidence"),
        lambda: bs.average({name: plain(r).fit(X, y) for name, r in (("a", 0.5), ("b", 3.0))}, weights={"a": 1.0}),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = make()
        assert Status.NO_BETTER_THAN_CONSTANT in model.fit_.notes
        assert any(str(model.status_.name) in str(one.message) for one in said)
        new, t = rng.normal(size=(400, 3)), rng.normal(size=400)
        worth = model.log_predictive_density(new, t).mean() - norm.logpdf(t, y.mean(), y.std()).mean()
        assert worth > -0.1


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_few_rows_are_answered_with_a_remark(rng, n):
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = bs.average({"a": plain(1.0), "b": bs.EvidenceRegressor()}).fit(X, y)
    assert Status.TOO_FEW_ROWS in model.fit_.notes
    mean, std = model.predict(rng.normal(size=(3, 2)), return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()


# ---- scikit-learn's protocol


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "members",
    [
        {"line": BayesianRidge()},
        pytest.param({"r": plain(1.0), "line": BayesianRidge()}, marks=pytest.mark.slow),
        pytest.param(None, marks=pytest.mark.slow),
    ],
    ids=["line", "two", "usual"],
)
def test_every_check_of_scikit_learn_passes(members):
    failed = {}
    for candidate, check in estimator_checks_generator(AveragedRegressor(members, random_state=0, n_jobs=1)):
        try:
            check(candidate)
        except SkipTest:  # of array types that are not switched on
            pass
        except BaseException as error:
            failed[check.func.__name__] = f"{type(error).__name__}: {error}"
    assert not failed, failed


def test_clones_parameters_pickles_and_cross_validation(data):
    X, y = data
    model = bs.average({"r": plain(1.0), "line": BayesianRidge()}, random_state=3)
    assert model.get_params()["r__width"] == 1.0
    model.set_params(r__width=2.0)
    assert model.members["r"].width == 2.0
    model.set_params(line=plain(5.0))
    assert model.members["line"].width == 5.0
    twin = clone(model)
    assert twin.members["r"] is not model.members["r"] and twin.get_params()["r__width"] == 2.0
    model.fit(X, y)
    assert not hasattr(model.members["r"], "fit_")  # clones are fitted
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X), model.predict(X), rtol=0)
    assert clone(model).fit(X, y).weights_.equals(model.weights_)
    assert cross_val_score(bs.average({"line": BayesianRidge()}), X, y, cv=3).mean() > 0.1
    names = pd.DataFrame(X, columns=["left", "right"])
    named = bs.average({"r": plain(1.0), "line": make_pipeline(StandardScaler(), BayesianRidge())}).fit(names, y)
    assert list(named.feature_names_in_) == ["left", "right"] and named.n_features_in_ == 2
    assert_allclose(named.predict(names), bs.average({**named.members}).fit(names, y).predict(names))


def test_tables_with_categories_and_missing_values_are_taken_as_members_take_them(rng):
    n = 60
    table = pd.DataFrame({"x": rng.normal(size=n), "colour": pd.Categorical(rng.choice(list("abc"), n))})
    y = (table["x"] + 2.0 * (table["colour"] == "a") + 0.2 * rng.normal(size=n)).to_numpy()
    table.loc[3, "x"] = np.nan
    members = {"r": plain(2.0, missing="indicator"), "gp": bs.GPRegressor(missing="indicator", random_state=0)}
    model = bs.average(members).fit(table, y)
    weights = model.weights_["weight"]
    expected = sum(weights[name] * member.predict(table) for name, member in model.members_.items())
    assert_allclose(model.predict(table), expected + weights["constant"] * y.mean())
    assert_allclose(bs.average(model.members_, data=(table, y)).weights_["weight"], weights)
    assert bs.average(model.members_).weights_.loc["constant", "weight"] < 0.02
    with pytest.raises(ValueError, match="missing='indicator'"):
        bs.average({"r": plain(2.0)}).fit(table, y)


@pytest.mark.slow  # starts processes
def test_the_same_numbers_from_several_processes(data):
    X, y = data
    members = {"r": plain(1.0), "gp": bs.GPRegressor()}
    one, two = (AveragedRegressor(members, random_state=5, n_jobs=n).fit(X, y) for n in (1, 2))
    assert_allclose(one.weights_["weight"], two.weights_["weight"], rtol=1e-10)
    assert_allclose(one.predict(X), two.predict(X), rtol=1e-10)
    assert one.members_["gp"].random_state == two.members_["gp"].random_state is not None
    assert one.members["gp"].random_state is None


def test_many_new_rows_are_predicted_in_pieces(three, rng):
    new = rng.uniform(-2, 2, size=(4100, 2))
    model = bs.average(three, weights="evidence")
    assert_allclose(model.predict(new), model.predictive(new).mean)
    assert_allclose(model.log_predictive_density(new, new[:, 0]), model.predictive(new).log_density(new[:, 0]))
    assert model.predict(new, return_quantiles=[0.1, 0.5])[1].shape == (2, 4100)


def test_it_says_what_it_is_made_of(three):
    model = bs.average(three)
    said = model.describe()
    assert said.startswith("AveragedRegressor of 60 rows") and "of the rows left out" in said
    assert model.fit_.describe().startswith("AveragedFit of 60 rows")
    assert all(re.search(rf"% {re.escape(name)} .*nats a row", said) for name in three)
    assert "constant" in model.fit_._repr_html_() and "AveragedRegressor(members={" in repr(model)
    assert list(model.weights_.columns) == [
        "weight", "gain", "gain_error", "difference", "difference_error", "status", "why",
    ]  # fmt: skip


def test_it_says_so_with_members_that_leave_no_rows_out(data):
    """A line of another library, alone and inside another average; and every remark with its advice."""
    X, y = data
    line = bs.average({"line": BayesianRidge()}, progressbar=False)
    for model in (line, bs.average({"inside": line, "rbf": plain(1.0)})):
        said = model.fit(X, X[:, 0] + y).describe()
        assert f"{next(iter(model.members))} " in said and "rows left out" not in said
        assert all(f"{note.name}: {note.value}" in said for note in model.notes_)
    with pytest.warns(NumericalWarning):
        nothing = bs.average({"line": BayesianRidge()}).fit(X, np.cos(1e4 * y))
    assert Status.NO_BETTER_THAN_CONSTANT in nothing.notes_
    assert f"NO_BETTER_THAN_CONSTANT: {Status.NO_BETTER_THAN_CONSTANT.value}" in nothing.describe()


@pytest.mark.filterwarnings("ignore:FELL_BACK")
def test_members_that_see_the_same_rows_share_their_reference(data, monkeypatch):
    """All rows and three folds: four references for three members, the same as that each member has alone."""
    X, y = data
    fitted, original = [], shared_references.fit_stacked

    def counted(*arguments):
        fitted.append(len(arguments[0]))
        return original(*arguments)

    monkeypatch.setattr(shared_references, "fit_stacked", counted)
    makers = {"radial": bs.EvidenceRegressor, "rvm": bs.RVMRegressor, "search": bs.BasisSearchRegressor}
    model = bs.average({name: make() for name, make in makers.items()}).fit(X, y)
    assert sorted(fitted) == [40, 40, 40, 60]
    for name, make in makers.items():  # alone nothing is shared
        alone = make().fit(X, y).predict(X, return_std=True)
        assert np.array_equal(model.members_[name].predict(X, return_std=True), alone)
    assert len(fitted) == 4 + 3
    fitted.clear()
    bs.average({"one": bs.EvidenceRegressor(), "other": bs.EvidenceRegressor(kind="cauchy")}).fit(X, y)
    assert len(fitted) == 8  # other functions are another model


# ---- what is refused


def test_bad_input_is_refused_with_a_remedy(three, data, rng):
    X, y = data
    other = plain(1.0).fit(X, y[::-1].copy() + X[:, 0])
    moved = plain(1.0).fit(X + 0.1, y)
    cases = [
        (DataMismatchError, "different targets", lambda: bs.average({**three, "other": other})),
        (DataMismatchError, "different data", lambda: bs.average({**three, "moved": moved})),
        (DataMismatchError, "fingerprint", lambda: bs.average(three, data=(X, -y))),
        (TypeError, "pair", lambda: bs.average(three, data=X)),
        (TypeError, "dict of name", lambda: bs.average([plain(1.0)])),
        (ValueError, "at least one member", lambda: bs.average({})),
        (ValueError, "cannot be called 'constant'", lambda: bs.average({"constant": plain(1.0)})),
        (ValueError, "cannot be called 'prior'", lambda: bs.average({"prior": plain(1.0)})),
        (TypeError, "must be an estimator", lambda: bs.average({"a": 3})),
        (ValueError, "weights must be", lambda: bs.average(three, weights="best")),
        (ValueError, "densities must be", lambda: bs.average(three, densities="cv")),
        (ValueError, "no member", lambda: bs.average(three, weights={"x": 1.0})),
        (ValueError, "finite number", lambda: bs.average(three, weights={"r 0.5": -1.0})),
        (ValueError, "positive sum", lambda: bs.average(three, weights={"r 0.5": 0.0})),
        (ValueError, "by evidence", lambda: bs.average(three, prior={"r 0.5": 1.0})),
        (ValueError, "missing", lambda: bs.average(three, "evidence", prior={"r 0.5": 1.0})),
        (ValueError, "some members are fitted", lambda: bs.average({**three, "new": plain(1.0)})),
        (ValueError, "not fitted", lambda: bs.average({"new": plain(1.0)}, data=(X, y))),
        (TypeError, "classifier", lambda: bs.average({"a": bs.MLPClassifier()})),
        (ValueError, "0 samples", lambda: bs.average({"a": plain(1.0)}).fit(X[:0], y[:0])),
        (ValueError, "n_jobs", lambda: bs.average(three, n_jobs=0)),
        (TypeError, "predicts no distributions", lambda: bs.average({"a": LinearRegression()}).fit(X, y)),
        (ValueError, "must have the shape|inconsistent", lambda: bs.average(three).log_predictive_density(X, y[:5])),
    ]
    for kind, text, call in cases:
        with pytest.raises(kind, match=text):
            call()


def test_evidences_of_different_kinds_are_not_weighed(data):
    fits = {"a": bs.EvidenceRegressor().fit(*data), "b": plain(1.0).fit(*data)}
    with pytest.raises(ValueError, match=r"'a' has grid, 'b' has type2.*weights='stacking'"):
        bs.average(fits, weights="evidence")
    with pytest.raises(ValueError, match="no evidence"):
        bs.average(
            {"a": bs.MLPRegressor(inference="early-stopping", hidden=2, time_budget=0.2).fit(*data)}, weights="evidence"
        )


def test_members_that_predict_from_a_prior_are_fitted_all_the_same(data):
    model = bs.average({"theirs": GaussianProcessRegressor(alpha=0.04), "r": plain(1.0)})
    assert not hasattr(model, "members_")
    assert model.fit(*data).weights_["weight"].sum() == pytest.approx(1.0)


def test_a_constant_target_is_said(data):
    with pytest.warns(NumericalWarning, match="CONSTANT_TARGET"):
        model = bs.average({"r": plain(1.0), "line": BayesianRidge()}).fit(data[0], np.full(60, 3.0))
    assert_allclose(model.predict(data[0]), 3.0)


def test_an_error_of_a_member_names_it(data):
    X, y = data
    with pytest.raises(ValueError) as caught:
        bs.average({"fine": plain(1.0), "bad": plain(-1.0)}).fit(X, y)
    assert any("'bad'" in note for note in caught.value.__notes__)


def test_mixtures_of_predictions_leave_out_parts_without_weight():
    a = Prediction.normal(np.zeros(2), np.ones(2))
    b = Prediction.normal(np.ones(2), np.full(2, 4.0), np.ones(2))
    mixed = Prediction.mixture([a, b, a], [0.0, 1.0, 0.0])
    assert len(mixed.means) == 1
    assert_allclose(mixed.function.std, 1.0)
    nested = Prediction.mixture([Prediction.mixture([a, b], [0.5, 0.5]), a], [0.4, 0.6])
    assert_allclose(np.exp(nested.log_density(np.zeros(2))), 0.8 * norm.pdf(0) + 0.2 * norm.pdf(0, 1, 2))
