"""Models that look like something they are not, or are written in a way that hides what they are."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats

from tests.samplers.zoo.case import Case, G, H, P, W, gaussian, line, on_grid, positive

Y = np.array([0.7, -0.2, 1.6, 0.9])
norm = stats.norm.logpdf


def sampled_as_they_are():
    """Positive variables without their transforms: the exact draws write them as they are."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1.0)
        tau = pm.Gamma("tau", 3.0, 2.0, default_transform=None)
        pm.Normal("y", m, tau=tau, observed=Y)

    def density(m, tau):
        return norm(m) + stats.gamma.logpdf(tau, 3.0, scale=0.5) + sum(norm(v, m, tau**-0.5) for v in Y)

    return Case(
        model, {"m": W, "tau": G}, on_grid(density, {"m": line(-4.0, 5.0, 101), "tau": positive(0.03, 15.0, 101)})
    )


def ordered_with_a_scale():
    """Means in order, by a transform, with a random scale: no block of Normals, but the scale is conjugate."""
    with pm.Model() as model:
        s = pm.InverseGamma("s", 3.0, 2.0)
        m = pm.Normal("m", 0.0, s, shape=2, transform=pm.distributions.transforms.ordered, initval=[-0.5, 0.5])
        pm.Normal("y", m[np.array([0, 0, 1, 1])], 0.8, observed=Y)

    # PyMC divides by no probability that they are in order
    def density(s, a, gap):
        log_p = stats.invgamma.logpdf(s, 3.0, scale=2.0) + norm(a, 0.0, s) + norm(a + gap, 0.0, s)
        return log_p + sum(norm(v, a + gap * (i > 1), 0.8) for i, v in enumerate(Y))

    def further(s, a, gap):
        return {"m[1]": (a + gap, 0.0)}

    axes = {"s": positive(0.08, 60.0, 61), "m[0]": line(-4.0, 4.0, 81), "_gap": positive(1e-5, 8.0, 101)}
    return Case(model, {"s": G, "m": H}, on_grid(density, axes, further), draws=2000)


def cut_off_prior():
    """A prior cut off at zero, at a mean that is not zero: what it is divided by depends on its scale."""
    with pm.Model() as model:
        s = pm.InverseGamma("s", 3.0, 2.0)
        m = pm.TruncatedNormal("m", 0.5, s, lower=0.0)
        pm.Normal("y", m, 1.0, observed=Y)

    def density(s, m):
        log_p = stats.invgamma.logpdf(s, 3.0, scale=2.0) + norm(m, 0.5, s) - stats.norm.logsf(0.0, 0.5, s)
        return log_p + sum(norm(v, m, 1.0) for v in Y)

    axes = {"s": positive(0.05, 100.0, 121), "m": positive(1e-6, 8.0, 301)}
    return Case(model, {"s": H, "m": H}, on_grid(density, axes))


def half_normal_children():
    """A scale above HalfNormal and Laplace variables, which are no children that the finder knows."""
    with pm.Model() as model:
        s = pm.InverseGamma("s", 3.0, 2.0)
        size = pm.HalfNormal("size", s)
        pm.Laplace("y", 0.0, size, observed=Y)

    def density(s, size):
        log_p = stats.invgamma.logpdf(s, 3.0, scale=2.0) + stats.halfnorm(scale=s).logpdf(size)
        return log_p + sum(stats.laplace.logpdf(v, 0.0, size) for v in Y)

    axes = {"s": positive(0.05, 100.0, 121), "size": positive(0.05, 20.0, 121)}
    return Case(model, {"s": H, "size": H}, on_grid(density, axes))


def logarithm_of_a_scale():
    """A Normal variable in the logarithm of a standard deviation, and another in the mean."""
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1.0)
        log_s = pm.Normal("log_s", 0.0, 0.7)
        pm.Normal("y", m, pt.exp(log_s), observed=Y)

    def density(m, log_s):
        return norm(m) + norm(log_s, 0.0, 0.7) + sum(norm(v, m, np.exp(log_s)) for v in Y)

    axes = {"m": line(-5.0, 5.0, 121), "log_s": line(-3.5, 4.0, 121)}
    return Case(model, {"m": W, "log_s": H}, on_grid(density, axes))


def whole_numbers():
    """Data, inputs and parameters of priors that are integers, or of single precision."""
    x, y = np.array([1, 2, 3, 5]), np.array([2, 3, 3, 6])
    with pm.Model() as model:
        slope = pm.Normal("slope", 1, 1)
        tau = pm.Gamma("tau", 2, np.float32(1.5))
        pm.Normal("y", x * slope + np.float32(0.5), tau=tau, observed=y)

    def density(slope, tau):
        log_p = norm(slope, 1.0) + stats.gamma.logpdf(tau, 2.0, scale=1 / 1.5)
        return log_p + sum(norm(v, slope * u + 0.5, tau**-0.5) for u, v in zip(x, y, strict=True))

    axes = {"slope": line(-1.0, 3.0, 161), "tau": positive(0.02, 25.0, 101)}
    return Case(model, {"slope": W, "tau": G}, on_grid(density, axes))


def far_from_zero():
    """Numbers of a million with a noise of a hundredth: no digit to lose in a sum of squares."""
    y = 1e6 + 0.01 * Y
    with pm.Model() as model:
        m = pm.Normal("m", 0.0, 1e7)
        s = pm.HalfNormal("s", 1.0)
        pm.Deterministic("off", (m - 1e6) / 0.01)
        pm.Normal("y", m, s, observed=y)

    # the prior of m is flat there: its slope over a hundredth is 1e-10
    around = np.sum((Y - Y.mean()) ** 2) * 1e-4

    def density(s):
        return stats.halfnorm.logpdf(s) - 3.0 * np.log(s) - 0.5 * around / s**2

    def further(s):
        return {"off": (np.full(len(s), Y.mean()), (s / 0.01) ** 2 / 4.0)}

    truth = on_grid(density, {"s": positive(2e-4, 6.0, 401)}, further)
    return Case(model, {"m": W, "s": G}, truth, draws=2000)


def table_of_precisions():
    """A column of precisions over a table of data, and a mean of each column, read backwards."""
    y = np.array([[0.4, 1.2], [-0.7, 1.0], [1.9, 0.1]])
    with pm.Model() as model:
        tau = pm.Gamma("tau", 3.0, 2.0, shape=(2, 1))
        m = pm.Normal("m", 0.0, 1.0, shape=2)
        pm.Normal("y", pt.stack([m[1], m[0]])[None, :], tau=tau[np.array([0, 1, 1])], observed=y)

    def given(a, b):
        S = np.zeros((len(a), 6, 6))
        for i in range(6):
            S[:, i, i] = 1.0 / (a if i < 2 else b)
        A = np.array([[0.0, 1.0], [1.0, 0.0]] * 3)
        return gaussian(A, np.zeros(2), np.eye(2), y.ravel(), S)

    def density(a, b):
        return given(a, b)[0] + sum(stats.gamma.logpdf(t, 3.0, scale=0.5) for t in (a, b))

    def further(a, b):
        _, m, V = given(a, b)
        return {f"m[{i}]": (m[:, i], V[:, i, i]) for i in range(2)}

    axes = {"tau[0,0]": positive(0.02, 20.0, 71), "tau[1,0]": positive(0.02, 20.0, 71)}
    return Case(model, {"tau": G, "m": W}, on_grid(density, axes, further))


def classes_and_numbers():
    """One weight in the log odds of classes and in the mean of numbers, the odds given by the probability."""
    x = np.array([-1.0, 0.3, 0.8, 1.5])
    t = np.array([0, 1, 0, 1])
    with pm.Model() as model:
        w = pm.Normal("w", 0.0, 1.0)
        tau = pm.Gamma("tau", 2.0, 1.0)
        pm.Bernoulli("t", p=pm.math.invlogit(w * x - 0.3), observed=t)
        pm.Normal("y", 0.5 * w, tau=tau, observed=Y)

    def density(w, tau):
        log_p = norm(w) + stats.gamma.logpdf(tau, 2.0) + sum(norm(v, 0.5 * w, tau**-0.5) for v in Y)
        return log_p + sum(-np.logaddexp(0.0, (1 - 2 * k) * (w * u - 0.3)) for u, k in zip(x, t, strict=True))

    axes = {"w": line(-4.5, 5.5, 121), "tau": positive(0.02, 25.0, 101)}
    return Case(model, {"w": P, "tau": G}, on_grid(density, axes), draws=2000)


def scale_of_two_kinds():
    """One precision of Normal data and rate of waiting times: both are its children, in the same power."""
    waits = np.array([0.3, 1.4])
    with pm.Model() as model:
        tau = pm.LogNormal("tau", 0.0, 0.8)
        pm.Normal("y", 0.5, tau=2.0 * tau, observed=Y)
        pm.Exponential("wait", tau / 3.0, observed=waits)

    def density(tau):
        log_p = norm(np.log(tau), 0.0, 0.8) - np.log(tau) + sum(norm(v, 0.5, (2.0 * tau) ** -0.5) for v in Y)
        return log_p + sum(np.log(tau / 3.0) - tau / 3.0 * v for v in waits)

    return Case(model, {"tau": G}, on_grid(density, {"tau": positive(0.02, 20.0, 301)}))


CASES = [
    sampled_as_they_are,
    ordered_with_a_scale,
    cut_off_prior,
    half_normal_children,
    logarithm_of_a_scale,
    whole_numbers,
    far_from_zero,
    table_of_precisions,
    classes_and_numbers,
    scale_of_two_kinds,
]
