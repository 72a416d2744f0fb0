"""One width of a classifier on radial functions: evidence by Laplace's method, and rows left out by their cavities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.criteria import CRITERIA
from bayessel.criteria.evidence import EVIDENCE
from bayessel.criteria.holdout import HOLDOUT
from bayessel.criteria.leave_one_out import ELPD_LOO, LOO
from bayessel.fit import Status
from bayessel.linear.latent import LatentFit, fit_latent, fit_latent_rvm
from bayessel.prediction import ClassPrediction, Prediction
from bayessel.widths._fit_at_width import FitAtWidth
from bayessel.widths._notes import join_notes
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, drawn, put_error, silent
from bayessel.widths._sparse import finished

#: criteria of labels: probabilities have squared errors (Brier's score) and log densities
OF_LABELS = tuple(name for name in CRITERIA if name in (EVIDENCE.name, ELPD_LOO.name, LOO.name))


def class_codes(y: ArrayLike) -> tuple[FloatArray, str]:
    """Labels (N,) as 0 and 1, and the name of the label that is 1."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be labels (N,) with task='classification', got shape {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y must have a label in every row with task='classification', got missing values; drop them")
    classes, codes = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)
    if len(classes) != 2:
        raise ValueError(
            f"task='classification' compares widths for two classes, got {len(classes)}: {classes[:5].tolist()}; "
            "compare them for each class against the rest, y == label"
        )
    return codes.astype(np.float64), str(classes[1])


def _evaluate(engine: Callable[..., LatentFit]) -> Callable[..., WidthOutcome | None]:
    def evaluate(
        problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
    ) -> WidthOutcome | None:
        """Fit at one width and judge the fit. There is nothing to start from."""
        columns = problem.dictionary(place, bias=False).design
        with silent():
            fit = finished(engine, columns(problem.X), problem.t, bias=problem.bias)
            left_out = fit.leave_one_out()
            values: dict[str, float] = {EVIDENCE.name: float(fit.log_evidence)}
            losses: dict[str, FloatArray] = {}
            put_error(values, losses, LOO.name, left_out.errors**2)
            put_error(values, losses, ELPD_LOO.name, left_out.log_densities)
            if problem.held is not None:
                X, t = problem.held
                put_error(values, losses, HOLDOUT.name, (t - _seen(fit, columns(X)).mean) ** 2)
            found = drawn(problem, lambda X: _seen(fit, columns(X)))
        if engine is fit_latent_rvm:
            found = replace(found, basis=np.asarray(fit.basis), coef=fit.coef, alpha=fit.alpha)
        beside = {note.name: ["fit"] for note in set(fit.notes) - {fit.status, Status.CONVERGED}}
        row: dict[str, Any] = {name: values[name] for name in problem.criteria}
        row |= {"gamma": float(fit.gamma), "n_basis": int(fit.n_basis)}
        row |= {"status": fit.status.name, "notes": join_notes(beside)}
        return WidthOutcome(row, found, {name: losses[name] for name in losses if name in problem.criteria})

    return evaluate


def _fit_at(engine: Callable[..., LatentFit]) -> Callable[[WidthProblem, Candidate], FitAtWidth]:
    def fit_at(problem: WidthProblem, place: Candidate) -> FitAtWidth:
        """The fit at one width."""
        columns = problem.dictionary(place, bias=False).design
        return FitAtWidth(finished(engine, columns(problem.X), problem.t, bias=problem.bias), problem, columns)

    return fit_at


def _seen(fit: LatentFit, design: FloatArray) -> Prediction:
    """Probability of the label 1 with the variance of the label."""
    there = fit.predict(design)
    assert isinstance(there, ClassPrediction)
    p = there.probabilities[:, 1]
    return Prediction.normal(p, np.maximum(p * (1.0 - p), np.finfo(float).tiny))


def _model(engine: Callable[..., LatentFit]) -> WidthModel:
    why = "it is of targets with normal noise, and these are labels"
    refused = {name: why for name in CRITERIA if name not in (*OF_LABELS, HOLDOUT.name)}
    return WidthModel(_evaluate(engine), _fit_at(engine), OF_LABELS, OF_LABELS, warm=False, refused=refused)


#: name of a model in a comparison of labels -> the model
CLASS_MODELS = {"class-evidence": _model(fit_latent), "class-rvm": _model(fit_latent_rvm)}
