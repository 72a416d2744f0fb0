"""A width comparison as one HTML page: verdict, pictures, table, how to read it. Nothing is fitted, nothing fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._text import capitalised, listing, number
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import DELTAS, MDL_W
from bayessel.criteria.evidence import EVIDENCE
from bayessel.fit import Status
from bayessel.pages.page import Cell, PageTable, embedded, render
from bayessel.widths._notes import ADVICE, notes_of
from bayessel.widths._plots import plot_deltas, plot_fit, plot_posterior, plot_widths
from bayessel.widths._posterior import WidthPosterior
from bayessel.widths._recommendation import Recommendation
from bayessel.widths._verdict import loss
from bayessel.widths.curves import (
    DrawnFit,
    Label,
    entry,
    needs_attention,
    preferences,
    say,
    turning_points,
    value_at,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    posterior: WidthPosterior | None = None,
    recommended: Sequence[Recommendation] = (),
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
    posterior
        Draws of the width, if it was sampled.
    recommended
        What to take for which purpose: the first thing on the page.
    """
    chosen = preferences(table, criteria)
    return render(
        "widths.html",
        title=f"Kernel widths for {target}",
        facts=facts,
        sentences=verdict,
        recommended=recommended,
        curves=[embedded(*figure) for figure in _curve_figures(table, criteria)],
        legend=_legend(table, criteria),
        posterior=None if posterior is None else _posterior(posterior),
        choices=_choices(table, criteria, chosen, fits),
        fits=[embedded(*figure) for figure in _fit_figures(X, y, fits, names, target, chosen, centers)],
        fits_said=_fits_said(fits, names),
        numbers=_numbers(table, criteria),
        tuned=_tuned(table),
        guide=_guide(table, criteria),
        statuses=_statuses(table),
        foot=[f"{key}: {value}" for key, value in (foot or {}).items()],
    )


def _curve_figures(table: pd.DataFrame, criteria: Sequence[str]) -> list[tuple[Figure, str]]:
    """One picture per criterion, and one of what the precision of the weights does to MDL-w."""
    figures: list[tuple[Figure, str]] = [(plot_widths(table, [name]), _describe(table, name)) for name in criteria]
    if MDL_W.name in criteria and len(table) > 1 and turning_points(table, MDL_W.name):
        figures.append((plot_deltas(table, MDL_W.name), "MDL-w with its weights sent to three precisions delta"))
    return figures


def _posterior(posterior: WidthPosterior) -> dict[str, object]:
    """The posterior of the width: its picture, its numbers, and what was noticed in its chains."""
    frame = posterior.table
    head = [Cell("width of" if posterior.inputs else ""), *(Cell(str(name)) for name in frame)]
    rows = [
        [Cell(str(label)), *(Cell(number(float(value), strip=False) if np.isfinite(value) else "–") for value in row)]
        for label, row in zip(frame.index, frame.itertuples(index=False), strict=True)
    ]
    medians = listing([number(float(value)) for value in frame["median"]])
    shown = f"median {medians}" if posterior.n_draws else "no draws"
    return {
        "pictures": [embedded(plot_posterior(posterior), f"Posterior of the width: {shown}")],
        "said": f"{capitalised(posterior.prior())}. {posterior.size()}: {posterior.verdict}.",
        "table": PageTable(head, rows),
        "reasons": posterior.reasons,
    }


def _legend(table: pd.DataFrame, criteria: Sequence[str]) -> str:
    said = (
        "Filled mark: the best width. Open circles: all other local optima, the large ones (with their width) parted "
        "from better ones by more than 3 nats, or 5 % of an error; small ones may come and go with a function that "
        "enters or leaves. A triangle points to where the curve is still improving at the end of the grid."
    )
    if EVIDENCE.name in criteria and table.index.nlevels == 1:
        said += " Shade: widths within 3 nats of the best evidence."
    if any(f"{name}_diff_se" in table for name in criteria):
        said += " Band: one standard error of the difference to the best width."
    return said


def _describe(table: pd.DataFrame, name: str) -> str:
    found = turning_points(table, name)
    best = f"best {number(found[0].value)} at {say(found[0].label)}" if found else "no finite value"
    return f"{CRITERIA[name].label} over the kernel width: {best}"


def _choices(
    table: pd.DataFrame,
    criteria: Sequence[str],
    chosen: Mapping[Label, Sequence[str]],
    fits: Mapping[Label, DrawnFit],
) -> PageTable | None:
    """A small table of the preferred widths, and of separate optima, and what each criterion says of them."""
    labels = [label for label in table.index if label in chosen or label in fits]
    if len(labels) < 2:
        return None
    rows = []
    for label in labels:
        names = chosen.get(label, ())
        at = table.loc[[label]].iloc[0]
        who = listing([CRITERIA[name].label for name in names]) if names else "(separate optimum)"
        cells = [Cell(_loss(table, name, label), "best" if name in names else "") for name in criteria]
        rows.append([Cell(say(label)), Cell(who, "word"), Cell(str(int(at.get("n_basis", 0)))), *cells])
    head = [Cell("width"), Cell("best by", "word"), Cell("functions")]
    return PageTable([*head, *(Cell(CRITERIA[name].label) for name in criteria)], rows)


def _loss(table: pd.DataFrame, name: str, label: Label) -> str:
    if not turning_points(table, name):
        return "–"
    value = loss(table, name, label)
    if not np.isfinite(value):
        return "–"
    if value == 0:
        return "★"
    error = value_at(table, f"{name}_diff_se", label)
    if CRITERIA[name].in_nats:
        return f"{value:.1f}{f' ± {error:.1f}' if np.isfinite(error) else ''} nats"
    if value >= 10.0:
        return f"{1.0 + value:.0f} times"
    share = 100.0 * error / turning_points(table, name)[0].value
    return f"{100 * value:.1f}{f' ± {share:.1f}' if np.isfinite(share) else ''} %"


def _fit_figures(
    X: ArrayLike,
    y: ArrayLike,
    fits: Mapping[Label, DrawnFit],
    names: Sequence[str],
    target: str,
    chosen: Mapping[Label, Sequence[str]],
    centers: ArrayLike | None,
) -> list[tuple[Figure, str]]:
    """One picture per stored fit, from narrow to wide."""
    t = np.asarray(y, dtype=float)
    return [
        (
            plot_fit(X, y, {label: fit}, names, target, preferred=chosen, centers=centers, legend=False),
            f"Fit at {say(label)}: residuals have a standard deviation of {number(float(np.std(t - fit.mean)))}",
        )
        for label, fit in sorted(fits.items(), key=lambda pair: width_of(pair[0]))
    ]


def _fits_said(fits: Mapping[Label, DrawnFit], names: Sequence[str]) -> str:
    """What the pictures of fits show."""
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
    return f"{what} {which}"


def _numbers(table: pd.DataFrame, criteria: Sequence[str]) -> PageTable:
    marks: dict[tuple[Label, str], str] = {}
    for name in criteria:
        for rank, optimum in enumerate(turning_points(table, name)):
            marks[optimum.label, name] = "best" if rank == 0 else "local"
    # what warns must not hide at the far end of a row that scrolls
    first = [*criteria, "n_basis", "gamma", "noise_std", "status"]
    table = table[[name for name in first if name in table] + [name for name in table if name not in first]]
    several = table.index.nlevels > 1
    head = [Cell(str(name)) for name in ("r", *(["kind"] if several else []), *table.columns)]
    rows = []
    for label, row in zip(table.index, table.itertuples(index=False), strict=True):
        cells = [Cell(number(width_of(label), strip=False))]
        cells += [Cell(str(label[0]), "word")] if several else []
        cells += [
            _cell(value, str(name), marks.get((label, str(name)), "")) for name, value in zip(table, row, strict=True)
        ]
        rows.append(cells)
    return PageTable(head, rows)


def _cell(value: object, name: str, mark: str) -> Cell:
    if isinstance(value, str):
        return Cell(value, "word warn" if name == "status" and needs_attention(value) else "word")
    text = entry(name, float(value))  # type: ignore[arg-type]
    return Cell({"best": "★ ", "local": "○ "}.get(mark, "") + text, mark)


def _guide(table: pd.DataFrame, criteria: Sequence[str]) -> list[tuple[str, str]]:
    entries = [
        (
            f"{CRITERIA[name].label} ({CRITERIA[name].better})",
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
    return entries


def _tuned(table: pd.DataFrame) -> str:
    """What is at its best at each width."""
    if "lam" in table:
        return (
            "For each width the ridge parameter is tuned anew, for each criterion separately, so a curve compares "
            "widths at their best."
        )
    if "signal_std" in table:
        return (
            "For each width the other hyperparameters of the Gaussian process are put at their mode, and every "
            "criterion judges the process with these."
        )
    return "For each width one sparse model is fitted, by the evidence, and every criterion judges that model."


def _statuses(table: pd.DataFrame) -> list[tuple[str, str, str]]:
    """What the statuses advise, with the widths and criteria they concern."""
    concerned: dict[str, dict[str, list[Label]]] = {}
    fit = EVIDENCE.name if "lam" in table else "fit"
    for label, status, text in zip(table.index, table["status"], table.get("notes", [""] * len(table)), strict=True):
        found = {status: [fit]} if status != "CONVERGED" else {}
        for note, names in notes_of(str(text)).items():
            found[note] = [*found.get(note, []), *names]
        for note, names in found.items():
            for name in names:
                concerned.setdefault(note, {}).setdefault(name, []).append(label)
    items = []
    for status, where_by_name in concerned.items():
        advice = Status[status].value if status in Status.__members__ else ADVICE.get(status, "")
        where = "; ".join(
            f"{CRITERIA[name].label if name in CRITERIA else 'fit'} at {_some(at)}"
            for name, at in where_by_name.items()
        )
        items.append((status, f"{advice}.", f"Here: {where}."))
    return items


def _some(labels: Sequence[Label]) -> str:
    if len(labels) > 3:
        widths = sorted(map(width_of, labels))
        return f"{len(labels)} widths from {number(widths[0])} to {number(widths[-1])}"
    if any(isinstance(label, tuple) for label in labels):
        return listing([say(label) for label in labels])
    return f"r = {', '.join(number(width_of(label)) for label in labels)}"
