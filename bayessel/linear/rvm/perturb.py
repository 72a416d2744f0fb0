"""Leave a local optimum on purpose: take functions out, or look at the data as if the noise were lower, and rebuild."""

from __future__ import annotations

import numpy as np

from bayessel.linear.rvm.local_search import RVMSearch, climb
from bayessel.linear.rvm.moves import delete_gains
from bayessel.linear.rvm.newton import ascend
from bayessel.linear.rvm.starts import MOST, regrow
from bayessel.linear.rvm.state import DictionaryForm, RVMState

#: functions beyond twice those of the model that may come in while the noise is held low
ROOM = 16


def thinned(form: DictionaryForm, state: RVMState, share: float, learn_noise: bool, b_max: float) -> RVMState:
    """Take out a share of the functions, those first that are missed least, the rest re-adjusted on the way."""
    target = int(np.floor((1.0 - share) * state.size))
    while state.size > target:
        out = min(max(1, state.size // 12), state.size - target)
        stay = np.ones(state.size, dtype=bool)
        stay[np.argsort(-delete_gains(state))[:out]] = False
        state = form.solve(state.active[stay], state.a[stay], state.b)
        state = ascend(form, state, learn_noise=learn_noise, steps=2, b_max=b_max)
    return state


#: what is tried in turn: a share of the functions taken out, or a noise precision raised by a factor; then functions
#: taken out at random
PLAN = (("thin", 0.3), ("less noise", 4.0), ("thin", 0.6), ("less noise", 20.0), ("thin", 0.15))


def perturb(form: DictionaryForm, state: RVMState, search: RVMSearch, rounds: int, tol: float) -> RVMState:
    """Shake until `rounds` tries in a row bring nothing; the best that was found."""
    failures = turn = 0
    plan = PLAN if search.learn_noise else tuple(step for step in PLAN if step[0] == "thin")
    while failures < rounds:
        kind, size = plan[turn] if turn < len(plan) else ("ruin", 0.1 + 0.05 * (turn % 4))
        turn += 1
        if kind == "thin":
            new = thinned(form, state, size, search.learn_noise, search.b_max)
        elif kind == "ruin":
            stay = np.random.default_rng(turn).random(state.size) > size
            new = form.solve(state.active[stay], state.a[stay], state.b)
        else:
            new = regrow(
                form, state, min(state.b + float(np.log(size)), search.b_max), most=min(MOST, 2 * state.size + ROOM)
            )
        tried = RVMSearch(search.learn_noise, search.b_max, 60)
        new = climb(form, new, tried, tol=tol)
        if tried.interrupted:
            raise KeyboardInterrupt
        if new.log_evidence > state.log_evidence + tol:
            state, failures = new, 0
            search.note(f"{kind} {size:g}", state)
        else:
            failures += 1
    return state
