"""What the searches for hyperparameters share at the door, and what they remark about data."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray, as_count
from bayessel.result import Status


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a generator from one, from a seed, or from None for a fresh one."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(None if random_state is None else as_count(random_state, "random_state", minimum=0))


def remarks_about(t: FloatArray) -> list[Status]:
    """What a target alone gives cause to say: too few rows, or nothing but a constant."""
    if len(t) < 3:
        return [Status.TOO_FEW_ROWS]
    constant = float(np.ptp(t)) <= 4.0 * np.finfo(float).eps * float(np.abs(t).max())
    return [Status.CONSTANT_TARGET] if constant else []
