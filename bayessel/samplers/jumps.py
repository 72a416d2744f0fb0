"""Jumps: proposals from a Student t fitted while tuning, at the price of one density and no gradient.

A posterior that is nearly Gaussian needs no trajectories: with q* from a t distribution of location μ and scale LLᵀ,
accepted with probability min(1, π(q*) t(q) / (π(q) t(q*))), every acceptance is an independent draw. The tails of the
t are heavier than those of the posterior, as they must be: where π/t is large a chain of such jumps stays long
(Mengersen & Tweedie 1996). A momentum, if there is one, is left alone: it is independent of q.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, isfinite, log1p, sqrt
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray

#: degrees of freedom of the t; on a skewed target 20 give a third of the effective draws that 6 give, and on a
#: target that is nearly Gaussian a quarter more
DEGREES = 6.0


class Proposal(NamedTuple):
    """Location μ, factor L of the scale matrix, and its inverse."""

    location: FloatArray
    factor: FloatArray
    whiten: FloatArray


class Info(NamedTuple):
    """What a human wants to see of one jump."""

    accepted: bool
    acceptance_rate: float


def proposal(location: FloatArray, factor: FloatArray) -> Proposal:
    """Return the proposal with what every jump needs of it."""
    return Proposal(location, factor, np.linalg.inv(factor))


def log_density(squares: float, size: int) -> float:
    """Log density of the t, without constants, at ‖L⁻¹(q − μ)‖² = `squares`."""
    return -0.5 * (DEGREES + size) * log1p(squares / DEGREES)


def jump(
    position: FloatArray,
    logp: float,
    value: Callable[[FloatArray], float],
    how: Proposal,
    rng: np.random.Generator,
) -> tuple[FloatArray, float, Info]:
    """Return position and log density after one jump, the old ones if it is rejected."""
    z = how.whiten @ (position - how.location)
    size = z.size
    fresh = rng.standard_normal(size) * sqrt(DEGREES / rng.chisquare(DEGREES))
    there = how.location + how.factor @ fresh
    new = float(value(there))
    log_ratio = (new - log_density(float(fresh @ fresh), size)) - (logp - log_density(float(z @ z), size))
    u = rng.random()
    if not isfinite(new):
        return position, logp, Info(False, 0.0)
    rate = exp(min(log_ratio, 0.0))
    return (there, new, Info(True, rate)) if u < rate else (position, logp, Info(False, rate))
