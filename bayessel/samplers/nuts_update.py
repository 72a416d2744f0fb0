"""One transition of the No-U-Turn sampler, in place: multinomial, as Stan does it.

A trajectory grows by doubling, each time forwards or backwards by a toss, until it turns back, diverges or has doubled
`max_depth` times; the next state is one of its states, taken in proportion to exp(−H), and of two halves rather the
later (Betancourt 2017, arXiv 1701.02434, A.3).

A stretch of states turns back where the sum ρ of its momenta, which is about the way travelled, points against the
momentum at one of its ends. That is asked of every stretch whose halves were joined, and also of each half with the
neighbouring state of the other: a trajectory of one period would else look straight to its own halves. Momenta are
whitened (see `leapfrog`), so the products are plain ones, whatever the mass, and read the same in both directions.

The stretches are joined as a binary counter carries: after leaf k of a doubling, one stretch for each bit of k that is
set waits for its neighbour, so nothing recurs and all room is made once. A candidate is drawn leaf by leaf, each with
its share of the weight so far.

These functions run as they are, and inside compiled loops.
"""

from __future__ import annotations

from math import exp, inf, isfinite, log1p
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray
from bayessel._compiled import compiled_as
from bayessel.samplers.compiled_density import LogDensity, evaluate
from bayessel.samplers.horowitz import DIVERGENCE, fresh_momentum


class TreeRoom(NamedTuple):
    """Room for one transition.

    Attributes
    ----------
    positions, momenta, slopes : array of shape (2, n)
        Both ends of the trajectory, the earlier first; slopes are gradients times the step, Sᵀ∇.
    first, last, total : array of shape (depths + 1, n)
        Momenta of stretches: at the end that was made first, at the other, and summed. The stretch of 2ʲ states that
        waits for a neighbour is in row j + 1; row 0 is the newest state.
    whole, joint, spare : array of shape (n,)
        Sum of all momenta; momentum at the end that grows, before it grew; for products.
    candidate, gradient : array of shape (n,)
        State drawn from what a doubling has added.
    """

    positions: FloatArray
    momenta: FloatArray
    slopes: FloatArray
    first: FloatArray
    last: FloatArray
    total: FloatArray
    whole: FloatArray
    joint: FloatArray
    spare: FloatArray
    candidate: FloatArray
    gradient: FloatArray


class TreeInfo(NamedTuple):
    """What a human wants to see of one transition; `acceptance_rate` is the mean over its new states."""

    acceptance_rate: float
    n_gradients: int
    depth: int
    diverging: bool
    cut: bool


class Growth(NamedTuple):
    """Of one doubling: whether it is whole, log weight, candidate's log density and energy, summed rates, gradients."""

    whole: bool
    diverging: bool
    log_weight: float
    logp: float
    energy: float
    rates: float
    n_gradients: int


@register_jitable
def tree_room(size: int, max_depth: int) -> TreeRoom:
    """Room for trajectories that double so often."""
    ends, rows = (2, size), (max_depth + 1, size)
    return TreeRoom(
        np.empty(ends),
        np.empty(ends),
        np.empty(ends),
        np.empty(rows),
        np.empty(rows),
        np.empty(rows),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
    )


@register_jitable
def nuts_in_place(
    position: FloatArray,
    gradient: FloatArray,
    logp: float,
    step: FloatArray,
    log_density: LogDensity,
    max_depth: int,
    rng: np.random.Generator,
    room: TreeRoom,
) -> tuple[float, float, TreeInfo]:
    """One transition; position and gradient are changed. Log density, energy of the new state, information."""
    momentum = fresh_momentum(rng, len(position))
    start = total_energy(momentum, logp)
    for side in range(2):
        copy(room.positions[side], position)
        copy(room.momenta[side], momentum)
        whiten(room.slopes[side], step, gradient)
    copy(room.whole, momentum)
    energy, log_weight, rates, n_gradients, depth = start, 0.0, 0.0, 0, 0
    diverging, ended = False, False
    while depth < max_depth and not ended:
        side = 1 if rng.random() < 0.5 else 0
        far = room.momenta[1 - side]
        copy(room.joint, room.momenta[side])
        grown = grow(side, depth, start, step, log_density, rng, room)
        rates += grown.rates
        n_gradients += grown.n_gradients
        if not grown.whole:
            diverging, ended = grown.diverging, True
        else:
            more = grown.log_weight - log_weight
            if more >= 0.0 or rng.random() < exp(more):
                copy(position, room.candidate)
                copy(gradient, room.gradient)
                logp, energy = grown.logp, grown.energy
            log_weight = log_sum(log_weight, grown.log_weight)
            ended = turns(room.whole, far, room.joint, room.total[depth], room.first[depth], room.momenta[side])
            add(room.whole, room.total[depth])
            depth += 1
    return logp, energy, TreeInfo(rates / max(n_gradients, 1), n_gradients, depth, diverging, not ended)


@register_jitable
def grow(
    side: int,
    depth: int,
    start: float,
    step: FloatArray,
    log_density: LogDensity,
    rng: np.random.Generator,
    room: TreeRoom,
) -> Growth:
    """Add 2^depth states at one end, unless they turn back or diverge; their sums are then in row `depth`."""
    sign = 1.0 if side == 1 else -1.0
    q, p, slope = room.positions[side], room.momenta[side], room.slopes[side]
    first, last, total = room.first, room.last, room.total
    log_weight, logp, energy, rates = -inf, 0.0, inf, 0.0
    for leaf in range(1 << depth):
        kick(p, 0.5 * sign, slope)
        drift(q, sign, step, p, room.spare)
        there, gradient = evaluate(log_density, q)
        whiten(slope, step, gradient)
        kick(p, 0.5 * sign, slope)
        here = total_energy(p, there)
        log_ratio = start - here
        rates += exp(min(log_ratio, 0.0))
        if not log_ratio >= -DIVERGENCE:
            return Growth(False, True, log_weight, logp, energy, rates, leaf + 1)
        log_weight = log_sum(log_weight, log_ratio)
        if leaf == 0 or rng.random() < exp(log_ratio - log_weight):
            copy(room.candidate, q)
            copy(room.gradient, gradient)
            logp, energy = there, here
        copy(first[0], p)
        copy(total[0], p)
        level = 0
        while (leaf >> level) & 1:
            if turns(total[level + 1], first[level + 1], last[level + 1], total[level], first[level], p):
                return Growth(False, False, log_weight, logp, energy, rates, leaf + 1)
            add(total[level + 1], total[level])
            level += 1
        if level < depth:
            copy(first[level + 1], first[level])
            copy(total[level + 1], total[level])
            copy(last[level + 1], p)
    return Growth(True, False, log_weight, logp, energy, rates, 1 << depth)


@register_jitable
def log_sum(a: float, b: float) -> float:
    """log(eᵃ + eᵇ) of which one at least is finite."""
    return a + log1p(exp(b - a)) if a > b else b + log1p(exp(a - b))


# --- of arrays: whole arrays in Python, and loops where they are compiled, which takes a tenth of the time -----------


def turns(
    total: FloatArray, first: FloatArray, last: FloatArray, total_2: FloatArray, first_2: FloatArray, last_2: FloatArray
) -> bool:
    """Whether two neighbouring stretches turn back as one, or either of them with the other's nearest state."""
    joint, one, two = total + total_2, total + first_2, total_2 + last
    return not (
        joint @ first > 0.0
        and joint @ last_2 > 0.0
        and one @ first > 0.0
        and one @ first_2 > 0.0
        and two @ last > 0.0
        and two @ last_2 > 0.0
    )


def _turns(
    total: FloatArray, first: FloatArray, last: FloatArray, total_2: FloatArray, first_2: FloatArray, last_2: FloatArray
) -> bool:
    a = b = c = d = e = f = 0.0
    for i in range(len(total)):
        joint, one, two = total[i] + total_2[i], total[i] + first_2[i], total_2[i] + last[i]
        a += joint * first[i]
        b += joint * last_2[i]
        c += one * first[i]
        d += one * first_2[i]
        e += two * last[i]
        f += two * last_2[i]
    return not (a > 0.0 and b > 0.0 and c > 0.0 and d > 0.0 and e > 0.0 and f > 0.0)


def copy(to: FloatArray, values: FloatArray) -> None:
    """Write values to another array."""
    to[:] = values


def _copy(to: FloatArray, values: FloatArray) -> None:
    for i in range(len(to)):
        to[i] = values[i]


def add(to: FloatArray, values: FloatArray) -> None:
    """Add values to an array."""
    to += values


def _add(to: FloatArray, values: FloatArray) -> None:
    for i in range(len(to)):
        to[i] += values[i]


def kick(momentum: FloatArray, factor: float, slope: FloatArray) -> None:
    """φ ← φ + factor · Sᵀ∇."""
    momentum += factor * slope


def _kick(momentum: FloatArray, factor: float, slope: FloatArray) -> None:
    for i in range(len(momentum)):
        momentum[i] += factor * slope[i]


def drift(position: FloatArray, factor: float, step: FloatArray, momentum: FloatArray, spare: FloatArray) -> None:
    """q ← q + factor · Sφ."""
    position += factor * (step * momentum if step.ndim == 1 else step @ momentum)


def _drift(position: FloatArray, factor: float, step: FloatArray, momentum: FloatArray, spare: FloatArray) -> None:
    if step.ndim == 1:
        for i in range(len(position)):
            position[i] += factor * step[i] * momentum[i]
    else:
        np.dot(step, momentum, spare)
        for i in range(len(position)):
            position[i] += factor * spare[i]


def whiten(slope: FloatArray, step: FloatArray, gradient: FloatArray) -> None:
    """Write Sᵀ∇."""
    slope[:] = step * gradient if step.ndim == 1 else gradient @ step


def _whiten(slope: FloatArray, step: FloatArray, gradient: FloatArray) -> None:
    if step.ndim == 1:
        for i in range(len(slope)):
            slope[i] = step[i] * gradient[i]
    else:
        np.dot(step.T, gradient, slope)


def total_energy(momentum: FloatArray, logp: float) -> float:
    """H = φᵀφ/2 − log p; infinite where the density or its gradient fails."""
    value = 0.5 * float(momentum @ momentum) - logp
    return value if isfinite(value) else inf


def _total_energy(momentum: FloatArray, logp: float) -> float:
    total = 0.0
    for one in momentum:
        total += one * one
    value = 0.5 * total - logp
    return value if isfinite(value) else inf


for _plain, _loops in (
    (turns, _turns),
    (copy, _copy),
    (add, _add),
    (kick, _kick),
    (drift, _drift),
    (whiten, _whiten),
    (total_energy, _total_energy),
):
    compiled_as(_plain, _loops)
