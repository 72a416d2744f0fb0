"""A model of the zoo with what must hold for it, and the truth of its posterior by numerical integration.

The densities are written out in NumPy, apart from PyMC: what is integrated shares nothing with what is sampled but the
numbers. Variables that enter linearly are integrated out in closed form first, so that few dimensions are left.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pymc as pm

#: What an entry of `Case.expected` may say, beside names of PyMC's step methods: what split="conjugate" leads to.
G, W, P, H = "GammaPrecisionGibbs", "GaussianWeightsGibbs", "PolyaGammaGibbs", "PersistentHMC"

#: mean and sd of scalar quantities: "mu", "beta[0]", "log s", "Omega[0,1]"
type Truth = dict[str, tuple[float, float]]


class Case(NamedTuple):
    """A model, the steps of its variables, and a function power -> truth.

    The truth is that of the posterior density to a power: 1 is the posterior, others are wrong and must be seen.
    """

    model: pm.Model
    expected: dict[str, str]
    truth: Callable[[float], Truth]
    #: draws per chain; more where they are correlated
    draws: int = 1000
    #: has a part too narrow for HMC as it is tuned: it may be missed, but then divergences must say so
    narrow: bool = False


class Refused(NamedTuple):
    """A model that cannot be sampled, and words of the error that says so."""

    model: pm.Model
    words: str


class Axis(NamedTuple):
    """Points of one parameter, the logarithm of their weights, and how the quantity is called."""

    points: np.ndarray
    log_weights: np.ndarray
    prefix: str


def line(low: float, high: float, n: int = 81) -> Axis:
    """A parameter of the whole line that has its mass between two numbers."""
    return Axis(np.linspace(low, high, n), np.zeros(n), "")


def positive(low: float, high: float, n: int = 81) -> Axis:
    """A positive parameter, in equal steps of its logarithm, of which mean and sd are compared."""
    u = np.linspace(np.log(low), np.log(high), n)
    return Axis(np.exp(u), u, "log ")


def between(low: float = 0.0, high: float = 1.0, n: int = 81, reach: float = 14.0) -> Axis:
    """A parameter between bounds, in equal steps of its log odds: no mass is lost at an end."""
    u = np.linspace(-reach, reach, n)
    p = 1.0 / (1.0 + np.exp(-u))
    return Axis(low + (high - low) * p, np.log(p) + np.log1p(-p), "")


def states(values) -> Axis:
    """A discrete parameter."""
    return Axis(np.asarray(values, dtype=float), np.zeros(len(values)), "")


#: further quantities at each point of the grid: (mean, variance) given the parameters there
type Conditional = Callable[..., Mapping[str, tuple[np.ndarray, np.ndarray | float]]]


def on_grid(
    log_density: Callable[..., np.ndarray], axes: Mapping[str, Axis], further: Conditional | None = None
) -> Callable[[float], Truth]:
    """Power -> mean and sd of each axis under exp(power · log_density), by the trapezoidal rule.

    Axes whose names begin with an underscore are only integrated over. `log_density` and `further` take one vector per
    axis, all points of the grid in a row. The rule is exact to many digits where the density is smooth and dies out
    before the ends, and that it does is tested.
    """

    def truth(power: float = 1.0) -> Truth:
        mesh = [v.ravel() for v in np.meshgrid(*(axis.points for axis in axes.values()), indexing="ij")]
        weights = [v.ravel() for v in np.meshgrid(*(axis.log_weights for axis in axes.values()), indexing="ij")]
        with np.errstate(all="ignore"):
            log_p = power * np.nan_to_num(log_density(*mesh), nan=-np.inf) + sum(weights)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        found: Truth = {}
        cube = p.reshape([len(axis.points) for axis in axes.values()])
        for k, (name, axis) in enumerate(axes.items()):
            q = cube.sum(axis=tuple(j for j in range(len(axes)) if j != k))
            smooth = axis.log_weights.any() or len(np.unique(np.round(np.diff(axis.points), 9))) == 1
            if smooth and len(q) > 30 and power >= 1.0:
                assert max(q[0], q[-1]) < 1e-5, f"{name}: mass {q[0]:.1e}, {q[-1]:.1e} at the ends of its axis"
            x = np.log(axis.points) if axis.prefix else axis.points
            if not name.startswith("_"):
                found[axis.prefix + name] = moments(q, x, 0.0)
        for name, (mean, variance) in (further(*mesh) if further else {}).items():
            found[name] = moments(p, mean, variance)
        return found

    return truth


def moments(p: np.ndarray, mean: np.ndarray, variance: np.ndarray | float) -> tuple[float, float]:
    """Mean and sd of a mixture with weights p."""
    with np.errstate(all="ignore"):
        centre = float(np.sum(np.where(p > 0.0, p * mean, 0.0)))
        spread = np.sum(np.where(p > 0.0, p * ((mean - centre) ** 2 + variance), 0.0))
    return centre, float(np.sqrt(spread))


def gaussian(
    A: np.ndarray, m: np.ndarray, V: np.ndarray, y: np.ndarray, S: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log evidence, posterior mean and covariance of x ~ N(m, V) seen in y ~ N(Ax, S); arrays may be stacked."""
    C = A @ V @ np.swapaxes(A, -1, -2) + S
    r = (y - (A @ m[..., None])[..., 0])[..., None]
    gain = V @ np.swapaxes(A, -1, -2) @ np.linalg.inv(C)
    quadratic = (np.swapaxes(r, -1, -2) @ np.linalg.solve(C, r))[..., 0, 0]
    log_evidence = -0.5 * (np.linalg.slogdet(2.0 * np.pi * C)[1] + quadratic)
    return log_evidence, m + (gain @ r)[..., 0], V - gain @ A @ V


def stacked(values: np.ndarray, of) -> np.ndarray:
    """One matrix for each element of a vector."""
    return np.stack([of(v) for v in values])
