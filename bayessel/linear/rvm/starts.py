"""Where a search begins: everything at once, one function at a time, or too many.

The surface has many optima and no start is best on all problems. From the full model the functions compete while the
noise is held low: the best optima at widths that suit the data. Greedily, at a noise held far too low, until there is
nothing left to explain: the best ones for wide kernels, where the full model never leaves its first plateau.
"""

from __future__ import annotations

import numpy as np

from bayessel.linear.rvm.gram_form import GramForm
from bayessel.linear.rvm.moves import add_gains, best_a
from bayessel.linear.rvm.newton import ascend
from bayessel.linear.rvm.reestimation import Reestimation
from bayessel.linear.rvm.state import DictionaryForm, RVMState

#: candidates a form is told of in advance
AHEAD = 24
#: functions of a greedy start at most, and actions of Tipping and Faul
MOST, ACTIONS = 300, 160


def empty(form: DictionaryForm, b: float) -> RVMState:
    """Return the model without columns."""
    return form.solve(np.zeros(0, dtype=np.intp), np.zeros(0), b)


def full(form: DictionaryForm, contest: Reestimation, b: float | None = None) -> RVMState:
    """All columns compete; beyond ``form.heat`` of them in heats of interleaved columns first, then the survivors."""
    candidates = form.candidates
    while len(candidates) > form.heat:
        heats = int(np.ceil(len(candidates) / form.heat))
        survivors = [form.full_start(candidates[first::heats], contest, b)[0] for first in range(heats)]
        kept = np.unique(np.concatenate(survivors))
        if len(kept) > 0.8 * len(candidates):  # heats that send everybody on decide nothing
            kept = kept[:: int(np.ceil(len(kept) / form.heat))]
        candidates = kept
    return form.solve(*form.full_start(candidates, contest, b))


def greedy(form: DictionaryForm, b: float, *, least_gain: float = 0.1, block: int = 1) -> RVMState:
    """Add what gains most at a noise held at log precision `b` until nothing does.

    Of very many columns some are offered, those of which all inner products are at hand: a search exchanges them after.
    """
    if isinstance(form, GramForm) and form.n_columns > form.heat and not form.whole:
        part, which = form.part
        found = regrow(part, empty(part, b), b, least_gain=least_gain, block=block)
        return form.solve(which[found.active], found.a, found.b)
    return regrow(form, empty(form, b), b, least_gain=least_gain, block=block)


def regrow(
    form: DictionaryForm, state: RVMState, b: float, *, least_gain: float = 0.1, block: int = 1, most: int = MOST
) -> RVMState:
    """Add to `state` what gains most at a noise held at `b` until nothing does, or there are `most` functions."""
    state = best = form.solve(state.active, state.a, b)
    while state.size < min(most, form.n_rows):
        scores = form.score(state)
        gains = add_gains(state, scores)
        order = np.argsort(-gains)[: max(block, state.size // 10)]
        order = order[gains[order] > max(least_gain, 0.3 * gains[order[0]])]
        if not len(order):
            break
        a = [best_a(float(scores.S[m]), float(scores.Q[m])) for m in order]
        grown = form.solve(np.append(state.active, order), np.append(state.a, a), state.b)
        state = ascend(form, grown, learn_noise=False, steps=3)
        if state.log_evidence <= best.log_evidence + 0.5 * least_gain:
            break
        best = state
    return best


def sequential(form: DictionaryForm, b: float, learn_noise: bool, b_max: float = 60.0) -> RVMState:
    """Some actions of Tipping and Faul: the best single one, the noise re-estimated after each.

    Where the functions pass through all rows, the noise falls to its floor and further actions follow rounding alone:
    the state of highest evidence is the start, and there are never more functions than rows.
    """
    state = best = empty(form, b)
    for _ in range(ACTIONS):
        if state.log_evidence > best.log_evidence:
            best = state
        if state.size >= form.n_rows:
            break
        scores = form.score(state)
        gains = add_gains(state, scores)
        m = int(np.argmax(gains))
        if gains[m] > 0.0:
            form.prefetch(np.argsort(-gains)[:AHEAD])
        d, v2 = np.diagonal(state.V), state.v**2
        with np.errstate(divide="ignore", invalid="ignore"):
            # inside the model: alpha_new/alpha, and what re-estimating or deleting would gain
            factor = ((1.0 - d) / d) ** 2 / (v2 / d**2 - (1.0 - d) / d)
            change = np.where(factor > 0.0, 1.0 / factor - 1.0, -1.0)
            within = 0.5 * (v2 * change / (1.0 + (1.0 - d) * change) - np.log1p((1.0 - d) * change))
        within = np.where(np.isfinite(within), within, -np.inf)
        j = int(np.argmax(within)) if state.size else -1
        active, a = state.active, state.a
        if j >= 0 and within[j] > gains[m]:
            if within[j] < 1e-6:
                break
            if factor[j] > 0.0:
                a = a.copy()
                a[j] += np.log(factor[j])
            else:
                active, a = np.delete(active, j), np.delete(a, j)
        elif gains[m] > 1e-6:
            active, a = np.append(active, m), np.append(a, best_a(float(scores.S[m]), float(scores.Q[m])))
        else:
            break
        state = form.solve(active, a, b)
        if learn_noise:
            left = max(form.n_rows - float((1.0 - np.diagonal(state.V)).sum()), 1e-3)
            b = min(float(np.log(left) - np.log(max(state.sum_squares, 1e-300))), b_max)
            state = form.solve(active, a, b)
    return state if state.log_evidence > best.log_evidence else best
