"""Ensembles of networks trained with early stopping: mlp-ese, the conventional rival of the Bayesian network.

Each network is trained by conjugate gradients on a random two thirds of the rows. After every line search it is judged
on the other third, and the weights that did best there are kept. Predictions are averages over the networks.
Rasmussen (1996), § 3.6.

A network's path depends on the seed, its number and the plan (how many evaluations it may take and must take), which is
made once and kept. The clock decides how far along that sequence of networks a run comes, never what it meets on it: so
a run that was continued is the run that was never interrupted.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_count, as_float_array, as_generator, as_positive
from bayessel._fingerprint import fingerprint
from bayessel._types import Seed
from bayessel.mlp.architecture import Architecture, hidden_units
from bayessel.mlp.early_stopping_result import EarlyStoppingEnsemble, finish
from bayessel.mlp.targets import as_data
from bayessel.work.interrupts import InterruptGuard

#: one row of three is held out; a network goes on to so many times its best iteration, and for so many at least
HELD_OUT, PAST, LEAST_ITERATIONS = 3, 1.5, 250
#: more hidden units than these are never chosen
MOST_HIDDEN = 250
#: the default budget, seconds per row on a machine that takes so long for a weight of a hidden unit and a row
SECONDS_PER_ROW, SECONDS_PER_WEIGHT = 4e-3, 6e-10
#: standard deviation of the weights at the start: an output near 0 from hidden units that hardly bend; larger weights
#: predict worse
FIRST = 0.01
#: iterations from which the pace is measured; seconds between two looks at the clock
PACE, LOOK = 10, 0.05


class EvaluationBudget(NamedTuple):
    """What a network must take and may take, in evaluations of the gradient."""

    least: float
    most: float


@dataclass
class EarlyStoppingState:
    """Where an ensemble stands: pass it back to go on.

    `finished` are weights and records of networks, `running` number and run of the one that is not.
    """

    fingerprint: str
    kind: str
    hidden: int
    seed: tuple[int, ...]
    plan: EvaluationBudget | None = None
    finished: list[tuple[FloatArray, dict[str, Any]]] = field(default_factory=list)
    running: tuple[int, tuple[FloatArray, ...]] | None = None

    @property
    def present(self) -> tuple[FloatArray, ...] | None:
        """The run of the network that is not finished."""
        # one that was just finished may still stand here, where an interruption came between
        return self.running[1] if self.running is not None and self.running[0] == len(self.finished) else None

    @property
    def evaluations(self) -> int:
        """Evaluations of the gradient so far."""
        return int(sum(record["evaluations"] for _, record in self.finished) + _spent(self.present))


def fit_early_stopping(
    X: npt.ArrayLike,
    t: npt.ArrayLike,
    *,
    hidden: int | str = "auto",
    kind: str = "gaussian",
    time_budget: float | None = None,
    n_networks: tuple[int, int] = (3, 50),
    max_evaluations: int | None = None,
    random_state: Seed = None,
    progress: Callable[[int, int], None] | None = None,
    state: EarlyStoppingState | None = None,
) -> EarlyStoppingEnsemble:
    """Train networks with early stopping until the budget is used, and average them.

    A network stops when its iteration is 1.5 times its best one, but not before 250 iterations and 2 % of the budget;
    when it has converged; or when it has used a third of the budget.

    Parameters
    ----------
    X : (n, D) array
        Inputs; give every column mean 0 and standard deviation 1.
    t : (n,) or (n, K) array
        Targets, standardised too; for ``"logistic"`` zeros and ones, for ``"softmax"`` classes from 0.
    hidden : int or "auto"
        Hidden units; "auto": the fewest with at least as many weights as rows that are trained on, at most 250.
    kind : {"gaussian", "logistic", "softmax"}
        Squared error, or log loss of probabilities.
    time_budget : float, optional
        Seconds. What depends on the budget is then planned from the pace at the beginning and kept in the state.
    n_networks : (least, most)
        Bounds that shares of the budget follow from: a network gets at most 1/least of it and at least 1/most.
    max_evaluations : int, optional
        Budget in evaluations of the gradient instead: the result depends on the seed alone. Without either budget
        there are as many as take about 4 ms per row on a machine of 2025.
    random_state : int, Generator or None
        Seed of splits and first weights; unread with `state`.
    progress : callable, optional
        Called as ``progress(used, budget)`` now and then, in evaluations or milliseconds.
    state : EarlyStoppingState, optional
        Of an earlier ensemble for the same data, to go on with; the budget then counts from there.

    Returns
    -------
    EarlyStoppingEnsemble
        Also after Ctrl-C, once there is anything to give back.

    Notes
    -----
    Distrust it with many inputs of which few matter, and with few rows: nothing tells inputs apart, and a third of the
    rows decides when to stop. `bayessel.models.mlp` does better on both (Rasmussen 1996, § 5.4).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, (120, 1))
    >>> t = np.sin(2 * x[:, 0]) + 0.1 * rng.standard_normal(120)
    >>> ensemble = fit_early_stopping(x, t, max_evaluations=5_000, random_state=0)
    >>> bool(np.sqrt(np.mean((ensemble.predict(x).mean - np.sin(2 * x[:, 0])) ** 2)) < 0.06)
    True
    """
    X, T = as_data(X, t, kind)
    given = as_float_array(t, "t")
    least, most = _bounds(n_networks)
    if time_budget is not None:
        time_budget = as_positive(time_budget, "time_budget")
    if max_evaluations is not None:
        max_evaluations = as_count(max_evaluations, "max_evaluations")
    if time_budget is not None and max_evaluations is not None:
        raise ValueError("the budget is either time_budget or max_evaluations, got both; drop one")
    if state is None:
        trained = len(X) - len(X) // HELD_OUT
        width = hidden_units(hidden, trained, X.shape[1], T.shape[1], 1, MOST_HIDDEN)
        seed = tuple(int(word) for word in as_generator(random_state).integers(2**32, size=4))
        state = EarlyStoppingState(fingerprint(X, T), kind, width, seed)
    else:
        state = _checked(state, fingerprint(X, T), kind, hidden)
    training = _Training(X, T, state, most)
    warm_up()
    start = perf_counter()
    interrupted = training.run(least, time_budget, max_evaluations, progress)
    seconds = perf_counter() - start
    return finish(training.X, training.T, state, training.used(least), least, interrupted, seconds, given)


class _Training:
    """One network after the other."""

    def __init__(self, X: FloatArray, T: FloatArray, state: EarlyStoppingState, most: int) -> None:
        self.X, self.T, self.state, self.most = X, T, state, most
        self.architecture = Architecture(X.shape[1], state.hidden, T.shape[1])

    def run(
        self,
        least: int,
        time_budget: float | None,
        max_evaluations: int | None,
        progress: Callable[[int, int], None] | None,
    ) -> bool:
        """Train until the budget is used; returns whether the user interrupted."""
        from bayessel.mlp import conjugate_gradients as cg

        begin, before = perf_counter(), self.state.evaluations
        if time_budget is None and max_evaluations is None:
            max_evaluations = default_evaluations(self.architecture)
        if max_evaluations is not None and self.state.plan is None:
            self.state.plan = EvaluationBudget(max_evaluations / self.most, max_evaluations / least)
        limit = math.inf if max_evaluations is None else before + max_evaluations
        with InterruptGuard(lambda: self.used(least)) as guard:
            if self.state.plan is None and time_budget is not None:
                self._plan(time_budget, least)
            pace, look_every = PACE, LOOK if time_budget is None else min(LOOK, 0.02 * time_budget)
            while len(self.state.finished) < self.most:
                elapsed, spent = perf_counter() - begin, self.state.evaluations
                if progress is not None:
                    if time_budget is None:
                        progress(spent - before, int(limit - before))
                    else:
                        progress(int(1e3 * elapsed), int(1e3 * time_budget))
                if spent >= limit or (time_budget is not None and elapsed >= time_budget and spent > before):
                    break
                if self._too_late_to_begin(limit - spent, least):
                    break
                run, cases, held_out = self._present()
                look, rule = perf_counter(), self._rule()
                until = limit - spent + run.numbers[cg.EVALUATIONS]
                reason = cg.advance(run, cases, held_out, self.state.hidden, rule, pace, until)
                pace = max(1, min(10_000, int(pace * min(look_every / max(perf_counter() - look, 1e-9), 4.0))))
                if reason != cg.GOING_ON:
                    self._finished(reason)
        return guard.interrupted

    def used(self, least: int) -> list[FloatArray]:
        """Weights of the networks that predict: the one that is not finished only where there are too few."""
        from bayessel.mlp import conjugate_gradients as cg

        weights, present = [one for one, _ in self.state.finished], self.state.present
        if present is not None and len(weights) < least and _spent(present) > 0.0:
            weights.append(cg.Run(*present).best)
        return weights

    def _too_late_to_begin(self, left: float, least: int) -> bool:
        """A network that could not take its least share of the budget is not begun."""
        plan = self.state.plan
        return (
            self.state.present is None and plan is not None and len(self.state.finished) >= least and left < plan.least
        )

    def _rule(self) -> Any:
        from bayessel.mlp import conjugate_gradients as cg

        plan = self.state.plan
        assert plan is not None
        return cg.Rule(PAST, LEAST_ITERATIONS, float(plan.least), float(plan.most))

    def _plan(self, time_budget: float, least: int) -> None:
        """A time budget in evaluations, from how long the first ones take; they are of the first network's path."""
        from bayessel.mlp import conjugate_gradients as cg

        run, cases, held_out = self._present()
        start = perf_counter()
        cg.advance(run, cases, held_out, self.state.hidden, cg.Rule(PAST, PACE, math.inf, math.inf), PACE, math.inf)
        budget = time_budget * run.numbers[cg.EVALUATIONS] / max(perf_counter() - start, 1e-9)
        self.state.plan = EvaluationBudget(budget / self.most, budget / least)

    def _present(self) -> Any:
        """The run of the network at hand, begun if need be, its training rows and those held out."""
        from bayessel.mlp import conjugate_gradients as cg
        from bayessel.mlp.compiled_passes import NUMBERS

        number = len(self.state.finished)
        held_out, trained, rng = split(self.state.seed, number, len(self.X))
        present = self.state.present
        if present is None:
            present = tuple(cg.start(FIRST * rng.standard_normal(self.architecture.size)))
            self.state.running = (number, present)
        kind = NUMBERS[self.state.kind]
        if getattr(self, "_number", None) != number:
            self._number = number
            self._cases = tuple(
                cg.TrainingCases(np.ascontiguousarray(self.X[rows].T), np.ascontiguousarray(self.T[rows].T), kind)
                for rows in (trained, held_out)
            )
        return (cg.Run(*present), *self._cases)

    def _finished(self, reason: int) -> None:
        from bayessel.mlp import conjugate_gradients as cg

        assert self.state.present is not None
        run = cg.Run(*self.state.present)
        record = {
            "iterations": int(run.numbers[cg.ITERATION]),
            "best_iteration": int(run.numbers[cg.BEST_ITERATION]),
            "evaluations": int(run.numbers[cg.EVALUATIONS]),
            "held_out_loss": float(run.numbers[cg.BEST_HELD_OUT]),
            "reason": {cg.PAST_BEST: "past its best", cg.CONVERGED: "converged"}.get(reason, "budget"),
        }
        self.state.finished.append((run.best, record))


def split(
    seed: tuple[int, ...], number: int, n: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], np.random.Generator]:
    """Rows held out and rows trained on by one network, in random order, and its generator from there on."""
    rng = np.random.default_rng([*seed, number])
    order = rng.permutation(n)
    return order[: n // HELD_OUT], order[n // HELD_OUT :], rng


def default_evaluations(architecture: Architecture) -> int:
    """How many gradients of two thirds of the rows take the default budget."""
    per_row = SECONDS_PER_WEIGHT * architecture.hidden * (architecture.inputs + architecture.outputs + 1)
    return max(1, int(SECONDS_PER_ROW / (per_row * (1.0 - 1.0 / HELD_OUT))))


def warm_up() -> None:
    """Compile, outside of any clock."""
    from bayessel.mlp import conjugate_gradients as cg

    none = cg.TrainingCases(np.zeros((1, 1)), np.zeros((1, 1)), 0)
    cg.advance(cg.start(np.zeros(5)), none, none, 1, cg.Rule(PAST, 1, 1.0, 1.0), 1, 1.0)


def _spent(running: tuple[FloatArray, ...] | None) -> float:
    from bayessel.mlp import conjugate_gradients as cg

    return 0.0 if running is None else float(cg.Run(*running).numbers[cg.EVALUATIONS])


def _bounds(n_networks: Any) -> tuple[int, int]:
    if not isinstance(n_networks, tuple | list) or len(n_networks) != 2:
        raise TypeError(f"n_networks must be a pair (least, most), got {n_networks!r}; the usual one is (3, 50)")
    least = as_count(n_networks[0], "n_networks[0]")
    return least, as_count(n_networks[1], "n_networks[1]", minimum=least)


def _checked(state: Any, name: str, kind: str, hidden: int | str) -> EarlyStoppingState:
    """A copy of a state that belongs to this data and these settings."""
    if not isinstance(state, EarlyStoppingState):
        raise TypeError(f"state must be the `state` of an ensemble, got {type(state).__name__}")
    if state.fingerprint != name:
        raise ValueError(
            f"the state is of other data (fingerprint {state.fingerprint}, here {name}): pass the same rows in the "
            "same order and scale, or begin without a state"
        )
    if state.kind != kind or (hidden != "auto" and hidden != state.hidden):
        raise ValueError(
            f"the state is of kind {state.kind!r} with {state.hidden} hidden units, got {kind!r} and {hidden!r}; pass "
            "the same, or begin without a state"
        )
    return copy.deepcopy(state)
