"""Jumps: proposals from a Student t fitted while tuning, at the price of one density and no gradient.

A posterior that is nearly Gaussian needs no trajectories: with q* from a t distribution of location μ and scale LLᵀ,
accepted with probability min(1, π(q*) t(q) / (π(q) t(q*))), every acceptance is an independent draw. The tails of the
t are heavier than those of the posterior, as they must be: where π/t is large a chain of such jumps stays long
(Mengersen & Tweedie 1996). A momentum, if there is one, is left alone: it is independent of q.

From states that are hard to leave a Hamiltonian update leads out. To spend gradients there alone, it is confined to
A = {log π/t > c}: a trajectory with a state outside is rejected, as if the density were nil there, and outside A there
is no update. Within A that leaves π as it is, and outside nothing happens, so π stays as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, inf, isfinite, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray

#: degrees of freedom of the t; on a skewed target 20 give a third of the effective draws that 6 give, and on a
#: target that is nearly Gaussian in twelve dimensions half as many again
DEGREES = (6.0, 20.0)
#: lighter tails are taken where the stay is shorter by this factor: what they miss is not among the jumps it is told by
LIGHTER = 0.8
#: states that a jump leaves with less than this probability are hard to leave
HARD = 0.3


class Proposal(NamedTuple):
    """Location μ, factor L of the scale matrix, its inverse, and the degrees of freedom."""

    location: FloatArray
    factor: FloatArray
    whiten: FloatArray
    degrees: float


class End(NamedTuple):
    """What is known of one end of a jump: log π/t, and ‖L⁻¹(q − μ)‖²."""

    excess: float
    squares: float


class JumpInfo(NamedTuple):
    """What a human wants to see of one jump, with where it began and where it went."""

    accepted: bool
    acceptance_rate: float
    here: End
    there: End


class Choice(NamedTuple):
    """Degrees of freedom, jumps per independent draw with them, and log π/t beyond which states are hard to leave."""

    degrees: float
    stay: float
    bound: float


def proposal(location: FloatArray, factor: FloatArray, degrees: float = DEGREES[0]) -> Proposal:
    """Return the proposal with what every jump needs of it."""
    return Proposal(location, factor, np.linalg.inv(factor), degrees)


def log_density(squares: float, size: int, degrees: float = DEGREES[0]) -> float:
    """Log density of the t, without constants, at ‖L⁻¹(q − μ)‖² = `squares`."""
    return -0.5 * (degrees + size) * log1p(squares / degrees)


def excess(position: FloatArray, logp: float, how: Proposal) -> End:
    """log π/t at a position whose log density is known; −∞ where that is not finite."""
    z = how.whiten @ (position - how.location)
    squares = float(z @ z)
    return End(logp - log_density(squares, z.size, how.degrees) if isfinite(logp) else -inf, squares)


def jump(
    position: FloatArray,
    logp: float,
    value: Callable[[FloatArray], float],
    how: Proposal,
    rng: np.random.Generator,
) -> tuple[FloatArray, float, JumpInfo]:
    """Return position and log density after one jump, the old ones if it is rejected."""
    fresh = rng.standard_normal(position.size) * sqrt(how.degrees / rng.chisquare(how.degrees))
    new_position = how.location + how.factor @ fresh
    new = float(value(new_position))
    here, there = excess(position, logp, how), excess(new_position, new, how)
    rate = exp(min(there.excess - here.excess, 0.0))
    accepted = rng.random() < rate
    info = JumpInfo(accepted, rate, here, there)
    return (new_position, new, info) if accepted else (position, logp, info)


def leave(here: Sequence[float], there: Sequence[float], weights: FloatArray | None = None) -> FloatArray:
    """Probabilities to leave states at one jump, from log π/t of the states and of (weighted) proposals."""
    with np.errstate(over="ignore"):
        rates = np.minimum(np.exp(np.subtract.outer(np.array(there), np.array(here))), 1.0)
    return np.asarray(np.average(rates, axis=0, weights=weights))


def stay(here: Sequence[float], there: Sequence[float], weights: FloatArray | None = None) -> float:
    """Jumps per independent draw, from log π/t of states of the chain and of proposals: the mean of 2/a − 1.

    a is the probability to leave a state. All states are compared with all proposals, so that one state in a hundred
    that is hard to leave shows in a hundred jumps, where a mean rate of acceptance would not see it.
    """
    return float(np.mean(2.0 / np.maximum(leave(here, there, weights), 1e-300) - 1.0))


def choose(here: Sequence[End], there: Sequence[End], size: int) -> Choice:
    """What to jump by, from jumps whose proposals had the first of `DEGREES`: others where the stay is far shorter."""
    found: list[Choice] = []
    for degrees in DEGREES:
        own, other = ([_converted(end, size, degrees) for end in ends] for ends in (here, there))
        ratios = [log_density(end.squares, size, degrees) - log_density(end.squares, size) for end in there]
        weights = np.exp(np.array(ratios) - max(ratios))
        found.append(Choice(degrees, stay(own, other, weights), _bound(other, weights)))
    return min(found, key=lambda choice: choice.stay * (1.0 if choice.degrees == DEGREES[0] else 1.0 / LIGHTER))


def _converted(end: End, size: int, degrees: float) -> float:
    """log π/t for a t of other degrees than the first."""
    return end.excess + log_density(end.squares, size) - log_density(end.squares, size, degrees)


def _bound(there: Sequence[float], weights: FloatArray) -> float:
    """log π/t of states that are left with probability `HARD`; −∞ where no proposal has a density."""
    high = max(there) - log(HARD)
    if not isfinite(high):
        return -inf
    low = high
    while leave([low], there, weights)[0] < HARD and high - low < 1e3:
        low -= 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if leave([middle], there, weights)[0] < HARD else (middle, high)
    return high
