"""One width under the model with one weight precision: a single decomposition, every criterion from it.

The evidence is maximised over alpha and beta; every other criterion is minimised over its own ridge parameter.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.diagnostics._criteria import INTERPOLATION, QUADRATURE, UNDETERMINED
from bayessel.diagnostics._curves import DrawnFit
from bayessel.errors import NumericalWarning
from bayessel.fit import Status
from bayessel.linear import LinearFit, Spectrum, fit_evidence, fit_ridge, loo_residuals, model_evidence_quadrature
from bayessel.widths._problem import Model, Outcome, Place, Problem, join_notes, put_error

_RIDGE = ("gcv", "loo", "uev", "fpe", "bic")


def evaluate(problem: Problem, place: Place, starts: Sequence[Any] = (), beaten: float = -np.inf) -> Outcome | None:
    """Decompose the design at one width and read every criterion off it. There is nothing to start from."""
    criteria = problem.criteria
    dictionary = problem.dictionary(place, bias=False)
    spectrum = Spectrum.of(dictionary.design(problem.X), problem.t, centre=problem.bias, rows="loo" in criteria)
    values: dict[str, float] = {}
    lams: dict[str, float] = {}
    losses: dict[str, FloatArray] = {}
    beside: dict[str, list[str]] = {}
    with warnings.catch_warnings():
        # one warning per width and criterion would bury the reader: the statuses are in the table and in the verdict
        warnings.simplefilter("ignore", NumericalWarning)
        fit = fit_evidence(spectrum)
        for status in set(fit.notes) - {fit.status}:
            beside.setdefault(status.name, []).append("evidence")
        for name in (name for name in criteria if name in _RIDGE):
            values[name], lams[f"lam_{name}"], notes = _ridge_minimum(spectrum, name)
            for note in notes:
                beside.setdefault(note, []).append(name)
        if "loo" in criteria and np.isfinite(lams["lam_loo"]):
            losses["loo"] = loo_residuals(spectrum, lams["lam_loo"]) ** 2
        if "model-evidence" in criteria:
            values["model-evidence"], notes = _third_level(spectrum, fit)
            for note in notes:
                beside.setdefault(note, []).append("model-evidence")
        if problem.held is not None:
            X, t = problem.held
            put_error(values, losses, "holdout", (t - fit.predict(dictionary.design(X))) ** 2)
        prediction = _predict(problem, place, fit)
    values["evidence"] = float(fit.log_evidence)
    row: dict[str, Any] = {name: values[name] for name in criteria}
    row |= {"gamma": float(fit.gamma), "noise_std": float(fit.noise_std), "lam": float(fit.lam), **lams}
    row |= {"n_basis": int(fit.n_basis), "status": fit.status.name, "notes": join_notes(beside)}
    return Outcome(row, prediction, losses)


def _predict(problem: Problem, place: Place, fit: LinearFit) -> DrawnFit:
    dictionary = problem.dictionary(place, bias=False)
    mean, std = fit.predict(dictionary.design(problem.X), return_std=True)
    grid = grid_mean = grid_std = problem.grid()
    if len(grid):
        grid_mean, grid_std = fit.predict(dictionary.design(grid), return_std=True)
    return DrawnFit(mean, std, grid, grid_mean, grid_std)


def _third_level(spectrum: Spectrum, fit: LinearFit) -> tuple[float, set[str]]:
    """Evidence with alpha and beta integrated out: Gaussian approximation where it is good, quadrature elsewhere.

    The approximation needs some well-determined parameters and some rows left for the noise. NaN where the integral
    itself has no answer: its mass lies at the ends of the range, so that the improper prior decides.
    """
    if 3.0 <= fit.gamma <= spectrum.n_free - 3.0:
        return float(fit.model_evidence), set()
    if spectrum.n_free > 0:
        exact = model_evidence_quadrature(spectrum)
        if exact.status is Status.CONVERGED and np.isfinite(exact.value):
            return float(exact.value), {QUADRATURE}
    return float("nan"), {UNDETERMINED}


def _ridge_minimum(spectrum: Spectrum, name: str) -> tuple[float, float, set[str]]:
    """Smallest value of a criterion over lambda, the lambda, and what to be wary of.

    UEV, FPE and BIC fall to zero as the fit comes to pass through every row, whatever the data: where they have no
    minimum that leaves rows enough to the noise they say nothing about a width, and NaN stands for that. GCV and LOO
    have no such end.
    """
    ridge = fit_ridge(spectrum, criterion=name)
    if name not in ("gcv", "loo") and not ridge.leaves_noise:
        return float("nan"), float("nan"), {INTERPOLATION}
    notes = {ridge.status, *ridge.notes} - {Status.CONVERGED}
    return float(ridge.value), float(np.max(ridge.lam)), {note.name for note in notes}


MODEL = Model(
    evaluate,
    criteria=("evidence", "model-evidence", "gcv", "loo", "uev", "fpe", "bic"),
    default=("evidence", "model-evidence", "gcv", "loo", "uev", "fpe", "bic"),
    warm=False,
)
