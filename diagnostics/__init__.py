"""Reading results: curves over kernel widths, pictures and reports. Nothing here fits a model."""

from bayessel.diagnostics._comparison import WidthComparison
from bayessel.diagnostics._criteria import CRITERIA, Criterion
from bayessel.diagnostics._curves import Optimum, Prediction, credible_widths, optima, scales
from bayessel.diagnostics._plots import plot_deltas, plot_fit, plot_widths
from bayessel.diagnostics._report import width_report
from bayessel.diagnostics._verdict import verdict

__all__ = [
    "CRITERIA",
    "Criterion",
    "Optimum",
    "Prediction",
    "WidthComparison",
    "credible_widths",
    "optima",
    "plot_deltas",
    "plot_fit",
    "plot_widths",
    "scales",
    "verdict",
    "width_report",
]
