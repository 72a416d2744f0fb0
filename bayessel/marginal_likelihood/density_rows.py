"""Log densities of many points, and moves of many points that leave a density as it is.

A point is a row. Loops are compiled where both densities are machine code (`compiled_density`), and run in Python
otherwise, with the same random numbers.
"""

from __future__ import annotations

from functools import cache
from math import exp, inf, isfinite
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray
from bayessel.samplers.compiled_density import CompiledCall, LogDensity, evaluate

#: by how much a leapfrog's step is made longer or shorter, once for each trajectory
JITTER = 0.2


def log_densities(log_density: LogDensity, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log density and gradient of each row; minus infinity where there is none."""
    values, gradients = np.empty(len(rows)), np.empty(rows.shape)
    rows = np.ascontiguousarray(rows)
    if isinstance(log_density, CompiledCall):
        _compiled()[0](*log_density, rows, values, gradients)
    else:
        with np.errstate(all="ignore"):
            _evaluate_rows(log_density, rows, values, gradients)
    return np.where(np.isnan(values) | (values == inf), -inf, values), gradients


@register_jitable
def _evaluate_rows(log_density: LogDensity, rows: FloatArray, values: FloatArray, gradients: FloatArray) -> None:
    for i in range(len(rows)):
        values[i], slope = evaluate(log_density, rows[i].copy())
        gradients[i] = slope


def move_rows(
    prior: LogDensity,
    whole: LogDensity,
    temperature: float,
    rows: FloatArray,
    logs: FloatArray,
    factor: FloatArray,
    step: float,
    n_leapfrog: int,
    updates: int,
    rng: np.random.Generator,
) -> float:
    """Hamiltonian updates of every row, which leave prior^(1−t) whole^t as it is; the mean acceptance rate.

    Parameters
    ----------
    rows, logs : (n, d), (n, 2) array
        Points, and log densities of both there; changed in place.
    factor : (d, d) array
        L with LLᵀ about the covariance of the points.
    """
    arguments = (temperature, rows, logs, factor, step, n_leapfrog, updates, rng)
    if isinstance(prior, CompiledCall) and isinstance(whole, CompiledCall):
        return float(_compiled()[1](*prior, *whole, *arguments))
    with np.errstate(all="ignore"):
        return _move_rows(prior, whole, *arguments)


@register_jitable
def _tempered(prior: LogDensity, whole: LogDensity, t: float, q: FloatArray) -> tuple[float, float, FloatArray]:
    """Log densities of both, and the gradient of the mixture."""
    first, slope = evaluate(prior, q)
    second, steep = evaluate(whole, q)
    gradient = np.empty(len(q))
    for k in range(len(q)):
        gradient[k] = (1.0 - t) * slope[k] + t * steep[k]
    return first, second, gradient


@register_jitable
def _move_rows(
    prior: LogDensity,
    whole: LogDensity,
    t: float,
    rows: FloatArray,
    logs: FloatArray,
    factor: FloatArray,
    step: float,
    n_leapfrog: int,
    updates: int,
    rng: np.random.Generator,
) -> float:
    n, d = rows.shape
    total = 0.0
    turned = np.ascontiguousarray(factor.T)
    for i in range(n):
        for _ in range(updates):
            q = rows[i].copy()
            first, second, gradient = _tempered(prior, whole, t, q)
            before = (1.0 - t) * first + t * second
            momentum = np.empty(d)
            for k in range(d):
                momentum[k] = rng.standard_normal()
            kinetic = 0.5 * np.dot(momentum, momentum)
            size = step * (1.0 + JITTER * (2.0 * rng.random() - 1.0))
            length = 1 + int(rng.random() * n_leapfrog)
            uniform = rng.random()
            alive = True
            for _step in range(length):
                momentum = momentum + 0.5 * size * np.dot(turned, gradient)
                q = q + size * np.dot(factor, momentum)
                first, second, gradient = _tempered(prior, whole, t, q)
                momentum = momentum + 0.5 * size * np.dot(turned, gradient)
                if not (isfinite(first) and isfinite(second)):
                    alive = False
                    break
            if not alive:
                continue
            gain = (1.0 - t) * first + t * second - before + kinetic - 0.5 * np.dot(momentum, momentum)
            if not isfinite(gain):
                continue
            rate = exp(min(gain, 0.0))
            total += rate
            if uniform < rate:
                rows[i] = q
                logs[i, 0], logs[i, 1] = first, second
    return total / (n * updates)


def climb_rows(log_density: LogDensity, rows: FloatArray, size: FloatArray, count: int) -> FloatArray:
    """Points further up the density, by steps that follow only the signs of the gradient (Rprop).

    Parameters
    ----------
    size : (d,) array
        First step of each coordinate.
    count : int
        Steps.
    """
    rows = np.ascontiguousarray(rows.copy())
    if isinstance(log_density, CompiledCall):
        _compiled()[2](*log_density, rows, size, count)
    else:
        with np.errstate(all="ignore"):
            _climb_rows(log_density, rows, size, count)
    return rows


@register_jitable
def _climb_rows(log_density: LogDensity, rows: FloatArray, size: FloatArray, count: int) -> None:
    n, d = rows.shape
    for i in range(n):
        q, best = rows[i].copy(), -inf
        step, before = size.copy(), np.zeros(d)
        for _ in range(count):
            value, slope = evaluate(log_density, q)
            if isfinite(value) and value > best:
                best = value
                rows[i] = q
            for k in range(d):
                if not isfinite(slope[k]) or not isfinite(value):
                    step[k] *= 0.5
                    q[k] = rows[i, k]
                    before[k] = 0.0
                    continue
                turn = slope[k] * before[k]
                if turn > 0.0:
                    step[k] *= 1.2
                elif turn < 0.0:
                    step[k] *= 0.5
                before[k] = slope[k]
                if slope[k] > 0.0:
                    q[k] += step[k]
                elif slope[k] < 0.0:
                    q[k] -= step[k]


def _rows_by_call(function: Any, others: Any, rows: FloatArray, values: FloatArray, gradients: FloatArray) -> None:
    _evaluate_rows(CompiledCall(function, others), rows, values, gradients)


def _move_by_call(
    function: Any,
    others: Any,
    whole_function: Any,
    whole_others: Any,
    t: float,
    rows: FloatArray,
    logs: FloatArray,
    factor: FloatArray,
    step: float,
    n_leapfrog: int,
    updates: int,
    rng: np.random.Generator,
) -> float:
    prior, whole = CompiledCall(function, others), CompiledCall(whole_function, whole_others)
    return _move_rows(prior, whole, t, rows, logs, factor, step, n_leapfrog, updates, rng)


def _climb_by_call(function: Any, others: Any, rows: FloatArray, size: FloatArray, count: int) -> None:
    _climb_rows(CompiledCall(function, others), rows, size, count)


@cache
def _compiled() -> tuple[Any, Any, Any]:
    """The loops as machine code, kept on disk."""
    from bayessel._compiled import njit

    return njit()(_rows_by_call), njit()(_move_by_call), njit()(_climb_by_call)
