r"""One width under a Gaussian process: its covariance has that width in all directions, the rest is at its mode.

The covariance is :math:`v_0 e^{-d^2/r^2} + a_0 + \sigma^2\delta` (a₀ with a bias), so w = 2/r² of
:math:`e^{-wd^2/2}`; v₀, a₀ and σ² are at the maximum of their posterior density, with the priors of Rasmussen (1996)
for targets of mean absolute deviation 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance import Bias, Covariance, Noise, SquaredExponential
from bayessel.criteria import CRITERIA, Criterion
from bayessel.criteria.description_length import MDL_ALPHA, MDL_W
from bayessel.criteria.error_estimates import BIC, FPE, UEV
from bayessel.criteria.evidence import EVIDENCE, MODEL_EVIDENCE
from bayessel.criteria.holdout import HOLDOUT
from bayessel.criteria.leave_one_out import LOO
from bayessel.gp import fit_map
from bayessel.gp.map_result import GPFit
from bayessel.policy import IMPROVEMENT_NATS, TIE_LAPLACE_NATS
from bayessel.widths._fit_at_width import FitAtWidth
from bayessel.widths._notes import NO_SIGNAL, join_notes
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, drawn, put_error, silent


def evaluate(
    problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
) -> WidthOutcome | None:
    """Fit at one width, from the engine's own starts or from those given, and judge the fit."""
    shift, scale = _units(problem)
    given = [one for one in starts if one is not None]
    if starts and not given:
        return None
    with silent():
        fit = _fit(problem, place, shift, scale, given)
        if not fit.log_posterior > beaten + IMPROVEMENT_NATS:
            return None
        row, losses = _judge(problem, fit, shift, scale)
    prediction = drawn(problem, lambda X: fit.predict(X).scaled(shift, scale))
    return WidthOutcome(row, prediction, losses, fit.theta, fit.log_posterior)


def fit_at(problem: WidthProblem, place: Candidate) -> FitAtWidth:
    """The process at one width."""
    shift, scale = _units(problem)
    return FitAtWidth(_fit(problem, place, shift, scale), problem, _inputs, shift, scale)


def _inputs(X: FloatArray) -> FloatArray:
    return X


def _fit(problem: WidthProblem, place: Candidate, shift: float, scale: float, starts: Sequence[Any] = ()) -> GPFit:
    covariance: Covariance = SquaredExponential(ard=False)
    covariance = covariance + Bias() + Noise() if problem.bias else covariance + Noise()
    log_w = np.log(2.0) - 2.0 * np.log(place.width)
    how: dict[str, Any] = {"starts": np.array(starts)} if len(starts) else {}
    t = (problem.t - shift) / scale
    return fit_map(problem.X, t, covariance, fixed={"log w": log_w}, random_state=problem.seed, **how)


def _units(problem: WidthProblem) -> tuple[float, float]:
    """Shift and scale of the targets, for which the priors are made; without a bias nothing is shifted."""
    shift = float(np.median(problem.t)) if problem.bias else 0.0
    scale = float(np.mean(np.abs(problem.t - shift)))
    return shift, scale if scale > 0.0 else 1.0


def _judge(
    problem: WidthProblem, fit: GPFit, shift: float, scale: float
) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Every criterion asked for, and what describes the fit, in units of the target."""
    row: dict[str, Any] = {}
    losses: dict[str, FloatArray] = {}
    for criterion in (CRITERIA[name] for name in problem.criteria):
        if criterion is HOLDOUT and problem.held is not None:
            X, t = problem.held
            put_error(row, losses, HOLDOUT.name, (t - shift - scale * fit.predict(X).mean) ** 2)
        elif criterion.terms is not None:
            put_error(row, losses, criterion.name, _in_units(criterion, criterion.terms(fit), 1, scale))
        else:
            row[criterion.name] = float(_in_units(criterion, criterion.value(fit), fit.n_rows, scale))
    beside: dict[str, list[str]] = {note.name: ["fit"] for note in fit.notes if note is not fit.status}
    if MODEL_EVIDENCE.name in row:
        without = _without_function(problem, shift, scale)
        if float(fit.model_evidence) <= without + TIE_LAPLACE_NATS:
            beside[NO_SIGNAL] = [MODEL_EVIDENCE.name]
    signal = np.exp(0.5 * fit.theta[fit.names.index("log v0")])
    row |= {"gamma": fit.gamma, "noise_std": scale * fit.noise_std, "signal_std": float(scale * signal)}
    return row | {"status": fit.status.name, "notes": join_notes(beside)}, losses


def _in_units(criterion: Criterion, value: Any, rows: int, scale: float) -> Any:
    """What a criterion says of so many rows, in units of the target: a density of y is one of t over the scale."""
    return value - rows * np.log(scale) if criterion.in_nats else scale**2 * value


@lru_cache(maxsize=1)
def _without_function(problem: WidthProblem, shift: float, scale: float) -> float:
    """Model evidence of a constant and noise, or of noise alone without a bias: the same at every width."""
    covariance = Bias() + Noise() if problem.bias else Noise()
    return float(fit_map(problem.X, (problem.t - shift) / scale, covariance, starts=1).model_evidence)


_NONE_TO_COUNT = "a Gaussian process has no functions to count"
_ASKED_BY_GCV = "GCV asks the same question"
_REFUSED = {
    MDL_W.name: _NONE_TO_COUNT,
    MDL_ALPHA.name: _NONE_TO_COUNT,
    UEV.name: _ASKED_BY_GCV,
    FPE.name: _ASKED_BY_GCV,
    BIC.name: _ASKED_BY_GCV,
}

MODEL = WidthModel(
    evaluate,
    fit_at,
    criteria=tuple(name for name, one in CRITERIA.items() if one.of_one_fit and name not in _REFUSED),
    default=(EVIDENCE.name, MODEL_EVIDENCE.name, LOO.name),
    warm=True,
    refused=_REFUSED,
)
