"""A relevance vector machine beside a bias with a flat prior, which offsets of columns and target do not change.

Guards `bayessel.linear.rvm.problem`, `bayessel.linear.rvm.reported_evidence`, `bayessel.linear.columns.centring`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import bayessel as bs
from bayessel.fit import Status
from bayessel.linear import fit_rvm
from tests.oracles.linear import exact_log_evidence


def problem(rng, n=40, p=15):
    """Columns and a target far from zero, four columns relevant beyond doubt."""
    F = rng.normal(size=(n, p)) + rng.normal(size=p) * 3.0
    return F, F[:, [1, 4, 6, 11]] @ [4.0, -3.0, 5.0, 3.5] + 0.5 * rng.normal(size=n) + 20.0


def test_evidence_is_that_of_fifty_digits_and_highest(rng):
    F, t = problem(rng)
    fit = fit_rvm(F, t, centre=True)
    used = F[:, fit.basis]
    assert {1, 4, 6, 11} <= set(fit.basis.tolist())
    top = exact_log_evidence(used, t, fit.alpha, fit.beta, centre=True)
    assert fit.log_evidence == pytest.approx(top, abs=1e-8)
    assert fit.history[-2]["log_evidence"] == pytest.approx(top, abs=1e-3)  # the search counts in the same units
    for step in (0.99, 1.01):
        assert exact_log_evidence(used, t, fit.alpha, fit.beta * step, centre=True) < top
        for k in range(fit.n_basis):
            moved = fit.alpha * np.where(np.arange(fit.n_basis) == k, step, 1.0)
            assert exact_log_evidence(used, t, moved, fit.beta, centre=True) < top
    dense = bs.linear.posterior(used, t, fit.alpha, fit.beta, centre=True)
    assert_allclose(fit.coef, dense.coef, rtol=1e-8)
    assert fit.intercept == pytest.approx(dense.intercept, rel=1e-10)
    assert_allclose(fit.predict(F).variance, dense.predict(used).variance, rtol=1e-10)
    assert fit.evidence.integrated == ("weights", "bias")


@pytest.mark.parametrize("kind", ["float64", "float32", "made"])
def test_offsets_and_units_change_nothing(rng, kind):
    F, t = problem(rng)
    F = np.round(64.0 * F) / 64.0
    there = 4.0 * F + 512.0  # both exact in single precision

    def given(A):
        if kind == "made":
            return bs.linear.columns.dictionary.MadeColumns(A.shape, lambda which: A[:, which])
        return A.astype(kind)

    one, other = fit_rvm(given(F), t, centre=True), fit_rvm(given(there), 8.0 * t - 5e4, centre=True)
    assert np.array_equal(one.basis, other.basis)
    assert other.log_evidence == pytest.approx(one.log_evidence - 40 * np.log(8.0), abs=1e-4)
    assert_allclose((other.predict(there).mean + 5e4) / 8.0, one.predict(F).mean, rtol=1e-5)
    assert_allclose(other.predict(there).std / 8.0, one.predict(F).std, rtol=1e-4)


def test_a_row_that_counts_twice_is_a_row_that_came_twice(rng):
    F, t = problem(rng)
    counts = rng.integers(1, 4, size=40)
    one = fit_rvm(F, t, centre=True, sample_weight=counts)
    other = fit_rvm(np.repeat(F, counts, axis=0), np.repeat(t, counts), centre=True)
    assert np.array_equal(one.basis, other.basis)
    assert_allclose(one.alpha, other.alpha, rtol=1e-4)
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-6)
    assert_allclose(one.predict(F).mean, other.predict(F).mean, rtol=1e-6)


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 31.0)])
def test_a_bias_alone_is_the_mean_with_its_error(rng, weights):
    t = 7.0 + rng.normal(size=30)
    F = np.column_stack([3e5 * (1.0 + 3e-16 * rng.normal(size=30)), np.full(30, 0.1)])  # what varies is rounding
    fit = fit_rvm(F, t, centre=True, sample_weight=weights)
    total = 30.0 if weights is None else weights.sum()
    assert fit.n_basis == 0 and Status.PURE_NOISE in fit.notes
    mean = np.average(t, weights=weights)
    assert_allclose(fit.predict(F).mean, mean, rtol=1e-12)
    assert fit.beta == pytest.approx((total - 1.0) / (total * np.average((t - mean) ** 2, weights=weights)), rel=1e-6)
    assert_allclose(fit.predict(F).function.variance, 1.0 / (fit.beta * total), rtol=1e-10)
    assert fit.effective_parameters == fit.gamma == pytest.approx(1.0)
