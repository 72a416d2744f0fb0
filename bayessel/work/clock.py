"""Time budgets by the clock."""

from __future__ import annotations

from time import monotonic


class BudgetClock:
    """Seconds spent since it was made, and left of a budget; without a budget infinitely many are left."""

    def __init__(self, budget: float | None = None) -> None:
        self.budget, self._began = budget, monotonic()

    def spent(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self._began

    def left(self) -> float:
        """Seconds left, negative beyond the budget."""
        return float("inf") if self.budget is None else self.budget - self.spent()
