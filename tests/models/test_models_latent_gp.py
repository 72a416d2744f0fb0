"""Gaussian processes under labels, counts and heavy tails: densities written out, names, draws, NUTS.

Guards `bayessel.models._latent_gp`, `bayessel.models._gp`.
"""

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.covariance import Matern52, Noise, Prior, SquaredExponential
from bayessel.likelihoods import LIKELIHOODS
from bayessel.likelihoods.counts import PoissonCounts
from bayessel.models._latent_op import JITTER
from tests.models.test_models_generalised import agree, log_likelihood

PYTHON = {"mode": "FAST_COMPILE"}
LATENT = [kind for kind in LIKELIHOODS if kind != "gaussian"]


def problem(rng, kind, n=16, m=2):
    X = rng.standard_normal((n, m))
    f = 1.5 * np.sin(1.5 * X[:, 0])
    if kind == "student":
        return X, f + 0.1 * rng.standard_t(3.0, size=n)
    return X, (f + 0.3 * rng.standard_normal(n) > 0.0) if kind in ("logit", "probit") else rng.poisson(2.0 * np.exp(f))


def written_out(kind, p, X, t, hours):
    """Priors, v and the likelihood by SciPy; θ = log(v0, w, a0, a1)."""
    m, n = X.shape[1], len(X)
    v0, *w, a0, a1 = np.exp(p["theta"])
    K = v0 * np.exp(-0.5 * np.sum(w * (X[:, None] - X[None]) ** 2, axis=-1)) + a0 + a1 * X @ X.T
    f = np.linalg.cholesky(K + JITTER * np.mean(np.diag(K)) * np.eye(n)) @ p["v"] + np.log(hours)
    total = stats.norm(-1.0, 1.0).logpdf(p["theta"][0]) + stats.norm(-3.0, 3.0).logpdf(p["theta"][-2:]).sum()
    precision = np.exp(-p["theta"][1:-2])
    total += np.sum(stats.gamma(0.5, scale=2.0 * m**2).logpdf(precision) - p["theta"][1:-2])
    total += stats.norm().logpdf(p["v"]).sum()
    own = {}
    for name, mean, width in (("noise", -1.5, 1.5), ("nu_beyond_2", np.log(4.0), 1.0), ("r", np.log(5.0), 1.5)):
        if f"{name}_log__" in p:
            z = p[f"{name}_log__"]
            total += stats.norm(mean, width).logpdf(z)
            own |= {"nu": 2.0 + np.exp(z)} if name == "nu_beyond_2" else {name: np.exp(z)}
    return total, log_likelihood(kind, t, f, own)


@pytest.mark.parametrize("kind", LATENT)
def test_the_density_written_out(rng, kind):
    X, t = problem(rng, kind)
    hours = rng.uniform(0.5, 2.0, size=len(t)) if kind in ("poisson", "negative-binomial") else None
    model = bs.models.gp(X, t, likelihood=kind, exposure=hours)
    terms, whole = model.compile_logp(model.observed_RVs, sum=False, **PYTHON), model.compile_logp(**PYTHON)
    both = model.logp_dlogp_function(ravel_inputs=True, **PYTHON)._pytensor_function
    for _ in range(2):
        p = {name: value + 0.4 * rng.standard_normal(np.shape(value)) for name, value in model.initial_point().items()}
        prior, rows = written_out(kind, p, X, t, 1.0 if hours is None else hours)
        assert_allclose(terms(p)[0], rows, rtol=1e-6, atol=1e-8)
        assert_allclose(whole(p), prior + rows.sum(), rtol=1e-8)
        value, slopes = both(np.concatenate([np.ravel(one) for one in p.values()]))
        assert_allclose(value, prior + rows.sum(), rtol=1e-8)
        sizes = np.cumsum([np.size(one) for one in p.values()])[:-1]

        def moved(q, p=p, sizes=sizes):
            parts = zip(p, np.split(q, sizes), strict=True)
            at = {name: part.reshape(np.shape(p[name])) for name, part in parts}
            prior, rows = written_out(kind, at, X, t, 1.0 if hours is None else hours)
            return prior + rows.sum()

        at = np.concatenate([np.ravel(one) for one in p.values()])
        steps = 1e-4 * np.eye(len(at))
        differences = [
            (moved(at - 2 * e) - 8 * moved(at - e) + 8 * moved(at + e) - moved(at + 2 * e)) / 12e-4 for e in steps
        ]
        assert_allclose(slopes, differences, rtol=1e-4, atol=1e-4)


def test_names_and_data(rng):
    X, t = problem(rng, "negative-binomial")
    model = bs.models.gp(X, t, likelihood="negative-binomial", exposure=2.0, names=["depth", "age"])
    assert list(model.coords["parameter"]) == ["log v0", "log w[0]", "log w[1]", "log a0", "log a1"]
    assert [v.name for v in model.free_RVs] == ["theta", "v", "r"]
    assert [v.name for v in model.observed_RVs] == ["t"]
    assert [v.name for v in model.deterministics] == ["length", "latent"]
    assert list(model.coords["input"]) == ["depth", "age"]
    student = bs.models.gp(X, rng.normal(size=16), likelihood="student")
    assert {"noise", "nu"} <= set(student.named_vars)
    # new data in the same model: as many rows as there are
    with model:
        pm.set_data({"X": X[:5], "t_data": t[:5], "exposure": np.full(5, 2.0)}, coords={"row": np.arange(5)})
    p = model.initial_point()
    assert p["v"].shape == (5,)
    prior, rows = written_out("negative-binomial", p, X[:5], t[:5], 2.0)
    assert_allclose(model.compile_logp(**PYTHON)(p), prior + rows.sum(), rtol=1e-9)


def test_the_marginal_form_is_the_default(rng):
    X, t = problem(rng, "student")
    assert [v.name for v in bs.models.gp(X, t, likelihood="gaussian").free_RVs] == ["theta"]
    assert [v.name for v in bs.models.gp(X, t).observed_RVs] == ["t", "t_rest"]


def test_a_covariance_and_prior_of_ones_own(rng):
    X, t = problem(rng, "poisson")
    prior = Prior.normal(0.0, 0.5, 3)
    model = bs.models.gp(X, t, Matern52(ard=False) + Noise(), likelihood=PoissonCounts(), prior=prior)
    assert list(model.coords["parameter"]) == ["log v0", "log w", "log r2"]
    assert "length" not in model.named_vars
    p = {"theta": np.array([0.1, -0.2, -1.0]), "v": rng.standard_normal(16)}
    K = (Matern52(ard=False) + Noise()).matrix(p["theta"], X) + np.exp(-1.0) * np.eye(16)
    f = np.linalg.cholesky(K + JITTER * np.mean(np.diag(K)) * np.eye(16)) @ p["v"]  # the noise is part of f
    expected = stats.norm(0.0, 0.5).logpdf(p["theta"]).sum() + stats.norm().logpdf(p["v"]).sum()
    expected += stats.poisson(np.exp(f)).logpmf(t).sum()
    assert_allclose(model.compile_logp(**PYTHON)(p), expected, rtol=1e-7)


@pytest.mark.parametrize("kind", ["student", "probit", "negative-binomial"])
def test_draws_from_the_prior(rng, kind):
    X, t = problem(rng, kind, n=4, m=1)
    prior = Prior.normal(0.0, 1e-3, 2)
    model = bs.models.gp(X, t, SquaredExponential(), likelihood=kind, prior=prior)
    drawn = pm.sample_prior_predictive(3000, model=model, random_seed=1, compile_kwargs=PYTHON)
    f = drawn.prior["latent"].values[0]
    K = np.exp(-0.5 * (X - X.T) ** 2)
    white = np.linalg.solve(np.linalg.cholesky(K + JITTER * np.eye(4)), f.T).ravel()
    assert stats.kstest(white, "norm").pvalue > 1e-4
    targets = drawn.prior_predictive["t"].values[0]
    if kind == "student":
        noise, nu = drawn.prior["noise"].values[0][:, None], drawn.prior["nu"].values[0][:, None]
        uniform = stats.t(nu).cdf((targets - f) / noise)
        assert stats.kstest(uniform.ravel(), "uniform").pvalue > 1e-4
    else:
        r = None if kind == "probit" else drawn.prior["r"].values[0][:, None]
        mean = stats.norm.cdf(f) if r is None else np.exp(f)
        variance = mean * (1.0 - mean) if r is None else mean + mean**2 / r
        z = ((targets - mean) / np.sqrt(variance)).sum() / np.sqrt(targets.size)
        assert abs(z) < 4.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"likelihood": "softmax"}, "one latent function, got 'softmax'.*bs.models.generalised has it"),
        ({"likelihood": "normal"}, "likelihood must be one of"),
        ({"likelihood": "logit", "t": np.arange(16.0)}, "t must be labels 0 and 1"),
        ({"likelihood": "poisson", "t": np.full(16, 0.5)}, "t must be counts"),
        ({"exposure": 2.0}, "exposure is of counts .*, and the likelihood is 'gaussian': leave it out"),
        ({"likelihood": "poisson", "exposure": -1.0}, "exposure"),
        ({"likelihood": "logit", "prior": Prior.normal(0.0, 1.0, 2)}, "prior must have 5 entries"),
    ],
)
def test_bad_input_is_named(rng, change, said):
    X, t = problem(rng, "logit")
    with pytest.raises(ValueError, match=said):
        bs.models.gp(**({"X": X, "t": t} | change))


def test_a_short_run_finds_the_function(rng):
    x = np.linspace(-2.0, 2.0, 40)
    t = np.sin(2.0 * x) + 0.05 * rng.standard_normal(40)
    t[::10] += 6.0  # outliers
    model = bs.models.gp(x[:, None], t, likelihood="student")
    trace = bs.sample(model, 150, tune=250, chains=2, cores=1, random_seed=1, quiet=True)
    found = bs.models.predict(model, trace.sel(draw=slice(None, None, 5)), [[0.3], [1.1]], random_seed=1)
    assert np.abs(found["f"].mean(("chain", "draw")) - np.sin([0.6, 2.2])).max() < 0.25


@pytest.mark.slow
@pytest.mark.parametrize("kind", LATENT)
def test_the_posterior_is_that_of_nuts(rng, kind):
    X, t = problem(rng, kind, n=25, m=1)
    prior = Prior.normal(0.0, 0.7, 2)  # all moments exist, and chains are short
    model = bs.models.gp(X, t, SquaredExponential(), likelihood=kind, prior=prior)
    nuts = pm.sample(
        1500, tune=500, chains=2, cores=1, random_seed=2, target_accept=0.9, progressbar=False, quiet=True,
        model=model, nuts_sampler="pymc",
    )  # fmt: skip
    ours = bs.sample(model, 3000, tune=700, chains=4, cores=1, random_seed=1, quiet=True)
    assert float(bs.diagnostics.convergence(ours).table["r_hat"].max()) < 1.02
    names = ["theta", "latent", *(name for name in ("noise", "r") if name in model.named_vars)]
    assert agree(ours, nuts, names) < 4.5  # of some 55 numbers
