"""The relevance vector machine in PyMC: densities against SciPy, NUTS against quadrature and form against form.

Guards `bayessel.models._rvm`, `bayessel.models._marginal`.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.models._marginal import marginal_and_gradient
from tests.oracles import linear as oracles

SHAPES = [(9, 4), (4, 9), (6, 6), (5, 1), (1, 1)]
ONCE = "FAST_COMPILE"  # pure Python, compiled in no time: for densities that are evaluated once
GAMMAS = {"alpha_shape": 1.5, "beta_shape": 2.5, "beta_rate": 0.3}


def data(rng, n=25, m=5, noise=0.4):
    Phi = rng.normal(size=(n, m)) * rng.uniform(0.5, 2.0, size=m)
    return Phi, Phi @ (rng.normal(size=m) * (np.arange(m) % 2 == 0)) + noise * rng.normal(size=n)


def log_gamma_of_log(x, shape, rate):
    """Density of log x for x ~ Gamma(shape, rate): PyMC samples the logarithm, hence the Jacobian x."""
    return (stats.gamma(shape, scale=1 / np.asarray(rate)).logpdf(x) + np.log(x)).sum()


def log_half_cauchy_of_log(x):
    return (np.log(2 / np.pi) - np.log1p(x**2) + np.log(x)).sum()


def horseshoe(Phi, t, beta, tau, lam, c2, p, slab, df):
    """Precisions and log prior (in the logarithms) of the regularised horseshoe, column by column."""
    n, m = Phi.shape
    alpha = np.empty(m)
    for i in range(m):
        tau0 = tau * p / (m - p) / np.sqrt(beta * n)
        variance = c2 * (tau0 * lam[i]) ** 2 / (c2 + (tau0 * lam[i]) ** 2)
        alpha[i] = np.mean(Phi[:, i] ** 2) / variance
    prior = log_half_cauchy_of_log(tau) + log_half_cauchy_of_log(lam)
    return alpha, prior + stats.invgamma(df / 2, scale=df / 2 * slab**2).logpdf(c2) + np.log(c2)


def case(rng, prior, n, m):
    """Arguments, a point in PyMC's coordinates, the precisions there and the log prior."""
    Phi, t = data(rng, n, m)
    beta, alpha = 2.2, rng.gamma(2.0, size=m) + 0.1
    point, log_prior = {"beta_log__": np.log(beta)}, log_gamma_of_log(beta, 2.5, 0.3)
    if prior == "gamma":
        rate = rng.uniform(0.2, 2.0, size=m)
        point["alpha_log__"] = np.log(alpha)
        return (
            (Phi, t, prior),
            {**GAMMAS, "alpha_rate": rate},
            point,
            alpha,
            log_prior + log_gamma_of_log(alpha, 1.5, rate),
        )
    tau, lam, c2 = 0.7, rng.gamma(2.0, size=m), 3.0
    arguments = {"expected_basis": 0.4, "slab_scale": 2.0, "slab_df": 5.0, "beta_shape": 2.5, "beta_rate": 0.3}
    alpha, more = horseshoe(Phi, t, beta, tau, lam, c2, 0.4, 2.0, 5.0)
    point |= {"tau_log__": np.log(tau), "lam_log__": np.log(lam), "c2_log__": np.log(c2)}
    return (Phi, t, prior), arguments, point, alpha, log_prior + more


# --- densities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", ["gamma", "horseshoe"])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_collapsed_density_is_the_dense_gaussian_and_the_priors(rng, prior, n, m):
    (Phi, t, _), arguments, point, alpha, log_prior = case(rng, prior, n, m)
    model = bs.models.rvm(Phi, t, prior, collapsed=True, **arguments)
    C = np.eye(n) / 2.2 + (Phi / alpha) @ Phi.T
    expected = stats.multivariate_normal(np.zeros(n), C).logpdf(t) + log_prior
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("prior", ["gamma", "horseshoe"])
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_explicit_density_is_the_sum_of_its_gaussians_and_priors(rng, prior, n, m):
    (Phi, t, _), arguments, point, alpha, log_prior = case(rng, prior, n, m)
    model = bs.models.rvm(Phi, t, prior, **arguments)
    point["w_whitened__"] = rng.normal(size=m)
    w_of = model.compile_fn(model.unobserved_value_vars, mode=ONCE)
    where = [v.name for v in model.unobserved_value_vars].index("w")

    def w_at(z):
        return w_of({**point, "w_whitened__": z})[where]

    w = w_at(point["w_whitened__"])
    expected = stats.norm(Phi @ w, 2.2**-0.5).logpdf(t).sum() + stats.norm(0.0, alpha**-0.5).logpdf(w).sum()
    steps = np.array([w_at(point["w_whitened__"] + e) - w for e in np.eye(m)])  # w is linear in z
    expected += np.linalg.slogdet(steps)[1] + log_prior
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_the_starting_point_of_the_weights_is_inverted(rng, n, m):
    """PyMC starts at w = 0: forward and backward transformations undo each other."""
    Phi, t = data(rng, n, m)
    model = bs.models.rvm(Phi, t)
    where = [v.name for v in model.unobserved_value_vars].index("w")
    assert_allclose(
        model.compile_fn(model.unobserved_value_vars, mode=ONCE)(model.initial_point())[where], 0.0, atol=1e-9
    )


@pytest.mark.parametrize(("n", "m"), [(4, 9), (6, 6), (1, 5), (1, 1)])
@pytest.mark.parametrize("log_beta", [0.5, 22.0])
def test_the_gradient_of_the_marginal_is_that_of_the_dense_density(rng, n, m, log_beta):
    """At log beta = 22 the decomposition takes over from the Cholesky factor; its density is compared at 60 digits."""
    R, z = rng.normal(size=(n, m)), rng.normal(size=n)
    log_alpha = rng.normal(size=m)
    value, by_alpha, by_beta, by_z = marginal_and_gradient(log_alpha, log_beta, z, R)
    exact = oracles.exact_log_evidence(R, z, np.exp(log_alpha), np.exp(log_beta))
    assert_allclose(value, exact, rtol=1e-9)

    def density(x):
        return float(marginal_and_gradient(x[:m], x[m], x[m + 1 :], R)[0])

    numeric = oracles.central_difference(density, np.concatenate([log_alpha, [log_beta], z]), step=1e-3)
    got = np.concatenate([by_alpha, [by_beta], by_z])
    assert_allclose(got, numeric, atol=1e-6 * max(1.0, np.abs(numeric).max()))


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1e-6, 1e6), (1e-8, 1e8), (1e3, 1e-3)])
def test_the_marginal_keeps_its_digits_on_an_ill_conditioned_design(alpha, beta):
    x = np.linspace(0.0, 1.0, 14)
    Phi = np.exp(-((x[:, None] - x) ** 2) / 4.0)
    assert np.linalg.cond(Phi) > 1e16
    t = np.sin(5.0 * x)
    got, *_ = marginal_and_gradient(np.full(14, np.log(alpha)), np.log(beta), t, Phi)
    assert_allclose(got, float(oracles.exact(Phi, t, alpha, beta).log_evidence), rtol=1e-8)


def test_precisions_beyond_double_precision_have_no_density():
    value, *rest = marginal_and_gradient(np.array([-1500.0]), 10.0, np.ones(2), np.ones((2, 1)))
    assert value == -np.inf and all(np.all(np.asarray(r) == 0.0) for r in rest)


def test_the_prior_of_a_weight_is_student(rng):
    """w_i alone, its precision integrated out: t of 2a degrees of freedom and scale sqrt(b_i / a)."""
    Phi, t = data(rng, 6, 2)
    rate = np.array([0.5, 4.0])
    model = bs.models.rvm(Phi, t, alpha_shape=2.0, alpha_rate=rate)
    w = pm.draw(model["w"], 4000, random_seed=rng, mode=ONCE)
    for i in range(2):
        assert stats.kstest(w[:, i], stats.t(4.0, scale=np.sqrt(rate[i] / 2.0)).cdf).pvalue > 1e-4
        assert stats.kstest(w[:, i], stats.t(4.0, scale=1.3 * np.sqrt(rate[i] / 2.0)).cdf).pvalue < 1e-4


def test_the_horseshoe_has_the_quantiles_of_its_definition(rng):
    Phi, t = data(rng, 20, 8)
    model = bs.models.rvm(Phi, t, "horseshoe", expected_basis=2, slab_scale=1.5, beta_shape=8.0, beta_rate=2.0)
    draws = 4000
    ours = np.log(np.abs(pm.draw(model["w"], draws, random_seed=rng, mode=ONCE)[:, 0]))

    def defined(p):
        beta = rng.gamma(8.0, 1 / 2.0, size=draws)
        tau0 = p / (8 - p) / np.sqrt(beta * 20)
        tau = np.abs(rng.standard_cauchy(draws)) * tau0
        lam = np.abs(rng.standard_cauchy(draws))
        c2 = stats.invgamma(2.0, scale=2.0 * 1.5**2).rvs(draws, random_state=rng)
        scale = np.sqrt(c2 * (tau * lam) ** 2 / (c2 + (tau * lam) ** 2))
        return np.log(np.abs(scale * rng.normal(size=draws) / np.sqrt(np.mean(Phi[:, 0] ** 2))))

    assert stats.ks_2samp(ours, defined(2.0)).pvalue > 1e-4
    assert stats.ks_2samp(ours, defined(3.0)).pvalue < 1e-4


def test_names_dimensions_and_exchange_of_data(rng):
    Phi, t = data(rng, 6, 3)
    for prior, random in (("gamma", {"alpha", "beta"}), ("horseshoe", {"beta", "tau", "lam", "c2"})):
        for collapsed in (True, False):
            model = bs.models.rvm(Phi, t, prior, collapsed, names=["a", "b", "bias"])
            assert {rv.name for rv in model.free_RVs} == random | (set() if collapsed else {"w"})
            assert "alpha" in model.named_vars and model.named_vars_to_dims["alpha"] == ("basis",)
            assert model.coords["basis"] == ("a", "b", "bias")
            assert [rv.name for rv in model.observed_RVs] == (["t", "t_rest"] if collapsed else ["t"])
            assert all(v.dtype == "float64" for v in model.value_vars)
    model = bs.models.rvm(Phi, t, collapsed=True, alpha_rate=1.0, beta_rate=1.0)
    other = rng.normal(size=6)
    fresh = bs.models.rvm(Phi, other, collapsed=True, alpha_rate=1.0, beta_rate=1.0)
    with model:
        pm.set_data({"t_data": other})
    point = fresh.initial_point()
    assert_allclose(model.compile_logp(mode=ONCE)(point), fresh.compile_logp(mode=ONCE)(point), rtol=1e-12)


def test_default_priors_follow_the_units(rng):
    Phi = np.column_stack([data(rng, 12, 3)[0], np.ones(12)])
    t = rng.normal(size=12)

    def rates(Phi, t):
        model = bs.models.rvm(Phi, t, collapsed=True)
        return np.append(*[1.0 / np.asarray(pm.draw(model[n].owner.inputs[-1])) for n in ("alpha", "beta")])

    base = rates(Phi, t)
    assert_allclose(base[:3], np.var(t) / 4 / np.mean(Phi[:, :3] ** 2, axis=0), rtol=1e-9)
    assert_allclose(base[3], np.mean(t**2) / 4, rtol=1e-9)
    assert_allclose(base[4], 0.5 * 1e-4 * np.var(t), rtol=1e-9)
    assert_allclose(rates(Phi, 10.0 * t), 100.0 * base, rtol=1e-9)
    units = np.array([1e3, 1e-2, 7.0, 1.0])
    assert_allclose(rates(Phi * units, t), base * np.append(units**-2, 1.0), rtol=1e-9)
    far = rates(Phi, t + 1e6)  # the constant alone carries an offset
    assert_allclose(far[[0, 1, 2, 4]], base[[0, 1, 2, 4]], rtol=1e-6)
    assert far[3] > 1e9 * base[3]


def test_the_slab_of_a_constant_carries_the_mean_of_the_target(rng):
    """By default c is five spreads of t for a function, and for the constant five spreads and the mean together."""
    Phi = np.column_stack([data(rng, 30, 2)[0], np.full(30, 2.0)])
    t = rng.normal(size=30)
    t += 400.0 - t.mean()
    model = bs.models.rvm(Phi, t, "horseshoe")
    values = [model[name] for name in ("tau", "lam", "c2", "beta")]
    c2 = float(25.0 * np.var(t))
    # with nothing but the slab left, the precision of a weight is that of its largest contribution
    alpha = model["alpha"].eval({values[0]: 1e9, values[1]: np.full(3, 1e9), values[2]: c2, values[3]: 1.0})
    size = np.sqrt(np.mean(Phi**2, axis=0)) / np.sqrt(alpha)
    assert_allclose(size[:2], 5.0 * np.std(t), rtol=1e-6)
    assert_allclose(size[2], np.hypot(5.0 * np.std(t), 400.0), rtol=1e-6)


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("prior", ["gamma", "horseshoe"])
def test_degenerate_data_give_a_proper_model(prior, collapsed):
    for Phi, t in [
        ([[2.0]], [3.0]),
        (np.ones((3, 2)), np.zeros(3)),
        (np.zeros((4, 2)), np.arange(4.0)),
        (np.ones((3, 5)), np.full(3, 1e6)),
    ]:
        model = bs.models.rvm(Phi, t, prior, collapsed)
        assert np.isfinite(model.compile_logp(mode=ONCE)(model.initial_point()))


GOOD = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"Phi": [1.0, 2.0, 3.0]}, ValueError, "Phi must be 2-D"),
        ({"Phi": np.where(GOOD == 3, np.nan, GOOD)}, ValueError, r"Phi must be finite.*\[1, 1\]"),
        ({"t": [1.0, 2.0]}, ValueError, "t must have one value per row"),
        ({"prior": "laplace"}, ValueError, "prior must be one of 'gamma', 'horseshoe'"),
        ({"collapsed": "yes"}, TypeError, "collapsed must be True or False"),
        ({"alpha_shape": 0.0}, ValueError, "alpha_shape must be positive"),
        ({"alpha_rate": [1.0, 2.0, 3.0]}, ValueError, "alpha_rate must be one number or 2 numbers"),
        ({"beta_rate": "1"}, TypeError, "beta_rate must be a positive number"),
        ({"prior": "horseshoe", "expected_basis": 2.0}, ValueError, "expected_basis must be below the 2 columns"),
        ({"prior": "horseshoe", "slab_scale": -1.0}, ValueError, "slab_scale must be positive"),
        ({"prior": "horseshoe", "slab_df": np.inf}, ValueError, "slab_df must be positive and finite"),
        ({"names": ["one"]}, ValueError, "names must be 2 different labels"),
    ],
)
def test_bad_input_is_refused_at_the_door(arguments, error, text):
    with pytest.raises(error, match=text):
        bs.models.rvm(**{"Phi": GOOD, "t": [1.0, 2.0, 3.0], **arguments})


# --- weights afterwards -----------------------------------------------------------------------------------------


def constant_trace(alpha, beta, draws):
    m = len(alpha)
    values = {"alpha": np.broadcast_to(alpha, (2, draws, m)), "beta": np.full((2, draws), beta)}
    return az.from_dict({"posterior": values}, coords={"basis": np.arange(m)}, dims={"alpha": ["basis"]})


@pytest.mark.parametrize(("n", "m"), [(9, 4), (4, 9)])
def test_drawn_weights_have_the_moments_of_the_posterior(rng, n, m):
    Phi, t = data(rng, n, m)
    alpha, beta, draws = rng.gamma(2.0, size=m) + 0.1, 3.0, 5000
    model = bs.models.rvm(Phi, t, collapsed=True)
    w = bs.models.draw_weights(model, constant_trace(alpha, beta, draws), random_seed=1)
    assert w.dims == ("chain", "draw", "basis") and w.shape == (2, draws, m)
    w = w.values.reshape(-1, m)
    mu, Sigma = oracles.posterior(Phi, t, alpha, beta)
    mean_error = np.sqrt(np.diag(Sigma) / len(w))
    assert np.abs((w.mean(axis=0) - mu) / mean_error).max() < 4.5
    error = np.sqrt((Sigma**2 + np.outer(np.diag(Sigma), np.diag(Sigma))) / len(w))
    assert np.abs((np.cov(w.T) - Sigma) / error).max() < 4.5
    wrong = oracles.posterior(Phi, t, 1.5 * alpha, 1.3 * beta)
    assert np.abs((np.cov(w.T) - wrong[1]) / error).max() > 4.5


def test_weights_need_a_collapsed_model(rng):
    with pytest.raises(ValueError, match="collapsed=True"):
        bs.models.draw_weights(bs.models.rvm(*data(rng)), None)


def test_collapsed_draws_of_the_prior_have_the_declared_covariance(rng):
    Phi, t = data(rng, 3, 4)
    model = bs.models.rvm(Phi, t, collapsed=True, alpha_shape=3.0, alpha_rate=2.0, beta_shape=3.0, beta_rate=1.0)
    y = pm.sample_prior_predictive(20_000, model=model, random_seed=1, compile_kwargs={"mode": ONCE})
    y = y.prior_predictive["t"].values[0]
    # E[1/alpha] = rate / (shape - 1); the sample's own fourth moments give the error
    C = np.eye(3) * 0.5 + Phi @ Phi.T
    products = y[:, :, None] * y[:, None, :]
    assert np.abs((products.mean(axis=0) - C) / (products.std(axis=0) / np.sqrt(len(y)))).max() < 4.5


# --- sampling ---------------------------------------------------------------------------------------------------


def sample(model, draws, tune=500, chains=4, seed=0):
    return pm.sample(
        draws, tune=tune, chains=chains, cores=1, random_seed=seed, model=model, progressbar=False, quiet=True
    )


def separation(one, other):
    """Differences of means and of standard deviations of two sets of chains, in their Monte Carlo standard errors."""
    one, other = (np.asarray(x).reshape(*np.shape(x)[:2], -1) for x in (one, other))
    found = []
    for k in range(one.shape[2]):
        x, y = one[:, :, k], other[:, :, k]
        found.append((x.mean() - y.mean()) / np.hypot(az.mcse(x, method="mean"), az.mcse(y, method="mean")))
        found.append((x.std() - y.std()) / np.hypot(az.mcse(x, method="sd"), az.mcse(y, method="sd")))
    return np.abs(np.array(found, dtype=float))


def deviations(draws, mean, sd):
    """How many Monte Carlo standard errors the sample mean and sd (chain, draw) are away from the exact ones."""
    draws = np.asarray(draws)
    errors = [draws.mean() - mean, draws.std() - sd]
    return np.abs([e / float(az.mcse(draws, method=m)) for e, m in zip(errors, ("mean", "sd"), strict=True)])


def quadrature(phi, t, shape, rate, beta_shape, beta_rate):
    """Mean and sd of w and of log beta with one weight: Student prior of w, a grid in w and log beta."""
    w = np.linspace(-6, 8, 1401)[:, None]
    lb = np.linspace(-6, 6, 601)
    squares = ((t[:, None] - phi[:, None] * w[:, 0]) ** 2).sum(axis=0)[:, None]
    log_p = 0.5 * len(t) * lb - 0.5 * np.exp(lb) * squares + beta_shape * lb - beta_rate * np.exp(lb)
    log_p = log_p + stats.t(2 * shape, scale=np.sqrt(rate / shape)).logpdf(w)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    assert max(p[0].max(), p[-1].max(), p[:, 0].max(), p[:, -1].max()) < 1e-7 * p.max()  # nothing left outside
    out = []
    for q, x in ((p.sum(axis=1), w[:, 0]), (p.sum(axis=0), lb)):
        out.append((q @ x, np.sqrt(q @ (x - q @ x) ** 2)))
    return out


def check_one_weight(rng, collapsed, draws):
    phi = rng.normal(size=8)
    t = 0.8 * phi + 0.7 * rng.normal(size=8)
    prior = {"alpha_shape": 1.5, "alpha_rate": 1.0, "beta_shape": 2.0, "beta_rate": 1.0}
    model = bs.models.rvm(phi[:, None], t, collapsed=collapsed, **prior)
    trace = sample(model, draws)
    w = bs.models.draw_weights(model, trace, random_seed=2) if collapsed else trace.posterior["w"]
    logs = np.log(trace.posterior["beta"])
    for rate, agrees in ((1.0, True), (0.2, False)):  # the second is a wrong prior, and is seen
        exact = quadrature(phi, t, 1.5, rate, 2.0, 1.0)
        worst = max(deviations(w.values[:, :, 0], *exact[0]).max(), deviations(logs, *exact[1]).max())
        assert (worst < 4.0) == agrees


def test_one_weight_under_nuts_agrees_with_quadrature(rng):
    check_one_weight(rng, collapsed=True, draws=1000)


@pytest.mark.slow
@pytest.mark.parametrize("collapsed", [True, False])
def test_both_forms_agree_with_quadrature_in_long_chains(rng, collapsed):
    check_one_weight(rng, collapsed, draws=4000)


def overlapping(rng, n=30, m=6):
    x, c = np.sort(rng.uniform(-1, 1, n)), np.linspace(-1, 1, m)
    return bs.RBFDictionary(c, width=0.5).design(x), np.sinc(3 * x) + 0.1 * rng.normal(size=n)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["gamma", "horseshoe"])
@pytest.mark.parametrize("m", [6, 11])
def test_explicit_and_collapsed_agree_under_nuts(rng, prior, m):
    """All of w, log alpha and log beta, with a wrong prior beside the right one."""
    Phi, t = overlapping(rng, 12 if m == 11 else 30, m)
    # a prior with moments: the comparison is in Monte Carlo errors of means and standard deviations
    given = {"alpha_shape": 2.0} if prior == "gamma" else {"slab_df": 10.0, "slab_scale": 2.0}
    model = bs.models.rvm(Phi, t, prior, collapsed=True, **given)
    one = sample(model, 3000, tune=1000)
    one.posterior["w"] = bs.models.draw_weights(model, one, random_seed=3)
    other = sample(bs.models.rvm(Phi, t, prior, **given), 3000, tune=1000, seed=1)
    changed = {"alpha_shape": 1.2} if prior == "gamma" else {**given, "slab_scale": 0.4}
    wrong_model = bs.models.rvm(Phi, t, prior, collapsed=True, **changed)
    wrong = sample(wrong_model, 3000, tune=1000, seed=2)
    wrong.posterior["w"] = bs.models.draw_weights(wrong_model, wrong, random_seed=4)

    def values(trace):
        p = trace.posterior
        return np.concatenate([p["w"].values, np.log(p["alpha"].values), np.log(p["beta"].values)[:, :, None]], axis=-1)

    for trace in (one, other):
        assert max(float(az.rhat(values(trace)[:, :, k])) for k in range(2 * Phi.shape[1] + 1)) < 1.02
    assert separation(values(one), values(other)).max() < 4.0
    assert separation(values(wrong), values(other)).max() > 4.0


@pytest.mark.slow
def test_plain_sampling_with_the_default_priors(rng):
    Phi, t = overlapping(rng)
    model = bs.models.rvm(Phi, t, collapsed=True)
    trace = sample(model, 500, tune=500)
    assert int(trace.sample_stats["diverging"].sum()) <= 5
    logs = np.concatenate(
        [np.log(trace.posterior["alpha"].values), np.log(trace.posterior["beta"].values)[..., None]], -1
    )
    assert max(float(az.rhat(logs[:, :, k])) for k in range(logs.shape[-1])) < 1.02
    w = bs.models.draw_weights(model, trace, random_seed=0)
    fitted = np.median((w.values.reshape(-1, Phi.shape[1]) @ Phi.T), axis=0)
    least = t - Phi @ np.linalg.lstsq(Phi, t)[0]
    assert np.linalg.norm(fitted - t) < 2.5 * np.linalg.norm(least)
    pm.compute_log_likelihood(trace, model=model, progressbar=False)
    assert trace.log_likelihood["t"].shape == (4, 500, 30)


@pytest.mark.slow
@pytest.mark.parametrize("m", [6, 20])
def test_plain_sampling_of_the_explicit_form_with_the_default_priors(rng, m):
    trace = sample(bs.models.rvm(*overlapping(rng, 30, m)), 1000, tune=1000)
    assert int(trace.sample_stats["diverging"].sum()) <= 20
    assert float(az.summary(trace, round_to="none", kind="diagnostics").r_hat.max()) < 1.02
