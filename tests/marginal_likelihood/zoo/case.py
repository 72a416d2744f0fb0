"""A model of the zoo with the log probability of its data, known from elsewhere, and integration to know it by.

The truths are closed forms, sums over all allocations, or integrals of densities written out in NumPy, apart from PyMC
and from the package. What can be integrated out in closed form is, so that at most three dimensions are left to a grid.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import logsumexp


class Case(NamedTuple):
    """A model and the log probability of its data, with every constant."""

    model: pm.Model
    #: in nats
    truth: float
    #: what makes it hard
    hard: str
    #: standard error of the truth, where it is itself by simulation
    truth_error: float = 0.0
    #: a number that calls itself not reliable is an answer too
    may_flag: bool = False
    #: false: the number has no meaning beside those of other models, and this must be said
    comparable: bool = True


class Axis(NamedTuple):
    """Equally spaced points of a coordinate, and what they stand for: values with the log of their derivative."""

    values: np.ndarray
    log_weights: np.ndarray


def line(low: float, high: float, n: int = 161) -> Axis:
    """A parameter of the whole line that has its mass between two numbers."""
    x = np.linspace(low, high, n)
    return Axis(x, np.full(n, np.log(x[1] - x[0])))


def positive(low: float, high: float, n: int = 161) -> Axis:
    """A positive parameter, in equal steps of its logarithm."""
    u = np.linspace(np.log(low), np.log(high), n)
    return Axis(np.exp(u), u + np.log(u[1] - u[0]))


def between(low: float, high: float, n: int = 161, reach: float = 30.0) -> Axis:
    """A parameter between bounds, in equal steps of its log odds: the ends are reached, and a jump there is no harm."""
    u = np.linspace(-reach, reach, n)
    log_p, log_q = -np.logaddexp(0.0, -u), -np.logaddexp(0.0, u)
    return Axis(low + (high - low) * np.exp(log_p), np.log((high - low) * (u[1] - u[0])) + log_p + log_q)


def log_integral(log_density: Callable[..., np.ndarray], *axes: Axis, within: float = 1e-4) -> float:
    """Log of the integral of exp(log_density) by the trapezoidal rule; checked by the rule on every second point.

    `log_density` takes one vector per axis, all points of the grid in a row. The rule converges faster than any power
    of the spacing where the density is smooth and dies out before the ends.
    """
    mesh = [v.ravel() for v in np.meshgrid(*(axis.values for axis in axes), indexing="ij")]
    weights = sum(np.meshgrid(*(axis.log_weights for axis in axes), indexing="ij"))
    cube = np.nan_to_num(log_density(*mesh), nan=-np.inf).reshape(weights.shape) + weights
    fine = logsumexp(cube)
    for k in range(cube.ndim):
        ends = logsumexp(np.moveaxis(cube, k, 0)[[0, -1]]) - fine
        assert ends < np.log(within), f"axis {k} is too short: {np.exp(ends):.1e} of the mass at its ends"
        coarse = logsumexp(np.moveaxis(cube, k, 0)[::2]) + np.log(2.0)
        assert abs(fine - coarse) < within, f"axis {k} is too coarse: {fine:.6f} and {coarse:.6f}"
    return float(fine)


def log_normal(x, mean, sd):
    """Log density of a Normal, without the checks of SciPy's, which take longer than it."""
    return -0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)


def log_joint_normal(y: np.ndarray, mean: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Log density of y ~ N(mean, V) for one covariance or a stack of them."""
    L = np.linalg.cholesky(V)
    r = np.broadcast_to((y - mean)[..., None], (*V.shape[:-1], 1))
    z = np.linalg.solve(L, r)[..., 0]
    log_det = 2.0 * np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * (z**2).sum(axis=-1) - 0.5 * log_det - 0.5 * len(y) * np.log(2.0 * np.pi)


def in_parts(function: Callable[..., np.ndarray], *arrays: np.ndarray, size: int = 2000) -> np.ndarray:
    """A function of vectors, called with so many elements at a time, where all at once would take too much memory."""
    steps = range(0, len(arrays[0]), size)
    return np.concatenate([function(*(a[i : i + size] for a in arrays)) for i in steps])


def effects(log_likelihood: Callable[[np.ndarray], np.ndarray], mean, sd, n: int = 81, reach: float = 9.0):
    """Σ_j log ∫ L_j(θ) p(θ) dθ, where θ = mean + sd z and z is standard normal.

    `log_likelihood` maps θ (..., 1) to (..., J). `mean` and `sd` are vectors of the same length, and so is the result.
    """
    z = np.linspace(-reach, reach, n)
    log_p = log_normal(z, 0.0, 1.0) + np.log(z[1] - z[0])
    theta = np.asarray(mean)[:, None, None] + np.asarray(sd)[:, None, None] * z[:, None]
    return logsumexp(log_likelihood(theta) + log_p[:, None], axis=1).sum(axis=1)


def likelihood(log_density: Callable, *parameters) -> None:
    """Multiply the density of the model of the context by a function of its variables, as a likelihood.

    What is observed is a nought that stands for data; the prior stays proper, which a Potential would not promise.
    """

    def logp(value, *arguments):
        return log_density(*arguments) + 0.0 * value

    inputs = ",".join("()" if p.ndim == 0 else f"(k{i})" for i, p in enumerate(parameters))
    pm.CustomDist("data", *parameters, logp=logp, signature=f"{inputs}->()", observed=0.0)


def log_add(*terms):
    """log Σ exp of PyTensor expressions."""
    return pt.logsumexp(pt.stack(terms))
