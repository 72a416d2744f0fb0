"""Pólya-Gamma variables against their Laplace transform; the Gibbs step against quadrature, and what it refuses.

Guards `bayessel.samplers.polya_gamma`, `bayessel.samplers.conjugacy.logistic`.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import expit

import bayessel as bs
from bayessel.samplers.gibbs import PolyaGammaGibbs
from bayessel.samplers.polya_gamma import _accept, _coefficient, polya_gamma, polya_gamma_sum
from tests.oracles.monte_carlo import assert_means, z_scores
from tests.problems import gibbs_models

ONCE = "FAST_COMPILE"

CS = [0.0, 1e-8, 0.5, 2.0, 3.2, 10.0, 60.0]
RATES = np.array([0.3, 1.0, 4.0, 20.0])


def transform(c, s):
    """E exp(-ωs) of ω ~ PG(1, c)."""
    a, b = c / 2, np.sqrt(c**2 / 4 + s / 2)
    return np.exp(a - b) * (1 + np.exp(-2 * a)) / (1 + np.exp(-2 * b))


@pytest.mark.parametrize("c", CS)
def test_draws_have_the_laplace_transform(rng, c):
    draws = polya_gamma(np.full((40, 1500), c), rng)
    assert draws.shape == (40, 1500) and (draws > 0).all()
    mean = 0.25 if c < 1e-4 else np.tanh(c / 2) / (2 * c)
    features = np.stack([draws / mean, *np.exp(-RATES[:, None, None] * draws / mean)], axis=-1)
    expected = np.r_[1.0, [transform(c, s / mean) for s in RATES]]
    assert_means(features, expected)
    assert abs(z_scores(features * 1.05, expected)[0]) > 4  # five per cent would be seen


@pytest.mark.parametrize("b", [0.1, 0.5, 1.0, 3.7, 40.0])
@pytest.mark.parametrize("c", [0.0, 1e-6, 0.19, 0.21, 3.0, -8.0])
def test_sums_have_the_laplace_transform(rng, b, c):
    draws = polya_gamma_sum(b, np.full((40, 1500), c), rng)
    assert draws.shape == (40, 1500) and (draws > 0).all()
    mean = b * (0.25 if abs(c) < 1e-4 else np.tanh(c / 2) / (2 * c))
    # at b times the rates for one, as far as the transform is more than the chance of some rare draw
    rates = RATES[:3]
    features = np.stack([draws / mean, *np.exp(-rates[:, None, None] * draws / mean)], axis=-1)
    expected = np.r_[1.0, [transform(abs(c), s / mean) ** b for s in rates]]
    assert_means(features, expected)
    assert abs(z_scores(features * 1.15, expected)[0]) > 4


def test_sums_of_one_are_those_by_the_alternating_series(rng):
    """Distributions, by their quantiles, as of labels and of counts with y + r = 1."""
    one, other = (
        np.sort(draw)
        for draw in (polya_gamma(np.full(40_000, 2.0), rng), polya_gamma_sum(1.0, np.full(40_000, 2.0), rng))
    )
    assert stats.ks_2samp(one, other).pvalue > 1e-4
    assert stats.ks_2samp(one, 1.03 * other).pvalue < 1e-4


def test_signs_and_sizes_of_the_argument(rng):
    state = rng.bit_generator.state
    one = polya_gamma(np.array([1.5, -3.0]), rng)
    rng.bit_generator.state = state
    np.testing.assert_array_equal(one, polya_gamma(np.array([-1.5, 3.0]), rng))
    huge = polya_gamma(np.full(200, 1e4), rng)
    assert huge.mean() == pytest.approx(1 / 2e4, rel=0.01)


def test_the_alternating_series_is_summed_to_its_end():
    x = np.repeat(np.geomspace(0.05, 5.0, 60), 400)
    u = np.tile(np.r_[np.linspace(0, 1, 200), 1 - np.geomspace(1e-12, 1e-1, 200)], 60)
    total = sum((-1.0) ** n * _coefficient(n, x) for n in range(40))
    level = u * _coefficient(0, x)
    clear = abs(level - total) > 1e-13 * total
    np.testing.assert_array_equal(_accept(x, u)[clear], (level < total)[clear])
    assert clear.mean() > 0.9 and (level > total).any()


def logistic_by_grid(Phi, y, precision, spread):
    """Moments of (w, b) under N(0, 1/precision), N(0, spread²) and the logistic likelihood."""
    grid = np.linspace(-9, 9, 361)
    w, b = np.meshgrid(grid, grid, indexing="ij")
    log_p = -0.5 * precision * w**2 - 0.5 * (b / spread) ** 2
    for phi, label in zip(Phi[:, 0], y, strict=True):
        log_p -= np.logaddexp(0, -(2 * label - 1) * (phi * w + b))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return [float((p * f).sum()) for f in (w, b, w**2, b**2, w * b)]


def chains(model, variables, rng, count=40, draws=120, burn=20):
    step = PolyaGammaGibbs(variables, model=model)
    found = []
    for _ in range(count):
        step.setup_chain(np.random.default_rng(rng.integers(2**32)), 0, draws)
        point, kept = model.initial_point(), []
        for k in range(draws):
            point, _ = step.step(point)
            if k >= burn:
                w, b = point["w"][0], point["b"]
                kept.append([w, b, w**2, b**2, w * b])
        found.append(kept)
    return np.array(found, dtype=float)


def test_the_posterior_is_that_of_quadrature(rng):
    Phi = rng.normal(size=(25, 1))
    y = (rng.uniform(size=25) < expit(1.5 * Phi[:, 0] - 0.5)).astype(float)
    model = bs.models.generalised(Phi, y, alpha=0.5, bias_scale=2.0)
    found = chains(model, ["w", "b"], rng)
    assert_means(found, logistic_by_grid(Phi, y, 0.5, 2.0))
    assert np.abs(z_scores(found, logistic_by_grid(Phi, y, 0.8, 2.0))).max() > 4  # another prior is another posterior


def test_what_else_stands_in_the_log_odds_counts(rng):
    """w with a known offset, against w and b with b held by its prior."""
    x = rng.normal(size=25)
    y = (rng.uniform(size=25) < expit(x + 2.0)).astype(float)
    with pm.Model() as model:
        w = pm.Normal("w", 0.4, 1.5, shape=1)
        pm.Bernoulli("y", logit_p=w[0] * x + 2.0, observed=y)
    step = PolyaGammaGibbs(["w"], model=model)
    found = []
    for _ in range(40):
        step.setup_chain(np.random.default_rng(rng.integers(2**32)), 0, 100)
        point, kept = model.initial_point(), []
        for k in range(100):
            point, _ = step.step(point)
            if k >= 20:
                kept.append([point["w"][0], point["w"][0] ** 2])
        found.append(kept)
    grid = np.linspace(-9, 9, 4001)
    log_p = -0.5 * ((grid - 0.4) / 1.5) ** 2
    log_p -= np.logaddexp(0, -(2 * y - 1) * (grid[:, None] * x + 2.0)).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    assert_means(np.array(found), [(p * grid).sum() / p.sum(), (p * grid**2).sum() / p.sum()])


def test_it_stands_beside_the_other_steps(rng):
    Phi = rng.normal(size=(40, 3))
    y = rng.uniform(size=40) < expit(2 * Phi[:, 0])
    with bs.models.generalised(Phi, y) as model:
        own = PolyaGammaGibbs(["w", "b"])
        steps = bs.steps(model, assigned=own)
        assert [step.name for step in steps] == ["polya_gamma_gibbs", "gamma_precision_gibbs"]
        trace = pm.sample(
            60,
            tune=20,
            chains=2,
            cores=1,
            step=steps,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
        again = pm.sample(
            60,
            tune=20,
            chains=2,
            cores=1,
            step=bs.steps(model, assigned=PolyaGammaGibbs(["w", "b"])),
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    np.testing.assert_array_equal(trace["posterior"]["w"].values, again["posterior"]["w"].values)
    assert trace["posterior"]["w"].mean().item() != 0.0


def test_new_data_are_read(rng):
    Phi = rng.normal(size=(30, 1))
    y = (Phi[:, 0] > 0).astype(int)
    model = bs.models.generalised(Phi, y, alpha=1.0, bias=False)
    step = PolyaGammaGibbs(["w"], model=model)
    step.setup_chain(rng, 0, 10)

    def mean():
        point, total = model.initial_point(), 0.0
        for _ in range(200):
            point, _ = step.step(point)
            total += point["w"][0] / 200
        return total

    assert mean() > 0.5
    pm.set_data({"y_data": 1 - y}, model=model)
    step.data_changed()
    assert mean() < -0.5


# --- the finder, against the model's own density --------------------------------------------------------------------

CONJUGATE = [
    (gibbs_models.logistic, ["w"]),
    (gibbs_models.logistic_with_a_scale, ["w"]),
    (gibbs_models.logistic_by_group, ["mu", "a"]),
    (gibbs_models.logistic_beside_a_line, ["w"]),
    (gibbs_models.counts_of_known_dispersion, ["w"]),
    (gibbs_models.counts_by_group, ["mu", "a"]),
    (gibbs_models.generalised_counts, ["w", "b"]),
]


@pytest.mark.parametrize(("make", "names"), CONJUGATE)
def test_given_the_auxiliary_variables_the_model_is_the_gaussian_that_is_drawn(make, names, rng, monkeypatch):
    """With ω at its mean, b tanh(η/2)/2η, the factor's slope κ − ωη is that of the likelihood, y − σ(η) of labels."""
    model, _ = make()
    step, logp = PolyaGammaGibbs(names, model=model), model.compile_logp(mode=ONCE)
    point = {name: rng.normal(size=np.shape(value)) for name, value in model.initial_point().items()}
    seen = []

    def first_moment(c, rng):
        return np.tanh(c / 2) / (2 * c)

    def keep(factors, d, m, rng):
        seen.append((factors, d, m))
        return np.zeros(len(d))

    monkeypatch.setattr("bayessel.samplers.conjugacy.logistic.polya_gamma", first_moment)
    monkeypatch.setattr(
        "bayessel.samplers.conjugacy.logistic.polya_gamma_sum", lambda b, c, rng: b * first_moment(c, rng)
    )
    monkeypatch.setattr("bayessel.samplers.conjugacy.block.gaussian", keep)
    step.setup_chain(rng, 0, 1)
    step.step(point)
    [(factors, d, m)] = seen
    at = np.concatenate([np.ravel(point[name]) for name in names])
    gradient = -d * (at - m)
    for likelihood, tau, y in factors:
        gradient -= likelihood.A.T @ (tau * (likelihood.A @ at - y))

    def moved(k, h):
        x = at.copy()
        x[k] += h
        pieces = np.split(x, np.cumsum([np.size(point[name]) for name in names])[:-1])
        new = {name: piece.reshape(np.shape(point[name])) for name, piece in zip(names, pieces, strict=True)}
        return float(logp({**point, **new}))

    expected = [(moved(k, 1e-5) - moved(k, -1e-5)) / 2e-5 for k in range(len(at))]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


def test_draws_of_a_found_step_are_those_of_the_density_on_a_grid(rng):
    """A weight shared by a logistic and a Gaussian likelihood, its noise held."""
    model, _ = gibbs_models.logistic_beside_a_line()
    step = PolyaGammaGibbs(["w"], model=model)
    logp, point = model.compile_logp(mode=ONCE), model.initial_point()
    grid = np.linspace(-4, 4, 801)
    log_p = np.array([float(logp({**point, "w": np.asarray(w)})) for w in grid])
    p = np.exp(log_p - log_p.max())
    expected = [(p * grid).sum() / p.sum(), (p * grid**2).sum() / p.sum()]
    found = []
    for _ in range(40):
        step.setup_chain(np.random.default_rng(rng.integers(2**32)), 0, 60)
        at, kept = dict(point), []
        for _ in range(60):
            at, _ = step.step(at)
            kept.append([float(at["w"]), float(at["w"]) ** 2])
        found.append(kept[10:])
    assert_means(np.array(found), expected)


def test_the_choice_is_explained():
    lines = bs.explain_steps(gibbs_models.logistic_by_group()[0], split="conjugate").splitlines()
    assert [line.split("  ")[-1] for line in lines if "PolyaGamma" in line] == [
        "Normal; the mean of a is linear in it",
        "Normal; the log odds of y are linear in it (by Pólya-Gamma variables)",
    ]
    lines = bs.explain_steps(gibbs_models.logistic_beside_a_line()[0], split="conjugate").splitlines()
    [line] = [line for line in lines if line[0] == "w"]
    assert line.endswith("the log odds of y are linear in it (by Pólya-Gamma variables); the mean of z too")
    reasons = bs.explain_steps(gibbs_models.looks_logistic()[0], split="conjugate")
    for said in (
        "not given by its log odds",
        "not linear in b",
        "Binomial",
        "in the log odds of random coefficient are no data",
    ):
        assert said in reasons, reasons


def test_why_counts_are_not_conjugate_is_said():
    reasons = bs.explain_steps(gibbs_models.looks_like_counts()[0], split="conjugate")
    for said in (
        "in the log odds of softplus, the mean is not linear in a",
        "stands in the dispersion of dispersed",
        "in the log odds of sum of means, the mean is not linear in c",
        "the log odds of probability are not those of its mean: it is not given by mu",
    ):
        assert said in reasons, reasons


@pytest.mark.slow
@pytest.mark.parametrize("make", [gibbs_models.logistic_by_group, gibbs_models.counts_by_group])
def test_the_posterior_of_a_hierarchy_is_that_of_nuts(make):
    model, _ = make()
    step = bs.steps(model, split="conjugate")
    ours = bs.sample(model, draws=4000, tune=300, chains=4, cores=1, random_seed=1, step=step, progressbar=False)
    with model:
        nuts = pm.sample(
            2000, tune=1000, chains=4, cores=1, random_seed=2, target_accept=0.95, progressbar=False, quiet=True
        )
    for name in ("mu", "a", "tau"):
        for power in (1, 2):
            values = [np.moveaxis(t.posterior[name].values, (0, 1), (0, 1)) ** power for t in (ours, nuts)]
            means = [v.reshape(v.shape[0], v.shape[1], -1) for v in values]
            batches = [m.reshape(m.shape[0] * 20, -1, m.shape[2]).mean(axis=1) for m in means]
            error = np.sqrt(sum(b.var(axis=0, ddof=1) / len(b) for b in batches))
            z = (batches[0].mean(axis=0) - batches[1].mean(axis=0)) / error
            assert np.abs(z).max() < 4.0, (name, power, z)


def test_what_is_not_conjugate_is_refused():
    x = np.linspace(-1, 1, 8)

    def refused(build, names, said):
        with pm.Model() as model:
            build()
        with pytest.raises(ValueError, match=said):
            PolyaGammaGibbs(names, model=model)

    def probit():
        w = pm.Normal("w")
        pm.Bernoulli("y", p=pm.math.invprobit(w * x), observed=x > 0)

    def squared():
        w = pm.Normal("w")
        pm.Bernoulli("y", logit_p=w**2 * x, observed=x > 0)

    def uniform():
        w = pm.Uniform("w", -3, 3)
        pm.Bernoulli("y", logit_p=w * x, observed=x > 0)

    def gaussian():
        w = pm.Normal("w")
        pm.Normal("y", w * x, observed=x)

    def scaled():
        w, s = pm.Normal("w"), pm.HalfNormal("s")
        pm.Bernoulli("y", logit_p=s * w * x, observed=x > 0)

    def alone():
        pm.Normal("w")

    def potential():
        w = pm.Normal("w")
        pm.Bernoulli("y", logit_p=w * x, observed=x > 0)
        pm.Potential("p", -(w**4))

    for build, said in (
        (probit, "log odds"),
        (squared, "affine|linear"),
        (uniform, "not Normal"),
        (gaussian, "not Bernoulli, and not negative binomial"),
        (scaled, "no data"),
        (alone, "nothing depends"),
        (potential, "potential"),
    ):
        refused(build, ["w"], said)


def test_log_odds_that_are_no_numbers_are_refused(rng):
    for bad in (np.nan, np.inf, [0.0, -np.inf]):
        for draw in (polya_gamma, lambda c, rng: polya_gamma_sum(2.0, c, rng)):
            with pytest.raises(ValueError, match="finite log odds"):
                draw(bad, rng)
    with pytest.raises(ValueError, match=r"b must be positive, got 0\.0"):
        polya_gamma_sum([1.0, 0.0], [0.0, 0.0], rng)
