"""Hyperbolic tangent for compiled loops that run in vectors.

It takes two thirds of a small network's time when the mathematical library computes it one number after the other, 7 ns
each instead of 0.6. The largest relative error is 4·10⁻¹⁶. Importing this module imports numba.
"""

from __future__ import annotations

import math

from bayessel._compiled import njit
from bayessel._fast_exp import OPTIONS, parts


@njit(**OPTIONS)
def tanh(x: float) -> float:
    """tanh |x| = E/(E + 2), E = e^{2|x|} − 1; no branches, so loops run in vectors."""
    y = 2.0 * abs(x)
    y = 44.0 if y > 44.0 else y  # tanh is 1 to the last bit from 19.1 on; NaN goes through
    two, grown = parts(y)
    return math.copysign((grown + (two - 1.0)) / (grown + (two + 1.0)), x)
