"""Rates, scales and means of Gamma variables: the conditional by quadrature of the density written out, and jointly.

Guards `bayessel.samplers.conjugacy.scale_children`, `bayessel.samplers.conjugacy.scale`.
"""

from functools import partial

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, stats

import bayessel as bs
from bayessel.diagnostics.calibration import geweke
from bayessel.samplers.conjugacy.scale_children import GammaChild

TAU = np.array([0.3, 2.5, 0.9, 0.02])
SHAPES = np.array([0.5, 1.0, 2.5, 0.5])


def mean_of_precisions():
    """What a network's input relevances have above them: τ_i ~ Gamma of shape ½ and mean x."""
    with pm.Model() as model:
        x = pm.Gamma("x", 0.25, 0.05)
        pm.Gamma("tau", 0.5, 0.5 / x, observed=TAU)
    return (
        model,
        lambda x: (
            stats.gamma(0.25, scale=20.0).logpdf(x)[:, 0] + stats.gamma(0.5, scale=2.0 * x).logpdf(TAU).sum(axis=1)
        ),
    )


def rate():
    with pm.Model() as model:
        x = pm.Gamma("x", 0.7, 1.5)
        pm.Gamma("tau", SHAPES, 3.0 * x, observed=TAU)
        pm.Exponential("gap", x, observed=0.8)
    return (
        model,
        lambda x: (
            stats.gamma(0.7, scale=1.0 / 1.5).logpdf(x)[:, 0]
            + stats.gamma(SHAPES, scale=1.0 / (3.0 * x)).logpdf(TAU).sum(axis=1)
            + stats.expon(scale=1.0 / x).logpdf(0.8)[:, 0]
        ),
    )


def scale_of_variances():
    with pm.Model() as model:
        x = pm.Exponential("x", 0.5)
        pm.InverseGamma("variance", SHAPES, 2.0 * x, observed=TAU)
    return (
        model,
        lambda x: (
            stats.expon(scale=2.0).logpdf(x)[:, 0] + stats.invgamma(SHAPES, scale=2.0 * x).logpdf(TAU).sum(axis=1)
        ),
    )


def scale_of_gammas():
    with pm.Model() as model:
        x = pm.InverseGamma("x", 1.5, 0.4)
        pm.Gamma("tau", SHAPES, 1.0 / x, observed=TAU)
    return (
        model,
        lambda x: stats.invgamma(1.5, scale=0.4).logpdf(x)[:, 0] + stats.gamma(SHAPES, scale=x).logpdf(TAU).sum(axis=1),
    )


def root_of_a_rate():
    with pm.Model() as model:
        x = pm.HalfCauchy("x", 0.5)
        pm.Gamma("tau", 0.5, x**2, observed=TAU)
        pm.Normal("y", 0.0, 1.0 / x, observed=0.4)  # a Normal child beside the Gamma one
    return (
        model,
        lambda x: (
            stats.halfcauchy(scale=0.5).logpdf(x)[:, 0]
            + stats.gamma(0.5, scale=x**-2.0).logpdf(TAU).sum(axis=1)
            + stats.norm(0.0, 1.0 / x).logpdf(0.4)[:, 0]
        ),
    )


CASES = [mean_of_precisions, rate, scale_of_variances, scale_of_gammas, root_of_a_rate]


def distribution(log_density):
    """Cumulative distribution of log x by quadrature, on a grid fine enough to interpolate."""
    grid = np.linspace(-25.0, 25.0, 2001)
    with np.errstate(all="ignore"):
        logs = log_density(np.exp(grid)[:, None]) + grid
    logs[~np.isfinite(logs)] = -np.inf
    p = np.exp(logs - logs.max())
    cdf = integrate.cumulative_simpson(p, x=grid, initial=0.0)
    return lambda u: np.interp(u, grid, cdf / cdf[-1])


def p_value(make, n=1000):
    """Kolmogorov and Smirnov's, of every other draw: with an auxiliary variable, neighbours depend on each other."""
    model, log_density = make()
    step = bs.GammaPrecisionGibbs("x", model=model)
    step.setup_chain(np.random.default_rng(8), 0, 1)
    point, found = model.initial_point(), []
    for _ in range(n):
        for _ in range(2):
            point, _ = step.step(point)
        found.append(float(point["x_log__"]))
    return stats.kstest(found, distribution(log_density)).pvalue


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_draws_follow_the_density_by_quadrature(make):
    assert p_value(make) > 1e-3


def wrong_worth(monkeypatch):
    """A Gamma variable of shape a taken for a squared normals instead of 2a."""
    right = GammaChild.refresh
    monkeypatch.setattr(GammaChild, "refresh", lambda self, x, shape, env: 0.5 * right(self, x, shape, env))


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_wrong_number_of_degrees_is_seen(make, monkeypatch):
    wrong_worth(monkeypatch)
    assert p_value(make) < 1e-6


def three_layers():
    """Weights, precisions of each, and the mean of these; little data, so that the simulators mix."""
    with pm.Model() as model:
        t = pm.Data("t", np.array([0.3, -1.2, 0.8]))
        mean = pm.Gamma("mean", 3.0, 2.0)
        tau = pm.Gamma("tau", 2.0, 2.0 / mean, shape=3)
        w = pm.Normal("w", 0.0, tau=tau, shape=3)
        pm.Normal("obs", w, 1.0, observed=t)
    return model


def joint(draws, thin, marginal=2000):
    return geweke(
        three_layers(),
        partial(bs.steps, split="conjugate"),
        draws,
        thin=thin,
        tune=0,
        marginal=marginal,
        random_seed=2,
        progressbar=False,
    )


def test_all_three_layers_are_drawn_exactly():
    said = bs.explain_steps(three_layers(), split="conjugate")
    assert "mean  GammaPrecisionGibbs   Gamma prior of a scale; Gamma in tau" in said and "HMC" not in said


def test_the_joint_distribution_of_three_layers_in_short():
    assert joint(200, 1).ok


def test_the_joint_distribution_sees_a_wrong_number_of_degrees(monkeypatch):
    wrong_worth(monkeypatch)
    assert not joint(200, 1).ok


@pytest.mark.slow
def test_the_joint_distribution_of_three_layers():
    result = joint(5000, 4, 10_000)
    assert result.ok, result.text
