"""The forward pass: pairs of hinges join, each the pair that lowers the residual sum of squares most.

Friedman, Multivariate adaptive regression splines, Annals of Statistics 19 (1991), algorithm 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bayessel._check import FloatArray
from bayessel.baselines.engines.hinges import Function, Hinge, variables
from bayessel.work.interrupts import InterruptGuard

#: chance of following a run of noise: the paper's α in eqs. (43) and (45)
ALPHA = 0.05
#: a residual sum of squares below this part of the total is rounding
ROUNDING = 1e-24
#: columns are padded to a multiple of this, so that compiled loops run in vectors
LANES = 8


def knot_span(n_inputs: int, rows: int) -> int:
    """Rows from one knot to the next, eq. (43): resistant to a run of noise of one sign."""
    return max(1, int(-math.log2(-math.log(1.0 - ALPHA) / (n_inputs * rows)) / 2.5)) if rows else 1


def end_span(n_inputs: int) -> int:
    """Rows without a knot at either end, eq. (45)."""
    return int(3.0 - math.log2(ALPHA / n_inputs))


@dataclass
class Grown:
    """What the forward pass leaves behind.

    Attributes
    ----------
    functions
        All but the constant.
    knots
        For each, the number of the knot it was made with (a pair shares one); -1 without a knot.
    history
        One entry per step: parent (0 the constant), input, knot, residual sum of squares over that of the mean.
    """

    functions: list[Function] = field(default_factory=list)
    knots: list[int] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    interrupted: bool = False


class Span:
    """Orthonormal columns of the functions in use, and what they leave of the target."""

    def __init__(self, y: FloatArray, most: int) -> None:
        self.Q = np.zeros((len(y), -(-most // LANES) * LANES))
        self.rank = 0
        self.residual = y.copy()

    def add(self, column: FloatArray) -> bool:
        """Orthogonalise a column, twice is enough; False where it lies in the span."""
        before = np.sqrt(column @ column)
        used = self.Q[:, : self.rank]
        u = column - used @ (used.T @ column)
        u -= used @ (used.T @ u)
        size = np.sqrt(u @ u)
        if not size > 1e-7 * before or self.rank == self.Q.shape[1]:
            return False
        u /= size
        self.Q[:, self.rank] = u
        self.rank += 1
        self.residual -= u * (u @ self.residual)
        return True


def grow(
    X: FloatArray,
    y: FloatArray,
    *,
    max_functions: int,
    max_degree: int,
    min_span: int | None = None,
    end: int | None = None,
    step: Callable[[int, int], None] | None = None,
) -> Grown:
    """Grow functions of inputs (N, D), each from 0 to 1, for a target (N,) of mean 0.

    The pass ends when no two more functions would fit into `max_functions`, or the target is reached, or nothing helps.
    An input that leaves no room for a knot (two values, few rows) enters linearly. `step` is called with (functions,
    most); an interruption by the user ends the pass with the columns chosen so far.
    """
    from bayessel.baselines.engines.knots_compiled import best_of_all

    N, D = X.shape
    most = min(max_functions, N - 1)
    by_input = np.ascontiguousarray(X.T)
    order = np.argsort(-by_input, axis=1, kind="stable")
    span = Span(y, most + 1)
    B = np.ones((most + 1, N))
    span.add(B[0])
    allowed = np.zeros((most + 1, D), dtype=bool)
    varies = by_input.max(axis=1) > by_input.min(axis=1)
    allowed[0] = varies
    rows = np.full(most + 1, N)
    total = float(y @ y)
    grown = Grown()

    def enter(function: Function, column: FloatArray, knot: int) -> None:
        grown.functions.append(function)
        grown.knots.append(knot)
        m = len(grown.functions)
        B[m] = column
        rows[m] = int((column > 0.0).sum())
        used = variables(function)
        allowed[m] = varies & (len(used) < max_degree)
        allowed[m, list(used)] = False
        span.add(column)

    n_knots = 0
    with InterruptGuard() as guard:
        while len(grown.functions) + 2 <= most and float(span.residual @ span.residual) > ROUNDING * total:
            M = len(grown.functions) + 1
            spans = np.array([min_span or knot_span(D, int(count)) for count in rows[:M]])
            ends = np.full(M, end_span(D) if end is None else end)
            columns = -(-span.rank // LANES) * LANES
            gain, m, v, t, new, found = best_of_all(
                by_input, order, B[:M], allowed[:M], span.Q, columns, span.residual, spans, ends
            )
            if m < 0 or not gain > 1e-12 * total:
                break
            parent = grown.functions[m - 1] if m else ()
            x = by_input[v]
            if not found:
                low = float(x.min())
                enter((*parent, Hinge(v, low, 0)), B[m] * (x - low), -1)
            else:
                pair = [(Hinge(v, t, sign), B[m] * np.maximum(sign * (x - t), 0.0)) for sign in (1, -1)]
                if not new:  # either is a combination of the other and of the model; the smaller loses fewer digits
                    pair = [min(pair, key=lambda one: float(one[1] @ one[1]))]
                for hinge, column in pair:
                    enter((*parent, hinge), column, n_knots)
                n_knots += 1
            left = float(span.residual @ span.residual) / total
            grown.history.append({"parent": m, "input": v, "knot": t if found else math.nan, "left": left})
            if step is not None:
                step(len(grown.functions), most)
    grown.interrupted = guard.interrupted
    return grown
