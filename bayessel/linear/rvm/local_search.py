"""Local search: the best move, the precisions climbed to their joint optimum, and again until no move gains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.rvm.moves import add_gains, delete_gains, exchange_couplings
from bayessel.linear.rvm.newton import ascend
from bayessel.linear.rvm.starts import AHEAD
from bayessel.linear.rvm.state import DictionaryForm, RVMScores, RVMState
from bayessel.work.interrupts import InterruptGuard

#: moves that promised a gain and gave none before a search gives up
PATIENCE = 6
#: gain, per candidate, for which a function is exchanged; neighbours on a fine grid offer hundreds of smaller ones
LEAST_EXCHANGE = 5e-8
#: functions in the model for each move that is made together with others
TOGETHER = 12


@dataclass
class RVMSearch:
    """What a search was told and what it did."""

    learn_noise: bool
    b_max: float
    moves_left: int
    history: list[dict[str, Any]] = field(default_factory=list)
    collinear: bool = False
    broken_promise: bool = False
    interpolation: bool = False
    finished: bool = False
    interrupted: bool = False

    def note(self, action: str, state: RVMState) -> None:
        """Remember a step."""
        self.history.append({"action": action, "log_evidence": state.log_evidence, "n_basis": state.size, "b": state.b})


@dataclass(frozen=True)
class Move:
    """A change of the model: the candidate `entrant` comes in, the column at position `leaver` (-1: none) goes."""

    gain: float
    leaver: int
    entrant: int
    a: float

    @property
    def action(self) -> str:
        """Name of the change."""
        return "add" if self.leaver < 0 else "swap"


def climb(form: DictionaryForm, state: RVMState, search: RVMSearch, *, tol: float) -> RVMState:
    """Move until nothing gains more than `tol` (an exchange: a little more); the evidence never decreases.

    Ctrl-C ends it where it is, and `search` says so.
    """
    with InterruptGuard() as guard:
        state = ascend(form, state, learn_noise=search.learn_noise, tol=0.1 * tol, b_max=search.b_max)
        search.note("climb", state)
        for better in _moved(form, state, search, tol):
            state = better
        state = ascend(form, state, learn_noise=search.learn_noise, tol=1e-3 * tol, b_max=search.b_max)
        search.note("climb", state)
    search.interrupted |= guard.interrupted
    return state


def _moved(form: DictionaryForm, state: RVMState, search: RVMSearch, tol: float) -> Iterator[RVMState]:
    """States that one move after the other leads to, each better than the last."""
    banned: set[tuple[int, int]] = set()
    failures = 0
    while search.moves_left > 0:
        scores = form.score(state)
        moves = _moves(form, state, scores, banned)
        if not moves or not moves[0].gain > tol:
            search.broken_promise = False
            search.collinear |= bool(np.delete(scores.collinear, state.active).any())
            break
        # several at once where they are strangers to each other; what does not keep its promise is done one by one
        new = _try(form, state, moves, search, tol)
        if len(moves) > 1 and not new.log_evidence > state.log_evidence + moves[0].gain:
            new = _try(form, state, moves[:1], search, tol)
        search.moves_left -= 1
        # a move in a fragile place may promise more than it gives: only what is measured counts
        if new.log_evidence > state.log_evidence + 0.3 * tol:
            state = new
            failures = 0
            banned.clear()
            search.note("+".join(move.action for move in moves), state)
            yield state
        else:
            failures += 1
            leaver = moves[0].leaver
            banned.add((int(state.active[leaver]) if leaver >= 0 else -1, moves[0].entrant))
            if failures >= PATIENCE:
                search.broken_promise = moves[0].gain > 0.01
                break


def _try(form: DictionaryForm, state: RVMState, moves: list[Move], search: RVMSearch, tol: float) -> RVMState:
    stay = np.ones(state.size, dtype=bool)
    stay[[move.leaver for move in moves if move.leaver >= 0]] = False
    active = np.append(state.active[stay], [move.entrant for move in moves])
    a = np.append(state.a[stay], [move.a for move in moves])
    new = form.solve(active, a, state.b)
    return ascend(form, new, learn_noise=search.learn_noise, steps=6, tol=0.1 * tol, b_max=search.b_max)


def _moves(form: DictionaryForm, state: RVMState, scores: RVMScores, banned: set[tuple[int, int]]) -> list[Move]:
    """The best move, and others worth a third of it that concern other columns and unlike candidates."""
    gains: FloatArray = add_gains(state, scores)
    leaver = np.full(len(gains), -1)
    for who, entrant in banned:
        if who < 0:
            gains[entrant] = -np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        a = 2.0 * np.log(scores.S) - np.log(scores.Q**2 - scores.S)
    if state.size:
        from bayessel.linear.rvm.compiled_exchanges import best_exchanges

        couplings, pull = exchange_couplings(state, scores)
        for who, entrant in banned:
            couplings[state.active == who, entrant] = np.nan
        closed = scores.collinear.copy()
        closed[state.active] = True
        floor = np.maximum(gains, LEAST_EXCHANGE * len(gains))
        best, leaver, entering = best_exchanges(couplings, scores.S, scores.Q, pull, delete_gains(state), closed, floor)
        better = leaver >= 0
        gains, a = np.where(better, best, gains), np.where(better, entering, a)
    most = max(1, state.size // TOGETHER)
    ahead = min(max(10 * most, AHEAD), len(gains))
    order = np.argpartition(-gains, ahead - 1)[:ahead]
    order = order[np.argsort(-gains[order])]
    if gains[order[0]] > 0.0:
        form.prefetch(order[:AHEAD][gains[order[:AHEAD]] > 0.0])
    moves: list[Move] = []
    chosen: list[tuple[FloatArray, FloatArray, float]] = []
    for e in order:
        gain = float(gains[e])
        if not np.isfinite(gain) or (moves and gain < moves[0].gain / 3.0) or len(moves) == most:
            break
        if moves and leaver[e] >= 0 and any(move.leaver == leaver[e] for move in moves):
            continue
        if most > 1:
            # coupling phi_m^T C^-1 phi_e of two candidates, as a share of sqrt(S_m S_e)
            vector, through = form.vector(int(e)), scores.T[:, e]
            own = float(vector @ vector - through @ through)
            if any(
                abs(float(vector @ other - through @ beyond)) > 0.3 * np.sqrt(max(own * size, 0.0))
                for other, beyond, size in chosen
            ):
                continue
            chosen.append((vector, through, own))
        moves.append(Move(gain, int(leaver[e]), int(e), float(a[e])))
    return moves
