"""What estimators say of their fit: rows left out, their coverage, and every remark.

Guards `bayessel.estimators._description`.
"""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError

import bayessel as bs
from bayessel.errors import NumericalWarning

ESTIMATORS = {
    "evidence": bs.EvidenceRegressor(),
    "type2": bs.EvidenceRegressor(inference="type2"),
    "ridge": bs.RidgeRBFRegressor(),
    "rvm": bs.RVMRegressor(),
    "search": bs.BasisSearchRegressor(),
    "forward": bs.ForwardSelectionRegressor(),
    "gp": bs.GPRegressor(),
    "mlp": bs.MLPRegressor(hidden=2, inference="evidence", random_state=0),
}


@pytest.mark.filterwarnings("ignore::bayessel.errors.NumericalWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_say_how_many_rows_left_out_they_cover(rng, name):
    X = rng.normal(size=(40, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=40)
    model = ESTIMATORS[name].fit(X, y)
    out = model.leave_one_out()
    # counted once more, by quantiles
    low, high = out.prediction.quantile([0.05, 0.95])
    inside = np.mean((low <= y) & (y <= high))
    said = model.describe()
    assert said.startswith(f"{type(model).__name__} of 40 rows")
    assert f"90 % intervals cover {100 * inside:.0f} % of the rows left out" in said
    assert f"90 % intervals cover {100 * inside:.0f} % of the rows left out" in model.fit_.describe()
    mean, std = model.predict(X[:4], return_std=True)
    there = model.predictive(X[:4])
    np.testing.assert_allclose(there.mean, mean)
    np.testing.assert_allclose(there.std, std)


def test_every_remark_is_described(rng):
    X = rng.normal(size=(60, 2))
    y = rng.normal(size=60)
    y[:2] += 40.0
    with pytest.warns(NumericalWarning):
        model = bs.RVMRegressor(inference="type2").fit(X, y)
    assert bs.Status.HEAVY_TAILS in model.notes_ and len(set(model.notes_)) > 1
    said = model.describe()
    assert f"{model.status_.name}" in said.splitlines()[0]
    assert all(f"{note.name}: " in said for note in model.notes_)


def test_several_outputs_are_counted_together(rng):
    X = rng.normal(size=(40, 1))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 0]]) + 0.3 * rng.normal(size=(40, 2))
    model = bs.EvidenceRegressor(width=1.0).fit(X, Y)
    out = model.leave_one_out()
    inside = np.mean(np.abs(out.errors) <= norm.ppf(0.95) * np.sqrt(out.variances))
    assert f"cover {100 * inside:.0f} %" in model.describe()
    assert model.predictive(X[:3]).mean.shape == (3, 2)


def test_only_fitted_estimators_are_described():
    for model in (bs.RVMRegressor(), bs.EvidenceRegressor(), bs.GPRegressor()):
        with pytest.raises(NotFittedError):
            model.describe()
