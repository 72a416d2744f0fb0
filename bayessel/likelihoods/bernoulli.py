r"""Two classes: p(t = 1 | f) = 1/(1 + e^{−f}) or Φ(f)."""

from __future__ import annotations

from typing import override

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtr

from bayessel._check import FloatArray, as_float_array, check_finite
from bayessel.likelihoods.base import Derivatives, Likelihood
from bayessel.likelihoods.logistic_normal import log_averaged_logistic
from bayessel.likelihoods.tilted_quadrature import Tilted
from bayessel.prediction import ClassPrediction

_ROOT_2_OVER_PI = float(np.sqrt(2.0 / np.pi))
#: below this argument differences of large numbers are expanded
_FAR = -30.0


class _Labels(Likelihood):
    """What two-class likelihoods share: labels 0 and 1."""

    labels = True

    @override
    def targets(self, t: ArrayLike, name: str = "t") -> FloatArray:
        found = as_float_array(t, name)
        check_finite(found, name)
        if not np.isin(found, (0.0, 1.0)).all():
            other = float(found[~np.isin(found, (0.0, 1.0))][0])
            raise ValueError(
                f"{name} must be labels 0 and 1 for the likelihood {self.name!r}, got {other!r}; number them"
            )
        return found

    @override
    def predict(self, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> ClassPrediction:
        ones = np.ones(len(mean))
        second, first = (np.exp(self.tilted(label * ones, mean, variance, phi).log_z) for label in (1.0, 0.0))
        total = first + second
        return ClassPrediction(np.array([0, 1]), np.column_stack([first / total, second / total]))

    def probability(self, f: FloatArray) -> FloatArray:
        """P(t = 1 | f)."""
        raise NotImplementedError

    @override
    def draw(self, f: FloatArray, phi: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.asarray(rng.random(np.shape(f)) < self.probability(f), dtype=np.float64)


class LogitLabels(_Labels):
    r"""Labels with log odds f: :math:`p(t=1|f) = 1/(1+e^{-f})`.

    Examples
    --------
    >>> import numpy as np
    >>> found = LogitLabels().derivatives(np.array([1.0]), np.array([0.0]), np.zeros(0))
    >>> found.slope, found.curvature
    (array([0.5]), array([0.25]))
    """

    name = "logit"

    @override
    def probability(self, f: FloatArray) -> FloatArray:
        return np.asarray(expit(f))

    @override
    def derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Derivatives:
        sign = 2.0 * t - 1.0
        p, q = expit(f), expit(-f)
        return Derivatives(log_expit(sign * f), sign * expit(-sign * f), p * q, p * q * (p - q))

    @override
    def predict(self, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> ClassPrediction:
        first, second = (np.exp(log_averaged_logistic(sign * mean, variance)) for sign in (-1.0, 1.0))
        return ClassPrediction(np.array([0, 1]), np.column_stack([first, second]) / (first + second)[:, None])


class ProbitLabels(_Labels):
    r"""Labels with :math:`p(t=1|f) = \Phi(f)`, the normal distribution function.

    Examples
    --------
    >>> import numpy as np
    >>> model, one = ProbitLabels(), np.ones(1)
    >>> bool(np.isclose(model.tilted(one, 0.5 * one, 3.0 * one, np.zeros(0)).log_z, log_ndtr(0.25))[0])
    True
    """

    name = "probit"

    @override
    def probability(self, f: FloatArray) -> FloatArray:
        return np.asarray(ndtr(f))

    @override
    def derivatives(self, t: FloatArray, f: FloatArray, phi: FloatArray) -> Derivatives:
        sign = 2.0 * t - 1.0
        z = sign * f
        ratio, excess = _ratio_and_excess(z)
        # of r = φ/Φ: r' = −r(z + r)
        return Derivatives(log_ndtr(z), sign * ratio, ratio * excess, sign * _third(z, ratio, excess))

    @override
    def tilted(self, t: FloatArray, mean: FloatArray, variance: FloatArray, phi: FloatArray) -> Tilted:
        root = np.sqrt(1.0 + variance)
        found = self.derivatives(t, mean / root, phi)
        return Tilted(found.value, found.slope / root, found.curvature / root**2, np.zeros((0, len(mean))))


def _ratio_and_excess(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """r = φ(z)/Φ(z), and z + r, which in the lower tail falls like −1/z and is expanded there."""
    with np.errstate(over="ignore"):
        ratio = _ROOT_2_OVER_PI / erfcx(-z / np.sqrt(2.0))
    x = np.where(z < _FAR, -z, -_FAR)
    y = x**-2.0
    far = (1.0 - y * (2.0 - y * (10.0 - y * (74.0 - 706.0 * y)))) / x
    return ratio, np.where(z < _FAR, far, z + ratio)


def _third(z: FloatArray, ratio: FloatArray, excess: FloatArray) -> FloatArray:
    """r((z + r)(z + 2r) − 1), the third derivative of log Φ."""
    x = np.where(z < _FAR, z, _FAR)
    y = x**-2.0
    far = -2.0 * y / x * (1.0 - y * (12.0 - y * (150.0 - 2072.0 * y)))
    return np.asarray(np.where(z < _FAR, far, ratio * (excess * (excess + ratio) - 1.0)))
