"""Covariance functions of Gaussian processes: descriptions without data, with gradients for every parameter."""

from bayessel.covariance._base import Covariance
from bayessel.covariance.prior import Prior
from bayessel.covariance.standard import Standard

__all__ = ["Covariance", "Prior", "Standard"]
