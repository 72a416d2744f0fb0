"""``bayessel fit FILE --target y``: fit one model, say how well it predicts, keep it, and predict other rows."""

from __future__ import annotations

import argparse
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray, one_of
from bayessel._files import netcdf, sealed, write_whole
from bayessel._types import NetworkInference, ProcessInference, Task
from bayessel.cli import _fit_classes as classes
from bayessel.cli import _fit_models as models
from bayessel.cli import _words as words
from bayessel.cli._fit_models import COVARIANCES
from bayessel.fit import LeaveOneOut

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

#: what --inference means, for --help
_OF_PROCESS = {
    "auto": "a mixture over states of the hyperparameters; the default",
    "map": "their mode",
    "mc": "sampled",
}
_OF_NETWORK = {"auto": "sampled, beside a reference; the default", "mc": "sampled"}
#: remarks about fits that found no function, of which nothing can be said
_NO_FUNCTION = {"TOO_FEW_ROWS", "CONSTANT_TARGET", "PURE_NOISE"}
#: kind of an evidence (`bayessel.fit.Evidence`) -> what the report calls it
EVIDENCES = {
    "type2": "log evidence at the mode (type II)",
    "type2-laplace": "log evidence at the mode (type II, function by Laplace's method)",
    "type2-ep": "log evidence at the mode (type II, function by expectation propagation)",
    "type2-vecchia": "log evidence at the mode (type II, by Vecchia's approximation)",
    "plug-in": "log evidence at the precisions of another criterion",
    "bound": "log evidence at the mode (lower bound)",
    "laplace": "log evidence (Laplace's approximation)",
    "laplace-bound": "log evidence (Laplace's approximation of a lower bound)",
    "laplace-vecchia": "log evidence (Laplace's approximation, by Vecchia's)",
    "third-level": "log evidence, precisions integrated out",
    "grid": "log evidence, hyperparameters integrated out",
    "sampled": "log evidence (sampled)",
    "exact": "log evidence",
}


def add(commands: Any) -> argparse.ArgumentParser:
    """The command's options."""
    fit = words.command(
        commands,
        "fit",
        _fit,
        help="fit one model, report on it, and predict",
        description="Fit one model to a table; write report.html, result.nc, model.joblib and, with --predict, "
        "predictions.csv.",
    )
    words.add_table(fit)
    fit.add_argument(
        "--model",
        default="gp",
        help="gp (Gaussian process; the default), mlp (Bayesian network), rvm (relevance vector machine) or evidence "
        "(one weight precision)",
    )
    fit.add_argument(
        "--task",
        default="regression",
        help=words.listed(Task, {"classification": "the target is a label of any sort"}),
    )
    fit.add_argument(
        "--inference",
        default=None,
        metavar="HOW",
        help=f"gp: {words.listed(ProcessInference, _OF_PROCESS)}; mlp: {words.listed(NetworkInference, _OF_NETWORK)}",
    )
    fit.add_argument("--hidden", metavar="H", help="mlp: hidden units; default: auto, from the number of rows")
    fit.add_argument(
        "--covariance",
        metavar="NAME",
        help=f"gp: {', '.join(COVARIANCES)}, also sums and products of them, such as linear+se*periodic; default: "
        "standard, bias + linear + se + noise with a length per input",
    )
    fit.add_argument(
        "--method",
        metavar="HOW",
        help="gp: auto (dense up to 3000 rows; the default), dense, vecchia or inducing: for many rows",
    )
    fit.add_argument("--inducing", metavar="M", help="gp, not mc: approximate through M inducing inputs; many rows")
    fit.add_argument("--time-budget", metavar="TIME", help="mc, and mlp of any kind: stop after so long, such as 2m")
    fit.add_argument("--draws", metavar="N", help="mc: draws per chain")
    fit.add_argument("--tune", metavar="N", help="mc: draws of tuning before")
    fit.add_argument("--chains", metavar="N", help="mc: chains")
    fit.add_argument("--width", metavar="R", help="rvm, evidence: a number, fit (the default) or ard (one per input)")
    fit.add_argument("--predict", metavar="FILE", help="table with the same inputs: predict its rows")
    fit.add_argument("--seed", metavar="N", default="0", help="seed of everything random; default: 0")
    fit.add_argument("--out", default="report", metavar="FOLDER", help="folder for what is written; default: report")
    return fit


def _fit(arguments: argparse.Namespace) -> int:
    """Read, fit, show, write."""
    console = words.console()
    labels = one_of(arguments.task, "--task", words.choices(Task)) == "classification"
    estimator = (classes.classifier if labels else models.estimator)(arguments)
    estimator.set_params(missing=words.missing(arguments.missing))
    with words.folder(arguments.out) as folder:
        return _run(arguments, estimator, folder, console)


def _run(arguments: argparse.Namespace, estimator: Any, folder: Path, console: Console) -> int:
    from bayessel._tables import read_inputs

    gaps, labels = estimator.missing == "indicator", arguments.task == "classification"
    X, y = words.table_of(arguments, console)
    new = None if arguments.predict is None else read_inputs(arguments.predict, X, gaps=gaps)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(X, y)
        left_out = _left_out(estimator)
        numbers = classes.numbers(estimator, left_out, EVIDENCES) if labels else _numbers(estimator, y, left_out)
    facts = models.facts(arguments, estimator, X)
    sentences = _sentences(estimator, caught, None if labels else _likely_error(y, left_out))
    if labels and (seen := classes.calibration(left_out)) is not None:
        sentences.append(seen.verdict())
    if not arguments.quiet:
        _show(console, facts, numbers, _relevance(estimator))
    for sentence in sentences:
        console.print(sentence, style="bold" if sentence is sentences[0] else None)
    _write(folder, arguments, estimator, facts, sentences, numbers, y, left_out)
    if new is not None:
        predicted = (classes.predicted_labels if labels else _predict)(estimator, new)
        write_whole(folder / "predictions.csv", predicted.to_csv(index=False).encode())
        console.print(f"\nPredictions: {folder / 'predictions.csv'}", soft_wrap=True)
    console.print(f"\nReport: {folder / 'report.html'}", soft_wrap=True)
    return 130 if estimator.status_.name == "INTERRUPTED" else 0


def _notes(estimator: Any) -> tuple[Any, ...]:
    """All remarks about a fit."""
    return (estimator.status_, *getattr(estimator, "notes_", ()))


def most_relevant(table: Any) -> list[Any]:
    """Inputs, those that matter most first: the shortest lengths, or the largest slopes."""
    return list(table["standardised"].sort_values(ascending="length" in table, kind="stable").index)


def _relevance(estimator: Any) -> Any:
    return getattr(estimator, "relevance_", None)


def _left_out(estimator: Any) -> LeaveOneOut:
    found: LeaveOneOut = (estimator if hasattr(estimator, "leave_one_out") else estimator.fit_).leave_one_out()
    return found


def _likely_error(y: FloatArray, left_out: LeaveOneOut) -> str | None:
    """How far predictions of rows left out are from what was seen, in words; None where nothing is known of them."""
    from bayessel._text import number

    seen = np.isfinite(left_out.errors)
    spread = float(y.std())
    if not seen.any() or spread == 0.0:
        return None
    error = float(np.sqrt((left_out.errors[seen] ** 2).mean()))
    share = 100.0 * (1.0 - (error / spread) ** 2)
    said = f"Rows left out are predicted to within {number(error)} (root mean square)"
    return f"{said}; the target varies by {number(spread)}, so {share:.0f} % of its variance is explained."


def _sentences(estimator: Any, caught: list[warnings.WarningMessage], likely: str | None) -> list[str]:
    """How it went, what matters most, and what else was warned of, each once."""
    status = estimator.status_
    said = [f"{status.name}: {status.value}." if status.name != "CONVERGED" else "The fit converged."]
    said += [] if likely is None else [likely]
    table = _relevance(estimator)
    if table is not None and len(table) > 1 and not _NO_FUNCTION & {note.name for note in _notes(estimator)}:
        first = most_relevant(table)[0]
        said.append(f"The function changes fastest along {first}.")
    texts = dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))
    return said + [f"Note: {text}." for text in texts if not text.startswith(f"{status.name}:")]


def _numbers(estimator: Any, y: FloatArray, left_out: LeaveOneOut) -> dict[str, str]:
    """What is said of every fit; losses of rows that were left out, one at a time."""
    from bayessel._text import number

    found = {}
    if kind := getattr(estimator, "kind_", "type2"):
        found[EVIDENCES[kind]] = number(float(estimator.log_evidence_))
    found["noise, standard deviation"] = number(float(estimator.noise_std_))
    if hasattr(estimator, "hidden_"):
        found["hidden units"] = str(estimator.hidden_)
    if hasattr(estimator, "n_basis_"):
        found["functions in use"] = str(estimator.n_basis_)
    spread = float(((y - y.mean()) ** 2).mean())
    seen = np.isfinite(left_out.errors)  # of few networks none may have held a row out
    errors, variances, density = left_out.errors[seen], left_out.variances[seen], left_out.log_densities[seen]
    if not seen.all():
        found["left out: rows"] = f"{seen.sum()} of {len(seen)}"
    if spread > 0.0:
        found["left out: squared error / variance"] = number(float((errors**2).mean()) / spread)
    found["left out: mean log density"] = number(float(density.mean()))
    inside = np.abs(errors) < 2 * np.sqrt(variances)
    found["left out: within two standard deviations"] = f"{100 * inside.mean():.1f} % (95.4 % expected)"
    return found


def _show(console: Console, facts: str, numbers: dict[str, str], relevance: Any) -> None:
    from rich import box
    from rich.table import Table

    from bayessel._text import number

    console.print(f"{facts}.\n")
    table = Table(box=box.SIMPLE_HEAD, show_header=False, padding=(0, 1), show_edge=False)
    for name, value in numbers.items():
        table.add_row(name, value)
    console.print(table)
    console.print()
    if relevance is not None:
        what = "length" if "length" in relevance else "slope"
        columns = [name for name in (what, "lower", "upper", "standardised") if relevance[name].notna().any()]
        table = words.table(("input", *columns), left=("input",))
        for name in most_relevant(relevance)[:20]:
            table.add_row(str(name), *(number(float(relevance.loc[name, column])) for column in columns))
        console.print(table)
        hidden = len(relevance) - 20
        console.print(
            ("Lengths: short means relevant." if what == "length" else "Slopes: large means relevant.")
            + (f" {hidden} more in the report." if hidden > 0 else "")
            + "\n"
        )


def _write(
    folder: Path,
    arguments: argparse.Namespace,
    estimator: Any,
    facts: str,
    sentences: list[str],
    numbers: dict[str, str],
    y: FloatArray,
    left_out: LeaveOneOut,
) -> None:
    import joblib
    import xarray as xr

    from bayessel.pages.fit_page import fit_report, plot_left_out, plot_relevance

    relevance = _relevance(estimator)
    figures = []
    if arguments.task == "regression":
        over_predictions = plot_left_out(y, left_out.errors, left_out.variances, arguments.target)
        figures.append((over_predictions, "rows over their predictions from the others"))
    elif (seen := classes.calibration(left_out)) is not None:
        figures.append((seen.plot(), "labels seen over their probabilities from the other rows"))
    if relevance is not None:
        figures.append((plot_relevance(relevance), "relevance of the inputs"))
    foot = {"Data": estimator.fingerprint_, "bayessel": estimator.version_, "Table": Path(arguments.file).name}
    page = fit_report(arguments.target, facts, sentences, numbers, relevance, figures, foot)
    write_whole(folder / "report.html", page.encode())
    pickled = io.BytesIO()
    joblib.dump(estimator, pickled)
    write_whole(folder / "model.joblib", pickled.getvalue())
    over = ("row", "class")[: left_out.errors.ndim]
    predicted = xr.Dataset({"error": (over, left_out.errors), "variance": (over, left_out.variances)})
    trace = getattr(estimator, "trace_", None)
    tree = xr.DataTree() if trace is None else trace.copy()
    tree["leave_one_out"] = xr.DataTree(predicted)
    if relevance is not None:
        tree["relevance"] = xr.DataTree(xr.Dataset.from_dataframe(relevance))
    if hasattr(estimator, "theta_") and trace is None:
        names = list(estimator.fit_.mode.names)
        theta = xr.Dataset({"theta": ("parameter", estimator.theta_)}, coords={"parameter": names})
        tree["mode"] = xr.DataTree(theta)
    tree.attrs |= {"facts": facts, "status_of_fit": estimator.status_.name, "data": estimator.fingerprint_}
    tree.attrs["log_evidence"] = float(estimator.log_evidence_)
    write_whole(folder / "result.nc", sealed(netcdf(tree)))


def _predict(estimator: Any, new: pd.DataFrame) -> pd.DataFrame:
    """Inputs, mean, standard deviation and a 90 % interval of new observations, row by row."""
    from scipy.special import ndtri

    if hasattr(estimator, "predict_median"):
        mean, std, (low, median, high) = estimator.predict(new, return_std=True, return_quantiles=[0.05, 0.5, 0.95])
    else:
        mean, std = estimator.predict(new, return_std=True)
        low, median, high = mean + ndtri(0.05) * std, mean, mean + ndtri(0.95) * std
    table = new.copy()
    for name, values in {"mean": mean, "std": std, "median": median, "q05": low, "q95": high}.items():
        table[name if name not in new else f"predicted {name}"] = values
    return table
