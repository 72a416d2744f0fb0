r"""What is known of an expected loss when the variances of both levels are not (Rasmussen 1996, eq. 2.16).

With flat priors on :math:`\mu` and on the logarithms of :math:`\sigma_\varepsilon^2` and of
:math:`\sigma_\varepsilon^2 + J\sigma_a^2`, the latter never the smaller,

.. math:: p(\mu|y) \propto a_2^{-p_2} I_{a_2/(a_1+a_2)}(p_2, p_1), \quad
          a_1 = \tfrac12\sum_{ij}(y_{ij}-\bar y_i)^2,\; a_2 = \tfrac J2\sum_i(\bar y_i-\mu)^2,\;
          p_1 = \tfrac12I(J-1),\; p_2 = \tfrac12I.

It is symmetric about the mean, with tails like :math:`|\mu|^{-I}`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from bayessel._check import as_count, as_float_array, as_fraction, as_target

#: points of the trapezoidal rule on one side; the integrand is analytic and decays, so that it converges geometrically
POINTS = 4000
#: tails below this are left out
TAIL = 1e-17


class MeanPosterior:
    """The posterior of μ from averages (I,) of training sets, the sum of squares within them, and J.

    Parameters
    ----------
    averages : array (I,)
        Averages of the training sets, two at least.
    within : float
        Sum of the squared deviations of the cases from them.
    n_cases : int
        J, two at least.
    """

    def __init__(self, averages: npt.ArrayLike, within: float, n_cases: int) -> None:
        averages = as_float_array(averages, "averages")
        averages = as_target(averages, averages.size, "averages")
        n_cases = as_count(n_cases, "n_cases", 2)
        if len(averages) < 2:
            raise ValueError(f"averages must be those of two training sets or more, got {len(averages)}")
        if not 0.0 <= within < np.inf:
            raise ValueError(f"within is a sum of squares: it must be at least 0 and finite, got {within!r}")
        I = len(averages)  # noqa: E741
        self.mean = float(np.mean(averages))
        between = float(np.sum((averages - self.mean) ** 2))
        self._p1, self._p2 = 0.5 * I * (n_cases - 1), 0.5 * I
        # unit of μ − ȳ: about the standard error
        square = max(between / (I * (I - 1)), within / (I * (n_cases - 1)) / (I * n_cases))
        self.scale = float(np.sqrt(square))
        if self.scale > 0.0:
            unit = n_cases * self.scale**2
            self._a1, self._between = 0.5 * within / unit, 0.5 * between * n_cases / unit
            self._sets = I
            self._end = float(-np.log(TAIL)) / (I - 1) + 5.0

    def _log_shape(self, z: Any) -> Any:
        """Log density without its constant at (μ − ȳ)/scale."""
        a2 = self._between + 0.5 * self._sets * np.square(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(a2 > 0.0, a2 / (self._a1 + a2), 0.0)
            exact = np.log(special.betainc(self._p2, self._p1, share)) - self._p2 * np.log(a2)
        # where a share is so small that the beta function underflows its first term is all of it
        first = -self._p2 * np.log(self._a1 + a2) - np.log(self._p2) - special.betaln(self._p2, self._p1)
        return np.where(np.isfinite(exact), exact, first)

    @cached_property
    def _log_constant(self) -> float:
        v = np.linspace(0.0, self._end, POINTS)
        logs = self._log_shape(np.sinh(v)) + np.log(np.cosh(v))
        top = logs.max()
        return float(top + np.log(2.0 * np.trapezoid(np.exp(logs - top), v)))

    def density(self, mu: Any) -> Any:
        """p(μ|y); infinite at the mean where nothing varies."""
        distance = np.asarray(mu, dtype=float) - self.mean
        if self.scale == 0.0:
            return np.where(distance == 0.0, np.inf, 0.0)
        return np.exp(self._log_shape(distance / self.scale) - self._log_constant) / self.scale

    def probability_below(self, mu: float) -> float:
        """P(expected loss < μ | y)."""
        distance = float(mu) - self.mean
        if self.scale == 0.0:
            return 0.5 * (1.0 + float(np.sign(distance)))
        return 0.5 + float(np.sign(distance)) * self._up_to(abs(distance) / self.scale)

    def _up_to(self, z: float) -> float:
        """P(0 < (μ − ȳ)/scale < z), at most 1/2."""
        end = float(np.arcsinh(z))
        if end >= self._end:
            return 0.5
        # composite Gauss-Legendre: the end of the interval need not decay
        nodes, weights = special.roots_legendre(20)
        edges = np.linspace(0.0, end, 41)
        half = 0.5 * np.diff(edges)[:, None]
        v = edges[:-1, None] + half * (nodes + 1.0)
        logs = self._log_shape(np.sinh(v)) + np.log(np.cosh(v)) - self._log_constant
        return min(0.5, float(np.sum(half * weights * np.exp(logs))))

    @property
    def probability_wrong_sign(self) -> float:
        """P(the expected loss, or difference, has the other sign than the mean)."""
        return 0.5 if self.mean == 0.0 else min(self.probability_below(0.0), 1.0 - self.probability_below(0.0))

    def interval(self, probability: float = 0.95) -> tuple[float, float]:
        """Central interval of this probability."""
        half = 0.5 * as_fraction(probability, "probability")
        if self.scale == 0.0:
            return self.mean, self.mean
        far = optimize.brentq(lambda v: self._up_to(float(np.sinh(v))) - half, 0.0, self._end, xtol=1e-13)
        reach = self.scale * float(np.sinh(far))
        return self.mean - reach, self.mean + reach
