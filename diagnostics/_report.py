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

from bayessel.diagnostics._criteria import CRITERIA, GOOD_STATUS, INTERPOLATION, NO_SIGNAL, QUADRATURE, UNDETERMINED
from bayessel.diagnostics._curves import (
    DELTAS,
    DrawnFit,
    Label,
    entry,
    listing,
    notes_of,
    number,
    preferences,
    say,
    turning_points,
    width_of,
)
from bayessel.diagnostics._plots import plot_deltas, plot_fit, plot_widths
from bayessel.diagnostics._verdict import loss
from bayessel.fit import Status

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
.wide { grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); }
.single { max-width: 42rem; }
.scroll { overflow-x: auto; border: 1px solid #ddd; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #eee; }
thead th { background: #f3f6f9; vertical-align: bottom; }
tbody th { position: sticky; left: 0; background: #fff; }
thead th:first-child { position: sticky; left: 0; }
td.word, th.word { text-align: left; }
td.best { font-weight: 700; background: #fbe9e4; }
td.local { background: #fdf5f2; }
td.warn { background: #fff3cd; }
dt { font-weight: 600; margin-top: .6rem; }
dd { margin: 0; }
footer { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: .5rem; color: #555; font-size: .82rem; }
footer p { max-width: none; overflow-wrap: anywhere; margin: .2rem 0; }
"""

_COLUMN_MEANING = {
    "gamma": "Number of well-determined parameters of the fit, between 0 and the number of functions in use.",
    "noise_std": "Standard deviation of the noise the fit settles on, in the units of the target.",
    "signal_std": "Standard deviation of the function under its prior, in the units of the target.",
    "lam": "Ridge parameter lambda = alpha / beta of the evidence fit; lam_gcv and so on belong to the other criteria.",
    "n_basis": "Number of functions in use; the bias counts as one where it is a function like the others.",
}
_ERRORS = (
    "A column that ends in _se is the standard error of the column before it, from its scatter over the rows (or over "
    "random orders); _diff_se is that of the difference to the best width, smaller because the rows are the same. "
    "A difference of less than about two of them means nothing. Rows that depend on each other make both too small."
)

_NOTE_ADVICE = {
    INTERPOLATION: "the criterion has no bound, or is a ratio of two vanishing numbers, where the fit passes through "
    "every row, whatever the data; only fits that leave enough rows to the noise count (a quarter of them for UEV, FPE "
    "and BIC, a tenth for the others); take fewer centres, or trust rows held out",
    NO_SIGNAL: "the model without functions, fitted to the same rows, does at least as well by this criterion: it does "
    "not pay for the functions in use",
    QUADRATURE: "the Gaussian approximation is poor here, so alpha and beta were integrated out numerically",
    UNDETERMINED: "the integral over lambda has its mass at the ends of the range, so the range would decide: no value",
}


def width_report(
    table: pd.DataFrame,
    criteria: Sequence[str],
    verdict: Sequence[str],
    X: ArrayLike,
    y: ArrayLike,
    fits: Mapping[Label, DrawnFit],
    names: Sequence[str],
    target: str,
    facts: str = "",
    foot: Mapping[str, str] | None = None,
    centers: ArrayLike | None = None,
) -> str:
    """Return the page as one string of HTML that needs no other file and no network.

    Parameters
    ----------
    table
        One row per width, index ``width`` or (``kind``, ``width``); columns as in the table of a width comparison.
    criteria
        The criteria to report, in order.
    verdict
        Sentences for the top of the page.
    X, y, names, target
        The data, for the pictures of the fits, and what to call them.
    fits
        Stored predictions by width, or by (kind, width).
    facts
        One line that says what was compared.
    foot
        Fingerprint, versions and the like.
    centers
        Centres of the functions (M, D), to mark those a sparse fit uses.
    """
    chosen = preferences(table, criteria)
    parts = [
        f"<h1>Kernel widths for {escape(target)}</h1>",
        f'<p class="facts">{escape(facts)}</p>',
        '<div class="verdict">' + "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict) + "</div>",
        "<h2>The criteria over the width</h2>",
        _panels(_curve_figures(table, criteria)),
        f"<p>{_legend(table, criteria)}</p>",
        *_choices(table, criteria, chosen, fits),
        *_fits(X, y, fits, names, target, chosen, centers),
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


def _curve_figures(table: pd.DataFrame, criteria: Sequence[str]) -> list[tuple[Figure, str]]:
    """One picture per criterion, and one of what the precision of the weights does to MDL-w."""
    figures = [(plot_widths(table, [name]), _describe(table, name)) for name in criteria]
    if "mdl-w" in criteria and len(table) > 1 and turning_points(table, "mdl-w"):
        figures.append((plot_deltas(table, "mdl-w"), "MDL-w with its weights sent to three precisions delta"))
    return figures


def _legend(table: pd.DataFrame, criteria: Sequence[str]) -> str:
    said = (
        "Filled mark: the best width. Open circles: all other local optima, the large ones (with their width) parted "
        "from better ones by more than 3 nats, or 5 % of an error; small ones may come and go with a function that "
        "enters or leaves. A triangle points to where the curve is still improving at the end of the grid."
    )
    if "evidence" in criteria and table.index.nlevels == 1:
        said += " Shade: widths within 3 nats of the best evidence."
    if any(f"{name}_diff_se" in table for name in criteria):
        said += " Band: one standard error of the difference to the best width."
    return said


def _embed(figure: Figure, description: str) -> str:
    """Put a figure into the page, with the same margins as every other: pictures below each other line up."""
    figure.set_layout_engine(None)
    figure.subplots_adjust(left=0.16, right=0.96, bottom=0.17, top=0.9)
    return svg(figure, description)


def svg(figure: Figure, description: str) -> str:
    """Put a figure into the page as SVG: sharp at every zoom, small, and part of the file."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": "bayessel"}):
        figure.savefig(buffer, format="svg", dpi=160, metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(description)}" src="data:image/svg+xml;base64,{data}">'


def _panels(figures: Sequence[tuple[Figure, str]], size: str = "") -> str:
    size = "single" if len(figures) == 1 else size
    return f'<div class="panels {size}">' + "\n".join(_embed(*figure) for figure in figures) + "</div>"


def _describe(table: pd.DataFrame, name: str) -> str:
    found = turning_points(table, name)
    best = f"best {number(found[0].value)} at {say(found[0].label)}" if found else "no finite value"
    return f"{CRITERIA[name].label} over the kernel width: {best}"


def _choices(
    table: pd.DataFrame,
    criteria: Sequence[str],
    chosen: Mapping[Label, Sequence[str]],
    fits: Mapping[Label, DrawnFit],
) -> list[str]:
    """A small table of the preferred widths, and of separate optima, and what each criterion says of them."""
    labels = [label for label in table.index if label in chosen or label in fits]
    if len(labels) < 2:
        return []
    head = "".join(f"<th>{escape(CRITERIA[name].label)}</th>" for name in criteria)
    rows = []
    for label in labels:
        names = chosen.get(label, ())
        at = table.loc[[label]].iloc[0]
        cells = "".join(
            f"<td{' class=best' if name in names else ''}>{_loss(table, name, label)}</td>" for name in criteria
        )
        who = listing([CRITERIA[name].label for name in names]) if names else "(separate optimum)"
        rows.append(
            f'<tr><th>{escape(say(label))}</th><td class="word">{escape(who)}</td>'
            f"<td>{int(at.get('n_basis', 0))}</td>{cells}</tr>"
        )
    return [
        "<h2>Where they differ, and what it costs</h2>",
        '<div class="scroll" tabindex="0"><table><thead><tr><th>width</th><th class="word">best by</th>'
        f"<th>functions</th>{head}</tr></thead>\n<tbody>{''.join(rows)}</tbody></table></div>",
        "<p>One row per preferred width or separate optimum: what each criterion loses there against its own best, in "
        "nats or as a share of the error, with the standard error of the difference if there is one. Below 3 nats or "
        "5 % hardly worth a thought.</p>",
    ]


def _loss(table: pd.DataFrame, name: str, label: Label) -> str:
    if not turning_points(table, name):
        return "–"
    value = loss(table, name, label)
    if not np.isfinite(value):
        return "–"
    if value == 0:
        return "★"
    column = f"{name}_diff_se"
    error = float(table[column].to_numpy(dtype=float)[table.index.get_loc(label)]) if column in table else np.nan
    if CRITERIA[name].in_nats:
        return f"{value:.1f}{f' ± {error:.1f}' if np.isfinite(error) else ''} nats"
    if value >= 10.0:
        return f"{1.0 + value:.0f} times"
    share = 100.0 * error / turning_points(table, name)[0].value
    return f"{100 * value:.1f}{f' ± {share:.1f}' if np.isfinite(share) else ''} %"


def _fits(
    X: ArrayLike,
    y: ArrayLike,
    fits: Mapping[Label, DrawnFit],
    names: Sequence[str],
    target: str,
    chosen: Mapping[Label, Sequence[str]],
    centers: ArrayLike | None,
) -> list[str]:
    if not fits:
        return []
    t = np.asarray(y, dtype=float)
    figures = [
        (
            plot_fit(X, y, {label: fit}, names, target, preferred=chosen, centers=centers, legend=False),
            f"Fit at {say(label)}: residuals have a standard deviation of {number(float(np.std(t - fit.mean)))}",
        )
        for label, fit in sorted(fits.items(), key=lambda pair: width_of(pair[0]))
    ]
    sparse = any(len(fit.coef) for fit in fits.values())
    if len(names) > 1:
        what = "Fitted against observed values; these rows were used for the fit, so expect new rows to scatter more."
    else:
        what = "Dots: data. Line: mean. Band: two predictive standard deviations, noise included."
        what += " Rings: centres of the functions in use." if sparse else ""
    which = (
        "Every picture shows the fit that is best by the evidence at its width; the other criteria judge this fit."
        if sparse
        else "Every picture shows the evidence fit at its width, also where another criterion chose it."
    )
    return ["<h2>The fits at the preferred widths</h2>", _panels(figures, "wide"), f"<p>{what} {which}</p>"]


def _table(table: pd.DataFrame, criteria: Sequence[str]) -> str:
    marks: dict[tuple[Label, str], str] = {}
    for name in criteria:
        for rank, optimum in enumerate(turning_points(table, name)):
            marks[optimum.label, name] = "best" if rank == 0 else "local"
    # what warns must not hide at the far end of a row that scrolls
    first = [*criteria, "n_basis", "gamma", "noise_std", "status"]
    table = table[[name for name in first if name in table] + [name for name in table if name not in first]]
    several = table.index.nlevels > 1
    head = "".join(f"<th>{escape(str(name))}</th>" for name in ("r", *(["kind"] if several else []), *table.columns))
    rows = []
    for label, row in zip(table.index, table.itertuples(index=False), strict=True):
        cells = f'<td class="word">{escape(str(label[0]))}</td>' if several else ""
        cells += "".join(
            _cell(value, str(name), marks.get((label, str(name)))) for name, value in zip(table, row, strict=True)
        )
        rows.append(f"<tr><th>{number(width_of(label), strip=False)}</th>{cells}</tr>")
    body = "\n".join(rows)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>\n"
        "<p>★ best of its column; ○ another local optimum. The status is that of the fit; notes name the "
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
    if any(str(name).endswith("_se") for name in table):
        entries.append(("Standard errors", _ERRORS))
    if sensitive := [name for name in criteria if name in DELTAS]:
        given = listing([f"{CRITERIA[name].label} {DELTAS[name]:g}" for name in sensitive])
        entries.append(
            (
                "The precision delta",
                f"Parameters are sent to a precision delta ({given}). A smaller one charges -ln delta more for each "
                "function in use, and so moves the choice towards fewer functions, mostly wider ones.",
            )
        )
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in entries)
    tuned = (
        "For each width the ridge parameter is tuned anew, for each criterion separately, so a curve compares widths "
        "at their best. "
        if "lam" in table
        else "For each width the other hyperparameters of the Gaussian process are put at their mode, and every "
        "criterion judges the process with these. "
        if "signal_std" in table
        else "For each width one sparse model is fitted, by the evidence, and every criterion judges that model. "
    )
    return (
        "<p>The width r is that of the kernel exp(-d²/r²) (for other kernels: d is divided by r); small r follows the "
        f"data closely, large r gives smooth functions. {tuned}The best width is known to the distance of its "
        f"neighbours in the table, no better.</p><dl>{items}</dl>"
    )


def _statuses(table: pd.DataFrame) -> str:
    """What the statuses advise, with the widths and criteria they concern."""
    concerned: dict[str, dict[str, list[Label]]] = {}
    fit = "evidence" if "lam" in table else "fit"
    for label, status, text in zip(table.index, table["status"], table.get("notes", [""] * len(table)), strict=True):
        found = {status: [fit]} if status != "CONVERGED" else {}
        for note, names in notes_of(str(text)).items():
            found[note] = [*found.get(note, []), *names]
        for note, names in found.items():
            for name in names:
                concerned.setdefault(note, {}).setdefault(name, []).append(label)
    if not concerned:
        return "<p>Every fit converged without anything to report.</p>"
    items = []
    for status, where_by_name in concerned.items():
        advice = Status[status].value if status in Status.__members__ else _NOTE_ADVICE.get(status, "")
        where = "; ".join(
            f"{CRITERIA[name].label if name in CRITERIA else 'fit'} at {_some(at)}"
            for name, at in where_by_name.items()
        )
        items.append(f"<dt>{escape(status)}</dt><dd>{escape(advice)}.<br>Here: {escape(where)}.</dd>")
    return f"<dl>{''.join(items)}</dl>"


def _some(labels: Sequence[Label]) -> str:
    if len(labels) > 3:
        widths = sorted(map(width_of, labels))
        return f"{len(labels)} widths from {number(widths[0])} to {number(widths[-1])}"
    if any(isinstance(label, tuple) for label in labels):
        return listing([say(label) for label in labels])
    return f"r = {', '.join(number(width_of(label)) for label in labels)}"


def _foot(foot: Mapping[str, str]) -> str:
    lines = "".join(f"<p>{escape(key)}: {escape(value)}</p>" for key, value in foot.items())
    return f"<footer>{lines}</footer>"
