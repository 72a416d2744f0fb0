"""Draws of persistent-momentum HMC one after the other, within a window of the tuning or after it.

The loop is compiled for densities that are machine code (`compiled_density`), and runs as it is for others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, isnan
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray, IntArray
from bayessel.samplers.compiled_density import CompiledCall, LogDensity
from bayessel.samplers.hmc_update import UpdateSettings, update_in_place
from bayessel.samplers.horowitz import HorowitzSettings, HorowitzState, transition
from bayessel.samplers.leapfrog import Phase, energy
from bayessel.samplers.tuning import DualAveraging, Window, gather, pace, persistence, updates_per_draw, watch

#: columns of the numbers and of the counts of a draw
NUMBERS = ("model_logp", "acceptance_rate", "step_size", "energy", "persistence", "v")
COUNTS = ("n_steps", "flips", "diverging")


class Rules(NamedTuple):
    """How to make draws.

    Attributes
    ----------
    n_leapfrog : int
        L.
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
    width: int,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> Moving:
    """Make as many draws as there are rows to put them in, with windows of W states; `window` is changed in place."""
    if not isinstance(log_density, CompiledCall):
        return _loop(start, scale, rules, window, log_density, width, rng, positions, numbers, counts)
    loop = _in_place if width == 1 else _with_windows
    return call_compiled(loop, start, scale, rules, window, log_density, width, rng, positions, numbers, counts)


@register_jitable
def settings_at(step_size: float, rules: Rules) -> UpdateSettings:
    """Settings of an update, where the step size is as it is now."""
    kept = rules.persistence
    if isnan(kept):
        kept = persistence(step_size, rules.n_leapfrog, rules.relaxation)
    delta = pace(kept) if isnan(rules.delta) else rules.delta
    return UpdateSettings(rules.n_leapfrog, kept, delta, rules.jitter)


@register_jitable
def _loop(
    start: Moving,
    scale: FloatArray,
    rules: Rules,
    window: Window,
    log_density: LogDensity,
    width: int,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> Moving:
    state, step_size, averaging = start.state, start.step_size, start.averaging
    settings, step = settings_at(step_size, rules), step_size * scale
    for i in range(len(positions)):
        updates = n_updates(step_size, rules)
        rates, n_gradients, flips, diverging = 0.0, 0, 0, 0
        for _ in range(updates):
            L, a, delta, jitter = settings
            state, info = transition(state, log_density, HorowitzSettings(step, L, width, a, delta, jitter), rng)
            rates += info.acceptance_rate
            n_gradients += info.n_gradients
            flips += not info.accepted
            diverging |= info.diverging
            if not isnan(rules.target):
                averaging = watch(averaging, rules.target, info.acceptance_rate)
                step_size = exp(averaging.current)
                settings, step = settings_at(step_size, rules), step_size * scale
        phase = state.phase
        positions[i] = phase.position
        numbers[i] = (phase.logp, rates / updates, step_size, energy(phase), settings.persistence, state.v)
        counts[i] = (n_gradients, flips, diverging)
        if rules.gathers:
            gather(window, phase.position, phase.gradient, (rules.draw + i) % rules.keep_every == 0)
    return Moving(state, step_size, averaging)


@register_jitable
def n_updates(step_size: float, rules: Rules) -> int:
    """Updates to a draw."""
    if rules.updates > 0:
        return rules.updates
    return updates_per_draw(step_size, rules.n_leapfrog, rules.relaxation)


# --- the same, compiled: of plain arrays, for a call with tuples of tuples costs as much as ten draws ---------------


def call_compiled(
    loop: Callable[..., None],
    start: Moving,
    scale: FloatArray,
    rules: Rules,
    window: Window,
    log_density: CompiledCall,
    number: int,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> Moving:
    """Where a loop leads to as machine code; `number` is what it takes besides the rules."""
    phase, averaging = start.state.phase, start.averaging
    arrays = [array.copy() for array in (phase.position, phase.momentum, phase.gradient)]
    floats = np.array([phase.logp, start.state.v, start.step_size, *averaging[:4], *rules[1:6]])
    whole = np.array([averaging.seen, rules.n_leapfrog, *rules[6:], number], dtype=np.int64)
    _compiled(loop)(*arrays, floats, whole, scale, *window, *log_density, rng, positions, numbers, counts)
    logp, v, step_size, *averages = floats[:7].tolist()
    averaging = DualAveraging._make([*averages, int(whole[0])])
    return Moving(HorowitzState(Phase(arrays[0], arrays[1], logp, arrays[2]), v), step_size, averaging)


@register_jitable
def read(floats: FloatArray, whole: IntArray) -> tuple[DualAveraging, Rules, int]:
    """Tuning of the step size, rules, and the number that goes with them, from what `call_compiled` wrote."""
    averaging = DualAveraging(floats[3], floats[4], floats[5], floats[6], whole[0])
    fixed = (floats[7], floats[8], floats[9], floats[10], floats[11])
    return averaging, Rules(whole[1], *fixed, whole[2], whole[3] != 0, whole[4], whole[5]), whole[6]


@register_jitable
def write(
    floats: FloatArray, whole: IntArray, logp: float, v: float, step_size: float, averaging: DualAveraging
) -> None:
    """What has changed, for `call_compiled` to read."""
    current, mean, error, anchor, seen = averaging
    floats[:7] = (logp, v, step_size, current, mean, error, anchor)
    whole[0] = seen


def _in_place(
    position: FloatArray,
    momentum: FloatArray,
    gradient: FloatArray,
    floats: FloatArray,
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
    """`_loop` without windows; arrays are written to instead of made."""
    averaging, rules, _ = read(floats, whole)
    window = Window(seen, mean, spread, gradient_mean, gradient_spread, kept)
    log_density = CompiledCall(function, others)
    logp, v, step_size = floats[0], floats[1], floats[2]
    settings, step = settings_at(step_size, rules), step_size * scale
    scratch = np.empty((3, len(position)))
    for i in range(len(positions)):
        updates = n_updates(step_size, rules)
        rates, n_gradients, flips, diverging = 0.0, 0, 0, 0
        for _ in range(updates):
            logp, v, accepted, rate, off, spent = update_in_place(
                position, momentum, gradient, logp, v, settings, step, log_density, rng, scratch
            )
            rates += rate
            n_gradients += spent
            flips += not accepted
            diverging |= off
            if not isnan(rules.target):
                averaging = watch(averaging, rules.target, rate)
                step_size = exp(averaging.current)
                settings = settings_at(step_size, rules)
                step = step_size * scale
        kinetic = 0.0
        for k in range(len(position)):
            positions[i, k] = position[k]
            kinetic += 0.5 * momentum[k] * momentum[k]
        numbers[i] = (logp, rates / updates, step_size, kinetic - logp, settings.persistence, v)
        counts[i] = (n_gradients, flips, diverging)
        if rules.gathers:
            gather(window, position, gradient, (rules.draw + i) % rules.keep_every == 0)
    write(floats, whole, logp, v, step_size, averaging)


def _with_windows(
    position: FloatArray,
    momentum: FloatArray,
    gradient: FloatArray,
    floats: FloatArray,
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
    """`_loop` with windows."""
    averaging, rules, width = read(floats, whole)
    window = Window(seen, mean, spread, gradient_mean, gradient_spread, kept)
    start = Moving(HorowitzState(Phase(position, momentum, floats[0], gradient), floats[1]), floats[2], averaging)
    call = CompiledCall(function, others)
    end = _loop(start, scale, rules, window, call, width, rng, positions, numbers, counts)
    phase = end.state.phase
    position[:], momentum[:], gradient[:] = phase.position, phase.momentum, phase.gradient
    write(floats, whole, phase.logp, end.state.v, end.step_size, end.averaging)


@cache
def _compiled(loop: Callable[..., None]) -> Any:
    """A loop as machine code, kept on disk."""
    from bayessel._compiled import njit

    return njit()(loop)
