"""One width under the relevance vector machine: the sparse fit, and what every criterion says about it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._formulas import from_sums
from bayessel.basis import LazyDesign, RBFDictionary
from bayessel.diagnostics._criteria import CRITERIA, INTERPOLATION, NO_SIGNAL
from bayessel.diagnostics._curves import DrawnFit
from bayessel.diagnostics._mdl import mdl_alpha, mdl_w
from bayessel.diagnostics._prequential import prequential
from bayessel.errors import NumericalWarning
from bayessel.fit import Status
from bayessel.linear import fit_rvm
from bayessel.linear.ridge import NOISE_SHARE
from bayessel.widths._problem import Model, Outcome, Place, Problem, join_notes, put_error

#: share of the rows that must be left to the noise: in a fit through every row, whatever the data, log sigma^2 falls,
#: S/(N - gamma) and what leaving out a row shows are ratios of vanishing numbers
_NOISE_SHARE = {"mdl-w": 0.1, "gcv": 0.1, "loo": 0.1, "elpd-loo": 0.1, "bic": NOISE_SHARE["bic"]}
#: designs with more entries are made column by column (240 MB)
_STORED = 30_000_000
#: moves after which a start from a neighbour has shown whether it leads anywhere
_TRIAL = 20
#: an evidence higher by less, in nats, is no improvement
_SAME = 0.01
#: criteria that differ by less, in nats, are equal
_TIE = 1e-6
#: random orders of the rows behind a prequential code length
_ORDERS = 5


def evaluate(problem: Problem, place: Place, starts: Sequence[Any] = (), beaten: float = -np.inf) -> Outcome | None:
    """Fit at one width, from the engine's own starts or from those given, and judge the fit."""
    design = _design(problem, place)
    with warnings.catch_warnings():
        # one warning per width would bury the reader: the statuses are in the table and in the verdict
        warnings.simplefilter("ignore", NumericalWarning)
        if starts:
            trials = [fit_rvm(design, problem.t, init=one, max_steps=_TRIAL) for one in starts if one is not None]
            if not trials:
                return None
            fit = max(trials, key=lambda one: one.log_evidence)
            if not fit.log_evidence > beaten + _SAME:
                return None
            fit = fit_rvm(design, problem.t, init=fit)
        else:
            fit = fit_rvm(design, problem.t)
        row, losses = _judge(problem, place, design, fit)
    # a fit to the last digit of the target says nothing about other functions
    start = None if Status.NOISE_AT_FLOOR in fit.notes else (fit.basis, fit.alpha, fit.beta)
    return Outcome(row, _predict(problem, place, fit), losses, start, float(fit.log_evidence))


def _design(problem: Problem, place: Place) -> Any:
    dictionary = problem.dictionary(place)
    if len(problem.X) * (len(problem.centres) + 1) > _STORED:
        return LazyDesign(dictionary, problem.X)
    return dictionary.design(problem.X)


def _judge(problem: Problem, place: Place, design: Any, fit: Any) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Every criterion asked for, and what describes the fit."""
    n = fit.n_rows
    values = _paid(fit) | {"evidence": float(fit.log_evidence)}
    silent = {name for name, share in _NOISE_SHARE.items() if n - fit.gamma < share * n}
    misfit = float(fit.residuals @ fit.residuals)
    values |= {name: float(from_sums(name, n, misfit, n - fit.gamma)) for name in {"gcv", "bic"} - silent}
    losses: dict[str, FloatArray] = {}
    for name in ("loo", "elpd-loo"):
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
    gains = {name: (values[name] - without[name]) * (1 if CRITERIA[name].higher_is_better else -1) for name in without}
    if none := [name for name, gain in gains.items() if gain <= _TIE]:
        beside[NO_SIGNAL] = none
    if problem.held is not None:
        X, t = problem.held
        mean = fit.predict(_columns(problem, place, fit, X))
        put_error(values, losses, "holdout", (t - mean) ** 2)
    if "prequential" in problem.criteria:
        # the same orders at every width, so that differences are not blurred by them
        coded = prequential(design, problem.t, fit_rvm, orders=_ORDERS, random_state=problem.seed)
        put_error(values, losses, "prequential", coded.per_order)
    row: dict[str, Any] = {name: values[name] for name in problem.criteria}
    row |= {"gamma": float(fit.gamma), "noise_std": float(fit.noise_std), "n_basis": int(fit.n_basis)}
    row |= {"status": fit.status.name}
    return row | {"notes": join_notes(beside)}, losses


def _paid(fit: Any) -> dict[str, float]:
    """Return the criteria that charge a fit for its functions."""
    return {
        "mdl-w": float(mdl_w(fit)),
        "mdl-alpha": float(mdl_alpha(fit)),
        "model-evidence": float(fit.model_evidence),
    }


def _without_functions(problem: Problem, fit: Any) -> Any:
    """Fit the constant alone, or nothing where there is no bias, chosen among as many candidates as `fit` had."""
    column = np.full((len(problem.t), 1), float(problem.bias))
    return replace(fit_rvm(column, problem.t, init="greedy"), n_candidates=fit.n_candidates)


def _left_out(name: str, fit: Any) -> FloatArray:
    """Return the squared errors, or the log densities, of the rows given all others; not finite where none are left."""
    error, variance = fit.loo_residuals, fit.loo_variances
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squares = error**2
        return np.asarray(squares if name == "loo" else -0.5 * (np.log(2 * np.pi * variance) + squares / variance))


def _columns(problem: Problem, place: Place, fit: Any, X: FloatArray) -> FloatArray:
    """Columns in use at inputs X, (n, k)."""
    kernels = fit.basis[fit.basis < len(problem.centres)]
    bias = len(fit.basis) > len(kernels)
    if not len(kernels):
        return np.ones((len(X), int(bias)))
    return RBFDictionary(problem.centres[kernels], place.width, kind=place.kind, bias=bias).design(X)


def _predict(problem: Problem, place: Place, fit: Any) -> DrawnFit:
    mean, std = fit.predict(fit.design, return_std=True)
    grid = grid_mean = grid_std = problem.grid()
    if len(grid):
        grid_mean, grid_std = fit.predict(_columns(problem, place, fit, grid[:, None]), return_std=True)
    return DrawnFit(mean, std, grid, grid_mean, grid_std, np.asarray(fit.basis), fit.coef, fit.alpha)


MODEL = Model(
    evaluate,
    criteria=("mdl-w", "mdl-alpha", "evidence", "model-evidence", "loo", "elpd-loo", "gcv", "bic", "prequential"),
    default=("mdl-w", "mdl-alpha", "evidence", "loo"),
    warm=True,
)
