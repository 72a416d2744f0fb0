"""Reading results: curves over kernel widths, pictures and reports. Nothing here fits a model."""

from bayessel.diagnostics import calibration, delve
from bayessel.diagnostics._bridge import Bridge, bridge_sampling
from bayessel.diagnostics._compare import compare
from bayessel.diagnostics._comparison import WidthComparison
from bayessel.diagnostics._convergence import Convergence, convergence
from bayessel.diagnostics._criteria import CRITERIA, Criterion
from bayessel.diagnostics._curves import DrawnFit, Optimum, credible_widths, optima, scales
from bayessel.diagnostics._mdl import flag_length, mdl_alpha, mdl_w
from bayessel.diagnostics._nml import nml, nml_code_length
from bayessel.diagnostics._plots import plot_deltas, plot_fit, plot_widths
from bayessel.diagnostics._prequential import Prequential, prequential
from bayessel.diagnostics._report import width_report
from bayessel.diagnostics._verdict import verdict

__all__ = [
    "CRITERIA",
    "Bridge",
    "Convergence",
    "Criterion",
    "DrawnFit",
    "Optimum",
    "Prequential",
    "WidthComparison",
    "bridge_sampling",
    "calibration",
    "compare",
    "convergence",
    "credible_widths",
    "delve",
    "flag_length",
    "mdl_alpha",
    "mdl_w",
    "nml",
    "nml_code_length",
    "optima",
    "plot_deltas",
    "plot_fit",
    "plot_widths",
    "prequential",
    "scales",
    "verdict",
    "width_report",
]
