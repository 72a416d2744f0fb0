"""Losses of one method, or of two on the same cases, checked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_matrix


def as_losses(losses: npt.ArrayLike, against: npt.ArrayLike | None) -> FloatArray:
    """Return losses (I, J), less those of the second method where there is one."""
    table = as_matrix(losses, "losses")
    if min(table.shape) < 2:
        raise ValueError(
            "losses must be (I, J), a row of J test cases for each of I training sets, both at least 2; got shape "
            f"{table.shape}: with fewer the variation cannot be estimated"
        )
    if against is None:
        return table
    other = as_matrix(against, "against")
    if other.shape != table.shape:
        raise ValueError(
            f"against must be losses of the same {table.shape} training sets and cases, got shape {other.shape}"
        )
    return table - other


def size_of(losses: FloatArray) -> float:
    """A power of two about the largest loss: losses over it keep all digits, and their squares stay in range."""
    return float(np.ldexp(1.0, np.frexp(np.abs(losses).max())[1] - 1)) if losses.any() else 1.0
