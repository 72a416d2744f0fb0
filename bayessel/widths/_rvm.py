"""One width under the relevance vector machine: the sparse fit, and what every criterion says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import RBFDictionary
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W
from bayessel.criteria.error_estimates import FPE, UEV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.leave_one_out import LOO
from bayessel.fit import Status
from bayessel.linear import fit_rvm
from bayessel.policy import IMPROVEMENT_NATS
from bayessel.widths._fit_at_width import FitAtWidth
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, silent
from bayessel.widths._sparse import SPARSE, SparseCase, drawn_sparse, finished, judged

#: moves after which a start from a neighbour has shown whether it leads anywhere
_TRIAL = 20


def evaluate(
    problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
) -> WidthOutcome | None:
    """Fit at one width, from the engine's own starts or from those given, and judge the fit."""
    design = problem.design(place)
    with silent():
        if starts:
            trials = [
                finished(fit_rvm, design, problem.t, init=one, max_steps=_TRIAL) for one in starts if one is not None
            ]
            if not trials:
                return None
            fit = max(trials, key=lambda one: one.log_evidence)
            if not fit.log_evidence > beaten + IMPROVEMENT_NATS:
                return None
            fit = finished(fit_rvm, design, problem.t, init=fit)
        else:
            fit = finished(fit_rvm, design, problem.t)
        case = _case(problem, place, design, fit)
        row, losses = judged(case)
    # a fit to the last digit of the target says nothing about other functions
    start = None if Status.NOISE_AT_FLOOR in fit.notes else (fit.basis, fit.alpha, fit.beta)
    return WidthOutcome(row, drawn_sparse(case), losses, start, float(fit.log_evidence))


def fit_at(problem: WidthProblem, place: Candidate) -> FitAtWidth:
    """The sparse fit at one width."""
    fit = finished(fit_rvm, problem.design(place), problem.t)
    return FitAtWidth(fit, problem, problem.dictionary(place).design)


def declare(problem: WidthProblem, kind: str, width: float | FloatArray, prior: tuple[FloatArray, FloatArray]) -> Any:
    """The PyMC model with a precision for every weight whose width is unknown; the constant is one more function."""
    from bayessel.models import rvm

    dictionary = RBFDictionary(problem.centres, width, kind=kind, bias=problem.bias)
    return rvm(dictionary, problem.t, collapsed=True, X=problem.X, width_prior=prior)


def _case(problem: WidthProblem, place: Candidate, design: Any, fit: Any) -> SparseCase:
    column = np.full((len(problem.t), 1), float(problem.bias))
    without = replace(fit_rvm(column, problem.t, init="greedy"), n_candidates=fit.n_candidates)
    charging = (MDL_W.name, MDL_ALPHA.name, MODEL_EVIDENCE.name)
    return SparseCase(problem, place, fit, without, design, partial(finished, fit_rvm), charging)


MODEL = WidthModel(
    evaluate,
    fit_at,
    criteria=SPARSE,
    default=(MDL_W.name, MDL_ALPHA.name, EVIDENCE.name, LOO.name),
    warm=True,
    refused={UEV.name: "it is the square of the column noise_std", FPE.name: "GCV asks the same question"},
    declare=declare,
)
