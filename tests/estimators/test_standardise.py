"""The units that estimators work in.

Guards `bayessel.estimators.standardise`.
"""

import numpy as np
import pytest
from scipy.stats import norm

from bayessel.estimators.standardise import Standardisation
from bayessel.fit import LeaveOneOut
from tests.problems.gp import robust


def test_real_columns_are_standardised_robustly_and_two_values_become_0_and_1(rng):
    X = np.column_stack(
        [rng.normal(5, 3, 31), rng.exponential(size=31), np.repeat([7.0, 9.0], [20, 11]), np.full(31, 4.0)]
    )
    y = 100 + 20 * rng.standard_t(3, 31)
    units = Standardisation.of(X, y)
    Z, t = units.inputs(X), units.targets(y)
    for column, raw in ((Z[:, 0], X[:, 0]), (Z[:, 1], X[:, 1]), (t, y)):
        centre, spread = robust(raw)
        np.testing.assert_allclose(column, (raw - centre) / spread, rtol=1e-12, atol=1e-13)
        assert np.median(column) == pytest.approx(0.0, abs=1e-13) and np.abs(column).mean() == pytest.approx(1.0)
    assert np.array_equal(np.unique(Z[:, 2]), [0.0, 1.0]) and not Z[:, 3].any()
    assert units.log_scale == pytest.approx(np.log(robust(y)[1]))
    nothing = Standardisation.none(4)
    assert np.array_equal(nothing.inputs(X), X) and np.array_equal(nothing.targets(y), y) and nothing.log_scale == 0.0


def test_a_target_with_two_values_is_a_real_target():
    units = Standardisation.of(np.arange(4.0)[:, None], np.array([0.0, 0.0, 0.0, 8.0]))
    assert (units.target_shift, units.target_scale) == (0.0, 2.0)


def test_outliers_move_the_units_little(rng):
    X, y = rng.normal(size=(101, 1)), rng.normal(size=101)
    plain = Standardisation.of(X, y)
    X[0] = y[0] = 50.0
    found = Standardisation.of(X, y)
    assert abs(found.target_shift - plain.target_shift) < 0.1 and found.target_scale < 2 * plain.target_scale
    assert found.input_scale[0] < 2 * plain.input_scale[0] < 0.4 * X.std() * 2


def test_the_density_of_several_targets_is_divided_by_all_their_scales(rng):
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 3)) * [0.1, 5.0, 70.0] + [1.0, -4.0, 9.0]
    units = Standardisation.of(X, Y)
    mean, spread = units.targets(Y).mean(axis=0), units.targets(Y).std(axis=0)
    here = norm.logpdf(units.targets(Y), mean, spread).sum(axis=1)
    there = norm.logpdf(Y, Y.mean(axis=0), Y.std(axis=0)).sum(axis=1)
    np.testing.assert_allclose(here - units.log_scale, there, rtol=1e-10)
    moved = units.left_out(LeaveOneOut(units.targets(Y), np.ones((30, 3)), here))
    np.testing.assert_allclose(moved.log_densities, there, rtol=1e-10)
