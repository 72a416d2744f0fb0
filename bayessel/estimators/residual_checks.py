"""Residuals beside the normal noise that every regressor here assumes."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status

#: a residual further from the median than so many robust standard deviations is no normal noise; of N rows 1 + 10/N
#: times as many, for of few rows that deviation is itself unsure
FAR = 6.0
FEWEST_ROWS = 20
#: rows for each of which one more may lie far away
ROWS_PER_STRANGER = 200
#: standard deviation of normal noise over its median absolute deviation
_NORMAL = 1.4826


def remarks_on_residuals(residuals: FloatArray) -> tuple[Status, ...]:
    """HEAVY_TAILS where residuals, (N,) or (N, K), are no normal noise; of normal ones in less than one fit of 200."""
    columns = residuals.reshape(len(residuals), -1)
    return (Status.HEAVY_TAILS,) if any(map(_heavy, columns.T)) else ()


def _heavy(residuals: FloatArray) -> bool:
    if len(residuals) < FEWEST_ROWS or not np.isfinite(residuals).all():
        return False
    away = np.abs(residuals - np.median(residuals))
    spread = _NORMAL * float(np.median(away))
    n = len(residuals)
    return bool((away > FAR * (1.0 + 10.0 / n) * spread).sum() > n // ROWS_PER_STRANGER) if spread > 0.0 else False
