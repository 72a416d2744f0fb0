"""What a race says: ranks, paired tests by the designs of DELVE, coverage, and fits that are worse than a constant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata, ttest_1samp

from bayessel._check import FloatArray
from bayessel.diagnostics.delve import Task, hierarchical, two_way
from benchmarks.field.own import OURS
from benchmarks.field.race import Outcome, Unit

CONSTANT, RIDGE = "constant normal", "BayesianRidge"
LOSSES = ("log", "CRPS", "squared")
LEVELS = (0.5, 0.9, 0.95)
#: nats a row below the constant beyond which a fit counts as worse
WORSE = 0.05
#: times the squared error of the best constant
WILD = 1.15
#: a row counts with so many nats below the constant at most: one such row must not decide everything
NATS = 100.0
#: coverage of nominal 90 % that is accepted on a set
COVERED = (0.85, 0.95)
#: standard errors of a difference beyond which a method is worse
ERRORS = 2.0
#: share of the sets of a size that a method must have met to be ranked there
SHARE = 0.8


class Difference(NamedTuple):
    """Loss of one method less that of another: mean, standard error, p-value, and on how many sets or splits."""

    mean: float
    error: float
    p_value: float
    count: int


class Worse(NamedTuple):
    """A fit that is worse than a constant, and whether it warned."""

    task: str
    split: int
    method: str
    nats: float
    warned: bool
    status: str


@dataclass
class Field:
    """Outcomes of a race with the tasks they belong to."""

    tasks: Mapping[str, Task]
    outcomes: Mapping[tuple[str, str, int], Outcome]

    @classmethod
    def of(cls, tasks: Iterable[Task], outcomes: Iterable[Outcome], splits: int) -> Field:
        """Those outcomes that belong to the first splits of these tasks as they are divided now."""
        known = {task.name: task for task in tasks}

        def belongs(unit: Unit) -> bool:
            return unit.task in known and known[unit.task].hash == unit.hash and unit.split < splits

        return cls(known, {(o.unit.method, o.unit.task, o.unit.split): o for o in outcomes if belongs(o.unit)})

    def methods(self, size: int | None = None) -> list[str]:
        """Methods that have a result, ours first."""
        there = {m for (m, task, _), one in self.outcomes.items() if not one.error and size in (None, self.size(task))}
        ours = [name for name in OURS if name in there]
        return ours + sorted(there - set(ours))

    def size(self, task: str) -> int:
        """Rows of the training sets."""
        return self.tasks[task].size

    def names(self, size: int) -> list[str]:
        """Tasks of a size."""
        return [name for name, task in self.tasks.items() if task.size == size]

    def fits(self, method: str, size: int) -> list[Outcome]:
        """Fits of a method at a size that did not fail."""
        found = self.outcomes.items()
        return [one for (m, task, _), one in found if m == method and self.size(task) == size and not one.error]

    def failures(self, method: str, size: int) -> list[Outcome]:
        """Fits of a method at a size that failed or were stopped."""
        found = self.outcomes.items()
        return [one for (m, task, _), one in found if m == method and self.size(task) == size and one.error]

    def splits(self, method: str, task: str) -> set[int]:
        """Splits that a method has met, and the constant, too."""
        return {k for k in range(len(self.tasks[task])) if self._has(method, task, k) and self._has(CONSTANT, task, k)}

    def _has(self, method: str, task: str, split: int) -> bool:
        found = self.outcomes.get((method, task, split))
        return found is not None and not found.error

    def gains(self, outcome: Outcome) -> FloatArray:
        """Nats of every test row over the constant, (J,); NaN without a constant to compare with."""
        constant = self.outcomes.get((CONSTANT, outcome.unit.task, outcome.unit.split))
        if constant is None:
            return np.full(len(outcome.log_density), np.nan)
        return np.asarray(np.maximum(outcome.log_density - constant.log_density, -NATS))

    def losses(self, loss: str, method: str, task: str, split: int) -> FloatArray:
        """Losses of the test rows: minus nats over the constant; CRPS by the targets' spread; standardised squared."""
        one = self.outcomes[method, task, split]
        if loss == "log":
            return -self.gains(one)
        spread = float(np.std(self.tasks[task][split].y_test))
        return one.crps / spread if loss == "CRPS" else (one.residual / spread) ** 2

    # --- comparisons ----------------------------------------------------------------------------------------------

    def compare(self, a: str, b: str, loss: str, task: str) -> Difference | None:
        """Loss of a less that of b on a task, by its design; None with fewer than two splits in common."""
        both = sorted(self.splits(a, task) & self.splits(b, task))
        if len(both) < 2:
            return None
        mine, theirs = (np.array([self.losses(loss, name, task, k) for k in both]) for name in (a, b))
        found = (two_way if self.tasks[task].design == "two-way" else hierarchical)(mine, theirs)
        return Difference(found.mean, found.std_error, found.p_value, found.n_sets)

    def over_sets(self, a: str, b: str, loss: str, size: int) -> Difference | None:
        """A paired t test over all sets of a size that both have met, of means over splits.

        Loss of a less that of b; of squared error the logarithm of their ratio, so that each set counts alike.
        """
        each = [one for name in self.names(size) if (one := self._apart(a, b, loss, name)) is not None]
        if len(each) < 2:
            return None
        values = np.array(each)
        if not values.any():
            return Difference(0.0, 0.0, 1.0, len(values))
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
        return Difference(float(values.mean()), error, float(ttest_1samp(values, 0.0).pvalue), len(values))

    def _apart(self, a: str, b: str, loss: str, task: str) -> float | None:
        both = self.splits(a, task) & self.splits(b, task)
        if not both:
            return None
        mine, theirs = (np.mean([self.losses(loss, name, task, k).mean() for k in both]) for name in (a, b))
        return float(np.log(mine / theirs) if loss == "squared" else mine - theirs)

    def ranked(self, size: int) -> list[str]:
        """Methods that have met `SHARE` of the sets of a size."""
        sets = [name for name in self.names(size) if self.splits(CONSTANT, name)]
        return [m for m in self.methods(size) if sum(bool(self.splits(m, name)) for name in sets) >= SHARE * len(sets)]

    def ranks(self, loss: str, size: int) -> tuple[dict[str, float], int]:
        """Mean rank of each ranked method, and over how many sets: those with a split that all of them have met."""
        methods = self.ranked(size)
        found = []
        for name in self.names(size):
            both = set.intersection(*(self.splits(m, name) for m in methods)) if methods else set()
            if both:
                means = [np.mean([self.losses(loss, m, name, k).mean() for k in both]) for m in methods]
                found.append(rankdata(means))
        if not found:
            return {}, 0
        return dict(zip(methods, map(float, np.mean(found, axis=0)), strict=True)), len(found)

    # --- bars -----------------------------------------------------------------------------------------------------

    def coverage(self, method: str, tasks: Iterable[str], level: float) -> float:
        """Share of test rows in central intervals of nominal `level`."""
        wanted = set(tasks)
        hits = [
            np.abs(one.cdf - 0.5) <= 0.5 * level
            for (m, task, _), one in self.outcomes.items()
            if m == method and task in wanted and not one.error
        ]
        return float(np.mean(np.concatenate(hits))) if hits else np.nan

    def uncovered(self, method: str, size: int) -> dict[str, float]:
        """Sets on which intervals of nominal 90 % cover too little or too much."""
        each = {name: self.coverage(method, [name], 0.9) for name in self.names(size)}
        return {name: value for name, value in each.items() if value < COVERED[0] or value > COVERED[1]}

    def worse_than_constant(self, method: str, size: int, beyond: float = WORSE) -> list[Worse]:
        """Fits with a lower log density than the constant's, by more than so many nats a row."""
        found = []
        for one in self.fits(method, size):
            nats = float(np.mean(self.gains(one)))
            if nats < -beyond:
                found.append(Worse(one.unit.task, one.unit.split, method, nats, bool(one.notes), one.status))
        return found

    def wild(self, method: str, size: int) -> list[Outcome]:
        """Fits with a squared error beyond `WILD` times that of the best constant."""
        return [one for one in self.fits(method, size) if self._squared(one) > WILD]

    def _squared(self, one: Outcome) -> float:
        return float(self.losses("squared", one.unit.method, one.unit.task, one.unit.split).mean())

    def worse_than(self, method: str, other: str, loss: str, size: int) -> dict[str, Difference]:
        """Sets on which a method is worse than another by more than `ERRORS` standard errors of the difference."""
        each = {name: self.compare(method, other, loss, name) for name in self.names(size)}
        return {name: one for name, one in each.items() if one is not None and one.mean > ERRORS * one.error}


def best(ranks: Mapping[str, float], able: Callable[[str], bool]) -> str | None:
    """The method of lowest mean rank among some."""
    there = [name for name in ranks if able(name)]
    return min(there, key=ranks.__getitem__) if there else None
