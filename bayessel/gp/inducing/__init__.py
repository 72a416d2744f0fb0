"""Gaussian processes of many rows through a few inducing inputs: the variational bound and its fit."""

from bayessel.gp.inducing._fit import InducingFit, fit_inducing
from bayessel.gp.inducing.bound import InducingMarginal

__all__ = ["InducingFit", "InducingMarginal", "fit_inducing"]
