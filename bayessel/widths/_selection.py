"""One width under an explicit search: the few functions the model evidence prefers, and what every criterion says.

Searches end in local optima. Two strategies, with little in common on their way, run at every width. Of all models on
their ways the smallest counts that comes within one nat of the best evidence: the evidence is often flat over the size,
and where it is, the criteria that count functions would jump from width to width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import LazyDesign
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W
from bayessel.criteria.error_estimates import FPE, UEV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.leave_one_out import LOO
from bayessel.fit import Status, worst
from bayessel.linear import search
from bayessel.linear.columns.fit import ColumnChoice
from bayessel.linear.selection.result import SearchFit, evidence_fields
from bayessel.policy import FLAT_NATS
from bayessel.widths._fit_at_width import FitAtWidth
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, silent
from bayessel.widths._sparse import SPARSE, SparseCase, drawn_sparse, finished, judged

STRATEGIES = ("pta(2,1)", "sffs")


def evaluate(
    problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
) -> WidthOutcome | None:
    """Search at one width and judge what was found. There is nothing to start from."""
    design = problem.design(place, bias=False)
    with silent():
        fit = _best(design, problem.t, problem.bias)
        case = _case(problem, place, design, fit)
        row, losses = judged(case)
    return WidthOutcome(row, drawn_sparse(case), losses)


def fit_at(problem: WidthProblem, place: Candidate) -> FitAtWidth:
    """The functions selected at one width."""
    fit = _best(problem.design(place, bias=False), problem.t, problem.bias)
    return FitAtWidth(fit, problem, problem.dictionary(place, bias=False).design)


def _best(design: Any, t: FloatArray, centre: bool) -> SearchFit:
    """The smallest model, of all that both strategies came by, whose evidence is within a nat of the best."""
    fits = [finished(search, design, t, strategy=strategy, centre=centre, within=0.0) for strategy in STRATEGIES]
    first = max(fits, key=lambda fit: fit.model_evidence if np.isfinite(fit.model_evidence) else -np.inf)
    seen = [(size, -point.value, point.basis) for fit in fits for size, point in fit.path.items()]
    small = min(
        (one for one in seen if one[0] < len(first.basis) and -one[1] >= first.model_evidence - FLAT_NATS), default=None
    )
    if small is None or not small[0]:
        return first
    basis = np.sort(np.array(small[2], dtype=np.intp))
    columns = design.columns(basis) if isinstance(design, LazyDesign) else design[:, basis]
    numbers = evidence_fields(columns, t, centre)
    kept = tuple(note for note in first.notes if note is Status.COLLINEAR_SKIPPED)
    notes = (*kept, *numbers["evidence_fit"].notes)
    order = np.array(small[2], dtype=np.intp)
    optima = (ColumnChoice(-small[1], small[2]),)
    changed = numbers | {"basis": basis, "order": order, "optima": optima, "notes": notes}
    return replace(first, **changed, status=worst(notes))


def _case(problem: WidthProblem, place: Candidate, design: Any, fit: SearchFit) -> SparseCase:
    nothing = np.zeros((len(problem.t), 1))
    without = replace(search(nothing, problem.t, centre=problem.bias), n_candidates=fit.n_candidates)
    engine = partial(finished, search, strategy=STRATEGIES[0], centre=problem.bias)
    return SparseCase(problem, place, fit, without, design, engine, (MDL_W.name, MDL_ALPHA.name))


MODEL = WidthModel(
    evaluate,
    fit_at,
    criteria=SPARSE,
    default=(MDL_W.name, EVIDENCE.name, MODEL_EVIDENCE.name, LOO.name),
    warm=False,
    refused={UEV.name: "it is the square of the column noise_std, nearly", FPE.name: "GCV asks the same question"},
)
