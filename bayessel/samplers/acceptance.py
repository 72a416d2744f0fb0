"""Accept or reject with a uniform variable that persists (Neal 2020, arXiv 2001.11950).

The state carries v, uniform on (−1, 1), and a move of probability ratio r = π*/π is accepted when |v| < r. Instead of
being drawn anew, v moves on by a little before each decision and wraps around at 1. An accepted move divides it by r:
then (state, v) → (state*, v/r) keeps the volume π dv, so the joint distribution stays uniform in v. Between two
visits of |v| ≈ 1 few moves are rejected, so the rejections, each of which turns a persistent momentum round, come in
clusters, with long runs in one direction between them.
"""

from __future__ import annotations

from math import exp

import numpy as np


def draw(rng: np.random.Generator) -> float:
    """A new v, uniform on [−1, 1): what plain Metropolis does before each decision."""
    return 2.0 * rng.random() - 1.0


def advance(v: float, delta: float, rng: np.random.Generator) -> float:
    """Move v by `delta` on average, between half and one and a half times that, around the circle [−1, 1).

    The random part is independent of the state, so the uniform distribution stays; without it v could be caught in a
    cycle.
    """
    v = v + delta * (0.5 + rng.random())
    return v - 2.0 * ((v + 1.0) // 2.0)


def accepts(v: float, log_ratio: float) -> bool:
    """Whether |v| < r."""
    return abs(v) < exp(min(log_ratio, 0.0))


def rescale(v: float, log_ratio: float) -> float:
    """v/r after an acceptance; within (−1, 1), because |v| < r."""
    return v * exp(min(-log_ratio, 700.0))
