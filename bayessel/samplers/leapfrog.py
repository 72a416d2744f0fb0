"""Hamiltonian motion: one leapfrog step, and trajectories of several.

Momenta are kept whitened, φ ~ N(0, I): with mass M the momentum of the textbooks is M^{1/2} φ, and a step of size ε
moves the position by (ε M^{-1/2}) φ. So a step size and a mass come as one, `step` = ε M^{-1/2}: a vector where the
mass is diagonal, any square matrix S with SSᵀ = ε²M⁻¹ where it is dense. The energy is H = φᵀφ/2 − log p(q) whatever
the mass. A negative step goes back in time.

These functions run as they are, and inside compiled loops.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import NamedTuple

from numba.extending import register_jitable

from bayessel._check import FloatArray
from bayessel.samplers.compiled_density import LogDensity, evaluate


class Phase(NamedTuple):
    """A point of phase space and what is known there: position q, whitened momentum φ, log p(q), ∇ log p(q)."""

    position: FloatArray
    momentum: FloatArray
    logp: float
    gradient: FloatArray


@register_jitable
def energy(phase: Phase) -> float:
    """H = φᵀφ/2 − log p(q), in nats; infinite where the density or its gradient fails."""
    value = 0.5 * float(phase.momentum @ phase.momentum) - phase.logp
    return value if isfinite(value) else inf


@register_jitable
def leapfrog(phase: Phase, log_density: LogDensity, step: FloatArray) -> Phase:
    """Half a kick, a drift, half a kick (Neal 2011, equations 5.18-5.20); reversible and volume-preserving."""
    half = 0.5 * step
    if step.ndim == 1:
        momentum = phase.momentum + half * phase.gradient
        position = phase.position + step * momentum
        logp, gradient = evaluate(log_density, position)
        return Phase(position, momentum + half * gradient, logp, gradient)
    momentum = phase.momentum + phase.gradient @ half
    position = phase.position + step @ momentum
    logp, gradient = evaluate(log_density, position)
    return Phase(position, momentum + gradient @ half, logp, gradient)


@register_jitable
def trajectory(
    phase: Phase, log_density: LogDensity, step: FloatArray, n_steps: int
) -> tuple[list[Phase], list[float]]:
    """States after 1, 2, … `n_steps` steps and their energies, up to the first infinite one."""
    states = []
    energies = []
    for _ in range(n_steps):
        phase = leapfrog(phase, log_density, step)
        h = energy(phase)
        if h == inf:
            break
        states.append(phase)
        energies.append(h)
    return states, energies
