"""One row or one column more or less, and leave-one-out, against training again: N = 5000, M = 200."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

import bayessel as bs
from bayessel.linear import RidgeState
from benchmarks.harness import Case, Contestant, Report, Verdict, race
from benchmarks.peers import Problem, gram_triangle

TITLE = "Incremental changes and leave-one-out"
TEXT = """A change of the ridge fit and its new weights, against training again on the changed data: with our own
`RidgeState` (a QR, which keeps the digits that a change keeps), with scikit-learn's `Ridge(solver="cholesky")`, and
with bare syrk + potrf, the least that any retraining can cost. Reading the weights is part of a change. Leave-one-out:
all N predictions at one penalty; training N times is timed on 20 rows and multiplied."""
LAM = 0.5
STATE = "RidgeState, new"
CHANGES: dict[str, Callable[[RidgeState, Problem], None]] = {
    "add_row": lambda s, p: s.add_row(p[0][0] + 0.1, 1.0),
    "remove_row": lambda s, p: s.remove_row(s.n_rows // 2),
    "add_column": lambda s, p: s.add_column(_new_column(p), LAM),
    "remove_column": lambda s, p: s.remove_column(s.n_columns // 2),
}


_COLUMNS: dict[int, Any] = {}


def _new_column(p: Problem) -> Any:
    """The column to add; made once (the untimed lap), for making it is not the engine's work."""
    n = len(p[1])
    if n not in _COLUMNS:
        _COLUMNS[n] = np.sin(p[0][:, 0] + p[0][:, 1])
    return _COLUMNS[n]


def problem(n: int, m: int) -> Problem:
    rng = np.random.default_rng([5, n, m])
    Phi = rng.normal(size=(n, m))
    return Phi, Phi @ rng.normal(size=m) + rng.normal(size=n)


def change(name: str, state_and_data: tuple[RidgeState, Problem]) -> Any:
    """Apply a change and read the weights: an update that puts the work off would not count."""
    state, data = state_and_data
    CHANGES[name](state, data)
    return state.coef


def restore(ready: tuple[RidgeState, Problem], data: Problem) -> Any:
    """Bring the state back to its size by the opposite of the last round's change."""
    state = ready[0]
    while state.n_rows < len(data[1]):
        state.add_row(data[0][0], data[1][0])
    while state.n_rows > len(data[1]):
        state.remove_row(state.n_rows - 1)
    while state.n_columns < data[0].shape[1]:
        state.add_column(data[0][: state.n_rows, 0] ** 2, LAM)
    while state.n_columns > data[0].shape[1]:
        state.remove_column(state.n_columns - 1)
    return ready


def cases(quick: bool) -> list[Case]:
    n, m = (200, 10) if quick else (5000, 200)
    data = partial(problem, n, m)
    found = []
    for name in CHANGES:
        ready: list[Any] = []

        def prepare(p: Problem, ready: list[Any] = ready) -> Any:
            if not ready:
                ready.append((RidgeState(*p, LAM), p))
            return restore(ready[0], p)

        found.append(
            Case(
                f"{name}, N = {n}, M = {m}",
                data,
                [
                    Contestant(name, "ours", partial(change, name), prepare=prepare),
                    Contestant(STATE, "ours", lambda p: RidgeState(*p, LAM).coef),
                    Contestant(
                        "Ridge", "peer", lambda p: Ridge(LAM, fit_intercept=False, solver="cholesky").fit(*p).coef_
                    ),
                    Contestant("syrk + potrf", "limit", gram_triangle),
                ],
                rounds=3 if quick else 20,
            )
        )
    return found


def loo_ours(p: Problem) -> Any:
    spectrum = bs.linear.Spectrum.of(*p, rows=True)
    return bs.linear.reported_sums.loo_residuals(spectrum, LAM)


def loo_by_training(rows: int, p: Problem) -> Any:
    Phi, t = p
    out = []
    for i in range(rows):
        keep = np.arange(len(t)) != i
        w = Ridge(LAM, fit_intercept=False, solver="cholesky").fit(Phi[keep], t[keep]).coef_
        out.append(t[i] - Phi[i] @ w)
    return np.array(out)


def run(quick: bool, memory: Callable[..., Any]) -> Report:
    report = Report()
    for case in cases(quick):
        data = case.data()
        outcome = race(case, data)
        report.add(case, outcome)
        name = case.contestants[0].name
        for again in (STATE, "Ridge"):
            label = f"{name}: time of training again with {again} over that of the change"
            label += f" (median ratio {outcome.typical_ratio(again, name):.0f})"
            report.verdicts.append(Verdict(label, outcome.ratio(again, name), 20.0, ">="))
    n, m = data[0].shape
    sample = 5 if quick else 20
    case = Case(
        f"all {n} leave-one-out residuals, M = {m}",
        lambda: data,
        [
            Contestant("loo_residuals (SVD included)", "ours", loo_ours),
            Contestant("syrk + potrf", "limit", gram_triangle),
            Contestant(f"Ridge, {sample} of {n} trainings", "peer", partial(loo_by_training, sample)),
        ],
        rounds=2 if quick else 6,
    )
    outcome = race(case, data)
    ours, _, peer = (c.name for c in case.contestants)
    report.add(case, outcome)
    value = outcome.ratio(peer, ours) * n / sample
    report.verdicts.append(Verdict("leave-one-out: time of N trainings over ours", value, 20.0, ">="))
    apart = np.abs(outcome.results[ours][:sample] / outcome.results[peer] - 1.0).max()
    report.verdicts.append(
        Verdict("leave-one-out: largest relative difference from training again", float(apart), 1e-9)
    )
    for name, check in CHANGES.items():
        report.verdicts.append(
            Verdict(f"{name}: largest relative difference of the weights", differs(data, check), 1e-9)
        )
    return report


def differs(data: Problem, apply: Callable[[RidgeState, Problem], None]) -> float:
    """Weights after a change against those of a state built from the changed rows and columns."""
    state = RidgeState(*data, LAM)
    apply(state, data)
    again = RidgeState(state.rows, state.target, LAM).coef
    return float(np.abs(state.coef - again).max() / np.abs(again).max())
