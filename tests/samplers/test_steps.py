"""Which step gets which variable, over the whole zoo; the explanations; a user's own assignments.

Guards `bayessel.samplers.step_choice`.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor import wrap_py
from scipy import stats

import bayessel as bs
from tests.models.test_models_linear import quadrature
from tests.problems import gibbs_models


def chosen(text):
    """Variable -> step, from the lines of `explain_steps`."""
    found = {}
    for line in text.splitlines():
        name, rest = line.split("  ", 1)
        found[name.strip()] = rest.strip().split("  ")[0]
    return found


@pytest.mark.parametrize("make", gibbs_models.ALL, ids=lambda make: make.__name__)
def test_every_variable_gets_the_step_that_is_right_for_it(make):
    model, expected = make()
    assert chosen(bs.explain_steps(model, split="conjugate")) == expected


def test_what_is_connected_with_a_variable_that_needs_hmc_goes_with_it():
    """By default: an exact draw given such a variable walks along the ridge between them."""
    with pm.Model() as model:
        a, b = pm.Gamma("a", 1.0, 1.0), pm.Gamma("b", 1.0, 1.0)
        pm.Exponential("gaps", a, observed=[1.0, 2.0])
        pm.Exponential("waits", b, observed=[1.0, 2.0])
        pm.Poisson("counts", b * pm.Uniform("share", 0.0, 1.0), observed=[1, 2])
    # a and its data share nothing with the share
    assert chosen(bs.explain_steps(model)) == {
        "a": "GammaPrecisionGibbs",
        "b": "PersistentHMC",
        "share": "PersistentHMC",
    }
    assert "not conjugate" in bs.explain_steps(model)


def test_gaussian_blocks_are_integrated_out_where_that_is_worth_it():
    model, _ = gibbs_models.second_likelihood()
    assert set(chosen(bs.explain_steps(model)).values()) == {"MarginalHMC"}
    assert "w, u integrated out" in bs.explain_steps(model)
    assert [step.name for step in bs.steps(model)] == ["marginal_hmc"]
    for make in (gibbs_models.linear_with_fixed_precisions, gibbs_models.mixture_of_levels):
        model, expected = make()
        assert chosen(bs.explain_steps(model)) == expected
    for options in ({"split": "conjugate"}, {"transition": "nuts"}):
        assert "MarginalHMC" not in bs.explain_steps(gibbs_models.linear()[0], **options)
    # a scale that is sampled as it is stays with its exact draw
    with pm.Model() as model:
        m, tau = pm.Normal("m"), pm.Gamma("tau", 3.0, 2.0, default_transform=None)
        pm.Normal("y", m, tau=tau, observed=[0.0, 1.0])
    assert chosen(bs.explain_steps(model)) == {"m": "GaussianWeightsGibbs", "tau": "GammaPrecisionGibbs"}


def test_ways_to_divide_variables_are_named():
    model, _ = gibbs_models.linear()
    with pytest.raises(ValueError, match="split must be"):
        bs.steps(model, split="all")


def test_a_variable_that_the_density_does_not_depend_on_is_planned_for():
    with pm.Model() as model:
        pm.Flat("x")
        pm.Normal("y", 0.0, 1.0)
    assert chosen(bs.explain_steps(model))["x"] == "PersistentHMC"


@pytest.mark.filterwarnings("ignore:Numba will use object mode")
def test_an_operation_without_gradient_takes_it_from_its_own_variable_alone():
    @wrap_py(itypes=[pt.dscalar], otypes=[pt.dscalar])
    def rounded(x):
        return np.asarray(np.round(x, 1))

    with pm.Model() as model:
        x = pm.Normal("x")
        z = pm.Exponential("z", 1.0)
        pm.Normal("y", rounded(x), pt.exp(z), observed=0.3)
    found = chosen(bs.explain_steps(model))
    assert found["z"] == "PersistentHMC" and found["x"] != "PersistentHMC"
    made = bs.steps(model, compile_kwargs={"mode": "FAST_COMPILE"})
    assert [[v.name for v in step.vars] for step in made] == [["x"], ["z_log__"]]
    assert "no gradient" in bs.explain_steps(model)


# --- what is said, and a user's own choices -----------------------------------------------------------------------


def test_the_explanation_names_step_and_reason():
    model, _ = gibbs_models.second_likelihood()
    assert bs.explain_steps(model, split="conjugate").splitlines() == [
        "both   GammaPrecisionGibbs   Gamma prior of a precision; Normal in w, y",
        "count  PersistentHMC         not conjugate: k is Poisson, not Normal",
        "w      GaussianWeightsGibbs  Normal; the mean of y is linear in it",
        "u      GaussianWeightsGibbs  Normal; the mean of z is linear in it",
    ]


def test_own_choices_come_first_and_are_left_alone():
    model, _ = gibbs_models.linear()
    with model:
        own = pm.Slice([model["alpha"]])
        again = bs.GammaPrecisionGibbs("beta")
        made = bs.steps(assigned=[own, again])
        text = bs.explain_steps(assigned=[own, again])
    assert made[:2] == [own, again] and [step.name for step in made[2:]] == ["gaussian_weights_gibbs"]
    assert chosen(text) == {
        "beta": "GammaPrecisionGibbs",
        "b": "GaussianWeightsGibbs[b, w]",
        "alpha": "Slice",
        "w": "GaussianWeightsGibbs[b, w]",
    }
    assert "alpha  Slice                       your own choice" in text.splitlines()
    # one step need not be a list, and a compound one is taken apart by nobody
    assert bs.steps(model, assigned=own)[0] is own
    compound = pm.step_methods.CompoundStep([own, again])
    assert bs.steps(model, assigned=compound)[0] is compound


def test_every_variable_is_sampled_once():
    for make in (gibbs_models.second_likelihood, gibbs_models.mixture_of_levels, gibbs_models.logistic):
        model, _ = make()
        made = bs.steps(model, compile_kwargs={"mode": "FAST_COMPILE"})
        sampled = [value for step in made for value in step.vars]
        assert sorted(v.name for v in sampled) == sorted(v.name for v in model.value_vars)
        others = [type(step).__name__ for step in made]
        assert others[-1] == "PersistentHMC" or "PersistentHMC" not in others


def test_what_is_no_step_is_refused():
    model, _ = gibbs_models.linear()
    with pytest.raises(TypeError, match=r"must be step methods.*build them first"):
        bs.steps(model, assigned=[pm.NUTS])
    with pytest.raises(TypeError, match="must be step methods"):
        bs.steps(model, assigned="alpha")


def test_settings_reach_the_hamiltonian_step():
    model, _ = gibbs_models.looks_logistic()
    [step] = bs.steps(model, n_leapfrog=3, compile_kwargs={"mode": "FAST_COMPILE"})
    assert step.n_leapfrog == 3


# --- inside PyMC --------------------------------------------------------------------------------------------------


def sample(model, step, draws, chains=2, cores=1, seed=0, tune=100):
    return pm.sample(
        draws, tune=tune, chains=chains, cores=cores, step=step, model=model, random_seed=seed, progressbar=False,
        quiet=True, compute_convergence_checks=False,
    )  # fmt: skip


def test_draws_do_not_depend_on_the_number_of_processes():
    model, _ = gibbs_models.linear()
    one, two, other = (
        sample(model, bs.steps(model), 20, cores=cores, seed=seed) for cores, seed in ((1, 3), (2, 3), (1, 4))
    )
    for name in ("w", "b", "alpha", "beta"):
        assert np.array_equal(one.posterior[name], two.posterior[name])
        assert not np.array_equal(one.posterior[name], other.posterior[name])


def chain(model, n, seed=0):
    """Draws of every free variable, sampled values, without PyMC's own loop."""
    made = bs.steps(model)
    for i, step in enumerate(made):
        step.setup_chain(np.random.default_rng([seed, i]), 0, n)
    point, kept = model.initial_point(), []
    for i in range(n + 100):
        for step in made:
            point, _ = step.step(point)
        if i >= 100:
            kept.append(point)
    return {name: np.stack([p[name] for p in kept]) for name in point}


def off(draws, mean, sd):
    """How many Monte Carlo standard errors mean and sd of (chain, draw) arrays are off."""
    at = (draws.mean() - mean) / float(az.mcse(draws, method="mean"))
    spread = (draws.std() - sd) / float(az.mcse(draws, method="sd"))
    return max(abs(at), abs(spread))


def test_precisions_of_a_linear_model_agree_with_quadrature(rng):
    prior = {"alpha_shape": 2.0, "alpha_rate": 1.0, "beta_shape": 2.0, "beta_rate": 0.5}
    Phi, t = gibbs_models.regression(8, 3)
    model = bs.models.linear(Phi, t, **prior)
    chains = [chain(model, 4000, seed) for seed in range(2)]
    for wrong in (False, True):
        means, sds = quadrature(Phi, t, {**prior, "alpha_rate": 1.5} if wrong else prior)
        far = [
            off(np.stack([c[name] for c in chains]), mean, sd)
            for name, mean, sd in zip(("alpha_log__", "beta_log__"), means, sds, strict=True)
        ]
        assert max(far) > 4.0 if wrong else max(far) < 4.0


def test_schools_agree_with_quadrature():
    model, _ = gibbs_models.eight_schools()
    y = model.rvs_to_values[model["y"]].data
    error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    # with mu and theta integrated out one dimension is left
    u = np.linspace(-9.0, 7.0, 4001)
    log_p = stats.halfcauchy(scale=5.0).logpdf(np.exp(u)) + u
    cov = np.array([np.diag(error**2 + np.exp(2 * v)) + 25.0 for v in u])
    log_p += -0.5 * (np.linalg.slogdet(cov)[1] + np.einsum("i,nij,j->n", y, np.linalg.inv(cov), y))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ u
    sd = np.sqrt(p @ (u - mean) ** 2)
    first = np.array([25.0 + np.exp(2 * v) * (np.arange(8) == 0) for v in u])  # covariance of theta_0 and y
    theta = p @ np.einsum("ni,nij,j->n", first, np.linalg.inv(cov), y)
    chains = [chain(model, 10_000, seed) for seed in range(2)]
    tau = np.stack([c["tau_log__"] for c in chains])
    assert off(tau, mean, sd) < 4.0
    assert off(tau, mean + 0.3 * sd, sd) > 4.0
    draws = np.stack([c["theta"][:, 0] for c in chains])
    assert abs(draws.mean() - theta) < 4.0 * float(az.mcse(draws, method="mean"))


@pytest.mark.slow
def test_random_intercepts_agree_with_quadrature():
    """Their spread goes to zero where NUTS diverges, so weights are integrated out and two dimensions are left."""
    model, _ = gibbs_models.random_intercepts()
    X, y = gibbs_models.regression(m=2)
    one_group = (gibbs_models.GROUP[:, None] == gibbs_models.GROUP).astype(float)
    u, v = np.linspace(-14.0, 5.0, 229), np.linspace(-5.0, 4.0, 91)
    C = np.exp(2 * u)[:, None, None, None] * one_group + np.exp(v)[:, None, None] * np.eye(len(y))
    C += 9.0 + 4.0 * X @ X.T
    log_p = -0.5 * (np.linalg.slogdet(C)[1] + np.linalg.solve(C, (y - 1.0)[:, None])[..., 0] @ (y - 1.0))
    log_p += (stats.halfcauchy(scale=2.0).logpdf(np.exp(u)) + u)[:, None]
    log_p += stats.invgamma(2.0, scale=0.7).logpdf(np.exp(v)) + v
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    assert max(p[0].sum(), p[-1].sum(), p[:, 0].sum(), p[:, -1].sum()) < 1e-5
    chains = [chain(model, 12_000, seed) for seed in range(2)]
    for name, grid, q in (("between_log__", u, p.sum(axis=1)), ("noise_log__", v, p.sum(axis=0))):
        mean = q @ grid
        sd = np.sqrt(q @ (grid - mean) ** 2)
        draws = np.stack([c[name] for c in chains])
        assert off(draws, mean, sd) < 4.0, name
        assert off(draws, mean + 0.25 * sd, sd) > 4.0, name


AGAINST_NUTS = [
    gibbs_models.linear,
    gibbs_models.rvm,
    gibbs_models.regularised_horseshoe,
    gibbs_models.precision_by_group,
    gibbs_models.horseshoe,
    gibbs_models.non_centred_schools,
    gibbs_models.logistic_with_a_scale,
    gibbs_models.nonlinear_mean,
    gibbs_models.prior_means,
    gibbs_models.skewed_prior_mean,
    gibbs_models.potential,
    gibbs_models.second_likelihood,
    gibbs_models.two_noises,
    gibbs_models.matrix_of_weights,
    gibbs_models.products_of_normals,
    gibbs_models.missing_data,
    gibbs_models.log_concave_scales,
]


@pytest.mark.slow
@pytest.mark.parametrize("make", AGAINST_NUTS, ids=lambda make: make.__name__)
def test_the_chosen_steps_and_nuts_sample_the_same_distribution(make):
    model, _ = make()
    ours = sample(model, bs.steps(model, split="conjugate"), 3000, chains=4, tune=1000, seed=1).posterior
    theirs = pm.sample(
        2000, tune=1000, chains=4, cores=1, model=model, random_seed=2, progressbar=False, quiet=True,
        nuts_sampler="pymc", nuts={"target_accept": 0.98}, compute_convergence_checks=False,
    ).posterior  # fmt: skip
    far, blind = {}, 0.0
    for rv in model.free_RVs:
        a, b = (np.asarray(x[rv.name].values, dtype=float) for x in (ours, theirs))
        if model.rvs_to_transforms[rv] is not None and rv.name != "w":
            a, b = np.log(a), np.log(b)  # moments of heavy tails say nothing
        a, b = (x.reshape(*x.shape[:2], -1) for x in (a, b))
        for k in range(a.shape[2]):
            x, y = a[:, :, k], b[:, :, k]
            for f, method in ((np.mean, "mean"), (np.std, "sd")):
                error = np.hypot(float(az.mcse(x, method=method)), float(az.mcse(y, method=method)))
                far[rv.name, k, method] = abs(f(x) - f(y)) / error
                blind = max(blind, error / y.std())
    assert max(far.values()) < 4.0, {key: value for key, value in far.items() if value > 3.0}
    assert blind < 0.2  # errors small enough for the comparison to mean something
