"""One width under the model with one weight precision: a single decomposition, every criterion from it.

The evidence is maximised over alpha and beta; every other criterion is minimised over its own ridge parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import RBFDictionary
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W
from bayessel.criteria.error_estimates import GCV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.holdout import HOLDOUT
from bayessel.criteria.leave_one_out import LOO
from bayessel.criteria.registry import OF_RIDGE
from bayessel.fit import Status
from bayessel.linear import LinearFit, Spectrum, fit_evidence
from bayessel.linear.ridge import ridge_minimum
from bayessel.linear.third_level import model_evidence_quadrature
from bayessel.widths._fit_at_width import FitAtWidth
from bayessel.widths._notes import INTERPOLATION, QUADRATURE, UNDETERMINED, join_notes
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, drawn, put_error, silent

#: minimised over the ridge parameter without a bound that the fit through every row would set
_WITHOUT_END = (GCV.name, LOO.name)


def evaluate(
    problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
) -> WidthOutcome | None:
    """Decompose the design at one width and read every criterion off it. There is nothing to start from."""
    criteria = problem.criteria
    dictionary = problem.dictionary(place, bias=False)
    spectrum = Spectrum.of(dictionary.design(problem.X), problem.t, centre=problem.bias, rows=LOO.name in criteria)
    values: dict[str, float] = {}
    lams: dict[str, float] = {}
    losses: dict[str, FloatArray] = {}
    beside: dict[str, list[str]] = {}
    with silent():
        fit = fit_evidence(spectrum)
        for status in set(fit.notes) - {fit.status}:
            beside.setdefault(status.name, []).append(EVIDENCE.name)
        for name in (name for name in criteria if name in OF_RIDGE):
            values[name], lams[f"lam_{name}"], notes, left_out = _ridge_minimum(spectrum, name)
            if name == LOO.name and left_out is not None:
                losses[name] = left_out**2
            for note in notes:
                beside.setdefault(note, []).append(name)
        if MODEL_EVIDENCE.name in criteria:
            values[MODEL_EVIDENCE.name], notes = _third_level(spectrum, fit)
            for note in notes:
                beside.setdefault(note, []).append(MODEL_EVIDENCE.name)
        if problem.held is not None:
            X, t = problem.held
            put_error(values, losses, HOLDOUT.name, (t - fit.predict(dictionary.design(X)).mean) ** 2)
        prediction = drawn(problem, lambda X: fit.predict(dictionary.design(X)))
    values[EVIDENCE.name] = float(fit.log_evidence)
    row: dict[str, Any] = {name: values[name] for name in criteria}
    row |= {"gamma": float(fit.gamma), "noise_std": float(fit.noise_std), "lam": float(fit.lam), **lams}
    row |= {"n_basis": int(fit.n_basis), "status": fit.status.name, "notes": join_notes(beside)}
    return WidthOutcome(row, prediction, losses)


def fit_at(problem: WidthProblem, place: Candidate) -> FitAtWidth:
    """The evidence fit at one width."""
    dictionary = problem.dictionary(place, bias=False)
    fit = fit_evidence(dictionary.design(problem.X), problem.t, centre=problem.bias)
    return FitAtWidth(fit, problem, dictionary.design)


def declare(problem: WidthProblem, kind: str, width: float | FloatArray, prior: tuple[FloatArray, FloatArray]) -> Any:
    """The PyMC model with one weight precision whose width is unknown; the constant has an all but flat prior."""
    from bayessel.models import linear

    dictionary = RBFDictionary(problem.centres, width, kind=kind, bias=False)
    return linear(dictionary, problem.t, collapsed=True, bias=problem.bias, X=problem.X, width_prior=prior)


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


def _ridge_minimum(spectrum: Spectrum, name: str) -> tuple[float, float, set[str], FloatArray | None]:
    """Smallest value of a criterion over lambda, the lambda, what to be wary of, and errors of rows left out.

    UEV, FPE and BIC fall to zero as the fit comes to pass through every row, whatever the data: where they have no
    minimum that leaves rows enough to the noise they say nothing about a width, and NaN stands for that. GCV and LOO
    have no such end.
    """
    found = ridge_minimum(spectrum, name)
    if name not in _WITHOUT_END and not found.leaves_noise:
        return float("nan"), float("nan"), {INTERPOLATION}, None
    notes = set(found.notes) - {Status.CONVERGED}
    left_out = found.loo_residuals if np.isfinite(found.lam) else None
    return found.value, found.lam, {note.name for note in notes}, left_out


_CRITERIA = tuple(name for name in CRITERIA if name in (EVIDENCE.name, MODEL_EVIDENCE.name, *OF_RIDGE))
_KEEPS_ALL = "it counts the functions a sparse model keeps, and this one keeps all"

MODEL = WidthModel(
    evaluate,
    fit_at,
    criteria=_CRITERIA,
    default=_CRITERIA,
    warm=False,
    refused={MDL_W.name: _KEEPS_ALL, MDL_ALPHA.name: _KEEPS_ALL},
    declare=declare,
)
