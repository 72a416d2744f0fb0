"""HTML pages that need no other file and no network: the parts they share, and the page of one fitted model."""

from bayessel.pages._fit_page import fit_report, plot_left_out, plot_relevance
from bayessel.pages._page import (
    BEST,
    INK,
    LINE,
    SOFT,
    Cell,
    PageTable,
    Picture,
    embedded,
    png,
    render,
    svg,
    words,
)

__all__ = [
    "BEST",
    "INK",
    "LINE",
    "SOFT",
    "Cell",
    "PageTable",
    "Picture",
    "embedded",
    "fit_report",
    "plot_left_out",
    "plot_relevance",
    "png",
    "render",
    "svg",
    "words",
]
