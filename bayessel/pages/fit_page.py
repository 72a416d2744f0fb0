"""One fitted model as an HTML page: what it is, how well it predicts rows it has not seen, which inputs matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayessel._check import FloatArray
from bayessel._text import number
from bayessel.pages.page import INK, LINE, SOFT, Cell, PageTable, embedded, plain, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: inputs beyond the first so many, shortest lengths first, are left out of the picture
_SHOWN = 30


def plot_left_out(y: FloatArray, errors: FloatArray, variances: FloatArray, target: str) -> Figure:
    """Draw each row over its prediction from all other rows, with bars of two standard deviations.

    Parameters
    ----------
    y, errors, variances
        Targets, their distances from the predictions, and the variances of those; (N,) each.
    target
        What to call y.
    """
    from bayessel.pages.figures import ShownFigure

    figure = ShownFigure(figsize=(5.0, 4.0))
    axes = figure.add_subplot()
    seen = np.isfinite(errors) & np.isfinite(variances)
    mean, std = (y - errors)[seen], np.sqrt(variances[seen])
    axes.errorbar(mean, y[seen], xerr=2 * std, fmt="o", ms=3, color=LINE, ecolor=SOFT, elinewidth=0.8, zorder=2)
    ends = [min(mean.min(), y.min()), max(mean.max(), y.max())] if seen.any() else [0.0, 1.0]
    axes.plot(ends, ends, color=INK, lw=0.8, zorder=3)
    axes.set_xlabel(f"{target}, predicted from the other rows")
    axes.set_ylabel(f"{target}, seen")
    axes.set_title("Every row left out once", fontsize=10)
    return figure


def plot_relevance(relevance: pd.DataFrame) -> Figure:
    """Draw how fast the function changes along each input, long bars matter.

    That is the slope, where the table has one, or else 1 / length.
    """
    from bayessel.pages.figures import ShownFigure

    figure = ShownFigure(figsize=relevance_size(relevance))
    draw_relevance(figure.add_subplot(), relevance)
    return figure


def relevance_size(relevance: pd.DataFrame) -> tuple[float, float]:
    """Inches of the picture of such a table."""
    return 5.0, max(2.5, 0.9 + 0.25 * min(len(relevance), _SHOWN))


def draw_relevance(axes: Axes, relevance: pd.DataFrame) -> None:
    """Draw the same into axes."""
    steep = "slope" in relevance
    table = relevance.sort_values("standardised", ascending=not steep).head(_SHOWN)[::-1]
    if steep:
        height, low, high = (_standardised(table, name) for name in ("slope", "lower", "upper"))
    else:  # of lower and upper ends of lengths, without their units
        height, low, high = (1.0 / _standardised(table, name) for name in ("length", "upper", "lower"))
    place = np.arange(len(table))
    axes.barh(place, height, color=SOFT)
    known = np.isfinite(low) & np.isfinite(high)
    axes.hlines(place[known] - 0.3, low[known], high[known], color=LINE, lw=1.5)
    axes.set_yticks([])
    for where, name in zip(place, table.index, strict=True):  # inside the picture: names may be long
        axes.annotate(plain(str(name)), (0.0, where), (4, 0), textcoords="offset points", va="center", color=INK)
    interval = ", with 95 %" if known.any() else ""
    axes.set_xlabel(("slope" if steep else "1 / length") + f", all standardised{interval}")
    axes.set_title("Relevance of the inputs", fontsize=10)


def _standardised(table: pd.DataFrame, name: str) -> FloatArray:
    """A column in units in which all inputs vary alike."""
    what = "slope" if "slope" in table else "length"
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (table["standardised"] / table[what]).to_numpy()
    found = table["standardised"].to_numpy() if name == what else table[name].to_numpy() * ratio
    return np.asarray(found, dtype=np.float64)


def fit_report(
    target: str,
    facts: str,
    sentences: Sequence[str],
    numbers: Mapping[str, str],
    relevance: pd.DataFrame | None,
    figures: Sequence[tuple[Figure, str]],
    foot: Mapping[str, str],
) -> str:
    """Return the page as one string of HTML that needs no other file and no network.

    Parameters
    ----------
    target, facts
        The title, and a line that says what was fitted to what.
    sentences
        What to know first.
    numbers
        Names and values for a table.
    relevance
        One row per input, or None.
    figures
        Pictures and their descriptions.
    foot
        Fingerprint, versions and the like.
    """
    steep = relevance is not None and "slope" in relevance
    return render(
        "fit.html",
        title=f"A model of {target}",
        facts=facts,
        sentences=sentences,
        pictures=[embedded(*figure) for figure in figures],
        numbers=PageTable([], [[Cell(name, "word"), Cell(value)] for name, value in numbers.items()]),
        relevance=None if relevance is None else _relevance(relevance),
        relevance_said="" if relevance is None else (_SLOPES if steep else _LENGTHS).format(_interval(relevance)),
        foot=[f"{name}: {value}" for name, value in foot.items()],
    )


_SLOPES = (
    "The slope is how fast the function changes along an input, root mean square over the rows{}, in units of the "
    "target over units of the input; standardised, in units in which all vary alike. Steep ones first."
)
_LENGTHS = (
    "The length is how far an input has to move before the function changes much{}, in the units of the input; "
    "standardised, in units in which all inputs vary alike. Short lengths first."
)


def _interval(table: pd.DataFrame) -> str:
    return ", with a 95 % interval" if table["lower"].notna().any() else ""


def _relevance(table: pd.DataFrame) -> PageTable:
    steep = "slope" in table
    possible = ("slope" if steep else "length", "lower", "upper", "standardised")
    columns = tuple(name for name in possible if table[name].notna().any())
    rows = [
        [Cell(str(name), "word"), *(Cell(number(float(row[column]))) for column in columns)]
        for name, row in table.sort_values("standardised", ascending=not steep).iterrows()
    ]
    return PageTable([Cell(name) for name in ("input", *columns)], rows)
