"""Compare kernel widths: one table, one picture, one verdict on which width the data prefer."""

from bayessel.diagnostics._comparison import WidthComparison
from bayessel.widths._compare import compare_widths
from bayessel.widths._grids import MAX_WIDTHS, check_widths, spread_rows, suggest_widths

__all__ = ["MAX_WIDTHS", "WidthComparison", "check_widths", "compare_widths", "spread_rows", "suggest_widths"]
