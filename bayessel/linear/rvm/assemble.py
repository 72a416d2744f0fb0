"""From the end of a search to a result: the precisions polished in the columns' own coordinates, evaluated exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.fit import Evidence, Status, worst
from bayessel.linear.columns.fit import ColumnChoice
from bayessel.linear.rvm.duplicate_columns import merged
from bayessel.linear.rvm.form_choice import thin
from bayessel.linear.rvm.local_search import RVMSearch
from bayessel.linear.rvm.newton import ascend
from bayessel.linear.rvm.problem import RVMProblem
from bayessel.linear.rvm.reported_evidence import evaluate
from bayessel.linear.rvm.result import RVMFit
from bayessel.linear.rvm.state import RVMState
from bayessel.linear.rvm.third_level import interpolates, model_evidence
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.weight_posterior import Posterior
from bayessel.policy import RIVAL_NATS

#: how far the cosine of two columns that are called the same may be from one: rounding
SAME = 1e-13
#: nats by which columns that are called the same must be better as two to stay two
LEAST_DIFFERENCE = 1e-6
#: beta/alpha (for a column of unit length) beyond which digits are lost
FRAGILE = 1e16


def polish(problem: RVMProblem, state: RVMState, search: RVMSearch) -> tuple[IntArray, RVMState]:
    """Climb in coordinates made for these columns alone, exact to rounding; returns the columns kept, in order."""
    order = np.argsort(state.active)
    basis, a = state.active[order], state.a[order]
    columns = problem.columns.take(basis)

    def climbed(which: IntArray, a: FloatArray) -> RVMState:
        form = thin(columns[:, which], problem.t / problem.spread, problem.n_rows)
        own = form.solve(np.arange(len(which)), a, state.b)
        return ascend(form, own, learn_noise=problem.learn_noise, steps=20, tol=1e-9, b_max=problem.b_max)

    kept, together = merged(columns, a, 1.0 - SAME)
    if len(kept) < len(a):
        search.collinear = True
        order = np.argsort(kept)
        kept, together = kept[order], together[order]
        as_one, apart = climbed(kept, together), climbed(np.arange(len(a)), a)
        # copies are one function; but neighbours of which the model needs the difference, a derivative, are two
        if not as_one.log_evidence < apart.log_evidence - LEAST_DIFFERENCE:
            return basis[kept[as_one.active]], as_one
        return basis[apart.active], apart
    own = climbed(np.arange(len(a)), a)
    return basis[own.active], own


def finish(
    problem: RVMProblem,
    basis: IntArray,
    own: RVMState,
    search: RVMSearch,
    start: str,
    reached: Mapping[str, RVMState],
    name: str,
) -> RVMFit:
    """Back to the user's units; `reached` says where each start led, `name` names the data."""
    p = problem.columns.shape[1]
    with np.errstate(over="ignore", under="ignore"):
        alpha = np.exp(own.a) * (problem.columns.lengths[basis] / problem.spread) ** 2
    if not ((alpha > 0.0) & np.isfinite(alpha)).all():
        raise ValueError("sizes of Phi and t are so far apart that precisions leave double precision; rescale one")
    beta = float(np.exp(own.b) / problem.spread**2) if problem.beta is None else problem.beta
    notes = _remarks(problem, own, search)
    rivals = {
        frozenset(end.active.tolist()) for end in reached.values() if end.log_evidence > own.log_evidence - RIVAL_NATS
    }
    if len(rivals) > 1 and {Status.NOISE_AT_FLOOR, Status.ILL_CONDITIONED} & set(notes):
        notes.append(Status.MULTIPLE_OPTIMA)  # in a place so fragile rounding decides between them
    problem.columns.release()  # the largest array by far, and the last time it was needed
    design, target = problem.given.raw(basis), problem.target
    factored = Spectrum.weighed(design, target, alpha / beta, centre=problem.centre, rows=True, weights=problem.weights)
    posterior = Posterior.of(factored, 1.0, beta)
    value, coef = evaluate(design, target, alpha, beta, posterior)
    steps = [
        {
            "start": start,
            "action": step["action"],
            "log_evidence": step["log_evidence"] + problem.shift,
            "n_basis": step["n_basis"],
            "noise_std": float(np.exp(-0.5 * step["b"]) * problem.spread),
        }
        for step in search.history
    ]
    if not problem.learn_noise:
        # in a fragile system the search's own number may be too high by its rounding; the exact one bounds it
        for step in steps:
            step["log_evidence"] = min(step["log_evidence"], value)
    last = {"start": start, "action": "polish", "log_evidence": value, "n_basis": len(basis)}
    return RVMFit(
        evidence=Evidence(
            value, "type2", maximised=("alpha", "beta")[: 1 + problem.learn_noise], integrated=posterior.integrated
        ),
        model_evidence=model_evidence(own, problem.n_rows, value),
        basis=basis,
        alpha=alpha,
        coef=coef,
        n_candidates=p,
        status=worst(notes),
        notes=tuple(notes),
        history=(*steps, {**last, "noise_std": beta**-0.5}),
        optima=_optima(problem, ColumnChoice(value, tuple(basis.tolist())), reached),
        starts={start: end.log_evidence + problem.shift for start, end in reached.items()},
        seconds=np.nan,
        fingerprint=name,
        design=design,
        target=target,
        posterior=posterior,
    )


def of_all_candidates(fit: RVMFit, candidates: IntArray, n_candidates: int) -> RVMFit:
    """The fit in numbers of all columns, of which the last search had some, with a note that says so."""
    optima = tuple(ColumnChoice(choice.value, tuple(candidates[list(choice.basis)].tolist())) for choice in fit.optima)
    notes = (*fit.notes, Status.SAMPLED_CANDIDATES)
    return replace(
        fit,
        basis=candidates[fit.basis],
        optima=optima,
        n_candidates=n_candidates,
        notes=notes,
        status=worst(notes),
    )


def _optima(problem: RVMProblem, best: ColumnChoice, reached: Mapping[str, RVMState]) -> tuple[ColumnChoice, ...]:
    """The model that is returned, then the other models that starts led to, highest evidence first."""
    found = {frozenset(best.basis): best}
    for end in sorted(reached.values(), key=lambda end: -end.log_evidence):
        choice = ColumnChoice(end.log_evidence + problem.shift, tuple(np.sort(end.active).tolist()))
        found.setdefault(frozenset(choice.basis), choice)
    return tuple(found.values())


def _remarks(problem: RVMProblem, own: RVMState, search: RVMSearch) -> list[Status]:
    n, notes = problem.n_rows, list[Status]()
    if n < 3:
        notes.append(Status.TOO_FEW_ROWS)
    elif problem.constant_target:
        notes.append(Status.CONSTANT_TARGET)
    if search.moves_left <= 0 and not search.finished:
        notes.append(Status.STEP_LIMIT)
    if search.collinear:
        notes.append(Status.COLLINEAR_SKIPPED)
    if search.interpolation:
        notes.append(Status.INTERPOLATION)
    if problem.learn_noise and (own.b >= problem.b_max - 1e-6 or (own.size and interpolates(own, n))):
        notes.append(Status.NOISE_AT_FLOOR)
    if problem.learn_noise and own.size and n >= 3 and not problem.constant_target:
        third = model_evidence(own, n, own.log_evidence)
        if any(third < model_evidence(null, n, null.log_evidence) for null in _nulls(problem)):
            notes.append(Status.DOUBTFUL_SIGNAL)
    if (own.size and float((own.scale**2).max()) > FRAGILE) or search.broken_promise:
        notes.append(Status.ILL_CONDITIONED)
    if not own.size and not problem.constant_target and n >= 3:
        notes.append(Status.PURE_NOISE)
    if search.interrupted:
        notes.append(Status.INTERRUPTED)
    return notes


def _nulls(problem: RVMProblem) -> list[RVMState]:
    """Return the models without functions: noise alone, and a constant with noise if the dictionary has one."""
    nulls = []
    constant = problem.constant
    for which in [[], [constant]] if constant is not None else [[]]:
        columns = problem.columns.take(np.array(which, dtype=np.intp))
        form = thin(columns, problem.t / problem.spread, problem.n_rows)
        start = form.solve(np.arange(len(which)), np.zeros(len(which)), 0.0)
        nulls.append(ascend(form, start, steps=50, b_max=problem.b_max))
    return nulls
