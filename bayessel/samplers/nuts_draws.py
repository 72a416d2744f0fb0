"""Draws of the No-U-Turn sampler one after the other, within a window of the tuning or after it.

One loop, compiled for densities that are machine code (`compiled_density`), and run as it is for others.
"""

from __future__ import annotations

from math import exp, isnan
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray, IntArray
from bayessel.samplers.compiled_density import CompiledCall, LogDensity
from bayessel.samplers.hmc_draws import Moving, Rules, call_compiled, read, write
from bayessel.samplers.nuts_update import nuts_in_place, tree_room
from bayessel.samplers.tuning import DualAveraging, Window, gather, watch

#: columns of the numbers and of the counts of a draw
TREE_NUMBERS = ("model_logp", "acceptance_rate", "step_size", "energy")
TREE_COUNTS = ("n_steps", "tree_depth", "diverging", "reached_max_treedepth")


def make_tree_draws(
    start: Moving,
    scale: FloatArray,
    rules: Rules,
    window: Window,
    log_density: LogDensity,
    max_depth: int,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> Moving:
    """Make as many draws as there are rows to put them in; `window` is changed in place, the momentum stays."""
    if isinstance(log_density, CompiledCall):
        return call_compiled(
            _entry, start, scale, rules, window, log_density, max_depth, rng, positions, numbers, counts
        )
    phase = start.state.phase
    position, gradient = phase.position.copy(), phase.gradient.copy()
    logp, step_size, averaging = _loop(
        position,
        gradient,
        phase.logp,
        start.step_size,
        start.averaging,
        scale,
        rules,
        window,
        log_density,
        max_depth,
        rng,
        positions,
        numbers,
        counts,
    )
    phase = phase._replace(position=position, logp=logp, gradient=gradient)
    return Moving(start.state._replace(phase=phase), step_size, averaging)


@register_jitable
def _loop(
    position: FloatArray,
    gradient: FloatArray,
    logp: float,
    step_size: float,
    averaging: DualAveraging,
    scale: FloatArray,
    rules: Rules,
    window: Window,
    log_density: LogDensity,
    max_depth: int,
    rng: np.random.Generator,
    positions: FloatArray,
    numbers: FloatArray,
    counts: IntArray,
) -> tuple[float, float, DualAveraging]:
    """Log density, step size and its tuning at the end; the arrays are changed."""
    step, room = step_size * scale, tree_room(len(position), max_depth)
    for i in range(len(positions)):
        logp, energy, info = nuts_in_place(position, gradient, logp, step, log_density, max_depth, rng, room)
        if not isnan(rules.target):
            averaging = watch(averaging, rules.target, info.acceptance_rate)
            step_size = exp(averaging.current)
            step = step_size * scale
        positions[i] = position
        numbers[i] = (logp, info.acceptance_rate, step_size, energy)
        counts[i] = (info.n_gradients, info.depth, int(info.diverging), int(info.cut))
        if rules.gathers:
            gather(window, position, gradient, (rules.draw + i) % rules.keep_every == 0)
    return logp, step_size, averaging


def _entry(
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
    """`_loop`, of plain arrays."""
    averaging, rules, max_depth = read(floats, whole)
    window = Window(seen, mean, spread, gradient_mean, gradient_spread, kept)
    call = CompiledCall(function, others)
    logp, step_size, averaging = _loop(
        position,
        gradient,
        floats[0],
        floats[2],
        averaging,
        scale,
        rules,
        window,
        call,
        max_depth,
        rng,
        positions,
        numbers,
        counts,
    )
    write(floats, whole, logp, floats[1], step_size, averaging)
