r"""Noise with heavy tails: Student's t, a mixture of normals over the precision of each row.

.. math:: t = f + \sigma\varepsilon/\sqrt\lambda,\quad
    \varepsilon\sim N(0,1),\quad \lambda\sim\mathrm{Gamma}(\nu/2, \nu/2)

Integrals over a normal f are sums over log λ at equal steps, each term a normal density: a trapezoidal rule on a smooth
function that falls at both ends, which has almost all digits.
"""

from __future__ import annotations

from typing import override

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammaln, logsumexp

from bayessel._check import FloatArray, as_float_array, check_finite
from bayessel._formulas import log_normal
from bayessel.covariance.prior import Prior
from bayessel.likelihoods.base import Derivatives, Information, Likelihood, ParameterDerivatives
from bayessel.likelihoods.tilted_quadrature import Tilted
from bayessel.prediction import Prediction

#: degrees of freedom are more than these, so that the variance of an observation exists
LEAST_FREEDOM = 2.0
#: standard deviations of log λ that a step of the sum is, and nats that its ends lie below the top
_STEP, _FALL = 0.4, 38.0
#: nodes at most
_MOST_NODES = 1200
#: of predictions: the step in the middle, in standard deviations and at most, the |log λ| from which on steps grow, and
#: the standard deviations up to which tails are those of Student's t
_PREDICTIVE_STEP, _WIDEST_STEP, _GROWING, _FARTHEST = 0.75, 0.5, 12.0, 1e12


class StudentNoise(Likelihood):
    r"""Targets with Student-t noise of scale σ and :math:`\nu > 2` degrees of freedom.

    φ = (log σ², log(ν − 2)); prior log σ² ~ N(−3, 3²), as for normal noise of standardised targets, and log(ν − 2) ~
    N(log 4, 1). The information of a row is its expectation (ν + 1)/((ν + 3)σ²): minus the second derivative is
    negative for outliers.

    References
    ----------
    Vanhatalo, Jylänki and Vehtari (2009), NIPS 22; Hartmann and Vanhatalo (2019), Statistics and Computing 29, 753.

    Examples
    --------
    >>> import numpy as np
    >>> slopes = StudentNoise().derivatives(np.array([1.0, 100.0]), np.zeros(2), np.zeros(2)).slope
    >>> bool(slopes[1] < slopes[0])  # a distant target pulls less
    True
    """

    name = "student"
    log_concave = False

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return ("log sigma2", "log nu-2")

    @override
    def start(self, t: FloatArray) -> FloatArray:
        spread = 1.4826 * float(np.median(np.abs(t - np.median(t)))) or float(np.std(t)) or 1.0
        return np.array([2.0 * np.log(spread) - np.log(10.0), np.log(4.0)])

    @override
    def prior(self, t: FloatArray) -> Prior:
        return Prior.join(Prior.normal(-3.0, 3.0), Prior.normal(float(np.log(4.0)), 1.0))

    @override
    def targets(self, t: ArrayLike, name: str = "t") -> FloatArray:
        found = as_float_array(t, name)
        check_finite(found, name)
        return found

    @override
    def derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Derivatives:
        variance, nu = _scale(phi)
        e, whole = t - f, nu * variance
        # p ∝ (1 + e²/νσ²)^{−(ν+1)/2}
        below = whole + e**2
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * whole)
        value = constant - 0.5 * (nu + 1.0) * np.log1p(e**2 / whole)
        slope = (nu + 1.0) * e / below
        curvature = (nu + 1.0) * (whole - e**2) / below**2
        third = 2.0 * (nu + 1.0) * e * (e**2 - 3.0 * whole) / below**3
        return Derivatives(value, slope, curvature, third)

    @override
    def information(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Information:
        variance, nu = _scale(phi)
        return Information(np.full_like(f, (nu + 1.0) / ((nu + 3.0) * variance)), np.zeros_like(f))

    @override
    def bounding(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> FloatArray:
        # E λ/σ² of the row given its residual: expectation and maximisation
        variance, nu = _scale(phi)
        return np.asarray((nu + 1.0) / (nu * variance + (t - f) ** 2))

    @override
    def parameter_derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> ParameterDerivatives:
        variance, nu = _scale(phi)
        over = nu - LEAST_FREEDOM  # dν/dφ
        e, whole = t - f, nu * variance
        below = whole + e**2
        ratio = e**2 / below
        # by log σ²
        value_scale = 0.5 * ((nu + 1.0) * ratio - 1.0)
        slope_scale = -(nu + 1.0) * e * whole / below**2
        information = (nu + 1.0) / ((nu + 3.0) * variance)
        # by ν
        value_nu = 0.5 * (digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - 1.0 / nu - np.log1p(e**2 / whole))
        value_nu = value_nu + 0.5 * (nu + 1.0) * ratio / nu
        slope_nu = e / below - (nu + 1.0) * e * variance / below**2
        information_nu = 2.0 / ((nu + 3.0) ** 2 * variance)
        flat = np.ones_like(f)
        return ParameterDerivatives(
            np.stack([value_scale, over * value_nu]),
            np.stack([slope_scale, over * slope_nu]),
            np.stack([-information * flat, over * information_nu * flat]),
        )

    @override
    def tilted(self, t: FloatArray, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> Tilted:
        noise, nu = _scale(phi)
        logs, log_weights, by_nu = _precisions(nu, (t - mean) ** 2 / (variance + noise))
        spread = noise * np.exp(-logs)[:, None]
        whole = variance + spread
        terms = log_normal(t - mean, whole) + log_weights[:, None]
        log_z = np.asarray(logsumexp(terms, axis=0))
        share = np.exp(terms - log_z)
        slopes = (t - mean) / whole
        slope = (share * slopes).sum(axis=0)
        curvature = (share * (1.0 / whole - (slopes - slope) ** 2)).sum(axis=0)
        by_scale = (share * 0.5 * spread * (slopes**2 - 1.0 / whole)).sum(axis=0)
        by_freedom = (nu - LEAST_FREEDOM) * (share * by_nu[:, None]).sum(axis=0)
        return Tilted(log_z, slope, curvature, np.stack([by_scale, by_freedom]))

    @override
    def predict(self, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> Prediction:
        noise, nu = _scale(phi)
        logs, log_weights = _predictive_precisions(nu)
        means = np.broadcast_to(mean, (len(logs), *np.shape(mean)))
        inside = np.broadcast_to(variance, means.shape)
        weights = np.broadcast_to(log_weights[:, None], means.shape)
        return Prediction(means, inside + noise * np.exp(-logs)[:, None], weights, inside)

    @override
    def draw(self, f: FloatArray, phi: FloatArray, rng: np.random.Generator) -> FloatArray:
        variance, nu = _scale(phi)
        return np.asarray(f + np.sqrt(variance) * rng.standard_t(nu, np.shape(f)))


def _scale(phi: FloatArray) -> tuple[float, float]:
    """σ² and ν."""
    return float(np.exp(phi[0])), LEAST_FREEDOM + float(np.exp(phi[1]))


def _predictive_precisions(nu: float) -> tuple[FloatArray, FloatArray]:
    """Values of log λ and logarithms of their weights, with which a normal mixture has the tails of Student's t.

    Steps grow towards the tails, in which few targets ever lie: u = c sinh(x/c) at equal steps of x.
    """
    half = 0.5 * nu
    root = np.sqrt(2.0 * _FALL / half)
    low = -(float(np.log1p(_FARTHEST**2 / nu)) + root)
    high = float(np.log1p(_FALL / half + root))
    ends = [_GROWING * float(np.arcsinh(u / _GROWING)) for u in (low, high)]
    step = min(_PREDICTIVE_STEP / np.sqrt(half), _WIDEST_STEP)
    x = np.linspace(ends[0], ends[1], int(np.ceil((ends[1] - ends[0]) / step)) + 1)
    u = _GROWING * np.sinh(x / _GROWING)
    logs = half * (u - np.exp(u)) + np.log(np.cosh(x / _GROWING))
    return u, logs - logsumexp(logs)


def _precisions(nu: float, distances: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values of log λ at equal steps, log p(log λ) times the step, and its derivative by ν.

    They reach to where the integrand of each squared distance has fallen by e⁻³⁸ from its top.
    """
    half = 0.5 * nu
    # h u − (h + d/2) e^u has its top at e^u = h/(h + d/2), and falls from it like h x²/2, h|x| or h e^x
    root = np.sqrt(2.0 * _FALL / half)
    low = -(float(np.log1p(np.max(distances, initial=0.0) / nu)) + root + _FALL / half)
    high = float(np.log1p(_FALL / half + root))
    step = _STEP / np.sqrt(max(half, 1.0))
    u = np.linspace(low, high, min(int(np.ceil((high - low) / step)) + 1, _MOST_NODES))
    density = half * np.log(half) - gammaln(half) + half * (u - np.exp(u))
    by_nu = 0.5 * (np.log(half) + 1.0 - digamma(half) + u - np.exp(u))
    return u, density + np.log(u[1] - u[0]), by_nu
