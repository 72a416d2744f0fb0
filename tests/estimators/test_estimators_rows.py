"""Rows that come and go: the same as fitting again.

Guards `bayessel.estimators._changing_rows`.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import bayessel as bs
from tests.oracles import linear as oracles
from tests.problems.estimators import BOTH, E, R, exact_prediction, kernels, precisions, wave

# --- rows that come and go -------------------------------------------------------------------------------------

STREAMED = {
    "evidence": E(width=0.2, centers=np.linspace(0, 1, 7)[:, None]),
    "evidence, no bias": E(width=0.2, centers=np.linspace(0, 1, 7)[:, None], bias=False),
    "evidence, own centres": E(width=0.05),
    "ridge": R(width=0.2, centers=np.linspace(0, 1, 7)[:, None]),
    "ridge, local": R(width=0.1, penalty="local"),
}


def retrained(model, X, y, new):
    """Evidence, mean and std of the same columns and precisions with other rows, from dense formulas."""
    H = kernels(model, X)
    evidence = np.nan  # of a weight whose prior is improper
    if np.all(precisions(model) > 0):
        evidence = oracles.exact_log_evidence(H, y, precisions(model), model.beta_, centre=model.bias)
    mean, std = exact_prediction(model, X, y, new)
    return evidence, mean, std


def assert_retrained(model, X, y):
    new = np.linspace(-0.1, 1.1, 5)[:, None]
    evidence, mean, std = retrained(model, X, y, new)
    got_mean, got_std = model.predict(new, return_std=True)
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9, nan_ok=True)
    np.testing.assert_allclose(got_mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got_std, std, rtol=1e-9)
    assert model.n_rows_ == len(y)


@pytest.mark.parametrize("name", STREAMED)
def test_adding_and_forgetting_rows_is_retraining(rng, name):
    X, y = wave(rng, 40)
    model = clone(STREAMED[name]).fit(X[:20], y[:20])
    model.partial_fit(X[20:], y[20:])
    assert_retrained(model, X, y)
    drop = np.array([3, 39, 0, 25, 11])
    model.forget(X[drop], y[drop])
    keep = np.setdiff1d(np.arange(40), drop)
    assert_retrained(model, X[keep], y[keep])
    model.partial_fit(X[drop[:1]], y[drop[:1]]).forget(X[keep[:6]], y[keep[:6]]).partial_fit(X[drop[1:]], y[drop[1:]])
    rest = np.concatenate([keep[6:], drop])
    assert_retrained(model, X[rest], y[rest])


def test_order_of_rows_does_not_matter(rng):
    X, y = wave(rng, 60)
    start = clone(STREAMED["evidence"]).fit(X[:20], y[:20])
    one_way, other = pickle.loads(pickle.dumps(start)), pickle.loads(pickle.dumps(start))
    for i in range(20, 60):
        one_way.partial_fit(X[[i]], y[[i]])
    one_way.forget(X[20:50], y[20:50])
    order = rng.permutation(np.arange(50, 60))
    other.partial_fit(X[order], y[order])
    np.testing.assert_allclose(one_way.coef_, other.coef_, rtol=1e-9)
    assert one_way.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-10)


@pytest.mark.parametrize("name", ["evidence", "ridge", "ridge, local"])
def test_reestimate_is_a_fresh_fit_with_the_same_centres(rng, name):
    X, y = wave(rng, 40)
    model = clone(STREAMED[name]).fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    before = np.array(model.beta_)
    model.reestimate()
    fresh = clone(STREAMED[name]).set_params(centers=model.dictionary_.centers).fit(X, y)
    np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=1e-9)
    assert model.log_evidence_ == pytest.approx(fresh.log_evidence_, rel=1e-12)
    assert model.beta_ == pytest.approx(fresh.beta_, rel=1e-12) and model.beta_ != before
    new = [[0.4]]
    np.testing.assert_allclose(model.predict(new, return_std=True), fresh.predict(new, return_std=True), rtol=1e-9)


@BOTH
def test_partial_fit_of_a_new_estimator_is_fit(rng, make):
    X, y = wave(rng)
    assert np.array_equal(make(width=0.3).partial_fit(X, y).coef_, make(width=0.3).fit(X, y).coef_)


@BOTH
def test_duplicate_rows_are_forgotten_one_at_a_time(rng, make):
    X, y = wave(rng, 10)
    twice_X, twice_y = np.vstack([X, X[:1]]), np.append(y, y[0])
    model = make(width=0.3, centers=X[:4]).fit(twice_X, twice_y).forget(X[:1], y[:1])
    assert_retrained(model, X, y)
    with pytest.raises(ValueError, match="not among the rows"):
        model.forget(X[[0, 0]], y[[0, 0]])
    assert_retrained(model, X, y)  # a refused call changes nothing


# --- protocol --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:PURE_NOISE:bayessel.errors.NumericalWarning")
def test_an_interrupted_partial_fit_leaves_what_was_fitted(rng, monkeypatch):
    X, y = rng.uniform(-1, 1, size=(30, 2)), rng.normal(size=30)
    model = bs.EvidenceRegressor(0.8, centers=X[:8]).fit(X[:20], y[:20])
    before = model.predict(X)
    add = bs.linear.RidgeState.add_row
    calls = []

    def interrupted(state, h, t):
        calls.append(t)
        if len(calls) == 5:
            raise KeyboardInterrupt
        add(state, h, t)

    monkeypatch.setattr(bs.linear.RidgeState, "add_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[20:], y[20:])
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X[20:], y[20:])
    assert model.n_rows_ == 30


@pytest.mark.parametrize("name", STREAMED)
def test_the_fit_of_changed_rows_is_a_fit(rng, name):
    """Predictions, leave-one-out and evidence of the rows at hand; later changes leave it alone."""
    X, y = wave(rng, 40)
    model = clone(STREAMED[name]).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).forget(X[:5], y[:5])
    fit, new = model.fit_, np.linspace(0, 1, 7)[:, None]
    columns = model.dictionary_.columns(new)[:, model.basis_[: len(model.basis_) - model.bias]]
    mean, std = model.predict(new, return_std=True)
    there = fit.predict(columns)
    np.testing.assert_allclose(there.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(there.std, std, rtol=1e-9)
    assert fit.n_rows == 35 and np.array_equal(fit.log_evidence, model.log_evidence_, equal_nan=True)
    left_out = model.leave_one_out()
    for i in (0, 17, 34):
        rest = np.delete(np.arange(5, 40), i)
        mean_i, std_i = exact_prediction(model, X[rest], y[rest], X[[5 + i]])
        np.testing.assert_allclose(left_out.errors[i], y[5 + i] - mean_i[0], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(left_out.variances[i], std_i[0] ** 2, rtol=1e-6)
    model.forget(X[20:25], y[20:25])
    assert model.fit_.n_rows == 30 and fit.n_rows == 35
    np.testing.assert_array_equal(fit.predict(columns).std, there.std)


def test_a_far_target_costs_changed_rows_no_digits(rng):
    """Targets around 2^40 in whole numbers: adding and forgetting rows gives the evidence of sixty digits."""
    X, y = wave(rng, 40)
    y = np.round(1000 * y) + 2.0**40
    model = E(width=0.2, centers=np.linspace(0, 1, 7)[:, None]).fit(X[:20], y[:20])
    model.partial_fit(X[20:], y[20:]).forget(X[:8], y[:8])
    H = kernels(model, X[8:])
    exact = oracles.exact_log_evidence(H, y[8:], precisions(model), model.beta_, centre=True)
    assert model.log_evidence_ == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize("make", [E, R])
def test_several_outputs_are_one_fit(rng, make):
    X, y = wave(rng, 40)
    Y = np.column_stack([y, np.cos(5 * X[:, 0]) + 0.1 * rng.normal(size=40), -y])
    many = make(width=0.2).fit(X, Y)
    ones = [make(width=0.2).fit(X, t) for t in Y.T]
    new = many.dictionary_.columns(np.linspace(0, 1, 5)[:, None])
    there, left_out = many.fit_.predict(new), many.leave_one_out()
    assert many.fit_.n_outputs == 3 and many.fit_.fingerprint == many.fingerprint_
    assert many.fit_.log_evidence == pytest.approx(sum(one.log_evidence_ for one in ones))
    assert many.fit_.status is max((one.status_ for one in ones), key=lambda status: status.severity)
    for k, one in enumerate(ones):
        np.testing.assert_allclose(there.mean[:, k], one.fit_.predict(new).mean, rtol=1e-7)
        np.testing.assert_allclose(there.std[:, k], one.fit_.predict(new).std, rtol=1e-7)
        np.testing.assert_allclose(left_out.errors[:, k], one.leave_one_out().errors, rtol=1e-6)
    densities = sum(one.leave_one_out().log_densities for one in ones)
    np.testing.assert_allclose(left_out.log_densities, densities, rtol=1e-6)


def test_functions_at_many_rows_are_at_some_of_them_and_a_note_says_so(rng, monkeypatch):
    X, y = wave(rng, 60)
    monkeypatch.setattr(E, "_most_centres", 25)
    model = E(width=0.2).fit(X, y)
    assert bs.Status.SAMPLED_CANDIDATES in model.notes_ and model.fit_.n_rows == 60
    centres = model.dictionary_.centers
    assert len(centres) == 25 and set(centres[:, 0]) <= set(X[:, 0])
    H = kernels(model, X)
    exact = oracles.exact_log_evidence(H, y, precisions(model), model.beta_, centre=True)
    assert model.log_evidence_ == pytest.approx(exact, abs=1e-7)
    for all_of_them in (E(width=0.2, centers=X), E(width=0.2), R(width=0.2)):
        rows = 25 if all_of_them.centers is None and isinstance(all_of_them, E) else 60
        whole = clone(all_of_them).fit(X[:rows], y[:rows])
        assert bs.Status.SAMPLED_CANDIDATES not in whole.notes_ and len(whole.dictionary_.centers) == rows
    assert bs.Status.SAMPLED_CANDIDATES not in E().fit(X, y).notes_
    model.partial_fit(X[:5] + 0.01, y[:5])
    assert model.fit_.n_rows == 65
