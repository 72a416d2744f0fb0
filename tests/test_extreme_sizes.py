"""Sizes at the ends of double precision are refused with a reason, or answered; no warning of NumPy's gets out.

Guards `bayessel._check`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.diagnostics import bridge_sampling

ROWS = np.random.default_rng(4).normal(size=(8, 2))
T = ROWS[:, 0] - 0.3 * ROWS[:, 1]


def test_infinities_in_single_precision_are_named():
    Phi = np.array([[np.inf, 1.0], [-np.inf, 2.0]], dtype=np.float32)
    with pytest.raises(ValueError, match="Phi must be finite"):
        bs.linear.fit_rvm(Phi, [1.0, 2.0])


@pytest.mark.parametrize("arithmetic", ["auto", "qr", "gram"])
@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize(("rows", "target"), [(1e200, 1.0), (1.0, 1e300)])
def test_a_stream_of_huge_numbers_is_refused(rows, target, centre, arithmetic):
    with pytest.raises(ValueError, match="rescale"):
        bs.linear.fit_evidence_stream([(rows * ROWS, target * T)] * 4, centre=centre, arithmetic=arithmetic)


@pytest.mark.parametrize("size", [1e200, 1e-310])
def test_a_design_beyond_squares_is_refused(size):
    for call in (bs.linear.posterior, bs.linear.log_evidence):
        with pytest.raises(ValueError, match="Phi has values of size"):
            call(size * ROWS, T, [1.0, 2.0], 1.0, centre=True)
    with pytest.raises(ValueError, match="Phi has values of size"):
        bs.linear.criteria(size * ROWS, T, 0.0)


def test_precisions_beyond_double_precision_are_refused():
    with pytest.raises(ValueError, match="so far apart"):
        bs.linear.fit_rvm(1e60 * ROWS, 1e-99 * T)


def test_least_squares_on_columns_of_different_size():
    """The same predictions as on columns of one size."""
    sizes = np.array([1e-50, 1.0])
    there = bs.linear.forward_select(ROWS * sizes, T, "ols").predict(ROWS * sizes)
    here = bs.linear.forward_select(ROWS, T, "ols").predict(ROWS)
    np.testing.assert_allclose(there.mean, here.mean, rtol=1e-9)
    assert np.isfinite(there.std).all() and (there.std > 0.0).all()


def test_inducing_bound_needs_fourth_powers():
    with pytest.raises(ValueError, match="t has values of size"):
        bs.gp.fit_inducing(ROWS, 1e80 * T, n_inducing=3)


def test_multiquadrics_need_squares_of_distances():
    with pytest.raises(ValueError, match="less than 1e\\+150 widths"):
        bs.RBFDictionary(1e155 * ROWS, 1.0, kind="multiquadric").design(ROWS)


def test_network_on_huge_inputs_says_what_to_do():
    with pytest.raises(ValueError, match="mean 0 and standard deviation 1"):
        bs.mlp.fit_network_evidence(1e30 * ROWS, T, hidden=2, n_starts=1, random_state=0)


def test_bridge_of_huge_draws_is_refused():
    draws = 1e200 * np.random.default_rng(1).normal(size=(2, 40, 2))
    with pytest.raises(ValueError, match="draws has values of size"):
        bridge_sampling(lambda x: -0.5 * float((x / 1e200) @ (x / 1e200)), draws)


def test_labels_beyond_integers_are_refused_by_name():
    with pytest.raises(ValueError, match="label type"):
        bs.LOOMIClassifier(width=1.0).fit(ROWS, 1e300 * T)


def test_a_width_that_is_a_list_is_refused():
    with pytest.raises((TypeError, ValueError), match="every width"):
        bs.compare_widths(ROWS, T, [[], 2.0])
