"""Sparse regressors of several targets against one estimator for each.

Guards `bayessel.estimators.several_targets`, `bayessel.several_fits`.
"""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.base import clone

import bayessel as bs
from bayessel.errors import NumericalWarning
from bayessel.estimators.several_targets import beside
from bayessel.fit import Evidence, Status
from bayessel.prediction import Prediction
from bayessel.several_fits import sum_of

REGRESSORS = {
    "evidence": bs.EvidenceRegressor(),
    "evidence, fitted width": bs.EvidenceRegressor(width="fit"),
    "ridge": bs.RidgeRBFRegressor(),
    "rvm": bs.RVMRegressor(),
    "rvm, healed": bs.RVMRegressor(width=1.0, augment=True),
    "forward": bs.ForwardSelectionRegressor(),
    "search": bs.BasisSearchRegressor(width=1.0, progressbar=False),
}


def table(rng, n=40):
    X = pd.DataFrame({"depth": rng.uniform(-2.0, 2.0, n), "soil": pd.Categorical(rng.choice(["clay", "sand"], n))})
    slope = np.where(X["soil"] == "clay", 50.0, 20.0)
    wave = np.sin(2.0 * X["depth"]) + 0.1 * rng.normal(size=n)
    return X, pd.DataFrame({"wave": wave, "line": slope * X["depth"] + rng.normal(size=n)})


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        yield


@pytest.mark.parametrize("name", REGRESSORS)
def test_each_target_has_what_an_estimator_of_its_own_says(name, rng):
    X, Y = table(rng)
    new, there = table(rng, 7)
    levels = rng.uniform(0.5, 2.0, len(X))
    known = {} if name == "rvm, healed" else {"noise_std": levels}
    model = clone(REGRESSORS[name]).fit(X, Y, **known)
    each = [clone(REGRESSORS[name]).fit(X, Y[column], **known) for column in Y]
    mean, std = model.predict(new, return_std=True)
    assert mean.shape == std.shape == (7, 2) and model.predict(new).shape == (7, 2)
    for k, one in enumerate(each):
        wanted = one.predict(new, return_std=True)
        np.testing.assert_allclose((mean[:, k], std[:, k]), wanted, rtol=1e-9)
        np.testing.assert_allclose(model.predictive(new).quantile(0.9)[:, k], one.predictive(new).quantile(0.9))
        np.testing.assert_array_equal(model.coef_[k], one.coef_)
        np.testing.assert_allclose(model.noise_std_[k], one.noise_std_)
    densities = sum(one.log_predictive_density(new, there[column]) for one, column in zip(each, Y, strict=True))
    np.testing.assert_allclose(model.log_predictive_density(new, there), densities, rtol=1e-9)
    np.testing.assert_allclose(model.log_evidence_, sum(one.log_evidence_ for one in each))
    if hasattr(each[0], "model_evidence_"):
        np.testing.assert_allclose(model.model_evidence_, sum(one.model_evidence_ for one in each))
    left_out, others = model.leave_one_out(), [one.leave_one_out() for one in each]
    np.testing.assert_allclose(left_out.errors, np.column_stack([one.errors for one in others]), rtol=1e-9)
    np.testing.assert_allclose(left_out.log_densities, sum(one.log_densities for one in others), rtol=1e-9)
    rows = model.input_encoding_.encode(np.column_stack([new["depth"], new["soil"].cat.codes]).astype(float))
    if name != "rvm, healed":  # the healing is of the estimator, not of its fit
        np.testing.assert_allclose(model.fit_.predict(rows).mean, mean, rtol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert "2 outputs, a fit each" in model.describe()
    assert model.n_basis_.tolist() == [one.n_basis_ for one in each]


def test_what_is_of_one_target_is_found_with_its_output(rng):
    X, Y = table(rng)
    model = bs.ForwardSelectionRegressor(width=1.0).fit(X, Y)
    for name in ("to_pymc", "plot_path", "plot_centres"):
        with pytest.raises(AttributeError, match=rf"see outputs_\[0\]\.{name}"):
            getattr(model, name)()
        getattr(model.outputs_[0], name)()
    with pytest.raises(ValueError, match="y must have a column for each of 2 targets"):
        model.log_predictive_density(X, Y["wave"])
    with pytest.raises(ValueError, match="has 2 outputs"):
        bs.diagnostics.compare({"both": model})
    assert model.fit(X, Y["wave"]).outputs_ is None and model.predict(X).shape == (len(X),)


def test_the_worst_of_all_is_said(rng):
    X, Y = table(rng)
    with pytest.warns(NumericalWarning, match="CONSTANT_TARGET"):
        model = bs.RVMRegressor().fit(X, np.column_stack([Y["wave"], np.full(len(X), 3.0)]))
    assert model.status_ is Status.CONSTANT_TARGET
    np.testing.assert_allclose(model.predict(X)[:, 1], 3.0)


def test_evidence_adds_up_and_errors_add_in_squares():
    parts = [Evidence(-3.0, "sampled", 0.3), Evidence(1.0, "sampled", 0.4), Evidence(2.0, "sampled")]
    found = sum_of(parts)
    assert (found.value, found.kind) == (0.0, "sampled") and found.error == pytest.approx(0.5)
    assert sum_of([parts[2]]).error is None


def test_mixtures_of_unequal_size_lie_beside_each_other(rng):
    parts = [
        Prediction(rng.normal(size=(s, 4)), rng.uniform(0.5, 2.0, (s, 4)), np.log(rng.dirichlet(np.ones(s), 4).T))
        for s in (3, 1)
    ]
    both, y = beside(parts), rng.normal(size=(4, 2))
    for k, part in enumerate(parts):
        normal = -0.5 * (y[:, k] - part.means) ** 2 / part.variances - 0.5 * np.log(2.0 * np.pi * part.variances)
        np.testing.assert_allclose(both.log_density(y)[:, k], logsumexp(part.log_weights + normal, axis=0), rtol=1e-12)
