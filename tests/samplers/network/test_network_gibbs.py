"""Each conditional of a network's hyperparameters against the joint density, integrated numerically.

Guards `bayessel.samplers.network.precisions`, `bayessel.samplers.network.trajectory`.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from bayessel.mlp import Gamma
from bayessel.mlp.compiled_passes import NUMBERS
from bayessel.mlp.prior import Precisions
from bayessel.samplers.network.precisions import LIMIT, log_gamma_draw, log_mean_draw, noise, precisions
from bayessel.samplers.network.trajectory import hyperpriors
from tests.oracles.monte_carlo import assert_means
from tests.problems.network import gentle_prior, uniform_p

LEVEL = 1e-3


def share_below(log_density, x, low=-40.0, high=40.0, points=4001):
    """∫ exp(log_density) up to x, by the trapezium rule on a grid that is then made for the mass; x a number."""
    for _ in range(2):
        grid = np.linspace(low, high, points)
        values = log_density(grid)
        inside = np.flatnonzero(values > values.max() - 45.0)
        low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, points - 1)]
    grid = np.linspace(low, high, points)
    values = log_density(grid)
    density = np.exp(values - values.max())
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    return np.interp(x, grid, below / below[-1])


def gamma_log_density(log_tau, mean, shape):
    """Of log τ; mean and shape in the papers' sense."""
    alpha, beta = shape / 2.0, shape / (2.0 * mean)
    return alpha * np.log(beta) - special.gammaln(alpha) + alpha * log_tau - beta * np.exp(log_tau)


def normal_log_density(weights, log_tau):
    """Of all weights, for each of several log precisions."""
    tau = np.exp(log_tau)[..., None]
    return np.sum(0.5 * np.log(tau / (2.0 * np.pi)) - 0.5 * tau * np.ravel(weights) ** 2, axis=-1)


@pytest.mark.parametrize("usual", [True, False])
def test_precisions_of_weights(rng, usual):
    D, H, K = 3, 2, 2
    prior = gentle_prior(D, H, K) if usual else type(gentle_prior(D, H, K))(gentle_prior(D, H, K).architecture)
    rows = hyperpriors(prior, False)
    architecture = prior.architecture
    q = prior.draw_weights(gentle_prior(D, H, K).draw_precisions(rng), rng)
    a, u, _, v, w = architecture.split(q)
    names = ("hidden bias", "hidden output", "u, first", "u, last", "mean of u", "w, first", "mean of w")
    found = {name: [] for name in names}
    begin = rng.standard_normal(K + 4 + 2 * D)

    def given(mean_log, weights, shape):
        mean = np.exp(mean_log)
        return lambda x: gamma_log_density(x, mean, shape) + normal_log_density(weights, x)

    def of_mean(log_taus, top, shape):
        def density(x):
            lower = [gamma_log_density(one, np.exp(x), shape) for one in log_taus]
            return gamma_log_density(x, top.mean, top.shape) + np.sum(lower, axis=0)

        return density

    for _ in range(400):
        s = begin.copy()
        precisions(rng, q, s, rows, D, H, K, np.ones_like(rows), 1.0)
        log_u, log_w = s[K + 2 : K + 2 + D], s[K + 3 + D : K + 3 + 2 * D]
        mean_u, mean_w = begin[K + 2 + D], begin[K + 3 + 2 * D]  # those the second layer was drawn with
        belief = prior.hidden_bias
        density = given(np.log(belief.mean), a, belief.shape)
        found["hidden bias"].append(share_below(density, s[K]))
        belief = prior.hidden_output
        found["hidden output"].append(share_below(given(np.log(belief.mean), v, belief.shape), s[K + 1]))
        shape = prior.input_hidden_shape
        found["u, first"].append(share_below(given(mean_u, u[0], shape), log_u[0]))
        found["u, last"].append(share_below(given(mean_u, u[-1], shape), log_u[-1]))
        found["mean of u"].append(share_below(of_mean(log_u, prior.input_hidden, shape), s[K + 2 + D]))
        shape = prior.input_output_shape
        found["w, first"].append(share_below(given(mean_w, w[0], shape), log_w[0]))
        found["mean of w"].append(share_below(of_mean(log_w, prior.input_output, shape), s[K + 3 + 2 * D]))
        assert (s[:K] == begin[:K]).all()
    for name, shares in found.items():
        assert uniform_p(shares) > LEVEL, name
    # and the test can see: half a degree of freedom too many for the hidden biases
    wrong = [
        share_below(given(np.log(prior.hidden_bias.mean), a, prior.hidden_bias.shape), np.log(one))
        for one in rng.gamma(rows[K, 0] + 0.5 * H + 0.5, 1.0 / (rows[K, 1] + 0.5 * np.sum(a**2)), 400)
    ]
    assert uniform_p(wrong) < LEVEL


def test_precisions_of_noise(rng):
    K, n = 2, 5
    prior = gentle_prior(1, 1, K)
    rows, f, T = hyperpriors(prior, False), rng.standard_normal((K, n)), rng.standard_normal((K, n))
    s = np.zeros(len(rows))
    drawn = np.empty((600, K))
    for one in drawn:
        noise(rng, NUMBERS["gaussian"], f, T, s, rows, np.ones_like(rows), 1.0)
        one[:] = s[:K]
    for k in range(K):
        belief = prior.noise

        def density(x, k=k, belief=belief):
            return gamma_log_density(x, belief.mean, belief.shape) + normal_log_density(T[k] - f[k], x)

        assert uniform_p(share_below(density, drawn[:, k])) > LEVEL
    assert (s[K:] == 0.0).all()
    for kind in ("logistic", "softmax"):
        noise(rng, NUMBERS[kind], f, T, s, rows, np.ones_like(rows), 1.0)
        assert (s[:K] == drawn[-1]).all()


def test_students_noise_keeps_the_joint_density_of_precision_and_degrees(rng):
    n = 8
    prior = gentle_prior(1, 1, 1)
    rows = hyperpriors(prior, True)
    r = np.array([0.1, -0.4, 0.3, 5.0, -0.2, 0.9, -0.7, 0.05])
    x, y = np.linspace(-8.0, 8.0, 401), np.linspace(-9.0, 8.0, 401)
    log_tau, log_nu = x[:, None, None], y[None, :, None]
    joint = gamma_log_density(log_tau, prior.noise.mean, prior.noise.shape)[..., 0]
    joint = joint + (2.0 * log_nu - 0.1 * np.exp(log_nu))[..., 0]
    joint = joint + stats.t(np.exp(log_nu), scale=np.exp(-0.5 * log_tau)).logpdf(r).sum(axis=-1)
    p = np.exp(joint - joint.max())
    p /= p.sum()
    assert p[0].sum() + p[-1].sum() + p[:, 0].sum() + p[:, -1].sum() < 1e-5
    features = np.stack(np.broadcast_arrays(x[:, None], y[None, :], np.tanh(x)[:, None] * np.tanh(y - 1.5)), axis=-1)
    expected = np.einsum("ij,ijk->k", p, features)
    chains, draws, f, T = 40, 150, np.zeros((1, n)), r[None, :]
    found = np.empty((chains, draws, 3))
    starts = rng.choice(p.size, chains, p=p.ravel())
    for chain, start in zip(found, starts, strict=True):
        s = np.zeros(len(rows))
        s[0], s[-1] = x[start // len(y)], y[start % len(y)]
        for one in chain:
            noise(rng, NUMBERS["student"], f, T, s, rows, np.ones_like(rows), 1.0)
            one[:] = s[0], s[-1], np.tanh(s[0]) * np.tanh(s[-1] - 1.5)
    assert_means(found, expected)


@pytest.mark.parametrize("shape", [0.01, 0.25, 1.0, 30.0])
def test_logarithms_of_gamma_draws(rng, shape):
    draws = np.array([log_gamma_draw(rng, shape, 3.0) for _ in range(3000)])
    assert np.isfinite(draws).all() and np.abs(draws).max() <= LIMIT

    def density(x):
        return shape * x - 3.0 * np.exp(x)

    assert uniform_p(share_below(density, draws, low=-40.0 / shape, high=10.0, points=20_001)) > LEVEL


@pytest.mark.parametrize(
    ("c", "a", "b"),
    [
        (-3.75, 0.0025, 4.0),
        (0.25, 1e-4, 1e-6),
        (2.0, 1.0, 1.0),
        (-0.5, 1e-3, 1e-3),
        (-40.0, 1e-4, 0.02),
        (0.0, 1e-8, 1e-8),
        (100.0, 1e3, 1e-3),
    ],
)
def test_generalised_inverse_gaussian_draws(rng, c, a, b):
    draws = np.array([log_mean_draw(rng, c, a, b) for _ in range(3000)])

    def density(x):
        with np.errstate(over="ignore"):
            return c * x - a * np.exp(x) - b * np.exp(-x)

    assert uniform_p(share_below(density, draws, points=20_001)) > LEVEL
    # SciPy's distribution of y = e^x, in its own parametrisation, where it can
    if a * b > 1e-6:
        law = stats.geninvgauss(c, 2.0 * np.sqrt(a * b), scale=np.sqrt(b / a))
        assert uniform_p(law.cdf(np.exp(draws))) > LEVEL


def test_hyperpriors_are_those_of_the_model(rng):
    prior = gentle_prior(2, 3, 2)
    rows, tau = hyperpriors(prior, False), prior.draw_precisions(rng)
    total = 0.0
    s = np.concatenate([np.ravel(np.log(one)) for one in _in_order(tau)])
    for j, (shape, rate) in enumerate(rows):
        if np.isnan(rate):
            mean = tau.mean_input_hidden if j < 7 else tau.mean_input_output
            rate = shape / float(mean)
        total += stats.gamma(shape, scale=1.0 / rate).logpdf(np.exp(s[j]))
    assert_allclose(total, prior.precisions_log_density(tau), rtol=1e-12)
    assert_allclose(hyperpriors(prior, True)[-1], (2.0, 0.1))
    assert Gamma(1.0, 4.0).alpha == rows[2, 0]


def _in_order(tau: Precisions):
    return (
        tau.noise,
        tau.hidden_bias,
        tau.hidden_output,
        tau.input_hidden,
        tau.mean_input_hidden,
        tau.input_output,
        tau.mean_input_output,
    )
