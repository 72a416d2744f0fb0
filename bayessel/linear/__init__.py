"""Linear-in-the-parameters models on plain arrays: no PyMC, no scikit-learn."""

from bayessel.linear.forward import ForwardFit, forward_select
from bayessel.linear.incremental import IncrementalFit, RidgeState
from bayessel.linear.loomi import LOOMIFit, fit_loomi
from bayessel.linear.projection import Projection, project
from bayessel.linear.reported_sums import loo_residuals
from bayessel.linear.ridge import RidgeFit, criteria, fit_ridge, reestimate_lambda
from bayessel.linear.rvm import RVMFit, fit_rvm
from bayessel.linear.selection import SearchFit, search
from bayessel.linear.several_outputs import SeveralOutputs
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.streaming import fit_evidence_stream
from bayessel.linear.third_level import model_evidence_quadrature
from bayessel.linear.type2 import LinearFit, fit_evidence
from bayessel.linear.weight_posterior import log_evidence, posterior
from bayessel.linear.widths import WidthFit, fit_abf

__all__ = [
    "ForwardFit",
    "IncrementalFit",
    "LOOMIFit",
    "LinearFit",
    "Projection",
    "RVMFit",
    "RidgeFit",
    "RidgeState",
    "SearchFit",
    "SeveralOutputs",
    "Spectrum",
    "WidthFit",
    "criteria",
    "fit_abf",
    "fit_evidence",
    "fit_evidence_stream",
    "fit_loomi",
    "fit_ridge",
    "fit_rvm",
    "forward_select",
    "log_evidence",
    "loo_residuals",
    "model_evidence_quadrature",
    "posterior",
    "project",
    "reestimate_lambda",
    "search",
]
