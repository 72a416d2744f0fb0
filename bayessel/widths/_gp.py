r"""One width under a Gaussian process: its covariance has that width in all directions, the rest is at its mode.

The covariance is :math:`v_0 e^{-d^2/r^2} + a_0 + \sigma^2\delta` (a₀ with a bias), so w = 2/r² of
:math:`e^{-wd^2/2}`; v₀, a₀ and σ² are at the maximum of their posterior density, with the priors of Rasmussen (1996)
for targets of mean absolute deviation 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.covariance import Bias, Covariance, Noise, SquaredExponential
from bayessel.criteria import BIC, CRITERIA, EVIDENCE, FPE, HOLDOUT, LOO, MDL_ALPHA, MDL_W, MODEL_EVIDENCE, UEV
from bayessel.errors import NumericalWarning
from bayessel.estimators.data_units import ProcessInDataUnits
from bayessel.estimators.standardise import Standardisation
from bayessel.fit import fingerprint
from bayessel.gp import fit_map
from bayessel.policy import IMPROVEMENT_NATS, TIE_LAPLACE_NATS
from bayessel.widths._notes import NO_SIGNAL, join_notes
from bayessel.widths._problem import Candidate, WidthModel, WidthOutcome, WidthProblem, put_error
from bayessel.widths.curves import DrawnFit


def evaluate(
    problem: WidthProblem, place: Candidate, starts: Sequence[Any] = (), beaten: float = -np.inf
) -> WidthOutcome | None:
    """Fit at one width, from the engine's own starts or from those given, and judge the fit."""
    units = _units(problem)
    t = units.targets(problem.t)
    covariance: Covariance = SquaredExponential(ard=False)
    covariance = covariance + Bias() + Noise() if problem.bias else covariance + Noise()
    log_w = np.log(2.0) - 2.0 * np.log(place.width)
    given = [one for one in starts if one is not None]
    if starts and not given:
        return None
    with warnings.catch_warnings():
        # one warning per width would bury the reader: the statuses are in the table and in the verdict
        warnings.simplefilter("ignore", NumericalWarning)
        how: dict[str, Any] = {"starts": np.array(given)} if given else {}
        mode = fit_map(problem.X, t, covariance, fixed={"log w": log_w}, random_state=problem.seed, **how)
        if not mode.log_posterior > beaten + IMPROVEMENT_NATS:
            return None
        fit = ProcessInDataUnits(mode, units, fingerprint(problem.X, problem.t), fingerprint(problem.t))
        row, losses = _judge(problem, fit)
    return WidthOutcome(row, _predict(problem, fit), losses, mode.theta, mode.log_posterior)


def _units(problem: WidthProblem) -> Standardisation:
    """Targets as the priors expect them, inputs as they are; without a bias nothing is shifted."""
    shift = float(np.median(problem.t)) if problem.bias else 0.0
    scale = float(np.mean(np.abs(problem.t - shift)))
    return replace(
        Standardisation.none(problem.X.shape[1]), target_shift=shift, target_scale=scale if scale > 0.0 else 1.0
    )


def _judge(problem: WidthProblem, fit: ProcessInDataUnits) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """Every criterion asked for, and what describes the fit, in units of the target."""
    row: dict[str, Any] = {}
    losses: dict[str, FloatArray] = {}
    mode = fit.mode
    for criterion in (CRITERIA[name] for name in problem.criteria):
        if criterion is HOLDOUT and problem.held is not None:
            X, t = problem.held
            put_error(row, losses, HOLDOUT.name, (t - fit.predict(X).mean) ** 2)
        elif criterion.terms is not None:
            put_error(row, losses, criterion.name, criterion.terms(fit))
        else:
            row[criterion.name] = criterion.value(fit)
    beside: dict[str, list[str]] = {note.name: ["fit"] for note in fit.notes if note is not fit.status}
    if MODEL_EVIDENCE.name in row and float(mode.model_evidence) <= _without_function(problem) + TIE_LAPLACE_NATS:
        beside[NO_SIGNAL] = [MODEL_EVIDENCE.name]
    signal = np.exp(0.5 * mode.theta[mode.names.index("log v0")])
    row |= {"gamma": mode.gamma, "noise_std": fit.noise_std, "signal_std": float(fit.units.target_scale * signal)}
    return row | {"status": fit.status.name, "notes": join_notes(beside)}, losses


@lru_cache(maxsize=1)
def _without_function(problem: WidthProblem) -> float:
    """Model evidence of a constant and noise, or of noise alone without a bias: the same at every width."""
    covariance = Bias() + Noise() if problem.bias else Noise()
    return float(fit_map(problem.X, _units(problem).targets(problem.t), covariance, starts=1).model_evidence)


def _predict(problem: WidthProblem, fit: ProcessInDataUnits) -> DrawnFit:
    def at(X: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = fit.predict(X)
        return found.mean, found.std

    grid = grid_mean = grid_std = problem.grid()
    if len(grid):
        grid_mean, grid_std = at(grid[:, None])
    return DrawnFit(*at(problem.X), grid, grid_mean, grid_std)


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
    criteria=tuple(name for name, one in CRITERIA.items() if one.of_one_fit and name not in _REFUSED),
    default=(EVIDENCE.name, MODEL_EVIDENCE.name, LOO.name),
    warm=True,
    refused=_REFUSED,
)
