r"""Integrals of a likelihood over a normal latent value, with their derivatives, by quadrature.

.. math:: \log Z = \log \int p(t|f)\,N(f|m,v)\,df,\quad
    \frac{\partial\log Z}{\partial m} = \tilde E[s],\quad
    -\frac{\partial^2\log Z}{\partial m^2} = \tilde E[c] - \tilde{\mathrm{Var}}[s]

with s and c slope and curvature of log p(t|f) and the tilted expectations those of the integrand. Written so, nothing
cancels where a row says little.

For integrands with one peak. Either side of the peak is a Gauss-Legendre rule that ends where the integrand has fallen
by e⁻³⁸, however unlike the sides are: an edge of the likelihood on one, a tail of the normal on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._formulas import log_normal

#: nodes on either side of the peak at least and at most, and for each unit of its length: likelihoods have features of
#: about one unit of f, logarithms that they are
LEAST_NODES, MOST_NODES, NODES_PER_UNIT = 40, 240, 2.5
#: the integrand is followed until it has fallen by this many nats
FALL = 38.0
_NEWTON_STEPS, _DOUBLINGS, _HALVINGS = 100, 60, 12
#: a peak is found to this share of the integrand's width
_CLOSE = 1e-6


class Tilted(NamedTuple):
    """log Z (n,), its slope and curvature (minus the second derivative) in the mean (n,), its slopes in φ (k, n)."""

    log_z: FloatArray
    slope: FloatArray
    curvature: FloatArray
    parameters: FloatArray


def tilted_by_quadrature(
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]],
    mean: FloatArray,
    variance: FloatArray,
    parameters: Callable[[FloatArray], FloatArray] | None = None,
) -> Tilted:
    """Integrals over N(mean, variance), rows (n,).

    Parameters
    ----------
    derivatives
        f (n, S) -> log p, its slope and its curvature, (n, S) each; concave.
    parameters
        f (n, S) -> derivatives of log p by the parameters, (k, n, S).
    """
    mean, variance = (np.array(each, dtype=np.float64)[:, None] for each in (mean, variance))
    nodes, weights = _nodes(derivatives, mean, variance)
    value, slope, curvature = derivatives(nodes)
    logs = value + log_normal(nodes - mean, variance) + weights
    log_z = np.asarray(logsumexp(logs, axis=1))
    share = np.exp(logs - log_z[:, None])
    slope = np.where(share > 0.0, slope, 0.0)
    first = (share * slope).sum(axis=1)
    second = (share * (curvature - (slope - first[:, None]) ** 2)).sum(axis=1)
    own = np.zeros((0, len(mean)))
    if parameters is not None:
        own = (share * parameters(nodes)).sum(axis=2)
    return Tilted(log_z, first, second, own)


def _nodes(
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]],
    mean: FloatArray,
    variance: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Nodes (n, S) and logarithms of their weights."""
    peak, width = _peak(derivatives, mean, variance)

    def height(f: FloatArray) -> FloatArray:
        return np.asarray(derivatives(f)[0] - 0.5 * (f - mean) ** 2 / variance)

    top = height(peak)
    places, logs = [], []
    for side in (-1.0, 1.0):
        reach = _reach(lambda r, side=side: top - height(peak + side * r), np.sqrt(2.0 * FALL) * width)  # type: ignore[misc]
        count = int(np.clip(NODES_PER_UNIT * reach.max(), LEAST_NODES, MOST_NODES))
        x, w = _rule(count)
        places.append(peak + side * reach * x)
        logs.append(np.log(reach) + w)
    return np.hstack(places), np.hstack(logs)


@cache
def _rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes in (0, 1) and logarithms of their weights."""
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * (x + 1.0), np.log(0.5 * w)


def _peak(
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]],
    mean: FloatArray,
    variance: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Mode of the integrand by Newton's method, kept between bounds that close in, and its width there."""
    with np.errstate(over="ignore"):
        slope = derivatives(mean)[1]
        # the slope falls with f, so the mode lies between the mean and where that slope would take it
        ends = mean, mean + variance * slope
    low, high = np.minimum(*ends), np.maximum(*ends)
    f, moved = np.array(mean), np.full_like(mean, np.inf)
    for _ in range(_NEWTON_STEPS):
        _, slope, curvature = derivatives(f)
        gradient, bend = slope - (f - mean) / variance, curvature + 1.0 / variance
        low, high = np.where(gradient > 0.0, f, low), np.where(gradient < 0.0, f, high)
        new = f + gradient / bend
        # steps that do not shrink (on the far side of an exponential each has length one) are replaced by halving
        slow = (np.abs(new - f) > 0.5 * moved) | (new < low) | (new > high)
        new = np.where(slow, 0.5 * (low + high), new)
        moved, f = np.abs(new - f), new
        if np.all(moved * np.sqrt(bend) <= _CLOSE):
            break
    return f, 1.0 / np.sqrt(derivatives(f)[2] + 1.0 / variance)


def _reach(fallen: Callable[[FloatArray], FloatArray], reach: FloatArray) -> FloatArray:
    """How far from the peak the integrand has fallen by at least `FALL`, and not by much more."""
    low = np.zeros_like(reach)
    for _ in range(_DOUBLINGS):
        near = fallen(reach) < FALL
        if not near.any():
            break
        low = np.where(near, reach, low)
        reach = np.where(near, 2.0 * reach, reach)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + reach)
        enough = fallen(middle) >= FALL
        low, reach = np.where(enough, low, middle), np.where(enough, middle, reach)
        if np.all(reach - low < 0.05 * reach):
            break
    return reach
