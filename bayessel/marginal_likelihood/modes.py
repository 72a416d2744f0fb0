"""Modes of a density, with their curvature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from bayessel._check import FloatArray
from bayessel.marginal_likelihood.density_rows import climb_rows, log_densities
from bayessel.samplers.compiled_density import CompiledCall, LogDensity

#: steps of one ascent
MOST_STEPS = 500
#: steps of a short climb, the first in units of the scale, and ascents from where climbs have led
CLIMB, CLIMB_FROM, MOST_POLISHED = 80, 0.1, 30
#: step of the differences that curvature is made of, in units of the scale of each coordinate
_APART = 1e-4
#: modes nearer to each other than this, in standard deviations per root of the dimension, are one
_SAME = 0.1
#: draws by which a mode's mass is checked
PROBES = 60
#: standard deviations of the squared distance from a mode, within which points of a sample that knows it lie
_NEAR = 3.0


class DensityMode(NamedTuple):
    """A place of highest density.

    Attributes
    ----------
    place : (d,) array
    log_density : float
    factor : (d, d) array
        L with LLᵀ the inverse of minus the Hessian of the log density.
    """

    place: FloatArray
    log_density: float
    factor: FloatArray
    #: what Laplace's approximation is too large by, in nats
    excess: float = 0.0


class FoundModes(NamedTuple):
    """Modes, the highest first, and evaluations."""

    modes: list[DensityMode]
    calls: int


def find_modes(whole: LogDensity, starts: FloatArray, scale: FloatArray, crowd: FloatArray | None = None) -> FoundModes:
    """Ascend from every start, and from those of a crowd that a short climb leads to somewhere else.

    Parameters
    ----------
    scale : (d,) array
        About the size of each coordinate.
    crowd : (n, d) array, optional
        Many points, as of the prior.
    """
    found = _ascents(whole, starts, scale, [])
    if crowd is None or not len(crowd):
        return found
    climbed = climb_rows(whole, crowd, CLIMB_FROM * scale, CLIMB)
    logs = log_densities(whole, climbed)[0]
    calls, modes = found.calls + (CLIMB + 1) * len(crowd), found.modes
    order = np.argsort(-logs)
    for _ in range(MOST_POLISHED):
        left = [i for i in order if np.isfinite(logs[i]) and not any(_is_near(climbed[i], one) for one in modes)]
        if not left:
            break
        before = len(modes)
        more = _ascents(whole, climbed[left[:1]], scale, modes)
        calls, modes, logs[left[0]] = calls + more.calls, more.modes, -np.inf
        if len(modes) == before:
            # on the slope of something that has no maximum, or of one that is known: others there need not be tried
            apart = np.abs(climbed - climbed[left[0]]) / scale
            logs[(apart < 1.0).all(axis=1)] = -np.inf
    return FoundModes(modes, calls)


def _ascents(whole: LogDensity, starts: FloatArray, scale: FloatArray, known: list[DensityMode]) -> FoundModes:
    calls, modes = 0, list(known)
    for start in starts:
        place, more = _ascend(whole, start, scale)
        calls += more
        if place is None or any(_is_same(place, one) for one in modes):
            continue
        mode, more = _curved(whole, place, scale)
        calls += more
        if mode is not None:
            modes.append(mode)
    return FoundModes(sorted(modes, key=lambda one: -one.log_density), calls)


def _one(whole: LogDensity, place: FloatArray) -> tuple[float, FloatArray]:
    if isinstance(whole, CompiledCall):
        values, slopes = log_densities(whole, place[None])
        return float(values[0]), slopes[0]
    value, slope = whole(place)
    return float(value), np.asarray(slope)


def _ascend(whole: LogDensity, start: FloatArray, scale: FloatArray) -> tuple[FloatArray | None, int]:
    calls = 0

    def loss(z: FloatArray) -> tuple[float, FloatArray]:
        nonlocal calls
        calls += 1
        value, slope = _one(whole, start + scale * z)
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return 1e300, np.zeros(len(z))
        return -value, -slope * scale

    with np.errstate(all="ignore"):
        if loss(np.zeros(len(start)))[0] >= 1e300:
            return None, calls
        found = minimize(
            loss, np.zeros(len(start)), jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS, "ftol": 1e-13}
        )
    return start + scale * found.x, calls


def _is_same(place: FloatArray, mode: DensityMode) -> bool:
    try:
        z = np.linalg.solve(mode.factor, place - mode.place)
    except np.linalg.LinAlgError:
        return False
    return bool(np.sqrt(z @ z / len(z)) < _SAME)


def _is_near(place: FloatArray, mode: DensityMode) -> bool:
    """Whether a point that has not quite arrived is on its way to a mode."""
    z = np.linalg.solve(mode.factor, place - mode.place)
    return bool(z @ z < len(z) + _NEAR * np.sqrt(2.0 * len(z)))


def _curved(whole: LogDensity, place: FloatArray, scale: FloatArray) -> tuple[DensityMode | None, int]:
    """The mode with its curvature, by differences of gradients; None where there is no maximum."""
    d = len(place)
    scale = scale.copy()
    for _ in range(2):  # the second time in units of the mode's own curvature
        steps = _APART * scale
        rows = np.concatenate([place + np.diag(steps), place - np.diag(steps)])
        values, slopes = log_densities(whole, rows)
        if not (np.isfinite(values).all() and np.isfinite(slopes).all()):
            return None, 4 * d
        hessian = (slopes[d:] - slopes[:d]) / (2.0 * steps[:, None])
        hessian = 0.5 * (hessian + hessian.T)
        diagonal = np.diag(hessian)
        if not (diagonal > 0.0).all():
            return None, 4 * d
        scale = 1.0 / np.sqrt(diagonal)
    try:
        lower = np.linalg.cholesky(hessian * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return None, 4 * d
    factor = scale[:, None] * np.linalg.solve(lower.T, np.eye(d))
    # one step of Newton: what the ascent has left
    value, slope = _one(whole, place)
    better = place + factor @ (factor.T @ slope)
    again, _ = _one(whole, better)
    if np.isfinite(again) and again > value:
        place, value = better, again
    return DensityMode(place, value, factor, _excess(whole, place, value, factor)), 4 * d + 2 + PROBES


def _excess(whole: LogDensity, place: FloatArray, value: float, factor: FloatArray) -> float:
    """By how much Laplace's approximation is too large, by a few draws of the normal that it is.

    At the neck of a funnel the curvature holds for a small part of it.
    """
    z = np.random.default_rng(0).standard_normal((PROBES, len(place)))
    ratios = log_densities(whole, place + z @ factor.T)[0] - value + 0.5 * (z * z).sum(axis=1)
    top = ratios.max()
    mean = top + np.log(np.mean(np.exp(ratios - top))) if np.isfinite(top) else -np.inf
    return float(max(-mean, 0.0))


def unvisited(modes: list[DensityMode], rows: FloatArray) -> float:
    """Share of the mass, by Laplace's approximation, of modes near which none of many points lies."""
    d = rows.shape[1]
    logs = np.array([laplace(mode) - mode.excess for mode in modes])
    shares = np.exp(logs - logs.max())
    missed = 0.0
    for mode, share in zip(modes, shares / shares.sum(), strict=True):
        z = np.linalg.solve(mode.factor, (rows - mode.place).T)
        missed += share * bool((z * z).sum(axis=0).min() > d + _NEAR * np.sqrt(2.0 * d))
    return missed


def laplace(mode: DensityMode) -> float:
    """Laplace's approximation of the log integral around one mode."""
    d = len(mode.place)
    return float(mode.log_density + 0.5 * d * np.log(2.0 * np.pi) + np.log(np.diag(mode.factor)).sum())
