"""Sparse precisions: promises against dense evidences, climbs that end where nothing gains, odd data, Ripley's set.

Guards `bayessel.linear.latent._fit_latent_rvm`, `bayessel.linear.latent.sparse_search`.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import bayessel as bs
from bayessel.fit import Status
from bayessel.likelihoods.bernoulli import LogitLabels
from bayessel.likelihoods.normal_noise import NormalNoise
from bayessel.linear.latent import fit_latent_rvm
from bayessel.linear.latent.laplace import LatentTargets, find_mode
from bayessel.linear.latent.sparse_search import SparseSearch
from tests.paths import SHARED_DATA

NONE = np.zeros(0)


def problem(rng, n=80, m=20):
    A = rng.normal(size=(n, m))
    A /= np.sqrt((A**2).mean(axis=0))
    return A, (1.5 * A[:, 2] - 1.5 * A[:, 5] + rng.logistic(size=n) > 0.0).astype(float)


def searching(A, t, likelihood, proper=False):
    return SparseSearch(LatentTargets(likelihood, t), A, np.full((len(A), 1), 5.0), 1.0, 100, proper)


def test_promises_are_exact_with_normal_noise(rng):
    """S and Q against their definition with the inverse covariance, and gains against evidences of the joined model."""
    A, _ = problem(rng)
    t = A[:, 2] + 0.5 * rng.normal(size=80)
    search, phi = searching(A, t, NormalNoise()), np.array([-1.0])
    state = search.state(np.array([3, 7]), np.array([0.3, -0.2]), phi)
    G = np.hstack([A[:, [3, 7]] * np.exp([-0.15, 0.1]), np.full((80, 1), 5.0)])
    inverse = np.linalg.inv(np.exp(phi[0]) * np.eye(80) + G @ G.T)
    S, Q = search.scores(state)
    np.testing.assert_allclose(S, np.einsum("nm,nk,km->m", A, inverse, A), rtol=1e-8)
    np.testing.assert_allclose(Q, A.T @ inverse @ t, rtol=1e-6, atol=1e-8)
    gain, log_alpha = search.promises(state)
    m = int(np.argmax(gain))
    joined = search.joined(state, m, float(log_alpha[m]))
    np.testing.assert_allclose(joined.mode.log_evidence - state.mode.log_evidence, gain[m], rtol=1e-6)
    assert gain[3] == gain[7] == -np.inf


def test_promises_of_labels_are_close(rng):
    A, t = problem(rng)
    search = searching(A, t, LogitLabels())
    state = search.empty()
    gain, log_alpha = search.promises(state)
    order = np.argsort(-gain)[:3]
    risen = [search.joined(state, int(m), float(log_alpha[m])).objective - state.objective for m in order]
    np.testing.assert_allclose(risen, gain[order], rtol=0.35)
    assert {2, 5} == set(order[:2])


@pytest.mark.parametrize("inference", ["auto", "type2"])
def test_no_single_move_gains_in_the_end(rng, inference):
    A, t = problem(rng)
    fit = fit_latent_rvm(A, t, inference=inference)
    search = searching(A, t, LogitLabels(), inference == "auto")
    end = search.state(fit.basis, np.log(fit.alpha), NONE)
    worth = end.mode.log_evidence + search.of_precisions(end.log_alpha)[0]
    np.testing.assert_allclose(fit.log_evidence, worth, rtol=1e-9)
    slopes = end.mode.gradient()[0][: fit.n_basis] + search.of_precisions(end.log_alpha)[1]
    assert np.abs(slopes).max() < 1e-2
    for j in range(fit.n_basis):
        assert search.without(end, j).objective < end.objective + 1e-6
    for m in set(range(20)) - set(fit.basis.tolist()):
        joined = max(search.joined(end, m, a).objective for a in (-2.0, 0.0, 2.0, 4.0, 6.0))
        assert joined < end.objective + 0.02


def test_the_history_only_rises(rng):
    A, t = problem(rng, 120, 60)
    fit = fit_latent_rvm(A, t, inference="type2")
    last = -np.inf
    for step in fit.history:
        assert step["action"] == "start" or step["log_evidence"] >= last - 1e-6
        last = step["log_evidence"]
    assert fit.history[0]["action"] == "start"
    assert fit.log_evidence >= max(step["log_evidence"] for step in fit.history) - 0.02
    values = [optimum.log_evidence for optimum in fit.optima]
    assert values == sorted(values, reverse=True)


def test_small_problems_reach_the_best_of_all_subsets(rng):
    A, t = problem(rng, 50, 6)
    fit = fit_latent_rvm(A, t, inference="type2")
    search, best = searching(A, t, LogitLabels()), -np.inf
    for size in range(4):
        for active in combinations(range(6), size):
            state = search.state(np.array(active, dtype=int), np.zeros(size), NONE)
            best = max(best, search.polished(state, 60).objective)
    assert fit.log_evidence > best - 0.05


def test_the_same_data_give_the_same_fit_in_any_order(rng):
    A, t = problem(rng)
    one, two = fit_latent_rvm(A, t), fit_latent_rvm(A, t)
    assert one.basis.tolist() == two.basis.tolist() and one.log_evidence == two.log_evidence
    rows, columns = rng.permutation(80), rng.permutation(20)
    other = fit_latent_rvm(3.0 * A[rows][:, columns], t[rows])
    assert sorted(columns[other.basis]) == one.basis.tolist()
    np.testing.assert_allclose(other.log_evidence, one.log_evidence, atol=1e-3)
    np.testing.assert_allclose(
        other.predict(3.0 * A[:5, columns]).probabilities, one.predict(A[:5]).probabilities, atol=1e-3
    )
    np.testing.assert_allclose(one.predict(A[:5, one.basis]).probabilities, one.predict(A[:5]).probabilities)


def test_weights_and_prediction_are_those_of_the_mode(rng):
    A, t = problem(rng)
    fit = fit_latent_rvm(A, t)
    G = np.hstack([A[:, fit.basis] / np.sqrt(fit.alpha), np.full((80, 1), 5.0)])
    mode = find_mode(LatentTargets(LogitLabels(), t), G, NONE)
    np.testing.assert_allclose(fit.coef, mode.z[:-1] / np.sqrt(fit.alpha), rtol=1e-5)
    np.testing.assert_allclose(fit.intercept, 5.0 * mode.z[-1], rtol=1e-5)
    means, variances = fit.latent(A[:4])
    expected = mode.latent(G[:4])
    np.testing.assert_allclose(means[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(variances[0], expected[1], rtol=1e-5)


def test_with_normal_noise_it_is_the_relevance_vector_machine(rng):
    A, _ = problem(rng)
    t = 2.0 * A[:, 2] - A[:, 5] + 0.3 * rng.normal(size=80)
    fit = fit_latent_rvm(A, t, "gaussian", inference="type2", bias=False)
    exact = bs.linear.fit_rvm(A, t, beta=float(np.exp(-fit.phi[0])))
    assert fit.log_evidence > exact.log_evidence - 0.1
    counts = fit_latent_rvm(A, rng.poisson(np.exp(0.5 + A[:, 2])), "poisson")
    assert 2 in counts.basis and counts.n_basis < 6


@pytest.mark.parametrize("case", ["separable", "noise", "one class", "tiny", "constant and copies"])
def test_odd_data(rng, case):
    A, t = problem(rng, 60, 15)
    if case == "separable":
        t = (A[:, 2] > 0.0).astype(float)
    elif case == "noise":
        t = np.arange(60) % 2.0
    elif case == "one class":
        t = np.zeros(60)
    elif case == "tiny":
        A, t = A[:2], np.array([0.0, 1.0])
    else:
        A = np.hstack([A, A, np.ones((60, 1)), np.zeros((60, 1))])
    fit = fit_latent_rvm(A, t)
    p = fit.predict(A).probabilities
    assert np.isfinite(p).all() and np.isfinite(fit.log_evidence) and np.isfinite(fit.coef).all()
    if case == "separable":
        assert 2 in fit.basis and fit.n_basis < 4 and (fit.predict(A).mode == t).mean() > 0.95
        assert p.min() > 1e-12
    elif case == "noise":
        assert fit.n_basis <= 1
    elif case == "one class":
        assert fit.n_basis == 0 and Status.PURE_NOISE in fit.notes and Status.CONSTANT_TARGET in fit.notes
    elif case == "tiny":
        assert Status.TOO_FEW_ROWS in fit.notes
    else:
        assert len({j % 15 for j in fit.basis}) == fit.n_basis and fit.basis.max() < 30


def test_a_step_limit_is_said(rng):
    A, t = problem(rng)
    assert Status.STEP_LIMIT in fit_latent_rvm(A, t, max_steps=1).notes
    with pytest.raises(ValueError, match="max_steps"):
        fit_latent_rvm(A, t, max_steps=0)


@pytest.mark.skipif(not (SHARED_DATA / "ripley").exists(), reason="no data")
def test_ripleys_synthetic_set():
    """250 rows, width 0.5, functions at the rows: the paper of 2001 prints 4 functions and 9.3 % of 1000 rows."""
    train, test = (pd.read_csv(SHARED_DATA / "ripley" / f"synth_{part}.csv.gz").to_numpy() for part in ("tr", "te"))
    dictionary = bs.RBFDictionary(train[:, :2], 0.5, bias=False)
    for inference, most in (("type2", 5), ("auto", 4)):
        fit = fit_latent_rvm(dictionary.design(train[:, :2]), train[:, 2], inference=inference)
        wrong = (fit.predict(dictionary.design(test[:, :2])).mode != test[:, 2]).mean()
        # a standard error is 0.9 %
        assert fit.n_basis <= most and wrong < 0.102
