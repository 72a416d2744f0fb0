"""The tuning: each rule against what it should find, then whole chains tuned by nobody.

Guards `bayessel.samplers.tuning`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from bayessel.samplers import horowitz, tuning
from tests.oracles.monte_carlo import assert_means
from tests.problems import targets


def test_dual_averaging_finds_the_rate_it_is_asked_for(rng):
    # acceptance exp(−ε): a rate of 0.8 needs ε = −log 0.8
    state = tuning.averaging_from(3.0)
    for _ in range(2000):
        rate = np.exp(-np.exp(state.current)) + 0.1 * rng.standard_normal()
        state = tuning.average(state, 0.8 - rate)
    assert_allclose(np.exp(state.mean), -np.log(0.8), rtol=0.1)
    assert state.seen == 2000


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_step_sizes_stay_numbers_when_every_step_ends_alike(rate):
    state = tuning.averaging_from(1.0)
    for _ in range(200_000):
        state = tuning.average(state, 0.9 - rate)
    step_size = np.exp(state.mean)
    assert 0.0 < step_size < np.inf
    assert tuning.updates_per_draw(step_size, 1, 1.0) == (1 if rate else tuning.MOST_GRADIENTS)
    tuning.averaging_from(step_size)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("guess", [1e-9, 1.0, 1e9])
def test_first_step_size_is_within_a_factor_of_what_is_stable(scale, guess, rng):
    target = targets.gaussian(np.zeros(3), scale**2 * np.eye(3))
    position = target.draw(rng)
    phase = horowitz.Phase(position, horowitz.fresh_momentum(rng, position.size), *target.log_density(position))
    with np.errstate(all="ignore"):
        step_size, n_gradients = tuning.reasonable_step_size(phase, target.log_density, np.ones(3), guess)
    assert 0.1 * scale < step_size < 2.0 * scale * 4.0
    assert 2 <= n_gradients < 60


def test_windows_double_and_leave_the_end_to_the_step_size():
    assert tuning.window_ends(1000) == (25, 75, 175, 375, 850)
    for n_tune in (1, 5, 10, 20, 50, 137, 300, 5000):
        ends = tuning.window_ends(n_tune)
        assert list(ends) == sorted(set(ends)) and all(0 < end < n_tune for end in ends)
        lengths = np.diff((0, *ends))
        assert (lengths[1:] >= lengths[:-1]).all()
        assert not ends or n_tune - ends[-1] >= min(10, 0.1 * n_tune)
    assert tuning.window_ends(5) == ()


def filled(draws, gradients, n_tune):
    state = tuning.begin(n_tune, draws.shape[1], 0.9, 0.1)
    for position, gradient in zip(draws, gradients, strict=True):
        state = tuning.record(state, position, gradient)
    return state


@pytest.mark.parametrize("n", [10, 20, 475])
def test_scales_come_from_the_window(n, rng):
    spread = np.geomspace(1e-3, 1e3, 7)
    draws = 5.0 * spread + spread * rng.standard_normal((n, 7))
    gradients = (5.0 * spread - draws) / spread**2
    state = filled(draws, gradients, 1000)
    closed, scale = tuning.close_window(state, spread * np.exp(0.1 * rng.standard_normal(7)))
    # gradients make short windows exact for a Gaussian; long ones are as good as their draws
    assert_allclose(scale, spread, rtol=0.2 if n < tuning.SHORT else 5.0 / np.sqrt(2 * n))
    assert closed.seen == 0 and len(closed.kept) == 0 and closed.draw == n
    assert_allclose(filled(draws, gradients, 1000).window.spread / (n - 1), draws.var(axis=0, ddof=1), rtol=1e-9)


def test_a_window_that_did_not_move_changes_nothing():
    stuck = np.ones((40, 3))
    closed, scale = tuning.close_window(filled(stuck, stuck, 1000), np.array([1.0, 2.0, 3.0]))
    assert_allclose(scale, [1.0, 2.0, 3.0])
    assert closed.relaxation == 1.0


def test_a_constant_gradient_leaves_the_draws_to_say_the_scale(rng):
    draws = 1e-3 * rng.exponential(size=(40, 2))
    _, scale = tuning.close_window(filled(draws, -1e3 * (1.0 + 1e-15 * rng.standard_normal((40, 2))), 1000), np.ones(2))
    assert_allclose(scale, 1e-3, rtol=0.8)


def test_drift_is_not_taken_for_slowness(rng):
    draws = np.linspace(0.0, 1e6, 40)[:, None] + rng.standard_normal((40, 3))
    closed, _ = tuning.close_window(filled(draws, -rng.standard_normal((40, 3)), 1000), np.ones(3))
    assert closed.relaxation <= np.sqrt(3.0)


@pytest.mark.parametrize("size", [2, 100])
def test_slowest_variance(size, rng):
    along = rng.standard_normal(size)
    along /= np.linalg.norm(along)
    independent, stretched = [], []
    for _ in range(40):
        z = rng.standard_normal((128, size))
        independent.append(tuning.variance_of_slowest_direction(z))
        stretched.append(tuning.variance_of_slowest_direction(z + 4.0 * np.outer(z @ along, along)))
    assert_means(np.array(independent)[:, None], 1.0)
    # 25 along one direction; the direction found from 64 draws is not quite it
    assert 20.0 < np.mean(stretched) < 26.0
    # the largest eigenvalue itself is far too large where there are as many directions as draws
    if size == 100:
        assert np.linalg.svd(z, compute_uv=False)[0] ** 2 / 128 > 2.5
    assert tuning.variance_of_slowest_direction(z[:6]) == 1.0


def test_what_follows_from_step_and_relaxation():
    assert_allclose(tuning.persistence(0.5, 2, 4.0), np.exp(-0.5 * 0.5 * 2 / 4.0))
    assert_allclose(tuning.pace(0.6), 0.32)
    assert tuning.pace(1.0 - 1e-16) > 0.0
    assert tuning.updates_per_draw(0.3, 1, 2.0) == 10
    assert tuning.updates_per_draw(5.0, 1, 1.0) == 1
    assert tuning.updates_per_draw(1e-9, 7, 1.0) == 142


def test_every_kept_draw_is_spread_over_its_window(rng):
    state = tuning.begin(5000, 1, 0.9, 0.1)
    for i in range(tuning.window_ends(5000)[-1]):
        state = tuning.record(state, np.array([float(i)]), np.zeros(1))
        if tuning.ends_window(state):
            last = state
            state, _ = tuning.close_window(state, np.ones(1))
    kept = np.ravel(last.kept)
    assert 0.4 * tuning.KEPT < len(kept) <= tuning.KEPT + 1
    assert len(np.unique(np.diff(kept))) == 1 and kept[-1] - kept[0] > 0.9 * last.seen
