"""Jumps: proposals from a Student t fitted while tuning, at the price of one density and no gradient.

A posterior that is nearly Gaussian needs no trajectories: with q* from a t distribution of location μ and scale LLᵀ,
accepted with probability min(1, π(q*) t(q) / (π(q) t(q*))), every acceptance is an independent draw. The tails of the
t are heavier than those of the posterior, as they must be: where π/t is large a chain of such jumps stays long
(Mengersen & Tweedie 1996). A momentum, if there is one, is left alone: it is independent of q.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, isfinite, log1p, sqrt
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


class JumpInfo(NamedTuple):
    """What a human wants to see of one jump, with log π/t where it began and where it went."""

    accepted: bool
    acceptance_rate: float
    here: float
    there: float


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
) -> tuple[FloatArray, float, JumpInfo]:
    """Return position and log density after one jump, the old ones if it is rejected."""
    z = how.whiten @ (position - how.location)
    size = z.size
    fresh = rng.standard_normal(size) * sqrt(DEGREES / rng.chisquare(DEGREES))
    there = how.location + how.factor @ fresh
    new = float(value(there))
    excess = logp - log_density(float(z @ z), size)
    excess_there = new - log_density(float(fresh @ fresh), size) if isfinite(new) else -inf
    rate = exp(min(excess_there - excess, 0.0))
    accepted = rng.random() < rate
    info = JumpInfo(accepted, rate, excess, excess_there)
    return (there, new, info) if accepted else (position, logp, info)


def stay(here: Sequence[float], there: Sequence[float]) -> float:
    """Jumps per independent draw, from log π/t of states of the chain and of proposals: the mean of 2/a − 1.

    a is the probability to leave a state. All states are compared with all proposals, so that one state in a hundred
    that is hard to leave shows in a hundred jumps, where a mean rate of acceptance would not see it.
    """
    with np.errstate(over="ignore"):
        leave = np.minimum(np.exp(np.subtract.outer(np.array(there), np.array(here))), 1.0).mean(axis=0)
        return float(np.mean(2.0 / np.maximum(leave, 1e-300) - 1.0))
