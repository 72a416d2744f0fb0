"""The linear PyMC model: its density against SciPy's, its posterior under NUTS against closed forms and quadrature.

Guards `bayessel.models._linear`, `bayessel.models._priors`.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from tests.oracles import linear as oracles

SHAPES = [(9, 4), (4, 9), (6, 6), (5, 1)]
# pure Python, compiled in no time: for densities that are evaluated once
ONCE = "FAST_COMPILE"
PRIOR = {"alpha_shape": 1.5, "alpha_rate": 0.7, "beta_shape": 2.5, "beta_rate": 0.3}


def data(rng, n=25, m=5, noise=0.4):
    Phi = rng.normal(size=(n, m)) * rng.uniform(0.5, 2.0, size=m)
    return Phi, Phi @ rng.normal(size=m) + noise * rng.normal(size=n)


def log_gamma_of_log(x, shape, rate):
    """Density of log x for x ~ Gamma(shape, rate): PyMC samples the logarithm, hence the Jacobian x."""
    return stats.gamma(shape, scale=1 / rate).logpdf(x) + np.log(x)


# --- densities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("given", ["nothing", "alpha", "vector", "beta", "both"])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_explicit_density_is_the_sum_of_its_gaussians_and_gammas(rng, n, m, given, bias):
    Phi, t = data(rng, n, m)
    w, b = rng.normal(size=m), 0.3
    alpha = rng.gamma(2.0, size=m) + 0.1 if given == "vector" else 1.7
    beta = 2.2
    fixed_alpha, fixed_beta = given in ("alpha", "vector", "both"), given in ("beta", "both")
    model = bs.models.linear(
        Phi, t, alpha if fixed_alpha else None, beta if fixed_beta else None, bias=bias, bias_scale=3.0, **PRIOR
    )
    expected = stats.norm(Phi @ w + (b if bias else 0.0), beta**-0.5).logpdf(t).sum()
    expected += stats.norm(0.0, np.asarray(alpha) ** -0.5).logpdf(w).sum()
    point = {"w": w}
    if bias:
        point["b"] = b
        expected += stats.norm(t.mean(), 3.0).logpdf(b)
    if not fixed_alpha:
        point["alpha_log__"] = np.log(alpha)
        expected += log_gamma_of_log(alpha, 1.5, 0.7)
    if not fixed_beta:
        point["beta_log__"] = np.log(beta)
        expected += log_gamma_of_log(beta, 2.5, 0.3)
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("given", ["nothing", "alpha", "vector", "beta", "both"])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_collapsed_density_is_the_dense_gaussian_and_the_gammas(rng, n, m, given, bias):
    Phi, t = data(rng, n, m)
    b = 0.3
    alpha = rng.gamma(2.0, size=m) + 0.1 if given == "vector" else 1.7
    beta = 2.2
    fixed_alpha, fixed_beta = given in ("alpha", "vector", "both"), given in ("beta", "both")
    model = bs.models.linear(
        Phi, t, alpha if fixed_alpha else None, beta if fixed_beta else None, True, bias=bias, bias_scale=3.0, **PRIOR
    )
    C = np.eye(n) / beta + (Phi / alpha) @ Phi.T
    expected = stats.multivariate_normal(np.full(n, b if bias else 0.0), C).logpdf(t)
    point = {}
    if bias:
        point["b"] = b
        expected += stats.norm(t.mean(), 3.0).logpdf(b)
    if not fixed_alpha:
        point["alpha_log__"] = np.log(alpha)
        expected += log_gamma_of_log(alpha, 1.5, 0.7)
    if not fixed_beta:
        point["beta_log__"] = np.log(beta)
        expected += log_gamma_of_log(beta, 2.5, 0.3)
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1e-6, 1e6), (1e-8, 1e8), (1e3, 1e-3)])
def test_collapsed_density_keeps_its_digits_on_an_ill_conditioned_design(alpha, beta):
    x = np.linspace(0.0, 1.0, 14)
    Phi = np.exp(-((x[:, None] - x) ** 2) / 4.0)
    assert np.linalg.cond(Phi) > 1e16
    t = np.sin(5.0 * x)
    got = bs.models.linear(Phi, t, alpha, beta, collapsed=True).compile_logp(mode=ONCE)({})
    assert_allclose(got, float(oracles.exact(Phi, t, alpha, beta).log_evidence), rtol=1e-8)


def test_integrating_the_weights_of_the_explicit_form_gives_the_collapsed_one(rng):
    # log p(t, w) is quadratic in w, so its value and curvature at the mode give the integral over w exactly
    Phi, t = data(rng, 7, 3)
    alpha, beta = 0.6, 3.0
    mu, Sigma = oracles.posterior(Phi, t, alpha, beta)
    peak = bs.models.linear(Phi, t, alpha, beta).compile_logp(mode=ONCE)({"w": mu})
    integral = peak + 1.5 * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(Sigma)[1]
    assert_allclose(
        bs.models.linear(Phi, t, alpha, beta, collapsed=True).compile_logp(mode=ONCE)({}), integral, rtol=1e-9
    )


def test_data_can_be_exchanged_without_a_new_model(rng):
    Phi, t = data(rng, 8, 3)
    other = rng.normal(size=8)
    for collapsed in (False, True):
        model = bs.models.linear(Phi, t, 1.0, 2.0, collapsed)
        logp = model.compile_logp(mode=ONCE)
        point = {} if collapsed else {"w": np.ones(3)}
        with model:
            pm.set_data({"t_data": other, "alpha": 0.4, "beta": 5.0})
        fresh = bs.models.linear(Phi, other, 0.4, 5.0, collapsed).compile_logp(mode=ONCE)
        assert_allclose(logp(point), fresh(point), rtol=1e-12)


# --- names, default priors, bad input ---------------------------------------------------------------------------


def test_names_and_dimensions(rng):
    Phi, t = data(rng, 6, 2)
    model = bs.models.linear(Phi, t, names=["bump", "slope"], bias=True)
    assert {rv.name for rv in model.free_RVs} == {"w", "alpha", "beta", "b"}
    assert [rv.name for rv in model.observed_RVs] == ["t"]
    assert model.coords["basis"] == ("bump", "slope")
    assert model.named_vars_to_dims["w"] == ("basis",) and model.named_vars_to_dims["t"] == ("row",)
    collapsed = bs.models.linear(Phi, t, collapsed=True)
    assert {rv.name for rv in collapsed.free_RVs} == {"alpha", "beta"}


@pytest.mark.parametrize("bias", [False, True])
def test_default_priors_follow_the_units(rng, bias):
    Phi, t = data(rng, 12, 3)

    def rates(Phi, t):
        model = bs.models.linear(Phi, t, collapsed=True, bias=bias)
        means = [float(pm.draw(model[name].owner.inputs[-1])) for name in ("alpha", "beta")]  # Gamma(shape, scale)
        return 1.0 / np.array(means)

    base = rates(Phi, t)
    assert_allclose(rates(Phi, 10.0 * t), base * [100.0, 100.0], rtol=1e-9)
    assert_allclose(rates(1000.0 * Phi, t), base * [1e-6, 1.0], rtol=1e-9)
    spread2 = np.var(t) if bias else np.mean(t**2)
    assert_allclose(base[1], 0.5 * 1e-4 * spread2, rtol=1e-9)
    row2 = ((Phi - bias * Phi.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert_allclose(base[0], 0.5 * 1e-2 * spread2 / row2, rtol=1e-9)
    if bias:
        assert_allclose(rates(Phi, t + 1e6), base, rtol=1e-6)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("value", [0.0, 3.0, 0.1])
def test_a_constant_target_still_gives_a_proper_model(value, bias):
    model = bs.models.linear(np.arange(10.0)[:, None], np.full(10, value), bias=bias)
    point = {"w": np.zeros(1), "alpha_log__": 0.0, "beta_log__": 0.0, **({"b": value} if bias else {})}
    assert np.isfinite(model.compile_logp(mode=ONCE)(point))


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_one_row_and_one_column_give_a_proper_model(bias, collapsed):
    model = bs.models.linear([[2.0]], [3.0], bias=bias, collapsed=collapsed)
    point = {"alpha_log__": 0.0, "beta_log__": 0.0} | ({} if collapsed else {"w": [0.5]}) | ({"b": 1.0} if bias else {})
    assert np.isfinite(model.compile_logp(mode=ONCE)(point))


def test_magnitudes_whose_squares_overflow():
    Phi, t = np.arange(6.0).reshape(3, 2) * 1e200, np.array([1.0, 3.0, 2.0]) * 1e150
    model = bs.models.linear(Phi, t, collapsed=True, beta=1e-300)
    assert np.isfinite(model.compile_logp(mode=ONCE)({"alpha_log__": 230.0}))
    with pytest.raises(ValueError, match="pass alpha_rate"):
        bs.models.linear(Phi, t / 1e150, beta=1.0)


GOOD = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"Phi": [1.0, 2.0, 3.0]}, ValueError, "Phi must be 2-D"),
        ({"Phi": np.empty((3, 0))}, ValueError, "at least one row and one column"),
        ({"Phi": np.empty((0, 2)), "t": []}, ValueError, "at least one row and one column"),
        ({"Phi": np.where(GOOD == 3, np.nan, GOOD)}, ValueError, r"Phi must be finite.*\[1, 1\]"),
        ({"Phi": [["a", "b"]] * 3}, TypeError, "Phi must be numeric"),
        ({"t": [1.0, 2.0]}, ValueError, "t must have one value per row"),
        ({"t": [1.0, np.inf, 0.0]}, ValueError, "t must be finite"),
        ({"t": np.ones((3, 2))}, ValueError, "t must be 1-D"),
        ({"alpha": 0.0}, ValueError, "alpha must be positive"),
        ({"alpha": -1.0}, ValueError, "alpha must be positive"),
        ({"alpha": np.nan}, ValueError, "alpha must be positive"),
        ({"alpha": [1.0, 2.0, 3.0]}, ValueError, "alpha must be one number or 2 numbers"),
        ({"alpha": [1.0, np.inf]}, ValueError, "alpha must be positive and finite"),
        ({"alpha": "large"}, TypeError, "alpha must be a positive number"),
        ({"beta": 0.0}, ValueError, "beta must be positive"),
        ({"beta": [1.0, 2.0, 3.0]}, TypeError, "beta must be a positive number"),
        ({"alpha_shape": 0.0}, ValueError, "alpha_shape must be positive"),
        ({"alpha_rate": -1.0}, ValueError, "alpha_rate must be positive"),
        ({"beta_shape": np.inf}, ValueError, "beta_shape must be positive and finite"),
        ({"beta_rate": "1"}, TypeError, "beta_rate must be a positive number"),
        ({"bias": True, "bias_scale": 0.0}, ValueError, "bias_scale must be positive"),
        ({"names": ["one"]}, ValueError, "names must be 2 different labels"),
        ({"names": ["one", "one"]}, ValueError, "names must be 2 different labels"),
    ],
)
@pytest.mark.parametrize("collapsed", [False, True])
def test_bad_input_is_refused_at_the_door(arguments, error, text, collapsed):
    with pytest.raises(error, match=text):
        bs.models.linear(**{"Phi": GOOD, "t": [1.0, 2.0, 3.0], **arguments}, collapsed=collapsed)


def test_a_column_target_is_ravelled_with_a_warning():
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning):
        model = bs.models.linear(GOOD, np.ones((3, 1)))
    assert model["t_data"].get_value().shape == (3,)


# --- sampling ---------------------------------------------------------------------------------------------------


def sample(model, draws, tune=500, chains=4, seed=0):
    return pm.sample(
        draws, tune=tune, chains=chains, cores=1, random_seed=seed, model=model, progressbar=False, quiet=True
    )


def deviations(draws, mean, sd):
    """How many Monte Carlo standard errors the sample mean and sd (chain, draw, …) are away from the exact ones."""
    draws = np.asarray(draws)
    columns = draws.reshape(*draws.shape[:2], -1)
    found = []
    for k in range(columns.shape[2]):
        x = columns[:, :, k]
        found.append((x.mean() - np.atleast_1d(mean)[k]) / az.mcse(x, method="mean"))
        found.append((x.std() - np.atleast_1d(sd)[k]) / az.mcse(x, method="sd"))
    return np.abs(np.asarray(found, dtype=float))


def check_weights(rng, n, m, draws):
    """NUTS on the explicit form with α and β fixed, against the closed form and against that of another α."""
    alpha, beta = 2.0, 3.0
    Phi, t = data(rng, n, m)
    trace = sample(bs.models.linear(Phi, t, alpha, beta), draws)
    mu, Sigma = oracles.posterior(Phi, t, alpha, beta)
    assert deviations(trace.posterior["w"], mu, np.sqrt(np.diag(Sigma))).max() < 4.0
    wrong_mu, wrong_Sigma = oracles.posterior(Phi, t, 2.0 * alpha, beta)
    assert deviations(trace.posterior["w"], wrong_mu, np.sqrt(np.diag(wrong_Sigma))).max() > 4.0


def quadrature(Phi, t, prior, half=9.0, points=181):
    """Mean and sd of (log α, log β) under the collapsed posterior, from dense covariances on a grid of the logs."""
    grid = np.linspace(-half, half, points)
    la, lb = grid[:, None, None, None], grid[None, :, None, None]
    C = np.eye(len(t)) * np.exp(-lb) + Phi @ Phi.T * np.exp(-la)
    log_p = -0.5 * (np.linalg.slogdet(C)[1] + np.linalg.solve(C, t[:, None])[..., 0] @ t)
    log_p += log_gamma_of_log(np.exp(grid), prior["alpha_shape"], prior["alpha_rate"])[:, None]
    log_p += log_gamma_of_log(np.exp(grid), prior["beta_shape"], prior["beta_rate"])
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    assert max(p[0].max(), p[-1].max(), p[:, 0].max(), p[:, -1].max()) < 1e-9 * p.max()  # nothing left outside
    marginals = p.sum(axis=1), p.sum(axis=0)
    means = [q @ grid for q in marginals]
    return means, [np.sqrt(q @ (grid - mean) ** 2) for q, mean in zip(marginals, means, strict=True)]


def check_precisions(rng, n, m, draws, collapsed):
    """NUTS on α and β, against quadrature and against quadrature with a slightly different prior of α."""
    prior = {"alpha_shape": 2.0, "alpha_rate": 1.0, "beta_shape": 2.0, "beta_rate": 0.5}
    Phi, t = data(rng, n, m)
    trace = sample(bs.models.linear(Phi, t, collapsed=collapsed, **prior), draws)
    logs = np.stack([np.log(trace.posterior[name].values) for name in ("alpha", "beta")], axis=-1)
    assert deviations(logs, *quadrature(Phi, t, prior)).max() < 4.0
    assert deviations(logs, *quadrature(Phi, t, {**prior, "alpha_rate": 1.5})).max() > 4.0


def test_weights_under_nuts_agree_with_the_closed_form(rng):
    check_weights(rng, n=20, m=5, draws=1000)


def test_precisions_under_nuts_agree_with_quadrature(rng):
    check_precisions(rng, n=8, m=3, draws=1000, collapsed=True)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(200, 30), (25, 40)])
def test_many_weights_under_nuts_agree_with_the_closed_form(rng, n, m):
    check_weights(rng, n, m, draws=4000)


@pytest.mark.slow
@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize(("n", "m"), [(15, 4), (6, 12)])
def test_precisions_of_both_forms_agree_with_quadrature(rng, n, m, collapsed):
    check_precisions(rng, n, m, draws=5000, collapsed=collapsed)


# --- predictive distributions -----------------------------------------------------------------------------------


def prior_predictive(model, draws):
    return pm.sample_prior_predictive(draws, model=model, random_seed=1, compile_kwargs={"mode": ONCE})


def posterior_predictive(model, trace, **kwargs):
    return pm.sample_posterior_predictive(
        trace, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": ONCE}, **kwargs
    )


def test_collapsed_draws_have_the_declared_mean_and_covariance(rng):
    Phi, t = data(rng, 4, 2)
    draws = 20_000
    model = bs.models.linear(Phi, t, 0.8, 2.0, collapsed=True)
    y = prior_predictive(model, draws).prior_predictive["t"].values[0]
    C = oracles.evidence_covariance(Phi, 0.8, 2.0)
    assert np.abs(y.mean(axis=0) / np.sqrt(np.diag(C) / draws)).max() < 4.5
    error = np.sqrt((C**2 + np.outer(np.diag(C), np.diag(C))) / draws)  # of a sample covariance of Gaussians
    assert np.abs((y.T @ y / draws - C) / error).max() < 4.5
    assert np.abs((y.T @ y / draws - oracles.evidence_covariance(Phi, 0.7, 1.6)) / error).max() > 4.5


def test_prior_posterior_and_out_of_sample_prediction(rng):
    Phi, t = data(rng, 20, 5)
    model = bs.models.linear(Phi, t, 2.0, 3.0)
    trace = sample(model, 500, tune=300, chains=2)
    prior = prior_predictive(model, 20)
    assert prior.prior_predictive["t"].shape == (1, 20, 20) and prior.prior["w"].shape == (1, 20, 5)
    assert posterior_predictive(model, trace).posterior_predictive["t"].shape == (2, 500, 20)
    new = rng.normal(size=(3, 5))
    with model:
        pm.set_data({"Phi": new, "t_data": np.zeros(3)}, coords={"row": np.arange(3)})
        ahead = posterior_predictive(model, trace, predictions=True)
    y = ahead.predictions["t"].values.reshape(-1, 3)
    mu, Sigma = oracles.posterior(Phi, t, 2.0, 3.0)
    sd = np.sqrt(1 / 3.0 + np.einsum("ij,jk,ik->i", new, Sigma, new))
    # noise makes the draws nearly independent; 5 leaves room for what correlation is left between those of w
    assert np.abs((y.mean(axis=0) - new @ mu) / (sd / np.sqrt(len(y)))).max() < 5.0
    assert np.abs(y.std(axis=0) / sd - 1.0).max() < 5.0 / np.sqrt(2 * len(y))


def test_plain_sampling_with_the_default_priors_and_a_far_offset(rng):
    Phi, t = data(rng, 20, 5)
    model = bs.models.linear(Phi, t + 1e3, collapsed=True, bias=True)
    trace = sample(model, 500, tune=500, chains=2)
    assert int(trace.sample_stats["diverging"].sum()) == 0
    assert max(float(az.rhat(np.log(trace.posterior[v].values))) for v in ("alpha", "beta")) < 1.02
    columns = np.column_stack([Phi, np.ones(20)])
    residual = t - columns @ np.linalg.lstsq(columns, t)[0]
    least_squares = np.sqrt(residual @ residual / 14)  # 20 rows, 6 coefficients
    assert abs(np.median(trace.posterior["beta"].values ** -0.5) / least_squares - 1.0) < 0.25
    assert abs(float(trace.posterior["b"].mean()) - 1e3) < 1.0
    prior = prior_predictive(model, 10)
    assert prior.prior_predictive["t"].shape == (1, 10, 20)
    assert posterior_predictive(model, trace).posterior_predictive["t"].shape == (2, 500, 20)
    pm.compute_log_likelihood(trace, model=model, progressbar=False)
    assert trace.log_likelihood["t"].shape == (2, 500, 20)
