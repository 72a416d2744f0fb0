"""Does a sampler draw from the posterior of a model, are probabilities of models true? Tests that need no reference.

Whether error bars of predictions cover what is seen is `bayessel.diagnostics.predictive_calibration`.
"""

from bayessel.diagnostics.calibration._geweke import geweke
from bayessel.diagnostics.calibration._model_probabilities import model_probabilities
from bayessel.diagnostics.calibration._sbc import sbc

__all__ = ["geweke", "model_probabilities", "sbc"]
