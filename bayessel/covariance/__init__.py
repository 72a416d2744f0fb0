"""Covariance functions of Gaussian processes: descriptions without data, with gradients for every parameter."""

from bayessel.covariance.arcsin import Arcsin
from bayessel.covariance.base import Covariance
from bayessel.covariance.constant_linear_noise import Bias, Linear, Noise
from bayessel.covariance.periodic import Periodic
from bayessel.covariance.prior import Prior
from bayessel.covariance.standard import Standard
from bayessel.covariance.stationary import Matern12, Matern32, Matern52, RationalQuadratic, SquaredExponential

__all__ = [
    "Arcsin",
    "Bias",
    "Covariance",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Noise",
    "Periodic",
    "Prior",
    "RationalQuadratic",
    "SquaredExponential",
    "Standard",
]
