"""Slice sampling of one variable: stepping out and shrinkage (Neal 2003, figures 3 and 5).

Draw a level below the density at x, find an interval around x that reaches out of the slice above that level, then draw
from the interval until the draw is in the slice, each miss shrinking the interval towards x. The density is left
invariant whatever its shape; only the time depends on the width.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayessel._check import as_count, as_positive


class SliceDraw(NamedTuple):
    """A draw, the evaluations it took, and the length of the interval that stepping out had found."""

    x: float
    evaluations: int
    interval: float


def slice_sample(
    log_density: Callable[[float], float],
    x: float,
    rng: np.random.Generator,
    width: float,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    max_steps: int = 1000,
) -> SliceDraw:
    """Make one transition from x that leaves exp(log_density) invariant.

    Parameters
    ----------
    log_density : callable
        x -> log density up to a constant, −inf outside its support.
    x : float
        Where the chain is; of positive density.
    rng : numpy.random.Generator
        Source of the draws.
    width : float
        Length of a step outwards; best about the width of the density. It must not depend on x.
    lower, upper : float
        Ends of the support, if there are any.
    max_steps : int
        Most steps outwards (m of Neal 2003): the interval is `max_steps` widths long at most.
    """
    width = as_positive(width, "width")
    max_steps = as_count(max_steps, "max_steps")
    evaluations = 0

    def h(at: float) -> float:
        nonlocal evaluations
        evaluations += 1
        value = float(log_density(at))
        if math.isnan(value) or value == math.inf:
            raise ValueError(f"the log density must be a number or -inf, got {value} at x = {at!r}")
        return value

    x = float(x)
    if not lower <= x <= upper or (here := h(x)) == -math.inf:
        raise ValueError(f"slice sampling must start where the density is positive, got x = {x!r}")
    level = here + math.log1p(-rng.random())
    left = x - width * rng.random()
    right = left + width
    # the steps are shared out between the sides at random, else a limit on them would bias the draws
    left_steps = int(max_steps * rng.random())
    right_steps = max_steps - 1 - left_steps
    while left_steps > 0 and left > lower and h(left) > level:
        left -= width
        left_steps -= 1
    while right_steps > 0 and right < upper and h(right) > level:
        right += width
        right_steps -= 1
    left, right = max(left, lower), min(right, upper)
    interval = right - left
    while True:
        new = left + rng.random() * (right - left)
        if h(new) > level:
            return SliceDraw(new, evaluations, interval)
        if new < x:
            left = new
        elif new > x:
            right = new
        else:  # the interval is down to x itself: no other number of double precision lies in the slice
            return SliceDraw(x, evaluations, interval)
