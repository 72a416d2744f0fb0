"""Does a sampler draw from the posterior of a model? Tests that use the model alone, and no reference result."""

from bayessel.diagnostics.calibration._geweke import geweke
from bayessel.diagnostics.calibration._sbc import sbc

__all__ = ["geweke", "sbc"]
