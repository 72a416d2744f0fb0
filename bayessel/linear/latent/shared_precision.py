r"""One precision for all functions: the maximum of its posterior, and a sum over its logarithm.

The prior is about what the functions make up together: with :math:`s^2 = \sum_m\mathrm{var}(\phi_m)/\alpha`, the
variance of f about its constant, :math:`\log s\sim N(\log s_0, 2^2)` with :math:`s_0` = 2 for log odds and the spread
of the targets where these are f with noise; for log rates :math:`N(0, 1)`. So data that a plane separates do not send
it to infinity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel._formulas import log_normal
from bayessel.covariance.prior import Prior
from bayessel.likelihoods import Likelihood
from bayessel.linear.latent.laplace import LaplaceMode, LatentTargets, find_mode
from bayessel.linear.thin_svd import thin_svd

#: log odds, or log rates, that the functions typically make up, and the standard deviation of the logarithm
TYPICAL_LOG_ODDS, TYPICAL_LOG_RATE, PRIOR_SD = 2.0, 1.0, 2.0
#: likelihoods of log rates
COUNTS = ("poisson", "negative-binomial")
#: that of log rates: with log rates that vary by hundreds expected counts are no numbers
PRIOR_SD_OF_RATES = 1.0
#: prior standard deviations from its middle within which the maximum is looked for, and where the search begins
_REACH, _BEGINNINGS = 4.0, (-1.5, -0.5, 0.5, 1.5)
#: nats at which the sum over log s ends, and its most terms on either side, one standard deviation apart
_FALL, _MOST = 6.0, 8
#: difference of log s from which the curvature is taken, and the standard deviations that are believed
_NEAR, _NARROWEST, _WIDEST = 0.05, 0.15, 1.5
_EVALUATIONS = 60


def typical_size(targets: LatentTargets) -> float:
    """s₀: log odds of 2, log rates of 1, or the standard deviation of targets that are the function with noise."""
    if targets.likelihood.labels:
        return TYPICAL_LOG_ODDS
    if targets.likelihood.name in COUNTS:
        return TYPICAL_LOG_RATE
    away = targets.t - np.average(targets.t, weights=targets.count)
    return float(np.sqrt(np.average(away**2, weights=targets.count))) or 1.0


def prior_sd(likelihood: Likelihood) -> float:
    """Standard deviation of log s under the prior."""
    return PRIOR_SD_OF_RATES if likelihood.name in COUNTS else PRIOR_SD


@dataclass(frozen=True, eq=False)
class SharedDesign:
    r"""A design as orthogonal directions, in units in which s = 1 is :math:`\alpha = \mathrm{size}^2`.

    Attributes
    ----------
    directions : (N, k) array
        ΦV/size.
    base : (M, k) array
        V/size.
    size : float
        Root of the sum of the variances of the columns; 0 where none varies.
    always : (N, j) array
        The bias times its prior standard deviation, or nothing.
    """

    directions: FloatArray
    base: FloatArray
    size: float
    always: FloatArray

    @classmethod
    def of(
        cls, Phi: FloatArray, bias_scale: float, digits: float = 1.0, count: FloatArray | None = None
    ) -> SharedDesign:
        """Of columns (N, M) and how often rows count; directions below `digits` roundings are left out."""
        n, m = Phi.shape
        always = np.full((n, 1 if bias_scale > 0.0 else 0), bias_scale)
        largest = float(np.abs(Phi).max(initial=0.0)) or 1.0
        A = Phi / largest
        share = np.full(n, 1.0 / max(n, 1)) if count is None else count / count.sum()
        variances = share @ (A - share @ A) ** 2
        tiny = np.ptp(A, axis=0) <= 4.0 * np.finfo(float).eps if n else np.ones(m, dtype=bool)
        size = float(np.sqrt(variances[~tiny].sum()))
        if not size > 0.0:
            return cls(np.zeros((n, 0)), np.zeros((m, 0)), 0.0, always)
        U, s, Vt = thin_svd(A)
        kept = s > digits * np.finfo(float).eps * max(n, m) * s[0]
        return cls(U[:, kept] * (s[kept] / size), Vt[kept].T / (size * largest), size * largest, always)

    def at(self, log_s: float) -> FloatArray:
        """Columns divided by the roots of their precisions."""
        return np.hstack([np.exp(log_s) * self.directions, self.always])


@dataclass(frozen=True, eq=False)
class SharedModel:
    """What one precision is chosen for: targets, directions, priors."""

    targets: LatentTargets
    design: SharedDesign
    prior: Prior
    middle: float
    sd: float

    @classmethod
    def of(cls, targets: LatentTargets, design: SharedDesign) -> SharedModel:
        """With the default priors."""
        middle = float(np.log(typical_size(targets)))
        return cls(targets, design, targets.likelihood.prior(targets.t), middle, prior_sd(targets.likelihood))

    def mode(self, log_s: float, phi: FloatArray, near: LaplaceMode | None = None) -> LaplaceMode:
        """The mode at given hyperparameters; searched from another one where that is given."""
        return find_mode(self.targets, self.design.at(log_s), phi, None if near is None else near.z)

    def log_prior(self, log_s: float) -> float:
        """Of log s."""
        return float(log_normal(np.array(log_s - self.middle), self.sd**2))

    def objective(self, mode: LaplaceMode, log_s: float) -> float:
        """Log evidence with the priors of log s and φ."""
        return mode.log_evidence + self.log_prior(log_s) + self.prior.log_density(mode.phi)

    def gradient(self, mode: LaplaceMode, log_s: float) -> FloatArray:
        """Of the objective, by log s and φ."""
        by_columns, by_phi = mode.gradient()
        k = self.design.directions.shape[1]
        by_size = -2.0 * float(by_columns[:k].sum()) - (log_s - self.middle) / self.sd**2
        return np.concatenate([[by_size], by_phi + self.prior.gradient(mode.phi)])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of log s and φ, within which the maximum is looked for."""
        reach = _REACH * self.sd
        normal = self.prior.is_normal
        low = np.where(normal, self.prior.first - 6.0 * self.prior.second, -30.0)
        high = np.where(normal, self.prior.first + 6.0 * self.prior.second, 30.0)
        return [(self.middle - reach, self.middle + reach), *zip(low.tolist(), high.tolist(), strict=True)]

    def maximised(self, near: float | None = None, digits: float = 1e-12) -> tuple[float, LaplaceMode, int]:
        """log s and the mode at the maximum of the objective, and how many evaluations that took.

        Searched from `near` where that is given, to so many digits of the objective.
        """
        phi = np.clip(self.targets.likelihood.start(self.targets.t), *np.array(self.bounds[1:]).reshape(-1, 2).T)
        count = 0
        last: LaplaceMode | None = None
        best: tuple[float, float, LaplaceMode | None] = (-np.inf, 0.0, None)

        def evaluated(theta: FloatArray) -> tuple[float, FloatArray]:
            nonlocal count, last, best
            mode = self.mode(float(theta[0]), theta[1:], last)
            count, last, value = count + 1, mode, self.objective(mode, float(theta[0]))
            if value > best[0]:
                best = (value, float(theta[0]), mode)
            return -value, -self.gradient(mode, float(theta[0]))

        if self.design.directions.shape[1] == 0:
            begin = [self.middle]
        elif near is not None:
            begin = [near]
        else:
            begin = [self.middle + self.sd * step for step in _BEGINNINGS]
        for log_s in begin:
            evaluated(np.append(log_s, phi))
        minimize(
            evaluated,
            np.append(best[1], phi),
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            options={"maxfun": _EVALUATIONS, "ftol": digits, "gtol": 1e-6},
        )
        assert best[2] is not None
        return best[1], best[2], count

    def summed(self, log_s: float, mode: LaplaceMode) -> tuple[list[LaplaceMode], FloatArray, FloatArray, float]:
        """Modes along log s about the best, these values, log weights that sum to one, and the log of the sum.

        φ stays as it is at the maximum.
        """
        sides = []
        for step in (-_NEAR, _NEAR):
            there = self.mode(log_s + step, mode.phi, mode)
            sides.append(float(self.gradient(there, log_s + step)[0]))
        bend = (sides[0] - sides[1]) / (2.0 * _NEAR)
        width = float(np.clip(1.0 / np.sqrt(max(bend, 1e-12)), _NARROWEST, _WIDEST))
        found = {0: mode}
        heights = {0: mode.log_evidence + self.log_prior(log_s)}
        for side in (-1, 1):
            for j in range(1, _MOST + 1):
                at = log_s + side * j * width
                found[side * j] = self.mode(at, mode.phi, found[side * (j - 1)])
                heights[side * j] = found[side * j].log_evidence + self.log_prior(at)
                if heights[side * j] < heights[0] - _FALL:
                    break
        order = sorted(found)
        values = np.array([heights[j] for j in order])
        total = float(logsumexp(values))
        places = log_s + width * np.array(order)
        return [found[j] for j in order], places, values - total, total + float(np.log(width))
