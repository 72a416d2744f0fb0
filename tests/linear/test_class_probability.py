"""Probabilities of two-class models: the logistic model on the terms, and its mean with the slope.

Guards `bayessel.linear.class_probability`, `bayessel.linear.logistic_terms`, `bayessel.linear.logistic_slope`.
"""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit

from bayessel.linear.class_probability import ClassProbability
from bayessel.linear.logistic_slope import LogisticSlope
from bayessel.linear.logistic_terms import OF_CONSTANT, PRECISIONS, LogisticTerms, posterior, towards_zero


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def data(rng, n=60, m=2):
    Phi = np.exp(-(rng.normal(size=(n, m)) ** 2))
    y = np.where(rng.uniform(size=n) < expit(4.0 * Phi[:, 0] - 3.0), 1.0, -1.0)
    return Phi, y


def height(H, y, omega, prior, w):
    return -(omega @ np.logaddexp(0.0, -y * (H @ w))) - 0.5 * prior @ w**2


def test_the_mode_and_the_evidence_are_those_of_other_routes(rng):
    """The mode by BFGS, the curvature by differences, and the evidence itself by quadrature in one dimension."""
    H = np.c_[np.ones(40), rng.normal(size=(40, 3))]
    y = np.where(rng.uniform(size=40) < expit(H @ [0.3, 1.0, -1.0, 0.0]), 1.0, -1.0)
    omega = rng.uniform(0.5, 2.0, 40)
    prior = np.array([0.1, 2.0, 2.0, 2.0])
    w, factor, evidence = posterior(H, y, omega, prior, np.zeros(4))
    other = minimize(lambda v: -height(H, y, omega, prior, v), np.zeros(4), tol=1e-10)
    np.testing.assert_allclose(w, other.x, atol=1e-5)
    step = 1e-4 * np.eye(4)
    curvature = [
        [
            (height(H, y, omega, prior, w + a + b) - height(H, y, omega, prior, w + a - b))
            - (height(H, y, omega, prior, w - a + b) - height(H, y, omega, prior, w - a - b))
            for a in step
        ]
        for b in step
    ]
    L = np.tril(factor[0])
    np.testing.assert_allclose(L @ L.T, -np.array(curvature) / 4e-8, rtol=1e-3, atol=1e-3)
    laplace = height(H, y, omega, prior, w) + 0.5 * np.log(prior).sum() - 0.5 * np.linalg.slogdet(L @ L.T)[1]
    assert evidence == pytest.approx(laplace, rel=1e-9)
    one, a = np.ones((400, 1)), np.array([0.7])
    y, omega = np.where(rng.uniform(size=400) < 0.7, 1.0, -1.0), np.ones(400)
    w, factor, evidence = posterior(one, y, omega, a, np.zeros(1))
    top = height(one, y, omega, a, w)
    whole = quad(lambda u: np.exp(height(one, y, omega, a, np.array([u])) - top), -3, 5, points=w)[0]
    assert evidence == pytest.approx(top + np.log(whole * np.sqrt(a[0] / (2 * np.pi))), abs=5e-3)


def test_the_mean_over_log_odds_is_close_to_the_integral():
    for m in (-3.0, 0.2, 1.5):
        for v in (0.1, 1.0, 6.0):
            truth = quad(lambda u, m=m, v=v: expit(m + np.sqrt(v) * u) * np.exp(-0.5 * u * u), -12, 12)[0]
            assert expit(towards_zero(np.array(m), np.array(v))) == pytest.approx(truth / np.sqrt(2 * np.pi), abs=0.02)


def test_the_precision_is_that_of_the_largest_evidence_whatever_the_scale(rng):
    Phi, y = data(rng)
    model = LogisticTerms(Phi, y)
    Q = np.linalg.qr(np.c_[np.ones(60), Phi])[0] * np.sqrt(60)
    evidences = [posterior(Q, y, np.ones(60), np.r_[OF_CONSTANT, a, a], np.zeros(3))[2] for a in PRECISIONS]
    assert model.log_evidence == pytest.approx(max(evidences), rel=1e-7)
    assert model.precision == PRECISIONS[np.argmax(evidences)]
    new = rng.uniform(size=(20, 2))
    np.testing.assert_allclose(
        LogisticTerms(Phi * [1e-5, 1e4], y).probability(new * [1e-5, 1e4]), model.probability(new)
    )
    mixed = np.array([[1.0, 0.5], [0.0, 1.0]])  # another basis of the same space of which the first column is the same
    np.testing.assert_allclose(
        LogisticTerms(Phi @ mixed, y).probability(new @ mixed), model.probability(new), rtol=1e-6
    )
    # labels that have nothing to do with the columns: close to one probability for all
    y = np.where(rng.uniform(size=60) < 0.3, 1.0, -1.0)
    p = LogisticTerms(rng.normal(size=(60, 2)), y).probability(new)
    assert np.ptp(p) < 0.15 and p.mean() == pytest.approx((y > 0).mean(), abs=0.05)


def test_weights_are_copies(rng):
    Phi, y = data(rng, 40)
    copies = rng.integers(1, 4, 40)
    weighted, repeated = (
        LogisticTerms(Phi, y, copies.astype(float)),
        LogisticTerms(np.repeat(Phi, copies, axis=0), np.repeat(y, copies)),
    )
    # the same likelihood; the prior differs by the unit of the coordinates, √N of rows or of copies
    assert weighted.probability(Phi) == pytest.approx(repeated.probability(Phi), abs=0.03)


def test_leaving_a_row_out_is_close_to_fitting_again(rng):
    Phi, y = data(rng, 24, 3)
    model = LogisticTerms(Phi, y)
    far = 0.0
    for k in range(24):
        rest = np.arange(24) != k
        H = model._coordinates(Phi)
        prior = np.r_[OF_CONSTANT, np.full(H.shape[1] - 1, model.precision)]
        w, (L, _), _ = posterior(H[rest], y[rest], np.ones(23), prior, np.zeros(len(prior)))
        v = np.linalg.solve(np.tril(L), H[k])
        again = float(expit(towards_zero(H[k] @ w, v @ v)))
        assert model.loo_probability[k] == pytest.approx(again, abs=0.03)
        far = max(far, abs(model.probability(Phi[k : k + 1])[0] - again))
    assert far > 0.1  # in-sample probabilities are not those


def test_columns_within_the_span_of_others_change_nothing(rng):
    Phi, y = data(rng)
    new = rng.uniform(size=(9, 2))
    plain = LogisticTerms(Phi, y).probability(new)
    twice = LogisticTerms(np.c_[Phi, Phi[:, :1], np.ones(60)], y).probability(np.c_[new, new[:, :1], np.ones(9)])
    np.testing.assert_allclose(twice, plain, rtol=1e-9)
    few = LogisticTerms(Phi[:2], np.array([1.0, -1.0]))
    assert np.isfinite(few.probability(new)).all()


def test_the_mean_of_both_keeps_to_the_label(rng):
    Phi, y = data(rng)
    f = 2.0 * Phi[:, 1] - 1.0 + 0.1 * y
    both = ClassProbability(Phi, f, y)
    outputs = np.r_[f, -f, 0.0, 1e-300, -1e-300]
    columns = np.r_[Phi, Phi, Phi[:3]]
    p = both.probability(outputs, columns)
    plain = 0.5 * LogisticSlope(f, y).probability(outputs) + 0.5 * LogisticTerms(Phi, y).probability(columns)
    agree = (plain - 0.5) * outputs > 0.0
    assert 10 < agree.sum() < 115
    np.testing.assert_allclose(p[agree], plain[agree], rtol=1e-12)
    np.testing.assert_allclose(p[~agree], 0.5, atol=1e-15)
    assert (np.sign(p - 0.5) == np.sign(outputs)).all()
    odds = both.log_odds(outputs, columns)
    np.testing.assert_allclose(expit(odds), p, rtol=1e-12)
    assert (np.sign(odds) == np.sign(outputs)).all()
    mirror = ClassProbability(Phi, -f, -y).probability(-outputs, columns)  # 1 - p, with all its digits
    np.testing.assert_allclose(odds[agree], np.log(p[agree] / mirror[agree]), rtol=1e-9)
    far = both.log_odds(np.array([1e4, 1e5]), columns[:2])
    assert np.isfinite(far).all() and (far > 0).all()
    assert both.loo_probability.shape == (60,) and ((both.loo_probability > 0.5) == (f > 0.0)).all()


@pytest.mark.filterwarnings("ignore:NO_INFORMATION:bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("case", ["disc", "ball", "linear", "noise"])
def test_it_is_better_than_the_slope_alone(case):
    """Brier scores on new rows, paired over data sets: better, or no worse than by chance where nothing is to gain."""
    from bayessel import LOOMIClassifier

    gain = []
    for seed in range(12):
        rng = np.random.default_rng([3, seed])
        X, new = rng.normal(size=(2, 600, 3))
        X = X[:120]

        def odds(Z):
            if case == "disc":
                return np.where((Z[:, :2] ** 2).sum(axis=1) < 1.2, 2.0, -2.0)
            if case == "ball":
                return 4.0 - 2.0 * (Z**2).sum(axis=1)
            return 1.2 * Z[:, 0] - 1.5 if case == "linear" else np.full(len(Z), -1.0)

        y, t = rng.uniform(size=120) < expit(odds(X)), rng.uniform(size=600) < expit(odds(new))
        model = LOOMIClassifier(width=4.0).fit(X, y)
        f = model.fits_[0].decision(model.dictionary_.design(new))
        slope = model.calibration_[0].slope.probability(f)
        gain.append(np.mean((slope - t) ** 2) - np.mean((model.predict_proba(new)[:, 1] - t) ** 2))
    error = np.std(gain, ddof=1) / np.sqrt(12)
    least = 2.0 * error if case in ("disc", "ball") else -2.0 * error
    assert np.mean(gain) > least, (np.mean(gain), error)
