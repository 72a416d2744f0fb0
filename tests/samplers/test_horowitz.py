"""One update leaves its distribution as it is: position, momentum and persistent uniform; and planted bugs are seen.

Guards `bayessel.samplers.horowitz`, `bayessel.samplers.window`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from bayessel.samplers import horowitz, window
from bayessel.samplers.horowitz import HorowitzSettings, HorowitzState
from bayessel.samplers.leapfrog import Phase, energy, trajectory
from tests.oracles.monte_carlo import assert_means, z_scores
from tests.problems import targets

CHAINS, UPDATES = 160, 50


def start(position, log_density, rng):
    """State at a position: density and gradient evaluated, momentum and uniform drawn."""
    phase = Phase(position, horowitz.fresh_momentum(rng, position.size), *log_density(position))
    return HorowitzState(phase, horowitz.fresh_uniform(rng))


def run(target, settings, rng, chains=CHAINS, updates=UPDATES):
    """Features of position, momentum and uniform, (chains, updates, features), and the positions themselves.

    Chains start from exact draws, so every expectation is exact from the first update on. The uniform must be
    independent of where the chain is, so features are taken times |v| as well.
    """
    positions, momenta, uniforms = [], [], []
    for _ in range(chains):
        state = start(target.draw(rng), target.log_density, rng)
        for _ in range(updates):
            state, _ = horowitz.transition(state, target.log_density, settings, rng)
            positions.append(state.phase.position)
            momenta.append(state.phase.momentum)
            uniforms.append([state.v])
    positions, momenta, v = (np.reshape(part, (chains, updates, -1)) for part in (positions, momenta, uniforms))
    features = target.features(positions)
    return np.concatenate(
        [features, momenta, momenta**2, v, v**2, np.abs(v) * np.concatenate([features, momenta**2], axis=-1)], axis=-1
    ), positions


def expected(target):
    n = target.size
    return np.r_[target.expected, np.zeros(n), np.ones(n), 0.0, 1.0 / 3.0, 0.5 * target.expected, np.full(n, 0.5)]


def settings_for(target, step=1.0, n_leapfrog=1, width=1, persistence=0.9, delta=0.1, jitter=0.0):
    return HorowitzSettings(np.full(target.size, step * target.length), n_leapfrog, width, persistence, delta, jitter)


def check(target, settings, rng, **kw):
    """Every expectation within 4 standard errors."""
    features, positions = run(target, settings, rng, **kw)
    assert_means(features, expected(target))
    return positions


WAYS = {
    "metropolis": {"delta": 0.0},
    "nonreversible": {},
    "several steps": {"n_leapfrog": 3, "persistence": 0.7},
    "plain HMC": {"n_leapfrog": 3, "persistence": 0.0, "delta": 0.0, "jitter": 0.2},
    "windows": {"n_leapfrog": 3, "width": 2},
    "windows, metropolis": {"n_leapfrog": 2, "width": 2, "delta": 0.0},
    "overlapping windows": {"n_leapfrog": 2, "width": 3},
    "two states, one window of both": {"n_leapfrog": 1, "width": 2},
}


@pytest.mark.parametrize("way", WAYS)
def test_skewed_target(way, rng):
    target = targets.skewed(2)
    positions = check(target, settings_for(target, 1.2, **WAYS[way]), rng)
    # it moves: from where it started to the end nothing is left to see
    assert abs(np.corrcoef(positions[:, 0, 0], positions[:, -1, 0])[0, 1]) < 0.7


@pytest.mark.parametrize("way", ["metropolis", "nonreversible", "windows"])
def test_correlated_gaussian(way, rng):
    target = targets.correlated(0.999)
    check(target, settings_for(target, 1.2, **{"persistence": 0.98, **WAYS[way]}), rng)


@pytest.mark.parametrize("way", ["metropolis", "nonreversible", "windows"])
def test_funnel(way, rng):
    target = targets.funnel()
    check(target, settings_for(target, 0.8, **WAYS[way]), rng)


@pytest.mark.parametrize("way", ["metropolis", "nonreversible"])
def test_ill_conditioned_gaussian(way, rng):
    target = targets.ill_conditioned()
    # many short chains: along the long axes a chain hardly moves, and squares of few values are far from normal
    check(target, settings_for(target, 0.6, **{"persistence": 0.98, **WAYS[way]}), rng, chains=800, updates=8)


@pytest.mark.parametrize("way", ["metropolis", "nonreversible", "windows"])
def test_linear_gaussian_posterior(way, rng):
    target = targets.linear_gaussian()
    check(target, settings_for(target, 1.0, **WAYS[way]), rng)


@pytest.mark.parametrize("way", ["metropolis", "nonreversible", "several steps", "windows", "overlapping windows"])
def test_a_density_that_ends_at_a_wall(way, rng):
    target = targets.half_normal()
    check(target, settings_for(target, 0.5, **WAYS[way]), rng)


def test_checks_can_fail(rng):
    target = targets.skewed(2)
    features, _ = run(target, settings_for(target, 1.2), rng)
    spread = features.std(axis=(0, 1))
    truth = expected(target)
    assert_means(features, truth)
    for i in range(len(truth)):
        # a standard deviation beside the truth
        wrong = truth + spread * (np.arange(len(spread)) == i)
        with pytest.raises(AssertionError, match=f"1 of {len(truth)} means are off"):
            assert_means(features, wrong)


# --- planted bugs: each is seen by the check above --------------------------------------------------------------


def planted(target, settings, rng, **kw):
    """How many standard errors the worst expectation is off."""
    with np.errstate(all="ignore"):
        features, _ = run(target, settings, rng, **kw)
        z = np.abs(z_scores(features, expected(target)))
    return z.max() if np.isfinite(z).all() else np.inf


@pytest.mark.parametrize("way", ["metropolis", "nonreversible", "windows"])
def test_planted_no_flip_on_rejection(way, rng, monkeypatch):
    monkeypatch.setattr(horowitz, "flip", lambda phi: phi)
    target = targets.skewed(2)
    assert planted(target, settings_for(target, 1.3, **WAYS[way]), rng) > 4.0


@pytest.mark.parametrize(("n_leapfrog", "width"), [(1, 1), (3, 2)])
def test_planted_uniform_not_rescaled(n_leapfrog, width, rng, monkeypatch):
    target = targets.skewed(1)
    # slow enough that |v| still knows where the chain has been
    settings = settings_for(target, 1.8, n_leapfrog=n_leapfrog, width=width, delta=0.003)
    monkeypatch.setattr(horowitz, "rescale", lambda v, log_ratio: v)
    assert planted(target, settings, rng, chains=60, updates=250) > 4.0


def test_planted_uniform_rescaled_the_wrong_way(rng, monkeypatch):
    monkeypatch.setattr(horowitz, "rescale", lambda v, log_ratio: v * np.exp(min(log_ratio, 0.0)))
    target = targets.skewed(2)
    assert planted(target, settings_for(target, 1.3), rng) > 4.0


def test_planted_refresh_of_the_wrong_size(rng, monkeypatch):
    monkeypatch.setattr(horowitz, "refresh", lambda phi, a, noise: a * phi + (1.0 - a) * noise)
    target = targets.skewed(2)
    assert planted(target, settings_for(target, 1.3), rng) > 4.0


def test_planted_window_state_not_weighted(rng, monkeypatch):
    monkeypatch.setattr(window, "pick", lambda states, energies, rng: states[int(rng.integers(len(states)))])
    target = targets.skewed(2)
    assert planted(target, settings_for(target, 1.3, n_leapfrog=4, width=3), rng) > 4.0


def test_planted_window_always_starts_at_its_edge(rng, monkeypatch):
    right = window.ends
    monkeypatch.setattr(window, "ends", lambda phase, f, step, n, width, offset: right(phase, f, step, n, width, 0))
    target = targets.skewed(2)
    assert planted(target, settings_for(target, 1.3, n_leapfrog=2, width=2), rng) > 4.0


# --- the parts --------------------------------------------------------------------------------------------------


def test_the_uniform_goes_round_and_stays_uniform(rng):
    v = np.array([horowitz.advance(horowitz.fresh_uniform(rng), 0.3, rng) for _ in range(4000)])
    assert (-1.0 <= v).all() and (v < 1.0).all()
    assert stats.kstest(v, stats.uniform(-1.0, 2.0).cdf).pvalue > 1e-4
    moved = np.array([horowitz.advance(0.2, 0.1, rng) for _ in range(4000)]) - 0.2
    assert 0.0499 <= moved.min() and moved.max() <= 0.1501
    assert_means(moved[:, None], 0.1)
    assert -0.76 <= horowitz.advance(0.9999, 0.5, rng) <= -0.24


def test_accepting_by_the_uniform(rng):
    assert horowitz.accepts(0.3, np.log(0.31)) and not horowitz.accepts(-0.3, np.log(0.29))
    assert horowitz.accepts(0.999, 2.0) and not horowitz.accepts(0.5, -np.inf)
    assert not horowitz.accepts(0.5, np.nan)
    assert_allclose(horowitz.rescale(-0.3, np.log(0.6)), -0.5)
    assert horowitz.rescale(0.5, np.inf) == 0.0 and horowitz.rescale(0.0, -720.0) == 0.0


def test_refreshing_and_flipping_the_momentum(rng):
    phi, noise = rng.standard_normal((2, 5))
    assert_allclose(horowitz.refresh(phi, 0.6, noise), 0.6 * phi + 0.8 * noise)
    assert_allclose(horowitz.refresh(phi, 0.0, noise), noise)
    assert_allclose(horowitz.flip(phi), -phi)


def test_one_update_by_hand(rng):
    target = targets.skewed(3)
    settings = settings_for(target, 0.9, n_leapfrog=3, delta=0.0)
    state = start(target.draw(rng), target.log_density, rng)
    outcomes = set()
    for seed in range(40):
        new, info = horowitz.transition(state, target.log_density, settings, np.random.default_rng(seed))
        end = trajectory(state.phase, target.log_density, settings.step, 3)[0][-1]
        rate = min(1.0, np.exp(energy(state.phase) - energy(end)))
        same = np.random.default_rng(seed)
        accepted = abs(2.0 * same.random() - 1.0) < rate
        phi = end.momentum if accepted else -state.phase.momentum
        assert_allclose(new.phase.position, end.position if accepted else state.phase.position)
        assert_allclose(new.phase.momentum, 0.9 * phi + np.sqrt(0.19) * same.standard_normal(3))
        assert_allclose([new.phase.logp, *new.phase.gradient], np.hstack(target.log_density(new.phase.position)))
        assert (info.accepted, info.n_gradients, info.diverging) == (accepted, 3, False)
        assert_allclose(info.acceptance_rate, rate)
        outcomes.add(accepted)
        state = new
    assert outcomes == {True, False}


def test_what_comes_in_stays_as_it_is(rng):
    target = targets.skewed(3)

    def frozen(q):
        q.flags.writeable = False
        logp, gradient = target.log_density(q)
        gradient.flags.writeable = False
        return logp, gradient

    for way in WAYS.values():
        settings = settings_for(target, 1.2, **way)
        settings.step.flags.writeable = False
        state = start(target.draw(rng), frozen, rng)
        for _ in range(20):
            state.phase.momentum.flags.writeable = False
            before = [np.copy(part) for part in state.phase]
            new, _ = horowitz.transition(state, frozen, settings, rng)
            for old, now in zip(before, state.phase, strict=True):
                assert_allclose(old, now, rtol=0)
            state = new


def test_leaving_the_typical_set_is_a_divergence_and_a_rejection(rng):
    for target, step in ((targets.skewed(1), 60.0), (targets.half_normal(), 500.0)):
        for way in ("nonreversible", "several steps", "windows"):
            settings = settings_for(target, step, **WAYS[way])
            state = start(np.ones(1), target.log_density, rng)
            with np.errstate(all="ignore"):
                infos = []
                for _ in range(20):
                    state, info = horowitz.transition(state, target.log_density, settings, rng)
                    infos.append(info)
            diverged = [info for info in infos if info.diverging]
            # a window cut short at the wall may still hold states worth going to
            assert diverged and (way == "windows" or not any(info.accepted for info in diverged))
            assert np.isfinite(state.phase.logp)


def test_a_new_momentum_at_every_update_is_plain_hamiltonian_monte_carlo(rng):
    target = targets.skewed(2)
    settings = settings_for(target, 0.5, n_leapfrog=2, persistence=0.0)
    state = start(target.draw(rng), target.log_density, rng)
    twin = HorowitzState(state.phase._replace(momentum=state.phase.momentum.copy()), state.v)
    a, _ = horowitz.transition(state, target.log_density, settings, np.random.default_rng(1))
    b, _ = horowitz.transition(twin, target.log_density, settings, np.random.default_rng(1))
    assert_allclose(a.phase.momentum, b.phase.momentum)


def test_trajectories_of_half_a_period_need_jitter(rng):
    # ten steps of angle 2 arcsin(ε/2) = π/10: q ← −q for ever, and q² never changes
    target = targets.gaussian(np.zeros(1), np.eye(1))
    step = 2.0 * np.sin(np.pi / 20.0)
    spread = {}
    for jitter in (0.0, 0.2):
        _, q = run(target, settings_for(target, step, 10, persistence=0.0, jitter=jitter), rng, chains=3, updates=200)
        spread[jitter] = (q**2).std(axis=1).max()
    assert spread[0.0] < 1e-6 and spread[0.2] > 0.5


# --- windows ----------------------------------------------------------------------------------------------------


def windows_from(states, f, step, n_leapfrog, width, place):
    """The windows found by the state at a place of a known trajectory, as positions and log ratio."""
    found = window.ends(states[place], f, step, n_leapfrog, width, place)
    return [np.array([s.position for s in part[0]]).ravel() for part in (found.reject, found.accept)], found


@pytest.mark.parametrize(("n_leapfrog", "width"), [(5, 1), (5, 2), (4, 3), (3, 3), (2, 3), (1, 2)])
def test_every_state_of_a_window_finds_the_same_windows(n_leapfrog, width, rng):
    target = targets.skewed(2)
    step = np.full(2, 0.4)
    q = target.draw(rng)
    start = Phase(q, rng.standard_normal(2), *target.log_density(q))
    states = [start, *trajectory(start, target.log_density, step, n_leapfrog)[0]]
    energies = [energy(s) for s in states]
    expected = np.log(np.sum(np.exp(-np.array(energies[-width:])))) - np.log(
        np.sum(np.exp(-np.array(energies[:width])))
    )
    for place in range(width):
        (reject, accept), found = windows_from(states, target.log_density, step, n_leapfrog, width, place)
        assert_allclose(reject, np.ravel([s.position for s in states[:width]]), rtol=1e-9)
        assert_allclose(accept, np.ravel([s.position for s in states[-width:]]), rtol=1e-9)
        assert_allclose(found.log_ratio, expected, rtol=1e-7, atol=1e-9)
        assert (found.n_gradients, found.cut) == (n_leapfrog, False)
    # and from the other end, turned round, they change places
    turned = [s._replace(momentum=-s.momentum) for s in reversed(states)]
    (reject, accept), found = windows_from(turned, target.log_density, step, n_leapfrog, width, 0)
    assert_allclose(np.sort(reject), np.sort(np.ravel([s.position for s in states[-width:]])), rtol=1e-9)
    assert_allclose(found.log_ratio, -expected, rtol=1e-7, atol=1e-9)


def test_windows_are_cut_alike_from_both_sides_of_a_wall():
    target = targets.half_normal()
    step = np.array([0.1])
    q = np.array([0.55])
    start = Phase(q, np.array([-1.0]), *target.log_density(q))
    states = [start, *trajectory(start, target.log_density, step, 10)[0]]
    assert len(states) == 6  # the next would be beyond the wall
    # places 0 … 8 of a trajectory whose last three states do not exist: the accept window cannot be reached
    for place in range(3):
        (reject, accept), found = windows_from(states, target.log_density, step, 8, 3, place)
        assert_allclose(reject, np.ravel([s.position for s in states[:3]]))
        assert len(accept) == 0 and found.log_ratio == -np.inf and found.cut
        assert found.n_gradients == 6  # five that exist and the one that failed
    # the wall inside the accept window: what is left of it counts
    for place in range(3):
        (reject, accept), found = windows_from(states, target.log_density, step, 6, 3, place)
        assert_allclose(accept, np.ravel([s.position for s in states[4:]]))
        assert found.cut
    # the wall behind the start: seen from the other end, the same two windows in the other order
    turned = [s._replace(momentum=-s.momentum) for s in reversed(states)]
    for place in (1, 2):  # place 0 is the one beyond the wall
        backward = window.ends(turned[place - 1], target.log_density, step, 6, 3, place)
        assert backward.cut
        assert_allclose(sorted(s.position[0] for s in backward.reject[0]), sorted(s.position[0] for s in states[4:]))
        assert_allclose(backward.log_ratio, -found.log_ratio, rtol=1e-9, atol=1e-12)


def test_weights_of_a_window(rng):
    energies = [1000.0, 1000.0 + np.log(3.0)]
    assert_allclose(window.log_weight(energies), -1000.0 + np.log(4.0 / 3.0))
    assert window.log_weight([]) == -np.inf
    phases = [Phase(np.full(1, float(i)), np.zeros(1), 0.0, np.zeros(1)) for i in range(2)]
    picks = [float(window.pick(phases, energies, rng).position[0]) for _ in range(2000)]
    assert_means(np.array(picks)[:, None], 0.25)
