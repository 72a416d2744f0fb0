"""Jumps leave the target as it is, and always land when the target is what they are drawn from."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from bayessel.samplers import jumps, tuning
from tests import targets
from tests.mc_asserts import assert_means, z_scores

SKEWED = targets.skewed(3)


def proposal(rng):
    """Off by half a length in place, scale and shape."""
    factor = np.tril(0.3 * rng.standard_normal((3, 3)))
    factor[np.diag_indices(3)] = [1.0, 1.6, 1.2]
    return jumps.proposal(np.array([-0.2, -0.9, 0.1]), factor)


def chains(target, how, rng, n_chains=2000, n_jumps=6):
    """From exact draws of the target; the positions after each jump, (chains, jumps, n)."""
    paths = np.empty((n_chains, n_jumps, target.size))
    for c in range(n_chains):
        q = target.draw(rng)
        logp = target.log_density(q)[0]
        for i in range(n_jumps):
            q, logp, _ = jumps.jump(q, logp, lambda x: target.log_density(x)[0], how, rng)
            paths[c, i] = q
        assert_allclose(logp, target.log_density(q)[0])
    return paths


def test_the_target_stays(rng, monkeypatch):
    how = proposal(rng)
    assert_means(SKEWED.features(chains(SKEWED, how, rng)), SKEWED.expected)
    # planted: the density of the proposal is forgotten
    monkeypatch.setattr(jumps, "log_density", lambda squares, size: 0.0)
    assert np.abs(z_scores(SKEWED.features(chains(SKEWED, how, rng, 500)), SKEWED.expected)).max() > 6.0


def test_the_target_stays_where_it_ends_at_a_wall(rng):
    target = targets.half_normal()
    how = jumps.proposal(np.array([0.5]), np.array([[1.0]]))
    assert_means(target.features(chains(target, how, rng)), target.expected)


def test_proposals_are_the_t_they_say_and_then_land_for_sure(rng):
    how = proposal(rng)
    law = stats.multivariate_t(how.location, how.factor @ how.factor.T, df=jumps.DEGREES)
    q, path = how.location, []
    logp = law.logpdf(q)
    for _ in range(3000):
        q, logp, info = jumps.jump(q, logp, law.logpdf, how, rng)
        assert info.accepted and info.acceptance_rate > 1.0 - 1e-9
        path.append(q)
    first = (np.array(path) - how.location) @ how.whiten.T
    for z in first.T:
        assert stats.kstest(z, stats.t(jumps.DEGREES).cdf).pvalue > 1e-4


@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_where_there_is_no_density_nobody_lands(bad, rng):
    how = proposal(rng)
    q, logp, info = jumps.jump(np.zeros(3), -1.0, lambda x: bad, how, rng)
    assert_allclose(q, 0.0)
    assert logp == -1.0 and not info.accepted and info.acceptance_rate == 0.0


def test_how_many_in_a_draw():
    assert [tuning.jumps_per_draw(rate) for rate in (1.0, 0.75, 0.5, 0.25)] == [2, 3, 5, 11]
    state = tuning.begin(100, 2, 0.9, 0.1)
    assert tuning.jump_rate(state, 0.3) == 0.3
    for _ in range(10):
        state = tuning.observe_jump(state, 0.7)
    assert_allclose(tuning.jump_rate(state, 0.3), 0.7)
