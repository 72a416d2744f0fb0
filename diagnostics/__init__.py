"""Reading results: curves over kernel widths, pictures and reports. Nothing here fits a model."""

from bayessel.diagnostics._comparison import WidthComparison
from bayessel.diagnostics._curves import CRITERIA, Criterion, Optimum, Prediction, credible_widths, optima
from bayessel.diagnostics._plots import plot_fit, plot_widths
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
    "plot_fit",
    "plot_widths",
    "verdict",
    "width_report",
]
