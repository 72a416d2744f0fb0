"""Jumps leave the target as it is, and always land when the target is what they are drawn from.

Guards `bayessel.samplers.jumps`, `bayessel.samplers.tuning`.
"""

import arviz as az
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from bayessel.samplers import jumps, tuning
from tests.oracles.monte_carlo import assert_means, z_scores
from tests.problems import targets

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


def test_how_long_a_chain_stays(rng):
    # of a hundred states one is left once in a thousand jumps; nine in ten jumps leave the others
    states, proposals = [0.0] * 99 + [np.log(900.0)], [0.0] * 9 + [-np.inf]
    assert_allclose(jumps.stay(states, proposals), 0.99 * (2.0 / 0.9 - 1.0) + 0.01 * (2.0 / 0.001 - 1.0), rtol=1e-9)
    assert jumps.stay([0.0], [-np.inf]) > 1e100
    state = tuning.begin(100, 2, 0.9, 0.1)
    assert tuning.stay(state, 3.0) == 3.0
    for _ in range(300):
        state = tuning.observe_jump(state, jumps.JumpInfo(True, 1.0, 0.5, 0.7))
    assert tuning.stay(state, 3.0) == 1.0
    assert len(state.here) == len(state.there) == tuning.KEPT


def test_when_and_how_many():
    assert [tuning.jumps_per_draw(stay) for stay in (1.0, 2.5, 7.0)] == [2, 4, 11]
    assert tuning.jumps_pay(5.0, 2) and not tuning.jumps_pay(5.1, 2)
    assert not tuning.jumps_pay(10.1, 1000)


def test_the_stay_is_that_of_the_chain(rng):
    # a target that the t covers badly: correlation times of the chain against what pairs of states and proposals say
    how = jumps.proposal(np.zeros(1), np.array([[1.0]]))
    q, logp, here, there, path = np.zeros(1), 0.0, [], [], []
    for _ in range(20_000):
        q, logp, info = jumps.jump(q, logp, lambda x: -0.5 * (x[0] / 1.6) ** 2, how, rng)
        here.append(info.here)
        there.append(info.there)
        path.append(q[0])
    size = az.ess(np.square(path).reshape(4, 5000), method="mean")
    estimate = np.mean([jumps.stay(here[i : i + 1000], there[i : i + 1000]) for i in range(0, 20_000, 1000)])
    assert 0.5 < estimate / (20_000 / size) < 2.0
