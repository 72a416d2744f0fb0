"""Bad starting points are left, good ones are not, and the bottom of a funnel is not gone to.

Guards `bayessel.samplers.ascent`.
"""

import numpy as np
import pytest

import bayessel as bs
from bayessel.samplers import ascent
from tests.problems import targets
from tests.problems.hmc_models import skewed


@pytest.mark.parametrize("far", [1e2, 1e6, 1e12])
def test_a_start_far_away_is_left(far, rng):
    target = targets.gaussian(np.zeros(5), np.diag(np.geomspace(1e-3, 1e3, 5)))
    q = far * np.sqrt(np.geomspace(1e-3, 1e3, 5)) * rng.choice([-1.0, 1.0], 5)
    logp, gradient = target.log_density(q)
    (position, there, slope), count = ascent.leave(q, logp, gradient, target.log_density, rng)
    assert there > target.log_density(np.zeros(5))[0] - 60.0 and count < 1000
    found = target.log_density(position)
    assert found[0] == there
    np.testing.assert_array_equal(found[1], slope)


def test_a_start_among_the_draws_stays_nearly_where_it_is(rng):
    """No way to the mode."""
    target = targets.gaussian(np.zeros(50), np.eye(50))
    for _ in range(20):
        q = target.draw(rng)
        logp, gradient = target.log_density(q)
        (position, there, _), count = ascent.leave(q, logp, gradient, target.log_density, rng)
        assert there == logp and position is q and count <= 10


def test_a_density_of_nought_on_the_way_is_gone_round(rng):
    def wall(q):
        if (q < 0.0).any():
            return -np.inf, np.full(2, np.nan)
        return float(np.sum(np.log(q) - q)), 1.0 / q - 1.0

    (position, there, _), _ = ascent.leave(np.array([1e3, 1e-9]), *wall(np.array([1e3, 1e-9])), wall, rng)
    assert (position > 0.0).all() and there > -12.0


def test_of_two_modes_the_one_without_mass_is_left_mostly(rng):
    """Modes 200 nats apart; the slope from the start leads to the lower one."""

    def density(q):
        heights, places = np.array([0.0, -200.0]), np.array([-4.0, 4.0])
        terms = heights - 50.0 * (q[0] - places) ** 2
        w = np.exp(terms - terms.max())
        return float(terms.max() + np.log(w.sum())), np.array([w @ (-100.0 * (q[0] - places)) / w.sum()])

    ends = []
    for _ in range(30):
        q = np.array([0.9])
        ends.append(ascent.leave(q, *density(q), density, rng)[0][0][0])
    assert np.mean(np.array(ends) < 0.0) > 0.4
    assert ascent.ascend(q, *density(q), density)[0][0][0] > 0.0


def test_chains_arrive_from_far_away():
    """Without the way in, the step size of a chain that starts at e^40 is 1e-16, and it never arrives."""
    runs = bs.sample(
        skewed(), 100, tune=200, chains=2, cores=1, random_seed=1, initvals={"x": np.full(2, 40.0)}, progressbar=False
    )
    assert np.abs(runs.posterior["x"].values).max() < 20.0


def test_gradients_too_large_to_be_squared_are_survived(rng):
    def steep(q):
        with np.errstate(over="ignore"):
            return -float(np.exp(np.abs(q)).sum()), -np.sign(q) * np.exp(np.abs(q))

    for far in (50.0, 400.0, 700.0):
        q = np.array([far, -far])
        (position, there, _), _ = ascent.leave(q, *steep(q), steep, rng)
        assert np.isfinite(position).all() and there >= steep(q)[0]
