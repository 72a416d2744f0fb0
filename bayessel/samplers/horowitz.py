"""One update of persistent-momentum Hamiltonian Monte Carlo (Horowitz 1991), as state in, (state, info) out.

1. L leapfrog steps from (q, φ);
2. accept with probability min(1, exp(H − H*)), by a uniform that persists or is drawn anew; on rejection stay and
   turn the momentum round;
3. φ ← aφ + √(1 − a²) ξ.

With windows of W > 1 states step 2 compares the two ends of the trajectory (see `window`).

A uniform that persists (Neal 2020, arXiv 2001.11950): the state carries v, uniform on (−1, 1), and a move of
probability ratio r = π*/π is accepted when |v| < r. Instead of being drawn anew, v moves on by a little before each
decision and wraps around at 1. An accepted move divides it by r: then (state, v) → (state*, v/r) keeps the volume π dv,
so the joint distribution stays uniform in v. Between two visits of |v| ≈ 1 few moves are rejected, so the rejections,
each of which turns a persistent momentum round, come in clusters, with long runs in one direction between them.

These functions run as they are, and inside compiled loops.
"""

from __future__ import annotations

from math import exp, isfinite, sqrt
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray
from bayessel.samplers import window
from bayessel.samplers.compiled_density import LogDensity
from bayessel.samplers.leapfrog import Phase, energy, leapfrog

#: an energy that rises by more than this is no discretisation error: the trajectory has left the region it can follow
DIVERGENCE = 1000.0


class HorowitzState(NamedTuple):
    """All that the next update depends on, besides the settings: phase-space point and persistent uniform v."""

    phase: Phase
    v: float


class HorowitzSettings(NamedTuple):
    """How to move: step vector ε M^{-1/2}, L, W, a, and δ of the persistent uniform (0: a new uniform each time).

    Each trajectory takes its own step size, up to the part `jitter` longer or shorter: a trajectory of fixed length may
    be half a period of some direction, in which the chain would go to and fro without end.
    """

    step: FloatArray
    n_leapfrog: int
    window: int
    persistence: float
    delta: float
    jitter: float = 0.0


class HorowitzInfo(NamedTuple):
    """What a human wants to see of one update."""

    accepted: bool
    acceptance_rate: float
    diverging: bool
    n_gradients: int


@register_jitable
def transition(
    state: HorowitzState, log_density: LogDensity, settings: HorowitzSettings, rng: np.random.Generator
) -> tuple[HorowitzState, HorowitzInfo]:
    """One update; leaves exp(−H) dq dφ, times the uniform distribution of v, as it is."""
    step, phase = settings.step, state.phase
    if settings.jitter > 0.0:
        step = step * (1.0 + settings.jitter * fresh_uniform(rng))
    v = advance(state.v, settings.delta, rng) if settings.delta > 0.0 else fresh_uniform(rng)
    if settings.window == 1:
        there, here = phase, phase
        n_gradients = 0
        while n_gradients < settings.n_leapfrog:
            there = leapfrog(there, log_density, step)
            n_gradients += 1
            if not isfinite(there.logp):
                break
        log_ratio = energy(phase) - energy(there)
        diverging = not log_ratio >= -DIVERGENCE
    else:
        offset = int(rng.random() * settings.window)
        found = window.ends(phase, log_density, step, settings.n_leapfrog, settings.window, offset)
        log_ratio, n_gradients = found.log_ratio, found.n_gradients
        diverging = found.cut or not log_ratio >= -DIVERGENCE
        here = window.pick(found.reject[0], found.reject[1], rng)
        there = window.pick(found.accept[0], found.accept[1], rng) if len(found.accept[0]) > 0 else here
    accepted = not (log_ratio < -DIVERGENCE) and accepts(v, log_ratio)
    if accepted:
        new, phi = there, there.momentum
        v = rescale(v, log_ratio)
    else:
        new, phi = here, flip(here.momentum)
    phi = refresh(phi, settings.persistence, fresh_momentum(rng, phi.size))
    after = HorowitzState(Phase(new.position, phi, new.logp, new.gradient), v)
    return after, HorowitzInfo(accepted, exp(min(log_ratio, 0.0)), diverging, n_gradients)


# --- the momentum, whitened: φ ~ N(0, I) ------------------------------------------------------------------------


@register_jitable
def fresh_momentum(rng: np.random.Generator, size: int) -> FloatArray:
    """A new momentum from N(0, I)."""
    return rng.standard_normal(size)


@register_jitable
def refresh(momentum: FloatArray, persistence: float, noise: FloatArray) -> FloatArray:
    """φ ← aφ + √(1 − a²) ξ with ξ ~ N(0, I): leaves N(0, I) as it is."""
    return persistence * momentum + sqrt(1.0 - persistence * persistence) * noise


@register_jitable
def flip(momentum: FloatArray) -> FloatArray:
    """φ ← −φ, which every rejection needs.

    A trajectory followed by a flip undoes itself, and only such a proposal may be accepted by the ratio of densities
    alone. The flip that belongs to the proposal and a second one after the decision cancel when it is accepted.
    """
    return -momentum


# --- the uniform by which moves are accepted --------------------------------------------------------------------


@register_jitable
def fresh_uniform(rng: np.random.Generator) -> float:
    """A new v, uniform on [−1, 1): what plain Metropolis does before each decision."""
    return 2.0 * rng.random() - 1.0


@register_jitable
def advance(v: float, delta: float, rng: np.random.Generator) -> float:
    """Move v by `delta` on average, between half and one and a half times that, around the circle [−1, 1).

    The random part is independent of the state, so the uniform distribution stays; without it v could be caught in a
    cycle.
    """
    v = v + delta * (0.5 + rng.random())
    return v - 2.0 * ((v + 1.0) // 2.0)


@register_jitable
def accepts(v: float, log_ratio: float) -> bool:
    """Whether |v| < r."""
    return abs(v) < exp(min(log_ratio, 0.0))


@register_jitable
def rescale(v: float, log_ratio: float) -> float:
    """v/r after an acceptance; within (−1, 1), because |v| < r."""
    return v * exp(min(-log_ratio, 700.0))
