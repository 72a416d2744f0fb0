"""Models with discrete parts, operations without gradient, potentials, and what must be refused."""

import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.exceptions import ImputationWarning
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy import stats
from scipy.special import logsumexp

from tests.samplers.zoo.case import Case, G, H, Refused, W, between, gaussian, line, on_grid, positive, states

Y = np.array([0.3, -0.4, 0.2, 1.9, 1.4, 2.2])
norm = stats.norm.logpdf


def latent_counts():
    """How many there are, of which a share is seen: a Poisson variable above Binomial data."""
    seen = np.array([3, 5, 4])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 8.0, 1.0)
        share = pm.Beta("share", 4.0, 4.0)
        n = pm.Poisson("n", rate, initval=9)
        pm.Binomial("seen", n, share, observed=seen)

    def density(rate, share, n):
        log_p = stats.gamma.logpdf(rate, 8.0) + stats.beta.logpdf(share, 4.0, 4.0) + stats.poisson.logpmf(n, rate)
        return log_p + sum(stats.binom.logpmf(k, n, share) for k in seen)

    axes = {"rate": positive(0.5, 50.0, 61), "share": between(n=61), "n": states(range(60))}
    return Case(model, {"rate": H, "share": H, "n": "Metropolis"}, on_grid(density, axes), draws=8000)


def indicators():
    """Which of two groups each row belongs to is sampled, by an index into their means."""
    with pm.Model() as model:
        mu = pm.Normal("mu", [0.0, 2.0], 1.0, shape=2)
        tau = pm.Gamma("tau", 3.0, 1.0)
        kind = pm.Categorical("kind", [0.6, 0.4], shape=4)
        pm.Normal("y", mu[kind], tau=tau, observed=Y[1:5])

    def kinds(a, b, tau):
        log_odds = []
        for v in Y[1:5]:
            one, other = (np.log(w) + norm(v, m, tau**-0.5) for w, m in ((0.6, a), (0.4, b)))
            log_odds.append((one, other))
        return log_odds

    def density(a, b, tau):
        log_p = norm(a) + norm(b, 2.0) + stats.gamma.logpdf(tau, 3.0)
        return log_p + sum(np.logaddexp(one, other) for one, other in kinds(a, b, tau))

    def further(a, b, tau):
        found = {}
        for i in (0, 3):
            one, other = kinds(a, b, tau)[i]
            p = np.exp(other - np.logaddexp(one, other))
            found[f"kind[{i}]"] = (p, p * (1.0 - p))
        return found

    axes = {"mu[0]": line(-4.5, 5.0, 81), "mu[1]": line(-3.0, 6.5, 81), "tau": positive(0.05, 30.0, 61)}
    expected = {"mu": W, "tau": G, "kind": "BinaryGibbsMetropolis"}
    return Case(model, expected, on_grid(density, axes, further), draws=4000)


def change_of_rate():
    """When the rate of a count changed: by `switch`, the rates are Exponential."""
    counts = np.array([1, 0, 2, 1, 5, 3, 6])
    with pm.Model() as model:
        when = pm.DiscreteUniform("when", 0, 6)
        rate = pm.Exponential("rate", 0.5, shape=2)
        pm.Poisson("y", pm.math.switch(np.arange(7) < when, rate[0], rate[1]), observed=counts)

    def density(when, a, b):
        log_p = -0.5 * (a + b)
        return log_p + sum(stats.poisson.logpmf(k, np.where(i < when, a, b)) for i, k in enumerate(counts))

    axes = {"when": states(range(7)), "rate[0]": positive(1e-5, 30.0, 121), "rate[1]": positive(1e-5, 30.0, 121)}
    return Case(model, {"when": "Metropolis", "rate": H}, on_grid(density, axes), draws=10_000)


def change_of_level():
    """When the level of Normal data changed: levels and noise are drawn exactly, given the time."""
    with pm.Model() as model:
        when = pm.DiscreteUniform("when", 0, 5)
        level = pm.Normal("level", 1.0, 1.0, shape=2)
        sigma = pm.HalfCauchy("sigma", 0.5)
        pm.Normal("y", pm.math.switch(np.arange(6) < when, level[0], level[1]), sigma, observed=Y)

    def density(when, a, b, sigma):
        log_p = norm(a, 1.0) + norm(b, 1.0) + stats.halfcauchy(scale=0.5).logpdf(sigma)
        return log_p + sum(norm(v, np.where(i < when, a, b), sigma) for i, v in enumerate(Y))

    axes = {
        "when": states(range(6)),
        "level[0]": line(-4.0, 6.0, 61),
        "level[1]": line(-4.0, 6.0, 61),
        "sigma": positive(0.03, 40.0, 61),
    }
    return Case(model, {"when": "Metropolis", "level": W, "sigma": G}, on_grid(density, axes), draws=10_000)


def spike():
    """A coefficient that is in or out, by a Bernoulli variable that multiplies it."""
    x = np.array([-1.0, 0.5, 0.8, 1.4])
    y = np.array([-0.2, 0.6, 0.1, 0.8])
    with pm.Model() as model:
        inside = pm.Bernoulli("inside", 0.5)
        b = pm.Normal("b", 0.0, 1.0)
        pm.Normal("y", inside * b * x, 0.7, observed=y)

    def density(inside, b):
        return norm(b) + sum(norm(v, inside * b * u, 0.7) for u, v in zip(x, y, strict=True))

    axes = {"inside": states([0, 1]), "b": line(-7.0, 7.0, 301)}
    return Case(model, {"inside": "BinaryGibbsMetropolis", "b": W}, on_grid(density, axes), draws=5000)


def hidden_markov():
    """A chain of two hidden states summed out by a scan; what is seen are coins of two kinds."""
    seen = np.array([0, 0, 1, 1, 1, 0, 1])
    with pm.Model() as model:
        stay = pm.Beta("stay", 4.0, 2.0)
        p = pm.Beta("p", [2.0, 5.0], [5.0, 2.0], shape=2)
        flip = 1.0 - stay
        moves = pt.log(pt.stack([pt.stack([stay, flip]), pt.stack([flip, stay])]))
        emission = pt.stack([pt.log1p(-p), pt.log(p)])[seen]
        forward = pytensor.scan(
            lambda e, a, moves: pt.logsumexp(a[:, None] + moves, axis=0) + e,
            sequences=[emission[1:]],
            outputs_info=[emission[0] + np.log(0.5)],
            non_sequences=[moves],
            return_updates=False,
        )
        pm.Potential("likelihood", pt.logsumexp(forward[-1]))

    def density(stay, a, b):
        log_p = stats.beta.logpdf(stay, 4.0, 2.0) + stats.beta.logpdf(a, 2.0, 5.0) + stats.beta.logpdf(b, 5.0, 2.0)
        state = np.log([[0.5], [0.5]]) + np.zeros(len(stay))
        for t, k in enumerate(seen):
            if t:
                one, other = state
                state = [
                    np.logaddexp(one + np.log(stay), other + np.log1p(-stay)),
                    np.logaddexp(one + np.log1p(-stay), other + np.log(stay)),
                ]
            state = [s + np.log(q if k else 1.0 - q) for s, q in zip(state, (a, b), strict=True)]
        return log_p + logsumexp(state, axis=0)

    axes = {"stay": between(n=61), "p[0]": between(n=61), "p[1]": between(n=61)}
    return Case(model, {"stay": H, "p": H}, on_grid(density, axes))


class Rounded(Op):
    """What users write around a program of their own: only `perform`, no gradient."""

    def make_node(self, x):
        x = pt.as_tensor(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(np.round(np.tanh(inputs[0]), 6))


def black_box():
    """A mean through an Op without gradient, and beside it a scale that has one."""
    with pm.Model() as model:
        x = pm.Normal("x", 0.0, 1.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", Rounded()(x), sigma, observed=Y[:4])

    def density(x, sigma):
        return norm(x) + stats.halfnorm.logpdf(sigma) + sum(norm(v, np.tanh(x), sigma) for v in Y[:4])

    axes = {"x": line(-6.0, 6.0, 161), "sigma": positive(0.1, 8.0)}
    return Case(model, {"x": "Slice", "sigma": G}, on_grid(density, axes), draws=2000)


class LogLikelihood(Op):
    """A whole likelihood by a program of the user's own."""

    def make_node(self, *parameters):
        return Apply(self, [pt.as_tensor(v) for v in parameters], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        m, s = inputs
        outputs[0][0] = np.asarray(norm(Y, m, s).sum())


def black_box_likelihood():
    """The likelihood is a potential without gradient, of a mean and a scale."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1.0)
        s = pm.HalfNormal("s", 1.0)
        pm.Potential("likelihood", LogLikelihood()(m, s))

    def density(m, s):
        return norm(m) + stats.halfnorm.logpdf(s) + sum(norm(v, m, s) for v in Y)

    axes = {"m": line(-4.0, 4.0), "s": positive(0.1, 10.0)}
    return Case(model, {"m": "Slice", "s": "Slice"}, on_grid(density, axes))


def missing_counts():
    """A count is missing: a discrete variable, its rate by HMC."""
    counts = np.ma.masked_equal([2, -1, 4, 3], -1)
    with pm.Model() as model, warnings.catch_warnings():
        warnings.simplefilter("ignore", ImputationWarning)
        rate = pm.Gamma("rate", 3.0, 1.0)
        pm.Poisson("y", rate, observed=counts)

    def density(rate):
        return stats.gamma.logpdf(rate, 3.0) + sum(stats.poisson.logpmf(k, rate) for k in counts.compressed())

    def further(rate):
        return {"y_unobserved[0]": (rate, rate)}

    truth = on_grid(density, {"rate": positive(0.2, 20.0, 301)}, further)
    return Case(model, {"rate": H, "y_unobserved": "Metropolis"}, truth, draws=5000)


def potential():
    """A weight of the user's own on a Normal variable, whose scale it leaves alone."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 2.0)
        tau = pm.Gamma("tau", 2.0, 2.0)
        pm.Normal("y", m, tau=tau, observed=Y[3:])
        pm.Potential("near one", -2.0 * pt.abs(m - 1.0))

    def density(m, tau):
        log_p = norm(m, 0.0, 2.0) + stats.gamma.logpdf(tau, 2.0, scale=0.5) - 2.0 * np.abs(m - 1.0)
        return log_p + sum(norm(v, m, tau**-0.5) for v in Y[3:])

    # a point at the kink
    return Case(model, {"m": H, "tau": G}, on_grid(density, {"m": line(-4.0, 6.0, 201), "tau": positive(0.01, 30.0)}))


def observed_afterwards():
    """`pm.observe` and `pm.do` of a model without data, and the name of a model before its variables."""
    with pm.Model() as generative:
        m = pm.Normal("m", 0.0, 1.0)
        gap = pm.Normal("gap", 0.0, 1.0)
        s = pm.HalfNormal("s", 1.0)
        pm.Normal("y", m + gap, s, shape=len(Y))
    model = pm.observe(pm.do(generative, {"gap": 0.5}), {"y": Y})

    def density(m, s):
        return norm(m) + stats.halfnorm.logpdf(s) + sum(norm(v, m + 0.5, s) for v in Y)

    return Case(model, {"m": W, "s": G}, on_grid(density, {"m": line(-4.0, 4.0), "s": positive(0.1, 10.0)}))


def seen_in_a_mean():
    """An observed variable is itself the input of another: no constant to the graph, but to the density."""
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 1.0)
        first = pm.Normal("first", 0.0, 1.0, observed=Y[:3])
        pm.Normal("y", slope * first, 0.7, observed=Y[3:])

    def given():
        return gaussian(Y[:3, None], np.zeros(1), np.eye(1), Y[3:], 0.49 * np.eye(3))

    _, mean, cov = given()
    grid = line(mean[0] - 12.0 * cov[0, 0] ** 0.5, mean[0] + 12.0 * cov[0, 0] ** 0.5, 301)
    truth = on_grid(lambda s: norm(s, mean[0], cov[0, 0] ** 0.5), {"slope": grid})
    return Case(model, {"slope": H}, truth)


def simulator():
    """A simulator in place of a likelihood: its density is random, and no chain of ours is right for it."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1.0)
        pm.Simulator("y", lambda rng, m, size: rng.normal(m, 1.0, size=size), m, epsilon=1.0, observed=Y)
    return Refused(model, "y: a Simulator has no density.*pm.sample_smc")


def nothing_free():
    with pm.Model() as model:
        pm.Normal("y", 0.0, 1.0, observed=Y)
    return Refused(model, "no free variables")


def impossible():
    """Data outside the support, whatever the parameters are."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0)
        pm.Exponential("y", rate, observed=np.array([0.4, -1.0]))
    return Refused(model, "no starting point of finite log density")


CASES = [
    latent_counts,
    indicators,
    change_of_rate,
    change_of_level,
    spike,
    hidden_markov,
    black_box,
    black_box_likelihood,
    missing_counts,
    potential,
    observed_afterwards,
    seen_in_a_mean,
]
REFUSED = [simulator, nothing_free, impossible]
