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
    monkeypatch.setattr(jumps, "log_density", lambda squares, size, degrees: 0.0)
    assert np.abs(z_scores(SKEWED.features(chains(SKEWED, how, rng, 500)), SKEWED.expected)).max() > 6.0


def test_the_target_stays_where_it_ends_at_a_wall(rng):
    target = targets.half_normal()
    how = jumps.proposal(np.array([0.5]), np.array([[1.0]]))
    assert_means(target.features(chains(target, how, rng)), target.expected)


@pytest.mark.parametrize("degrees", jumps.DEGREES)
def test_proposals_are_the_t_they_say_and_then_land_for_sure(degrees, rng):
    how = proposal(rng)._replace(degrees=degrees)
    law = stats.multivariate_t(how.location, how.factor @ how.factor.T, df=degrees)
    q, path = how.location, []
    logp = law.logpdf(q)
    for _ in range(3000):
        q, logp, info = jumps.jump(q, logp, law.logpdf, how, rng)
        assert info.accepted and info.acceptance_rate > 1.0 - 1e-9
        path.append(q)
    first = (np.array(path) - how.location) @ how.whiten.T
    for z in first.T:
        assert stats.kstest(z, stats.t(degrees).cdf).pvalue > 1e-4


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
        state = tuning.observe_jump(state, jumps.JumpInfo(True, 1.0, jumps.End(0.5, 1.0), jumps.End(0.7, 2.0)))
    assert tuning.stay(state, 3.0) == 1.0
    assert len(state.here) == len(state.there) == tuning.KEPT


def test_when_and_how_many():
    assert [tuning.jumps_per_draw(stay) for stay in (1.0, 2.5, 7.0)] == [2, 4, 9]
    assert tuning.jumps_pay(5.0, 2) and not tuning.jumps_pay(5.1, 2)
    assert not tuning.jumps_pay(10.1, 1000)


def test_the_stay_is_that_of_the_chain(rng):
    # a target that the t covers badly: correlation times of the chain against what pairs of states and proposals say
    how = jumps.proposal(np.zeros(1), np.array([[1.0]]))
    q, logp, here, there, path = np.zeros(1), 0.0, [], [], []
    for _ in range(20_000):
        q, logp, info = jumps.jump(q, logp, lambda x: -0.5 * (x[0] / 1.6) ** 2, how, rng)
        here.append(info.here.excess)
        there.append(info.there.excess)
        path.append(q[0])
    size = az.ess(np.square(path).reshape(4, 5000), method="mean")
    estimate = np.mean([jumps.stay(here[i : i + 1000], there[i : i + 1000]) for i in range(0, 20_000, 1000)])
    assert 0.5 < estimate / (20_000 / size) < 2.0


def observed(target, rng, count):
    """States of a target and proposals of the heaviest t, both with what a chain knows of them."""
    how = jumps.proposal(np.zeros(target.size), np.eye(target.size))
    law = stats.multivariate_t(np.zeros(target.size), df=how.degrees, seed=rng)
    end = lambda q: jumps.excess(q, target.log_density(q)[0], how)  # noqa: E731
    return [end(target.draw(rng)) for _ in range(count)], [end(q) for q in law.rvs(count)]


def test_the_tails_that_are_chosen(rng):
    n = 8
    normal = targets.gaussian(np.zeros(n), np.eye(n))
    lighter = jumps.choose(*observed(normal, rng, 2000), n)
    assert lighter.degrees == jumps.DEGREES[1]
    # of that t, and not of the one that was proposed from: rates of draws of its own
    how = jumps.proposal(np.zeros(n), np.eye(n), lighter.degrees)
    law = stats.multivariate_t(np.zeros(n), df=lighter.degrees, seed=rng)
    here, there = ([jumps.excess(q, -0.5 * q @ q, how).excess for q in draws] for draws in (
        rng.standard_normal((2000, n)), law.rvs(2000)
    ))  # fmt: skip
    assert_allclose(lighter.stay, jumps.stay(here, there), rtol=0.05)
    assert_allclose(jumps.leave([lighter.bound], there), jumps.HARD, rtol=0.15)
    # tails of four degrees: from a lighter t they are hard to leave
    heavy = stats.multivariate_t(np.zeros(n), df=4.0, seed=rng)
    how = jumps.proposal(np.zeros(n), np.eye(n))
    states, proposals = heavy.rvs(2000), stats.multivariate_t(np.zeros(n), df=how.degrees, seed=rng).rvs(2000)
    ends = ([jumps.excess(q, float(heavy.logpdf(q)), how) for q in draws] for draws in (states, proposals))
    assert jumps.choose(*ends, n).degrees == jumps.DEGREES[0]
    # no proposal with a density: nothing is known, and every state counts as hard to leave
    assert jumps.choose([jumps.End(0.0, 1.0)], [jumps.End(-np.inf, 1.0)], n).bound == -np.inf
