"""Which starts a problem gets, and the search that makes the best of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bayessel.linear.columns.numerical_range import SAMPLE
from bayessel.linear.rvm import starts, subsample_start
from bayessel.linear.rvm.local_search import RVMSearch, climb
from bayessel.linear.rvm.newton import ascend
from bayessel.linear.rvm.orthogonal_form import OrthogonalForm
from bayessel.linear.rvm.perturb import perturb
from bayessel.linear.rvm.problem import RVMProblem
from bayessel.linear.rvm.recombine import recombined
from bayessel.linear.rvm.reestimation import Reestimation
from bayessel.linear.rvm.state import RVMState
from bayessel.linear.rvm.third_level import interpolates, model_evidence
from bayessel.policy import NOISE_SHARE_OF_CERTAINTY
from bayessel.work.interrupts import InterruptGuard

#: work of a contest (rows x rows x columns) up to which many starts are tried
MANY_STARTS = 1e8
#: entries up to which it is tried whether the data want to be interpolated
QUIET_START = 5_000
#: noise levels of greedy starts for data that seem to want to be interpolated
HIGH_NOISES = (0.3, 0.1, 0.03, 0.01)
#: gain in nats, for a parameter's cost in log(rows) and choice among many, from which a function is beyond doubt
BEYOND_DOUBT = 5.0
#: functions times rounds of shaking, squared functions times columns times rounds, and rounds, at most
PERTURBATIONS, SHAKEN, MOST_TRIES = 160, 4e6, 8
#: moves by which starts are compared
FIRST_MOVES = 40
#: noise levels at which functions are added one after the other, where they hardly compete
NARROW_NOISES = (0.03, 0.01)

#: the contest that does best where there is time for one alone
LEAN = Reestimation(0.1, 5, -10.0)
#: contests for wide functions, which give way to noise otherwise
WIDE_CONTESTS = {
    "full(0.001, broad)": Reestimation(0.001, 5, -10.0),
    "full(0.0001, broader)": Reestimation(1e-4, 5, -20.0),
    "full(0.1, broadest)": Reestimation(0.1, 0, -40.0, 60),
}
#: nats that a search may make up after a start
WITHIN_REACH = 1.5
#: numerical rank of a dictionary up to which its functions are wide
WIDE = 36

RVMEnds = dict[str, tuple[RVMState, RVMSearch]]


def search(
    problem: RVMProblem, init: str, max_steps: int, tol: float, restarts: int | None
) -> tuple[str, RVMState, RVMSearch, dict[str, RVMState]]:
    """Return the name of the best start, where it led, how, and where each start led."""
    found: RVMEnds = {}
    reached: dict[str, RVMState] = {}
    with InterruptGuard(lambda: found) as guard:
        begun: list[RVMState] = []
        for name, start in _promising(problem, init):
            _keep(found, name, search_from(problem, start, FIRST_MOVES, max(tol, 0.05)))
            begun.append(start)
        if init == "auto" and len(found) > 1:
            for name, start in recombined(problem, [*begun, *(state for state, _ in found.values())]):
                _keep(found, name, search_from(problem, start, FIRST_MOVES, max(tol, 0.05)))
        if not found:
            start = starts.empty(problem.form, problem.level(0.1))
            found["empty"] = search_from(problem, start, FIRST_MOVES, max(tol, 0.05))
        leader = max((state for state, _ in found.values()), key=lambda state: state.log_evidence)
        if init == "auto" and problem.learn_noise and leader.size and not _sound(problem, leader):
            # The best fit passes through nearly all rows, and with more columns than rows every climb ends there. Fits
            # that stop while the noise is held high are offered beside it; the evidence one level up decides.
            for noise in HIGH_NOISES:
                found[f"noise held at {noise:g}"] = _high_noise_start(problem, noise)
        reached = {name: state for name, (state, _) in found.items()}
        greedy = [
            (name, state, replace(history, history=list(history.history)))
            for name in _ranked(problem, found)[0]
            if _is_greedy(name)
            for state, history in [found[name]]
        ][:1]
        if restarts is None and init == "auto":
            _perturb_best(problem, found, tol, None)
        elif restarts:
            _perturb_best(problem, found, tol, restarts)
        # to the end, from the best of all and, not shaken, from the best greedy start: 'auto' is never below 'greedy'
        best = _ranked(problem, found)[0][0]
        for name, state, history in [(best, *found[best]), *greedy]:
            if not history.finished:
                history.moves_left = max_steps
                end = climb(problem.form, state, history, tol=tol)
                if name not in found or not found[name][0].log_evidence > end.log_evidence:
                    _keep(found, name, (end, history))
    names, passed_over = _ranked(problem, found)
    state, history = found[names[0]]
    history.interpolation, history.interrupted = passed_over, guard.interrupted
    return names[0], state, history, reached or {name: state for name, (state, _) in found.items()}


def _keep(found: RVMEnds, name: str, end: tuple[RVMState, RVMSearch]) -> None:
    """Keep where a search ended, unless it has no evidence; one that Ctrl-C ended is the last."""
    if np.isfinite(end[0].log_evidence):
        found[name] = end
    if end[1].interrupted:
        raise KeyboardInterrupt


def _is_greedy(name: str) -> bool:
    return name.startswith("greedy") or name == "sequential"


def _promising(problem: RVMProblem, init: str) -> list[tuple[str, RVMState]]:
    """Return the starts; where time counts, those that are still within reach of the best after a few steps uphill.

    Greedy starts are judged among themselves, as they are where no others are made.
    """
    begun = list(_starts(problem, init))
    if _small(problem) or not isinstance(problem.form, OrthogonalForm) or len(begun) < 2:
        return begun
    begun = [
        (name, ascend(problem.form, start, learn_noise=problem.learn_noise, steps=8, tol=0.5, b_max=problem.b_max))
        for name, start in begun
    ]

    def best(greedy: bool) -> float:
        heights = [start.log_evidence for name, start in begun if _is_greedy(name) or not greedy]
        return max((height for height in heights if np.isfinite(height)), default=-np.inf)

    least = {greedy: best(greedy) - WITHIN_REACH for greedy in (False, True)}
    return [(name, start) for name, start in begun if start.log_evidence > least[_is_greedy(name)]]


def search_from(problem: RVMProblem, start: RVMState, moves: int, tol: float) -> tuple[RVMState, RVMSearch]:
    """Local search from one start."""
    history = RVMSearch(learn_noise=problem.learn_noise, b_max=problem.b_max, moves_left=moves)
    history.note("start", start)
    return climb(problem.form, start, history, tol=tol), history


def _small(problem: RVMProblem) -> bool:
    """Whether a contest of all columns costs so little that there may be many: squared coordinates times columns."""
    n, p = problem.columns.shape
    if isinstance(problem.form, OrthogonalForm):
        return float(problem.form.rank) ** 2 * p <= MANY_STARTS
    return float(min(n, p)) ** 2 * max(n, p) <= MANY_STARTS


def _contests(problem: RVMProblem, init: str) -> dict[str, Reestimation]:
    """Contests of all columns, by name; the larger the problem, the fewer."""
    p = problem.columns.shape[1]
    constant = problem.constant
    with_constant = {} if constant is None else {"constant": Reestimation(0.1, keep=constant)}
    if init == "auto" and not _small(problem):
        if isinstance(problem.form, OrthogonalForm):
            return (
                with_constant
                | {"full(0.01)": Reestimation(0.01, steps=20)}
                | (WIDE_CONTESTS if problem.form.rank <= WIDE else {})
            )
        return {"full": LEAN}
    if init == "auto" and _narrow(problem):
        return {"full": LEAN}
    # as MacKay's updates are usually run: a prior far too broad, the noise learned at once, nobody sent away early
    mackay = -2.0 * np.log(p) - 2.0 * np.log(np.maximum(problem.columns.lengths, 1e-300)) + 2.0 * np.log(problem.spread)
    contests = {
        "full(0.01)": Reestimation(0.01),
        "full(0.001)": Reestimation(0.001),
        **WIDE_CONTESTS,
        "mackay": Reestimation(0.1, 0, np.clip(mackay, -40.0, 20.0), 120, least_gamma=0.0),
    }
    if isinstance(problem.form, OrthogonalForm) and problem.form.rank <= WIDE:  # where one more costs next to nothing
        for steps in (60, 200, 300):
            contests[f"mackay({steps})"] = replace(contests["mackay"], steps=steps)
    return contests | with_constant


def _narrow(problem: RVMProblem) -> bool:
    """Whether the functions hardly compete, because there are about as many independent ones as rows or columns."""
    least = min(problem.columns.shape)
    return isinstance(problem.form, OrthogonalForm) and least > SAMPLE and problem.form.rank > 0.9 * least


def _starts(problem: RVMProblem, init: str) -> Iterator[tuple[str, RVMState]]:
    form, b = problem.form, problem.b
    if not len(form.candidates):
        yield "empty", starts.empty(form, problem.level(0.1))
        return
    if init == "auto" and subsample_start.wanted(problem):
        yield "some rows", subsample_start.from_some_rows(problem, replace(LEAN, b_max=problem.b_max), 0.05)
        return
    if init == "quick":
        yield "full", starts.full(form, replace(LEAN, b_max=problem.b_max), b)
        yield "sequential", starts.sequential(form, problem.level(0.1), problem.learn_noise, problem.b_max)
        return
    if init in ("auto", "full"):
        for name, contest in _contests(problem, init).items():
            yield name, starts.full(form, replace(contest, b_max=problem.b_max), b)
    if init in ("auto", "greedy"):
        yield from _greedy_starts(problem, init)
    elif init == "backward":
        yield "backward", starts.greedy(form, problem.level(1e-4), least_gain=1e-2, block=5)


def _greedy_starts(problem: RVMProblem, init: str) -> Iterator[tuple[str, RVMState]]:
    """Starts that add one function after the other: at a noise held at several levels, and with the noise learned.

    'auto' has those of 'greedy' where problems are small or functions wide. Functions that hardly compete are added at
    two levels that leave something to the noise: lower ones end with hundreds.
    """
    form, small = problem.form, _small(problem)
    tiny = problem.columns.shape[0] * problem.columns.shape[1] <= QUIET_START
    wide = isinstance(form, OrthogonalForm) and form.rank <= WIDE
    narrow = _narrow(problem) or not isinstance(form, OrthogonalForm)
    if narrow:
        held = list(NARROW_NOISES)
    elif small or wide or (init == "greedy" and isinstance(form, OrthogonalForm)):
        held = [0.01, 0.001]
    else:
        held = []
    for noise in held + ([1e-6] if tiny else []):
        yield f"greedy({noise:g})", starts.greedy(form, problem.level(noise))
    if tiny or not (wide or (narrow and not small)):  # hopeless when wide
        yield "sequential", starts.sequential(form, problem.level(0.1), problem.learn_noise, problem.b_max)


def _high_noise_start(problem: RVMProblem, noise: float) -> tuple[RVMState, RVMSearch]:
    """Functions that are beyond doubt at a noise held at `noise`, then all precisions; nothing is added after that."""
    state = starts.greedy(problem.form, problem.level(noise), least_gain=BEYOND_DOUBT)
    history = RVMSearch(learn_noise=True, b_max=problem.b_max, moves_left=0, finished=True)
    history.note("start", state)
    state = ascend(problem.form, state, tol=1e-6, steps=100, b_max=problem.b_max)
    history.note("climb", state)
    return state, history


def _sound(problem: RVMProblem, state: RVMState) -> bool:
    return state.size > 0 and not interpolates(state, problem.n_rows, NOISE_SHARE_OF_CERTAINTY)


def _ranked(problem: RVMProblem, found: RVMEnds) -> tuple[list[str], bool]:
    """Names by evidence, best first, and whether one that would lead passes through nearly every row.

    Such a model goes last where the evidence one level up, which charges for every precision, does not prefer it.
    """
    names = sorted(found, key=lambda name: -found[name][0].log_evidence)
    if not problem.learn_noise:
        return names, False
    n = problem.n_rows
    sound = [name for name in names if _sound(problem, found[name][0])]
    if not sound or len(sound) == len(names):
        return names, False

    def third(name: str) -> float:
        state = found[name][0]
        return model_evidence(state, n, state.log_evidence)

    last = [name for name in names if name not in sound and third(name) <= third(sound[0])]
    return [name for name in names if name not in last] + last, names[0] in last


def _perturb_best(problem: RVMProblem, found: RVMEnds, tol: float, rounds: int | None) -> None:
    """Shake the two best, as often as `rounds` says or as their size allows."""
    for name in _ranked(problem, found)[0][:2]:
        state, history = found[name]
        tries = rounds if rounds is not None else _affordable_tries(state.size, problem.columns.shape[1])
        if tries:
            found[name] = perturb(problem.form, state, history, tries, max(tol, 0.02)), history


def _affordable_tries(size: int, columns: int) -> int:
    """Rounds of shaking a model of so many functions that are worth their time."""
    return int(min(MOST_TRIES, PERTURBATIONS // max(size, 1), SHAKEN // (max(size, 1) ** 2 * columns)))
