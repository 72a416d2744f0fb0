"""Precisions of separate weights, the weights integrated out: against dense twins and quadrature.

Guards `bayessel.samplers.log_precision_draws`, `bayessel.samplers.collapsed_sweep`,
`bayessel.samplers.conjugacy.sparse_block`, `bayessel.samplers.conjugacy.sparse_marginal`.
"""

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

import bayessel as bs
from bayessel.samplers import collapsed_sweep, log_precision_draws
from bayessel.samplers.collapsed_sweep import Reduced
from bayessel.samplers.conjugacy.graph import ModelGraph
from bayessel.samplers.conjugacy.scale import ScaleConditional
from bayessel.samplers.gibbs import SparseWeightsGibbs
from bayessel.samplers.log_precision_draws import MOST, NO_PRIOR, log_prior_rows
from bayessel.samplers.step_choice import in_suited_coordinates
from tests.oracles.monte_carlo import assert_means, z_scores


def problem(n=30, m=6, seed=0, twins=True):
    """A design, two of whose columns are nearly the same, and targets."""
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m))
    if twins:
        Phi[:, 1] = Phi[:, 0] + 1e-2 * rng.normal(size=n)
    return Phi, Phi[:, 0] - 0.5 * Phi[:, -1] + 0.3 * rng.normal(size=n)


def reduced(Phi, t):
    Q, R = np.linalg.qr(Phi) if len(Phi) > Phi.shape[1] else (np.eye(len(Phi)), np.ascontiguousarray(Phi))
    z = Q.T @ t
    return Reduced(np.ascontiguousarray(R), R.T @ R, z, R.T @ z, float(np.sum((t - Q @ z) ** 2)), len(t))


def gamma_rows(shape, rate, n):
    return np.tile([shape, np.log(rate), 1.0, *NO_PRIOR[3:]], (n, 1))


# --- formulas against dense twins ----------------------------------------------------------------------------------


def dense_sparsity_and_quality(Phi, t, u, i):
    """φᵀC⁻¹φ and φᵀC⁻¹t with the covariance C of the targets without the function i."""
    others = np.delete(Phi, i, axis=1) * np.exp(-0.5 * np.delete(u[:-1], i))
    C = np.exp(-u[-1]) * np.eye(len(t)) + others @ others.T
    solved = np.linalg.solve(C, Phi[:, i])
    return solved @ Phi[:, i], solved @ t


@pytest.mark.parametrize("size", [(30, 6), (6, 6), (4, 7)])
def test_sparsity_and_quality_are_those_of_the_other_functions(size, rng):
    Phi, t = problem(*size)
    data = reduced(Phi, t)
    for wide in (1.0, 6.0):
        u = np.append(wide * rng.normal(size=size[1]), 1.5)
        u[2] = 25.0  # given up: the difference of reciprocals has no digits left there
        S, mean, _ = collapsed_sweep.covariance_and_mean(data, u)
        for i in range(size[1]):
            found = collapsed_sweep.sparsity_and_quality(data, u, S, mean, i)
            expected = dense_sparsity_and_quality(Phi, t, u, i)
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-6 * np.sqrt(expected[0]))


def test_covariance_and_mean_follow_every_draw(rng):
    Phi, t = problem(40, 12)
    data, u = reduced(Phi, t), np.append(3.0 * rng.normal(size=12), 2.0)
    S, mean, _ = collapsed_sweep.covariance_and_mean(data, u)
    before = u.copy()
    collapsed_sweep._draw_each(rng, data, u, np.ones(13, dtype=bool), gamma_rows(0.05, 0.05, 13), S, mean)
    assert (u[:-1] != before[:-1]).mean() > 0.7
    again, fresh, _ = collapsed_sweep.covariance_and_mean(data, u)
    size = np.sqrt(np.diag(again))
    np.testing.assert_allclose(S / np.outer(size, size), again / np.outer(size, size), atol=1e-8)
    np.testing.assert_allclose(mean / size, fresh / size, atol=1e-7)


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6])
def test_columns_that_are_nearly_dependent_keep_their_digits(noise, rng):
    """Wide functions and little noise: Σ⁻¹ has a condition of up to 1e18, against 50 digits."""
    x = np.sort(rng.uniform(-6.0, 6.0, 20))
    Phi = np.column_stack([np.exp(-(np.subtract.outer(x, x) ** 2) / 16.0), np.ones(20)])
    t = np.sinc(x / np.pi) + noise * rng.normal(size=20)
    data, u, w = reduced(Phi, t), np.zeros(22), np.empty(21)
    priors = gamma_rows(0.01, 0.01, 22)
    priors[-1, 1] = np.log(1e-10)
    for _ in range(100):
        collapsed_sweep.collapsed_sweep(rng, data, u, np.ones(22, dtype=bool), priors, w)
    S, mean, _ = collapsed_sweep.covariance_and_mean(data, u)
    collapsed_sweep._draw_each(rng, data, u, np.ones(22, dtype=bool), priors, S, mean)
    with mpmath.workdps(50):
        F, alpha = mpmath.matrix(Phi.tolist()), [mpmath.exp(mpmath.mpf(float(v))) for v in u]
        covariance = (alpha[-1] * F.T * F + mpmath.diag(alpha[:-1])) ** -1
        mu = covariance * (alpha[-1] * F.T * mpmath.matrix(t.tolist()))
        own = [covariance[i, i] for i in range(21)]
        exact = np.array([[float(1 / own[i] - alpha[i]), float(mu[i] / own[i])] for i in range(21)])
    found = np.array([collapsed_sweep.sparsity_and_quality(data, u, S, mean, i) for i in range(21)])
    size = np.exp(u[:-1]) + exact[:, 0]
    assert (np.abs(found[:, 0] - exact[:, 0]) / size).max() < 1e-5
    assert (np.abs(found[:, 1] - exact[:, 1]) / np.sqrt(size)).max() < 1e-4


@pytest.mark.parametrize("size", [(30, 6), (4, 7)])
def test_likelihoods_without_the_weights(size, rng):
    Phi, t = problem(*size)
    data, n = reduced(Phi, t), len(t)
    found = []
    for _ in range(3):
        u = np.append(2.0 * rng.normal(size=size[1]), rng.normal())
        S, mean, _ = collapsed_sweep.covariance_and_mean(data, u)
        C = np.exp(-u[-1]) * np.eye(n) + (Phi * np.exp(-u[:-1])) @ Phi.T
        expected = stats.multivariate_normal(np.zeros(n), C).logpdf(t) + 0.5 * n * np.log(2.0 * np.pi)
        rows = collapsed_sweep.log_likelihood_of_rows(data, collapsed_sweep._spread(data, u), u[-1])
        found.append([collapsed_sweep.collapsed_log_likelihood(data, u), rows, expected])
        E = collapsed_sweep.misfit(data, u, mean)
        assert E * np.exp(u[-1]) == pytest.approx(t @ np.linalg.solve(C, t), rel=1e-9)
        np.testing.assert_allclose(mean, S @ (np.exp(u[-1]) * Phi.T @ t), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.array(found)[:, :2], np.array(found)[:, 2:] * [1.0, 1.0], rtol=1e-8, atol=1e-7)
    spread = collapsed_sweep._spread(data, np.append(np.full(size[1], -20.0), 0.0))
    assert np.isnan(collapsed_sweep.log_likelihood_of_rows(data, spread, 5.0))


SCALES = {
    "gamma precision": (lambda: pm.Gamma("x", 2.0, 0.7, shape=3), lambda x: {"tau": x}),
    "gamma deviation": (lambda: pm.Gamma("x", 2.0, 0.7, shape=3), lambda x: {"sigma": 0.3 * x}),
    "inverse gamma variance": (lambda: pm.InverseGamma("x", 2.0, 0.7, shape=3), lambda x: {"sigma": pt.sqrt(x)}),
    "half-Cauchy": (lambda: pm.HalfCauchy("x", [0.5, 1.0, 2.0]), lambda x: {"sigma": 2.0 * x}),
    "half-Student": (lambda: pm.HalfStudentT("x", 4.0, 0.5, shape=3), lambda x: {"sigma": x}),
    "half-normal": (lambda: pm.HalfNormal("x", 0.8, shape=3), lambda x: {"sigma": x}),
    "exponential": (lambda: pm.Exponential("x", 0.8, shape=3), lambda x: {"sigma": x}),
    "log-normal": (lambda: pm.LogNormal("x", -0.5, 0.8, shape=3), lambda x: {"sigma": x}),
    "Weibull": (lambda: pm.Weibull("x", 1.5, 0.8, shape=3), lambda x: {"sigma": x}),
}


@pytest.mark.parametrize("name", SCALES)
def test_priors_of_log_precisions(name, rng):
    prior, parameter = SCALES[name]
    with pm.Model() as model:
        x = prior()
        w = pm.Normal("w", 0.0, **parameter(x), shape=3)
        pm.Normal("t", w, 1.0, observed=np.zeros(3))
    conditional = ScaleConditional(ModelGraph(model), [x])
    conditional.refresh({x: np.ones(3), w: np.zeros(3)})
    twice = 2.0 * conditional.power
    spread = pytensor.function([x], w.owner.op.dist_params(w.owner)[1], mode="FAST_COMPILE")(np.ones(3))
    offsets = -2.0 * np.log(np.broadcast_to(spread, 3))
    rows = log_prior_rows(conditional.prior_now({x: np.ones(3)}), twice, offsets)
    values = np.exp(rng.normal(size=(5, 3)))
    density = np.array([pm.logp(x, v).eval() + np.log(v) for v in values])  # of log x, as of its multiple u
    places = offsets - twice * np.log(values)
    found = [[log_precision_draws.log_prior(u, row) for u, row in zip(us, rows, strict=True)] for us in places]
    np.testing.assert_allclose(np.diff(found, axis=0), np.diff(density, axis=0), rtol=1e-9, atol=1e-9)


# --- the density of one log precision ------------------------------------------------------------------------------

CAUCHY = np.array([-0.5, -np.inf, 0.0, 0.0, 0.0, 1.0, 0.3, -1.0])
LOG_NORMAL = np.array([0.0, -np.inf, 0.0, 1.0 / 9.0, 2.0, 0.0, 0.0, 0.0])
ONE = {
    "two modes": (40.0, 700.0, gamma_rows(0.3, 0.002, 1)[0]),
    "in use": (400.0, 9e5, gamma_rows(1.0, 1.0, 1)[0]),
    "given up": (5.0, 0.1, gamma_rows(0.01, 0.01, 1)[0]),
    "no data": (0.0, 0.0, gamma_rows(0.5, 2.0, 1)[0]),
    "narrow": (30.0, 900.0, gamma_rows(300.0, 200.0, 1)[0]),
    "half-Cauchy": (30.0, 100.0, CAUCHY),
    "log-normal": (0.1, 2.0, LOG_NORMAL),
}


def chain_of_one(s, q2, prior, rng, length):
    place, draw = log_precision_draws.prior_place(prior), log_precision_draws.draw_log_precision
    work, u, found, moved = (np.empty(MOST), np.empty(MOST), np.empty((MOST + 1, 2))), 0.0, [], 0
    for _ in range(length):
        new = draw(rng, u, s, q2, prior, place, *work)
        moved += new != u
        found.append(u := new)
    return np.array(found), moved / length


@pytest.mark.parametrize("name", ONE)
def test_one_log_precision_against_quadrature(name, rng):
    s, q2, prior = ONE[name]
    grid = np.linspace(-690.0, 690.0, 1_380_001)
    log_p = np.array([log_precision_draws.log_density(u, s, q2, prior) for u in grid])
    p = np.exp(log_p - log_p.max())
    cumulated = np.cumsum(p) / p.sum()
    found, moved = chain_of_one(s, q2, prior, rng, 8000)
    assert moved > 0.94  # next to independent draws
    grade = np.interp(found[::2], grid, cumulated)
    assert stats.kstest(grade, "uniform").pvalue > 1e-4
    wrong, _ = chain_of_one(s, q2, prior + np.array([0.3, *np.zeros(7)]) * (1.0 + prior[0] / 3.0), rng, 8000)
    assert stats.kstest(np.interp(wrong[::2], grid, cumulated), "uniform").pvalue < 1e-4


# --- the joint posterior of two precisions and the noise -------------------------------------------------------------


def by_grid(Phi, t, alpha, beta):
    """Moments of (log α₁, log α₂, log β, w₁, w₁²) under Gamma priors, by quadrature."""
    a, b = np.linspace(-14.0, 7.0, 106), np.linspace(-2.0, 6.0, 81)
    x, y, v = (g.ravel() for g in np.meshgrid(a, a, b, indexing="ij"))
    G, pull, N = Phi.T @ Phi, Phi.T @ t, len(t)
    across = np.exp(v) * G[0, 1]
    P = np.array([[np.exp(v) * G[0, 0] + np.exp(x), across], [across, np.exp(v) * G[1, 1] + np.exp(y)]])
    det = P[0, 0] * P[1, 1] - P[0, 1] ** 2
    h = np.exp(v) * pull[:, None]
    mean = np.array([P[1, 1] * h[0] - P[0, 1] * h[1], P[0, 0] * h[1] - P[0, 1] * h[0]]) / det
    log_p = 0.5 * (N * v + x + y - np.log(det) - np.exp(v) * (t @ t) + (mean * h).sum(axis=0))
    log_p += alpha[0] * (x + y) - alpha[1] * (np.exp(x) + np.exp(y)) + beta[0] * v - beta[1] * np.exp(v)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return [float(p @ f) for f in (x, y, v, mean[0], mean[0] ** 2 + P[1, 1] / det)]


def chains(step, rng, count=40, draws=150, burn=30):
    found = []
    for _ in range(count):
        step.setup_chain(np.random.default_rng(rng.integers(2**32)), 0, draws)
        point, kept = step.start, []
        for k in range(draws):
            point, _ = step.step(point)
            if k >= burn:
                w = point["w"][0] if "w" in point else np.nan
                kept.append([*point["alpha_log__"], point["beta_log__"].item(), w, w**2])
        found.append(kept)
    return np.array(found)


@pytest.mark.parametrize("gone", [False, True])
def test_two_weights_against_quadrature(gone, rng):
    Phi, t = problem(8, 2, seed=3)
    Phi[:, 1] += 0.4 * rng.normal(size=8)
    priors = {"alpha_shape": 0.8, "alpha_rate": 0.5, "beta_shape": 2.0, "beta_rate": 0.5}
    model = bs.models.rvm(Phi, t, collapsed=gone, **priors)
    model = in_suited_coordinates(model, run=False)
    step = SparseWeightsGibbs(model.free_RVs, model=model)
    step.start = model.initial_point()
    found, expected = chains(step, rng), by_grid(Phi, t, (0.8, 0.5), (2.0, 0.5))
    n = 3 if gone else 5
    assert_means(found[..., :n], expected[:n])
    others = by_grid(Phi, t, (1.2, 0.5), (2.0, 0.5))
    assert np.abs(z_scores(found[..., :n], others[:n])).max() > 4
