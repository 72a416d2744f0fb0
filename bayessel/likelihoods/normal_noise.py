"""Normal noise as a likelihood among the others: where everything has a closed form."""

from __future__ import annotations

from typing import override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_float_array, check_finite
from bayessel._formulas import log_normal
from bayessel.covariance.prior import Prior
from bayessel.likelihoods.base import Derivatives, Likelihood, ParameterDerivatives
from bayessel.likelihoods.tilted_quadrature import Tilted
from bayessel.prediction import Prediction


class NormalNoise(Likelihood):
    """Targets f + ε with ε ~ N(0, σ²); φ is log σ², with the prior N(−3, 3²) of standardised targets.

    Examples
    --------
    >>> import numpy as np
    >>> found = NormalNoise().tilted(np.ones(1), np.zeros(1), np.ones(1), np.zeros(1))  # N(1 | 0, 1 + 1)
    >>> found.slope, found.curvature
    (array([0.5]), array([0.5]))
    """

    name = "gaussian"

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return ("log sigma2",)

    @override
    def start(self, t: FloatArray) -> FloatArray:
        return np.array([np.log(max(0.1 * float(np.var(t)), 1e-300))])

    @override
    def prior(self, t: FloatArray) -> Prior:
        return Prior.normal(-3.0, 3.0)

    @override
    def targets(self, t: ArrayLike, name: str = "t") -> FloatArray:
        found = as_float_array(t, name)
        check_finite(found, name)
        return found

    @override
    def derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Derivatives:
        variance = np.exp(phi[0])
        flat = np.full_like(f, 1.0 / variance)
        return Derivatives(log_normal(t - f, variance), (t - f) / variance, flat, np.zeros_like(f))

    @override
    def parameter_derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> ParameterDerivatives:
        variance = np.exp(phi[0])
        value, slope = 0.5 * ((t - f) ** 2 / variance - 1.0), -(t - f) / variance
        return ParameterDerivatives(value[None], slope[None], np.full((1, *f.shape), -1.0 / variance))

    @override
    def tilted(self, t: FloatArray, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> Tilted:
        noise = np.exp(phi[0])
        whole = variance + noise
        slope = (t - mean) / whole
        own = 0.5 * noise * (slope**2 - 1.0 / whole)
        return Tilted(log_normal(t - mean, whole), slope, 1.0 / whole, own[None])

    @override
    def predict(self, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> Prediction:
        return Prediction.normal(mean, variance + np.exp(phi[0]), variance)

    @override
    def draw(self, f: FloatArray, phi: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.asarray(f + np.exp(0.5 * phi[0]) * rng.standard_normal(np.shape(f)))
