"""One width under an explicit search: the few functions the model evidence prefers, and what every criterion says.

Searches end in local optima. Two strategies, with little in common on their way, run at every width. Of all models on
their ways the smallest counts that comes within one nat of the best evidence: the evidence is often flat over the size,
and where it is, the criteria that count functions would jump from width to width.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
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
from bayessel.fit import Status, worst
from bayessel.linear import SearchFit, search
from bayessel.linear.selection import ColumnChoice
from bayessel.linear.selection.assemble import type2_fields
from bayessel.policy import FLAT_NATS, TIE_NATS
from bayessel.widths import _rvm
from bayessel.widths._curves import DrawnFit
from bayessel.widths._notes import INTERPOLATION, NO_SIGNAL, join_notes
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, put_error

STRATEGIES = ("pta(2,1)", "sffs")
#: designs with more entries are made column by column (240 MB)
_STORED = 30_000_000
#: random orders of the rows behind a prequential code length
_ORDERS = 5


def evaluate(
    problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
) -> WidthOutcome | None:
    """Search at one width and judge what was found. There is nothing to start from."""
    dictionary = problem.dictionary(place, bias=False)
    large = len(problem.X) * len(problem.centres) > _STORED
    design = LazyDesign(dictionary, problem.X) if large else dictionary.design(problem.X)
    with warnings.catch_warnings():
        # one warning per width would bury the reader: the statuses are in the table and in the verdict
        warnings.simplefilter("ignore", NumericalWarning)
        fit = _best(design, problem.t, problem.bias)
        row, losses = _judge(problem, place, design, fit)
    return WidthOutcome(row, _predict(problem, place, fit), losses)


def _searched(design: Any, t: FloatArray, **options: Any) -> SearchFit:
    """A search; one that Ctrl-C has cut short is no row of a comparison, which is to end."""
    fit = search(design, t, **options)
    if Status.INTERRUPTED in fit.notes:
        raise KeyboardInterrupt
    return fit


def _best(design: Any, t: FloatArray, centre: bool) -> SearchFit:
    """The smallest model, of all that both strategies came by, whose evidence is within a nat of the best."""
    fits = [_searched(design, t, strategy=strategy, centre=centre, within=0.0) for strategy in STRATEGIES]
    first = max(fits, key=lambda fit: fit.model_evidence if np.isfinite(fit.model_evidence) else -np.inf)
    seen = [(size, -point.value, point.basis) for fit in fits for size, point in fit.path.items()]
    small = min(
        (one for one in seen if one[0] < len(first.basis) and -one[1] >= first.model_evidence - FLAT_NATS), default=None
    )
    if small is None or not small[0]:
        return first
    basis = np.sort(np.array(small[2], dtype=np.intp))
    columns = design.columns(basis) if isinstance(design, LazyDesign) else design[:, basis]
    numbers = type2_fields(columns, t, centre=centre)
    kept = tuple(note for note in first.notes if note is Status.COLLINEAR_SKIPPED)
    notes = (*kept, *numbers.pop("notes"))
    order = np.array(small[2], dtype=np.intp)
    optima = (ColumnChoice(-small[1], small[2]),)
    changed = numbers | {"basis": basis, "order": order, "design": columns, "optima": optima, "notes": notes}
    return replace(first, **changed, status=worst(notes))


def _judge(
    problem: WidthProblem, place: Candidate, design: Any, fit: SearchFit
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Every criterion asked for, and what describes the fit."""
    n, gamma = fit.n_rows, fit.gamma + fit.spectrum.n_flat
    values = {EVIDENCE.name: float(fit.log_evidence), MODEL_EVIDENCE.name: float(fit.model_evidence), **_paid(fit)}
    silent = _rvm.silent_criteria(n, gamma)
    misfit = float(fit.residuals @ fit.residuals)
    values |= {name: float(from_sums(name, n, misfit, n - gamma)) for name in {GCV.name, BIC.name} - silent}
    losses: dict[str, FloatArray] = {}
    for name in (LOO.name, ELPD_LOO.name):
        if name in problem.criteria and name not in silent:
            terms = _rvm._left_out(name, fit)
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
        put_error(values, losses, HOLDOUT.name, (t - fit.mean(_columns(problem, place, fit, X))) ** 2)
    if PREQUENTIAL.name in problem.criteria:
        # the same orders at every width, so that differences are not blurred by them
        one = partial(_searched, strategy=STRATEGIES[0], centre=problem.bias)
        coded = prequential(design, problem.t, one, orders=_ORDERS, random_state=problem.seed)
        put_error(values, losses, PREQUENTIAL.name, coded.per_order)
    row: dict[str, Any] = {name: values[name] for name in problem.criteria}
    row |= {"gamma": float(gamma), "noise_std": float(fit.noise_std), "n_basis": len(fit.basis) + int(problem.bias)}
    return row | {"status": fit.status.name, "notes": join_notes(beside)}, losses


def _paid(fit: SearchFit) -> dict[str, float]:
    """Return the criteria that charge a fit for its functions and know a model without any."""
    return {MDL_W.name: float(mdl_w(fit)), MDL_ALPHA.name: float(mdl_alpha(fit))}


def _without_functions(problem: WidthProblem, fit: SearchFit) -> SearchFit:
    """Fit the constant alone, or nothing where there is no bias, chosen among as many candidates as `fit` had."""
    nothing = np.zeros((len(problem.t), 1))
    return replace(search(nothing, problem.t, centre=problem.bias), n_candidates=fit.n_candidates)


def _columns(problem: WidthProblem, place: Candidate, fit: SearchFit, X: FloatArray) -> FloatArray:
    """Functions in use at inputs X, (n, k)."""
    if not len(fit.basis):
        return np.zeros((len(X), 0))
    return RBFDictionary(problem.centres[fit.basis], place.width, kind=place.kind, bias=False).design(X)


def _predict(problem: WidthProblem, place: Candidate, fit: SearchFit) -> DrawnFit:
    seen = fit.predict(fit.design)
    grid = grid_mean = grid_std = problem.grid()
    if len(grid):
        there = fit.predict(_columns(problem, place, fit, grid[:, None]))
        grid_mean, grid_std = there.mean, there.std
    alpha = np.full(len(fit.basis), fit.alpha)
    return DrawnFit(seen.mean, seen.std, grid, grid_mean, grid_std, np.asarray(fit.basis), fit.coef, alpha)


MODEL = WidthModel(
    evaluate,
    criteria=_rvm.SPARSE,
    default=(MDL_W.name, EVIDENCE.name, MODEL_EVIDENCE.name, LOO.name),
    warm=False,
    refused={UEV.name: "it is the square of the column noise_std, nearly", FPE.name: "GCV asks the same question"},
)
