r"""A greedy selection: one step after another until a step says why it is the last, or Ctrl-C does.

A search ends when the model has more than :math:`\max(15, 0.3\,m)` functions beyond the size m at which it was best
(Barrio, Romero and Belanche 2010, section 6.1.3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayessel.work.interrupts import InterruptGuard

#: why a selection ended that the user ended
INTERRUPTED = "interrupted"


def patience(size: int) -> int:
    """Functions to go on beyond the best size before giving up."""
    return max(15, round(0.3 * size))


def until_stopped(step: Callable[[], str | None], begun: Callable[[], object]) -> str:
    """Call `step` until it returns why it is the last; 'interrupted' after Ctrl-C, once `begun` returns something."""
    reason: str | None = None
    with InterruptGuard(begun):
        while reason is None:
            reason = step()
    return reason or INTERRUPTED


class BestSize:
    """The best size so far, and whether the search has gone far enough beyond it."""

    def __init__(self) -> None:
        self.best, self.value = 0, np.inf

    def far_enough(self, size: int, value: float) -> bool:
        """Note the value, to be made small, at a size; NaN counts as no value, of equals the smaller size is best."""
        if value < self.value or (value == self.value and size < self.best):
            self.best, self.value = size, value
        return abs(size - self.best) > patience(self.best)
