"""MLPClassifier: probabilities from the draws written out, labels of any sort, bad input.

Guards `bayessel.estimators.mlp_classifier`.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from bayessel.errors import SamplingWarning
from bayessel.mlp import fit_early_stopping, fit_network_evidence
from tests.problems.mlp import NEW, SHORT, C, outputs_written_out, rings, short_classes

pytestmark = pytest.mark.filterwarnings("ignore:CHAINS_DISAGREE")


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_means_over_the_draws(classes):
    model, X, _ = short_classes(classes)
    shift = np.median(X, axis=0)
    scale = np.abs(X - shift).mean(axis=0)
    first, probabilities = model.discarded_ - 6, []
    assert first == 4
    for chain in range(2):
        for draw in range(first, 24):
            f = outputs_written_out(model.trace_, chain, draw, (NEW - shift) / scale)
            f = np.c_[np.zeros(5), f] if classes == 2 else f
            probabilities.append(np.exp(f) / np.exp(f).sum(axis=1, keepdims=True))
    # twenty states in use of forty: ten of each chain, evenly spread
    kept = [k for chain in range(2) for k in 20 * chain + np.arange(1, 20, 2)]
    expected = np.array(probabilities)[kept].mean(axis=0)
    found = model.predict_proba(NEW)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(NEW)), found)
    assert list(model.predict(NEW)) == list(model.classes_[found.argmax(axis=1)])
    odds = np.log(found) - np.log1p(-found)
    np.testing.assert_allclose(model.decision_function(NEW), odds[:, 1] if classes == 2 else odds, rtol=1e-7)


@pytest.mark.parametrize("classes", [2, 3])
def test_densities_are_those_of_the_labels(classes):
    model, X, y = short_classes(classes)
    p = model.predict_proba(X)
    place = np.searchsorted(model.classes_, y)
    np.testing.assert_allclose(model.log_predictive_density(X, y), np.log(p[np.arange(len(X)), place]))
    assert model.log_predictive_density(X[:1], ["nowhere"]) == [-np.inf]
    assert model.log_predictive_density(X, y).mean() > -np.log(classes)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["mc", "early-stopping", "evidence"])
def test_probabilities_come_close_to_those_that_made_the_labels(rng, how):
    X = rng.normal(size=(700, 2))
    log_odds = np.c_[np.zeros(700), 2 * (X**2).sum(axis=1) - 3, 3 * X[:, 0] - 1]
    for classes in (2, 3):
        p = np.exp(log_odds[:, :classes])
        p /= p.sum(axis=1, keepdims=True)
        y = (rng.random((700, 1)) > p.cumsum(axis=1)).sum(axis=1)
        options = {"draws": 100, "tune": 50, "updates_per_draw": 3} if how == "mc" else {}
        model = C(how, random_state=0, hidden=6, progressbar=False, **options).fit(X[:400], y[:400])
        found, true = model.predict_proba(X[400:]), p[400:]
        divergence = (true * (np.log(true) - np.log(found))).sum(axis=1).mean()
        assert 0.0 < divergence < (0.15 if how == "early-stopping" else 0.06)


def test_labels_of_any_sort_and_pieces(rng, monkeypatch):
    from bayessel.estimators import mlp_classifier

    X, y = rings(rng, 24)
    names = C(**SHORT).fit(X, y)
    numbers = C(**SHORT).fit(pd.DataFrame(X), pd.Series(y).map({"inner": -7, "middle": 3}))
    np.testing.assert_allclose(names.predict_proba(X), numbers.predict_proba(pd.DataFrame(X)), rtol=1e-12)
    assert set(numbers.predict(pd.DataFrame(X))) <= {-7, 3} and list(names.classes_) == ["inner", "middle"]
    whole = names.predict_proba(X)
    monkeypatch.setattr(mlp_classifier, "CHUNK", 1)
    np.testing.assert_allclose(names.predict_proba(X), whole, rtol=1e-12)
    assert names.to_pymc()["t"].eval().shape == (24,)


def test_relevance_is_the_slope_of_the_log_odds():
    model, X, _ = short_classes(2)
    networks = model.fit_.inner.networks
    one = networks.weights
    units = model.fit_.units
    z = (X - units.input_shift) / units.input_scale
    slope = one.input_output[:, None, :, 0] + np.einsum(
        "sh,snh,sih->sni",
        one.hidden_output[..., 0],
        1 - np.tanh(z @ one.input_hidden + one.hidden_bias[:, None]) ** 2,
        one.input_hidden,
    )
    expected = np.median(np.sqrt((slope**2).mean(axis=1)), axis=0) / units.input_scale
    np.testing.assert_allclose(model.relevance_["slope"], expected, rtol=1e-10)
    # of several classes only differences of outputs matter
    model, X, _ = short_classes(3)
    networks = model.fit_.inner.networks
    shifted = networks.packed + 0.0
    shifted[:, networks.architecture.slices["input_output"]] += 5.0
    moved = replace(networks, packed=shifted)
    np.testing.assert_allclose(moved.rms_slopes(z), networks.rms_slopes(z))


def test_slopes_of_several_classes_are_those_of_their_centred_log_probabilities():
    model, X, _ = short_classes(3)
    networks, units, h = model.fit_.inner.networks, model.fit_.units, 1e-6
    z = (X - units.input_shift) / units.input_scale

    def centred(at):
        logs = networks.log_probabilities(at)
        return logs - logs.mean(axis=2, keepdims=True)

    for i, found in enumerate(networks.rms_slopes(z).T):
        step = h * np.eye(z.shape[1])[i]
        slope = (centred(z + step) - centred(z - step)) / (2 * h)
        np.testing.assert_allclose(found, np.sqrt((slope**2).sum(axis=2).mean(axis=1)), rtol=1e-6)


def test_before_the_first_draw_the_shares_of_the_classes_predict(rng):
    for classes in (2, 3):
        X, y = rings(rng, 24, classes)
        y[:3] = "inner"
        with pytest.warns(SamplingWarning, match="no draws of the posterior yet"):
            model = C(hidden=3, tune=1_000_000, draws=5, time_budget=0.05, cores=1, random_state=0).fit(X, y)
        shares = [(y == name).mean() for name in model.classes_]
        np.testing.assert_allclose(model.predict_proba(NEW), np.broadcast_to(shares, (5, classes)), rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "y", "error", "text"),
    [
        ([[np.nan], [1.0]], [0, 1], ValueError, "NaN"),
        ([[0.0], [1.0]], [0, 1, 1], ValueError, "inconsistent numbers of samples"),
        ([[0.0], [1.0]], [1, 1], ValueError, "at least two classes, got one class: 1"),
        ([[0.0], [1.0]], None, ValueError, "requires y"),
        ([[0.0], [1.0], [2.0]], [0.3, 1.7, 2.2], ValueError, "continuous"),
        ([[1e200], [1.0]], [0, 1], ValueError, "rescale"),
        (np.zeros((1001, 1)), np.arange(1001), ValueError, "at most 1000 classes, got 1001; try MLPRegressor"),
    ],
)
@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_bad_data_is_refused_at_the_door(X, y, error, text):
    with pytest.raises(error, match=text):
        C(**SHORT).fit(X, y)


def test_bad_calls():
    for call in ("predict", "predict_proba", "decision_function", "predict_log_proba"):
        with pytest.raises(NotFittedError):
            getattr(C(), call)([[0.0]])
    model, _, _ = short_classes(2)
    with pytest.raises(ValueError, match="1 features"):
        model.predict([[0.0]])


@pytest.mark.filterwarnings("ignore:STEP_LIMIT")
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_the_engines(rng, classes):
    X, y = rings(rng, 45, classes)
    shift = np.median(X, axis=0)
    scale = np.abs(X - shift).mean(axis=0)
    kind, codes = ("logistic", "softmax")[classes - 2], np.unique(y, return_inverse=True)[1]
    for how, function in (("early-stopping", fit_early_stopping), ("evidence", fit_network_evidence)):
        model = C(how, hidden=2, random_state=0, progressbar=False).fit(X, y)
        fit = function(model._rows[0], codes, kind=kind, hidden=2, random_state=0)
        expected = fit.predict((NEW - shift) / scale).probabilities
        np.testing.assert_allclose(model.predict_proba(NEW), expected, rtol=1e-6)
        if how == "evidence":
            np.testing.assert_allclose(model.log_evidence_, fit.log_evidence, rtol=1e-9)
        assert model.score(X, y) > 0.6
