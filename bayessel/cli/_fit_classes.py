"""What ``bayessel fit --task classification`` says, draws and predicts: labels and their probabilities."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel._check import one_of
from bayessel.cli import _words as words
from bayessel.fit import LeaveOneOut

if TYPE_CHECKING:
    import pandas as pd

    from bayessel.diagnostics.class_reliability import ClassCalibration

#: --model -> a classifier, and the options that it takes
MODELS = {
    "gp": ("GPClassifier", ("inference",)),
    "mlp": ("MLPClassifier", ("inference", "hidden", "time_budget", "draws", "tune", "chains")),
    "rvm": ("RVMClassifier", ("width",)),
    "evidence": ("EvidenceClassifier", ("width",)),
}


def classifier(arguments: argparse.Namespace) -> Any:
    """The classifier the options describe; an option of another model is refused."""
    import bayessel.estimators as estimators

    name, takes = MODELS[one_of(arguments.model, "--model", tuple(MODELS))]
    options: dict[str, Any] = {}
    for option in (
        "inference",
        "covariance",
        "method",
        "inducing",
        "hidden",
        "time_budget",
        "draws",
        "tune",
        "chains",
        "width",
    ):
        text = getattr(arguments, option)
        if text is None:
            continue
        if option not in takes:
            raise ValueError(
                f"--{option.replace('_', '-')} is not an option of --model {arguments.model} with --task classification"
            )
        numeric = option in ("draws", "tune", "chains") or (option == "hidden" and text != "auto")
        options[option] = words.number_of(text, f"--{option}", int) if numeric else text
    if "width" in options:
        options["width"] = words.number_of(options["width"], "--width", float)
    if arguments.model in ("gp", "mlp"):
        options["random_state"] = words.number_of(arguments.seed, "--seed", int)
    if arguments.model == "mlp":
        options["progressbar"] = not arguments.quiet
    return getattr(estimators, name)(**options)


def calibration(left_out: LeaveOneOut) -> ClassCalibration | None:
    """Reliability of the probabilities of rows left out; None with too few rows."""
    from bayessel.diagnostics.class_reliability import FEWEST_ROWS, of_left_out

    return of_left_out(left_out) if len(left_out.log_densities) >= FEWEST_ROWS else None


def numbers(estimator: Any, left_out: LeaveOneOut, evidences: dict[str, str]) -> dict[str, str]:
    """What is said of every fit; losses of rows that were left out, one at a time."""
    from bayessel._text import number

    found = {"classes": ", ".join(map(str, estimator.classes_))}
    evidence = estimator.fit_.evidence
    if evidence is not None and np.isfinite(float(evidence)):
        found[evidences[evidence.kind]] = number(float(evidence))
    if hasattr(estimator, "n_basis_"):
        found["functions in use"] = str(estimator.n_basis_)
    found["left out: mean log probability"] = number(float(left_out.log_densities.mean()))
    if (seen := calibration(left_out)) is not None:
        found["left out: wrong labels"] = f"{100.0 * seen.error:.1f} %"
        found["left out: Brier's score"] = number(seen.brier)
        shares = np.bincount(seen.codes) / seen.n_rows
        found["the same by frequencies alone"] = number(float(np.log(shares[seen.codes]).mean()))
    return found


def predicted_labels(estimator: Any, new: pd.DataFrame) -> pd.DataFrame:
    """Inputs, the likeliest label and the probability of each, row by row."""
    p = estimator.predict_proba(new)
    table = new.copy()
    columns = {"label": estimator.predict(new)}
    columns |= {f"p({label})": p[:, k] for k, label in enumerate(estimator.classes_)}
    for name, values in columns.items():
        table[name if name not in new else f"predicted {name}"] = values
    return table
