"""Compare kernel widths: one table, one picture, one verdict on which width the data prefer."""

from bayessel.widths._arguments import check_criteria, check_model
from bayessel.widths._compare import compare_widths
from bayessel.widths._comparison import WidthComparison
from bayessel.widths._curves import (
    CurveOptimum,
    DrawnFit,
    credible_widths,
    entry,
    needs_attention,
    optima,
    scales,
    width_of,
)
from bayessel.widths._grids import MAX_WIDTHS, check_widths, spread_rows, suggest_widths
from bayessel.widths._plots import plot_deltas, plot_fit, plot_widths
from bayessel.widths._report import width_report
from bayessel.widths._verdict import verdict

__all__ = [
    "MAX_WIDTHS",
    "CurveOptimum",
    "DrawnFit",
    "WidthComparison",
    "check_criteria",
    "check_model",
    "check_widths",
    "compare_widths",
    "credible_widths",
    "entry",
    "needs_attention",
    "optima",
    "plot_deltas",
    "plot_fit",
    "plot_widths",
    "scales",
    "spread_rows",
    "suggest_widths",
    "verdict",
    "width_of",
    "width_report",
]
