"""Small networks with hyperpriors that double precision can hold, for tests of the sampler of networks."""

import numpy as np
from scipy import stats

import bayessel as bs
from bayessel.mlp import Architecture, Gamma, NetworkPrior
from bayessel.samplers.network.trajectory import TrajectorySettings, posterior_of

LIKELIHOODS = ("gaussian", "student", "logistic", "softmax")


def gentle_prior(D, H, K=1):
    """Gamma distributions of usual shape 2, means from 1 to 4."""
    return NetworkPrior(
        Architecture(D, H, K),
        noise=Gamma(2.0, 4.0),
        hidden_bias=Gamma(1.0, 4.0),
        hidden_output=Gamma(float(H), 4.0),
        input_hidden=Gamma(1.0, 4.0),
        input_hidden_shape=4.0,
        input_output=Gamma(4.0, 4.0),
        input_output_shape=3.0,
    )


def targets(rng, likelihood, n, K):
    """Observations of any value, as `bayessel.models.mlp` takes them."""
    f = rng.standard_normal((n, K))
    if likelihood == "softmax":
        return np.arange(K - 1, K - 1 - n, -1) % K
    t = (f > 0).astype(int) if likelihood == "logistic" else f
    return t if K > 1 else t[:, 0]


def small_model(rng, likelihood="gaussian", n=6, D=2, H=3, K=1, prior=None):
    """A network on random data."""
    X, t = rng.standard_normal((n, D)), targets(rng, likelihood, n, K)
    return bs.models.mlp(X, t, hidden=H, likelihood=likelihood, prior=prior or gentle_prior(D, H, K))


def problem(X, T, prior, likelihood="gaussian"):
    """The same in the arrays of compiled code; X (n, D), T (n, K)."""
    return posterior_of(X, T, likelihood, prior)


def settings(step_size=0.3, n_leapfrog=8, window=1, persistence=0.5, jitter=0.0, draw_precisions=True):
    """How to move."""
    return TrajectorySettings(step_size, jitter, n_leapfrog, window, persistence, draw_precisions)


def uniform_p(values):
    """Kolmogorov and Smirnov's p that values are uniform on (0, 1)."""
    return stats.kstest(values, "uniform").pvalue
