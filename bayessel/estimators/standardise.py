"""Robust standardisation of a data set, as DELVE encodes it by default (Rasmussen 1996, section 3.2).

Real columns get median 0 and mean absolute deviation 1 from it; inputs with two values become 0 and 1. A few huge
values of an input decide that deviation: robust inputs have the spread of their central two thirds, in the same unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, check_magnitude
from bayessel._row_weights import RowWeights
from bayessel.estimators.found_width import robust_spread
from bayessel.fit import LeaveOneOut

#: mean absolute deviation of a normal distribution, in standard deviations
_DEVIATION = float(np.sqrt(2.0 / np.pi))
#: size of numbers whose sums and differences may overflow
LARGEST = 1e300


@dataclass(frozen=True, eq=False)
class Standardisation:
    """X → (X − input_shift)/input_scale and y → (y − target_shift)/target_scale; y (n,) or (n, K)."""

    input_shift: FloatArray
    input_scale: FloatArray
    target_shift: Any  # a number, or one for each output
    target_scale: Any

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, robust: bool = False) -> Self:
        """Found in the training data; a column that does not vary is shifted and not scaled.

        With `robust`, the scale of an input is its `robust_spread`, in the unit of the deviation.
        """
        shift, scale = _robust(X, "X")
        if robust:
            scale = np.where(np.ptp(X, axis=0) > 0.0, _DEVIATION * robust_spread(X), scale)
        low, high = X.min(axis=0), X.max(axis=0)
        two = ((X == low) | (X == high)).all(axis=0) & (low < high)
        target_shift, target_scale = _robust(y if y.ndim == 2 else y[:, None], "y")
        return cls(
            np.where(two, low, shift),
            np.where(two, high - low, scale),
            target_shift if y.ndim == 2 else float(target_shift[0]),
            target_scale if y.ndim == 2 else float(target_scale[0]),
        )

    @classmethod
    def none(cls, m: int) -> Self:
        """Leave everything as it is."""
        return cls(np.zeros(m), np.ones(m), 0.0, 1.0)

    def inputs(self, X: ArrayLike) -> FloatArray:
        """Inputs in the units of the model; infinite where these cannot hold them."""
        with np.errstate(over="ignore"):
            return (np.asarray(X, dtype=np.float64) - self.input_shift) / self.input_scale

    def targets(self, y: FloatArray) -> FloatArray:
        """Targets in the units of the model."""
        return (y - self.target_shift) / self.target_scale

    def left_out(self, found: LeaveOneOut) -> LeaveOneOut:
        """Predictions of the rows left out, from the units of the model in those of the user."""
        scale = self.target_scale
        whole = None if found.prediction is None else found.prediction.scaled(self.target_shift, scale)
        densities = found.log_densities - self.log_scale
        return LeaveOneOut(scale * found.errors, scale**2 * found.variances, densities, whole)

    @property
    def log_scale(self) -> float:
        """What one density in the model's units loses in those of the user: log p(y) = log p(t) − log scale."""
        return float(np.sum(np.log(self.target_scale)))


def robust_deviation(y: FloatArray, weights: RowWeights | None = None) -> float:
    """Mean absolute deviation of the central two thirds of a target (N,), as of inputs; 1 where it does not vary."""
    return _DEVIATION * float(robust_spread(y[:, None], weights)[0]) if np.ptp(y) > 0.0 else 1.0


def _robust(columns: FloatArray, name: str) -> tuple[FloatArray, FloatArray]:
    """Median and mean absolute deviation from it of each column; 1 where it does not vary."""
    columns = np.ascontiguousarray(columns)  # sums in one order, whatever the order in memory
    check_magnitude(columns, name, LARGEST, tiny=True)
    median = np.median(columns, axis=0)
    deviation = np.abs(columns - median).mean(axis=0)
    # rounding in the median of equal numbers is no variation
    varies = deviation > 4.0 * np.finfo(float).eps * np.abs(median)
    return median, np.where(varies, deviation, 1.0)
