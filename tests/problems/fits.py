"""Fits that are stated instead of computed: any numbers under the contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bayessel.criteria.capabilities import Message, matters
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status


@dataclass(frozen=True, eq=False)
class StatedFit(Fit):
    """A linear model of somebody else, which inherits nothing of ours but the contract."""

    evidence: Evidence | None = field(default_factory=lambda: Evidence(-5.0, "type2"))
    coef: Any = field(default_factory=lambda: np.zeros(0))
    alpha: Any = field(default_factory=lambda: np.zeros(0))
    beta: float = 2.0
    sizes: Any = np.inf
    n_rows: int = 4
    n_candidates: int = 7
    sum_squares: float = 3.0
    effective_parameters: float = 0.0
    left_out: LeaveOneOut | None = None
    status: Status = Status.CONVERGED
    notes: tuple[Status, ...] = ()
    fingerprint: str = ""
    target_fingerprint: str = ""
    optima: tuple[Any, ...] = ()
    history: tuple[Any, ...] = ()
    seconds: float = 0.0

    def predict(self, rows: Any) -> Any:
        raise NotImplementedError

    def leave_one_out(self) -> LeaveOneOut:
        assert self.left_out is not None
        return self.left_out

    def message(self) -> Message:
        sent = matters(self.coef, np.broadcast_to(self.sizes, self.coef.shape), self.beta)
        shared = np.ndim(self.alpha) == 0
        return Message(
            self.coef[sent], len(self.coef), self.n_candidates, 1 if shared else int(sent.sum()), self.beta,
            self.sum_squares,
        )  # fmt: skip
