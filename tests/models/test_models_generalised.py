"""Linear models of labels, classes, counts and heavy tails: densities against SciPy's, posteriors against quadrature.

Guards `bayessel.models._generalised`, `bayessel.models._observations`, `bayessel.models._priors`.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import expit, log_ndtr, softmax

import bayessel as bs
from bayessel.likelihoods import LIKELIHOODS
from bayessel.likelihoods.counts import PoissonCounts

ONCE = "FAST_COMPILE"


def data(rng, n=30, m=3):
    Phi = rng.normal(size=(n, m))
    return Phi, (rng.uniform(size=n) < expit(Phi @ np.array([1.5, -1.0, 0.0])[:m])).astype(float)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("alpha", [None, 0.7, [0.5, 2.0, 1.0]])
def test_the_density_is_the_sum_of_its_parts(rng, bias, alpha):
    Phi, y = data(rng)
    w, b, a = rng.normal(size=3), -0.4, 1.3
    model = bs.models.generalised(Phi, y, alpha=alpha, bias=bias, bias_scale=3.0, alpha_shape=1.5, alpha_rate=0.7)
    used = a if alpha is None else np.asarray(alpha)
    expected = stats.bernoulli(expit(Phi @ w + (b if bias else 0.0))).logpmf(y).sum()
    expected += stats.norm(0.0, np.asarray(used) ** -0.5).logpdf(w).sum()
    point = {"w": w}
    if bias:
        point["b"] = b
        expected += stats.norm(0.0, 3.0).logpdf(b)
    if alpha is None:
        point["alpha_log__"] = np.log(a)
        expected += stats.gamma(1.5, scale=1 / 0.7).logpdf(a) + np.log(a)
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-9)


def test_labels_of_either_sort_and_names(rng):
    Phi, y = data(rng)
    one = bs.models.generalised(Phi, y, alpha=1.0)
    other = bs.models.generalised(Phi, 2 * y - 1, alpha=1.0, names=["p", "q", "r"])
    assert (one["y_data"].get_value() == other["y_data"].get_value()).all()
    assert tuple(other.coords["basis"]) == ("p", "q", "r")


def test_the_default_prior_knows_no_units(rng):
    Phi, y = data(rng)
    w = rng.normal(size=3)
    values = []
    for scale in (1.0, 1e-3, 1e4):
        point = {"w": w / scale, "b": 0.1, "alpha_log__": np.log(0.8 * scale**2)}
        logp = bs.models.generalised(scale * Phi, y).compile_logp(mode=ONCE)(point)
        values.append(logp - 3 * np.log(scale))  # the density of w is per unit of w
    assert_allclose(values, values[0], rtol=1e-9)


@pytest.mark.parametrize("m", [1, 3, 40])
def test_the_default_prior_is_one_weight_of_the_size_that_gives_log_odds_of_two(rng, m):
    """However many functions there are: M weights of that size make up log odds of 2, root mean square over rows."""
    Phi = rng.normal(size=(500, m)) * rng.uniform(0.1, 10.0, size=m)
    y = (rng.random(500) < 0.5).astype(float)
    rate = 1.0 / pm.draw(bs.models.generalised(Phi, y)["alpha"].owner.inputs[-1])
    size = np.sqrt(2.0 * rate)
    log_odds = Phi @ (size * rng.choice([-1.0, 1.0], size=(m, 4000)))
    assert_allclose(np.sqrt(np.mean(log_odds**2)), 2.0, rtol=0.03)


@pytest.mark.filterwarnings("ignore:NO_INFORMATION:bayessel.errors.NumericalWarning")
def test_the_classifier_declares_its_functions(rng):
    X = rng.normal(size=(60, 2))
    y = np.where((X**2).sum(axis=1) < 1.2, "in", "out")
    fitted = bs.LOOMIClassifier(width=1.5).fit(X, y)
    model = fitted.to_pymc(bias=False)
    assert_allclose(model["Phi"].get_value(), fitted.dictionary_.design(X)[:, fitted.basis_], rtol=1e-12)
    assert model["y_data"].get_value().tolist() == (y == "out").astype(int).tolist()
    assert list(model.coords["basis"]) == [fitted.dictionary_.names[i] for i in fitted.basis_]
    assert {v.name for v in model.free_RVs} == {"w", "alpha"}
    with pytest.raises(ValueError, match="two classes"):
        bs.LOOMIClassifier().fit(X, np.arange(60) % 3).to_pymc()


def numbers(rng, kind, n=30):
    """A design, and targets of each kind."""
    Phi = rng.normal(size=(n, 3))
    f = Phi @ np.array([0.9, -0.6, 0.2])
    made = {
        "gaussian": lambda: 3.0 + f + 0.2 * rng.normal(size=n),
        "student": lambda: 3.0 + f + 0.2 * rng.standard_t(3.0, size=n),
        "logit": lambda: rng.uniform(size=n) < expit(f),
        "probit": lambda: rng.uniform(size=n) < stats.norm.cdf(f),
        "softmax": lambda: np.digitize(f, [-0.5, 0.5]),
    }
    return Phi, made.get(kind, lambda: rng.poisson(np.exp(f)))()


def log_likelihood(kind, y, f, p):
    """By SciPy."""
    if kind == "gaussian":
        return stats.norm(f, p["noise"]).logpdf(y)
    if kind == "student":
        return stats.t(p["nu"], f, p["noise"]).logpdf(y)
    if kind in ("logit", "probit"):
        probability = expit(f) if kind == "logit" else stats.norm.cdf(f)
        return stats.bernoulli(probability).logpmf(y)
    if kind == "softmax":
        return np.log(softmax(f, axis=1)[np.arange(len(y)), y])
    if kind == "poisson":
        return stats.poisson(np.exp(f)).logpmf(y)
    return stats.nbinom(p["r"], p["r"] / (p["r"] + np.exp(f))).logpmf(y)


def robust_spread(y):
    """Standard deviation of targets that are pulled in to three robust spreads of their median."""
    centre = np.median(y)
    reach = 3.0 * 1.4826 * np.median(np.abs(y - centre))
    return np.std(np.clip(y, centre - reach, centre + reach))


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("kind", [*LIKELIHOODS, "softmax"])
def test_every_likelihood_written_out(rng, kind, separate):
    Phi, y = numbers(rng, kind)
    hours = rng.uniform(0.5, 2.0, size=30) if kind in ("poisson", "negative-binomial") else None
    given = {"alpha_shape": 1.5, "alpha_rate": 0.7, "bias_scale": 3.0, "exposure": hours}
    model = bs.models.generalised(Phi, y, kind, "separate" if separate else None, **given)
    many = (3,) if kind == "softmax" else ()
    w, b, alpha = rng.normal(size=(3, *many)), rng.normal(size=many), rng.gamma(2.0, size=3 if separate else ())
    level = 0.0
    if hours is not None:
        level = np.log((y.sum() + 0.5) / hours.sum())
    elif not many and kind not in ("logit", "probit"):
        level = np.median(y)
    spread = (alpha[:, None] if separate and many else alpha) ** -0.5
    expected = stats.norm(0.0, spread).logpdf(w).sum() + stats.norm(level, 3.0).logpdf(b).sum()
    expected += (stats.gamma(1.5, scale=1 / 0.7).logpdf(alpha) + np.log(alpha)).sum()
    point, own = {"w": w, "b": b, "alpha_log__": np.log(alpha)}, {}
    for name, start, width in (("noise", -1.5, 1.5), ("nu", np.log(4), 1.0), ("r", np.log(5), 1.5)):
        if name in model.named_vars:
            start = start + np.log(robust_spread(y)) if name == "noise" else start
            z = start + 0.3 * width * rng.normal()
            expected += stats.norm(start, width).logpdf(z)
            point[{"nu": "nu_beyond_2_log__"}.get(name, f"{name}_log__")] = z
            own[name] = np.exp(z) + (2.0 if name == "nu" else 0.0)
    f = Phi @ w + b + (0.0 if hours is None else np.log(hours))
    terms = log_likelihood(kind, y, f, own)
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected + terms.sum(), rtol=1e-8)
    assert_allclose(
        model.compile_logp(model.observed_RVs, sum=False, mode=ONCE)(point)[0], terms, rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["gaussian", "student"])
def test_noise_that_varies_with_the_functions(rng, kind):
    Phi, y = numbers(rng, kind)
    model = bs.models.generalised(Phi, y, kind, 2.0, bias=False, varying_noise=True)
    w, v, c = rng.normal(size=3), 0.3 * rng.normal(size=3), -1.2
    size = 1.0 / np.sqrt((Phi**2).sum(axis=1).mean())  # of one function each: log noise varies by about one
    own = {"noise": np.exp(c + Phi @ v), "nu": 2.0 + np.exp(0.5)}
    expected = log_likelihood(kind, y, Phi @ w, own).sum() + stats.norm(0.0, 2.0**-0.5).logpdf(w).sum()
    expected += stats.norm(-1.5 + np.log(robust_spread(y)), 1.5).logpdf(c) + stats.norm(0.0, size).logpdf(v).sum()
    point = {"w": w, "w_noise": v, "log_noise": np.array(c)}
    if kind == "student":
        expected += stats.norm(np.log(4.0), 1.0).logpdf(0.5)
        point["nu_beyond_2_log__"] = np.array(0.5)
    assert_allclose(model.compile_logp(mode=ONCE)(point), expected, rtol=1e-8)


@pytest.mark.parametrize("mode", [ONCE, None])
def test_probit_far_from_the_boundary(mode):
    """Where one probability is rounded to nought its logarithm is not, nor is its slope."""
    Phi = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    model = bs.models.generalised(Phi, [1, 0, 1, 0], "probit", 1.0, bias=False)
    function = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
    for w in (0.3, 5.0, 30.0, 300.0):
        value, slope = function._pytensor_function(np.array([w]))
        expected = 2.0 * (log_ndtr(w) + log_ndtr(-w)) + stats.norm.logpdf(w)
        ratios = [np.exp(stats.norm.logpdf(w) - log_ndtr(z)) for z in (w, -w)]
        assert_allclose([value, slope[0]], [expected, 2.0 * (ratios[0] - ratios[1]) - w], rtol=1e-9)


def test_outliers_do_not_widen_the_priors(rng):
    Phi, y = numbers(rng, "student", 60)
    dirty = np.where(np.arange(60) < 3, 1e4, y)
    scales = [priors_of(bs.models.generalised(Phi, t, "student")) for t in (y, dirty)]
    assert_allclose(scales[1], scales[0], rtol=0.5)
    constant = bs.models.generalised(Phi, np.where(np.arange(60) < 40, 1.0, y), "student")  # no robust spread
    assert np.isfinite(priors_of(constant)).all()


def priors_of(model):
    """What stands in the priors of alpha, b and noise."""
    return [
        float(part.eval(mode=ONCE))
        for part in (
            model["alpha"].owner.inputs[-1],
            model["b"].owner.inputs[-1],
            pt.exp(model["noise"].owner.inputs[-2]),
        )
    ]


def test_separate_precisions_go_with_the_size_of_their_functions(rng):
    Phi, y = data(rng)
    Phi = np.column_stack([Phi * [1.0, 10.0, 0.1], np.zeros(30)])
    rates = 1.0 / bs.models.generalised(Phi, y, alpha="separate")["alpha"].owner.inputs[-1].eval(mode=ONCE)
    sizes = np.sqrt(2.0 * rates[:3])
    log_odds = Phi[:, :3] * sizes
    assert_allclose(np.sqrt((log_odds**2).mean(axis=0)), 2.0 / np.sqrt(4))
    t = y + 0.1 * rng.normal(size=30)
    numbers_too = bs.models.generalised(Phi, t, "student", "separate")["alpha"].owner.inputs[-1].eval(mode=ONCE)
    assert numbers_too.shape == (4,) and np.isfinite(numbers_too).all()


def test_classes_of_a_likelihood_do_as_well_as_names(rng):
    Phi, y = numbers(rng, "poisson")
    one = bs.models.generalised(Phi, y, PoissonCounts(), 1.0)
    other = bs.models.generalised(Phi, y, "poisson", 1.0)
    point = {"w": rng.normal(size=3), "b": np.array(0.2)}
    assert one.compile_logp(mode=ONCE)(point) == other.compile_logp(mode=ONCE)(point)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"y": np.arange(30.0)}, ValueError, "labels 0 and 1"),
        ({"y": np.ones(4)}, ValueError, "one value per row"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"alpha": "each"}, ValueError, "alpha must be one of"),
        ({"bias": "no"}, TypeError, "bias"),
        ({"bias_scale": 0.0}, ValueError, "bias_scale"),
        ({"names": ["a"]}, ValueError, "names"),
        ({"likelihood": "normal"}, ValueError, "likelihood must be one of 'gaussian'.*'softmax', got 'normal'"),
        ({"likelihood": 3}, TypeError, "likelihood must be a name"),
        ({"likelihood": "poisson", "y": -np.ones(30)}, ValueError, "counts 0, 1, 2, …"),
        ({"likelihood": "softmax", "y": np.full(30, 0.5)}, ValueError, "classes 0, 1, 2, …"),
        ({"exposure": 2.0}, ValueError, "exposure is of counts .*, and the likelihood is 'logit': leave it out"),
        ({"likelihood": "poisson", "exposure": np.zeros(30)}, ValueError, "exposure"),
        (
            {"varying_noise": True},
            ValueError,
            "varying_noise is of 'gaussian' and 'student', and the likelihood is 'logit'",
        ),
    ],
)
def test_bad_input_is_named(rng, change, error, said):
    Phi, y = data(rng)
    with pytest.raises(error, match=said):
        bs.models.generalised(**({"Phi": Phi, "y": y} | change))


def agree(one, other, names, batches=20):
    """Means and mean squares of two traces within four Monte Carlo errors of each other, from batches of each chain."""
    worst = 0.0
    for name in names:
        for power in (1, 2):
            means = []
            for trace in (one, other):
                values = trace.posterior[name].transpose("chain", "draw", ...).values ** power
                parts = np.array_split(values.reshape(*values.shape[:2], -1), batches, axis=1)
                means.append(np.concatenate([part.mean(axis=1) for part in parts]))
            error = np.sqrt(sum(m.var(axis=0, ddof=1) / len(m) for m in means))
            worst = max(worst, np.abs((means[0].mean(axis=0) - means[1].mean(axis=0)) / error).max())
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*LIKELIHOODS, "softmax", "varying"])
def test_the_posterior_is_that_of_nuts(rng, kind):
    """By `bs.sample`, whatever steps it finds; and by exact draws where there are some."""
    student = kind == "varying"
    Phi, y = numbers(rng, "student" if student else kind, 40)
    # priors that keep all moments: mean squares of heavy tails have no error that could be counted
    given = {"alpha_shape": 3.0, "alpha_rate": 2.0, "varying_noise": student}
    given |= {"bias_scale": 2.0}
    model = bs.models.generalised(Phi, y, "student" if student else kind, **given)
    names = ["w", "b", *(name for name in ("noise", "r") if name in model.named_vars)]
    nuts = pm.sample(
        2500,
        tune=1000,
        chains=4,
        cores=1,
        random_seed=2,
        target_accept=0.95,
        progressbar=False,
        quiet=True,
        model=model,
    )
    ours = {"found": bs.sample(model, 2500, tune=500, chains=4, cores=1, random_seed=1, quiet=True)}
    if kind in ("logit", "negative-binomial"):
        exact = bs.steps(model, split="conjugate")
        assert exact[0].name == "polya_gamma_gibbs"
        ours["exact"] = bs.sample(model, 8000, tune=500, chains=4, cores=1, random_seed=1, step=exact, quiet=True)
    for how, trace in ours.items():
        assert agree(trace, nuts, names) < 4.3, how  # of some 30 numbers


@pytest.mark.slow
def test_the_posterior_is_that_of_quadrature(rng):
    Phi, y = data(rng, 40, 1)
    w = np.linspace(-6, 10, 4001)
    log_density = stats.norm(0, 1).logpdf(w) + stats.bernoulli(expit(Phi * w)).logpmf(y[:, None]).sum(axis=0)
    density = np.exp(log_density - log_density.max())
    density /= np.trapezoid(density, w)
    mean = np.trapezoid(w * density, w)
    sd = np.sqrt(np.trapezoid((w - mean) ** 2 * density, w))
    model = bs.models.generalised(Phi, y, alpha=1.0, bias=False)
    trace = pm.sample(2000, tune=500, chains=2, cores=1, random_seed=1, model=model, progressbar=False)
    draws = trace["posterior"]["w"].values.ravel()
    assert abs(draws.mean() - mean) < 4 * sd / np.sqrt(1000)
    assert draws.std() == pytest.approx(sd, rel=0.1)
