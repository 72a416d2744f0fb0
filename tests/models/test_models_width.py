"""Models whose kernel width is a random variable: the design in symbols, the density, the posterior of the width.

Guards `bayessel.models._radial_design`, `bayessel.models._symbolic_marginal`, `bayessel.models._radial_predict`,
`bayessel.models.width_prior`.
"""

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import bayessel as bs
from bayessel.models._radial_design import symbolic_design
from bayessel.models._symbolic_marginal import design_marginal

# pure Python, compiled in no time: for densities that are evaluated once
ONCE = "FAST_COMPILE"
PRIOR = {"alpha_shape": 2.0, "alpha_rate": 1.0, "beta_shape": 2.0, "beta_rate": 0.05}
CENTERS = np.linspace(-1.5, 1.5, 6)
KINDS = ("gaussian", "multiquadric", "inverse_multiquadric", "cauchy")


def data(rng, n=20, noise=0.2):
    """cos(x²) and noise."""
    x = np.sort(rng.uniform(-1.5, 1.5, n))
    return x, np.cos(x**2) + noise * rng.standard_normal(n)


def by_hand(x, centers, r):
    return np.exp(-(((x[:, None] - centers) / r) ** 2))


def log_normal(r, median, sd):
    """Density of log r, which is what PyMC samples."""
    return stats.norm(np.log(median), sd).logpdf(np.log(r))


# --- the design -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [{"bias": False}, {"bias": True}, {"linear": True}, {"linear": [2.0, 0.5]}])
@pytest.mark.parametrize("r", [0.7, [0.4, 3.0]])
@pytest.mark.parametrize("kind", KINDS)
def test_the_design_in_symbols_is_that_of_the_dictionary(rng, kind, r, beside):
    X, centers = rng.normal(size=(9, 2)) + 2000.0, rng.normal(size=(4, 2)) + 2000.0
    expected = bs.RBFDictionary(centers, r, kind, **beside).design(X)
    other = bs.RBFDictionary(centers, np.full(np.shape(r), 9.0), kind, **beside)
    made = symbolic_design(other, pt.constant(X), pt.constant(centers), pt.constant(np.asarray(r)))
    assert_allclose(made.eval(mode=ONCE), expected, rtol=1e-11)
    wrong = symbolic_design(other, pt.constant(X), pt.constant(centers), pt.constant(np.asarray(r) * 1.01))
    assert not np.allclose(wrong.eval(mode=ONCE), expected, rtol=1e-6)


# --- densities --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n", [4, 6, 15])
@pytest.mark.parametrize("maker", ["linear", "rvm"])
def test_densities_are_dense_gaussians_times_priors(rng, maker, n, bias, collapsed):
    x, t = data(rng, n)
    alpha = rng.gamma(2.0, size=6) + 0.1 if maker == "rvm" else 1.7
    beta, r, b, w = 2.2, 0.8, 0.3 if bias and maker == "linear" else 0.0, rng.normal(size=6)
    named = {"collapsed": collapsed, "X": x, "width_prior": (0.5, 0.4), **PRIOR}
    if maker == "linear" and bias:
        named |= {"bias": True, "bias_scale": 3.0}
    model = getattr(bs.models, maker)(bs.RBFDictionary(CENTERS, 1.0, bias=bias and maker == "linear"), t, **named)
    Phi = by_hand(x, CENTERS, r)
    point = {"width_log__": np.log(r), "alpha_log__": np.log(alpha), "beta_log__": np.log(beta)}
    expected = log_normal(r, 0.5, 0.4)
    for value, shape, rate in ((alpha, 2.0, 1.0), (beta, 2.0, 0.05)):
        expected += np.sum(stats.gamma(shape, scale=1.0 / rate).logpdf(value) + np.log(value))
    if b:
        point["b"] = b
        expected += stats.norm(t.mean(), 3.0).logpdf(b)
    if collapsed:
        C = np.eye(n) / beta + (Phi / alpha) @ Phi.T
        expected += stats.multivariate_normal(np.full(n, b), C).logpdf(t)
    else:
        point["w"] = w
        expected += stats.norm(0.0, np.asarray(alpha) ** -0.5).logpdf(w).sum()
        expected += stats.norm(Phi @ w + b, beta**-0.5).logpdf(t).sum()
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-9)


def test_gradients_of_the_collapsed_density_are_its_differences(rng):
    X = rng.normal(size=(12, 2))
    t = np.sin(X[:, 0])
    dictionary = bs.RBFDictionary(X[:5], [1.0, 1.0])
    for model in (
        bs.models.linear(dictionary, t, X=X, collapsed=True),
        bs.models.rvm(dictionary, t, X=X, collapsed=True),
    ):
        logp, slope = model.compile_logp(mode=ONCE), model.compile_dlogp(mode=ONCE)
        point = {name: value + 0.1 * rng.standard_normal(value.shape) for name, value in model.initial_point().items()}
        found, expected, h = slope(point), [], 1e-5
        for name, value in point.items():
            for i in range(value.size):
                step = np.zeros(value.size)
                step[i] = h
                moved = [{**point, name: value + sign * step.reshape(value.shape)} for sign in (1, -1)]
                expected.append((logp(moved[0]) - logp(moved[1])) / (2.0 * h))
        assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(9, 4), (4, 9), (6, 6), (5, 1)])
def test_both_factors_agree_and_the_decomposition_takes_over(rng, n, m, monkeypatch):
    Phi, d, log_alpha = rng.normal(size=(n, m)), rng.normal(size=n), rng.normal(size=m)
    found = design_marginal(log_alpha, np.log(2.2), d, Phi)
    monkeypatch.setattr("bayessel.models._symbolic_marginal.SAFE_TRACE", 0.0)
    for one, other in zip(found, design_marginal(log_alpha, np.log(2.2), d, Phi), strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-10)
    monkeypatch.undo()
    # weights fit every row of a square design as β grows: log|K| is what is left, to all digits
    value, *_ = design_marginal(np.zeros(n), 40.0, d, np.eye(n))
    assert_allclose(value, stats.norm(0.0, np.sqrt(1.0 + np.exp(-40.0))).logpdf(d).sum(), rtol=1e-12)


def test_precisions_beyond_double_precision_have_no_density():
    value, *slopes = design_marginal(np.full(2, -2000.0), 0.0, np.ones(3), np.ones((3, 2)))
    assert value == -np.inf and all((slope == 0.0).all() for slope in slopes)


def test_compiled_by_numba_it_is_the_same(rng):
    x, t = data(rng)
    model = bs.models.linear(bs.RBFDictionary(CENTERS, 1.0), t, X=x, collapsed=True)
    point = model.initial_point()
    both = [model.compile_dlogp(mode=mode)(point) for mode in (ONCE, "NUMBA")]
    assert_allclose(*both, rtol=1e-9)


# --- the posterior ----------------------------------------------------------------------------------------------


def quadrature(x, t, alpha, beta, median, sd):
    """Mean and standard deviation of log r, and log p(t): evidence at r times its prior, on a grid."""
    grid = np.linspace(np.log(median) - 8.0 * sd, np.log(median) + 8.0 * sd, 801)
    log_p = stats.norm(np.log(median), sd).logpdf(grid)
    log_p += [bs.linear.log_evidence(by_hand(x, CENTERS, r), t, alpha, beta) for r in np.exp(grid)]
    p = np.exp(log_p - log_p.max())
    assert max(p[0], p[-1]) < 1e-9
    total = log_p.max() + np.log(p.sum() * (grid[1] - grid[0]))
    p /= p.sum()
    mean = p @ grid
    return mean, np.sqrt(p @ (grid - mean) ** 2), total


def deviations(draws, mean, sd):
    """Distances of mean and standard deviation of (chain, draw) in Monte Carlo standard errors, from batches."""
    batches = np.reshape(draws, (-1, 100))
    n = len(batches)
    first, second = batches.mean(axis=1), ((batches - mean) ** 2).mean(axis=1)
    errors = [part.std(ddof=1) / np.sqrt(n) for part in (first, second)]
    return np.abs([(first.mean() - mean) / errors[0], (second.mean() - sd**2) / errors[1]])


def sampled(model, draws, how="bs"):
    named = {"chains": 4, "random_seed": 11, "cores": 1}
    if how == "pm":
        return pm.sample(draws, tune=500, model=model, progressbar=False, quiet=True, **named)
    return bs.sample(model, draws, tune=300, quiet=True, **named)


@pytest.mark.parametrize(
    "form", ["collapsed", *(pytest.param(one, marks=pytest.mark.slow) for one in ("explicit", "pm"))]
)
def test_the_posterior_of_the_width_is_evidence_times_prior(rng, form):
    x, t = data(rng)
    alpha, beta, prior = 1.0, 25.0, (0.7, 0.6)
    dictionary = bs.RBFDictionary(CENTERS, 1.0, bias=False)
    model = bs.models.linear(dictionary, t, alpha, beta, form != "explicit", X=x, width_prior=prior)
    trace = sampled(model, 1500, "pm" if form == "pm" else "bs")
    logs = np.log(trace.posterior["width"].values)
    mean, sd, _ = quadrature(x, t, alpha, beta, *prior)
    assert deviations(logs, mean, sd).max() < 4.0
    # a noise of the wrong size is seen
    mean, sd, _ = quadrature(x, t, alpha, 1.5 * beta, *prior)
    assert deviations(logs, mean, sd).max() > 4.0


@pytest.mark.parametrize("collapsed", [False, True])
def test_the_evidence_integrates_over_the_width(rng, collapsed):
    x, t = data(rng)
    dictionary = bs.RBFDictionary(CENTERS, 1.0, bias=False)
    model = bs.models.linear(dictionary, t, 1.0, 25.0, collapsed, X=x, width_prior=(0.7, 0.6))
    found = bs.evidence(model, random_seed=1, quiet=True)
    *_, expected = quadrature(x, t, 1.0, 25.0, 0.7, 0.6)
    assert abs(found.value - expected) < 4.0 * found.error + 1e-3
    at_median = bs.linear.log_evidence(by_hand(x, CENTERS, 0.7), t, 1.0, 25.0)
    assert abs(found.value - at_median) > 4.0 * found.error + 1e-3


@pytest.mark.slow
def test_an_input_without_relevance_gets_a_wide_width(rng):
    X = rng.uniform(-1.5, 1.5, size=(60, 2))
    t = np.cos(2.0 * X[:, 0] ** 2) + 0.1 * rng.standard_normal(60)
    dictionary = bs.RBFDictionary(X[:25], [1.0, 1.0])
    model = bs.models.linear(dictionary, t, X=X, collapsed=True)
    width = np.median(sampled(model, 300).posterior["width"].values, axis=(0, 1))
    assert width[1] > 3.0 * width[0]
    # the same with the inputs exchanged
    model = bs.models.linear(bs.RBFDictionary(X[:25, ::-1], [1.0, 1.0]), t, X=X[:, ::-1], collapsed=True)
    other = np.median(sampled(model, 300).posterior["width"].values, axis=(0, 1))
    assert other[0] > 3.0 * other[1]


def test_the_default_prior_is_about_the_spread_of_the_inputs(rng):
    X = rng.normal(size=(40, 2)) * [1.0, 50.0]
    t = X[:, 0]
    for width in (0.1, [0.1, 0.1]):
        model = bs.models.linear(bs.RBFDictionary(X[:5], width), t, X=X)
        expected = X.std(axis=0) if np.ndim(width) else np.sqrt(np.mean(X.var(axis=0)))
        logs = np.log(pm.draw(model["width"], 4000, random_seed=1))
        assert_allclose(logs.mean(axis=0), np.log(expected), atol=4.0 * 1.5 / np.sqrt(4000))
        assert_allclose(logs.std(axis=0), 1.5, rtol=4.0 / np.sqrt(8000))
    assert model.named_vars_to_dims["width"] == ("input",)


# --- predictions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maker", ["linear", "rvm"])
@pytest.mark.parametrize("n", [4, 15])
def test_new_rows_and_weights_by_dense_algebra(rng, maker, n):
    x, t = data(rng, n)
    new = np.linspace(-2.0, 2.0, 5)
    draws, r, beta = 4000, 0.6, 9.0
    alpha = rng.gamma(2.0, size=6) + 0.1 if maker == "rvm" else np.asarray(1.3)
    model = getattr(bs.models, maker)(bs.RBFDictionary(CENTERS, 1.0, bias=False), t, X=x, collapsed=True)
    one = {"width": np.asarray(r), "alpha": alpha, "beta": np.asarray(beta)}
    many = {name: np.broadcast_to(value, (1, draws, *value.shape)) for name, value in one.items()}
    trace = az.from_dict({"posterior": many})
    Phi, Phi_new = by_hand(x, CENTERS, r), by_hand(new, CENTERS, r)
    Sigma = np.linalg.inv(beta * Phi.T @ Phi + alpha * np.eye(6))
    mu = beta * Sigma @ Phi.T @ t
    variance = np.einsum("ij,jk,ik->i", Phi_new, Sigma, Phi_new)
    found = bs.models.predict(model, trace, new, random_seed=int(rng.integers(2**31)))
    assert_allclose(found["mean"], Phi_new @ mu, rtol=1e-8)
    assert_allclose(found["sd"], np.sqrt(variance + 1.0 / beta), rtol=1e-8)
    assert (np.abs(found["f"].values[0].mean(axis=0) - Phi_new @ mu) < 4.0 * np.sqrt(variance / draws)).all()
    assert (np.abs(found["f"].values[0].var(axis=0) / variance - 1.0) < 4.0 * np.sqrt(2.0 / draws)).all()
    w = bs.models.draw_weights(model, trace, random_seed=int(rng.integers(2**31))).values[0]
    assert (np.abs(w.mean(axis=0) - mu) < 4.0 * np.sqrt(np.diag(Sigma) / draws)).all()
    error = np.sqrt((Sigma**2 + np.outer(np.diag(Sigma), np.diag(Sigma))) / draws)
    assert (np.abs(np.cov(w.T) - Sigma) < 4.5 * error).all()
    # the weights at another width are others
    there = by_hand(x, CENTERS, 2.0 * r)
    other = beta * np.linalg.solve(beta * there.T @ there + alpha * np.eye(6), there.T @ t)
    assert (np.abs(w.mean(axis=0) - other) > 4.5 * np.sqrt(np.diag(Sigma) / draws)).any()


def test_draws_at_other_inputs_than_those_of_the_trace_are_refused(rng):
    x, t = data(rng)
    model = bs.models.linear(bs.RBFDictionary(CENTERS, 1.0), t, X=x, collapsed=True)
    names = [rv.name for rv in model.free_RVs]
    trace = az.from_dict(
        {
            "posterior": {**dict.fromkeys(names, np.full((1, 3), 1.0)), "noise": np.full((1, 3), 1.0)},
            "constant_data": {"X": x[:, None]},
        }
    )
    with model:
        pm.set_data({"X": x[:, None] + 1.0})
        with pytest.raises(ValueError, match="the data in the model are not those of the trace"):
            pm.sample_posterior_predictive(trace, progressbar=False, compile_kwargs={"mode": ONCE})
    with pytest.raises(ValueError, match="X in the model is not the X that the trace was sampled from"):
        bs.models.predict(model, trace, x)


# --- what is refused ---------------------------------------------------------------------------------------------


def a_dictionary(**named):
    return bs.RBFDictionary([[0.0, 0.0], [1.0, 1.0]], **named)


@pytest.mark.parametrize("maker", ["linear", "rvm"])
@pytest.mark.parametrize(
    ("Phi", "named", "error", "said"),
    [
        (lambda X: X, {"X": np.zeros((5, 2))}, ValueError, "X goes with a dictionary in place of Phi"),
        (lambda X: X, {"width_prior": (1.0, 1.0)}, ValueError, "width_prior goes with a dictionary"),
        (lambda X: a_dictionary(width=1.0), {"X": None}, ValueError, "give X, one row for each of t"),
        (lambda X: a_dictionary(metric=np.eye(2)), {}, ValueError, "a full metric has no width to sample"),
        (lambda X: bs.basis.PolynomialDictionary(2), {}, TypeError, "only a RBFDictionary has a width to sample"),
        (
            lambda X: a_dictionary(width=1.0),
            {"X": np.zeros((5, 3))},
            ValueError,
            "X must have 2 columns like the centers",
        ),
        (lambda X: a_dictionary(width=1.0), {"X": np.zeros((4, 2))}, ValueError, "t"),
        (lambda X: a_dictionary(width=1.0), {"width_prior": 3.0}, TypeError, "pair .median of the width"),
        (lambda X: a_dictionary(width=1.0), {"width_prior": (-1.0, 1.0)}, ValueError, "the median of width_prior"),
        (lambda X: a_dictionary(width=1.0), {"width_prior": (1.0, [1, 2])}, ValueError, "deviation of width_prior"),
    ],
)
def test_bad_input_is_refused(rng, maker, Phi, named, error, said):
    X = rng.normal(size=(5, 2))
    made = Phi(X)
    given = named if isinstance(made, np.ndarray) else {"X": X, **named}
    with pytest.raises(error, match=said):
        getattr(bs.models, maker)(made, X[:, 0], **given)
