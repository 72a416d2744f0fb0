"""What happens to the whitened momentum φ ~ N(0, I) between trajectories."""

from __future__ import annotations

from math import sqrt

import numpy as np

from bayessel._check import FloatArray


def fresh(rng: np.random.Generator, size: int) -> FloatArray:
    """A new momentum from N(0, I)."""
    return rng.standard_normal(size)


def refresh(momentum: FloatArray, persistence: float, noise: FloatArray) -> FloatArray:
    """φ ← aφ + √(1 − a²) ξ with ξ ~ N(0, I): leaves N(0, I) as it is (Horowitz 1991)."""
    return persistence * momentum + sqrt(1.0 - persistence * persistence) * noise


def flip(momentum: FloatArray) -> FloatArray:
    """φ ← −φ, which every rejection needs.

    A trajectory followed by a flip undoes itself, and only such a proposal may be accepted by the ratio of densities
    alone. The flip that belongs to the proposal and a second one after the decision cancel when it is accepted.
    """
    return -momentum
