"""Gaussian-process regression on plain arrays: the marginal likelihood with its gradient, and what is built on it."""

from bayessel.gp.inducing import fit_inducing
from bayessel.gp.map_fit import fit_map
from bayessel.gp.marginal import Marginal, log_marginal
from bayessel.gp.predict import Predictor
from bayessel.gp.vecchia import fit_vecchia

__all__ = ["Marginal", "Predictor", "fit_inducing", "fit_map", "fit_vecchia", "log_marginal"]
