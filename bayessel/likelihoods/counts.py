r"""Counts: Poisson, and negative binomial for counts that vary more than a Poisson's; f is the log of the mean."""

from __future__ import annotations

from typing import override

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, expit, gammaln

from bayessel._check import FloatArray, as_float_array, check_finite
from bayessel.count_prediction import CountPrediction
from bayessel.covariance.prior import Prior
from bayessel.likelihoods.base import Derivatives, Likelihood, ParameterDerivatives

#: the largest logarithm of a mean: beyond, e^f is no number that counts reach
_HIGHEST = 500.0


class _Counts(Likelihood):
    """What likelihoods of counts share."""

    @override
    def targets(self, t: ArrayLike, name: str = "t") -> FloatArray:
        found = as_float_array(t, name)
        check_finite(found, name)
        if (found < 0.0).any() or (found != np.round(found)).any():
            other = float(found[(found < 0.0) | (found != np.round(found))][0])
            raise ValueError(
                f"{name} must be counts 0, 1, 2, … for the likelihood {self.name!r}, got {other!r}; for rates pass the "
                "counts, and what they were counted in as exposure"
            )
        return found

    @override
    def predict(self, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> CountPrediction:
        return CountPrediction(mean[None], variance[None], np.exp(-phi) if len(phi) else np.zeros(1))


class PoissonCounts(_Counts):
    r"""Counts with mean :math:`e^f`: :math:`\log p = tf - e^f - \log t!`.

    Examples
    --------
    >>> import numpy as np
    >>> found = PoissonCounts().derivatives(np.array([2.0]), np.array([0.0]), np.zeros(0))
    >>> found.value.round(3), found.slope, found.curvature
    (array([-1.693]), array([1.]), array([1.]))
    """

    name = "poisson"

    @override
    def derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Derivatives:
        rate = np.exp(np.minimum(f, _HIGHEST))
        return Derivatives(t * f - rate - gammaln(t + 1.0), t - rate, rate, -rate)

    @override
    def draw(self, f: FloatArray, phi: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.asarray(rng.poisson(np.exp(f)), dtype=np.float64)


class NegativeBinomialCounts(_Counts):
    r"""Counts with mean :math:`\mu = e^f` and variance :math:`\mu + \mu^2/r`: Poisson counts of Gamma(r, r/μ) rates.

    φ is log r; r → ∞ is the Poisson distribution. Prior: log r ~ N(log 5, 1.5²).

    Examples
    --------
    >>> import numpy as np
    >>> float(NegativeBinomialCounts().derivatives(np.zeros(1), np.zeros(1), np.zeros(1)).value[0])  # geometric, ½
    -0.6931471805599453
    """

    name = "negative-binomial"

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return ("log r",)

    @override
    def start(self, t: FloatArray) -> FloatArray:
        return np.array([np.log(5.0)])

    @override
    def prior(self, t: FloatArray) -> Prior:
        return Prior.normal(float(np.log(5.0)), 1.5)

    @override
    def derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Derivatives:
        r = float(np.exp(phi[0]))
        # shares of the mean and of r in their sum
        mu, rest = _shares(f - phi[0])
        curvature = (t + r) * mu * rest
        # r log(r/(r + μ)) + t log(μ/(r + μ)), and what a Poisson's terms leave
        value = _log_choose(t, r) - t * np.logaddexp(0.0, phi[0] - f) - r * np.logaddexp(0.0, f - phi[0])
        return Derivatives(value, t * rest - r * mu, curvature, -curvature * (rest - mu))

    @override
    def parameter_derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> ParameterDerivatives:
        r = float(np.exp(phi[0]))
        mu, rest = _shares(f - phi[0])
        # ∂/∂log r = r ∂/∂r
        value = r * (digamma(t + r) - digamma(r) - np.logaddexp(0.0, f - phi[0])) - t * rest + r * mu
        # the shares move by ∓ μ-share·r-share; the slope is t rest − r mu
        slope = (t + r) * mu * rest - r * mu
        information = r * mu * rest - (t + r) * mu * rest * (rest - mu)
        return ParameterDerivatives(*(np.asarray(each)[None] for each in (value, slope, information)))

    @override
    def draw(self, f: FloatArray, phi: FloatArray, rng: np.random.Generator) -> FloatArray:
        r = float(np.exp(phi[0]))
        return np.asarray(rng.poisson(rng.gamma(r, np.exp(f) / r)), dtype=np.float64)


def _shares(difference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """μ/(r + μ) and r/(r + μ) from log μ − log r."""
    return np.asarray(expit(difference)), np.asarray(expit(-difference))


def _log_choose(t: FloatArray, r: float) -> FloatArray:
    """log Γ(t + r)/(Γ(r) t!), also where r is so large that the gammas cancel: then t log r + t(t − 1)/2r − log t!."""
    if r > 1e8:
        series = t * np.log(r) + 0.5 * t * (t - 1.0) / r - t * (t - 1.0) * (2.0 * t - 1.0) / (12.0 * r**2)
        return np.asarray(series - gammaln(t + 1.0))
    return np.asarray(gammaln(t + r) - gammaln(r) - gammaln(t + 1.0))
