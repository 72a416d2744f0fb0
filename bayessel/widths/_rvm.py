"""One width under the relevance vector machine: the sparse fit, and what every criterion says about it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import LazyDesign, RBFDictionary
from bayessel.criteria import (
    BIC,
    CRITERIA,
    ELPD_LOO,
    EVIDENCE,
    FPE,
    GCV,
    HOLDOUT,
    LOO,
    MDL_ALPHA,
    MDL_W,
    MODEL_EVIDENCE,
    PREQUENTIAL,
    UEV,
    from_sums,
)
from bayessel.diagnostics import mdl_alpha, mdl_w, prequential
from bayessel.errors import NumericalWarning
from bayessel.fit import Status
from bayessel.linear import RVMFit, fit_rvm
from bayessel.policy import IMPROVEMENT_NATS, TIE_NATS
from bayessel.widths._curves import DrawnFit
from bayessel.widths._notes import INTERPOLATION, NO_SIGNAL, join_notes
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, put_error

#: designs with more entries are made column by column (240 MB)
_STORED = 30_000_000
#: moves after which a start from a neighbour has shown whether it leads anywhere
_TRIAL = 20
#: criteria of sparse models
SPARSE = tuple(name for name in CRITERIA if name not in (UEV.name, FPE.name, HOLDOUT.name))
#: random orders of the rows behind a prequential code length
_ORDERS = 5


def evaluate(
    problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
) -> WidthOutcome | None:
    """Fit at one width, from the engine's own starts or from those given, and judge the fit."""
    design = _design(problem, place)
    with warnings.catch_warnings():
        # one warning per width would bury the reader: the statuses are in the table and in the verdict
        warnings.simplefilter("ignore", NumericalWarning)
        if starts:
            trials = [_fitted(design, problem.t, init=one, max_steps=_TRIAL) for one in starts if one is not None]
            if not trials:
                return None
            fit = max(trials, key=lambda one: one.log_evidence)
            if not fit.log_evidence > beaten + IMPROVEMENT_NATS:
                return None
            fit = _fitted(design, problem.t, init=fit)
        else:
            fit = _fitted(design, problem.t)
        row, losses = _judge(problem, place, design, fit)
    # a fit to the last digit of the target says nothing about other functions
    start = None if Status.NOISE_AT_FLOOR in fit.notes else (fit.basis, fit.alpha, fit.beta)
    return WidthOutcome(row, _predict(problem, place, fit), losses, start, float(fit.log_evidence))


def _fitted(design: Any, t: FloatArray, **options: Any) -> RVMFit:
    """A sparse fit; one that Ctrl-C has cut short is no row of a comparison, which is to end."""
    fit = fit_rvm(design, t, **options)
    if Status.INTERRUPTED in fit.notes:
        raise KeyboardInterrupt
    return fit


def _design(problem: WidthProblem, place: Candidate) -> Any:
    dictionary = problem.dictionary(place)
    if len(problem.X) * (len(problem.centres) + 1) > _STORED:
        return LazyDesign(dictionary, problem.X)
    return dictionary.design(problem.X)


def _judge(
    problem: WidthProblem, place: Candidate, design: Any, fit: Any
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Every criterion asked for, and what describes the fit."""
    n = fit.n_rows
    values = _paid(fit) | {EVIDENCE.name: float(fit.log_evidence)}
    silent = silent_criteria(n, fit.gamma)
    misfit = float(fit.residuals @ fit.residuals)
    values |= {name: float(from_sums(name, n, misfit, n - fit.gamma)) for name in {GCV.name, BIC.name} - silent}
    losses: dict[str, FloatArray] = {}
    for name in (LOO.name, ELPD_LOO.name):
        if name in problem.criteria and name not in silent:
            terms = _left_out(name, fit)
            if np.isfinite(terms).all():
                put_error(values, losses, name, terms)
            else:
                silent.add(name)
    values |= dict.fromkeys(silent, np.nan)
    beside = {note.name: ["fit"] for note in set(fit.notes) - {fit.status, Status.CONVERGED}}
    if heard := [name for name in problem.criteria if name in silent]:
        beside[INTERPOLATION] = [*beside.get(INTERPOLATION, []), *heard]
    without = _paid(_without_functions(problem, fit))
    gains = {name: (values[name] - without[name]) * CRITERIA[name].sign for name in without}
    if none := [name for name, gain in gains.items() if gain <= TIE_NATS]:
        beside[NO_SIGNAL] = none
    if problem.held is not None:
        X, t = problem.held
        mean = fit.mean(_columns(problem, place, fit, X))
        put_error(values, losses, HOLDOUT.name, (t - mean) ** 2)
    if PREQUENTIAL.name in problem.criteria:
        # the same orders at every width, so that differences are not blurred by them
        coded = prequential(design, problem.t, _fitted, orders=_ORDERS, random_state=problem.seed)
        put_error(values, losses, PREQUENTIAL.name, coded.per_order)
    row: dict[str, Any] = {name: values[name] for name in problem.criteria}
    row |= {"gamma": float(fit.gamma), "noise_std": float(fit.noise_std), "n_basis": int(fit.n_basis)}
    row |= {"status": fit.status.name}
    return row | {"notes": join_notes(beside)}, losses


def silent_criteria(n_rows: int, gamma: float) -> set[str]:
    """Return the criteria that say nothing of a fit that leaves so few rows to the noise."""
    return {name for name in SPARSE if not CRITERIA[name].heard(n_rows, gamma)}


def _paid(fit: Any) -> dict[str, float]:
    """Return the criteria that charge a fit for its functions."""
    return {
        MDL_W.name: float(mdl_w(fit)),
        MDL_ALPHA.name: float(mdl_alpha(fit)),
        MODEL_EVIDENCE.name: float(fit.model_evidence),
    }


def _without_functions(problem: WidthProblem, fit: Any) -> Any:
    """Fit the constant alone, or nothing where there is no bias, chosen among as many candidates as `fit` had."""
    column = np.full((len(problem.t), 1), float(problem.bias))
    return replace(fit_rvm(column, problem.t, init="greedy"), n_candidates=fit.n_candidates)


def _left_out(name: str, fit: Any) -> FloatArray:
    """Return the squared errors, or the log densities, of the rows given all others; not finite where none are left."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left_out = fit.leave_one_out()
        return np.asarray(left_out.errors**2 if name == LOO.name else left_out.log_densities)


def _columns(problem: WidthProblem, place: Candidate, fit: Any, X: FloatArray) -> FloatArray:
    """Columns in use at inputs X, (n, k)."""
    kernels = fit.basis[fit.basis < len(problem.centres)]
    bias = len(fit.basis) > len(kernels)
    if not len(kernels):
        return np.ones((len(X), int(bias)))
    return RBFDictionary(problem.centres[kernels], place.width, kind=place.kind, bias=bias).design(X)


def _predict(problem: WidthProblem, place: Candidate, fit: Any) -> DrawnFit:
    seen = fit.predict(fit.design)
    grid = grid_mean = grid_std = problem.grid()
    if len(grid):
        there = fit.predict(_columns(problem, place, fit, grid[:, None]))
        grid_mean, grid_std = there.mean, there.std
    return DrawnFit(seen.mean, seen.std, grid, grid_mean, grid_std, np.asarray(fit.basis), fit.coef, fit.alpha)


MODEL = WidthModel(
    evaluate,
    criteria=SPARSE,
    default=(MDL_W.name, MDL_ALPHA.name, EVIDENCE.name, LOO.name),
    warm=True,
    refused={UEV.name: "it is the square of the column noise_std", FPE.name: "GCV asks the same question"},
)
