"""Reliability of predicted probabilities: right ones pass, wrong ones are told apart, scores are those written out.

Guards `bayessel.diagnostics.class_reliability`.
"""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bayessel as bs
from bayessel.diagnostics import class_calibration, predictive_calibration
from bayessel.diagnostics.class_reliability import ClassCalibration, of_new_rows
from bayessel.prediction import ClassPrediction


def drawn(rng, n, distort=lambda f: f):
    f = 2.0 * rng.normal(size=n)
    p = expit(distort(f))
    return ClassCalibration("new rows", np.column_stack([1.0 - p, p]), (rng.random(n) < expit(f)).astype(int))


def test_statistics_of_right_probabilities_are_standard_normal(rng):
    z = np.array([drawn(rng, 200).z for _ in range(400)])
    assert (np.abs(z.mean(axis=0)) < 4.0 / np.sqrt(400)).all()
    assert (np.abs(z.var(axis=0) - 1.0) < 4.0 * np.sqrt(2.0 / 400)).all()


@pytest.mark.parametrize(
    ("distort", "said"),
    [
        (lambda f: f + 1.0, "too high throughout"),
        (lambda f: f - 1.0, "too low throughout"),
        (lambda f: 3.0 * f, "too near to nought and one"),
        (lambda f: 0.3 * f, "too far from nought and one"),
    ],
)
def test_wrong_probabilities_are_told_apart(distort, said, rng):
    found = drawn(rng, 800, distort)
    assert not found.calibrated
    assert said in found.verdict()
    assert found.table["z"].abs().max() > 2.0


def test_right_probabilities_pass(rng):
    found = drawn(rng, 800)
    assert found.calibrated
    assert "about right" in str(found)
    assert found.table["rows"].sum() == 800
    assert "about right" in found._repr_html_()
    assert len(found.plot().axes) == 2


def test_scores_are_those_of_scikit_learn(rng):
    found = drawn(rng, 100, lambda f: 1.5 * f)
    p = found.probabilities[:, 1]
    np.testing.assert_allclose(found.log_loss, log_loss(found.codes, p))
    np.testing.assert_allclose(found.brier, brier_score_loss(found.codes, p))
    np.testing.assert_allclose(found.error, np.mean((p > 0.5) != found.codes))


def test_rows_left_out_and_new_rows_of_classifiers(rng):
    X = rng.normal(size=(120, 2))
    y = np.where(rng.random(120) < expit(2.0 * X[:, 0]), "yes", "no")
    model = bs.GPClassifier(inference="map").fit(X[:80], y[:80])
    left_out = class_calibration(model)
    np.testing.assert_allclose(-80 * left_out.log_loss, model.leave_one_out().log_density, rtol=1e-6)
    assert (left_out.codes == (y[:80] == "yes")).all()
    new = class_calibration(model, X[80:], y[80:])
    np.testing.assert_allclose(new.log_loss, -model.log_predictive_density(X[80:], y[80:]).mean())
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:80], y[:80])
    assert class_calibration(other, X[80:], y[80:]).n_rows == 40


def test_three_classes(rng):
    X = rng.normal(size=(90, 2))
    y = np.argmax(np.stack([X[:, 0], X[:, 1], -X.sum(axis=1)]) + 0.3 * rng.normal(size=(3, 90)), axis=0)
    model = bs.GPClassifier(inference="map").fit(X, y)
    found = class_calibration(model)
    assert (found.codes == y).all()
    assert found.probabilities.shape == (90, 3)
    assert 0.0 < found.error < 0.4
    p = model.predict_proba(X)
    wanted = np.mean(((p - np.eye(3)[y]) ** 2).sum(axis=1))
    np.testing.assert_allclose(of_new_rows(ClassPrediction(model.classes_, p), y).brier, wanted)


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
def test_bad_input(rng):
    with pytest.raises(ValueError, match="at least 10 rows"):
        ClassPredictions = ClassPrediction(np.array([0, 1]), np.full((3, 2), 0.5))
        of_new_rows(ClassPredictions, [0, 1, 0])
    with pytest.raises(ValueError, match="a label for each of 12 rows"):
        of_new_rows(ClassPrediction(np.array([0, 1]), np.full((12, 2), 0.5)), [0, 1])
    with pytest.raises(ValueError, match="both X and y"):
        class_calibration(bs.EvidenceClassifier(), y=[0])
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    regression = bs.EvidenceRegressor().fit(x, x[:, 0] + 0.3 * rng.normal(size=20))
    with pytest.raises(ValueError, match="targets here are numbers"):
        class_calibration(regression)
    with pytest.raises(TypeError, match="no predict_proba"):
        class_calibration(regression, x, np.zeros(20))
    with pytest.raises(ValueError, match="use class_calibration"):
        predictive_calibration(bs.EvidenceClassifier().fit(x, x[:, 0] > 0.0))
    # a label that was not there in training has no probability
    found = of_new_rows(ClassPrediction(np.array([0, 1]), np.full((12, 2), 0.5)), [2] * 12)
    assert found.log_loss == np.inf


def test_confidence_that_fails_is_not_called_right():
    p = np.full(20, 1e-9)
    found = ClassCalibration("new rows", np.column_stack([1.0 - p, p]), np.ones(20, dtype=int))
    assert not found.calibrated
    assert logit(p[0]) < -20.0
