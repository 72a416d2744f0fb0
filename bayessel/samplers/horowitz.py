"""One update of persistent-momentum Hamiltonian Monte Carlo (Horowitz 1991), as state in, (state, info) out.

1. L leapfrog steps from (q, φ);
2. accept with probability min(1, exp(H − H*)), by a uniform that persists or is drawn anew; on rejection stay and
   turn the momentum round;
3. φ ← aφ + √(1 − a²) ξ.

With windows of W > 1 states step 2 compares the two ends of the trajectory (see `window`).
"""

from __future__ import annotations

from math import exp, isfinite
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel.samplers import acceptance, momentum, window
from bayessel.samplers.leapfrog import LogDensity, Phase, energy, leapfrog

#: an energy that rises by more than this is no discretisation error: the trajectory has left the region it can follow
DIVERGENCE = 1000.0


class HorowitzState(NamedTuple):
    """All that the next update depends on, besides the settings: phase-space point and persistent uniform v."""

    phase: Phase
    v: float


class HorowitzSettings(NamedTuple):
    """How to move: step vector ε M^{-1/2}, L, W, a, and δ of the persistent uniform (None: a new uniform each time).

    Each trajectory takes its own step size, up to the part `jitter` longer or shorter: a trajectory of fixed length may
    be half a period of some direction, in which the chain would go to and fro without end.
    """

    step: FloatArray
    n_leapfrog: int
    window: int
    persistence: float
    delta: float | None
    jitter: float = 0.0


class HorowitzInfo(NamedTuple):
    """What a human wants to see of one update."""

    accepted: bool
    acceptance_rate: float
    diverging: bool
    n_gradients: int


def start(position: FloatArray, log_density: LogDensity, rng: np.random.Generator) -> HorowitzState:
    """State at a position: density and gradient evaluated, momentum and uniform drawn."""
    logp, gradient = log_density(position)
    return HorowitzState(
        Phase(position, momentum.fresh(rng, position.size), float(logp), gradient), acceptance.draw(rng)
    )


def transition(
    state: HorowitzState, log_density: LogDensity, settings: HorowitzSettings, rng: np.random.Generator
) -> tuple[HorowitzState, HorowitzInfo]:
    """One update; leaves exp(−H) dq dφ, times the uniform distribution of v, as it is."""
    step, n_leapfrog, width, persistence, delta, jitter = settings
    if jitter > 0.0:
        step = step * (1.0 + jitter * acceptance.draw(rng))
    phase = state.phase
    v = acceptance.draw(rng) if delta is None else acceptance.advance(state.v, delta, rng)
    if width == 1:
        proposal = phase
        n_gradients = 0
        while n_gradients < n_leapfrog:
            proposal = leapfrog(proposal, log_density, step)
            n_gradients += 1
            if not isfinite(proposal.logp):
                break
        log_ratio = energy(phase) - energy(proposal)
        diverging = not log_ratio >= -DIVERGENCE
    else:
        found = window.ends(phase, log_density, step, n_leapfrog, width, int(rng.integers(width)))
        log_ratio, n_gradients = found.log_ratio, found.n_gradients
        diverging = found.cut or not log_ratio >= -DIVERGENCE
    accepted = not (log_ratio < -DIVERGENCE) and acceptance.accepts(v, log_ratio)
    if accepted:
        new = proposal if width == 1 else window.pick(*found.accept, rng)
        phi = new.momentum
        v = acceptance.rescale(v, log_ratio)
    else:
        new = phase if width == 1 else window.pick(*found.reject, rng)
        phi = momentum.flip(new.momentum)
    phi = momentum.refresh(phi, persistence, momentum.fresh(rng, phi.size))
    phase = Phase(new.position, phi, new.logp, new.gradient)
    return HorowitzState(phase, v), HorowitzInfo(accepted, exp(min(log_ratio, 0.0)), diverging, n_gradients)
