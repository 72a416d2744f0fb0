"""What a strategy drives: add the best function, remove the least useful one, and keep account of the path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.columns.fit import ColumnChoice
from bayessel.linear.columns.greedy import patience
from bayessel.linear.selection.candidate_scores import (
    CandidateSums,
    after_adding,
    after_removing,
    candidate_sums,
    gains_of_adding,
    gains_of_removing,
)
from bayessel.linear.selection.objective import SelectionObjective, TrialModel
from bayessel.linear.selection.precisions import PrecisionLevel, SingularModel, best_level, level_at, settled
from bayessel.linear.selection.working_model import ModelSnapshot, WorkingModel

#: updates for unchanged precisions in a row, and the smallest lambda (longest function: length 1) they are used at
MOST_UPDATES, SAFE_LAMBDA = 10, 1e-6
#: relative difference of two values that counts
DIFFERENT = 1e-10


@dataclass(frozen=True, eq=False)
class SearchSnapshot:
    """A model to come back to."""

    model: ModelSnapshot
    small: SingularModel
    held: PrecisionLevel
    level: PrecisionLevel
    value: float


def _better(value: float, than: float, unit: float) -> bool:
    """Whether a value is larger by more than rounding; `unit` is what a value near zero is measured by."""
    return bool(value > than and (than == -np.inf or value > than + DIFFERENT * (unit + abs(than))))


class SelectionSearch:
    """A model, and what may be done to it.

    Attributes
    ----------
    size, value : int, float
        Functions in use, and the objective of this model (larger is better).
    best_size, best_value
        Of the best model so far.
    path : dict
        Size -> `ColumnChoice`.
    """

    def __init__(
        self,
        model: WorkingModel,
        objective: SelectionObjective,
        *,
        top: int = 0,
        max_size: int | None = None,
        max_steps: int = 100_000,
        tol: float = 0.1,
        callback: Callable[[SelectionSearch], None] | None = None,
    ) -> None:
        self.model = model
        self.objective = objective
        self.top = top
        self.max_size = max_size
        self.steps_left = max_steps
        self.tol = tol
        self.callback = callback
        self.path: dict[int, ColumnChoice] = {}
        self.history: list[dict[str, Any]] = []
        self.best_size, self.best_value = 0, -np.inf
        self.value = -np.inf
        self.n_added = self.n_removed = 0
        self.exhausted = False
        self.small = model.small()
        self.held = self.level = PrecisionLevel(1.0, 1.0, 0.0, model.n_counted, -np.inf, -np.inf)
        self._sums: CandidateSums | None = None
        self._updates = 0

    # ---- what a strategy asks

    @property
    def size(self) -> int:
        """Functions in use."""
        return self.model.size

    @property
    def going(self) -> bool:
        """Whether to go on: until the model is max(15, 0.3 m) functions larger than the best one, of m functions."""
        return self.size <= self.largest

    @property
    def largest(self) -> int:
        """Size at which the search goes on for the last time."""
        return self.best_size + patience(self.best_size)

    def better(self, than: float) -> bool:
        """Whether this model is better than a value, by more than rounding."""
        return _better(self.value, than, self.objective.unit)

    def add(self, beyond: bool = False) -> bool:
        """Add the best candidate; False where there is none, or none may come (`beyond`: past the largest size)."""
        if (
            self.steps_left < 1
            or not self.model.room
            or (self.max_size is not None and self.size >= self.max_size and not beyond)
        ):
            return False
        model = self.model
        while True:
            j = self._choose()
            if j is None:
                self.exhausted = True
                return False
            q, h, rho = model.extended(j)
            if rho > 0.0:
                break
            model.skip(j)
        sums, small, B = self._sums, self.small, model.B
        row = model.add(j, q, h, rho)
        self.n_added += 1
        held = self._moved()
        if held and sums is not None:
            self._sums = after_adding(sums, small, self.held.lam, B, row, float(model.R[-1, -1]), j, h)
        self._note("add", j)
        return True

    def remove(self, if_best: bool = False) -> bool:
        """Remove the function whose loss costs least; with `if_best` only if no model of that size was as good."""
        if self.size < 2 or self.steps_left < 1:
            return False
        model = self.model
        k = self._least()
        turned = model.basis.without(k)
        trial = None
        if if_best:
            trial = self._without(k, turned)
            known, worth = self.path.get(self.size - 1), self.objective.of(model, trial)
            if known is not None and not _better(worth, known.value, self.objective.unit):
                return False
        sums = self._sums
        updated = None if sums is None else after_removing(sums, self.small, self.held.lam, model.B, k)
        j = model.active[k]
        model.remove(k, turned)
        self.n_removed += 1
        if self._moved(trial) and updated is not None:
            self._sums = updated
        self._note("remove", j)
        if if_best and self.path[self.size].value < worth:  # rounding must not let the same removal happen again
            self.path[self.size] = ColumnChoice(worth, self.path[self.size].basis)
        return True

    def smallest(self, within: float) -> int:
        """Size of the smallest model seen that is at most `within` nats worse than the best; 0 where there is none."""
        for size in sorted(self.path):
            if self.objective.behind(self.path[size].value, self.best_value, self.model.n_counted) <= within:
                return size
        return 0

    def snapshot(self) -> SearchSnapshot:
        """Copy the model, to come back to it."""
        return SearchSnapshot(self.model.snapshot(), self.small, self.held, self.level, self.value)

    def restore(self, place: SearchSnapshot) -> None:
        """Go back to a model."""
        self.model.restore(place.model)
        self.small, self.held, self.level, self.value = place.small, place.held, place.level, place.value
        self._sums = None

    def go_to_best(self) -> None:
        """Go back to the best model so far; not counted among the functions added and removed."""
        if not self.path:
            return
        wanted = self.path[self.best_size].basis
        model = self.model
        for k in range(self.size - 1, -1, -1):
            if model.active[k] not in wanted:
                model.remove(k)
        for j in wanted:
            if j not in model.active:
                model.add(j, *model.extended(j))
        self._moved()
        self.value = self._judge()

    # ---- how it is done

    def sums(self) -> CandidateSums:
        """Return the sums that all candidates are scored by."""
        if self._sums is None:
            model, lam = self.model, self.held.lam
            self._updates = 0
            self._sums = candidate_sums(self.small, lam, model.B, model.perp2, model.perpt)
            poor = model.doubtful(lam, self._sums.S)
            if len(poor):
                model.measure(poor)
                better = candidate_sums(self.small, lam, model.B[:, poor], model.perp2[poor], model.perpt[poor])
                for name in ("S", "Q", "D"):
                    getattr(self._sums, name)[poor] = getattr(better, name)
        return self._sums

    def gains(self) -> FloatArray:
        """Gain of the model evidence by each candidate, the precisions unchanged; -inf where none may come."""
        gain = gains_of_adding(self.sums(), self.held)
        gain[~self.model.usable] = -np.inf
        return gain

    def _choose(self) -> int | None:
        model = self.model
        if not model.usable.any():
            return None
        if not self.size:  # the precisions are not known yet: the largest projection of the target
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(model.usable, model.perpt**2 / model.perp2, -np.inf)
            return int(np.argmax(share))
        gain = self.gains()
        best = int(np.argmax(gain))
        few = max(self.top, self.objective.shortlist)
        if few < 2:
            return best
        some = np.argsort(-gain, kind="stable")[:few]
        some = some[np.isfinite(gain[some])]
        values = [self._tried(int(j)) for j in some]
        return int(some[int(np.argmax(values))])

    def _tried(self, j: int) -> float:
        """Objective with candidate j and the precisions re-estimated."""
        model, m = self.model, self.size
        q = None
        if self.objective.needs_rows:
            q, h, rho = model.extended(j)
        else:
            h, rho = model.B[:, j], float(np.sqrt(model.perp2[j]))
        if rho <= 0.0:
            return -np.inf
        R = np.zeros((m + 1, m + 1))
        R[:m, :m], R[:m, m], R[m, m] = model.R, h, rho
        along = float(q @ model.residual) if q is not None else float(model.perpt[j]) / rho
        small = model.small_of(R, np.append(model.z, along), max(model.rss - along**2, 0.0))

        def rows() -> tuple[FloatArray, FloatArray]:
            assert q is not None
            return np.vstack([model.Qt, q]), model.residual - along * q

        return self.objective.of(model, TrialModel(small, best_level(small), [*model.active, j], rows))

    def _without(self, k: int, turned: tuple[FloatArray, FloatArray]) -> TrialModel:
        """The model without the function at position k, the precisions re-estimated."""
        model = self.model
        R, G = turned
        z = G.T @ model.z[k:]
        small = model.small_of(R, np.concatenate([model.z[:k], z[:-1]]), model.rss + float(z[-1] ** 2))

        def rows() -> tuple[FloatArray, FloatArray]:
            turned_rows = G.T @ model.Qt[k:]
            return np.vstack([model.Qt[:k], turned_rows[:-1]]), model.residual + z[-1] * turned_rows[-1]

        left = [*model.active[:k], *model.active[k + 1 :]]
        return TrialModel(small, best_level(small), left, rows)

    def _judge(self) -> float:
        model = self.model
        trial = TrialModel(self.small, self.level, model.active, lambda: (model.Qt, model.residual))
        return self.objective.of(model, trial)

    def _least(self) -> int:
        gain = gains_of_removing(self.small, self.held)
        few = max(self.top, self.objective.shortlist)
        if few < 2:
            return int(np.argmax(gain))
        values = {
            int(k): self.objective.of(self.model, self._without(int(k), self.model.basis.without(int(k))))
            for k in np.argsort(-gain, kind="stable")[:few]
        }
        return max(values, key=lambda k: values[k])

    def _moved(self, known_as: TrialModel | None = None) -> bool:
        """Estimate the precisions of the changed model; True where those the candidates are scored at still do."""
        self.small = self.model.small() if known_as is None else known_as.small
        self.level = best_level(self.small) if known_as is None else known_as.level
        self._updates += 1
        known = self._sums is not None
        self._sums = None
        held = known and self._updates <= MOST_UPDATES and self.held.lam >= SAFE_LAMBDA
        if self.size > 1 and settled(self.small, self.held.lam, self.held.beta, self.tol):
            self.held = level_at(self.small, self.held.lam, self.held.beta)
            return held
        self.held = self.level
        return False

    def _note(self, action: str, j: int) -> None:
        self.value = self._judge()
        self.steps_left -= 1
        size = self.size
        if size not in self.path or self.better(self.path[size].value):
            self.path[size] = ColumnChoice(self.value, tuple(self.model.active))
        allowed = self.max_size is None or size <= self.max_size
        if allowed and self.better(self.best_value):
            self.best_size, self.best_value = size, self.value
        model, at = self.model, self.level
        beta = at.beta / model.t_unit**2
        self.history.append(
            {
                "step": len(self.history),
                "action": action,
                "column": j,
                "n_basis": size,
                "value": self.value,
                "log_evidence": at.log_evidence - model.n_counted * float(np.log(model.t_unit)),
                "alpha": at.lam * at.beta * (model.unit / model.t_unit) ** 2,
                "beta": beta,
                "gamma": at.gamma,
                "noise_std": beta**-0.5,
            }
        )
        if self.callback is not None:
            self.callback(self)
