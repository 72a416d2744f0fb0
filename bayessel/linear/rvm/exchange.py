"""Many candidates at many rows: fits to a sample of both, whose candidates are exchanged for better ones.

A dictionary of N rows and N functions that is made when it is looked at costs N² exponentials for each look. Which
functions are wanted shows on some thousand rows, and among neighbours it hardly matters which is taken. So the search
has a random sample of the candidates; then all of them are asked, once a round and on the sampled rows, what each would
gain, and the best take the places of those that were not used. The last search has all rows, and the best candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._row_weights import RowWeights, some
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.columns.interpolative import skeleton
from bayessel.linear.rvm.form_choice import MOST
from bayessel.linear.rvm.moves import gain_of
from bayessel.linear.rvm.multistart import search, search_from
from bayessel.linear.rvm.problem import RVMProblem, prepared
from bayessel.linear.rvm.state import RVMState
from bayessel.linear.rvm.subsample_start import wanted

#: entries of a dictionary that is made when it is looked at from which candidates are sampled
EXCHANGED = 60_000_000
#: rows that are looked at first; candidates of the first search, and at most of later ones
ROWS, FIRST, LATER = 6_000, 3_000, 1_500
#: entries of the dictionary of the last search, which has all rows
LAST = 64_000_000
#: rounds of exchange, and nats that a round must bring for another
ROUNDS, WORTH = 3, 1.0
#: rounds of exchange with all rows
ROUNDS_OF_ALL = 2
#: candidates beyond those in use that the last search has in any case
LEAST_SPARE = 32
#: entries that are looked at together
BLOCK = 8_000_000


class ColumnSubset:
    """Some columns of a dictionary, at some of its rows."""

    def __init__(self, source: Any, which: IntArray, rows: IntArray | None = None) -> None:
        self._source, self._which, self._rows = source, which, rows
        self.shape = (source.shape[0] if rows is None else len(rows), len(which))
        if hasattr(source, "rows"):
            self.rows = self._some_rows

    def columns(self, indices: Any) -> FloatArray:
        """Columns of these numbers among the subset."""
        if self._rows is None:
            return np.asarray(self._source.columns(self._which[indices]))
        if hasattr(self._source, "rows"):
            return np.asarray(self._source.rows(self._rows, self._which[indices]))
        return np.asarray(self._source.columns(self._which[indices])[self._rows])

    def _some_rows(self, rows: Any, indices: Any) -> FloatArray:
        chosen = rows if self._rows is None else self._rows[rows]
        return np.asarray(self._source.rows(chosen, self._which[indices]))


@dataclass(frozen=True)
class ExchangeStart:
    """Candidates for a search with all rows, and the model to begin with: positions among them, alpha, beta."""

    candidates: IntArray
    basis: IntArray
    alpha: FloatArray
    beta: float


def pays(columns: Columns) -> bool:
    """Whether so many functions, made when they are looked at, are better sampled: no few coordinates describe them."""
    n, p = columns.shape
    return not columns.stored and n * p > EXCHANGED and skeleton(columns, MOST) is None


def exchanged(
    columns: Columns,
    target: FloatArray,
    known: float | None,
    weights: RowWeights | None,
    centre: bool,
    init: str,
    max_steps: int,
    tol: float,
) -> ExchangeStart:
    """Fit to some rows and ever better candidates."""
    n, p = columns.shape
    rng = np.random.default_rng(0)
    # the last is the constant, where there is one
    which = np.union1d(rng.choice(p, min(FIRST, p), replace=False), p - 1)
    rows = np.arange(n) if n <= 2 * ROWS else np.sort(rng.choice(n, ROWS, replace=False))
    sampled = RVMSample(columns, target, known, weights, centre, rows)
    problem = sampled.problem(which)
    state = search(problem, init, max_steps, tol, None)[1]
    which, problem, state = sampled.improved(which, problem, state, LATER, max_steps, tol)
    if len(rows) < n:
        whole = RVMSample(columns, target, known, weights, centre, np.arange(n))
        for turn in range(ROUNDS_OF_ALL):
            basis, alpha, beta = _in_units(problem, which, state)
            if turn:  # what the model of all rows leaves open, on some of them: to ask all takes minutes
                problem, which = sampled.problem(basis), basis
                state = problem.state(np.arange(len(basis)), alpha, beta)
            which = sampled.offered(problem, which, state, _affordable(n, len(basis)), ROUNDS + turn)
            problem = whole.problem(which)
            start = problem.state(np.searchsorted(which, basis), alpha, beta)
            state = search_from(problem, start, max_steps, max(tol, 0.05))[0]
            if not turn and not wanted(problem):  # starts of its own, where they need not be made from some rows again
                state = max(state, search(problem, init, max_steps, tol, None)[1], key=lambda end: end.log_evidence)
    basis, alpha, beta = _in_units(problem, which, state)
    return ExchangeStart(which, np.searchsorted(which, basis), alpha, beta)


def _affordable(n: int, size: int) -> int:
    """Candidates beside a model of so many columns that a search with all rows may have."""
    return int(min(max(LAST // n - size, LEAST_SPARE), FIRST))


def _in_units(problem: RVMProblem, which: IntArray, state: RVMState) -> tuple[IntArray, FloatArray, float]:
    """Columns of the dictionary in use, and precisions in the user's units, in order of the columns."""
    order = np.argsort(state.active)
    active, a = state.active[order], state.a[order]
    alpha = np.exp(a) * (problem.columns.lengths[active] / problem.spread) ** 2
    return which[active], alpha, float(np.exp(state.b) / problem.spread**2)


@dataclass(frozen=True)
class RVMSample:
    """Some rows of the data."""

    columns: Columns
    target: FloatArray
    known: float | None
    weights: RowWeights | None
    centre: bool
    rows: IntArray

    def _some(self, which: IntArray) -> Columns:
        return Columns(ColumnSubset(self.columns.source, which, self.rows))

    def problem(self, which: IntArray) -> RVMProblem:
        """The problem with these columns."""
        weights = some(self.weights, self.rows)
        return RVMProblem.of(self._some(which).store(), self.target[self.rows], self.known, weights, self.centre)

    def offered(self, problem: RVMProblem, which: IntArray, state: RVMState, most: int, turn: int = 0) -> IntArray:
        """The columns in use and at most so many others: half of them those that would gain most, half at random.

        Those that gain most are each other's neighbours; an exchange wants others.
        """
        gains = self.gains(problem, which, state)
        best = np.argsort(-gains, kind="stable")[: most // 2]
        some = np.random.default_rng(turn + 1).choice(len(gains), min(most - most // 2, len(gains)), replace=False)
        return np.union1d(np.union1d(which[state.active], some), best[gains[best] > 0.0])

    def improved(
        self, which: IntArray, problem: RVMProblem, state: RVMState, most: int, max_steps: int, tol: float
    ) -> tuple[IntArray, RVMProblem, RVMState]:
        """Exchange candidates that are not used for better ones, as long as that brings something."""
        for turn in range(ROUNDS):
            basis, alpha, beta = _in_units(problem, which, state)
            offered = self.offered(problem, which, state, most, turn)
            new = self.problem(offered)
            start = new.state(np.searchsorted(offered, basis), alpha, beta)
            end = search_from(new, start, max_steps, max(tol, 0.05))[0]
            if not end.log_evidence > state.log_evidence:
                break
            gained, (which, problem, state) = end.log_evidence - state.log_evidence, (offered, new, end)
            if gained < WORTH:
                break
        return which, problem, state

    def gains(self, problem: RVMProblem, which: IntArray, state: RVMState) -> FloatArray:
        """What each column of the dictionary would gain, beside the model and at its best precision."""
        p = self.columns.shape[1]
        beta, t = float(np.exp(state.b)), problem.t / problem.spread
        F = problem.columns.take(state.active) * state.scale
        residual = t - F @ state.w
        rotated = F @ state.Ri
        gains = np.zeros(p)
        width = max(16, BLOCK // len(t))
        for start in range(0, p, width):
            part = np.arange(start, min(start + width, p))
            block = prepared(self._some(part).store(), problem.weights, self.centre)
            unit = block.take(np.arange(len(part)))
            T = rotated.T @ unit
            S = beta * (block.lengths_squared - np.einsum("ij,ij->j", T, T))
            Q = beta * (residual @ unit)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(S > 1e-9 * beta, Q**2 / S, 1.0)
            gains[part] = gain_of(ratio)
        gains[which[state.active]] = 0.0
        return gains
