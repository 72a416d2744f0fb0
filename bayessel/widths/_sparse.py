"""What every criterion says of one sparse fit at one width, whichever engine found it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import RBFDictionary
from bayessel.criteria import CRITERIA
from bayessel.criteria.error_estimates import FPE, UEV
from bayessel.criteria.holdout import HOLDOUT
from bayessel.criteria.prequential import PREQUENTIAL
from bayessel.diagnostics import prequential
from bayessel.fit import Status
from bayessel.policy import TIE_NATS
from bayessel.widths._notes import INTERPOLATION, NO_SIGNAL, join_notes
from bayessel.widths._problem import Candidate, WidthProblem, drawn, put_error
from bayessel.widths.curves import DrawnFit

#: criteria of sparse models
SPARSE = tuple(name for name in CRITERIA if name not in (UEV.name, FPE.name, HOLDOUT.name))
#: random orders of the rows behind a prequential code length
_ORDERS = 5


@dataclass(frozen=True, eq=False)
class SparseCase:
    """A fit at one width, and what is needed to judge it.

    Attributes
    ----------
    problem, place : WidthProblem, Candidate
        The data, and the kind and width of the functions.
    fit, without : Fit
        The fit, and that of the constant alone (of nothing without a bias), chosen among as many candidates.
    design
        All candidate columns at the rows.
    engine : callable
        (design, target) -> fit.
    charging : names
        Criteria that charge the fit for its functions and know a model without any.
    """

    problem: WidthProblem
    place: Candidate
    fit: Any
    without: Any
    design: Any
    engine: Callable[[Any, FloatArray], Any]
    charging: Sequence[str]

    def columns(self, X: FloatArray) -> FloatArray:
        """Columns in use at inputs X, (n, k); a search has no bias among its candidates."""
        kernels = self.fit.basis[self.fit.basis < len(self.problem.centres)]
        bias = len(self.fit.basis) > len(kernels)
        if not len(kernels):
            return np.ones((len(X), int(bias)))
        return RBFDictionary(self.problem.centres[kernels], self.place.width, kind=self.place.kind, bias=bias).design(X)


def finished(engine: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """A fit; one that Ctrl-C has cut short is no row of a comparison, which is to end."""
    fit = engine(*arguments, **options)
    if Status.INTERRUPTED in fit.notes:
        raise KeyboardInterrupt
    return fit


def judged(case: SparseCase) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Every criterion asked for, and what describes the fit; the terms of those that are means or sums over rows."""
    problem, fit, gamma = case.problem, case.fit, case.fit.effective_parameters
    silent = {name for name in SPARSE if not CRITERIA[name].has_meaning(fit.n_rows, gamma)}
    values: dict[str, float] = {}
    losses: dict[str, FloatArray] = {}
    wanted = {*problem.criteria, *case.charging} - {PREQUENTIAL.name} - silent
    for criterion in (CRITERIA[name] for name in SPARSE if name in wanted):
        name = criterion.name
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if criterion.terms is None:
                values[name] = criterion.value(fit)
            elif np.isfinite(terms := criterion.terms(fit)).all():
                put_error(values, losses, name, terms)
            else:
                silent.add(name)
    values |= dict.fromkeys(silent, np.nan)
    beside = {note.name: ["fit"] for note in set(fit.notes) - {fit.status, Status.CONVERGED}}
    if unheard := [name for name in problem.criteria if name in silent]:
        beside[INTERPOLATION] = [*beside.get(INTERPOLATION, []), *unheard]
    without = {name: CRITERIA[name].value(case.without) for name in case.charging}
    gains = {name: (values[name] - without[name]) * CRITERIA[name].sign for name in case.charging}
    if none := [name for name, gain in gains.items() if gain <= TIE_NATS]:
        beside[NO_SIGNAL] = none
    if problem.held is not None:
        X, t = problem.held
        put_error(values, losses, HOLDOUT.name, (t - fit.mean(case.columns(X))) ** 2)
    if PREQUENTIAL.name in problem.criteria:
        # the same orders at every width, so that differences are not blurred by them
        coded = prequential(case.design, problem.t, case.engine, orders=_ORDERS, random_state=problem.seed)
        put_error(values, losses, PREQUENTIAL.name, coded.per_order)
    row: dict[str, Any] = {name: values[name] for name in problem.criteria}
    row |= {"gamma": gamma, "noise_std": float(fit.noise_std), "n_basis": fit.message().n_basis}
    return row | {"status": fit.status.name, "notes": join_notes(beside)}, losses


def drawn_sparse(case: SparseCase) -> DrawnFit:
    """The fit at the rows and along a single input, with the columns it uses."""
    fit, rows = case.fit, case.problem.X
    found = drawn(case.problem, lambda X: fit.predict(fit.design if X is rows else case.columns(X)))
    return replace(found, basis=np.asarray(fit.basis), coef=fit.coef, alpha=np.broadcast_to(fit.alpha, fit.coef.shape))
