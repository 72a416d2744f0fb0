"""Compare kernel widths: one table, one picture, one verdict on which width the data prefer."""

from bayessel.widths._compare import compare_widths
from bayessel.widths._comparison import WidthComparison
from bayessel.widths.grids import suggest_widths

__all__ = ["WidthComparison", "compare_widths", "suggest_widths"]
