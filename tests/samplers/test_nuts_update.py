"""One transition of the No-U-Turn sampler: a recursive twin, the distribution it leaves as it is, planted bugs.

Guards `bayessel.samplers.nuts_update`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayessel.samplers import nuts_update
from bayessel.samplers.leapfrog import Phase, energy, leapfrog
from bayessel.samplers.nuts_update import nuts_in_place, tree_room, turns
from tests.oracles.monte_carlo import assert_means, z_scores
from tests.problems import targets

DEPTH = 8


def transition(position, log_density, step, rng, max_depth=DEPTH):
    """Position, gradient, log density, energy and information after one transition from a position."""
    logp, gradient = log_density(position)
    position, gradient = position.copy(), gradient.copy()
    logp, total, info = nuts_in_place(
        position, gradient, logp, step, log_density, max_depth, rng, tree_room(len(position), max_depth)
    )
    return position, gradient, logp, total, info


# --- a twin: states in lists, stretches taken apart by recursion ------------------------------------------------------


def straight(earlier, later):
    """Whether two neighbouring stretches of phases, both in order of time, go on in one direction."""
    p = [np.array([state.momentum for state in part]) for part in (earlier, later)]

    def no_turn(momenta):
        total = momenta.sum(axis=0)
        return total @ momenta[0] > 0.0 and total @ momenta[-1] > 0.0

    return no_turn(np.vstack(p)) and no_turn(np.vstack([p[0], p[1][:1]])) and no_turn(np.vstack([p[0][-1:], p[1]]))


def in_order(one, other, sign):
    return (one, other) if sign > 0.0 else (other, one)


def twin(position, log_density, step, rng, max_depth=DEPTH):
    """The same transition, from Betancourt's description and Stan's account of its checks."""
    logp, gradient = log_density(position)
    origin = Phase(position, rng.standard_normal(len(position)), logp, gradient)
    start, rates = energy(origin), []

    def build(state, depth, sign):
        """States in order of time, and whether the doubling may go on."""
        if depth == 0:
            state = leapfrog(state, log_density, sign * step)
            rates.append(min(1.0, np.exp(start - energy(state))))
            return [state], start - energy(state) >= -1000.0
        near, well = build(state, depth - 1, sign)
        if not well:
            return near, False
        far, well = build(near[-1] if sign > 0.0 else near[0], depth - 1, sign)
        near, far = in_order(near, far, sign)
        return near + far, well and straight(near, far)

    states, chosen, depth, diverging = [origin], origin, 0, False
    while depth < max_depth:
        sign = 1.0 if rng.random() < 0.5 else -1.0
        more, well = build(states[-1] if sign > 0.0 else states[0], depth, sign)
        as_made = more if sign > 0.0 else more[::-1]
        weights = np.exp([start - energy(state) for state in as_made])
        alive = len(weights) - (not start - energy(as_made[-1]) >= -1000.0)
        candidate = as_made[0]
        for k in range(1, alive):
            if rng.random() < weights[k] / weights[: k + 1].sum():
                candidate = as_made[k]
        if not well:
            diverging = alive < len(weights)
            break
        old = np.exp([start - energy(state) for state in states]).sum()
        if weights.sum() >= old or rng.random() < weights.sum() / old:
            chosen = candidate
        earlier, later = in_order(states, more, sign)
        ends, states = straight(earlier, later), earlier + later
        depth += 1
        if not ends:
            break
    return chosen, energy(chosen), (np.mean(rates), len(rates), depth, diverging)


@pytest.mark.parametrize("shape", ["diagonal", "lower triangle", "any matrix"])
@pytest.mark.parametrize(
    ("target", "size"),
    [
        (targets.skewed(3), 0.7),
        (targets.correlated(0.99), 1.2),
        (targets.funnel(4, 2.0), 0.6),
        (targets.half_normal(), 0.4),
        (targets.ill_conditioned(6, 100.0), 0.9),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_transition_is_that_of_the_recursive_twin(target, size, shape, rng):
    n = target.size
    step = size * target.length * np.exp(0.2 * rng.standard_normal(n))
    if shape != "diagonal":
        step = np.diag(step) @ (np.eye(n) + 0.1 * rng.standard_normal((n, n)))
        step = np.tril(step) if shape == "lower triangle" else step
    q, depths, ends = target.draw(rng), set(), set()
    with np.errstate(all="ignore"):
        for seed in range(60):
            position, gradient, logp, total, info = transition(q, target.log_density, step, np.random.default_rng(seed))
            phase, h, (rate, n_gradients, depth, diverging) = twin(
                q, target.log_density, step, np.random.default_rng(seed)
            )
            assert_allclose(position, phase.position, rtol=1e-8, atol=1e-10)
            assert_allclose([logp, total], [phase.logp, h], rtol=1e-8, atol=1e-10)
            assert_allclose(gradient, phase.gradient, rtol=1e-7, atol=1e-9)
            assert_allclose(info.acceptance_rate, rate, rtol=1e-8)
            assert info[1:4] == (n_gradients, depth, diverging)
            depths.add(depth)
            ends.add(n_gradients == 2**depth - 1)
            q = position
    assert len(depths) >= 2 and (ends == {True, False} or n == 1)


# --- the distribution is left as it is ------------------------------------------------------------------------------


def run(target, step, rng, chains, updates, max_depth=DEPTH):
    """Features of (chains, updates); chains start from exact draws, so every expectation is exact at every update."""
    step, found = np.full(target.size, step * target.length), []
    with np.errstate(all="ignore"):
        for _ in range(chains):
            q, path = target.draw(rng), []
            for _ in range(updates):
                q = transition(q, target.log_density, step, rng, max_depth)[0]
                path.append(q)
            found.append(path)
    return target.features(np.array(found))


@pytest.mark.parametrize(
    ("target", "step", "max_depth", "chains", "updates"),
    [
        (targets.skewed(2), 1.0, DEPTH, 120, 30),
        (targets.skewed(1), 0.3, 1, 120, 40),  # cut short each time
        (targets.correlated(0.95), 1.2, DEPTH, 100, 15),
        (targets.funnel(), 0.8, DEPTH, 100, 20),
        (targets.funnel(3, 3.0), 0.5, DEPTH, 400, 3),  # Neal's; where it is narrow the step is too large
        (targets.half_normal(), 0.5, DEPTH, 120, 30),
    ],
    ids=["skewed", "skewed, cut", "correlated", "funnel", "wide funnel", "wall"],
)
def test_expectations(target, step, max_depth, chains, updates, rng):
    assert_means(run(target, step, rng, chains, updates, max_depth), target.expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        targets.skewed(3),
        targets.correlated(),
        targets.funnel(),
        targets.funnel(5, 3.0),
        targets.half_normal(),
        targets.linear_gaussian(),
        targets.ill_conditioned(20, 1e4),
    ],
    ids=lambda one: one.name,
)
@pytest.mark.parametrize("step", [0.5, 1.3])
def test_expectations_of_many(target, step, rng):
    assert_means(run(target, step, rng, 400, 30, 10), target.expected)


# --- planted bugs: each is seen by the check above --------------------------------------------------------------------


def worst(target, step, rng, chains=120, updates=40, max_depth=DEPTH):
    """How many standard errors the worst expectation is off."""
    return np.abs(z_scores(run(target, step, rng, chains, updates, max_depth), target.expected)).max()


def test_planted_only_one_end_is_asked(rng, monkeypatch):
    """The end that was made last: a trajectory back would have stopped elsewhere."""
    monkeypatch.setattr(nuts_update, "turns", lambda a, b, c, d, e, f: not (a + d) @ f > 0.0)
    assert worst(targets.skewed(2), 0.5, rng) > 4.0


def test_planted_states_of_a_trajectory_not_weighted(rng, monkeypatch):
    right = nuts_update.grow

    def uniform(side, depth, start, step, log_density, rng, room):
        grown = right(side, depth, start, step, log_density, rng, room)
        return grown._replace(log_weight=depth * np.log(2.0))

    monkeypatch.setattr(nuts_update, "grow", uniform)
    assert worst(targets.skewed(2), 1.4, rng) > 4.0


def test_planted_weights_that_do_not_add_up(rng, monkeypatch):
    monkeypatch.setattr(nuts_update, "log_sum", max)
    assert worst(targets.skewed(2), 1.4, rng) > 4.0


def test_planted_a_trajectory_that_turned_is_taken_all_the_same(rng, monkeypatch):
    right = nuts_update.grow
    monkeypatch.setattr(nuts_update, "grow", lambda *given: right(*given)._replace(whole=True))
    assert worst(targets.skewed(2), 0.5, rng) > 4.0


def test_planted_a_momentum_of_the_wrong_size(rng, monkeypatch):
    monkeypatch.setattr(nuts_update, "fresh_momentum", lambda rng, size: 1.2 * rng.standard_normal(size))
    assert worst(targets.skewed(2), 0.8, rng) > 4.0


# --- the parts ------------------------------------------------------------------------------------------------------


def stretch(angles):
    """Sum, first and last of unit momenta at these angles."""
    p = np.array([np.cos(angles), np.sin(angles)]).T
    return p.sum(axis=0), p[0], p[-1]


@pytest.mark.parametrize(
    ("first", "second", "back"),
    [
        ([0.0, 0.1], [0.2, 0.3], False),
        (np.linspace(0.0, 1.4, 4), np.linspace(1.5, 2.9, 4), False),  # less than half a turn
        (np.linspace(0.0, 2.0, 4), np.linspace(2.1, 4.1, 4), True),
        ([0.0], [1.5], False),
        # nearly a whole turn: each half is straight and so is the whole, a half with the next state of the other is not
        ([0.0, 2.0], [4.0, 6.0], True),
    ],
)
def test_turning_back(first, second, back):
    first, second = stretch(np.array(first)), stretch(np.array(second))
    assert turns(*first, *second) == back
    # the same trajectory the other way, made from the other end
    turned = [-part for part in (second[0], second[2], second[1])], [-part for part in (first[0], first[2], first[1])]
    assert turns(*turned[0], *turned[1]) == back
    assert turns(*(nothing := [np.zeros(2)] * 3), *nothing)


def test_the_whole_and_its_halves_alone_would_not_see_it():
    (total, first, last), (total_2, first_2, last_2) = stretch(np.array([0.0, 2.0])), stretch(np.array([4.0, 6.0]))
    for direction, ends in (
        (total + total_2, (first, last_2)),
        (total, (first, last)),
        (total_2, (first_2, last_2)),
    ):
        assert all(direction @ end > 0.0 for end in ends)


def test_a_trajectory_is_cut_after_so_many_doublings(rng):
    target = targets.skewed(3)
    for depth in (1, 3, 6):
        info = transition(target.draw(rng), target.log_density, np.full(3, 1e-5), rng, depth)[-1]
        assert (info.n_gradients, info.depth, info.cut, info.diverging) == (2**depth - 1, depth, True, False)
        assert_allclose(info.acceptance_rate, 1.0, atol=1e-3)
    info = transition(target.draw(rng), target.log_density, np.full(3, 0.3), rng, 8)[-1]
    assert not info.cut and info.depth < 6


def test_leaving_the_typical_set_is_a_divergence(rng):
    for target, size in ((targets.skewed(1), 60.0), (targets.half_normal(), 500.0), (targets.funnel(4, 3.0), 50.0)):
        q, diverged = np.ones(target.size), 0
        with np.errstate(all="ignore"):
            for _ in range(40):
                before = q
                q, gradient, logp, total, info = transition(q, target.log_density, np.full(target.size, size), rng)
                assert_allclose([logp, *gradient], np.hstack(target.log_density(q)))
                assert np.isfinite(total)
                if info.diverging and info.n_gradients == 1:
                    assert_allclose(q, before, rtol=0)
                    assert info.acceptance_rate < 1e-300 and info.depth == 0
                diverged += info.diverging
        assert diverged > 10


def test_what_comes_in_besides_position_and_gradient_stays_as_it_is(rng):
    target = targets.skewed(3)

    def frozen(q):
        logp, gradient = target.log_density(q)
        gradient.flags.writeable = False
        return logp, gradient

    step = np.full(3, 0.8)
    step.flags.writeable = False
    q, gradient, room = target.draw(rng), np.empty(3), tree_room(3, DEPTH)
    for _ in range(20):
        logp, gradient[:] = target.log_density(q)
        logp, _, _ = nuts_in_place(q, gradient, logp, step, frozen, DEPTH, rng, room)
        assert_allclose([logp, *gradient], np.hstack(target.log_density(q)))


def test_the_energy_is_that_of_the_state_with_its_momentum(rng):
    """φᵀφ of the new state: chi-squared, for a Gaussian target as for any other."""
    target = targets.skewed(4)
    with np.errstate(all="ignore"):
        kinetic = []
        for _ in range(60):
            q, path = target.draw(rng), []
            for _ in range(15):
                q, _, logp, total, _ = transition(q, target.log_density, np.full(4, 0.8), rng)
                path.append([total + logp])
            kinetic.append(path)
    assert_means(np.array(kinetic), 2.0)
