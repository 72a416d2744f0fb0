"""Remarks about a target alone, which every search for hyperparameters makes."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status


def remarks_about(t: FloatArray) -> list[Status]:
    """What a target alone gives cause to say: too few rows, or nothing but a constant."""
    if len(t) < 3:
        return [Status.TOO_FEW_ROWS]
    constant = float(np.ptp(t)) <= 4.0 * np.finfo(float).eps * float(np.abs(t).max())
    return [Status.CONSTANT_TARGET] if constant else []
