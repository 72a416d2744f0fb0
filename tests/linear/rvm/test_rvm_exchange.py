"""Many candidates at many rows: candidates sampled and exchanged.

Guards `bayessel.linear.rvm.exchange`, `bayessel.linear.rvm.assemble`.
"""

import numpy as np
import pytest

from bayessel import RBFDictionary, Status
from bayessel.basis import LazyDesign
from bayessel.linear import fit_rvm, log_evidence
from bayessel.linear.columns.dictionary import Columns, as_columns
from bayessel.linear.rvm import exchange
from bayessel.linear.rvm.moves import add_gains
from bayessel.linear.rvm.problem import RVMProblem
from tests.problems.rvm import OnTheFly


def scattered(rng, n):
    X = rng.uniform(size=(n, 4))
    return X, np.sin(5.0 * X[:, 0]) + 2.0 * (X[:, 1] - 0.5) ** 2 + 0.3 * rng.normal(size=n)


@pytest.fixture
def small_samples(monkeypatch):
    for name, value in {
        "EXCHANGED": 10_000,
        "ROWS": 180,
        "FIRST": 60,
        "LATER": 50,
        "LAST": 20_000,
        "BLOCK": 70,
    }.items():
        monkeypatch.setattr(exchange, name, value)


def test_a_subset_is_the_columns_and_rows_it_says(rng):
    Phi = rng.normal(size=(30, 20))
    which, rows = np.array([7, 0, 13]), np.array([3, 4, 29])
    X = rng.uniform(size=(30, 2))
    made = LazyDesign(RBFDictionary(X, 0.5), X)
    for source, dense in [(OnTheFly(Phi), Phi), (made, made.columns(np.arange(31)))]:
        for some in (None, rows):
            subset = exchange.ColumnSubset(source, which, some)
            expected = dense[:, which] if some is None else dense[np.ix_(some, which)]
            assert subset.shape == expected.shape
            np.testing.assert_array_equal(subset.columns(np.array([2, 0])), expected[:, [2, 0]])
            if hasattr(source, "rows"):
                np.testing.assert_array_equal(subset.rows(np.array([1]), np.array([2])), expected[[1]][:, [2]])


@pytest.mark.parametrize("centre", [False, True])
def test_gains_are_those_of_all_candidates_at_these_rows(rng, centre, small_samples):
    X, y = scattered(rng, 200)
    made = as_columns(LazyDesign(RBFDictionary(X, 0.6), X))
    rows = np.sort(rng.choice(200, 180, replace=False))
    sampled = exchange.RVMSample(made, y, None, None, centre, rows)
    which = np.arange(0, 201, 4)
    problem = sampled.problem(which)
    state = problem.form.solve(np.arange(5), np.zeros(5), 3.0)
    gains = sampled.gains(problem, which, state)
    whole = RVMProblem.of(
        Columns(exchange.ColumnSubset(made.source, np.arange(201), rows)), y[rows], None, None, centre
    )
    there = whole.form.solve(which[:5], np.zeros(5), 3.0)
    expected = np.maximum(add_gains(there, whole.form.score(there)), 0.0)
    np.testing.assert_allclose(gains, expected, rtol=1e-5, atol=1e-6)


def test_a_sampled_fit_is_a_fit_in_numbers_of_all_candidates(rng, small_samples):
    X, y = scattered(rng, 400)
    dictionary = RBFDictionary(X, 0.6)
    made = LazyDesign(dictionary, X)
    fit = fit_rvm(made, y)
    assert Status.SAMPLED_CANDIDATES in fit.notes and fit.n_candidates == 401
    Phi = dictionary.design(X)
    np.testing.assert_array_equal(fit.design, Phi[:, fit.basis])
    np.testing.assert_allclose(fit.log_evidence, log_evidence(Phi[:, fit.basis], y, fit.alpha, fit.beta), rtol=1e-10)
    assert fit.optima[0].basis == tuple(fit.basis)
    # mostly better than as many candidates sampled once, whose luck varies by some ten nats
    once = [fit_rvm(Phi[:, np.sort(rng.choice(401, 130, replace=False))], y) for _ in range(3)]
    assert all(Status.SAMPLED_CANDIDATES not in one.notes for one in once)
    assert fit.log_evidence > np.mean([one.log_evidence for one in once]) - 10.0
    assert fit.fingerprint == fit_rvm(made, y, init=(fit.basis, fit.alpha, fit.beta)).fingerprint


def test_columns_in_memory_and_few_coordinates_are_not_sampled(rng, small_samples):
    X = scattered(rng, 150)[0]
    Phi = RBFDictionary(X, 0.6).design(X)
    assert not exchange.pays(as_columns(Phi))
    assert exchange.pays(as_columns(LazyDesign(RBFDictionary(X, 0.6), X)))
