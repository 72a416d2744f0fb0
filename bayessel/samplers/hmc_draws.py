"""Draws of persistent-momentum HMC one after the other, within a window of the tuning or after it.

The loop is compiled for densities that are machine code (`compiled_density`), and runs as it is for others.
"""

from __future__ import annotations

from functools import cache
from math import exp, isnan
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray, IntArray
from bayessel.samplers.compiled_density import CompiledCall, LogDensity
from bayessel.samplers.horowitz import HorowitzSettings, HorowitzState, transition
from bayessel.samplers.leapfrog import Phase, energy
from bayessel.samplers.tuning import DualAveraging, Window, average, gather, pace, persistence, updates_per_draw

#: columns of the numbers and of the counts of a draw
NUMBERS = ("model_logp", "acceptance_rate", "step_size", "energy", "persistence", "v")
COUNTS = ("n_steps", "flips", "diverging")


class Rules(NamedTuple):
    """How to make draws.

    Attributes
    ----------
    n_leapfrog, n_window : int
        L and W.
    jitter : float
        Of step sizes.
    persistence, delta : float
        Settings; nan where they follow from the step size.
    target : float
        Acceptance rate to tune the step size to; nan leaves it.
    relaxation : float
        √λ of the rules.
    updates : int
        Updates to a draw; 0 takes as many as the rule says.
    gathers, keep_every, draw
        Whether the window sees the draws, which of them it keeps, and the number of the first.
    """

    n_leapfrog: int
    n_window: int
    jitter: float
    persistence: float
    delta: float
    target: float
    relaxation: float
    updates: int
    gathers: bool
    keep_every: int
    draw: int


class Moving(NamedTuple):
    """What changes from draw to draw: phase-space point and persistent uniform, step size, and its tuning."""

    state: HorowitzState
    step_size: float
    averaging: DualAveraging


def make_draws(
    start: Moving,
    scale: FloatArray,
    rules: Rules,
    window: Window,
    log_density: LogDensity,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> Moving:
    """Make as many draws as there are rows to put them in; `window` is changed in place."""
    if not isinstance(log_density, CompiledCall):
        return _loop(start, scale, rules, window, log_density, rng, positions, numbers, counts)
    phase, kept = start.state.phase, start.averaging
    arrays = [array.copy() for array in (phase.position, phase.momentum, phase.gradient)]
    floats = np.array([phase.logp, start.state.v, start.step_size, kept.current, kept.mean, kept.error, kept.anchor])
    given = np.array([*rules[2:7]])
    whole = np.array([*rules[:2], *rules[7:], kept.seen], dtype=np.int64)
    _compiled_loop()(*arrays, floats, given, whole, scale, *window, *log_density, rng, positions, numbers, counts)
    logp, v, step_size, *averages = floats.tolist()
    averaging = DualAveraging._make([*averages, int(whole[-1])])
    return Moving(HorowitzState(Phase(arrays[0], arrays[1], logp, arrays[2]), v), step_size, averaging)


@register_jitable
def settings_at(step_size: float, scale: FloatArray, rules: Rules) -> HorowitzSettings:
    """Settings of an update, where the step size is as it is now."""
    kept = rules.persistence
    if isnan(kept):
        kept = persistence(step_size, rules.n_leapfrog, rules.relaxation)
    delta = pace(kept) if isnan(rules.delta) else rules.delta
    return HorowitzSettings(step_size * scale, rules.n_leapfrog, rules.n_window, kept, delta, rules.jitter)


@register_jitable
def _loop(
    start: Moving,
    scale: FloatArray,
    rules: Rules,
    window: Window,
    log_density: LogDensity,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> Moving:
    state, step_size, averaging = start.state, start.step_size, start.averaging
    settings = settings_at(step_size, scale, rules)
    for i in range(len(positions)):
        updates = rules.updates
        if updates == 0:
            updates = updates_per_draw(step_size, rules.n_leapfrog, rules.relaxation)
        rates, n_gradients, flips, diverging = 0.0, 0, 0, 0
        for _ in range(updates):
            state, info = transition(state, log_density, settings, rng)
            rates += info.acceptance_rate
            n_gradients += info.n_gradients
            flips += not info.accepted
            diverging |= info.diverging
            if not isnan(rules.target):
                rate = 0.0 if isnan(info.acceptance_rate) else info.acceptance_rate
                averaging = average(averaging, rules.target - rate)
                step_size = exp(averaging.current)
                settings = settings_at(step_size, scale, rules)
        phase = state.phase
        positions[i] = phase.position
        numbers[i] = (phase.logp, rates / updates, step_size, energy(phase), settings.persistence, state.v)
        counts[i] = (n_gradients, flips, diverging)
        if rules.gathers:
            gather(window, phase.position, phase.gradient, (rules.draw + i) % rules.keep_every == 0)
    return Moving(state, step_size, averaging)


def _flat(
    position: FloatArray,
    momentum: FloatArray,
    gradient: FloatArray,
    floats: FloatArray,
    given: FloatArray,
    whole: IntArray,
    scale: FloatArray,
    seen: IntArray,
    mean: FloatArray,
    spread: FloatArray,
    gradient_mean: FloatArray,
    gradient_spread: FloatArray,
    kept: FloatArray,
    function: Any,
    others: Any,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> None:
    """The loop with plain arrays, changed in place: a call with tuples of tuples costs as much as ten draws."""
    state = HorowitzState(Phase(position, momentum, floats[0], gradient), floats[1])
    averaging = DualAveraging(floats[3], floats[4], floats[5], floats[6], whole[6])
    fixed = (given[0], given[1], given[2], given[3], given[4])
    rules = Rules(whole[0], whole[1], *fixed, whole[2], whole[3] != 0, whole[4], whole[5])
    window = Window(seen, mean, spread, gradient_mean, gradient_spread, kept)
    start = Moving(state, floats[2], averaging)
    call = CompiledCall(function, others)
    end = _loop(start, scale, rules, window, call, rng, positions, numbers, counts)
    phase, averaging = end.state.phase, end.averaging
    position[:], momentum[:], gradient[:] = phase.position, phase.momentum, phase.gradient
    floats[:] = (
        phase.logp,
        end.state.v,
        end.step_size,
        averaging.current,
        averaging.mean,
        averaging.error,
        averaging.anchor,
    )
    whole[6] = averaging.seen


@cache
def _compiled_loop() -> Any:
    """The loop as machine code, kept on disk."""
    from bayessel._compiled import njit

    return njit()(_flat)
