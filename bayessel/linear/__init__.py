"""Linear-in-the-parameters models on plain arrays: no PyMC, no scikit-learn."""

from bayessel.linear.posterior import Posterior, log_evidence, posterior
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.third_level import model_evidence_quadrature
from bayessel.linear.type2 import LinearFit, Maximum, fit_evidence

__all__ = ["LinearFit", "Maximum", "Posterior", "Spectrum", "fit_evidence", "log_evidence", "model_evidence_quadrature",
           "posterior"]
