"""Local search: the best move, the precisions climbed to their joint optimum, and again until no move gains."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.sparse.moves import add_gains, swap_gains
from bayessel.linear.sparse.newton import ascend
from bayessel.linear.sparse.state import Form, Scores, State

#: moves that promised a gain and gave none before a search gives up
PATIENCE = 6
#: gain, per candidate, for which a function is exchanged; neighbours on a fine grid offer hundreds of smaller ones
LEAST_EXCHANGE = 5e-8


@dataclass
class Search:
    """What a search was told and what it did."""

    learn_noise: bool
    b_max: float
    moves_left: int
    history: list[dict[str, Any]] = field(default_factory=list)
    collinear: bool = False
    broken_promise: bool = False

    def note(self, action: str, state: State) -> None:
        """Remember a step."""
        self.history.append({"action": action, "log_evidence": state.log_evidence, "n_basis": state.size, "b": state.b})


def climb(form: Form, state: State, search: Search, *, tol: float, swaps: bool = True) -> State:
    """Move until nothing gains more than `tol` (an exchange: a little more); the evidence never decreases."""
    state = ascend(form, state, learn_noise=search.learn_noise, b_max=search.b_max)
    search.note("climb", state)
    banned: set[tuple[int, int]] = set()
    failures = 0
    while search.moves_left > 0:
        scores = form.score(state)
        action, gain, leaver, entrant, a = _best(state, scores, banned, swaps)
        if not gain > tol:
            search.broken_promise = False
            search.collinear |= bool(np.delete(scores.collinear, state.active).any())
            break
        search.moves_left -= 1
        active, precisions = state.active, state.a
        if leaver >= 0:
            stay = np.arange(state.size) != leaver
            active, precisions = active[stay], precisions[stay]
        new = form.solve(np.append(active, entrant), np.append(precisions, a), state.b)
        # a move in a fragile place may promise more than it gives: only what is measured counts
        new = ascend(form, new, learn_noise=search.learn_noise, steps=6, tol=0.1 * tol, b_max=search.b_max)
        if new.log_evidence > state.log_evidence + 0.3 * tol:
            state = new
            failures = 0
            banned.clear()
            search.note(action, state)
        else:
            failures += 1
            banned.add((int(state.active[leaver]) if leaver >= 0 else -1, entrant))
            if failures >= PATIENCE:
                search.broken_promise = gain > 0.01
                break
    state = ascend(form, state, learn_noise=search.learn_noise, tol=1e-9, b_max=search.b_max)
    search.note("climb", state)
    return state


def _best(
    state: State, scores: Scores, banned: set[tuple[int, int]], swaps: bool
) -> tuple[str, float, int, int, float]:
    """(action, gain, position of the leaver or -1, entrant, log precision of the entrant) of the best move."""
    gains: FloatArray = add_gains(state, scores)
    for leaver, entrant in banned:
        if leaver < 0:
            gains[entrant] = -np.inf
    m = int(np.argmax(gains))
    best = ("add", float(gains[m]), -1, m, 0.0)
    if swaps and state.size:
        swap, S, ratio = swap_gains(state, scores)
        for leaver, entrant in banned:
            swap[state.active == leaver, entrant] = -np.inf
        j, e = divmod(int(np.argmax(swap)), swap.shape[1])
        if swap[j, e] > max(best[1], LEAST_EXCHANGE * swap.shape[1]):
            a = float(np.log(S[j, e]) - np.log(max(ratio[j, e] - 1.0, 1e-12)))
            return "swap", float(swap[j, e]), j, e, a
    if best[1] > -np.inf:
        S_m, Q_m = float(scores.S[m]), float(scores.Q[m])
        best = ("add", best[1], -1, m, float(2.0 * np.log(S_m) - np.log(Q_m * Q_m - S_m)))
    return best
