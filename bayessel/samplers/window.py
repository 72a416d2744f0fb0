"""Acceptance between windows of states at both ends of a trajectory (Neal 1994).

A trajectory of L steps has L + 1 states. The current one is put at a random place among the first W, which form the
reject window; the last W form the accept window. With Z = Σ exp(−H) over a window, the accept window is taken with
probability min(1, Z_acc/Z_rej), and one state of the window taken is drawn in proportion to exp(−H). Averaging over
windows smooths the ups and downs of the energy along the way, so longer steps are accepted. With a persistent uniform
the ratio is that of the windows: (state, u) → (state*, u Z_rej/Z_acc) keeps π du.

States beyond one where the density fails cannot be reached, from either side: windows are cut there.
"""

from __future__ import annotations

from math import exp, inf, log
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray, as_count
from bayessel.samplers.compiled_density import LogDensity
from bayessel.samplers.leapfrog import Phase, energy, trajectory


class Ends(NamedTuple):
    """The two windows: their states, energies and log Z, how many steps were cut off, and how many were evaluated."""

    reject: tuple[list[Phase], list[float]]
    accept: tuple[list[Phase], list[float]]
    log_ratio: float
    n_gradients: int
    cut: bool


def as_window(window: Any, n_leapfrog: int) -> int:
    """W, at most the number of states of a trajectory."""
    width = as_count(window, "window")
    if width > n_leapfrog + 1:
        raise ValueError(
            f"window must be at most n_leapfrog + 1 = {n_leapfrog + 1}, the states of a trajectory, got {width}; "
            "raise n_leapfrog"
        )
    return width


@register_jitable
def log_weight(energies: list[float]) -> float:
    """log Σ exp(−H), −∞ for an empty window."""
    if len(energies) == 0:
        return -inf
    lowest = min(energies)
    total = 0.0
    for h in energies:
        total += exp(lowest - h)
    return log(total) - lowest


@register_jitable
def ends(phase: Phase, log_density: LogDensity, step: FloatArray, n_steps: int, window: int, offset: int) -> Ends:
    """Walk `offset` steps back and `n_steps − offset` forth, and cut out the first and the last `window` states."""
    back, back_energies = trajectory(phase, log_density, -step, offset)
    forth, forth_energies = trajectory(phase, log_density, step, n_steps - offset)
    cut_back, cut_forth = len(back) < offset, len(forth) < n_steps - offset
    states, energies = back[::-1], back_energies[::-1]
    states.append(phase)
    energies.append(energy(phase))
    states.extend(forth)
    energies.extend(forth_energies)
    # places along the full trajectory, 0 … L, of the states that were reached
    first = offset - len(back)
    n_reject = window - first
    begin_accept = max(n_steps - window + 1 - first, 0)
    reject = states[:n_reject], energies[:n_reject]
    accept = states[begin_accept:], energies[begin_accept:]
    return Ends(
        reject,
        accept,
        log_weight(accept[1]) - log_weight(reject[1]),
        len(back) + len(forth) + int(cut_back) + int(cut_forth),
        cut_back or cut_forth,
    )


@register_jitable
def pick(states: list[Phase], energies: list[float], rng: np.random.Generator) -> Phase:
    """One state of a window, with probability proportional to exp(−H)."""
    lowest = min(energies)
    total = 0.0
    for h in energies:
        total += exp(lowest - h)
    u = rng.random() * total
    for k in range(len(states)):
        u -= exp(lowest - energies[k])
        if u < 0.0:
            return states[k]
    return states[-1]
