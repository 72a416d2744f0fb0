"""Compiled conjugate gradients: derivatives, cubics, the conditions of a line search, minima, and when a run stops.

Guards `bayessel.mlp.conjugate_gradients`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax

from bayessel.mlp import Architecture, forward
from bayessel.mlp import conjugate_gradients as cg
from bayessel.mlp.targets import as_data

KINDS = {"gaussian": 0, "logistic": 2, "softmax": 3}
NEVER = cg.Rule(1e9, 10**9, 1e18, 1e18)


def problem(rng, kind="gaussian", n=60, D=3, H=4):
    X = rng.standard_normal((n, D))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    if kind == "gaussian":
        t = np.column_stack([signal, X[:, 0]]) + 0.3 * rng.standard_normal((n, 2))
    else:
        t = (
            (rng.random(n) < expit(2 * signal)).astype(float)
            if kind == "logistic"
            else np.digitize(signal, [-0.5, 0.5])
        )
    X, T = as_data(X, t, kind)
    return Architecture(D, H, T.shape[1]), X, T


def cases(X, T, kind="gaussian"):
    return cg.TrainingCases(np.ascontiguousarray(X.T), np.ascontiguousarray(T.T), KINDS[kind])


def plain_loss(network, q, X, T, kind="gaussian"):
    """Written with SciPy's functions."""
    f = forward(network.split(q), X)[0]
    if kind == "gaussian":
        return 0.5 * np.sum((T - f) ** 2)
    if kind == "logistic":
        return -np.sum(T * log_expit(f) + (1 - T) * log_expit(-f))
    return -np.sum(T * log_softmax(f, axis=1))


def compiled_loss(network, X, T, kind="gaussian"):
    Z, f, below = np.empty((network.hidden, len(X))), np.empty((network.outputs, len(X))), np.empty(len(X))
    data = cases(X, T, kind)

    def both(q):
        g = np.empty(network.size)
        return cg.loss_and_gradient(q, data, Z, f, below, g), g

    return both


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_is_that_of_the_loss_in_numpy(rng, kind):
    network, X, T = problem(rng, kind)
    q = rng.standard_normal(network.size)
    value, g = compiled_loss(network, X, T, kind)(q)
    assert_allclose(value, plain_loss(network, q, X, T, kind), rtol=1e-12)
    steps = 1e-5 * np.eye(network.size)
    expected = [(plain_loss(network, q + h, X, T, kind) - plain_loss(network, q - h, X, T, kind)) / 2e-5 for h in steps]
    assert_allclose(g, expected, rtol=1e-6, atol=1e-7 * value)


def test_cubic_minimum_of_cubics(rng):
    for _ in range(50):
        c3, c2, c1 = rng.standard_normal(3)
        width = rng.uniform(0.1, 3) * rng.choice([-1.0, 1.0])
        f1, s1 = np.polyval([c3, c2, c1, 0], width), np.polyval([3 * c3, 2 * c2, c1], width)
        found = cg.cubic_minimum(0.0, c1, f1, s1, width)
        turns = np.roots([3 * c3, 2 * c2, c1])
        minima = [x for x in turns if np.isreal(x) and 6 * c3 * x + 2 * c2 > 0]
        if minima:
            assert_allclose(found, np.real(minima[0]), rtol=1e-6, atol=1e-9)
        else:
            assert np.isnan(found)


@pytest.mark.parametrize("kind", KINDS)
def test_each_search_ends_by_the_conditions_of_wolfe_and_powell(rng, kind):
    network, X, T = problem(rng, kind)
    both, data, none = compiled_loss(network, X, T, kind), cases(X, T, kind), cases(X[:0], T[:0], kind)
    run = cg.start(0.3 * rng.standard_normal(network.size))
    cg.advance(run, data, none, network.hidden, NEVER, 0, np.inf)
    for _ in range(60):
        q0 = run.q.copy()
        f0, g0 = both(q0)
        assert cg.advance(run, data, none, network.hidden, NEVER, 1, np.inf) == cg.GOING_ON
        moved = run.q - q0
        f1, g1 = both(run.q)
        assert f1 <= f0 + cg.RHO * (moved @ g0) + 1e-12 * f0
        assert abs(moved @ g1) <= -cg.SIGMA * (moved @ g0) * (1 + 1e-9)
        assert_array_equal(run.gradient, g1)
        assert_allclose(run.numbers[cg.LOSS], f1, rtol=1e-13)


def test_directions_are_those_of_polak_and_ribiere(rng):
    network, X, T = problem(rng)
    both, data, none = compiled_loss(network, X, T), cases(X, T), cases(X[:0], T[:0])
    run = cg.start(0.3 * rng.standard_normal(network.size))
    cg.advance(run, data, none, network.hidden, NEVER, 1, np.inf)
    for _ in range(30):
        old, q0, towards = both(run.q)[1], run.q.copy(), run.direction.copy()
        cg.advance(run, data, none, network.hidden, NEVER, 1, np.inf)
        g = both(run.q)[1]
        along = abs((run.q - q0) @ towards)
        assert_allclose(along, np.linalg.norm(run.q - q0) * np.linalg.norm(towards), rtol=1e-9)
        factor = max(g @ (g - old) / (old @ old), 0.0)
        assert_allclose(run.direction, factor * towards - g, rtol=1e-9, atol=1e-9 * np.linalg.norm(g))


@pytest.mark.parametrize("kind", KINDS)
def test_where_it_converges_scipy_finds_nothing_better(rng, kind):
    """A small penalty would be needed for a unique minimum; here the end is a minimum, and as low as SciPy's CG's."""
    network, X, T = problem(rng, kind, n=150, H=1)
    both, none = compiled_loss(network, X, T, kind), cases(X[:0], T[:0], kind)
    q0 = 0.1 * rng.standard_normal(network.size)
    run = cg.start(q0)
    reason = cg.advance(run, cases(X, T, kind), none, network.hidden, NEVER, 20_000, np.inf)
    assert reason == cg.CONVERGED
    loss = run.numbers[cg.LOSS]
    further = minimize(both, run.q, jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    assert further.fun > loss * (1 - 1e-4)
    same_start = minimize(both, q0, jac=True, method="CG", options={"maxiter": 5000})
    assert loss < same_start.fun * (1 + 1e-3)


def test_a_search_that_failed_is_followed_by_one_down_the_gradient(rng):
    network, X, T = problem(rng)
    data, none = cases(X, T), cases(X[:0], T[:0])
    run = cg.start(0.3 * rng.standard_normal(network.size))
    cg.advance(run, data, none, network.hidden, NEVER, 5, np.inf)
    before = run.numbers[cg.LOSS]
    run.numbers[cg.STEP] = 1e250
    assert cg.advance(run, data, none, network.hidden, NEVER, 1, np.inf) == cg.GOING_ON
    assert run.numbers[cg.LOSS] == before
    cg.advance(run, data, none, network.hidden, NEVER, 5, np.inf)
    assert run.numbers[cg.LOSS] < 0.99 * before and run.numbers[cg.IDLE] == 0


@pytest.mark.parametrize("least", [30, 400])
def test_it_stops_at_one_and_a_half_times_the_best_iteration(rng, least):
    """Held-out losses and the rule written out in NumPy, one iteration at a time."""
    network, X, T = problem(rng, n=60, H=8)
    data, out = cases(X[:40], T[:40]), cases(X[40:], T[40:])
    rule = cg.Rule(1.5, least, 0.0, 1e9)
    run = cg.start(0.3 * rng.standard_normal(network.size))
    whole = cg.Run(*(part.copy() for part in run))
    losses, weights = [plain_loss(network, run.q, X[40:], T[40:])], [run.q.copy()]
    while True:
        reason = cg.advance(run, data, out, network.hidden, rule, 1, np.inf)
        losses.append(plain_loss(network, run.q, X[40:], T[40:]))
        weights.append(run.q.copy())
        iteration, best = len(losses) - 1, int(np.argmin(losses))
        assert run.numbers[cg.ITERATION] == iteration and run.numbers[cg.BEST_ITERATION] == best
        if iteration >= least and iteration >= 1.5 * best:
            break
        assert reason == cg.GOING_ON
    assert reason == cg.PAST_BEST and 0 < best < iteration
    assert_array_equal(run.best, weights[best])
    assert_allclose(run.numbers[cg.BEST_HELD_OUT], min(losses), rtol=1e-12)
    # in one call, and asked again when it is over
    for _ in range(2):
        assert cg.advance(whole, data, out, network.hidden, rule, 10**6, np.inf) == cg.PAST_BEST
        for one, other in zip(run, whole, strict=True):
            assert_array_equal(one, other)


def test_evaluations_at_least_and_at_most(rng):
    network, X, T = problem(rng, n=60, H=8)
    data, out = cases(X[:40], T[:40]), cases(X[40:], T[40:])

    def ran(rule, evaluations=np.inf):
        run = cg.start(0.3 * np.random.default_rng(1).standard_normal(network.size))
        return cg.advance(run, data, out, network.hidden, rule, 10**6, evaluations), run.numbers

    reason, numbers = ran(cg.Rule(1.5, 30, 900.0, 1e9))
    assert reason == cg.PAST_BEST and 900 <= numbers[cg.EVALUATIONS] < 900 + cg.MOST_TRIALS
    reason, numbers = ran(cg.Rule(1.5, 10**6, 0.0, 70.0))
    assert reason == cg.USED_UP and 70 <= numbers[cg.EVALUATIONS] < 70 + cg.MOST_TRIALS
    reason, numbers = ran(NEVER, 50.0)
    assert reason == cg.GOING_ON and 50 <= numbers[cg.EVALUATIONS] < 50 + cg.MOST_TRIALS
