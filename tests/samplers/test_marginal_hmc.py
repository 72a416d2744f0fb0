"""HMC of scales with weights integrated out: the posterior, draws in blocks and one by one, resuming, new data.

Guards `bayessel.samplers.marginal_hmc`.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import bayessel as bs
from bayessel.samplers.marginal_hmc import MarginalHMC

RNG = np.random.default_rng(3)
SPREAD = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])


def schools(centred=True):
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
        if centred:
            theta = pm.Normal("theta", mu, tau, shape=8)
        else:
            theta = pm.Deterministic("theta", mu + tau * pm.Normal("raw", shape=8))
        pm.Normal("y", theta, SPREAD, observed=EFFECT)
    return model


def regression(y=None):
    x = np.column_stack([np.ones(20), np.linspace(-1.0, 1.0, 20)])
    with pm.Model() as model:
        beta, sigma = pm.Flat("beta", shape=2), pm.HalfCauchy("sigma", 1.0)
        pm.Normal("y", x @ beta, sigma, observed=pm.Data("targets", x @ [1.0, 2.0] if y is None else y))
    return model


def moments_of_tau():
    """Mean and sd by quadrature of p(τ) N(y; 0, diag(s² + τ²) + 25)."""

    def density(tau):
        covariance = np.diag(SPREAD**2 + tau**2) + 25.0
        return stats.halfcauchy.pdf(tau, scale=5.0) * stats.multivariate_normal.pdf(EFFECT, cov=covariance)

    parts = [integrate.quad(lambda t, k=k: t**k * density(t), 0.0, 400.0, points=[5, 20, 80])[0] for k in range(3)]
    mean = parts[1] / parts[0]
    return mean, np.sqrt(parts[2] / parts[0] - mean**2)


@pytest.mark.parametrize("centred", [True, False])
def test_a_funnel_has_no_neck(centred):
    trace = bs.sample(schools(centred), draws=1000, chains=4, random_seed=1, progressbar=False)
    tau, (mean, sd) = trace.posterior["tau"], moments_of_tau()
    ess = float(az.ess(tau))
    assert ess > 1500  # a chain of all variables has 50 to 300
    assert abs(float(tau.mean()) - mean) < 4.0 * sd / np.sqrt(ess)
    effects = az.summary(trace, var_names=["mu", "theta"], round_to="none")
    assert effects["ess_bulk"].min() > 1500 and effects["r_hat"].max() < 1.01


def test_the_posterior_of_the_weights_is_a_student():
    y = regression()["targets"].get_value() + RNG.normal(size=20)
    with pm.Model() as model:
        x = np.column_stack([np.ones(20), np.linspace(-1.0, 1.0, 20)])
        beta, log_sigma = pm.Flat("beta", shape=2), pm.Flat("log_sigma")
        pm.Normal("y", x @ beta, pm.math.exp(log_sigma), observed=y)
    with model:
        step = MarginalHMC(["beta"], updates_per_draw="auto")
    draws = bs.sample(model, draws=2000, chains=2, step=step, random_seed=2, progressbar=False).posterior["beta"]
    # with p(σ) ∝ 1/σ: t with N − 2 degrees of freedom
    fit, squares, *_ = np.linalg.lstsq(x, y)
    scale = np.sqrt(squares[0] / 18 * np.linalg.inv(x.T @ x)[1, 1])
    apart = (draws[:, ::2, 1].values.ravel() - fit[1]) / scale
    assert stats.kstest(apart, stats.t(18).cdf).pvalue > 1e-3
    # the posterior with σ known at twice its estimate
    assert stats.kstest(apart, stats.norm(scale=2.0).cdf).pvalue < 1e-3


def test_draws_are_the_same_one_by_one_and_together():
    model = schools()
    step = MarginalHMC(["mu", "theta"], model=model, updates_per_draw="auto")
    point = model.initial_point()
    step.setup_chain(5, 60, 0)
    singles, at = [], point
    for i in range(90):
        if i == 60:
            step.stop_tuning()
        at, [stats_of] = step.step(at)
        singles.append((at, stats_of))
    step.setup_chain(5, 60, 0)
    _, tuned, said = step.draws(point, 60, np.inf)
    assert len(said["marginal_logp"]) == 60
    step.stop_tuning()
    before = {name: values[-1] for name, values in tuned.items()}
    for name, value in singles[59][0].items():
        assert np.array_equal(before[name], value)
    last, found, said = step.draws(before, 30, np.inf)
    for i, (single, stats_of) in enumerate(singles[60:]):
        for name, value in single.items():
            assert np.array_equal(found[name][i], value)
        assert said["marginal_logp"][i] == stats_of["marginal_logp"]
    assert all(np.array_equal(last[name], found[name][-1]) for name in last)


def test_a_restored_state_goes_on_with_the_same_bits():
    model = schools()
    one, other = (MarginalHMC(["mu", "theta"], model=model, updates_per_draw="auto") for _ in range(2))
    one.setup_chain(5, 40, 0)
    at, _, _ = one.draws(model.initial_point(), 25, np.inf)
    state = one.sampling_state
    expected = one.draws(at, 15, np.inf)[1]
    other.setup_chain(6, 40, 0)
    other.sampling_state = state
    found = other.draws(at, 15, np.inf)[1]
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


def test_new_data_are_seen_by_the_next_chain():
    model = regression()
    y = model["targets"].get_value() * 3.0 + RNG.normal(size=20)
    with model:
        step = MarginalHMC(["beta"])
        pm.set_data({"targets": y})
    found, fresh = (
        bs.sample(model, draws=50, tune=50, chains=1, step=step, random_seed=3, progressbar=False)
        for model, step in ((model, step), (regression(y), None))
    )
    np.testing.assert_allclose(found.posterior["beta"].mean(), fresh.posterior["beta"].mean(), rtol=0.3)


def test_pymc_runs_it_and_the_density_of_all_variables_is_reported():
    model = schools()
    with model:
        trace = pm.sample(
            50, tune=50, chains=2, cores=1, step=bs.steps(model), random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    assert "marginal_logp" in trace.sample_stats and trace.posterior["theta"].shape == (2, 50, 8)
    own = bs.sample(model, draws=20, tune=20, chains=1, random_seed=1, progressbar=False)
    point = {name: own.unconstrained_posterior[name].values[0, 3] for name in own.unconstrained_posterior.data_vars}
    np.testing.assert_allclose(own.sample_stats["lp"].values[0, 3], model.compile_logp()(point), rtol=1e-10)


def test_a_block_that_is_none_is_refused():
    with pytest.raises(ValueError, match="MarginalHMC needs a block that can be integrated out, and tau cannot"):
        MarginalHMC("tau", model=schools())


def test_new_data_that_do_not_determine_the_block_are_refused():
    with pm.Model():
        x = pm.Data("x", np.column_stack([np.ones(5), np.arange(5.0)]))
        beta, sigma = pm.Flat("beta", shape=2), pm.HalfCauchy("sigma", 1.0)
        pm.Normal("y", x @ beta, sigma, observed=[0.0, 2.0, 1.0, 4.0, 3.0])
        step = MarginalHMC(["beta"])
        pm.set_data({"x": np.ones((5, 2))})
    with pytest.raises(ValueError, match="given the new data beta cannot: the data do not determine it"):
        step.setup_chain(1, 10, 10)


def test_jumps_are_between_points_of_the_others():
    model = schools()
    step = MarginalHMC(["mu", "theta"], model=model, mass="dense", jumps=True)
    q = np.array([0.7])
    assert step.density.value(q) == pytest.approx(step.density.both(q)[0], rel=1e-12)
    trace = bs.sample(model, draws=300, tune=300, chains=2, step=step, random_seed=1, progressbar=False)
    assert trace.sample_stats["jumps_accepted"].values.sum() > 50


def ranks(replications, draws, spoil=1.0):
    """Ranks of the truth among draws of a hierarchy with everything drawn from its prior."""
    rng = np.random.default_rng(11)
    group = np.repeat(np.arange(5), 4)
    with pm.Model() as model:
        tau, sigma = pm.HalfNormal("tau", 1.0), pm.HalfNormal("sigma", 1.0)
        mu = pm.Normal("mu", 0.0, 1.0)
        a = pm.Normal("a", mu, tau, shape=5)
        pm.Normal("y", a[group], sigma, observed=pm.Data("targets", np.zeros(20)))
    [step] = bs.steps(model)
    assert isinstance(step, MarginalHMC)
    found = []
    for k in range(replications):
        truth = {"tau": abs(rng.normal()), "sigma": abs(rng.normal()), "mu": rng.normal()}
        truth["a"] = rng.normal(truth["mu"], truth["tau"], size=5)
        y = rng.normal(truth["a"][group], truth["sigma"] * spoil)
        with model:
            pm.set_data({"targets": y})
        step.setup_chain(k, 300, 0)
        at, _, _ = step.draws(model.initial_point(), 300, np.inf)
        step.stop_tuning()
        _, kept, _ = step.draws(at, draws * 3, np.inf)
        kept = {name: values[2::3] for name, values in kept.items()}
        said = {"tau": np.log(truth["tau"]), "sigma": np.log(truth["sigma"])}
        found.append(
            [
                (kept["tau_log__"] < said["tau"]).sum(),
                (kept["sigma_log__"] < said["sigma"]).sum(),
                (kept["mu"] < truth["mu"]).sum(),
                (kept["a"][:, 0] < truth["a"][0]).sum(),
            ]
        )
    return np.array(found)


def uniformity(found, draws):
    """Least p value of χ² tests of ranks 0 … draws, over the columns."""
    bins = 5
    edges = np.linspace(0, draws + 1, bins + 1)
    return min(stats.chisquare(np.histogram(column, edges)[0]).pvalue for column in found.T)


def test_ranks_of_the_truth_are_uniform():
    assert uniformity(ranks(60, 19), 19) > 1e-3
    assert uniformity(ranks(60, 19, spoil=2.5), 19) < 1e-3


@pytest.mark.slow
def test_ranks_of_the_truth_are_uniform_over_many_replications():
    assert uniformity(ranks(500, 99), 99) > 2.5e-3
