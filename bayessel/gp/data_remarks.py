"""Remarks about the rows alone, which every search for hyperparameters makes."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status


def remarks_about(X: FloatArray, t: FloatArray) -> list[Status]:
    """What rows alone give cause to say: too few of them, a constant target, or inputs none of which varies."""
    if len(t) < 3:
        return [Status.TOO_FEW_ROWS]
    if float(np.ptp(t)) <= 4.0 * np.finfo(float).eps * float(np.abs(t).max()):
        return [Status.CONSTANT_TARGET]
    return [] if np.ptp(X, axis=0).any() else [Status.PURE_NOISE]
