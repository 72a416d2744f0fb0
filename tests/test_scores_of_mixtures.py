"""Ranked probability scores and probability integral transforms of mixtures, against quadrature and closed forms.

Guards `bayessel.prediction`, `bayessel.fit`.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bayessel.fit import LeaveOneOut
from bayessel.prediction import Prediction


def mixture(rng: np.random.Generator, components: int, rows: int) -> Prediction:
    weights = rng.dirichlet(np.ones(components), size=rows).T
    return Prediction(
        rng.normal(size=(components, rows)) * 2.0, rng.uniform(0.05, 3.0, size=(components, rows)), np.log(weights)
    )


def cdf(there: Prediction, row: int, z: float) -> float:
    weights = np.exp(there.log_weights[:, row])
    return float(weights @ norm.cdf(z, there.means[:, row], np.sqrt(there.variances[:, row])))


def test_ranked_probability_score_is_its_integral(rng):
    there, y = mixture(rng, 5, 4), rng.normal(size=4) * 3.0
    for row, found in enumerate(there.crps(y)):
        below = quad(lambda z, row=row: cdf(there, row, z) ** 2, -30.0, y[row], epsabs=1e-11, limit=400)[0]
        above = quad(lambda z, row=row: (1.0 - cdf(there, row, z)) ** 2, y[row], 30.0, epsabs=1e-11, limit=400)[0]
        assert found == pytest.approx(below + above, rel=1e-7)


def test_ranked_probability_score_of_a_normal_in_closed_form(rng):
    y, mean, std = rng.normal(size=6), rng.normal(size=6), rng.uniform(0.1, 2.0, size=6)
    z = (y - mean) / std
    expected = std * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / np.sqrt(np.pi))
    np.testing.assert_allclose(Prediction.normal(mean, std**2).crps(y), expected, rtol=1e-12)
    # of a point it is the distance
    np.testing.assert_allclose(Prediction.normal(mean, 0.0).crps(y), np.abs(y - mean), rtol=1e-12)


def test_many_components_are_scored_by_some_of_them(rng):
    there, y = mixture(rng, 700, 3), rng.normal(size=3)
    whole = np.empty(3)
    for row in range(3):
        weights, means, variances = np.exp(there.log_weights[:, row]), there.means[:, row], there.variances[:, row]

        def distance(m, v):
            s = np.sqrt(v)
            return 2.0 * s * norm.pdf(m / s) + m * (2.0 * norm.cdf(m / s) - 1.0)

        pairs = distance(means[:, None] - means, variances[:, None] + variances)
        whole[row] = weights @ distance(y[row] - means, variances) - 0.5 * weights @ pairs @ weights
    np.testing.assert_allclose(there.crps(y), whole, rtol=0.02)
    equal = Prediction(np.tile(there.means, (1, 1)), there.variances)  # equal weights, several outputs
    shaped = Prediction(equal.means.reshape(700, 3, 1), equal.variances.reshape(700, 3, 1))
    np.testing.assert_array_equal(shaped.crps(y[:, None])[:, 0], equal.crps(y))


def test_integral_transforms_of_mixtures_are_integrals_of_their_densities(rng):
    there, y = mixture(rng, 4, 5), rng.normal(size=5) * 2.0
    out = LeaveOneOut.of(there, y)
    for row in range(5):
        one = Prediction(there.means[:, [row]], there.variances[:, [row]], there.log_weights[:, [row]])
        found = quad(lambda z, one=one: float(np.exp(one.log_density([z]))[0]), -30.0, y[row], limit=400)[0]
        assert out.pit[row] == pytest.approx(found, abs=1e-8)
    np.testing.assert_allclose(out.errors, y - there.mean)
    np.testing.assert_allclose(out.target, y)


def test_coverage_counts_rows_in_central_intervals(rng):
    y = rng.normal(size=4000)
    calibrated = LeaveOneOut.of(Prediction.normal(np.zeros(4000), 1.0), y)
    for level in (0.5, 0.9):
        inside = np.abs(y) <= norm.ppf(0.5 + 0.5 * level)
        assert calibrated.coverage(level) == inside.mean()
        assert abs(calibrated.coverage(level) - level) < 4.0 * np.sqrt(level * (1.0 - level) / 4000)
    sure = LeaveOneOut.of(Prediction.normal(np.zeros(4000), 0.25), y)
    assert sure.coverage(0.9) == pytest.approx(2.0 * norm.cdf(0.5 * norm.ppf(0.95)) - 1.0, abs=0.04)


def test_rows_that_nothing_predicts_have_no_transform():
    errors, variances = np.array([0.5, np.inf, np.nan]), np.array([1.0, np.inf, np.nan])
    out = LeaveOneOut.normal(errors, variances, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(np.isnan(out.pit), [False, True, True])
    assert out.pit[0] == pytest.approx(norm.cdf(0.5))
    assert out.coverage(0.5) == 1.0  # of the one row that has a prediction
    assert np.isnan(LeaveOneOut.normal(*np.full((3, 2), np.nan)).coverage())


def test_labels_have_no_transform():
    out = LeaveOneOut(np.zeros(2), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="labels"):
        _ = out.pit
    with pytest.raises(ValueError, match="target"):
        _ = out.target
