"""Find the structure of a tall problem from some of its rows, then go on with all of them.

Which functions are wanted shows in a few thousand rows; what the rest adds is precision, and a few functions more. So
the contest and the first search see a sample of the rows, and only the last moves are paid for with all of them.
"""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel.linear.columns.dictionary import Columns, MadeColumns
from bayessel.linear.rvm import starts
from bayessel.linear.rvm.gram_form import GramForm
from bayessel.linear.rvm.local_search import RVMSearch, climb
from bayessel.linear.rvm.problem import RVMProblem
from bayessel.linear.rvm.reestimation import Reestimation
from bayessel.linear.rvm.state import RVMState

#: rows that are looked at first, and the number of rows from which that pays
ROWS, TALL = 6_000, 15_000


def wanted(problem: RVMProblem) -> bool:
    """Whether the problem is tall enough."""
    return isinstance(problem.form, GramForm) and problem.columns.shape[0] >= TALL


def from_some_rows(problem: RVMProblem, contest: Reestimation, tol: float) -> RVMState:
    """Return the model that a sample of the rows suggests, as a start for all of them."""
    rows = np.sort(np.random.default_rng(0).choice(len(problem.t), ROWS, replace=False))
    some = _sample(problem.columns, rows)
    share = problem.n_rows / len(problem.t)
    form = GramForm(some, problem.t[rows] / problem.spread, n_rows=ROWS * share)
    search = RVMSearch(problem.learn_noise, problem.b_max, 300)
    state = climb(form, starts.full(form, contest, problem.b), search, tol=tol)
    ratio = some.lengths[state.active] / problem.columns.lengths[state.active]
    return problem.form.solve(state.active, state.a + 2.0 * np.log(ratio), state.b)


def _sample(columns: Columns, rows: IntArray) -> Columns:
    source = columns.source
    if isinstance(source, np.ndarray):
        return Columns(source[rows])

    def sampled(which: IntArray) -> FloatArray:
        return np.asarray(source.rows(rows, which) if hasattr(source, "rows") else source.columns(which)[rows])

    return Columns(MadeColumns((len(rows), columns.shape[1]), sampled)).store()
