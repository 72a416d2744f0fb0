r"""Draws of a few parameters whose log density is expensive, by Hamiltonian Monte Carlo on arrays, begun at a mode.

In the coordinates :math:`z = H^{1/2}\theta`, H the Hessian of minus the log density at the mode, the density is about a
unit normal one, so few leapfrog steps of a trajectory of length π/2 lead to an almost independent draw (Neal 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray

#: lengths of trajectories vary about π/2, so that no direction comes back to where it began
LENGTH, LENGTHS_VARY = 1.6, 0.4
#: leapfrog steps of a trajectory at most
MOST_STEPS = 8
#: acceptance rate that the step size is tuned to; the first step size; the largest
ACCEPTED, FIRST_STEP, LARGEST_STEP = 0.8, 0.3, 1.2
#: how fast the step size follows acceptance, forgets its beginning, and its mean does (Hoffman and Gelman 2014, § 3.2)
_FOLLOWS, _BEGINNING, _FORGETS = 0.1, 10.0, 0.75
#: after tuning the logarithm of the step size varies with this standard deviation
_STEPS_VARY = 0.15


class HamiltonianDraws(NamedTuple):
    """Draws (S, k), the share of trajectories accepted, and the number of evaluations."""

    draws: FloatArray
    accepted: float
    n_evaluations: int


def hamiltonian_draws(
    density: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    root: FloatArray,
    *,
    draws: int,
    tune: int,
    rng: np.random.Generator,
) -> HamiltonianDraws:
    """Draw from a density.

    Parameters
    ----------
    density
        θ -> log density (up to a constant) and its gradient; minus infinity where it is nil.
    start : (k,) array
        Where the chain begins.
    root : (k, k) array
        W with covariance about W Wᵀ: θ moves along Wz.
    draws, tune
        Trajectories whose ends are returned, after so many that tune the step size and forget the start.
    rng
        Momenta, lengths and acceptances.
    """
    theta = np.array(start)
    value, gradient = density(theta)
    centre, size = np.log(10.0 * FIRST_STEP), np.log(FIRST_STEP)
    mean_size, lag, evaluations = 0.0, 0.0, 1
    kept: list[FloatArray] = []
    accepted = 0.0
    for i in range(tune + draws):
        tuning = i < tune
        p = rng.standard_normal(len(theta))
        step = float(np.exp(size + (0.0 if tuning else _STEPS_VARY) * rng.standard_normal()))
        length = LENGTH * (1.0 + LENGTHS_VARY * (2.0 * rng.random() - 1.0))
        count = int(np.clip(np.ceil(length / step), 1, MOST_STEPS))
        there, new, slope, q = theta, value, gradient, p
        for _ in range(count):
            q = q + 0.5 * step * (root.T @ slope)
            there = there + step * (root @ q)
            new, slope = density(there)
            evaluations += 1
            if not (np.isfinite(new) and np.isfinite(slope).all()):
                new = -np.inf
                break
            q = q + 0.5 * step * (root.T @ slope)
        rate = float(np.exp(min(0.0, float(new - 0.5 * q @ q - value + 0.5 * p @ p)))) if np.isfinite(new) else 0.0
        if rng.random() < rate:
            theta, value, gradient = there, new, slope
        if tuning:
            k = i + 1.0
            lag += (ACCEPTED - rate - lag) / (k + _BEGINNING)
            size = min(centre - np.sqrt(k) / _FOLLOWS * lag, np.log(LARGEST_STEP))
            mean_size += k**-_FORGETS * (size - mean_size)
            size = mean_size if i == tune - 1 else size
        else:
            kept.append(theta)
            accepted += rate / draws
    return HamiltonianDraws(np.array(kept).reshape(-1, len(theta)), accepted, evaluations)
