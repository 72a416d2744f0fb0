"""Linear-in-the-parameters models on plain arrays: no PyMC, no scikit-learn."""

from bayessel.linear.forward import forward_select
from bayessel.linear.incremental import RidgeState
from bayessel.linear.loomi import fit_loomi
from bayessel.linear.projection import project
from bayessel.linear.ridge import RidgeFit, fit_ridge
from bayessel.linear.ridge_criteria import criteria
from bayessel.linear.rvm import RVMFit, fit_rvm
from bayessel.linear.selection import search
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.streaming import fit_evidence_stream
from bayessel.linear.type2 import LinearFit, fit_evidence
from bayessel.linear.weight_posterior import log_evidence, posterior
from bayessel.linear.widths import fit_abf

__all__ = [
    "LinearFit",
    "RVMFit",
    "RidgeFit",
    "RidgeState",
    "Spectrum",
    "criteria",
    "fit_abf",
    "fit_evidence",
    "fit_evidence_stream",
    "fit_loomi",
    "fit_ridge",
    "fit_rvm",
    "forward_select",
    "log_evidence",
    "posterior",
    "project",
    "search",
]
