"""A zoo of small PyMC models: ours, and what users write; each with the assignment of steps that is right for it."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions import transforms
from pymc.exceptions import ImputationWarning

import bayessel as bs

G, W, P, H = "GammaPrecisionGibbs", "GaussianWeightsGibbs", "PolyaGammaGibbs", "PersistentHMC"


def numbers():
    """The same data in every run, so that compiled densities can be kept."""
    return np.random.default_rng(20)


def regression(n=12, m=3):
    rng = numbers()
    X = rng.normal(size=(n, m))
    return X, X @ rng.normal(size=m) + 0.5 * rng.normal(size=n)


GROUP = np.array([0, 1, 2, 2, 1, 0, 0, 3, 3, 1, 2, 0])


def linear():
    X, y = regression()
    model = bs.models.linear(X, y, bias=True, alpha_shape=2.0, alpha_rate=1.0, beta_shape=2.0, beta_rate=0.5)
    return model, {"alpha": G, "beta": G, "w": f"{W}[b, w]", "b": f"{W}[b, w]"}


def linear_with_fixed_precisions():
    X, y = regression()
    return bs.models.linear(X, y, [1.0, 2.0, 3.0], 4.0), {"w": W}


def rvm():
    X, y = regression()
    model = bs.models.rvm(X, y, alpha_shape=2.0, alpha_rate=1.0, beta_shape=2.0, beta_rate=0.5)
    return model, {"alpha": G, "beta": G, "w": W}


def regularised_horseshoe():
    # 1/λ̃² adds two precisions, and β stands in both scales: none of them sets a scale alone
    X, y = regression()
    return bs.models.rvm(X, y, prior="horseshoe"), {"beta": H, "tau": H, "lam": H, "c2": H, "w": W}


def collapsed():
    X, y = regression()
    return bs.models.linear(X, y, collapsed=True), {"alpha": H, "beta": H}


def random_intercepts():
    X, y = regression(m=2)
    with pm.Model(coords={"group": range(4)}) as model:
        mu = pm.Normal("mu", 1.0, 3.0)
        between = pm.HalfCauchy("between", 2.0)
        a = pm.Normal("a", mu, between, dims="group")
        slope = pm.Normal("slope", 0.0, 2.0, shape=2)
        noise = pm.InverseGamma("noise", 2.0, 0.7)
        mean = pm.Deterministic("mean", a[GROUP] + pm.math.dot(X, slope))
        pm.Normal("y", mean, pm.math.sqrt(noise), observed=y)
    block = f"{W}[mu, a, slope]"
    return model, {"mu": block, "a": block, "slope": block, "between": G, "noise": G}


def precision_by_group():
    _, y = regression()
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2.0, [0.5, 1.0, 1.5, 2.0], shape=4)
        level = pm.Normal("level", 0.5, 2.0)
        group = pm.Data("group", GROUP)
        pm.Normal("y", level, tau=alpha[group], observed=pm.Data("y_data", y))
    return model, {"alpha": G, "level": W}


def horseshoe():
    X, y = regression()
    with pm.Model() as model:
        tau = pm.HalfCauchy("tau", 0.5)
        lam = pm.HalfCauchy("lam", 1.0, shape=3)
        w = pm.Normal("w", 0.0, tau * lam, shape=3)
        sigma = pm.HalfStudentT("sigma", 3.0, 2.0)
        pm.Normal("y", X @ w, sigma, observed=y)
    return model, {"tau": G, "lam": G, "w": W, "sigma": G}


def eight_schools():
    effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        theta = pm.Normal("theta", mu, tau, shape=8)
        pm.Normal("y", theta, error, observed=effect)
    return model, {"mu": f"{W}[mu, theta]", "theta": f"{W}[mu, theta]", "tau": G}


def non_centred_schools():
    # y depends on z and tau through their product: linear in z, and tau is no scale of a Normal variable
    model, _ = eight_schools()
    y = model["y"]
    data = model.rvs_to_values[y].data
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 5.0)
        tau = pm.HalfCauchy("tau", 5.0)
        z = pm.Normal("z", 0.0, 1.0, shape=8)
        pm.Normal("y", mu + tau * z, 12.0, observed=data)
    return model, {"mu": f"{W}[mu, z]", "z": f"{W}[mu, z]", "tau": H}


def logistic():
    X, y = regression()
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 1.0, shape=3)
        pm.Bernoulli("y", logit_p=X @ w, observed=(y > 0).astype(int))
    return model, {"w": P}


def logistic_with_a_scale():
    X, y = regression()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        w = pm.Normal("w", 0.0, tau=tau, shape=3)
        pm.Bernoulli("y", logit_p=X @ w, observed=(y > 0).astype(int))
    return model, {"tau": G, "w": P}


def logistic_by_group():
    X, y = regression()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        mu = pm.Normal("mu", 0.0, 2.0)
        a = pm.Normal("a", mu, tau=tau, shape=4)
        pm.Bernoulli("y", logit_p=a[GROUP] + 0.5 * X[:, 0], observed=(y > 0).astype(int))
    return model, {"tau": G, "mu": f"{P}[mu, a]", "a": f"{P}[mu, a]"}


def logistic_beside_a_line():
    X, y = regression()
    with pm.Model() as model:
        w = pm.Normal("w", 0.2, 1.5)
        beta = pm.Gamma("beta", 2.0, 1.0)
        pm.Normal("z", 1.0 + w * X[:, 1], tau=beta, observed=y)
        pm.Bernoulli("y", p=pm.math.sigmoid(0.3 - w * X[:, 0]), observed=(y > 0).astype(int))
    return model, {"w": P, "beta": G}


def counts(y):
    return np.round(np.exp(y - y.mean())).astype(int)


def counts_of_known_dispersion():
    X, y = regression()
    with pm.Model() as model:
        w = pm.Normal("w", 0.2, 1.5, shape=3)
        pm.NegativeBinomial("y", mu=pm.math.exp(X @ w + 0.5), alpha=2.5, observed=counts(y))
    return model, {"w": P}


def counts_by_group():
    X, y = regression()
    hours = pt.as_tensor(np.linspace(0.5, 2.0, 12))
    with pm.Model() as model:
        tau, r = pm.Gamma("tau", 2.0, 1.0), pm.LogNormal("r", 1.0, 1.0)
        mu = pm.Normal("mu", 0.0, 2.0)
        a = pm.Normal("a", mu, tau=tau, shape=4)
        mean = hours * pm.math.exp(a[GROUP] + 0.5 * X[:, 0]) / 2.0
        pm.NegativeBinomial("y", mu=mean, alpha=r, observed=counts(y))
    return model, {"tau": G, "r": H, "mu": f"{P}[mu, a]", "a": f"{P}[mu, a]"}


def generalised_counts():
    X, y = regression()
    model = bs.models.generalised(X, counts(y), "negative-binomial", alpha_shape=2.0, alpha_rate=1.0, exposure=0.5)
    return model, {"alpha": G, "r": H, "b": f"{P}[w, b]", "w": f"{P}[w, b]"}


def looks_like_counts():
    X, y = regression()
    x = X[:, 0]
    with pm.Model() as model:
        a, b, c, d = (pm.Normal(name) for name in "abcd")
        pm.NegativeBinomial("softplus", mu=pm.math.log1pexp(a * x), alpha=2.0, observed=counts(y))
        pm.NegativeBinomial("dispersed", mu=pm.math.exp(b * x), alpha=pm.math.exp(b), observed=counts(y))
        pm.NegativeBinomial("sum of means", mu=1.0 + pm.math.exp(c * x), alpha=2.0, observed=counts(y))
        pm.NegativeBinomial("probability", p=0.9 * pm.math.sigmoid(d * x), n=2.0, observed=counts(y))
    return model, dict.fromkeys("abcd", H)


def looks_logistic():
    X, y = regression()
    x, label = X[:, 0], (y > 0).astype(int)
    with pm.Model() as model:
        a, b, c, d, e = (pm.Normal(name) for name in "abcde")
        s = pm.Exponential("s", 1.0)
        pm.Bernoulli("probit", p=pm.math.invprobit(a * x), observed=label)
        pm.Bernoulli("squared", logit_p=b**2 * x, observed=label)
        pm.Bernoulli("at most nine tenths", p=0.9 * pm.math.sigmoid(c * x), observed=label)
        pm.Binomial("counts", n=3, logit_p=d * x, observed=2 * label)
        pm.Bernoulli("random coefficient", logit_p=s * e * x, observed=label)
    return model, dict.fromkeys([*"abcde", "s"], H)


def nonlinear_mean():
    X, y = regression()
    with pm.Model() as model:
        rate = pm.Normal("rate", 0.0, 1.0)
        height = pm.Normal("height", 0.0, 2.0)
        beta = pm.Exponential("beta", 0.5)
        pm.Normal("y", height * pm.math.exp(rate * X[:, 0]), tau=beta, observed=y)
    return model, {"rate": H, "height": W, "beta": G}


def squared_weight():
    X, y = regression()
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 1.0)
        pm.Normal("y", w * w * X[:, 0] + w, 1.0, observed=y)
    return model, {"w": H}


def prior_means():
    X, y = regression()
    with pm.Model() as model:
        centre = pm.Normal("centre", 3.0, 10.0)
        alpha = pm.ChiSquared("alpha", 3.0)
        w = pm.Normal("w", centre, tau=alpha, shape=2)
        v = pm.Normal("v", 2.5, 0.3)
        pm.Normal("y", X[:, :2] @ w - v * X[:, 2] + 1.5, 0.8, observed=y)
    block = f"{W}[centre, w, v]"
    return model, {"centre": block, "w": block, "v": block, "alpha": G}


def skewed_prior_mean():
    X, y = regression()
    with pm.Model() as model:
        centre = pm.Gumbel("centre", 1.0, 1.0)
        w = pm.Normal("w", centre, 0.5, shape=3)
        pm.Normal("y", X @ w, 0.8, observed=y)
    return model, {"centre": H, "w": W}


def potential():
    X, y = regression()
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2.0, 1.0)
        beta = pm.Gamma("beta", 2.0, 1.0)
        w = pm.Normal("w", 0.0, tau=alpha, shape=3)
        v = pm.Normal("v", 0.0, 1.0)
        pm.Potential("more", -0.3 * alpha**2 - v**4)
        pm.Normal("y", X @ w + v, tau=beta, observed=y)
    return model, {"alpha": H, "beta": G, "w": W, "v": H}


def second_likelihood():
    X, y = regression()
    with pm.Model() as model:
        both = pm.Gamma("both", 2.0, 1.0)
        count = pm.Gamma("count", 2.0, 1.0)
        w = pm.Normal("w", 0.0, tau=2.0 * both, shape=3)
        pm.Normal("y", X @ w, tau=both, observed=y)
        u = pm.Normal("u", 0.0, tau=count)
        pm.Normal("z", u, 1.0, observed=0.7)
        pm.Poisson("k", count, observed=[1, 4, 2])
    return model, {"both": G, "count": H, "w": W, "u": W}


def two_noises():
    # one precision with both factors of a product, and another in half of the rows
    _, y = regression()
    with pm.Model() as model:
        s = pm.InverseGamma("s", 3.0, 2.0)
        r = pm.Gamma("r", 2.0, 2.0, shape=3)
        x = pm.Normal("x", 0.0, pm.math.sqrt(s) / pm.math.sqrt(r), shape=3)
        pm.Normal("y", x[np.arange(12) % 3], pm.math.sqrt(4.0 * s), observed=y)
    return model, {"s": G, "r": G, "x": W}


def matrix_of_weights():
    rng = numbers()
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    with pm.Model() as model:
        rows = pm.Gamma("rows", 2.0, 1.0, shape=3)
        noise = pm.Gamma("noise", 2.0, 1.0, shape=2)
        C = pm.Normal("C", 0.0, tau=rows[:, None], shape=(3, 2))
        pm.Normal("Y", X @ C, 1.0 / pm.math.sqrt(noise), observed=Y)
    return model, {"rows": G, "noise": G, "C": W}


def products_of_normals():
    # linear in each, not in both
    _, y = regression()
    with pm.Model() as model:
        u = pm.Normal("u", 0.0, 1.0, shape=4)
        v = pm.Normal("v", 1.0, 1.0)
        pm.Normal("y", u[GROUP] * v, 0.7, observed=y)
    return model, {"u": W, "v": W}


def sums_joins_and_slices():
    X, y = regression()
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0, shape=4)
        b = pm.Normal("b", 0.0, 2.0)
        c = pm.Normal("c", 0.0, 1.0, shape=(2, 2))
        w = pt.concatenate([a[1:3], pt.stack([b]), c.sum(axis=0), c.reshape((4,))[3:]])
        trend = pt.cumsum(pt.set_subtensor(pt.zeros(12)[2:6], a))
        mean = pt.dot(np.tile(X, 2), w) / 2.0 + trend - a.mean() + pt.switch(GROUP > 1, b, c[0, 1])
        pm.Normal("y", mean, pt.linspace(0.5, 1.5, 12), observed=y)
    block = f"{W}[a, b, c]"
    return model, {"a": block, "b": block, "c": block}


def missing_data():
    X, y = regression()
    y = np.where(np.arange(12) % 5 == 2, np.nan, y)
    with pm.Model() as model:
        beta = pm.Gamma("beta", 2.0, 1.0)
        w = pm.Normal("w", 0.0, 1.0, shape=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImputationWarning)
            pm.Normal("y", X @ w, tau=beta, observed=np.ma.masked_invalid(y))
    return model, {"beta": G, "w": f"{W}[w, y_unobserved]", "y_unobserved": f"{W}[w, y_unobserved]"}


def sum_of_variances():
    _, y = regression()
    with pm.Model() as model:
        s = pm.InverseGamma("s", 3.0, 2.0)
        r = pm.InverseGamma("r", 3.0, 2.0)
        pm.Normal("y", 0.0, pm.math.sqrt(s + r), observed=y)
    return model, {"s": H, "r": H}


def log_concave_scales():
    _, y = regression()
    with pm.Model() as model:
        sd = pm.Gamma("sd", 2.0, 1.0)
        variance = pm.LogNormal("variance", 0.3, 0.7)
        precision = pm.InverseGamma("precision", 3.0, 2.0)
        half = pm.HalfNormal("half", 1.5, shape=4)
        steep = pm.Exponential("steep", 2.0)
        broad = pm.HalfCauchy("broad", 0.5)
        wide = pm.Weibull("wide", 1.5, 2.0)
        pm.Normal("y", 0.0, sd, observed=y)
        pm.Normal("y2", 0.0, pm.math.sqrt(variance), observed=y)
        pm.Normal("y3", 0.0, tau=precision, observed=y)
        pm.Normal("y4", 0.3, half[GROUP], observed=y)
        pm.Normal("y5", 0.0, 2.0 * steep, observed=y)
        pm.Normal("y6", 0.0, tau=broad, observed=y)
        pm.Normal("y7", 0.0, wide, observed=y)
    return model, dict.fromkeys(("sd", "variance", "precision", "half", "steep", "broad", "wide"), G)


def three_layers():
    # weights, a precision for those of each input, and a mean of these: relevance as in networks
    rng = numbers()
    X, Y = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    with pm.Model() as model:
        mean = pm.Gamma("mean", 0.25, 0.1)
        tau = pm.Gamma("tau", 0.5, 0.5 / mean, shape=3)
        w = pm.Normal("w", 0.0, tau=tau[:, None], shape=(3, 2))
        pm.Normal("Y", X @ w, 0.7, observed=Y)
    return model, {"mean": G, "tau": G, "w": W}


def rates_and_scales():
    _, y = regression()
    y = np.abs(y)
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0)
        pm.Exponential("gaps", 3.0 * rate, observed=y)
        scale = pm.InverseGamma("scale", 3.0, 2.0)
        pm.Gamma("sizes", np.linspace(0.5, 3.0, 12), 1.0 / scale, observed=y)
        both = pm.Exponential("both", 0.5)
        variance = pm.InverseGamma("variance", 2.5, both, shape=4)
        pm.Normal("y", 0.0, pm.math.sqrt(variance)[GROUP], observed=y)
        pm.Normal("more", 0.0, tau=2.0 * both, observed=y[:3])
        by_group = pm.LogNormal("by_group", 0.2, 0.7, shape=4)
        pm.Gamma("waits", 1.5, by_group[GROUP], observed=y)
        broad = pm.HalfCauchy("broad", 0.5)
        pm.Gamma("counts", 2.0, 1.0 / broad**2, observed=y)
        last = pm.HalfNormal("last", 2.0)
        pm.InverseGamma("spreads", 3.0, pm.math.sqrt(last), observed=y)
    return model, dict.fromkeys(("rate", "scale", "both", "variance", "by_group", "broad", "last"), G)


def random_shape():
    _, y = regression()
    with pm.Model() as model:
        shape = pm.Gamma("shape", 2.0, 1.0)
        rate = pm.Gamma("rate", 2.0, 1.0)
        pm.Gamma("y", shape, rate, observed=np.abs(y))
    return model, {"shape": H, "rate": H}


def no_conjugate_prior():
    _, y = regression()
    with pm.Model() as model:
        flat = pm.Uniform("flat", 0.0, 5.0)
        heavy = pm.Pareto("heavy", 2.0, 0.3)
        pm.Normal("y", 0.0, flat, observed=y)
        pm.Normal("y2", 0.0, heavy, observed=y)
    return model, {"flat": H, "heavy": H}


def two_elements_each():
    # each row depends on two elements: seen only when the places are computed
    _, y = regression()
    with pm.Model() as model:
        s = pm.Gamma("s", 2.0, 1.0, shape=4)
        pm.Normal("y", 0.0, tau=pm.math.sqrt(s[GROUP] * s[GROUP[::-1].copy()]), observed=y)
    return model, {"s": H}


def scale_in_the_mean():
    _, y = regression()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Normal("y", tau, tau=tau, observed=y)
    return model, {"tau": H}


def other_likelihoods():
    _, y = regression()
    with pm.Model() as model:
        s = pm.HalfCauchy("s", 1.0)
        m = pm.Normal("m", 0.0, 1.0)
        pm.StudentT("y", nu=4.0, mu=m, sigma=s, observed=y)
        pm.Censored("c", pm.Normal.dist(m, s), lower=-1.0, upper=1.0, observed=np.clip(y, -1.0, 1.0))
    return model, {"s": H, "m": H}


def positive_normals():
    # a Normal kept positive by its transform, and a Gamma kept below a bound
    _, y = regression()
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1.0, transform=transforms.log)
        tau = pm.Gamma("tau", 2.0, 1.0, transform=transforms.Interval(0.0, 5.0))
        pm.Normal("y", m, tau=tau, observed=y)
    return model, {"m": H, "tau": H}


def kept_normals():
    # orderly or summing to zero: their transforms do not reach every value
    _, y = regression()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        up = pm.Normal("up", 0.0, 1.0, shape=3, transform=transforms.ordered, initval=[-1.0, 0.0, 1.0])
        zero = pm.Normal("zero", 0.0, 1.0, shape=3, transform=transforms.ZeroSumTransform([-1]))
        soft = pm.Normal("soft", 0.0, tau=tau, transform=transforms.log_exp_m1, initval=1.0)
        pm.Normal("y", (up + zero)[GROUP % 3] + soft, 1.0, observed=y)
    return model, {"tau": G, "up": H, "zero": H, "soft": H}


def part_of_the_rows():
    # the likelihood of a sample stands for that of all rows
    _, y = regression()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        m = pm.Normal("m", 0.0, 1.0)
        pm.Normal("y", m, tau=tau, observed=y, total_size=120)
    return model, {"tau": H, "m": H}


def filled():
    _, y = regression()
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 1.0)
        w = pm.Normal("w", 0.0, 1.0, shape=12)
        m = pm.Normal("m", 0.0, 1.0)
        pm.Normal("y", w + pt.full_like(w, m) - pt.ones_like(w), tau=pt.full_like(w, tau), observed=y)
    return model, {"tau": G, "w": f"{W}[w, m]", "m": f"{W}[w, m]"}


class Below(pm.logprob.transforms.Transform):
    """(−∞, sd): a support that depends on a parameter."""

    name = "below"

    def backward(self, value, rng, size, mean, sd):
        return sd - pt.exp(value)

    def forward(self, value, rng, size, mean, sd):
        return pt.log(sd - value)

    def log_jac_det(self, value, *inputs):
        return value


def support_moved_by_the_scale():
    _, y = regression()
    with pm.Model() as model:
        s = pm.HalfCauchy("s", 1.0)
        m = pm.Normal("m", 0.0, s, transform=Below())
        pm.Normal("y", m, 1.0, observed=y)
    return model, {"s": H, "m": H}


def mixture_of_levels():
    _, y = regression()
    with pm.Model() as model:
        level = pm.Normal("level", [-1.0, 1.0], 1.0, shape=2)
        which = pm.Bernoulli("which", 0.5, shape=12)
        beta = pm.Gamma("beta", 2.0, 1.0)
        pm.Normal("y", level[which], tau=beta, observed=y)
    return model, {"level": W, "which": "BinaryGibbsMetropolis", "beta": G}


ALL = [
    linear,
    linear_with_fixed_precisions,
    rvm,
    regularised_horseshoe,
    collapsed,
    random_intercepts,
    precision_by_group,
    horseshoe,
    eight_schools,
    non_centred_schools,
    logistic,
    logistic_with_a_scale,
    logistic_by_group,
    logistic_beside_a_line,
    looks_logistic,
    counts_of_known_dispersion,
    counts_by_group,
    generalised_counts,
    looks_like_counts,
    nonlinear_mean,
    squared_weight,
    prior_means,
    skewed_prior_mean,
    potential,
    second_likelihood,
    two_noises,
    matrix_of_weights,
    products_of_normals,
    sums_joins_and_slices,
    missing_data,
    sum_of_variances,
    log_concave_scales,
    three_layers,
    rates_and_scales,
    random_shape,
    no_conjugate_prior,
    two_elements_each,
    scale_in_the_mean,
    other_likelihoods,
    positive_normals,
    support_moved_by_the_scale,
    kept_normals,
    part_of_the_rows,
    filled,
    mixture_of_levels,
]
