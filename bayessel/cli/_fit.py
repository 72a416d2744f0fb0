"""``bayessel fit FILE --target y``: fit one model, say how well it predicts, keep it, and predict other rows."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import FloatArray, one_of
from bayessel.cli import _words as words

if TYPE_CHECKING:
    from rich.console import Console

MODELS = ("gp", "rvm", "evidence")
#: words of --covariance -> classes of bayessel.covariance
COVARIANCES = {
    "standard": "Standard",
    "se": "SquaredExponential",
    "matern12": "Matern12",
    "matern32": "Matern32",
    "matern52": "Matern52",
    "rational-quadratic": "RationalQuadratic",
    "periodic": "Periodic",
    "arcsin": "Arcsin",
    "linear": "Linear",
    "bias": "Bias",
    "noise": "Noise",
}
#: remarks about fits that found no function, of which nothing can be said
_NO_FUNCTION = {"TOO_FEW_ROWS", "CONSTANT_TARGET", "PURE_NOISE"}


def add(commands: Any) -> argparse.ArgumentParser:
    """The command's options."""
    fit: argparse.ArgumentParser = commands.add_parser(
        "fit",
        help="fit one model, report on it, and predict",
        description="Fit one model to a table; write report.html, result.nc, model.joblib and, with --predict, "
        "predictions.csv.",
        allow_abbrev=False,
    )
    fit.set_defaults(run=_fit)
    fit.add_argument("file", metavar="FILE", help="table: .csv, .csv.gz, .parquet or .npz")
    fit.add_argument("--target", required=True, metavar="NAME", help="column to predict")
    fit.add_argument("--inputs", metavar="A,B", help="input columns; default: all others")
    fit.add_argument(
        "--model",
        default="gp",
        help="gp (Gaussian process; the default), rvm (relevance vector machine) or evidence (one weight precision)",
    )
    fit.add_argument(
        "--inference", default=None, metavar="HOW", help="gp: map (hyperparameters at their mode; the default) or mc"
    )
    fit.add_argument(
        "--covariance",
        metavar="NAME",
        help=f"gp: {', '.join(COVARIANCES)}, also sums and products of them, such as linear+se*periodic; default: "
        "standard, bias + linear + se + noise with a length per input",
    )
    fit.add_argument("--inducing", metavar="M", help="gp with map: approximate through M inducing inputs; many rows")
    fit.add_argument("--time-budget", metavar="TIME", help="gp with mc: stop sampling after this long, such as 2m")
    fit.add_argument("--draws", metavar="N", help="gp with mc: draws per chain")
    fit.add_argument("--tune", metavar="N", help="gp with mc: draws of tuning before")
    fit.add_argument("--chains", metavar="N", help="gp with mc: chains")
    fit.add_argument("--width", metavar="R", help="rvm, evidence: a number, fit (the default) or ard (one per input)")
    fit.add_argument("--predict", metavar="FILE", help="table with the same inputs: predict its rows")
    fit.add_argument("--seed", metavar="N", default="0", help="seed of everything random; default: 0")
    fit.add_argument("--out", default="report", metavar="FOLDER", help="folder for what is written; default: report")
    return fit


def _fit(arguments: argparse.Namespace) -> int:
    """Read, fit, show, write."""
    import pandas as pd

    from bayessel._tables import read_inputs, read_table

    console = words.console()
    estimator = _estimator(arguments)
    folder = words.folder(arguments.out)
    X, y, names = read_table(arguments.file, arguments.target, words.split(arguments.inputs))
    new = None if arguments.predict is None else read_inputs(arguments.predict, names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(pd.DataFrame(X, columns=list(names)), y)
        errors, variances = _left_out(estimator)
        numbers = _numbers(estimator, y, errors, variances)
    facts = _facts(arguments, estimator, X, names)
    sentences = _sentences(estimator, caught)
    if not arguments.quiet:
        _show(console, facts, numbers, _relevance(estimator))
    for sentence in sentences:
        console.print(sentence, style="bold" if sentence is sentences[0] else None)
    _write(folder, arguments, estimator, facts, sentences, numbers, y, errors, variances)
    if new is not None:
        _predict(estimator, new, names).to_csv(folder / "predictions.csv", index=False)
        console.print(f"\nPredictions: {folder / 'predictions.csv'}", soft_wrap=True)
    console.print(f"\nReport: {folder / 'report.html'}", soft_wrap=True)
    return 130 if estimator.status_.name == "INTERRUPTED" else 0


def _estimator(arguments: argparse.Namespace) -> Any:
    """The estimator the options describe; an option of another model is refused."""
    model = one_of(arguments.model, "--model", MODELS)
    sampled = ("time_budget", "draws", "tune", "chains")
    of = {"gp": ("inference", "covariance", "inducing", *sampled), "rvm": ("width",), "evidence": ("width",)}
    for name in sorted({*of["gp"], "width"} - set(of[model])):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} is not an option of --model {model}")
    if model != "gp":
        from bayessel.estimators import EvidenceRegressor, RVMRegressor

        width = arguments.width or "fit"
        value = width if width in ("fit", "ard") else words.number(width, "--width", float)
        return (RVMRegressor if model == "rvm" else EvidenceRegressor)(width=value)
    from bayessel.estimators import GPRegressor

    inference = one_of(arguments.inference or "map", "--inference", ("map", "mc"))
    options: dict[str, Any] = {"progressbar": not arguments.quiet}
    for name in sampled:
        text = getattr(arguments, name)
        if text is not None and inference == "map":
            raise ValueError(f"--{name.replace('_', '-')} is for --inference mc: the mode is not sampled")
        if text is not None:
            options[name] = text if name == "time_budget" else words.number(text, f"--{name}", int)
    if arguments.inducing is not None:
        options["inducing"] = words.number(arguments.inducing, "--inducing", int)
    covariance = None if arguments.covariance is None else parse_covariance(arguments.covariance)
    seed = words.number(arguments.seed, "--seed", int)
    return GPRegressor(inference, covariance, random_state=seed, **options)


def parse_covariance(text: str) -> Any:
    """A covariance from words joined by + and *, the products first."""
    from functools import reduce
    from operator import add, mul

    from bayessel import covariance

    def one(word: str) -> Any:
        name = word.strip().lower()
        if name not in COVARIANCES:
            raise ValueError(f"--covariance knows {', '.join(COVARIANCES)}, joined by + and *; got {word.strip()!r}")
        return getattr(covariance, COVARIANCES[name])()

    return reduce(add, (reduce(mul, map(one, term.split("*"))) for term in text.split("+")))


def _notes(estimator: Any) -> tuple[Any, ...]:
    """All remarks about a fit."""
    return (estimator.status_, *getattr(estimator, "notes_", ()))


def _relevance(estimator: Any) -> Any:
    return getattr(estimator, "relevance_", None)


def _facts(arguments: argparse.Namespace, estimator: Any, X: FloatArray, names: tuple[str, ...]) -> str:
    what = {
        "gp": "Gaussian process, hyperparameters at their mode",
        "rvm": "relevance vector machine",
        "evidence": "radial basis functions, one weight precision",
    }[arguments.model]
    trace = getattr(estimator, "trace_", None)
    if trace is not None and trace["posterior"].sizes["draw"]:
        what = f"Gaussian process, a mixture over {len(estimator.theta_)} states of the hyperparameters"
    if arguments.inducing is not None:
        what = f"Gaussian process through {len(estimator.fit_.inducing)} inducing inputs, hyperparameters at their mode"
    if arguments.covariance is not None and not estimator.covariance.noisy:
        what += "; noise was added to the covariance"
    few = ", ".join(names) if len(names) <= 6 else f"{names[0]} … {names[-1]}"
    inputs = "1 input" if len(names) == 1 else f"{len(names)} inputs"
    return f"{arguments.target} from {inputs} ({few}), {len(X)} rows; {what}"


def _left_out(estimator: Any) -> tuple[FloatArray, FloatArray]:
    errors, variances = (estimator if hasattr(estimator, "leave_one_out") else estimator.fit_).leave_one_out()
    return errors, variances


def _sentences(estimator: Any, caught: list[warnings.WarningMessage]) -> list[str]:
    """How it went, what matters most, and what else was warned of, each once."""
    status = estimator.status_
    said = [f"{status.name}: {status.value}." if status.name != "CONVERGED" else "The fit converged."]
    table = _relevance(estimator)
    if table is not None and len(table) > 1 and not _NO_FUNCTION & {note.name for note in _notes(estimator)}:
        first = table["standardised"].idxmin()
        said.append(f"The function changes fastest along {first}.")
    texts = dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning))
    return said + [f"Note: {text}." for text in texts if not text.startswith(f"{status.name}:")]


def _numbers(estimator: Any, y: FloatArray, errors: FloatArray, variances: FloatArray) -> dict[str, str]:
    """What is said of every fit; losses of rows that were left out, one at a time."""
    from bayessel._formulas import log_normal
    from bayessel.diagnostics._curves import number

    bound = getattr(estimator, "kind_", "type2") == "bound"
    found = {
        f"log evidence at the mode ({'lower bound' if bound else 'type II'})": number(float(estimator.log_evidence_)),
        "noise, standard deviation": number(float(estimator.noise_std_)),
    }
    if hasattr(estimator, "n_basis_"):
        found["functions in use"] = str(estimator.n_basis_)
    spread = float(((y - y.mean()) ** 2).mean())
    if spread > 0.0:
        found["left out: squared error / variance"] = number(float((errors**2).mean()) / spread)
    density = estimator.log_leave_one_out() if hasattr(estimator, "trace_") else log_normal(errors, variances)
    found["left out: mean log density"] = number(float(density.mean()))
    inside = np.abs(errors) < 2 * np.sqrt(variances)
    found["left out: within two standard deviations"] = f"{100 * inside.mean():.1f} % (95.4 % expected)"
    return found


def _show(console: Console, facts: str, numbers: dict[str, str], relevance: Any) -> None:
    from rich import box
    from rich.table import Table

    from bayessel.diagnostics._curves import number

    console.print(f"{facts}.\n")
    table = Table(box=box.SIMPLE_HEAD, show_header=False, padding=(0, 1), show_edge=False)
    for name, value in numbers.items():
        table.add_row(name, value)
    console.print(table)
    console.print()
    if relevance is not None:
        columns = ("length", "lower", "upper", "standardised")
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
        for name in ("input", *columns):
            table.add_column(name, justify="left" if name == "input" else "right", no_wrap=True)
        for name, row in relevance.sort_values("standardised").head(20).iterrows():
            table.add_row(str(name), *(number(float(row[column])) for column in columns))
        console.print(table)
        hidden = len(relevance) - 20
        console.print(
            "Lengths: short means relevant." + (f" {hidden} more in the report." if hidden > 0 else "") + "\n"
        )


def _write(
    folder: Path,
    arguments: argparse.Namespace,
    estimator: Any,
    facts: str,
    sentences: list[str],
    numbers: dict[str, str],
    y: FloatArray,
    errors: FloatArray,
    variances: FloatArray,
) -> None:
    import joblib
    import xarray as xr

    from bayessel.diagnostics._fit_report import fit_report, plot_left_out, plot_lengths

    relevance = _relevance(estimator)
    figures = [(plot_left_out(y, errors, variances, arguments.target), "rows over their predictions from the others")]
    if relevance is not None:
        figures.append((plot_lengths(relevance), "relevance of the inputs"))
    foot = {"Data": estimator.fingerprint_, "bayessel": estimator.version_, "Table": Path(arguments.file).name}
    page = fit_report(arguments.target, facts, sentences, numbers, relevance, figures, foot)
    (folder / "report.html").write_text(page, encoding="utf-8")
    joblib.dump(estimator, folder / "model.joblib")
    left_out = xr.Dataset({"error": ("row", errors), "variance": ("row", variances)})
    trace = getattr(estimator, "trace_", None)
    tree = xr.DataTree() if trace is None else trace.copy()
    tree["leave_one_out"] = xr.DataTree(left_out)
    if relevance is not None:
        tree["relevance"] = xr.DataTree(xr.Dataset.from_dataframe(relevance))
    if hasattr(estimator, "theta_") and trace is None:
        names = list(estimator.fit_.names)
        theta = xr.Dataset({"theta": ("parameter", estimator.theta_)}, coords={"parameter": names})
        tree["mode"] = xr.DataTree(theta)
    tree.attrs |= {"facts": facts, "status_of_fit": estimator.status_.name, "data": estimator.fingerprint_}
    tree.attrs["log_evidence"] = float(estimator.log_evidence_)
    tree.to_netcdf(folder / "result.nc")


def _predict(estimator: Any, new: FloatArray, names: tuple[str, ...]) -> Any:
    """Inputs, mean, standard deviation and a 90 % interval of new observations, row by row."""
    import pandas as pd
    from scipy.special import ndtri

    table = pd.DataFrame(new, columns=list(names))
    if hasattr(estimator, "predict_median"):
        mean, std, (low, median, high) = estimator.predict(table, return_std=True, return_quantiles=[0.05, 0.5, 0.95])
    else:
        mean, std = estimator.predict(table, return_std=True)
        low, median, high = mean + ndtri(0.05) * std, mean, mean + ndtri(0.95) * std
    for name, values in {"mean": mean, "std": std, "median": median, "q05": low, "q95": high}.items():
        table[name if name not in names else f"predicted {name}"] = values
    return table
