"""``bayessel widths FILE --target y``: compare kernel widths and write a report."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._files import write_whole
from bayessel._types import RadialKind, Task, WidthModelName
from bayessel.cli import _words as words
from bayessel.criteria import CRITERIA
from bayessel.errors import SamplingWarning

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bayessel.widths import WidthComparison

#: what the models are, for --help
_MODELS = {
    "evidence": "one weight precision; the default",
    "rvm": "sparse: one precision per weight",
    "gp": "Gaussian process",
    "search": "few functions, found by the evidence",
}
#: Beyond this many rows the command line takes this many spread centres instead of one per row, and says so.
MANY_ROWS, SPREAD_CENTERS = 1000, 500
_GRID_HELP = "low:high:count (evenly on the logarithm) or a comma list, in r of exp(-d²/r²)"


def add(commands: Any) -> argparse.ArgumentParser:
    """The command's options."""
    widths = words.command(
        commands,
        "widths",
        _widths,
        help="compare kernel widths and write a report",
        description="Compare kernel widths on a table and write report.html, result.nc and widths.png.",
    )
    words.add_table(widths)
    widths.add_argument(
        "--widths",
        metavar="GRID",
        help=f"{_GRID_HELP}; default: from the distances in the data; posterior: the same, and the width is sampled "
        "as a random variable (models evidence and rvm)",
    )
    widths.add_argument(
        "--model",
        default="evidence",
        help=words.listed(WidthModelName, _MODELS),
    )
    widths.add_argument(
        "--task",
        default="regression",
        help=words.listed(Task, {"classification": "two labels of any sort, evidence and rvm"}),
    )
    widths.add_argument(
        "--criteria",
        metavar="A,B",
        help=f"of {', '.join(CRITERIA)}; a model that lacks one says why, and has a default",
    )
    widths.add_argument(
        "--kind",
        default="gaussian",
        metavar="A,B",
        help=f"{', '.join(words.choices(RadialKind))}; several are compared with each other; default: gaussian",
    )
    widths.add_argument(
        "--search",
        action="store_true",
        help="go on between the widths, around the best optima, until each is known to 2 %%; --widths is then "
        "low:high, or a first grid",
    )
    widths.add_argument("--budget", metavar="N", default="60", help="widths a search may visit, per kind; default: 60")
    widths.add_argument(
        "--holdout", metavar="SHARE", help="keep this share of the rows from the fits and judge by them"
    )
    widths.add_argument("--seed", metavar="N", default="0", help="seed of the rows held out; default: 0")
    widths.add_argument("--jobs", metavar="N", help="processes; default: more than one where the work is long")
    widths.add_argument(
        "--store",
        metavar="FOLDER",
        help="keep every fit there as it is done: the same command goes on where a killed one stopped",
    )
    widths.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers do the fits")
    widths.add_argument(
        "--centers",
        metavar="M",
        help=f"M functions, centred on rows spread over the inputs; default: one per row, {SPREAD_CENTERS} beyond "
        f"{MANY_ROWS} rows",
    )
    widths.add_argument("--no-bias", action="store_true", help="leave out the constant")
    widths.add_argument(
        "--standardise",
        action="store_true",
        help="divide each input by its standard deviation, so that one width fits all",
    )
    widths.add_argument("--out", default="report", metavar="FOLDER", help="folder for the report; default: report")
    return widths


def _widths(arguments: argparse.Namespace) -> int:
    """Read, compare, show, write."""
    from bayessel.widths.arguments import POSTERIOR, check_criteria, check_kinds, check_posterior, check_task

    console = words.console()
    # slips are better known before anything is read, made or announced
    model = check_task(arguments.task, arguments.model)
    check_criteria(model, words.comma_list(arguments.criteria), held=arguments.holdout is not None)
    sampled = arguments.widths == POSTERIOR
    if sampled:
        kinds = check_kinds(words.comma_list(arguments.kind) or "")
        check_posterior(POSTERIOR, model, kinds, width_prior=None, per_input=False)
    suggested = sampled or arguments.widths is None
    grid = None if suggested else _parse_grid(arguments.widths, 13 if arguments.search else 25)
    with words.folder(arguments.out) as folder:
        return _compare(arguments, grid, sampled, folder, console)


def _compare(
    arguments: argparse.Namespace, grid: FloatArray | None, sampled: bool, folder: Path, console: Console
) -> int:
    from bayessel.estimators.input_encoding import encoded_table
    from bayessel.widths import compare_widths
    from bayessel.widths.arguments import POSTERIOR

    table, y = words.table_of(arguments, console)
    X, names = encoded_table(table, words.missing(arguments.missing) == "indicator")
    X, names = _scaled(X, names, arguments.standardise, console)
    if grid is None:
        grid = _suggested(X, console)
    with words.scheduler(arguments.scheduler) as client, warnings.catch_warnings():
        # the verdict says it too
        warnings.filterwarnings("ignore", "the posterior of the width", SamplingWarning)
        comparison = compare_widths(
            X,
            y,
            POSTERIOR if sampled else grid,
            model=arguments.model,
            task=arguments.task,
            criteria=words.comma_list(arguments.criteria),
            kind=words.comma_list(arguments.kind) or "",
            centers=_centers(arguments.centers, len(X), console),
            bias=not arguments.no_bias,
            progressbar=not arguments.quiet,
            names=names,
            target=arguments.target,
            search=arguments.search,
            budget=words.number_of(arguments.budget, "--budget", int),
            holdout=words.number_of(arguments.holdout, "--holdout", float),
            random_state=words.number_of(arguments.seed, "--seed", int),
            n_jobs=words.number_of(arguments.jobs, "--jobs", int),
            executor=client,
            store=arguments.store,
        )
    if not arguments.quiet:
        _show(comparison, console)
    for one in comparison.recommendations():
        console.print(f"{one}", style="bold")
    headline, *reasons = comparison.verdict_sentences()
    console.print()
    console.print(headline, style="bold")
    for reason in reasons:
        console.print(f"\n{reason}")
    report = _write(comparison, folder)
    console.print(f"\nReport: {report}", soft_wrap=True, highlight=False)
    return 130 if comparison.interrupted else 0


def _parse_grid(text: str, usual: int = 25) -> FloatArray:
    """Widths from ``low:high:count`` (evenly on the logarithm; ``usual`` ones without count) or from a comma list."""
    needed = f"--widths needs {_GRID_HELP}, such as 0.05:2:25; got {text!r}"
    parts = text.split(":")
    try:
        if len(parts) == 1:
            return np.array([float(part) for part in text.split(",") if part.strip()])
        low, high = float(parts[0]), float(parts[1])
        count = int(parts[2]) if len(parts) == 3 else usual
    except (ValueError, IndexError):
        raise ValueError(needed) from None
    if len(parts) > 3 or not (0 < low < high < np.inf) or count < 2:
        raise ValueError(f"{needed}: low and high must be positive, low below high, count at least 2")
    from bayessel.widths.grids import MAX_WIDTHS

    if count > MAX_WIDTHS:
        raise ValueError(f"{needed}: count may be at most {MAX_WIDTHS}")
    return np.geomspace(low, high, count)


def _centers(text: str | None, rows: int, console: Console) -> int | None:
    if text is not None:
        if not text.isdigit() or int(text) < 1:
            raise ValueError(f"--centers needs a whole number of functions, at least 1; got {text!r}")
        return int(text)
    if rows <= MANY_ROWS:
        return None
    console.print(
        f"{rows} rows: taking {SPREAD_CENTERS} functions at rows spread over the inputs (--centers to change)."
    )
    return SPREAD_CENTERS


def _scaled(
    X: FloatArray, names: tuple[str, ...], wanted: bool, console: Console
) -> tuple[FloatArray, tuple[str, ...]]:
    """Standardise the inputs if wanted; otherwise say when their units differ so much that one width cannot fit all."""
    spread = X.std(axis=0)
    varying = spread > 0
    if wanted:
        console.print("Inputs are divided by their standard deviations: widths r are in those units.")
        scaled = (X - X.mean(axis=0)) / np.where(varying, spread, 1.0)
        return scaled, tuple(f"{name} (standardised)" for name in names)
    if varying.sum() > 1 and spread[varying].max() > 10 * spread[varying].min():
        big, small = (names[int(i)] for i in (spread.argmax(), np.where(varying, spread, np.inf).argmin()))
        console.print(
            f"Note: {big} varies over 10 times as much as {small}, so one width for both mostly sees {big}: "
            "consider --standardise.",
            style="yellow",
        )
    return X, names


def _suggested(X: FloatArray, console: Console) -> FloatArray:
    from bayessel._text import number
    from bayessel.widths import suggest_widths

    grid = suggest_widths(X)
    console.print(
        f"No widths given: trying {len(grid)} from {number(grid[0])} to {number(grid[-1])}, from half the typical "
        "distance of neighbours to twice the largest distance."
    )
    return grid


def _write(comparison: WidthComparison, folder: Path) -> Path:
    from bayessel.pages.page import png

    comparison.to_netcdf(folder / "result.nc")
    write_whole(folder / "widths.png", png(comparison.plot()))
    return comparison.to_html(folder / "report.html")


# the terminal


def _show(comparison: WidthComparison, console: Console) -> None:
    console.print(comparison.facts() + ".", highlight=False)
    table, left_out, separate = _terminal_table(comparison, console.width)
    console.print(table)
    said = "* best of its column" + ("; + a separate optimum" if separate else "")
    said += f"; {', '.join(left_out)}: in the report" if left_out else ""
    console.print(f"{said}\n", highlight=False)


def _terminal_table(comparison: WidthComparison, width: int) -> tuple[Table, list[str], bool]:
    """As many columns as the terminal holds, the most telling first; the names of the others; whether + occurs."""
    from bayessel._text import number
    from bayessel.widths.curves import entry, needs_attention, width_of

    frame = comparison.table
    order = sorted(comparison.criteria, key=lambda name: CRITERIA[name].column_rank)
    sparse = comparison.model in ("rvm", "search", "class-rvm")
    wanted = [*order[:4], *(["n_basis"] if sparse else []), "noise_std", "gamma", *order[4:]]
    wanted = [name for name in wanted if name in frame]  # labels have no noise
    marks: dict[tuple[Any, str], str] = {}
    for name in comparison.criteria:
        marks |= {(one.label, name): "+" for one in comparison.scales(name)}
        marks |= {(one.label, name): "*" for one in comparison.optima(name)[:1]}

    def text(label: Any, name: str, value: float) -> str:
        return entry(name, value) + (marks.get((label, name), " ") if name in comparison.criteria else "")

    columns = {"kind": [str(label[0]) for label in frame.index]} if frame.index.nlevels > 1 else {}
    columns["r"] = [number(width_of(label), strip=False) for label in frame.index]
    first = list(columns)
    columns |= {name: [text(r, name, v) for r, v in zip(frame.index, frame[name], strict=True)] for name in wanted}
    statuses = [str(status) for status in frame["status"]]
    warned = any(needs_attention(status) for status in statuses)
    if warned:
        columns["status"] = [status if needs_attention(status) else "" for status in statuses]
    size = {name: max(map(len, (name, *cells))) + 3 for name, cells in columns.items()}
    kept, room = first, width - sum(size[name] for name in first) - (size["status"] if warned else 0)
    for name in wanted:
        if size[name] <= room:
            kept.append(name)
            room -= size[name]
    kept += ["status"] if warned else []
    table = words.table(kept, left=("status", "kind"))
    chosen = {label for (label, _), mark in marks.items() if mark == "*"}
    for i, label in enumerate(frame.index):
        table.add_row(*(columns[name][i] for name in kept), style="bold" if label in chosen else None)
    return table, [name for name in wanted if name not in kept], "+" in marks.values()
