"""Conjugate gradients for a network's weights in compiled code, looking at held-out cases after every line search.

Directions by Polak and Ribière (1969), back to the gradient where their factor is negative. A line search ends by the
conditions of Wolfe and Powell, ρ = 0.25 and σ = 0.5; steps come from cubics through two values and two slopes; the
first one is the last search's, times the ratio of slopes, at most 100. Rasmussen (1996), § 3.6 and appendix B.

One iteration is one line search. It is compiled because a gradient takes as little as 3 µs: an optimiser that stays in
Python spends ten times that on itself.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit
from bayessel.mlp.compiled_passes import backward, forward, likelihood

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
RHO, SIGMA = 0.25, 0.5
#: evaluations in one line search, growth of a step in one extrapolation, and of the first step from search to search
MOST_TRIALS, GROWTH, RATIO = 20, 3.0, 100.0
#: a search that gains less than this share of the loss has nothing to find; so many of them in a row end the run
LEAST_GAIN, PATIENCE = 1e-9, 5

#: why a run came back
GOING_ON, PAST_BEST, CONVERGED, USED_UP = range(4)


class TrainingCases(NamedTuple):
    """Inputs by columns (D, n), targets (K, n), kind of likelihood."""

    X: FloatArray
    T: FloatArray
    kind: int


class Rule(NamedTuple):
    """When to stop: at `past` times the best iteration, within so many iterations and evaluations at least and most."""

    past: float
    least_iterations: int
    least_evaluations: float
    most_evaluations: float


class Run(NamedTuple):
    """A minimisation that can be continued: packed arrays and numbers, all written over.

    `best` are the weights with the least loss on held-out cases; `numbers` are named below.
    """

    q: FloatArray
    gradient: FloatArray
    direction: FloatArray
    best: FloatArray
    numbers: FloatArray


#: places in `Run.numbers`
LOSS, SLOPE, STEP, ITERATION, EVALUATIONS, HELD_OUT, BEST_HELD_OUT, BEST_ITERATION, IDLE = range(9)


def start(q: FloatArray) -> Run:
    """A run that begins at packed weights q."""
    numbers = np.zeros(9)
    numbers[LOSS] = np.nan  # not yet looked at
    return Run(q.copy(), np.zeros_like(q), np.zeros_like(q), q.copy(), numbers)


@njit(**OPTIONS)
def loss(q: FloatArray, cases: TrainingCases, Z: FloatArray, f: FloatArray) -> float:
    """Minus log likelihood with noise of precision 1, up to constants; f becomes its derivatives times −1."""
    forward(q, cases.X, Z, f)
    return -likelihood(cases.kind, f, cases.T, np.ones(len(f)), 1.0)


@njit(**OPTIONS)
def loss_and_gradient(
    q: FloatArray, cases: TrainingCases, Z: FloatArray, f: FloatArray, below: FloatArray, g: FloatArray
) -> float:
    """The same; g becomes the gradient."""
    value = loss(q, cases, Z, f)
    backward(q, cases.X, Z, f, below, g)
    for j in range(len(g)):
        g[j] = -g[j]
    return value


@njit(**OPTIONS)
def cubic_minimum(f0: float, s0: float, f1: float, s1: float, width: float) -> float:
    """Where the cubic with values f and slopes s at 0 and `width`, of either sign, has its minimum; NaN: nowhere."""
    z = s0 + s1 - 3.0 * (f1 - f0) / width
    under = z * z - s0 * s1
    if not under >= 0.0:
        return math.nan
    root = math.copysign(math.sqrt(under), width)
    below = s1 - s0 + 2.0 * root
    return width * (root - s0 + z) / below if below != 0.0 else math.nan


@njit(**OPTIONS)
def line_search(
    run: Run, cases: TrainingCases, Z: FloatArray, f: FloatArray, below: FloatArray, space: FloatArray
) -> float:
    """Move q along the direction to where both conditions hold, or else to the lowest place seen; returns the gain.

    `low` is the lowest place seen that satisfies the first condition; once there is a `high`, a minimum lies between
    the two. `space` is (3, P).
    """
    origin, low_q, low_g = space[0], space[1], space[2]
    q, g, numbers, P = run.q, run.gradient, run.numbers, len(run.q)
    f0, s0 = numbers[LOSS], numbers[SLOPE]
    origin[:] = q
    low_q[:] = q
    low_g[:] = g
    low, f_low, s_low = 0.0, f0, s0
    high, f_high, s_high = math.inf, math.nan, math.nan
    step = numbers[STEP]
    for _ in range(MOST_TRIALS):
        for j in range(P):
            q[j] = origin[j] + step * run.direction[j]
        value = loss_and_gradient(q, cases, Z, f, below, g)
        slope = 0.0
        for j in range(P):
            slope += g[j] * run.direction[j]
        numbers[EVALUATIONS] += 1
        finite = math.isfinite(value) and math.isfinite(slope)
        before, f_before, s_before = low, f_low, s_low
        if not finite or value > f0 + RHO * step * s0 or value >= f_low:
            high, f_high, s_high = step, value if finite else math.nan, slope
        else:
            low, f_low, s_low = step, value, slope
            low_q[:] = q
            low_g[:] = g
            if abs(slope) <= -SIGMA * s0:
                break
            if math.isinf(high):
                if slope > 0.0:
                    high, f_high, s_high = before, f_before, s_before
            elif slope * (high - step) > 0.0:
                high, f_high, s_high = before, f_before, s_before
        if math.isinf(high):
            step = before + cubic_minimum(f_before, s_before, f_low, s_low, low - before)
            if not step <= GROWTH * low:
                step = GROWTH * low
            step = max(step, 1.1 * low)
        else:
            width = high - low
            share = cubic_minimum(f_low, s_low, f_high, s_high, width) / width
            if not math.isfinite(share):
                share = 0.5 if math.isfinite(f_high) else 0.1
            step = low + min(max(share, 0.1), 0.9) * width
    q[:] = low_q
    g[:] = low_g
    numbers[LOSS], numbers[STEP] = f_low, low
    return f0 - f_low


@njit(**OPTIONS)
def held_out_loss(run: Run, held_out: TrainingCases, Z: FloatArray, f: FloatArray) -> None:
    """Note the loss on the held-out cases, and the weights if it is the least so far."""
    value = loss(run.q, held_out, Z, f) if held_out.X.shape[1] else run.numbers[LOSS]
    run.numbers[HELD_OUT] = value
    if value < run.numbers[BEST_HELD_OUT]:
        run.numbers[BEST_HELD_OUT] = value
        run.numbers[BEST_ITERATION] = run.numbers[ITERATION]
        run.best[:] = run.q


@njit(**OPTIONS)
def _ended(numbers: FloatArray, squares: float, rule: Rule) -> int:
    """Why the run is over, or GOING_ON; it depends on what was reached alone, so asking twice does no harm."""
    if numbers[IDLE] >= PATIENCE or not squares > 0.0:
        return CONVERGED
    if numbers[EVALUATIONS] >= rule.most_evaluations:
        return USED_UP
    enough = numbers[ITERATION] >= rule.least_iterations and numbers[EVALUATIONS] >= rule.least_evaluations
    if enough and numbers[ITERATION] >= rule.past * numbers[BEST_ITERATION]:
        return PAST_BEST
    return GOING_ON


@njit(**OPTIONS)
def advance(
    run: Run,
    cases: TrainingCases,
    held_out: TrainingCases,
    hidden: int,
    rule: Rule,
    iterations: int,
    evaluations: float,
) -> int:
    """Go on until the rule says stop, or for so many iterations, or until so many evaluations in all.

    Without held-out cases the loss itself is watched. The path is the same however it is cut into calls.
    """
    q, g, d, numbers, P = run.q, run.gradient, run.direction, run.numbers, len(run.q)
    K, n, m = len(cases.T), cases.X.shape[1], held_out.X.shape[1]
    Z, f, below = np.empty((hidden, n)), np.empty((K, n)), np.empty(n)
    Z_out, f_out = np.empty((hidden, m)), np.empty((K, m))
    space, old = np.empty((3, P)), np.empty(P)
    if math.isnan(numbers[LOSS]):
        numbers[LOSS] = loss_and_gradient(q, cases, Z, f, below, g)
        numbers[EVALUATIONS] += 1
        numbers[BEST_HELD_OUT] = math.inf
        held_out_loss(run, held_out, Z_out, f_out)
    for _ in range(iterations):
        squares = np.sum(g * g)
        reason = _ended(numbers, squares, rule)
        if reason != GOING_ON or numbers[EVALUATIONS] >= evaluations:
            return reason
        slope = 0.0
        for j in range(P):
            slope += d[j] * g[j]
        if not slope < 0.0:  # at the start, and where the directions have lost their way
            for j in range(P):
                d[j] = -g[j]
            slope = -squares
            numbers[STEP] = 1.0 / (1.0 + math.sqrt(squares))
        else:
            numbers[STEP] *= min(RATIO, numbers[SLOPE] / slope)
        numbers[SLOPE] = slope
        old[:] = g
        gain = line_search(run, cases, Z, f, below, space)
        numbers[ITERATION] += 1
        held_out_loss(run, held_out, Z_out, f_out)
        numbers[IDLE] = 0.0 if gain > LEAST_GAIN * abs(numbers[LOSS]) else numbers[IDLE] + 1.0
        if gain > 0.0:
            change, former = 0.0, 0.0
            for j in range(P):
                change += g[j] * (g[j] - old[j])
                former += old[j] * old[j]
            factor = max(change / former, 0.0)
            for j in range(P):
                d[j] = factor * d[j] - g[j]
        else:  # begin anew: a direction of nil is none
            d[:] = 0.0
    return _ended(numbers, np.sum(g * g), rule)
