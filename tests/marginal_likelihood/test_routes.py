"""Each route to an evidence against integrals that are known.

Guards `bayessel.marginal_likelihood.quadrature`, `bayessel.marginal_likelihood.modes`,
`bayessel.marginal_likelihood.laplace_importance`, `bayessel.marginal_likelihood.pareto`,
`bayessel.marginal_likelihood.bridge`, `bayessel.marginal_likelihood.bridge_route`,
`bayessel.marginal_likelihood.draws_doubt`, `bayessel.marginal_likelihood.annealing_route`,
`bayessel.marginal_likelihood.nested_route`, `bayessel.marginal_likelihood.route`.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp

from bayessel.marginal_likelihood.annealing_route import annealing_routes
from bayessel.marginal_likelihood.bridge import bridge
from bayessel.marginal_likelihood.bridge_route import bridge_routes
from bayessel.marginal_likelihood.draws_doubt import judge_draws
from bayessel.marginal_likelihood.laplace_importance import FREEDOM, laplace_importance, log_proposal
from bayessel.marginal_likelihood.modes import DensityMode, find_modes, laplace, unvisited
from bayessel.marginal_likelihood.nested_route import nested_route
from bayessel.marginal_likelihood.pareto import tail_index
from bayessel.marginal_likelihood.quadrature import quadrature
from bayessel.marginal_likelihood.route import Route
from bayessel.marginal_likelihood.target_density import TargetDensity


def under_normal_prior(log_likelihood, d, scale=3.0):
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, scale, shape=d)
        pm.CustomDist("y", x, logp=lambda v, x: log_likelihood(x) + 0 * v, signature="(n)->()", observed=0.0)
    return TargetDensity(model)


def bumps(d, centres, scales, shares):
    """Likelihood: a mixture of round normals; the evidence under N(0, 3²) in closed form."""

    def log_likelihood(x):
        parts = [
            np.log(w) - 0.5 * ((x - c) ** 2).sum() / s**2 - d * (np.log(s) + 0.5 * np.log(2 * np.pi))
            for c, s, w in zip(centres, scales, shares, strict=True)
        ]
        return pt.logsumexp(pt.stack(parts))

    exact = logsumexp(
        [
            np.log(w) + d * stats.norm.logpdf(c, 0.0, np.hypot(3.0, s))
            for c, s, w in zip(centres, scales, shares, strict=True)
        ]
    )
    return under_normal_prior(log_likelihood, d), float(exact)


def starts(target, n=20, seed=0):
    return target.prior_draws(np.random.default_rng(seed), n)


def known_draws(target, d, centre, scale, chains=4, count=1_000, seed=1):
    """Independent draws of the posterior of one bump."""
    precision = scale**-2.0 + 3.0**-2.0
    rng = np.random.default_rng(seed)
    return centre * scale**-2.0 / precision + rng.normal(size=(chains, count, d)) / np.sqrt(precision)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_has_the_integral_to_many_digits(d):
    target, exact = bumps(d, [1.0], [0.5], [1.0])
    found = quadrature(target, np.full(d, 0.8), 0.6 * np.eye(d), starts(target))
    assert found.reliable and found.is_exact and found.error > 0.0
    assert abs(found.value - exact) < max(5 * found.error, 1e-7)


def test_a_grid_is_not_blind_to_what_lies_beyond_it():
    target, exact = bumps(1, [-6.0, 6.0], [0.3, 0.3], [0.5, 0.5])
    crowd = target.prior_draws(np.random.default_rng(0), 2_000)
    found = quadrature(target, np.full(1, -6.0), 0.3 * np.eye(1), crowd)
    assert abs(found.value - exact) < 2e-3 and found.reliable
    # the control: without points elsewhere the second bump is not seen
    blind = quadrature(target, np.full(1, -6.0), 0.3 * np.eye(1), np.full((1, 1), -6.0))
    assert abs(blind.value - exact) > 0.1


def test_a_grid_refuses_what_it_cannot_do():
    assert (
        "4 coordinates" in quadrature(bumps(4, [0.0], [1.0], [1.0])[0], np.zeros(4), np.eye(4), np.zeros((1, 4))).reason
    )
    with pm.Model() as model:
        pm.Flat("x")
        pm.Normal("y", 0.0, 1.0, observed=0.0)
    endless = quadrature(TargetDensity(model), np.zeros(1), np.eye(1), np.zeros((1, 1)))
    assert not endless.reliable and "does not fall off" in endless.reason


def test_modes_have_their_places_curvatures_and_masses():
    target, _ = bumps(3, [-4.0, 4.0], [0.5, 0.3], [0.7, 0.3])
    found = find_modes(target.whole, starts(target, 40), np.ones(3))
    assert len(found.modes) == 2
    for mode, (centre, scale) in zip(sorted(found.modes, key=lambda m: m.place[0]), ((-4, 0.5), (4, 0.3)), strict=True):
        precision = scale**-2.0 + 1 / 9.0
        np.testing.assert_allclose(mode.place, centre * scale**-2.0 / precision, rtol=1e-5)
        np.testing.assert_allclose(mode.factor @ mode.factor.T, np.eye(3) / precision, atol=1e-5)
    shares = np.exp([laplace(mode) for mode in found.modes])
    weights = [w * np.exp(3 * stats.norm.logpdf(c, 0, np.hypot(3, s))) for c, s, w in ((-4, 0.5, 0.7), (4, 0.3, 0.3))]
    np.testing.assert_allclose(sorted(shares), sorted(weights), rtol=1e-4)


def test_a_crowd_finds_a_mode_with_a_small_basin():
    target, _ = bumps(6, [3.0, -3.0], [0.5, 0.25], [0.8, 0.2])
    few = np.full((1, 6), 2.0)
    assert len(find_modes(target.whole, few, np.ones(6)).modes) == 1
    crowd = target.prior_draws(np.random.default_rng(0), 2_000)
    assert len(find_modes(target.whole, few, np.ones(6), crowd).modes) == 2


def test_modes_that_no_point_has_been_at():
    modes = [DensityMode(np.zeros(2), 0.0, np.eye(2)), DensityMode(np.full(2, 20.0), np.log(0.25), np.eye(2))]
    rows = np.random.default_rng(0).normal(size=(200, 2))
    assert unvisited(modes, rows) == pytest.approx(0.2)
    assert unvisited(modes, np.concatenate([rows, rows + 20.0])) == 0.0


def test_the_proposal_of_importance_sampling_is_a_student_t():
    rng = np.random.default_rng(0)
    factor = np.triu(rng.normal(size=(3, 3))) + 2.0 * np.eye(3)
    mode, rows = DensityMode(rng.normal(size=3), 0.0, factor), rng.normal(size=(5, 3))
    expected = stats.multivariate_t.logpdf(rows, mode.place, factor @ factor.T, df=FREEDOM)
    np.testing.assert_allclose(log_proposal(rows, [mode], np.ones(1)), expected, rtol=1e-10)


def test_importance_sampling_corrects_laplace_over_several_modes():
    target, exact = bumps(5, [-3.0, 3.0], [0.5, 0.4], [0.6, 0.4])
    found = find_modes(target.whole, starts(target, 60), np.ones(5))
    route, believed = laplace_importance(target, found, np.random.default_rng(0))
    assert believed == found.modes
    assert len(found.modes) == 2 and route.reliable and abs(route.value - exact) < 4 * route.error < 0.1


def test_importance_sampling_knows_when_its_proposal_is_no_cover():
    """A likelihood that is flat far out: the t around its sharp mode misses most of the mass."""
    target = under_normal_prior(
        lambda x: pt.logaddexp(-0.5 * (x**2).sum() / 1e-4 + 3.0, -0.5 * (x**2).sum() / 400.0), 6
    )
    found = find_modes(target.whole, np.zeros((1, 6)), np.ones(6))
    route, believed = laplace_importance(target, found, np.random.default_rng(0))
    assert not route.reliable and not believed


def test_the_mass_of_a_mode_that_falls_off_faster_than_its_curvature_says():
    target = under_normal_prior(lambda x: -0.5 * ((x / 0.01) ** 2).sum() - 10.0 * ((x / 0.01) ** 4).sum(), 1)
    normal, _ = bumps(2, [1.0], [0.5], [1.0])
    sharp = find_modes(target.whole, np.full((1, 1), 0.001), np.full(1, 0.01)).modes[0]
    round_one = find_modes(normal.whole, np.zeros((1, 2)), np.ones(2)).modes[0]
    z = np.linspace(-8.0, 8.0, 20_001)
    exact = -np.log(np.sum(stats.norm.pdf(z) * np.exp(-10.0 * z**4)) * (z[1] - z[0]))
    assert abs(sharp.excess - exact) < 0.5 < exact and round_one.excess < 1e-3


def test_the_tail_index_of_ratios_with_a_known_tail():
    u = np.random.default_rng(0).random(20_000)
    for k in (0.2, 0.7, 1.2):
        assert abs(tail_index(-k * np.log(u)) - k) < 0.15  # u^(−k): the tail of a Pareto distribution with index k
    assert tail_index(np.zeros(100)) == -np.inf and tail_index(np.full(10, -np.inf)) == np.inf


def test_bridges_with_and_without_the_mirror():
    """Gamma draws on the logarithm lean to one side; the integral is Γ(2)³."""
    rng = np.random.default_rng(0)
    theta = np.log(rng.gamma(2.0, size=(4, 2_000, 3)))

    def log_density(rows):
        return (2.0 * rows - np.exp(rows)).sum(axis=-1)

    errors = []
    for mirrored in (False, True):
        found = bridge(log_density, theta, log_density(theta), 8_000, np.random.default_rng(1), mirrored=mirrored)
        assert abs(found.log_evidence) < 4 * found.error < 0.1
        errors.append(found.error)
    assert errors[1] < errors[0]


def test_bridge_routes_and_what_makes_them_doubt():
    target, exact = bumps(4, [1.0], [0.5], [1.0])
    draws = known_draws(target, 4, 1.0, 0.5)
    for route in bridge_routes(target, judge_draws(draws, []), np.random.default_rng(0)):
        assert route.reliable and abs(route.value - exact) < 4 * route.error < 0.05
    apart = draws + np.array([0.0, 0.0, 3.0, 3.0])[:, None, None]
    slow = np.repeat(draws[:, ::100], 100, axis=1)
    missed = judge_draws(draws, [DensityMode(np.full(4, 30.0), 0.0, np.eye(4))])
    for judged, word in (
        (judge_draws(apart, []), "disagree"),
        (judge_draws(slow, []), "disagree|effective"),
        (missed, "100 %"),
    ):
        found = bridge_routes(target, judged, np.random.default_rng(0))
        assert not any(one.reliable for one in found)
        assert any(part in found[0].reason for part in word.split("|"))
    few = bridge_routes(target, judge_draws(draws[:, :10], []), np.random.default_rng(0))
    assert all("too few" in one.reason and np.isnan(one.value) for one in few)


def test_annealing_up_and_down_have_the_truth_between_or_near():
    target, exact = bumps(4, [2.0], [0.3], [1.0])
    judged = judge_draws(known_draws(target, 4, 2.0, 0.3), [])
    up, down = annealing_routes(target, judged, [], 300, np.random.default_rng(0))
    for route in (up, down):
        assert route.reliable and abs(route.value - exact) < 4 * route.error < 0.8
    again, _ = annealing_routes(target, judged, [], 300, np.random.default_rng(0))
    assert again.value == up.value


def test_annealing_that_has_not_seen_a_mode_says_so():
    target, _ = bumps(2, [1.0], [0.5], [1.0])
    known = [DensityMode(np.full(2, 50.0), 0.0, np.eye(2))]
    up, down = annealing_routes(target, None, known, 100, np.random.default_rng(0))
    assert not up.reliable and "modes" in up.reason and np.isnan(down.value)


@pytest.mark.slow
def test_nested_sampling_has_no_trouble_with_two_modes():
    pytest.importorskip("nautilus")
    target, exact = bumps(2, [-3.0, 3.0], [0.4, 0.4], [0.5, 0.5])
    route = nested_route(target, np.random.default_rng(0))
    assert route.reliable and abs(route.value - exact) < 5 * route.error < 0.1


def test_nested_sampling_says_why_it_does_not_run():
    with pm.Model() as model:
        pm.Normal("y", pm.Flat("x"), 1.0, observed=0.0)
    route = nested_route(TargetDensity(model), np.random.default_rng(0))
    assert not route.reliable and ("flat" in route.reason or "bayessel[nested]" in route.reason)


def test_a_route_that_led_nowhere():
    route = Route.missing("bridge", "there are no draws")
    assert np.isnan(route.value) and route.error == np.inf and not route.reliable
    assert route.timed(2.0).seconds == 2.0
