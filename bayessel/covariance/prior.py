"""Priors of covariance parameters on the logarithmic scale, where the engines and samplers work.

Two kinds: θ ~ N(mean, sd²), and θ = −log τ with τ ~ Gamma(shape, rate), whose density is
log p(θ) = shape log rate − log Γ(shape) − shape θ − rate e^{−θ} (the inverse of an ARD weight: Rasmussen 1996, ch. 4).
`UnknownMeanPrior` has the mean of these τ as an unknown that all inputs share.
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
    """Independent priors of k parameters; where `is_normal`, (first, second) = (mean, sd), else (shape, rate).

    Examples
    --------
    >>> both = Prior.join(Prior.normal(0.0, 1.0), Prior.inverse_gamma(2.0, 1.0))
    >>> both.draw(np.random.default_rng(0), 5).shape, round(both.log_density(np.zeros(2)), 4)
    ((5, 2), -1.9189)
    """

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


@dataclass(frozen=True, eq=False)
class UnknownMeanPrior:
    r"""The priors of `Prior`, with one unknown factor ρ on the rates of all Gamma distributions, integrated out.

    τ_i = e^{−θ_i} ~ Gamma(shape_i, ρ rate_i) has a mean ∝ 1/ρ: the top-level mean of Rasmussen (1996), section 4.4, as
    a hyperparameter. With ρ ~ Gamma(a, a), which has mean 1, A = a + Σ shape_i and S = a + Σ rate_i τ_i

    .. math:: \log p(\theta) = \sum_i (s_i \log r_i - \log\Gamma(s_i) - s_i\theta_i)
        + a\log a - \log\Gamma(a) + \log\Gamma(A) - A\log S

    beside the normal priors of the other parameters.

    Attributes
    ----------
    given : Prior
        Priors at ρ = 1.
    a : float
        Shape of ρ; large means that ρ is near 1.
    """

    given: Prior
    a: float = 1.0

    def _sums(self, theta: FloatArray) -> tuple[FloatArray, float, float]:
        """The terms rate_i τ_i (0 of normal priors), A, S."""
        given = self.given
        with np.errstate(over="ignore"):
            terms = np.where(given.is_normal, 0.0, given.second * np.exp(np.where(given.is_normal, 0.0, -theta)))
        return terms, self.a + float(given.first[~given.is_normal].sum()), self.a + float(terms.sum())

    def log_density(self, theta: FloatArray) -> float:
        """Log density, constants included."""
        given, (_, total, scale) = self.given, self._sums(theta)
        shape, rate = given.first[~given.is_normal], given.second[~given.is_normal]
        alone = float((shape * np.log(rate) - gammaln(shape) - shape * theta[~given.is_normal]).sum())
        shared = float(self.a * np.log(self.a) - gammaln(self.a) + gammaln(total) - total * np.log(scale))
        return given.some(given.is_normal).log_density(theta[given.is_normal]) + alone + shared

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Derivative of the log density."""
        terms, total, scale = self._sums(theta)
        given = self.given
        return np.where(given.is_normal, -(theta - given.first) / given.second**2, -given.first + total * terms / scale)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivatives of the log density, (k, k)."""
        terms, total, scale = self._sums(theta)
        share = terms / scale
        normal = np.where(self.given.is_normal, -1.0 / self.given.second**2, 0.0)
        return np.diag(normal - total * share) + total * np.outer(share, share)

    def draw(self, rng: np.random.Generator, size: int | None = None) -> FloatArray:
        """Draws of θ, (k,) or (size, k)."""
        rho = rng.gamma(self.a, 1.0 / self.a, () if size is None else (size, 1))
        drawn = self.given.draw(rng, size)
        return np.where(self.given.is_normal, drawn, drawn + np.log(rho))
