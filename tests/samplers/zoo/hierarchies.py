"""Hierarchies, and variables whose parts belong together: covariances, sums of zero, neighbours, functions."""

import numpy as np
import pymc as pm
from scipy import stats

from tests.samplers.zoo.case import Case, G, H, W, between, gaussian, line, on_grid, positive, stacked

Y = np.array([0.9, -0.4, 1.8, 0.6])
ERROR = np.array([0.5, 0.4, 0.8, 0.6])
norm = stats.norm.logpdf


def of_groups(prior, axis, mean_sd=1.0):
    """Truth of y_i ~ N(θ_i, ERROR_i), θ_i ~ N(mu, tau), mu ~ N(0, mean_sd): one dimension is left, tau."""
    A = np.column_stack([np.ones(4), np.eye(4)])  # mu, and the deviations from it

    def given(tau):
        V = stacked(tau, lambda t: np.diag([mean_sd**2, *[t**2] * 4]))
        return gaussian(A, np.zeros(5), V, Y, np.diag(ERROR**2))

    def further(tau):
        _, m, V = given(tau)
        return {
            "mu": (m[:, 0], V[:, 0, 0]),
            "theta[0]": (m[:, 0] + m[:, 1], V[:, 0, 0] + V[:, 1, 1] + 2.0 * V[:, 0, 1]),
            "theta[2]": (m[:, 0] + m[:, 3], V[:, 0, 0] + V[:, 3, 3] + 2.0 * V[:, 0, 3]),
        }

    return on_grid(lambda tau: given(tau)[0] + prior(tau), {"tau": axis}, further)


def centred():
    """A hierarchy as it is written down first, with a Deterministic beside it."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        tau = pm.InverseGamma("tau", 3.0, 2.0)
        theta = pm.Normal("theta", mu, tau, shape=4)
        pm.Deterministic("spread", theta.max() - theta.min())
        pm.Normal("y", theta, ERROR, observed=Y)
    truth = of_groups(stats.invgamma(3.0, scale=2.0).logpdf, positive(0.05, 60.0, 201))
    return Case(model, {"mu": W, "tau": G, "theta": W}, truth, draws=2000)


def non_centred():
    """The scale is in the mean: Normal offsets are drawn exactly, the scale is not."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        tau = pm.HalfNormal("tau", 1.0)
        offset = pm.Normal("offset", 0.0, 1.0, shape=4)
        theta = pm.Deterministic("theta", mu + tau * offset)
        pm.Normal("y", theta, ERROR, observed=Y)
    truth = of_groups(stats.halfnorm.logpdf, positive(1e-6, 8.0, 301))
    return Case(model, {"mu": W, "tau": H, "offset": W}, truth, draws=2000)


def zero_sum():
    """Effects that sum to zero, with a scale of their own."""
    of_row = np.array([0, 1, 2, 0])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        tau = pm.Gamma("tau", 3.0, 3.0)
        effect = pm.ZeroSumNormal("effect", tau, shape=3)
        pm.Normal("y", mu + effect[of_row], 0.5, observed=Y)

    centring = np.eye(3) - 1.0 / 3.0
    A = np.column_stack([np.ones(4), np.eye(3)[of_row]])

    def given(tau):
        V = np.zeros((len(tau), 4, 4))
        V[:, 0, 0] = 4.0
        V[:, 1:, 1:] = tau[:, None, None] ** 2 * centring
        return gaussian(A, np.zeros(4), V, Y, 0.25 * np.eye(4))

    def further(tau):
        _, m, V = given(tau)
        return {"mu": (m[:, 0], V[:, 0, 0]), "effect[2]": (m[:, 3], V[:, 3, 3])}

    density = stats.gamma(3.0, scale=1.0 / 3.0).logpdf
    truth = on_grid(lambda tau: given(tau)[0] + density(tau), {"tau": positive(0.005, 8.0, 301)}, further)
    return Case(model, {"mu": W, "tau": H, "effect": H}, truth, draws=2000)


def measurement_error():
    """The inputs are seen with noise; slope and inputs are Normal, and multiplied."""
    seen, y = np.array([-1.1, 0.2, 0.9]), np.array([-0.7, 0.3, 1.2])
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.5, 1.0)
        x = pm.Normal("x", 0.0, 1.0, shape=3)
        pm.Normal("seen", x, 0.4, observed=seen)
        pm.Normal("y", slope * x, 0.3, observed=y)

    def given(slope):
        parts = []
        for s in slope:
            A = np.concatenate([np.eye(3), s * np.eye(3)])
            S = np.diag([0.16] * 3 + [0.09] * 3)
            parts.append(gaussian(A, np.zeros(3), np.eye(3), np.concatenate([seen, y]), S))
        return [np.stack(part) for part in zip(*parts, strict=True)]

    def further(slope):
        _, m, V = given(slope)
        return {f"x[{i}]": (m[:, i], V[:, i, i]) for i in (0, 2)}

    truth = on_grid(lambda s: given(s)[0] + norm(s, 0.5), {"slope": line(-3.0, 6.0, 301)}, further)
    return Case(model, {"slope": W, "x": W}, truth, draws=2000)


def horseshoe():
    """Two coefficients with half-Cauchy scales, one data point each."""
    y = np.array([0.1, 2.0])
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 0.5)
        lam = pm.HalfCauchy("lam", 1.0, shape=2)
        beta = pm.Normal("beta", 0.0, tau * lam, shape=2)
        pm.Normal("y", beta, 0.5, observed=y)

    def density(tau, a, b):
        log_p = stats.halfnorm(scale=0.5).logpdf(tau)
        for v, lam in zip(y, (a, b), strict=True):
            log_p = log_p + stats.halfcauchy.logpdf(lam) + norm(v, 0.0, np.sqrt((tau * lam) ** 2 + 0.25))
        return log_p

    def further(tau, a, b):
        found = {}
        for i, lam in enumerate((a, b)):
            share = (tau * lam) ** 2 / ((tau * lam) ** 2 + 0.25)
            found[f"beta[{i}]"] = (share * y[i], 0.25 * share)
        return found

    axes = {
        "tau": positive(1e-7, 3.0, 81),
        "lam[0]": positive(1e-6, 1e6, 121),
        "lam[1]": positive(1e-6, 1e6, 121),
    }
    return Case(model, {"tau": G, "lam": G, "beta": W}, on_grid(density, axes, further), draws=20_000)


def correlated():
    """Two standard deviations and a correlation by `pm.LKJCholeskyCov`."""
    y = np.array([[0.5, 0.9], [-1.0, -0.2], [0.8, 0.4], [0.1, -0.6], [1.4, 1.1]])
    with pm.Model() as model:
        L, corr, sd = pm.LKJCholeskyCov("L", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0, shape=2))
        pm.Deterministic("sds", sd)
        pm.Deterministic("rho", corr[0, 1])
        pm.MvNormal("y", np.zeros(2), chol=L, observed=y)

    def density(a, b, rho):
        log_p = -a - b + np.log1p(-(rho**2))  # LKJ(2) in two dimensions: 1 − ρ²
        rest = 1.0 - rho**2
        for u, v in y:
            z = (u / a) ** 2 - 2.0 * rho * u * v / (a * b) + (v / b) ** 2
            log_p = log_p - np.log(a * b) - 0.5 * np.log(rest) - 0.5 * z / rest
        return log_p

    axes = {"sds[0]": positive(0.1, 15.0, 61), "sds[1]": positive(0.1, 15.0, 61), "rho": between(-1.0, 1.0, 81)}
    return Case(model, {"L": H}, on_grid(density, axes))


def several_targets():
    """Two outcomes regressed on one input, with a covariance by LKJ; the slopes are integrated out."""
    x = np.array([-1.0, 0.2, 0.7, 1.5])
    y = np.array([[-0.6, -1.0], [0.3, 0.2], [0.2, 1.1], [1.3, 1.4]])
    with pm.Model() as model:
        slope = pm.Normal("slope", 0.0, 1.0, shape=2)
        L, corr, sd = pm.LKJCholeskyCov("L", n=2, eta=1.5, sd_dist=pm.HalfNormal.dist(1.0, shape=2))
        pm.Deterministic("sds", sd)
        pm.Deterministic("rho", corr[0, 1])
        pm.MvNormal("y", x[:, None] * slope, chol=L, observed=y)

    # the data say of the slopes what Σ x y / Σ x² does
    s2 = x @ x
    centre = x @ y / s2
    rest = y - np.outer(x, centre)
    scatter = rest.T @ rest

    def given(a, b, rho):
        S = np.empty((len(a), 2, 2))
        S[:, 0, 0], S[:, 1, 1] = a**2, b**2
        S[:, 0, 1] = S[:, 1, 0] = rho * a * b
        return S, gaussian(np.eye(2), np.zeros(2), np.eye(2), centre, S / s2)

    def density(a, b, rho):
        S, (evidence, _, _) = given(a, b, rho)
        log_p = stats.halfnorm.logpdf(a) + stats.halfnorm.logpdf(b) + 0.5 * np.log1p(-(rho**2)) + evidence
        return log_p - 0.5 * 3 * np.linalg.slogdet(S)[1] - 0.5 * np.einsum("nij,ji->n", np.linalg.inv(S), scatter)

    def further(a, b, rho):
        _, (_, m, V) = given(a, b, rho)
        return {f"slope[{i}]": (m[:, i], V[:, i, i]) for i in range(2)}

    axes = {"sds[0]": positive(0.03, 8.0, 45), "sds[1]": positive(0.03, 8.0, 45), "rho": between(-1.0, 1.0, 51)}
    return Case(model, {"slope": H, "L": H}, on_grid(density, axes, further))


def correlated_data():
    """A mean, and a noise of known correlation by `pm.MvNormal`: no Normal for the finder."""
    S = 0.5 ** np.abs(np.subtract.outer(range(4), range(4)))
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 2.0)
        s = pm.HalfNormal("s", 1.0)
        pm.MvNormal("y", m * np.ones(4), cov=s**2 * S, observed=Y)

    def given(s):
        return gaussian(np.ones((4, 1)), np.zeros(1), 4.0 * np.eye(1), Y, s[:, None, None] ** 2 * S)

    def further(s):
        _, mean, cov = given(s)
        return {"m": (mean[:, 0], cov[:, 0, 0])}

    truth = on_grid(lambda s: given(s)[0] + stats.halfnorm.logpdf(s), {"s": positive(0.1, 6.0, 301)}, further)
    return Case(model, {"m": H, "s": H}, truth)


def correlated_weights():
    """Weights with a joint prior by `pm.MvNormal`, and a noise precision that is drawn exactly."""
    V = np.array([[1.0, 0.7], [0.7, 1.5]])
    A = np.column_stack([np.ones(4), [-1.0, 0.3, 0.8, 1.4]])
    with pm.Model() as model:
        w = pm.MvNormal("w", np.zeros(2), cov=V)
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Normal("y", A @ w, tau=tau, observed=Y)

    def given(tau):
        return gaussian(A, np.zeros(2), V, Y, np.eye(4) / tau[:, None, None])

    def further(tau):
        _, m, C = given(tau)
        return {f"w[{i}]": (m[:, i], C[:, i, i]) for i in range(2)}

    density = stats.gamma(2.0).logpdf
    truth = on_grid(lambda tau: given(tau)[0] + density(tau), {"tau": positive(0.005, 30.0, 301)}, further)
    return Case(model, {"w": H, "tau": G}, truth)


def neighbours():
    """`pm.ICAR` on a path of four places."""
    path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    with pm.Model() as model:
        level = pm.Normal("level", 0.0, 1.0)
        sigma = pm.LogNormal("sigma", -0.5, 0.5)
        phi = pm.ICAR("phi", W=path, sigma=sigma, zero_sum_stdev=0.05)
        pm.Normal("y", level + phi, 0.4, observed=Y)

    # Laplacian over σ², and a Normal sum of standard deviation 0.05 · 4
    laplacian = np.diag(path.sum(axis=0)) - path

    def given(sigma):
        V = np.zeros((len(sigma), 5, 5))
        V[:, 0, 0] = 1.0
        Q = stacked(sigma, lambda s: laplacian / s**2) + np.ones((4, 4)) / 0.2**2
        V[:, 1:, 1:] = np.linalg.inv(Q)
        return gaussian(np.column_stack([np.ones(4), np.eye(4)]), np.zeros(5), V, Y, 0.16 * np.eye(4))

    # PyMC leaves out the power of σ: of its density σ³ is missing
    def density(sigma):
        return norm(np.log(sigma), -0.5, 0.5) - np.log(sigma) + given(sigma)[0] + 3.0 * np.log(sigma)

    def further(sigma):
        _, m, V = given(sigma)
        return {"level": (m[:, 0], V[:, 0, 0]), "phi[2]": (m[:, 3], V[:, 3, 3])}

    truth = on_grid(density, {"sigma": positive(0.02, 30.0, 301)}, further)
    return Case(model, {"level": W, "sigma": H, "phi": H}, truth, draws=2000)


def function_of_time():
    """A Gaussian process in the basis of `pm.gp.HSGP`, of fixed length and a random height."""
    t = np.array([-1.0, -0.2, 0.5, 1.0])
    with pm.Model() as model:
        height = pm.HalfNormal("height", 1.5)
        gp = pm.gp.HSGP(m=[4], L=[2.0], cov_func=height**2 * pm.gp.cov.ExpQuad(1, ls=0.8))
        f = gp.prior("f", X=t[:, None])
        pm.Normal("y", f, 0.4, observed=Y)

    # eigenfunctions of the Laplacian on (−2, 2) around the middle of the inputs, and the spectral density of the kernel
    omega = np.arange(1, 5) * np.pi / 4.0
    basis = np.sqrt(0.5) * np.sin(omega * (t[:, None] + 2.0))
    spectrum = np.sqrt(2.0 * np.pi) * 0.8 * np.exp(-0.5 * (0.8 * omega) ** 2)

    def given(height):
        V = stacked(height, lambda h: np.diag(h**2 * spectrum))
        return gaussian(basis, np.zeros(4), V, Y, 0.16 * np.eye(4))

    def further(height):
        _, m, V = given(height)
        return {f"f[{i}]": (m @ basis[i], np.einsum("i,nij,j->n", basis[i], V, basis[i])) for i in (0, 2)}

    def density(height):
        return given(height)[0] + stats.halfnorm(scale=1.5).logpdf(height)

    truth = on_grid(density, {"height": positive(1e-6, 12.0, 301)}, further)
    return Case(model, {"height": H, "f_hsgp_coeffs": W}, truth, draws=2000)


def two_levels():
    """Precisions of groups, whose mean is random, above a scale of another kind: several layers of exact draws."""
    y, group = np.array([0.9, -0.4, 1.8, 0.6, 0.2]), np.array([0, 0, 1, 1, 1])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 3.0, 2.0)
        tau = pm.Gamma("tau", 2.0, rate, shape=2)
        mu = pm.Normal("mu", 0.5, 1.0)
        pm.Normal("y", mu, tau=tau[group], observed=y)

    def given(a, b):
        S = np.zeros((len(a), 5, 5))
        for i, g in enumerate(group):
            S[:, i, i] = 1.0 / (a, b)[g]
        return gaussian(np.ones((5, 1)), np.full(1, 0.5), np.eye(1), y, S)

    def density(rate, a, b):
        log_p = stats.gamma.logpdf(rate, 3.0, scale=0.5) + given(a, b)[0]
        return log_p + sum(stats.gamma.logpdf(tau, 2.0, scale=1.0 / rate) for tau in (a, b))

    def further(rate, a, b):
        _, m, V = given(a, b)
        return {"mu": (m[:, 0], V[:, 0, 0])}

    axes = {"rate": positive(0.01, 15.0, 41), "tau[0]": positive(0.002, 80.0, 41), "tau[1]": positive(0.002, 80.0, 41)}
    return Case(model, {"rate": G, "tau": G, "mu": W}, on_grid(density, axes, further), draws=2000)


CASES = [
    centred,
    non_centred,
    zero_sum,
    measurement_error,
    horseshoe,
    correlated,
    several_targets,
    correlated_data,
    correlated_weights,
    neighbours,
    function_of_time,
    two_levels,
]
