"""Does a sampler draw from the posterior of a model? Tests that use the model alone, and no reference result.

Whether error bars of predictions cover what is seen is `bayessel.diagnostics.predictive_calibration`.
"""

from bayessel.diagnostics.calibration._geweke import geweke
from bayessel.diagnostics.calibration._sbc import sbc

__all__ = ["geweke", "sbc"]
