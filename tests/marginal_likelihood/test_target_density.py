"""A model as a density to integrate: its values, its prior, draws in its coordinates, loops over rows.

Guards `bayessel.marginal_likelihood.target_density`, `bayessel.marginal_likelihood.density_rows`.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.marginal_likelihood.density_rows import climb_rows, log_densities, move_rows
from bayessel.marginal_likelihood.target_density import TargetDensity

Y = np.array([1.2, -0.3, 2.2, 0.7])


def two_scales():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 3.0)
        centre = pm.StudentT("centre", 4.0, mu=rate, sigma=2.0, shape=2)
        pm.StudentT("y", 5.0, mu=centre[0] + centre[1], sigma=rate, observed=Y)
    return model


def test_the_density_and_the_prior_are_those_of_the_formulas():
    target = TargetDensity(two_scales())
    rows = np.random.default_rng(0).normal(size=(6, 3))
    rate, centre = np.exp(rows[:, 0]), rows[:, 1:]
    prior = stats.gamma.logpdf(rate, 2.0, scale=1 / 3.0) + rows[:, 0]
    prior += stats.t.logpdf(centre, 4.0, rate[:, None], 2.0).sum(axis=1)
    whole = prior + stats.t.logpdf(Y, 5.0, centre.sum(axis=1)[:, None], rate[:, None]).sum(axis=1)
    assert target.size == 3 and not target.no_prior and not target.integrated
    # PyMC has log gamma functions of constants in single precision
    assert_allclose(log_densities(target.prior, rows)[0], prior, rtol=1e-6)
    assert_allclose(target.logs(rows), whole, rtol=1e-6)


def test_draws_of_the_prior_follow_it_and_so_do_its_quantiles():
    target = TargetDensity(two_scales())
    rows = target.prior_draws(np.random.default_rng(1), 2_000)
    quantiles, reason = target.prior_quantiles()
    assert quantiles is not None and not reason
    mapped = quantiles(np.random.default_rng(2).random((2_000, 3)))
    for some in (rows, mapped):
        rate = np.exp(some[:, 0])
        assert stats.kstest(rate, stats.gamma(2.0, scale=1 / 3.0).cdf).pvalue > 1e-3
        assert stats.kstest((some[:, 2] - rate) / 2.0, stats.t(4.0).cdf).pvalue > 1e-3
        assert stats.kstest(some[:, 2] / 2.0, stats.t(4.0).cdf).pvalue < 1e-6  # the parent does matter
    again = target.prior_draws(np.random.default_rng(1), 2_000)
    assert np.array_equal(rows, again)


def test_draws_of_a_trace_in_the_coordinates_of_the_model():
    model = two_scales()
    trace = bs.sample(
        model, 40, tune=40, chains=2, random_seed=1, quiet=True, log_likelihood=False, step=bs.steps(model)
    )
    found = TargetDensity(model).coordinates(trace["posterior"])
    there = trace["unconstrained_posterior"]
    assert_allclose(found[..., 0], there["rate_log__"].values, rtol=1e-12)
    assert_allclose(found[..., 1:], there["centre"].values)


def test_a_normal_block_is_integrated_out_and_the_whole_of_a_normal_model_is_seen():
    x = np.linspace(-1, 1, 4)
    with pm.Model() as some:
        slope, sigma = pm.Normal("slope", 0.0, 2.0), pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", slope * x, sigma, observed=Y)
    with pm.Model() as all_of_it:
        slope = pm.Normal("slope", 0.0, 2.0)
        pm.Normal("y", slope * x, 0.5, observed=Y)
    target = TargetDensity(some)
    assert target.integrated == ("slope",) and target.size == 1 and not target.is_gaussian
    logs = target.logs(np.log([[0.3], [2.0]]))
    for log, sigma in zip(logs, (0.3, 2.0), strict=True):
        exact = stats.multivariate_normal.logpdf(Y, np.zeros(4), 4.0 * np.outer(x, x) + sigma**2 * np.eye(4))
        assert_allclose(log, exact + stats.halfnorm.logpdf(sigma) + np.log(sigma), rtol=1e-10)
    assert TargetDensity(all_of_it).is_gaussian and not TargetDensity(two_scales()).is_gaussian


def flat():
    pm.Normal("y", pm.Flat("x"), 1.0, observed=Y)


def potential():
    pm.Normal("y", pm.Normal("x"), 1.0, observed=Y)
    pm.Potential("extra", -(pm.modelcontext(None)["x"] ** 2))


def ordered():
    x = pm.Normal("x", shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
    pm.Normal("y", x.sum(), 1.0, observed=Y)


@pytest.mark.parametrize(("make", "word"), [(flat, "flat"), (potential, "potential"), (ordered, "ordered")])
def test_a_prior_that_does_not_integrate_to_one_is_told(make, word):
    with pm.Model() as model:
        make()
    target = TargetDensity(model)
    assert word in target.unnormalised and target.no_prior


def test_the_share_of_an_ordered_prior_is_one_in_the_number_of_orders():
    with pm.Model() as model:
        ordered()
    assert abs(float(TargetDensity(model).unnormalised.split(" %")[0]) - 100 * 5 / 6) < 9.0  # four sd of 200 draws


def test_a_prior_without_draws_is_no_beginning():
    with pm.Model() as model:
        x = pm.CustomDist("x", logp=lambda value: -0.5 * value**2 - 0.5 * np.log(2 * np.pi))
        pm.Normal("y", x, 1.0, observed=Y)
    target = TargetDensity(model)
    assert "no draws" in target.no_prior and not target.unnormalised


def python_density(q):
    return float(-0.5 * q @ q), -q


def test_rows_move_and_leave_the_tempered_density_as_it_is():
    """Prior N(0, 1) and a likelihood of precision 4 at 2.5: at t the precision is 1 + 4t and the mean 10t over it."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0, shape=2)
        pm.CustomDist(
            "y", x, logp=lambda value, x: -2.0 * ((x - 2.5) ** 2).sum() + 0 * value, signature="(n)->()", observed=0.0
        )
    target, rng, t, n = TargetDensity(model), np.random.default_rng(3), 0.3, 4_000
    precision = 1.0 + 4.0 * t
    rows = 10.0 * t / precision + rng.normal(size=(n, 2)) / np.sqrt(precision)
    logs = np.stack([log_densities(target.prior, rows)[0], target.logs(rows)], axis=1)
    before = rows.copy()
    rate = move_rows(target.prior, target.whole, t, rows, logs, np.eye(2) / np.sqrt(precision), 0.9, 4, 2, rng)
    assert 0.5 < rate < 1.0 and (rows != before).any(axis=1).mean() > 0.8
    z = (rows - 10.0 * t / precision) * np.sqrt(precision)
    assert abs(z.mean()) < 4 / np.sqrt(2 * n) and abs((z**2).mean() - 1.0) < 4 * np.sqrt(2.0 / (2 * n))
    assert_allclose(logs[:, 1], target.logs(rows), rtol=1e-12)
    # the control: at another temperature they would not have stayed
    move_rows(target.prior, target.whole, 0.6, rows, logs, np.eye(2), 0.9, 4, 4, rng)
    z = (rows - 10.0 * t / precision) * np.sqrt(precision)
    assert abs(z.mean()) > 20 / np.sqrt(2 * n)


def test_loops_in_python_do_the_same_as_compiled_ones():
    with pm.Model() as model:
        pm.Normal("x", shape=3)
        pm.Normal("y", 0.0, 1.0, observed=0.0)
    compiled = TargetDensity(model).prior
    rows = np.random.default_rng(4).normal(size=(20, 3))
    for density in (compiled, python_density):
        own, logs = rows.copy(), np.zeros((20, 2))
        logs[:] = log_densities(density, own)[0][:, None]
        rate = move_rows(density, density, 0.5, own, logs, np.eye(3), 0.3, 3, 2, np.random.default_rng(5))
        climbed = climb_rows(density, rows, np.full(3, 0.1), 60)
        if density is compiled:
            first = (own, rate, climbed)
    assert_allclose(own, first[0], rtol=1e-10)
    assert_allclose(rate, first[1], rtol=1e-10)
    assert_allclose(climbed, first[2], atol=1e-6)
    assert np.abs(climbed).max() < 0.05
