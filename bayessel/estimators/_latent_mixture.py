r"""Latent processes of several covariances, weighed by rows held out of folds that are fitted anew.

The candidates are a process with a length per input, one with a shared length, a linear function, and a constant.
Leave-one-out at hyperparameters that were fitted to all rows flatters many lengths; folds fitted anew do not, and what
they predict of the rows held out decides the weights (stacking, Yao et al. 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, override

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel.count_prediction import CountPrediction
from bayessel.covariance import Bias, Covariance, Linear, SquaredExponential
from bayessel.estimators import held_out
from bayessel.estimators._around_mode import AroundMode
from bayessel.fit import LeaveOneOut, Status, worst
from bayessel.gp.latent.latent_fit import LatentProcessFit
from bayessel.gp.latent.latent_predictor import mixed
from bayessel.gp.latent.latent_search import fit_latent_process, refit
from bayessel.gp.latent.states import mixed_over_states
from bayessel.likelihoods import Likelihood
from bayessel.prediction import ClassPrediction, Prediction
from bayessel.work.interrupts import InterruptGuard

#: rows that folds are made of at most, and fewest for folds at all
MOST_ROWS, LEAST_ROWS = 600, 10
N_FOLDS = 5
#: parts of less weight are left out, and the constant, whose width is that of all targets together
LEAST_WEIGHT, LEAST_OF_CONSTANT = 0.05, 0.1


@dataclass(frozen=True, eq=False)
class LatentMixture(AroundMode):
    """Parts with weights that sum to one; evidence, optima and lengths are those of the part of most weight.

    Attributes
    ----------
    mode : LatentProcessFit
        The part of most weight.
    parts : tuple of LatentProcessFit
    weights : (K,) array
    status, notes : Status, tuple of Status
    seconds : float
    """

    mode: LatentProcessFit = field(repr=False)
    parts: tuple[LatentProcessFit, ...] = field(repr=False)
    weights: FloatArray
    status: Status
    notes: tuple[Status, ...]
    seconds: float

    @property
    def history(self) -> tuple[Any, ...]:
        """Evaluations of all searches."""
        return tuple(entry for part in self.parts for entry in part.history)

    @property
    def theta(self) -> FloatArray:
        """The mode of that part."""
        return self.mode.theta

    @property
    def relevance(self) -> pd.DataFrame:
        """Lengths of the inputs of that part."""
        return self.mode.relevance

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict, over all parts."""
        return sum(part.n_states for part in self.parts)

    @property
    @override
    def predicts_labels(self) -> bool:
        return self.mode.predicts_labels

    @property
    @override
    def details(self) -> tuple[str, ...]:
        each = ", ".join(
            f"{weight:.2f} {described(part.covariance)}" for part, weight in zip(self.parts, self.weights, strict=True)
        )
        return (f"mixture of {each}",) if len(self.parts) > 1 else ()

    @override
    def predict(self, rows: ArrayLike, offset: ArrayLike = 0.0) -> Prediction | ClassPrediction | CountPrediction:
        """Predictive distributions of targets at new inputs."""
        return mixed([part.predict(rows, offset) for part in self.parts], np.log(self.weights))

    @cached_property
    def _left_out(self) -> LeaveOneOut:
        each = [part.leave_one_out() for part in self.parts]
        if len(each) == 1:
            return each[0]
        densities = np.logaddexp.reduce(
            np.log(self.weights)[:, None] + np.array([one.log_densities for one in each]), axis=0
        )
        if all(one.prediction is not None for one in each):
            whole = mixed([one.prediction for one in each if one.prediction is not None], np.log(self.weights))
            assert isinstance(whole, Prediction)
            return LeaveOneOut.of(whole, self.mode.marginal.t)
        errors = np.tensordot(self.weights, np.array([one.errors for one in each]), axes=1)
        squares = np.tensordot(
            self.weights, np.array([one.variances + (one.errors - errors) ** 2 for one in each]), axes=1
        )
        return LeaveOneOut(errors, squares, densities)

    @override
    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others by its cavities; hyperparameters and weights stay."""
        return self._left_out


def described(covariance: Covariance) -> str:
    """A covariance in a few words."""
    names = {type(part).__name__ for part in getattr(covariance, "terms", (covariance,))}
    if names == {"Bias"}:
        return "constant"
    return "linear" if names == {"Linear", "Bias"} else repr(covariance)


def candidates(covariance: Covariance | None, m: int) -> list[Covariance | None]:
    """Covariances that compete: what was given, or all four; the constant is the last."""
    if covariance is not None:
        return [covariance, Bias()]
    shared = [SquaredExponential(ard=False) + Linear() + Bias()] if m > 1 else []
    return [None, *shared, Linear() + Bias(), Bias()]


def latent_mixture(
    X: FloatArray,
    t: FloatArray,
    likelihood: Likelihood | str,
    covariance: Covariance | None,
    *,
    approximation: str,
    offset: FloatArray | None,
    seed: int,
    mode_alone: bool,
) -> LatentMixture:
    """Fit the candidates, weigh them by folds fitted anew, and mix each over states of its hyperparameters.

    With `mode_alone` the process predicts by its mode, and the folds only say whether it is better than the constant.
    """
    began = perf_counter()
    chosen = candidates(covariance, X.shape[1])
    chosen = [chosen[0], chosen[-1]] if mode_alone else chosen

    def fitted(one: Covariance | None) -> LatentProcessFit:
        return fit_latent_process(X, t, likelihood, one, approximation=approximation, offset=offset, random_state=seed)

    first = fitted(chosen[0])
    weights, notes, parts = np.ones(1), list(first.notes), [first]
    alone = {Status.INTERRUPTED, Status.CONSTANT_TARGET, Status.TOO_FEW_ROWS} & set(first.notes)
    with InterruptGuard() as guard:
        if not alone:
            every = [first, *(fitted(one) for one in chosen[1:])]
            densities = held_out_densities(every)
            if densities is not None:
                weights = held_out.stacking_weights(densities)
                gains = _mixture_density(weights[:-1], densities[:-1]) - densities[-1]
                if held_out.unsure(gains):
                    notes.append(Status.NO_BETTER_THAN_CONSTANT)
                parts = every
        if mode_alone:
            weights, parts = np.ones(1), [first]
        else:
            kept = weights >= LEAST_WEIGHT
            kept[-1] &= len(kept) == 1 or weights[-1] >= LEAST_OF_CONSTANT
            weights = weights[kept] / weights[kept].sum()
            parts = [mixed_over_states(part, seed) for part, use in zip(parts, kept, strict=True) if use]
    if guard.interrupted:
        weights, parts, notes = np.ones(1), [first], [*notes, Status.INTERRUPTED]
    mode = parts[int(np.argmax(weights))]
    return LatentMixture(mode, tuple(parts), weights, worst(notes), tuple(notes), perf_counter() - began)


def _mixture_density(weights: FloatArray, densities: FloatArray) -> FloatArray:
    logs = np.log(weights / weights.sum())[:, None] + densities
    return np.asarray(np.logaddexp.reduce(logs, axis=0))


def held_out_densities(fits: list[LatentProcessFit]) -> FloatArray | None:
    """Log densities of rows held out of folds that each candidate is fitted to anew, (K, N); None with too few rows."""
    marginal = fits[0].marginal
    X, t = marginal.X, marginal.t
    some, rank = held_out.some_rows(X, t[:, None], most=MOST_ROWS)
    if rank.max() + 1 < LEAST_ROWS:
        return None
    offset = getattr(marginal, "offset", None)
    found = np.zeros((len(fits), len(some)))
    fold = rank % N_FOLDS
    for k in range(N_FOLDS):
        held, shown = some[fold == k], some[fold != k]
        if not len(held):
            continue
        for j, fit in enumerate(fits):
            again = refit(fit, shown)
            if Status.INTERRUPTED in again.notes:
                raise KeyboardInterrupt
            found[j, fold == k] = again.predict(X[held], 0.0 if offset is None else offset[held]).log_density(t[held])
    return np.maximum(found, -1e3)
