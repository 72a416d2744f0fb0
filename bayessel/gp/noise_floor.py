r"""The least noise of a Gaussian process: beneath it rounding of the numbers is what is fitted.

Copies of rows with equal targets make the likelihood grow without end as the noise falls, until the covariance matrix
is no longer positive definite in double precision. On the way there its values are rounding, and Markov chains stay
where that happened to be high. So searches end at

.. math:: r^2 \ge 10^{-10}\,\overline{t^2},

and chains see the likelihood of that noise wherever theirs is less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights, mean
from bayessel.gp.marginal import Factor, Marginal, Process, SearchedProcess

#: least noise variance in units of the mean square of t
LEAST_NOISE = 1e-10


@dataclass(frozen=True)
class NoiseFloor:
    """The position of the only parameter that the noise depends on, and its least value; None where there is none."""

    index: int | None
    least: float

    @classmethod
    def of(cls, marginal: SearchedProcess) -> NoiseFloor:
        """Of a process and its targets."""
        power = mean_square(marginal.t, marginal.weights)
        index = noise_index(marginal, np.array(marginal.start()), np.ones(marginal.size, dtype=bool))
        return cls(index if power > 0.0 else None, float(np.log(LEAST_NOISE * power)) if power > 0.0 else -np.inf)

    def value(self, marginal: SearchedProcess, theta: FloatArray) -> float:
        """log p(t|θ) with at least this noise."""
        return marginal.value(self.raised(theta))

    def value_and_gradient(self, marginal: SearchedProcess, theta: FloatArray) -> tuple[float, FloatArray]:
        """The same and its derivatives in θ."""
        theta, below = self._above(theta)
        value, gradient = marginal.value_and_gradient(theta)
        if below:
            gradient[self.index] = 0.0
        return value, gradient

    def factor(self, marginal: Marginal, theta: FloatArray) -> Factor:
        """The factor with at least this noise, for predictions."""
        return marginal.factor(self.raised(theta))

    def raised(self, theta: FloatArray) -> FloatArray:
        """θ with at least this noise."""
        return self._above(theta)[0]

    def _above(self, theta: FloatArray) -> tuple[FloatArray, bool]:
        if self.index is None or not theta[self.index] < self.least:
            return theta, False
        theta = np.array(theta)
        theta[self.index] = self.least
        return theta, True


def mean_square(t: FloatArray, weights: RowWeights | None) -> float:
    """Mean square of the targets, in whose units the floor is."""
    return float(mean(t**2, weights))


def noise_index(process: Process, theta: FloatArray, free: npt.NDArray[np.bool_]) -> int | None:
    """Position, among the free parameters, of the only one that the noise depends on."""
    base = process.noise(theta)
    moved = []
    for position, i in enumerate(np.flatnonzero(free)):
        other = theta.copy()
        other[i] += 1.0
        if process.noise(other) != base:
            moved.append(position)
    return moved[0] if len(moved) == 1 else None
