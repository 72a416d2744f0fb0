"""Other units and origins of inputs and target change the units of the predictions, and nothing else.

Guards `bayessel.estimators._sparse_attributes`.
"""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayessel as bs

#: what is left: rounding of numbers far from zero, and of searches that stop within their tolerances
MAKERS = {
    "evidence": (bs.EvidenceRegressor, 1e-8),
    "ridge": (bs.RidgeRBFRegressor, 1e-5),
    "rvm": (bs.RVMRegressor, 1e-5),
    "search": (bs.BasisSearchRegressor, 1e-8),
    "forward": (bs.ForwardSelectionRegressor, 1e-8),
    "gp": (partial(bs.GPRegressor, random_state=0), 1e-4),
    "gp, mode": (partial(bs.GPRegressor, inference="map"), 1e-4),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore:INTERPOLATION")
def test_affine_changes_of_inputs_and_target(rng, name):
    make, tolerance = MAKERS[name]
    X, new = rng.normal(size=(70, 3)), 1.5 * rng.normal(size=(20, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=70)
    model = make().fit(X, y)
    mean, std = model.predict(new, return_std=True)
    for unit, origin, scale, shift in (
        (1.0, 3e4, 1.0, 0.0),
        (np.array([1000.0, 1e-3, 1.0]), np.array([3e4, 5.0, -1e3]), 1.0, 0.0),
        (1.0, 0.0, 0.02, 3e3),
    ):
        other = make().fit(unit * X + origin, scale * y + shift)
        there, spread = other.predict(unit * new + origin, return_std=True)
        assert_allclose((there - shift) / scale, mean, rtol=0.0, atol=tolerance)
        assert_allclose(spread / scale, std, rtol=tolerance)
        assert other.status_ is model.status_


def test_the_bias_of_a_default_machine_is_the_last_function_in_use(rng):
    X = rng.normal(size=(60, 2))
    y = np.sin(2.0 * X[:, 0]) + 100.0 + 0.2 * rng.normal(size=60)
    model = bs.RVMRegressor().fit(X, y)
    assert model.basis_[-1] == model.dictionary_.n_columns - 1 and model.alpha_[-1] == 0.0
    assert len(model.coef_) == len(model.alpha_) == len(model.basis_) == model.n_basis_
    assert_allclose(model.dictionary_.design(X)[:, model.basis_] @ model.coef_, model.predict(X), rtol=1e-10)
    names = [model.dictionary_.names[i] for i in model.basis_]
    assert any(list(labels) == names for labels in model.to_pymc().coords.values())
    healed, std = model.predict([[40.0, 40.0]], return_std=True, augment="function")
    assert abs(healed[0] - 100.0) < 10.0 * std[0]
