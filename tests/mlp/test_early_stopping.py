"""Ensembles with early stopping: splits, averages, shares of the budget, going on bit by bit, classes, odd input.

Guards `bayessel.mlp.early_stopping`, `bayessel.mlp.early_stopping_result`.
"""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from bayessel.fit import Status
from bayessel.mlp import conjugate_gradients as cg
from bayessel.mlp import fit_early_stopping
from bayessel.mlp.architecture import Architecture, hidden_units
from bayessel.mlp.early_stopping import MOST_HIDDEN, EarlyStoppingState, default_evaluations, split


def data(rng, n=90, K=1):
    X = rng.standard_normal((n, 3))
    f = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1] ** 2 - 1, X[:, 2]])[:, :K]
    return X, f + 0.1 * rng.standard_normal((n, K)), f


def same(one: EarlyStoppingState, other: EarlyStoppingState) -> None:
    """Equal to the last bit."""
    assert one.seed == other.seed and one.plan == other.plan
    assert len(one.finished) == len(other.finished)
    for (w1, r1), (w2, r2) in zip(one.finished, other.finished, strict=True):
        assert_array_equal(w1, w2)
        assert r1 == r2
    assert (one.present is None) == (other.present is None)
    for p1, p2 in zip(one.present or (), other.present or (), strict=True):
        assert_array_equal(p1, p2)


def by_hand(ensemble, q, X):
    a, u, b, v, w = ensemble.networks.architecture.split(q)
    f = np.tanh(X @ u + a) @ v + X @ w + b
    return {"gaussian": lambda x: x, "logistic": expit, "softmax": lambda x: softmax(x, axis=1)}[
        ensemble.networks.kind
    ](f)


@pytest.mark.parametrize("kind", ["gaussian", "logistic", "softmax"])
def test_predictions_are_averages_and_noise_is_that_of_rows_not_seen(rng, kind):
    X, t, _ = data(rng, K=2)
    T = {"gaussian": t, "logistic": (t > 0).astype(float), "softmax": np.eye(2)[np.argmax(t, axis=1)]}[kind]
    ensemble = fit_early_stopping(X, T, kind=kind, max_evaluations=6000, n_networks=(3, 5), random_state=3)
    networks = [by_hand(ensemble, q, X) for q in ensemble.networks.packed]
    assert len(networks) == len(ensemble.history) >= 4
    assert_allclose(ensemble.networks.members(X), networks, rtol=1e-12, atol=1e-14)
    found = ensemble.predict(X).mean
    # of labels that exclude nothing each is one of two classes
    assert_allclose(found[..., 1] if kind == "logistic" else found, np.mean(networks, axis=0), rtol=1e-12, atol=1e-14)
    unseen = [[] for _ in X]
    for number, network in enumerate(networks):
        held_out, trained, _ = split(ensemble.state.seed, number, len(X))
        assert len(held_out) == 30 and sorted([*held_out, *trained]) == list(range(90))
        for row in held_out:
            unseen[row].append(network[row])
    expected = np.array([np.mean(rows, axis=0) if rows else [np.nan, np.nan] for rows in unseen])
    assert_allclose(ensemble.held_out, expected, rtol=1e-12, atol=1e-14)
    if kind == "gaussian":
        assert_allclose(ensemble.noise_std, np.sqrt(np.nanmean((T - expected) ** 2, axis=0)), rtol=1e-12)
    else:
        assert ensemble.noise_std is None
    # rows on which all five networks were trained
    assert np.isnan(expected).any() and ensemble.notes == (Status.TIME_BUDGET,)


def test_an_ensemble_that_left_every_row_out_is_complete(rng):
    X, t, _ = data(rng)
    ensemble = fit_early_stopping(X[:12], t[:12], hidden=1, max_evaluations=20_000, n_networks=(3, 40), random_state=0)
    assert np.isfinite(ensemble.held_out).all() and ensemble.notes == ()


def test_each_network_keeps_to_its_share(rng):
    X, t, _ = data(rng)
    budget = 12_000
    ensemble = fit_early_stopping(X, t, hidden=8, max_evaluations=budget, random_state=0)
    for record in ensemble.history:
        assert record["evaluations"] < budget / 3 + cg.MOST_TRIALS
        if record["reason"] == "past its best":
            assert record["evaluations"] >= budget / 50 and record["iterations"] >= 250
            assert record["iterations"] >= 1.5 * record["best_iteration"]
        else:
            assert record["evaluations"] >= budget / 3 or record["reason"] == "converged"
    assert ensemble.state.evaluations < budget + cg.MOST_TRIALS
    assert any(record["reason"] == "past its best" for record in ensemble.history)
    scarce = fit_early_stopping(X, t, hidden=8, max_evaluations=300, random_state=0)
    assert len(scarce.networks) == 3 and scarce.notes == (Status.TIME_BUDGET,)  # not every row was held out
    assert {record["reason"] for record in scarce.history} == {"budget"}


def test_a_network_that_comes_too_late_for_its_share_is_not_begun(rng):
    """Of five networks at most; one that is under way when the budget is over predicts only where there are too few."""
    X = rng.standard_normal((40, 2))
    t = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(40)
    late = 0
    how = {"hidden": 3, "n_networks": (3, 5)}
    for seed in range(6):
        one = fit_early_stopping(X, t, max_evaluations=3000, random_state=seed, **how)
        finished, left = len(one.state.finished), 3000 - one.state.evaluations
        assert len(one.networks) == finished >= 3
        if finished < 5 and left > 0:
            late += 1
            assert one.state.present is None and left < one.state.plan.least == 600
    assert late >= 2
    # with the least share of a network alone there is time for 150 evaluations, and it goes on for 250 iterations
    how = {"hidden": 3, "n_networks": (3, 20), "random_state": 0}
    one = fit_early_stopping(X, t, max_evaluations=3000, **how)
    more = fit_early_stopping(X, t, max_evaluations=150, state=one.state, **how)
    assert more.state.present is not None and len(more.networks) == len(more.state.finished) >= 3
    few = fit_early_stopping(X, t, hidden=3, max_evaluations=100, n_networks=(2, 2), random_state=0)
    assert len(few.networks) == 2 == len(few.state.finished) + (few.state.present is not None)


def test_same_seed_same_result(rng):
    X, t, _ = data(rng)
    one, two, other = (fit_early_stopping(X, t, max_evaluations=3000, random_state=seed) for seed in (1, 1, 2))
    same(one.state, two.state)
    assert not np.array_equal(one.networks.packed[0], other.networks.packed[0])
    # a seed's first network does not depend on how many follow, given the plan
    assert_array_equal(one.predict(X).mean, two.predict(X).mean)


def test_pieces_are_the_whole(rng):
    X, t, _ = data(rng)
    first = fit_early_stopping(X, t, max_evaluations=2000, random_state=0)
    kept = copy.deepcopy(first.state)
    whole = fit_early_stopping(X, t, max_evaluations=5000, state=first.state)
    same(first.state, kept)  # going on leaves the past alone
    pieces, spent = first, first.state.evaluations
    for _ in range(3):
        left = spent + 5000 - pieces.state.evaluations
        state = pickle.loads(pickle.dumps(pieces.state))
        pieces = fit_early_stopping(X, t, max_evaluations=min(left, 1800), state=state)
    # pieces overshoot by parts of a line search: bring both to the same place
    ahead = max(whole.state.evaluations, pieces.state.evaluations) + 500
    ends = [
        fit_early_stopping(X, t, max_evaluations=ahead - e.state.evaluations, state=e.state) for e in (whole, pieces)
    ]
    same(ends[0].state, ends[1].state)
    assert_array_equal(ends[0].predict(X).mean, ends[1].predict(X).mean)


def test_the_clock_decides_how_far_and_nothing_else(rng):
    X, t, _ = data(rng)
    timed = fit_early_stopping(X, t, hidden=8, time_budget=0.15, random_state=0)
    assert timed.state.plan is not None
    again = fit_early_stopping(X, t, hidden=8, time_budget=0.1, state=timed.state)
    fresh = replace(again.state, finished=[], running=None)
    counted = fit_early_stopping(X, t, hidden=8, max_evaluations=again.state.evaluations, state=fresh)
    more = again.state.evaluations + 700
    ends = [
        fit_early_stopping(X, t, max_evaluations=more - e.state.evaluations, state=e.state) for e in (again, counted)
    ]
    same(ends[0].state, ends[1].state)


def test_an_interruption_gives_back_what_there_is(rng):
    X, t, _ = data(rng)
    calls = []

    def impatient(used, budget):
        calls.append((used, budget))
        if used > 1500:
            raise KeyboardInterrupt

    stopped = fit_early_stopping(X, t, max_evaluations=4000, random_state=0, progress=impatient)
    assert stopped.status is Status.INTERRUPTED and np.isfinite(stopped.predict(X).mean).all()
    assert [budget for _, budget in calls] == [4000] * len(calls) and calls[0][0] == 0
    left = 4000 - stopped.state.evaluations
    same(
        fit_early_stopping(X, t, max_evaluations=left, state=stopped.state).state,
        fit_early_stopping(X, t, max_evaluations=4000, random_state=0).state,
    )

    def at_once(used, budget):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_early_stopping(X, t, max_evaluations=4000, progress=at_once)


def test_a_network_just_finished_is_not_finished_twice(rng):
    """An interruption may come between noting a network and forgetting its run."""
    X, t, _ = data(rng)
    first = fit_early_stopping(X, t, max_evaluations=3000, random_state=0).state
    torn = replace(first, running=(len(first.finished) - 1, cg.start(np.zeros(len(first.finished[0][0])))))
    assert torn.present is None
    clean = replace(first, running=None)
    ends = [fit_early_stopping(X, t, max_evaluations=800, state=one).state for one in (torn, clean)]
    same(*ends)


def test_hidden_units_are_the_fewest_with_enough_weights():
    for n, D, K in [(64, 8, 1), (1024, 8, 1), (1024, 32, 1), (50, 2, 3), (300, 5, 2)]:
        trained = n - n // 3
        sizes = {H: Architecture(D, H, K).size for H in range(1, 400)}
        assert hidden_units("auto", trained, D, K, 1, MOST_HIDDEN) == min(H for H in sizes if sizes[H] >= trained)
    assert hidden_units("auto", 7, 30, 1, 1, 250) == 1 and hidden_units("auto", 10**6, 2, 1, 1, MOST_HIDDEN) == 250
    assert default_evaluations(Architecture(8, 4)) > 1000


def test_it_learns_and_knows_its_noise(rng):
    X, t, _ = data(rng, n=300)
    X_new = rng.standard_normal((2000, 3))
    f_new = np.sin(2 * X_new[:, :1]) + X_new[:, 1:2] ** 2 - 1
    ensemble = fit_early_stopping(X, t, max_evaluations=15_000, random_state=0)
    error = np.sqrt(np.mean((ensemble.predict(X_new).mean - f_new) ** 2))
    one = np.sqrt(np.mean((ensemble.networks.members(X_new) - f_new) ** 2, axis=(1, 2)))
    assert error < 0.35 * f_new.std() and error < np.median(one)
    assert 0.1 < ensemble.noise_std[0] < 1.5 * np.hypot(0.1, error)


def test_classes_that_no_line_parts(rng):
    X = rng.uniform(-1, 1, (400, 2))
    classes = (X[:, 0] * X[:, 1] > 0).astype(int)
    X_new = rng.uniform(-1, 1, (1000, 2))
    truth = X_new[:, 0] * X_new[:, 1] > 0
    more = {"max_evaluations": 8000, "random_state": 0}
    by_sigmoid, by_softmax = (
        fit_early_stopping(X, classes, kind=kind, **more).predict(X_new).probabilities
        for kind in ("logistic", "softmax")
    )
    assert by_sigmoid.shape == (1000, 2) and by_softmax.shape == (1000, 2)
    assert_allclose(by_softmax.sum(axis=1), 1.0)
    for p in (by_sigmoid[:, 1], by_softmax[:, 1]):
        assert np.mean((p > 0.5) == truth) > 0.95


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(rng, n):
    X, t = rng.standard_normal((n, 2)), rng.standard_normal(n)
    ensemble = fit_early_stopping(X, t, max_evaluations=200, random_state=0)
    assert ensemble.status.severity >= Status.TOO_FEW_ROWS.severity
    assert np.isfinite(ensemble.predict(X).mean).all() and np.isfinite(ensemble.noise_std).all()


def test_odd_data(rng):
    X = rng.standard_normal((30, 2))
    constant = fit_early_stopping(X, np.full(30, 2.0), max_evaluations=2000, random_state=0)
    assert Status.CONSTANT_TARGET in constant.notes
    assert_allclose(constant.predict(X).mean, 2.0, atol=0.05)
    ones = fit_early_stopping(X, np.zeros(30, int), kind="softmax", max_evaluations=500, random_state=0)
    assert ones.predict(X).mean.shape == (30, 2) and (ones.predict(X).mean[:, 0] > 0.9).all()
    wide = fit_early_stopping(rng.standard_normal((9, 40)), rng.standard_normal(9), max_evaluations=300)
    assert np.isfinite(wide.networks.packed).all()
    far = fit_early_stopping(1e30 * X, 1e30 * X[:, 0], max_evaluations=300, random_state=0)
    assert np.isfinite(far.networks.packed).all()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"X": [[1.0, np.nan]] * 5}, ValueError, "finite"),
        ({"t": np.zeros(4)}, ValueError, "one row per row of X"),
        ({"t": np.zeros((5, 1, 1))}, ValueError, "one row per row of X"),
        ({"t": [0.0, 1, 2, 3, np.inf]}, ValueError, "finite"),
        ({"t": list("abcde")}, TypeError, "numeric"),
        ({"kind": "student"}, ValueError, "kind must be one of"),
        ({"kind": "logistic", "t": [0, 1, 2, 0, 1]}, ValueError, "zeros and ones"),
        ({"kind": "softmax", "t": [0.5, 1, 2, 0, 1]}, ValueError, "number the classes"),
        ({"kind": "softmax", "t": [-1, 1, 2, 0, 1]}, ValueError, "number the classes"),
        ({"kind": "softmax", "t": np.ones((5, 2))}, ValueError, "single one"),
        ({"hidden": 0}, ValueError, "hidden"),
        ({"hidden": "many"}, ValueError, "'auto'"),
        ({"hidden": 2.0}, TypeError, "hidden"),
        ({"time_budget": -1.0}, ValueError, "time_budget"),
        ({"max_evaluations": 0}, ValueError, "max_evaluations"),
        ({"time_budget": 1.0, "max_evaluations": 9}, ValueError, "either"),
        ({"n_networks": 5}, TypeError, "pair"),
        ({"n_networks": (5, 3)}, ValueError, "at least 5"),
        ({"random_state": "x"}, TypeError, "random_state"),
        ({"state": {}}, TypeError, "state"),
    ],
)
def test_bad_input_says_what_was_needed(change, error, text):
    given = {"X": np.arange(10.0).reshape(5, 2), "t": np.arange(5.0)} | change
    with pytest.raises(error, match=text):
        fit_early_stopping(given.pop("X"), given.pop("t"), **given)


def test_a_state_goes_with_its_data_and_settings(rng):
    X, t, _ = data(rng)
    state = fit_early_stopping(X, t, hidden=2, max_evaluations=300).state
    with pytest.raises(ValueError, match="other data"):
        fit_early_stopping(X, t + 1, max_evaluations=300, state=state)
    with pytest.raises(ValueError, match="2 hidden units"):
        fit_early_stopping(X, t, hidden=3, max_evaluations=300, state=state)
    ensemble = fit_early_stopping(X, t, max_evaluations=300, state=state)
    with pytest.raises(ValueError, match="3 inputs"):
        ensemble.predict(X[:, :2])
