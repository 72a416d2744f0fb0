"""Reading results: may draws be used, what is the evidence, which of several fits is best. No model is fitted here."""

from bayessel.diagnostics import calibration, delve
from bayessel.diagnostics._bridge import Bridge, bridge_sampling
from bayessel.diagnostics._compare import compare
from bayessel.diagnostics._convergence import Convergence, convergence
from bayessel.diagnostics._mdl import flag_length, mdl_alpha, mdl_w
from bayessel.diagnostics._nml import nml, nml_code_length
from bayessel.diagnostics._prequential import Prequential, prequential

__all__ = [
    "Bridge",
    "Convergence",
    "Prequential",
    "bridge_sampling",
    "calibration",
    "compare",
    "convergence",
    "delve",
    "flag_length",
    "mdl_alpha",
    "mdl_w",
    "nml",
    "nml_code_length",
    "prequential",
]
