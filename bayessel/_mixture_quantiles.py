r"""Quantiles of mixtures of normal distributions, computed.

Halley's method on log F (log (1 − F) in the upper half), kept between bounds that close in: with
:math:`h = \log F(y) - \log q` the step is :math:`-h/h'` divided by :math:`1 - hh''/2h'^2`. It begins at the quantile of
a mixture of an eighth of the components, neighbours merged with their mean and variance, which costs an eighth.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr, ndtri

from bayessel._check import FloatArray

#: components that are merged for a first look, and the fewest for that
_MERGED, _MANY = 8, 64
#: a last step was no longer than this many widths of the narrowest component: its cube is what is left
_CLOSE = 1e-4
_MOST_STEPS = 200
#: so many steps, and halving the bounds is quicker than steps of which the curvature leaves less than half
_CREEPING = 8
#: probabilities below this are found from logarithms
_TINY = 1e-250


def mixture_quantile(means: FloatArray, std: FloatArray, weights: FloatArray, level: float) -> FloatArray:
    """Quantiles (N,) at one probability, of means, standard deviations and weights (S, N), S > 1; weights sum to one.

    A quantile of a mixture lies between the smallest and the largest quantile of its components.
    """
    each = means + std * ndtri(level)
    low, high = each.min(axis=0), each.max(axis=0)
    if len(means) > _MANY:
        found = mixture_quantile(*_merged(means, std, weights), level)
        y = np.clip(found, low, high)
    else:
        y = np.clip((weights * each).sum(axis=0), low, high)
    side, goal = (1.0, np.log(level)) if level <= 0.5 else (-1.0, np.log1p(-level))
    close = _CLOSE * std.min(axis=0)
    left = np.arange(means.shape[1])
    for steps in range(_MOST_STEPS):
        if len(left) < means.shape[1]:
            part = means[:, left], std[:, left], weights[:, left]
        else:
            part = means, std, weights
        at = y[left]
        tail, ratio, bend = _tail(*part, at, side, bool(min(level, 1.0 - level) < _TINY))
        off = tail - goal
        above = side * off > 0.0
        low[left] = np.where(above, low[left], at)
        high[left] = np.where(above, at, high[left])
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            step = -off / ratio
            shorter = np.maximum(1.0 + 0.5 * step * bend / ratio, 0.5)
            step = step / shorter
        new = at + step
        # where steps leave the bounds, these are halved; between peaks far apart every point may be the median, and
        # steps that the curvature makes short, each as long as the one before, would take hundreds
        inside = (new > low[left]) & (new < high[left]) & ((steps < _CREEPING) | (shorter < 2.0))
        new = np.where(inside, new, 0.5 * (low[left] + high[left]))
        new = np.where(tail == goal, at, new)
        moved = np.abs(new - at)
        y[left] = new
        done = (inside & (moved <= close[left])) | (moved <= 4.0 * np.spacing(np.abs(new)))
        left = left[~done]
        if not len(left):
            break
    return y


def _tail(
    means: FloatArray, std: FloatArray, weights: FloatArray, y: FloatArray, side: float, tiny: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log probability beyond y on one side, and its first and second derivatives by y."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        z = (y - means) / std
        bells = np.exp(-0.5 * z * z) * (weights / (std * np.sqrt(2.0 * np.pi)))
        if tiny:
            tail = np.asarray(logsumexp(log_ndtr(side * z), b=weights, axis=0))
            total = np.exp(tail)
        else:
            total = (weights * ndtr(side * z)).sum(axis=0)
            tail = np.log(total)
        ratio = side * bells.sum(axis=0) / total
        bend = -side * (bells * z / std).sum(axis=0) / total - ratio**2
    return tail, ratio, bend


def _merged(means: FloatArray, std: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Neighbouring components as one with their mean and variance."""
    begins = np.arange(0, len(means), _MERGED)
    total = np.add.reduceat(weights, begins, axis=0)
    share = np.where(total > 0.0, total, 1.0)
    mean = np.add.reduceat(weights * means, begins, axis=0) / share
    repeated = np.repeat(mean, _MERGED, axis=0)[: len(means)]
    variance = np.add.reduceat(weights * (std**2 + (means - repeated) ** 2), begins, axis=0) / share
    # components of no weight
    nothing = ~(total > 0.0)
    variance = np.where(nothing, std[begins] ** 2, variance)
    return np.where(nothing, means[begins], mean), np.sqrt(variance), total
