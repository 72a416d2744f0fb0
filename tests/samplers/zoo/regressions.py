"""Regressions, and distributions of one or two parameters."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats
from scipy.special import expit, gammaln, i0e, softmax

from tests.samplers.zoo.case import Case, G, H, P, W, between, gaussian, line, on_grid, positive, stacked

X = np.array([-1.2, -0.4, 0.1, 0.6, 1.3, 1.9])
Y = np.array([-0.8, 0.1, 0.3, 1.4, 1.1, 2.6])
COUNTS = np.array([0, 1, 0, 3, 2, 7])
norm = stats.norm.logpdf


def robust():
    """Student-t noise: no exact draw, for its scale enters like that of a Normal and is none."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.StudentT("y", nu=3.0, mu=slope * X, sigma=sigma, observed=Y)

    def density(slope, sigma):
        log_p = norm(slope, 0.0, 2.0) + stats.halfnorm.logpdf(sigma)
        return log_p + sum(stats.t.logpdf(y, 3.0, slope * x, sigma) for x, y in zip(X, Y, strict=True))

    return Case(
        model, {"slope": H, "sigma": H}, on_grid(density, {"slope": line(-3.0, 5.0, 161), "sigma": positive(0.03, 6.0)})
    )


def robust_by_weights():
    """The same noise by a precision of each row: all of it has exact draws."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 2.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        weight = pm.Gamma("weight", 1.5, 1.5, shape=len(X))
        pm.Normal("y", slope * X, sigma / pt.sqrt(weight), observed=Y)
    return Case(model, {"slope": W, "sigma": G, "weight": G}, robust().truth, draws=3000)


def negative_binomial():
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0)
        b = pm.Normal("b", 0.0, 1.0)
        size = pm.Exponential("size", 0.5)
        pm.NegativeBinomial("y", mu=pt.exp(a + b * X), alpha=size, observed=COUNTS)

    def density(a, b, size):
        log_p = norm(a) + norm(b) - 0.5 * size
        for x, k in zip(X, COUNTS, strict=True):
            mu = np.exp(a + b * x)
            log_p = log_p + stats.nbinom.logpmf(k, size, size / (size + mu))
        return log_p

    axes = {"a": line(-4.0, 4.0, 61), "b": line(-3.0, 4.0, 61), "size": positive(1e-3, 60.0, 81)}
    return Case(model, {"a": P, "b": P, "size": H}, on_grid(density, axes))


def beta_binomial():
    k, n = np.array([2, 5, 9, 4]), 12
    with pm.Model() as model:
        mean = pm.Uniform("mean", 0.0, 1.0)
        size = pm.Gamma("size", 2.0, 0.2)
        pm.BetaBinomial("y", mean * size, (1.0 - mean) * size, n, observed=k)

    def density(mean, size):
        log_p = stats.gamma.logpdf(size, 2.0, scale=5.0)
        return log_p + sum(stats.betabinom.logpmf(v, n, mean * size, (1.0 - mean) * size) for v in k)

    return Case(
        model, {"mean": H, "size": H}, on_grid(density, {"mean": between(n=121), "size": positive(0.05, 120.0)})
    )


def gamma_regression():
    """A Gamma variable of random shape: no exact draw of its rate."""
    y = np.exp(0.5 * Y) + 0.1
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 1.0)
        b = pm.Normal("b", 0.0, 1.0)
        shape = pm.Gamma("shape", 2.0, 0.5)
        pm.Gamma("y", shape, shape / pt.exp(a + b * X), observed=y)

    def density(a, b, shape):
        log_p = norm(a) + norm(b) + stats.gamma.logpdf(shape, 2.0, scale=2.0)
        return log_p + sum(
            stats.gamma.logpdf(v, shape, scale=np.exp(a + b * x) / shape) for x, v in zip(X, y, strict=True)
        )

    axes = {"a": line(-3.0, 3.5, 81), "b": line(-2.5, 3.0, 81), "shape": positive(0.05, 60.0, 61)}
    return Case(model, {"a": H, "b": H, "shape": H}, on_grid(density, axes))


def gamma_rates():
    """Waiting times with a rate: a Gamma prior and Exponential data, one rate per group."""
    y, group = np.array([0.3, 1.1, 0.2, 2.4, 0.9]), np.array([0, 0, 1, 1, 1])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0, shape=2)
        pm.Exponential("y", rate[group], observed=y)

    def density(*rate):
        log_p = sum(stats.gamma.logpdf(r, 2.0) for r in rate)
        return log_p + sum(np.log(rate[g]) - rate[g] * v for g, v in zip(group, y, strict=True))

    axes = {"rate[0]": positive(0.02, 15.0), "rate[1]": positive(0.02, 15.0)}
    return Case(model, {"rate": G}, on_grid(density, axes))


def von_mises():
    y = np.array([0.4, -0.3, 1.2, 0.9, -0.6])
    with pm.Model() as model:
        mu = pm.VonMises("mu", 0.0, 0.5)
        kappa = pm.Gamma("kappa", 2.0, 1.0)
        pm.VonMises("y", mu, kappa, observed=y)

    def density(mu, kappa):
        log_p = 0.5 * np.cos(mu) + stats.gamma.logpdf(kappa, 2.0)
        return log_p + sum(kappa * np.cos(v - mu) - np.log(i0e(kappa)) - kappa for v in y)

    # on the circle every point counts the same: the middles of equal cells; PyMC samples an angle's log odds of ±π
    axes = {"mu": between(-np.pi, np.pi, 401), "kappa": positive(1e-3, 30.0, 121)}
    return Case(model, {"mu": H, "kappa": H}, on_grid(density, axes))


def bounded():
    """Bounded parameters of three kinds in one mean."""
    y = np.array([1.9, 2.6, 2.2])
    with pm.Model() as model:
        u = pm.Uniform("u", -1.0, 2.0)
        b = pm.Beta("b", 2.0, 0.7)
        t = pm.Triangular("t", 0.0, 3.0, 1.0)
        pm.Normal("y", u + b * t, 0.8, observed=y)

    def density(u, b, t):
        log_p = stats.beta.logpdf(b, 2.0, 0.7) + stats.triang.logpdf(t, 1.0 / 3.0, 0.0, 3.0)
        return log_p + sum(norm(v, u + b * t, 0.8) for v in y)

    axes = {"u": between(-1.0, 2.0, 81, 16.0), "b": between(n=121, reach=20.0), "t": between(0.0, 3.0, 161, 10.0)}
    return Case(model, {"u": H, "b": H, "t": H}, on_grid(density, axes))


def moving_bounds():
    """The bound of one variable is another; a scale and a mean live beside it."""
    y = np.array([0.4, 1.2, 0.9])
    with pm.Model() as model:
        top = pm.Gamma("top", 3.0, 1.0)
        m = pm.Uniform("m", 0.0, top)
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Normal("y", m, tau=tau, observed=y)

    # the share of the bound in place of the variable: no bound cuts through the grid
    def at_share(top, share, tau):
        m = share * top
        log_p = stats.gamma.logpdf(top, 3.0) + stats.gamma.logpdf(tau, 2.0)
        return log_p + sum(norm(v, m, tau**-0.5) for v in y)

    def further(top, share, tau):
        return {"m": (top * share, 0.0)}

    axes = {"top": positive(0.02, 30.0, 81), "_share": between(n=81), "tau": positive(0.01, 30.0, 61)}
    return Case(model, {"top": H, "m": H, "tau": G}, on_grid(at_share, axes, further))


def ordered_logistic():
    grades = np.array([0, 0, 1, 1, 2, 2])
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 1.0)
        cut = pm.Normal(
            "cut", [-1.0, 1.0], 1.0, transform=pm.distributions.transforms.ordered, shape=2, initval=[-1.0, 1.0]
        )
        pm.OrderedLogistic("y", eta=slope * X, cutpoints=cut, observed=grades)

    # the second cut by its distance from the first
    def density(slope, a, gap):
        b = a + gap
        log_p = norm(slope) + norm(a, -1.0) + norm(b, 1.0)
        for x, k in zip(X, grades, strict=True):
            low, high = expit(a - slope * x), expit(b - slope * x)
            log_p = log_p + np.log([low, high - low, 1.0 - high][k])
        return log_p

    def further(slope, a, gap):
        return {"cut[1]": (a + gap, 0.0)}

    axes = {"slope": line(-3.0, 6.0, 61), "cut[0]": line(-6.0, 4.0, 61), "_gap": positive(1e-5, 12.0, 101)}
    return Case(model, {"slope": H, "cut": H}, on_grid(density, axes, further))


def separation():
    """A logistic regression whose classes a line divides: the prior alone keeps the weights finite."""
    t = np.array([0, 0, 0, 1, 1, 1])
    with pm.Model() as model:
        a = pm.Normal("a", 0.0, 2.0)
        b = pm.Normal("b", 0.0, 3.0)
        pm.Bernoulli("y", logit_p=a + b * X, observed=t)

    def density(a, b):
        log_p = norm(a, 0.0, 2.0) + norm(b, 0.0, 3.0)
        return log_p + sum(-np.logaddexp(0.0, (1 - 2 * k) * (a + b * x)) for x, k in zip(X, t, strict=True))

    axes = {"a": line(-12.0, 12.0, 121), "b": line(-12.0, 20.0, 121)}
    return Case(model, {"a": P, "b": P}, on_grid(density, axes), draws=3000)


def categories():
    """Dirichlet and multinomial, and a softmax beside it."""
    counts, picks = np.array([3, 5, 1]), np.array([0, 2, 2, 1])
    with pm.Model() as model:
        p = pm.Dirichlet("p", [1.0, 2.0, 0.8])
        pm.Multinomial("counts", 9, p, observed=counts)
        tilt = pm.Normal("tilt", 0.0, 1.0)
        pm.Categorical("pick", p=pm.math.softmax(pt.log(p) + tilt * np.array([0.0, 0.0, 1.0])), observed=picks)

    # the simplex by two sticks
    def density(first, second, tilt):
        w = np.stack([first, (1.0 - first) * second, (1.0 - first) * (1.0 - second)])
        log_p = np.log(1.0 - first) + norm(tilt)
        log_p = log_p + sum((a - 1.0 + k) * np.log(v) for a, k, v in zip((1.0, 2.0, 0.8), counts, w, strict=True))
        odds = np.log(softmax(np.log(w) + tilt * np.array([0.0, 0.0, 1.0])[:, None], axis=0))
        return log_p + sum(odds[k] for k in picks)

    def further(first, second, tilt):
        return {"p[0]": (first, 0.0), "p[1]": ((1.0 - first) * second, 0.0)}

    axes = {"_first": between(n=71), "_second": between(n=71), "tilt": line(-5.0, 6.0, 61)}
    return Case(model, {"p": H, "tilt": H}, on_grid(density, axes, further))


def several_outcomes():
    """One parameter behind Normal, Poisson and logarithmic-normal data."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1.0)
        s = pm.HalfNormal("s", 1.0)
        pm.Normal("a", m, s, observed=Y[:3])
        pm.Poisson("b", pt.exp(m), observed=COUNTS[3:5])
        pm.LogNormal("c", m, s, observed=np.exp(Y[3:]))

    def density(m, s):
        log_p = norm(m) + stats.halfnorm.logpdf(s) + sum(stats.poisson.logpmf(k, np.exp(m)) for k in COUNTS[3:5])
        return log_p + sum(norm(v, m, s) for v in Y)

    axes = {"m": line(-4.0, 4.0, 121), "s": positive(0.05, 8.0, 121)}
    return Case(model, {"m": H, "s": H}, on_grid(density, axes))


def data_with_dims():
    """`pm.Data` with dims, a whole-number column, and a vector of weights."""
    with pm.Model(coords={"row": range(len(X)), "column": ["one", "x"]}) as model:
        columns = pm.Data("columns", np.column_stack([np.ones(6), X]), dims=("row", "column"))
        counts = pm.Data("counts", COUNTS, dims="row")
        w = pm.Normal("w", 0.5, 1.0, dims="column")
        sigma = pm.Exponential("sigma", 1.0)
        mean = pm.Deterministic("mean", columns @ w + 0.1 * counts, dims="row")
        pm.Normal("y", mean, sigma, observed=pm.Data("target", Y, dims="row"), dims="row")

    A = np.column_stack([np.ones(6), X])

    def given(sigma):
        S = stacked(sigma, lambda s: s**2 * np.eye(6))
        return gaussian(A, np.full(2, 0.5), np.eye(2), Y - 0.1 * COUNTS, S)

    def further(sigma):
        _, mean, cov = given(sigma)
        at = A[5] @ mean.T + 0.1 * COUNTS[5]
        return {
            "w[0]": (mean[:, 0], cov[:, 0, 0]),
            "w[1]": (mean[:, 1], cov[:, 1, 1]),
            "mean[5]": (at, np.einsum("i,nij,j->n", A[5], cov, A[5])),
        }

    truth = on_grid(lambda s: given(s)[0] - s, {"sigma": positive(0.02, 10.0, 301)}, further)
    return Case(model, {"w": W, "sigma": G}, truth)


def flat():
    """No prior on mean and sd: Student's own posterior."""
    with pm.Model() as model:
        mu = pm.Flat("mu")
        sigma = pm.HalfFlat("sigma")
        pm.Normal("y", mu, sigma, observed=Y)

    def density(mu, sigma):
        return sum(norm(v, mu, sigma) for v in Y)

    return Case(
        model,
        {"mu": W, "sigma": H},
        on_grid(density, {"mu": line(-12.0, 14.0, 301), "sigma": positive(0.1, 60.0, 121)}),
    )


def custom_distributions():
    """A hand-written likelihood by `pm.CustomDist`, of a log density and of a graph of draws."""
    y = np.array([0.7, 1.9, 0.4])

    def log_density(value, shape, rate):
        return shape * pt.log(rate) - pt.gammaln(shape) + (shape - 1.0) * pt.log(value) - rate * value

    def shifted(mu, sigma, size):
        return pm.Normal.dist(mu, sigma, size=size) + 1.0

    with pm.Model() as model:
        shape = pm.Gamma("shape", 2.0, 1.0)
        level = pm.CustomDist("level", 0.2, 0.8, dist=shifted)
        pm.CustomDist("y", shape, pt.exp(level), logp=log_density, observed=y)

    def density(shape, level):
        log_p = stats.gamma.logpdf(shape, 2.0) + norm(level, 1.2, 0.8)
        log_rate = level
        return log_p + sum(
            shape * log_rate - gammaln(shape) + (shape - 1.0) * np.log(v) - np.exp(log_rate) * v for v in y
        )

    return Case(
        model, {"shape": H, "level": H}, on_grid(density, {"shape": positive(0.02, 20.0), "level": line(-4.0, 6.0)})
    )


CASES = [
    robust,
    robust_by_weights,
    negative_binomial,
    beta_binomial,
    gamma_regression,
    gamma_rates,
    von_mises,
    bounded,
    moving_bounds,
    ordered_logistic,
    separation,
    categories,
    several_outcomes,
    data_with_dims,
    flat,
    custom_distributions,
]
