"""One update of `horowitz.transition` without windows, in place, for compiled loops.

The same arithmetic with arrays that are written to instead of made: of a small density, making them takes longer than
the density itself.
"""

from __future__ import annotations

from math import exp, inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray
from bayessel.samplers.compiled_density import LogDensity, evaluate
from bayessel.samplers.horowitz import DIVERGENCE, accepts, advance, fresh_uniform, rescale


class UpdateSettings(NamedTuple):
    """Those of `horowitz.HorowitzSettings` that are numbers."""

    n_leapfrog: int
    persistence: float
    delta: float
    jitter: float


@register_jitable
def update_in_place(
    position: FloatArray,
    momentum: FloatArray,
    gradient: FloatArray,
    logp: float,
    v: float,
    settings: UpdateSettings,
    step: FloatArray,
    log_density: LogDensity,
    rng: np.random.Generator,
    scratch: FloatArray,
) -> tuple[float, float, bool, float, bool, int]:
    """One update; the arrays are changed. Log density, v, whether accepted, its rate, whether diverging, gradients."""
    q, p, turned = scratch[0], scratch[1], scratch[2]
    factor = 1.0
    if settings.jitter > 0.0:
        factor += settings.jitter * fresh_uniform(rng)
    v = advance(v, settings.delta, rng) if settings.delta > 0.0 else fresh_uniform(rng)
    size = len(q)
    for i in range(size):
        q[i], p[i] = position[i], momentum[i]
    there, slope = logp, gradient
    n_gradients = 0
    while n_gradients < settings.n_leapfrog:
        _kick(p, 0.5 * factor, step, slope, turned)
        _drift(q, factor, step, p, turned)
        there, slope = evaluate(log_density, q)
        n_gradients += 1
        _kick(p, 0.5 * factor, step, slope, turned)
        if not isfinite(there):
            break
    log_ratio = _energy(momentum, logp) - _energy(p, there)
    diverging = not log_ratio >= -DIVERGENCE
    accepted = not (log_ratio < -DIVERGENCE) and accepts(v, log_ratio)
    keep, rest = settings.persistence, sqrt(1.0 - settings.persistence * settings.persistence)
    if accepted:
        v, logp = rescale(v, log_ratio), there
        for i in range(size):
            position[i], gradient[i] = q[i], slope[i]
            momentum[i] = keep * p[i] + rest * rng.standard_normal()
    else:
        for i in range(size):
            momentum[i] = rest * rng.standard_normal() - keep * momentum[i]
    return logp, v, accepted, exp(min(log_ratio, 0.0)), diverging, n_gradients


@register_jitable
def _kick(momentum: FloatArray, factor: float, step: FloatArray, gradient: FloatArray, turned: FloatArray) -> None:
    if step.ndim == 1:
        for i in range(len(momentum)):
            momentum[i] += factor * step[i] * gradient[i]
    else:
        np.dot(step.T, gradient, turned)
        for i in range(len(momentum)):
            momentum[i] += factor * turned[i]


@register_jitable
def _drift(position: FloatArray, factor: float, step: FloatArray, momentum: FloatArray, turned: FloatArray) -> None:
    if step.ndim == 1:
        for i in range(len(position)):
            position[i] += factor * step[i] * momentum[i]
    else:
        np.dot(step, momentum, turned)
        for i in range(len(position)):
            position[i] += factor * turned[i]


@register_jitable
def _energy(momentum: FloatArray, logp: float) -> float:
    total = 0.0
    for one in momentum:
        total += one * one
    value = 0.5 * total - logp
    return value if isfinite(value) else inf
