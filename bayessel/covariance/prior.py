"""Priors of covariance parameters on the logarithmic scale, where the engines and samplers work.

Two kinds: θ ~ N(mean, sd²), and θ = −log τ with τ ~ Gamma(shape, rate), whose density is
log p(θ) = shape log rate − log Γ(shape) − shape θ − rate e^{−θ} (the inverse of an ARD weight: Rasmussen 1996, ch. 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bayessel._check import FloatArray


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent priors of k parameters; where `is_normal`, (first, second) = (mean, sd), else (shape, rate)."""

    is_normal: npt.NDArray[np.bool_]
    first: FloatArray
    second: FloatArray

    @classmethod
    def normal(cls, mean: float, sd: float, k: int = 1) -> Self:
        """k parameters with θ ~ N(mean, sd²)."""
        return cls(np.ones(k, dtype=bool), np.full(k, float(mean)), np.full(k, float(sd)))

    @classmethod
    def inverse_gamma(cls, shape: float, rate: float, k: int = 1) -> Self:
        """k parameters with e^{−θ} ~ Gamma(shape, rate)."""
        return cls(np.zeros(k, dtype=bool), np.full(k, float(shape)), np.full(k, float(rate)))

    @classmethod
    def join(cls, *parts: Prior) -> Self:
        """The priors of all parts, one after the other."""
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in ("is_normal", "first", "second")))

    def some(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """The priors of some of the parameters."""
        return replace(self, is_normal=self.is_normal[chosen], first=self.first[chosen], second=self.second[chosen])

    def log_density(self, theta: FloatArray) -> float:
        """Sum of the log densities, constants included."""
        normal, a, b = self.is_normal, self.first, self.second
        with np.errstate(over="ignore", invalid="ignore"):
            z = (theta - a) / b
            gauss = -0.5 * z * z - np.log(b) - 0.5 * np.log(2.0 * np.pi)
            gamma = a * np.log(np.where(normal, 1.0, b)) - gammaln(np.where(normal, 1.0, a)) - a * theta
            gamma = gamma - b * np.exp(-theta)
        return float(np.where(normal, gauss, gamma).sum())

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Derivative of the log density."""
        with np.errstate(over="ignore"):
            gamma = -self.first + self.second * np.exp(-theta)
        return np.where(self.is_normal, -(theta - self.first) / self.second**2, gamma)

    def hessian_diagonal(self, theta: FloatArray) -> FloatArray:
        """Second derivatives of the log density; the mixed ones are nil."""
        with np.errstate(over="ignore"):
            gamma = -self.second * np.exp(-theta)
        return np.where(self.is_normal, -1.0 / self.second**2, gamma)

    def draw(self, rng: np.random.Generator, size: int | None = None) -> FloatArray:
        """Draws of θ, (k,) or (size, k)."""
        shape = (len(self.first),) if size is None else (size, len(self.first))
        z = rng.standard_normal(shape)
        tau = rng.standard_gamma(np.where(self.is_normal, 1.0, self.first), shape)
        rate = np.where(self.is_normal, 1.0, self.second)
        return np.where(self.is_normal, self.first + self.second * z, np.log(rate) - np.log(tau))
