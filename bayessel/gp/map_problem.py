"""The objective of a fit of hyperparameters: over the parameters that are free, on any of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_float_array, check_finite
from bayessel.covariance import Prior
from bayessel.fit import Status
from bayessel.gp.marginal import Process, SearchedProcess
from bayessel.gp.noise_floor import LEAST_NOISE, mean_square, noise_index
from bayessel.gp.optimise import KnownTerms, Roots

#: where the logarithmic coordinate turns into a root, without a prior: this share of the start
_SMALL = 1e-4
#: θ may move this far from the covariance's start, a factor of 10¹³, besides what the size of the targets asks for
_RANGE = 30.0
#: log of a mean square of the targets, or of one over it, that is no reason to search farther
_ORDINARY = float(np.log(10.0))


@dataclass(frozen=True, eq=False)
class MapProblem:
    """The objective over the free parameters, on any of the rows, in the coordinates of the search."""

    marginal: SearchedProcess
    prior: Prior | None
    prior_free: Prior | None
    free: npt.NDArray[np.bool_]
    template: FloatArray
    roots: Roots | None
    noise_index: int | None
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, marginal: SearchedProcess, prior: Prior | str | None, fixed: Mapping[str, float] | None) -> MapProblem:
        """Check priors and what is given, and find the ends of the search."""
        template = np.array(marginal.start(), dtype=np.float64)
        free = np.ones(marginal.size, dtype=bool)
        for name, value in _check_fixed(fixed, marginal.names).items():
            at = marginal.names.index(name)
            free[at], template[at] = False, value
        chosen = check_prior(prior, marginal)
        part = None if chosen is None else chosen.some(free)
        start = template[free]
        power = mean_square(marginal.t, marginal.weights)
        # variances of targets that are not standardised are farther from the start
        log_power = np.log(power) if power > 0.0 else 0.0
        more, less = max(log_power - _ORDINARY, 0.0), max(-log_power - _ORDINARY, 0.0)
        low, high = start - _RANGE - less, start + _RANGE + more
        noise = noise_index(marginal, template, free)
        if noise is not None:
            low[noise] = np.log(LEAST_NOISE * power) if power > 0.0 else low[noise]
        roots = Roots(start + np.log(_SMALL) - less) if part is None else None
        return cls(marginal, chosen, part, free, template, roots, noise, low, high)

    def full(self, x: FloatArray) -> FloatArray:
        """Θ, the given parameters included."""
        theta = self.template.copy()
        theta[self.free] = x if self.roots is None else np.clip(self.roots.theta(x), self.low, self.high)
        return theta

    def coordinates(self, theta: FloatArray) -> FloatArray:
        """Coordinates of the free part of θ."""
        inside = np.clip(theta[self.free], self.low, self.high)
        return inside if self.roots is None else self.roots.of(inside)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the search, in its coordinates."""
        if self.roots is None:
            return self.low, self.high
        far = self.roots.of(self.high)
        near = -far
        if self.noise_index is not None:
            near[self.noise_index] = self.roots.of(self.low)[self.noise_index]
        return near, far

    def at_ends(self, theta: FloatArray) -> list[Status]:
        """What θ at an end of the search gives cause to say."""
        inside, notes = theta[self.free], []
        at_low, at_high = inside <= self.low + 1e-6, inside >= self.high - 1e-6
        if self.noise_index is not None and at_low[self.noise_index]:
            notes.append(Status.NOISE_AT_FLOOR)
            at_low[self.noise_index] = False
        if at_high.any() or (self.roots is None and at_low.any()):
            notes.append(Status.AT_BOUND)
        return notes

    def expensive(self, marginal: SearchedProcess) -> Callable[[FloatArray], tuple[float, FloatArray]]:
        """−log p(t|θ) on the rows of `marginal`, with its gradient in the coordinates of the search."""

        def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = marginal.value_and_gradient(self.full(x))
            downhill = -gradient[self.free]
            return -value, downhill if self.roots is None else downhill * self.roots.slope(x)

        return evaluate

    def exact(self, x: FloatArray) -> KnownTerms:
        """−log p(θ) of the free parameters; nothing without a prior."""
        if self.prior_free is None:
            return KnownTerms(0.0, np.zeros(len(x)), np.zeros(len(x)))
        prior = self.prior_free
        return KnownTerms(-prior.log_density(x), -prior.gradient(x), -prior.hessian_diagonal(x))


def _check_fixed(fixed: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float]:
    if fixed is None:
        return {}
    if not isinstance(fixed, Mapping):
        raise TypeError(f"fixed must be a mapping of a parameter's name to its theta, got {type(fixed).__name__}")
    for name in fixed:
        if name not in names:
            raise ValueError(f"fixed names {name!r}, but the parameters are {', '.join(names)}")
    values = as_float_array([fixed[name] for name in fixed], "fixed")
    check_finite(values, "fixed")
    return dict(zip(fixed, map(float, values), strict=True))


def check_prior(prior: Prior | str | None, process: Process) -> Prior | None:
    """Return the priors asked for; None where there are to be none."""
    if prior is None:
        return None
    if isinstance(prior, str):
        if prior != "default":
            raise ValueError(f"prior must be 'default', None (maximum likelihood) or a Prior, got {prior!r}")
        return process.prior()
    if not isinstance(prior, Prior):
        raise TypeError(f"prior must be 'default', None or a Prior, got {type(prior).__name__}")
    if len(prior.first) != process.size:
        raise ValueError(
            f"prior must have {process.size} entries ({', '.join(process.names)}), got {len(prior.first)}; join the "
            "parts with Prior.join"
        )
    return prior
