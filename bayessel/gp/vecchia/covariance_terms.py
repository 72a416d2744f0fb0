"""A covariance cut into stationary terms, which compiled loops know, a bias or plane as features, and the noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.covariance import (
    Bias,
    Covariance,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Noise,
    RationalQuadratic,
    SquaredExponential,
    Standard,
)
from bayessel.covariance.algebra import Sum
from bayessel.covariance.stationary import Stationary

#: profiles of squared distances, in the order of the table in `bayessel.covariance.stationary`
EXPONENTIAL, MATERN12, MATERN32, MATERN52, RATIONAL = range(5)
KINDS: dict[type[Stationary], int] = {
    SquaredExponential: EXPONENTIAL,
    Matern12: MATERN12,
    Matern32: MATERN32,
    Matern52: MATERN52,
    RationalQuadratic: RATIONAL,
}


class StationaryNumbers(NamedTuple):
    """Stationary terms at one θ: kinds (T,), variances (T,), roots of weights (T, inputs), α (T,); and the noise."""

    kinds: IntArray
    v: FloatArray
    root: FloatArray
    alpha: FloatArray
    noise: float


@dataclass(frozen=True)
class StationaryTerm:
    """Positions in θ of a term's parameters: log v₀ and log α (−1: none), log w of each of m inputs (−1: not used)."""

    kind: int
    v: int
    w: tuple[int, ...]
    alpha: int


@dataclass
class CovarianceTerms:
    """The terms of a covariance of m inputs.

    Attributes
    ----------
    inputs : int
        m.
    stationary : list of StationaryTerm
    features
        Column of [1, X] and position in θ of the variance of its weight, for each weight of a bias or linear term.
    noise
        Positions in θ of noise variances.
    """

    inputs: int
    stationary: list[StationaryTerm] = field(default_factory=list)
    features: list[tuple[int, int]] = field(default_factory=list)
    noise: list[int] = field(default_factory=list)

    def at(self, theta: FloatArray) -> StationaryNumbers:
        """Numbers for compiled loops."""
        known = np.append(np.exp(theta), 1.0)
        w = np.array([[0.0 if at < 0 else known[at] for at in term.w] for term in self.stationary])
        return StationaryNumbers(
            np.array([term.kind for term in self.stationary]),
            known[[term.v for term in self.stationary]],
            np.sqrt(w),
            known[[term.alpha for term in self.stationary]],
            float(known[self.noise].sum()),
        )

    @property
    def positions(self) -> list[int]:
        """Positions in θ of each term's log v₀, log w and log α, term by term; −1 of what is no parameter."""
        return [at for term in self.stationary for at in (term.v, *term.w, term.alpha)]

    def add_gradient(self, out: FloatArray, by_v: FloatArray, by_w: FloatArray, by_alpha: FloatArray) -> None:
        """Add derivatives by the terms' parameters to those by θ."""
        for term, one, each, shape in zip(self.stationary, by_v, by_w, by_alpha, strict=True):
            if term.v >= 0:
                out[term.v] += one
            if term.alpha >= 0:
                out[term.alpha] += shape
            for at, value in zip(term.w, each, strict=True):
                if at >= 0:
                    out[at] += value

    def design(self, X: FloatArray) -> FloatArray:
        """Columns that the weights of bias and plane multiply, (n, weights)."""
        return np.column_stack([np.ones(len(X)), X])[:, [column for column, _ in self.features]]

    def scales(self, theta: FloatArray) -> FloatArray:
        """Prior standard deviations of these weights."""
        return np.asarray(np.exp(0.5 * theta[[position for _, position in self.features]]))


def terms_of(covariance: Covariance, inputs: int) -> CovarianceTerms:
    """Cut a covariance into its terms; ValueError where compiled loops do not know one."""
    found = CovarianceTerms(inputs)
    _add(found, covariance, 0)
    if not found.stationary:
        raise ValueError(
            f"{covariance!r} has bias, linear and noise terms only, which need no approximation for many rows: use "
            "bayessel.linear.fit_evidence, or add a covariance such as SquaredExponential()"
        )
    if not found.noise:
        raise ValueError(f"method='vecchia' needs a noise term, and {covariance!r} has none: add Noise()")
    return found


def _add(found: CovarianceTerms, covariance: Covariance, first: int) -> None:
    """Add a term whose θ begins at `first`."""
    m = found.inputs
    if isinstance(covariance, Sum):
        for term in covariance.terms:
            _add(found, term, first)
            first += term.size(m)
    elif isinstance(covariance, Standard):
        used = covariance.used(m)
        k = len(used)
        found.stationary.append(StationaryTerm(EXPONENTIAL, first, _weights(used, m, first + 2, True), -1))
        found.noise.append(first + 1)
        found.features += [(0, first + k + 2), *((i + 1, first + k + 3) for i in used)]
    elif isinstance(covariance, Noise):
        found.noise.append(first)
    elif isinstance(covariance, Bias):
        found.features.append((0, first))
    elif isinstance(covariance, Linear):
        found.features += [(i + 1, first) for i in covariance.used(m)]
    elif type(covariance) in KINDS:
        assert isinstance(covariance, Stationary)
        kind, v = KINDS[type(covariance)], first if covariance.amplitude else -1
        at = first + int(covariance.amplitude)
        alpha = first + covariance.size(m) - 1 if kind == RATIONAL else -1
        found.stationary.append(StationaryTerm(kind, v, _weights(covariance.used(m), m, at, covariance.ard), alpha))
    else:
        known = ", ".join(("Standard", "Bias", "Linear", "Noise", *(kind.__name__ for kind in KINDS)))
        raise ValueError(
            f"method='vecchia' takes sums of {known}; got {covariance!r}: use method='inducing', which takes any "
            "covariance, or method='dense' up to some thousand rows"
        )


def _weights(used: tuple[int, ...], m: int, at: int, ard: bool) -> tuple[int, ...]:
    """Position of the weight of each of m inputs."""
    places = {column: at + (i if ard else 0) for i, column in enumerate(used)}
    return tuple(places.get(column, -1) for column in range(m))
