"""A width comparison as one HTML page: verdict, pictures, table, how to read it. Nothing is fitted, nothing fetched."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel.diagnostics._curves import (
    CRITERIA,
    GOOD_STATUS,
    INTERPOLATION,
    QUADRATURE,
    UNDETERMINED,
    Prediction,
    entry,
    notes_of,
    number,
    optima,
    preferences,
)
from bayessel.diagnostics._plots import plot_fit, plot_widths
from bayessel.result import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: #222; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p, li, dd { max-width: 46rem; }
.facts { color: #555; margin: 0 0 1rem; max-width: none; }
.verdict { background: #f3f6f9; border-left: 5px solid #2f6690; padding: .8rem 1rem; margin: 1rem 0; }
.verdict p { margin: 0; max-width: none; font-size: 1.06rem; }
.verdict p + p { margin-top: .5rem; font-size: 1rem; }
.verdict p:first-child { font-weight: 600; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(19rem, 100%), 1fr)); gap: .75rem; }
.panels img { width: 100%; height: auto; display: block; }
.single { max-width: 42rem; }
.scroll { overflow-x: auto; border: 1px solid #ddd; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #eee; }
thead th { background: #f3f6f9; vertical-align: bottom; }
tbody th { position: sticky; left: 0; background: #fff; }
thead th:first-child { position: sticky; left: 0; }
td.word { text-align: left; }
td.best { font-weight: 700; background: #fbe9e4; }
td.local { background: #fdf5f2; }
td.warn { background: #fff3cd; }
dt { font-weight: 600; margin-top: .6rem; }
dd { margin: 0; }
footer { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: .5rem; color: #555; font-size: .82rem; }
footer p { max-width: none; overflow-wrap: anywhere; margin: .2rem 0; }
"""

_COLUMN_MEANING = {
    "gamma": "Number of well-determined parameters of the evidence fit, between 0 and the number of functions.",
    "noise_std": "Standard deviation of the noise the evidence fit settles on, in the units of the target.",
    "lam": "Ridge parameter lambda = alpha / beta of the evidence fit; lam_gcv and so on belong to the other criteria.",
    "n_basis": "Number of kernel functions in the model.",
}


_NOTE_ADVICE = {
    INTERPOLATION: "the criterion vanishes where the fit passes through every row, whatever the data; only minima that "
    "leave a quarter of the rows to the noise count; take fewer centres, or trust GCV and LOO",
    QUADRATURE: "the Gaussian approximation is poor here, so alpha and beta were integrated out numerically",
    UNDETERMINED: "the integral over lambda has its mass at the ends of the range, so the range would decide: no value",
}


def width_report(
    table: pd.DataFrame,
    criteria: Sequence[str],
    verdict: Sequence[str],
    X: ArrayLike,
    y: ArrayLike,
    fits: Mapping[float, Prediction],
    names: Sequence[str],
    target: str,
    facts: str = "",
    foot: Mapping[str, str] | None = None,
) -> str:
    """Return the page as one string of HTML that needs no other file and no network.

    Parameters
    ----------
    table
        One row per width, index ``width``; columns as in the table of a width comparison.
    criteria
        The criteria to report, in order.
    verdict
        Sentences for the top of the page.
    X, y, names, target
        The data, for the pictures of the fits, and what to call them.
    fits
        Stored predictions by width.
    facts
        One line that says what was compared.
    foot
        Fingerprint, versions and the like.
    """
    chosen = preferences(table, criteria)
    parts = [
        f"<h1>Kernel widths for {escape(target)}</h1>",
        f'<p class="facts">{escape(facts)}</p>',
        '<div class="verdict">' + "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict) + "</div>",
        "<h2>The criteria over the width</h2>",
        _panels([(plot_widths(table, [name]), _describe(table, name)) for name in criteria]),
        "<p>Filled mark: the best width. Open circle: a local optimum. A triangle points to where the curve is still "
        "improving at the end of the grid."
        + (" Shade: widths within 3 nats of the best evidence." if "evidence" in criteria else "")
        + "</p>",
        *_fits(X, y, fits, names, target, chosen),
        "<h2>The numbers</h2>",
        _table(table, criteria),
        "<h2>How to read it</h2>",
        _guide(table, criteria),
        "<h2>Statuses</h2>",
        _statuses(table),
        _foot(foot or {}),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Kernel widths for {escape(target)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def _embed(figure: Figure, description: str) -> str:
    """Put a figure into the page as SVG: sharp at every zoom, small, and part of the file."""
    from matplotlib import rc_context

    # the same margins in every picture, whatever its numbers look like: pictures below each other line up
    figure.set_layout_engine(None)
    figure.subplots_adjust(left=0.16, right=0.96, bottom=0.17, top=0.9)
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "bayessel"}):
        figure.savefig(buffer, format="svg", dpi=160, metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(description)}" src="data:image/svg+xml;base64,{data}">'


def _panels(figures: Sequence[tuple[Figure, str]]) -> str:
    single = " single" if len(figures) == 1 else ""
    return f'<div class="panels{single}">' + "\n".join(_embed(*figure) for figure in figures) + "</div>"


def _describe(table: pd.DataFrame, name: str) -> str:
    found = optima(table.index, table[name], CRITERIA[name].higher_is_better)
    best = f"best {number(found[0].value)} at r = {number(found[0].width)}" if found else "no finite value"
    return f"{CRITERIA[name].label} over the kernel width: {best}"


def _fits(
    X: ArrayLike,
    y: ArrayLike,
    fits: Mapping[float, Prediction],
    names: Sequence[str],
    target: str,
    chosen: Mapping[float, Sequence[str]],
) -> list[str]:
    if not fits:
        return []
    figures = [
        (
            plot_fit(X, y, {r: fit}, names, target, preferred=chosen),
            f"Fit at r = {number(r)}: residuals have a standard deviation of "
            f"{number(float(np.std(np.asarray(y, dtype=float) - fit.mean)))}",
        )
        for r, fit in sorted(fits.items())
    ]
    several = len(names) > 1
    what = (
        "Fitted against observed values; these rows were used for the fit, so expect new rows to scatter more."
        if several
        else "Data, mean, and a band of two predictive standard deviations (noise included, the same everywhere)."
    )
    return [
        "<h2>The fits at the preferred widths</h2>",
        _panels(figures),
        f"<p>{what} Every picture shows the evidence fit at its width, also where another criterion chose it.</p>",
    ]


def _table(table: pd.DataFrame, criteria: Sequence[str]) -> str:
    marks: dict[tuple[float, str], str] = {}
    for name in criteria:
        for rank, optimum in enumerate(optima(table.index, table[name], CRITERIA[name].higher_is_better)):
            marks[optimum.width, name] = "best" if rank == 0 else "local"
    # what warns must not hide at the far end of a row that scrolls
    first = [*criteria, "gamma", "noise_std", "status"]
    table = table[[name for name in first if name in table] + [name for name in table if name not in first]]
    head = "".join(f"<th>{escape(str(name))}</th>" for name in ("r", *table.columns))
    rows = []
    for r, row in zip(table.index, table.itertuples(index=False), strict=True):
        cells = "".join(
            _cell(value, str(name), marks.get((r, str(name)))) for name, value in zip(table, row, strict=True)
        )
        rows.append(f"<tr><th>{number(float(r), strip=False)}</th>{cells}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n"
        "<p>★ best of its column; ○ another local optimum. The status is that of the evidence fit; notes name the "
        "criteria they concern. The table scrolls sideways.</p>"
    )


def _cell(value: object, name: str, mark: str | None) -> str:
    if isinstance(value, str):
        warn = name == "status" and value not in GOOD_STATUS
        return f'<td class="word{" warn" if warn else ""}">{escape(value)}</td>'
    text = entry(name, float(value))  # type: ignore[arg-type]
    sign = {"best": "★ ", "local": "○ "}.get(mark or "", "")
    return f"<td{f' class={chr(34)}{mark}{chr(34)}' if mark else ''}>{sign}{text}</td>"


def _guide(table: pd.DataFrame, criteria: Sequence[str]) -> str:
    entries = [
        (
            f"{CRITERIA[name].label} ({'higher' if CRITERIA[name].higher_is_better else 'lower'} is better)",
            CRITERIA[name].meaning,
        )
        for name in criteria
    ]
    entries += [(name, meaning) for name, meaning in _COLUMN_MEANING.items() if name in table.columns]
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in entries)
    return (
        "<p>The width r is that of the kernel exp(-d²/r²) (for other kernels: d is divided by r); small r follows the "
        "data closely, large r gives smooth functions. For each width the ridge parameter is tuned anew, for each "
        "criterion separately, so a curve compares widths at their best. The best width is known to one step of the "
        f"grid, no better.</p><dl>{items}</dl>"
    )


def _statuses(table: pd.DataFrame) -> str:
    """What the statuses advise, with the widths and criteria they concern."""
    concerned: dict[str, dict[str, list[float]]] = {}
    for r, status, text in zip(table.index, table["status"], table.get("notes", [""] * len(table)), strict=True):
        found = {status: ["evidence"]} if status != "CONVERGED" else {}
        for note, names in notes_of(str(text)).items():
            found[note] = [*found.get(note, []), *names]
        for note, names in found.items():
            for name in names:
                concerned.setdefault(note, {}).setdefault(name, []).append(float(r))
    if not concerned:
        return "<p>Every fit converged without anything to report.</p>"
    items = []
    for status, where_by_name in concerned.items():
        advice = Status[status].value if status in Status.__members__ else _NOTE_ADVICE.get(status, "")
        where = "; ".join(f"{CRITERIA[name].label} at {_some(at)}" for name, at in where_by_name.items())
        items.append(f"<dt>{escape(status)}</dt><dd>{escape(advice)}.<br>Here: {escape(where)}.</dd>")
    return f"<dl>{''.join(items)}</dl>"


def _some(widths: Sequence[float]) -> str:
    if len(widths) > 3:
        return f"{len(widths)} widths from {number(widths[0])} to {number(widths[-1])}"
    return f"r = {', '.join(map(number, widths))}"


def _foot(foot: Mapping[str, str]) -> str:
    lines = "".join(f"<p>{escape(key)}: {escape(value)}</p>" for key, value in foot.items())
    return f"<footer>{lines}</footer>"
