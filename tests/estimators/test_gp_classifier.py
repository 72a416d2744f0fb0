"""GPClassifier: scikit-learn's checks, its engine's numbers, odd data, and what it says when there is nothing to find.

Guards `bayessel.estimators.gp_classifier`, `bayessel.estimators._latent_mixture`,
`bayessel.estimators._class_predictions`, `bayessel.gp.latent.latent_search`, `bayessel.gp.latent.latent_fit`,
`bayessel.gp.latent.states`, `bayessel.gp.relevance`.
"""

import pickle
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.utils.estimator_checks import estimator_checks_generator

import bayessel as bs
from bayessel.covariance import Bias, Linear, Matern52, Noise, SquaredExponential
from bayessel.errors import NumericalWarning
from bayessel.estimators._latent_mixture import held_out_densities, latent_mixture
from bayessel.fit import Status
from bayessel.gp.latent import fit_latent_process
from bayessel.gp.latent.latent_search import refit
from bayessel.gp.latent.states import effective_states, mixed_over_states


def rings(rng, n=80):
    X = rng.normal(size=(n, 2))
    return X, np.where((X**2).sum(axis=1) < 1.2, "in", "out")


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_checks_of_scikit_learn():
    count = 0
    for estimator, check in estimator_checks_generator(bs.GPClassifier(inference="map")):
        try:
            check(estimator)
        except SkipTest:
            continue
        count += 1
    assert count > 40


def test_probabilities_labels_and_log_odds_agree(rng):
    X, y = rings(rng)
    model = bs.GPClassifier().fit(X, y)
    new = rng.normal(size=(50, 2))
    p = model.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(new), np.log(p), rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(new), np.log(p[:, 1] / p[:, 0]), rtol=1e-6, atol=1e-9)
    assert (model.predict(new) == np.where(p[:, 1] > p[:, 0], "out", "in")).all()
    assert model.score(new, np.where((new**2).sum(axis=1) < 1.2, "in", "out")) > 0.85
    densities = model.log_predictive_density(new[:2], ["in", "nowhere"])
    np.testing.assert_allclose(densities, [np.log(p[0, 0]), -np.inf])
    assert model.status_ is Status.CONVERGED
    assert "GPClassifier of 80 rows" in model.describe()
    left_out = model.leave_one_out()
    assert left_out.errors.shape == (80,)
    assert len(model.fit_.inner.parts) > 1
    own = 1.0 - np.abs(left_out.errors)
    np.testing.assert_allclose(left_out.variances, own * (1.0 - own), rtol=1e-6)  # of a label, whatever was mixed
    assert left_out.log_density > 80 * -np.log(2.0)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict_proba(new), p, rtol=1e-6)


def test_same_rows_same_fit_whatever_their_labels_are_called(rng):
    X, y = rings(rng)
    new = rng.normal(size=(9, 2))
    first, second = bs.GPClassifier().fit(X, y), bs.GPClassifier().fit(X, (y == "out").astype(int))
    np.testing.assert_array_equal(first.predict_proba(new), second.predict_proba(new))


def test_units_of_the_inputs_change_nothing(rng):
    X, y = rings(rng)
    new, scale, shift = rng.normal(size=(9, 2)), np.array([1e-4, 3e5]), np.array([7.0, -20.0])
    plain = bs.GPClassifier().fit(X, y).predict_proba(new)
    other = bs.GPClassifier().fit(X * scale + shift, y).predict_proba(new * scale + shift)
    np.testing.assert_allclose(other, plain, atol=1e-4)


def test_mode_alone_is_the_engine(rng):
    X, y = rings(rng)
    model = bs.GPClassifier(inference="map", standardise=False, covariance=Matern52() + Bias()).fit(X, y)
    fit = fit_latent_process(X, (y == "out") * 1.0, "probit", Matern52() + Bias())
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], fit.predict(X).probabilities[:, 1], rtol=1e-9)
    np.testing.assert_allclose(model.log_evidence_, fit.log_evidence)
    assert model.kind_ == "type2-ep"
    assert model.model_evidence_ < model.log_evidence_
    np.testing.assert_allclose(model.width_, np.sqrt(2.0) * model.relevance_["length"])


@pytest.mark.parametrize("n", [90])
def test_three_classes_with_one_evidence(n, rng):
    X = rng.normal(size=(n, 2))
    y = np.array(["a", "b", "c"])[np.argmax(np.stack([X[:, 0], X[:, 1], -X.sum(axis=1)]), axis=0)]
    model = bs.GPClassifier().fit(X, y)
    new = rng.normal(size=(200, 2))
    truth = np.array(["a", "b", "c"])[np.argmax(np.stack([new[:, 0], new[:, 1], -new.sum(axis=1)]), axis=0)]
    assert model.score(new, truth) > 0.85
    assert model.predict_proba(new).shape == model.decision_function(new).shape == (200, 3)
    assert model.kind_ == "type2-laplace"
    assert model.leave_one_out().errors.shape == (n, 3)


def test_noise_is_told_by_a_warning_and_modest_probabilities(rng):
    X, y = rng.normal(size=(60, 3)), rng.permutation(np.repeat([0, 1, 1], 20))
    with pytest.warns(NumericalWarning, match="NO_BETTER_THAN_CONSTANT"):
        model = bs.GPClassifier().fit(X, y)
    p = model.predict_proba(rng.normal(size=(100, 3)))[:, 1]
    assert 0.4 < p.min()
    assert p.max() < 0.9


def test_separable_and_tiny_data_end(rng):
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    model = bs.GPClassifier().fit(x, x[:, 0] > 0.0)
    assert model.predict([[-0.5], [0.5]]).tolist() == [False, True]
    assert model.predict_proba([[0.9]])[0, 1] < 1.0 - 1e-6  # twenty rows do not make anything certain
    with pytest.warns(NumericalWarning, match="TOO_FEW_ROWS"):
        bs.GPClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.warns(NumericalWarning):
        bs.GPClassifier().fit(np.zeros((12, 2)), np.arange(12) % 2)


def test_categories_and_gaps(rng):
    frame = pd.DataFrame({"x": rng.normal(size=60), "kind": rng.choice(["red", "green"], size=60)})
    y = (frame["x"] + (frame["kind"] == "red")) > 0.4
    frame.loc[3, "x"] = np.nan
    model = bs.GPClassifier(missing="indicator").fit(frame, y)
    assert model.score(frame, y) > 0.85
    assert set(model.input_encoding_.names) >= {"x"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"inference": "mc"}, "inference must be"),
        ({"likelihood": "poisson"}, "likelihood must be"),
        ({"approximation": "exact"}, "approximation must be"),
        ({"covariance": SquaredExponential() + Noise()}, "no noise term"),
    ],
)
def test_bad_options(options, said, rng):
    with pytest.raises(ValueError, match=said):
        bs.GPClassifier(**options).fit(*rings(rng))


def test_more_bad_input(rng):
    X, y = rings(rng)
    with pytest.raises(TypeError, match="covariance must be"):
        bs.GPClassifier(covariance="rbf").fit(X, y)
    with pytest.raises(TypeError, match="takes no sample_weight"):
        bs.GPClassifier().fit(X, y, sample_weight=np.ones(80))
    with pytest.raises(TypeError, match="labels of one kind, got int, str together"):
        bs.GPClassifier().fit(X, [1, "a"] * 40)
    with pytest.raises(ValueError, match="at least two classes"):
        bs.GPClassifier().fit(X, np.zeros(80))
    with pytest.raises(ValueError, match="two classes, got 3"):
        bs.GPClassifier(approximation="ep").fit(X, np.arange(80) % 3)


def test_probabilities_are_calibrated_on_a_known_function(rng):
    """Squares of what is off, in units of what they should be: within four standard errors of one."""
    X = rng.uniform(-2.0, 2.0, size=(400, 1))
    p = expit(3.0 * np.sin(2.0 * X[:, 0]))
    model = bs.GPClassifier().fit(X[:200], rng.random(200) < p[:200])
    q, y = model.predict_proba(X[200:])[:, 1], rng.random(200) < p[200:]
    z = (y - q).sum() / np.sqrt((q * (1.0 - q)).sum())
    assert abs(z) < 4.0
    assert np.mean((q - p[200:]) ** 2) < 0.02


def test_states_around_the_mode_have_its_spread(rng):
    X, y = rings(rng, 60)
    fit = mixed_over_states(fit_latent_process(X, (y == "in") * 1.0, "probit"), 0)
    assert len(fit.thetas) == 24
    np.testing.assert_allclose(np.logaddexp.reduce(fit.log_weights), 0.0, atol=1e-12)
    assert 3.0 < effective_states(fit.log_weights) <= 24.0
    weights = np.exp(fit.log_weights)
    mean = weights @ fit.thetas
    assert (np.abs(mean - fit.theta) < 3.0 * fit.theta_std + 0.5).all()


def test_states_are_weighed_by_what_they_were_drawn_from(rng):
    """Weighted mean and variance of θ are those of the posterior by a grid, where the normal is a poor guess."""
    X, t = rng.normal(size=(14, 1)), (rng.random(14) < 0.4) * 1.0
    fit = fit_latent_process(X, t, "probit", SquaredExponential() + Bias(), fixed={"log w[0]": 0.0, "log a0": 0.0})
    free = np.flatnonzero(fit.free)
    assert len(free) == 1
    grid = fit.theta[free[0]] + np.linspace(-8.0, 8.0, 161)
    heights = np.array([fit.log_joint(np.where(fit.free, value, fit.theta)) for value in grid])
    p = np.exp(heights - np.logaddexp.reduce(heights))
    mean, variance = p @ grid, p @ (grid - p @ grid) ** 2
    found = []
    for seed in range(30):
        mixed = mixed_over_states(fit, seed)
        theta, weights = mixed.thetas[:, free[0]], np.exp(mixed.log_weights)
        found.append([weights @ theta, weights @ (theta - mean) ** 2])
    error = 4.0 * np.std(found, axis=0) / np.sqrt(30)
    # weights that are cut off bend both a little
    assert abs(np.mean(found, axis=0)[0] - mean) < error[0] + 0.1 * np.sqrt(variance)
    assert abs(np.mean(found, axis=0)[1] - variance) < error[1] + 0.1 * variance


@pytest.mark.parametrize("name", ["probit", "softmax", "student", "heteroscedastic"])
def test_rows_left_out_over_states_are_those_of_their_densities(name, rng):
    X = rng.normal(size=(50, 1))
    f = np.sin(2.0 * X[:, 0])
    t = {"probit": (f > 0.0) * 1.0, "softmax": np.digitize(f, [-0.5, 0.5])}.get(name, f + 0.2 * rng.normal(size=50))
    fit = mixed_over_states(fit_latent_process(X, t, name), 0)
    assert len(fit.thetas) > 4
    found = fit.leave_one_out()
    if name == "probit":
        own = 1.0 - np.abs(found.errors)
    elif name == "softmax":
        own = 1.0 - found.errors[np.arange(50), t.astype(int)]
    else:
        own = np.exp(found.prediction.log_density(t))
    np.testing.assert_allclose(np.log(own), found.log_densities, atol=5e-3 if name == "softmax" else 1e-6)


def test_parts_of_little_weight_are_left_out_and_the_constant_sooner(rng, monkeypatch):
    X, y = rings(rng, 24)
    monkeypatch.setattr("bayessel.estimators.held_out.stacking_weights", lambda _: np.array([0.7, 0.15, 0.07, 0.08]))
    found = latent_mixture(
        X, (y == "in") * 1.0, "probit", None, approximation="laplace", offset=None, seed=0, mode_alone=False
    )
    np.testing.assert_allclose(found.weights, np.array([0.7, 0.15, 0.07]) / 0.92)
    monkeypatch.setattr("bayessel.estimators.held_out.stacking_weights", lambda _: np.array([0.7, 0.12, 0.03, 0.15]))
    found = latent_mixture(
        X, (y == "in") * 1.0, "probit", None, approximation="laplace", offset=None, seed=0, mode_alone=False
    )
    np.testing.assert_allclose(found.weights, np.array([0.7, 0.12, 0.15]) / 0.97)


def test_folds_know_nothing_of_the_rows_held_out(rng):
    """Labels by the toss of a coin: many lengths fit them, and no fold is predicted better than by frequencies."""
    X, t = rng.normal(size=(60, 8)), (rng.random(60) < 0.5) * 1.0
    fits = [fit_latent_process(X, t, "probit", one) for one in (None, Linear() + Bias(), Bias())]
    densities = held_out_densities(fits)
    gains = densities[:-1] - densities[-1]
    assert (gains.mean(axis=1) < 4.0 * gains.std(axis=1) / np.sqrt(60)).all()
    flattered = fits[0].leave_one_out().log_densities - fits[-1].leave_one_out().log_densities
    assert flattered.mean() > gains[0].mean()
    part = refit(fits[0], np.arange(30))
    assert part.n_rows == 30
    assert held_out_densities([fit_latent_process(X[:8], np.arange(8) % 2.0, "probit", Bias())]) is None
