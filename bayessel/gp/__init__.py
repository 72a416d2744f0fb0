"""Gaussian-process regression on plain arrays: the marginal likelihood with its gradient, and what is built on it."""

from bayessel.gp.inducing import InducingFit, fit_inducing
from bayessel.gp.loo import leave_one_out
from bayessel.gp.map_fit import fit_map
from bayessel.gp.map_result import GPFit
from bayessel.gp.marginal import Factor, Marginal, log_marginal
from bayessel.gp.predict import Predictor

__all__ = [
    "Factor",
    "GPFit",
    "InducingFit",
    "Marginal",
    "Predictor",
    "fit_inducing",
    "fit_map",
    "leave_one_out",
    "log_marginal",
]
