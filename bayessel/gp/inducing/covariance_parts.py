"""A covariance cut into features, noise and the rest: only the rest is seen through inducing inputs.

The weights of a bias or a linear term are as good as inducing values, and few: those terms are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance import Bias, Covariance, Linear, Noise, SquaredExponential, Standard
from bayessel.covariance.algebra import Sum
from bayessel.gp.inducing.cross_covariance import Cross, GeneralCross
from bayessel.gp.inducing.squared_exponential_cross import SquaredExponentialCross

#: (θ, X, Z) -> the term there
Kernel = Callable[[FloatArray, FloatArray, FloatArray], Cross]


@dataclass
class CovarianceParts:
    """The parts of a covariance of m inputs.

    Attributes
    ----------
    features
        Column of [1, X] and position in θ of the variance of its weight, for each weight of a bias or linear term.
    noise
        Positions in θ of noise variances.
    kernels
        What makes the other terms.
    """

    features: list[tuple[int, int]] = field(default_factory=list)
    noise: list[int] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)

    @property
    def positions(self) -> list[int]:
        """Position in θ of the variance of each weight."""
        return [position for _, position in self.features]

    def design(self, X: FloatArray) -> FloatArray:
        """Columns that the weights multiply, (n, weights)."""
        return np.column_stack([np.ones(len(X)), X])[:, [column for column, _ in self.features]]

    def at(self, theta: FloatArray, X: FloatArray, Z: FloatArray) -> list[Cross]:
        """The terms that are not exact, at θ."""
        return [kernel(theta, X, Z) for kernel in self.kernels]


def parts_of(covariance: Covariance, m: int) -> CovarianceParts:
    """Cut a covariance into its parts."""
    found = CovarianceParts()
    _add(found, covariance, m, 0)
    if not found.kernels:
        raise ValueError(
            f"{covariance!r} has bias, linear and noise terms only, which need no inducing inputs: use "
            "bayessel.linear.fit_evidence, or add a covariance such as SquaredExponential()"
        )
    return found


def _add(found: CovarianceParts, covariance: Covariance, m: int, first: int) -> None:
    """Add a term whose θ begins at `first`."""
    if isinstance(covariance, Sum):
        for term in covariance.terms:
            _add(found, term, m, first)
            first += term.size(m)
    elif isinstance(covariance, Standard):
        used = covariance.used(m)
        k = len(used)
        found.kernels.append(partial(SquaredExponentialCross, first, range(first + 2, first + k + 2), used))
        found.noise.append(first + 1)
        found.features += [(0, first + k + 2), *((i + 1, first + k + 3) for i in used)]
    elif isinstance(covariance, Noise):
        found.noise.append(first)
    elif isinstance(covariance, Bias):
        found.features.append((0, first))
    elif isinstance(covariance, Linear):
        found.features += [(i + 1, first) for i in covariance.used(m)]
    elif isinstance(covariance, SquaredExponential):
        used, scale = covariance.used(m), first if covariance.amplitude else None
        at = first + int(covariance.amplitude)
        weights = range(at, at + len(used)) if covariance.ard else [at] * len(used)
        found.kernels.append(partial(SquaredExponentialCross, scale, weights, used))
    elif covariance.noisy:
        raise TypeError(
            f"inducing inputs cannot tell the noise of {covariance!r} apart; write it as a sum with Noise()"
        )
    else:
        found.kernels.append(partial(GeneralCross, covariance, slice(first, first + covariance.size(m))))
