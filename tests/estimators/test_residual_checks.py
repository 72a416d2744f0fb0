"""Residuals that are no normal noise are named, normal ones are not.

Guards `bayessel.estimators.residual_checks`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.estimators.residual_checks import remarks_on_residuals


@pytest.mark.parametrize("n", [20, 60, 400])
def test_normal_noise_is_not_remarked_on(rng, n):
    flagged = [bool(remarks_on_residuals(rng.normal(size=n))) for _ in range(400)]
    assert np.mean(flagged) < 0.02  # 0.004 of 20 rows, less of more


def test_heavy_tails_are(rng):
    flagged = [bool(remarks_on_residuals(rng.standard_t(1.2, size=100))) for _ in range(50)]
    assert np.mean(flagged) > 0.95
    both = np.column_stack([rng.normal(size=100), rng.standard_t(1.0, size=100)])
    assert remarks_on_residuals(both) == (bs.Status.HEAVY_TAILS,)
    assert remarks_on_residuals(np.append(np.zeros(99), 5.0)) == ()  # no robust standard deviation


@pytest.mark.parametrize(
    "make",
    [
        lambda: bs.EvidenceRegressor(width=2.0),
        bs.EvidenceRegressor,
        lambda: bs.RVMRegressor(width=2.0),
        lambda: bs.BasisSearchRegressor(width=2.0),
        bs.GPRegressor,
    ],
)
def test_fits_to_outliers_warn(rng, make):
    X = np.sort(rng.uniform(-3.0, 3.0, size=(120, 1)), axis=0)
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=120)
    y[::15] += rng.choice([-30.0, 30.0], size=8)
    with pytest.warns(NumericalWarning) as said:
        model = make().fit(X, y)
    assert model.status_.severity >= bs.Status.HEAVY_TAILS.severity
    assert any(name in str(said[0].message) for name in ("HEAVY_TAILS", "NO_BETTER_THAN_CONSTANT", "PURE_NOISE"))
