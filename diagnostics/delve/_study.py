"""What a study found: losses with standard errors, which differences are real, averages, times, failures."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayessel._check import FloatArray, as_fraction, one_of
from bayessel.diagnostics.delve._hierarchical import Hierarchical, hierarchical
from bayessel.diagnostics.delve._losses import LOSSES
from bayessel.diagnostics.delve._store import Contents, Store, TaskFacts, read
from bayessel.diagnostics.delve._task import Attribute
from bayessel.diagnostics.delve._two_way import TwoWay, two_way
from bayessel.diagnostics.delve._unit import Outcome, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Design = Hierarchical | TwoWay


@dataclass
class Study:
    """Methods on tasks, and what became of each pair.

    Attributes
    ----------
    tasks : dict of str to TaskFacts
    methods : dict of str to str
        What each method is, in words: classes and settings.
    outcomes : dict of Unit to Outcome
        By (method, task, instance).
    losses_kept : tuple of str
        Losses that were asked for.
    seed : int
    interrupted : bool
        Ctrl-C ended it.
    remaining : int
        Units that were asked for and are not done.
    """

    tasks: dict[str, TaskFacts]
    methods: dict[str, str]
    outcomes: dict[Unit, Outcome] = field(repr=False)
    losses_kept: tuple[str, ...] = LOSSES
    seed: int = 0
    interrupted: bool = False
    remaining: int = 0

    # --- what there is ------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Study:
        """Read a store, also while a study is writing to it."""
        contents = read(folder)
        kept = {loss for one in contents.outcomes.values() for loss in (*one.losses, *one.missing)}
        total = sum(task.n_instances for task in contents.tasks.values()) * len(contents.methods)
        losses = tuple(loss for loss in LOSSES if loss in kept) or LOSSES
        left = total - len(contents.outcomes)
        return cls(contents.tasks, contents.methods, contents.outcomes, losses, contents.seed, remaining=left)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything into a new store, which a study can go on with."""
        if Path(folder).exists() and any(Path(folder).iterdir()):
            raise ValueError(f"the folder {folder} is not empty; give the study a new one")
        store = Store(folder, self.seed)
        try:
            for facts in self.tasks.values():
                store.add_task(facts)
            for name, said in self.methods.items():
                store.add_method(name, said)
            for unit, outcome in self.outcomes.items():
                store.add(unit, outcome)
        finally:
            store.close()

    def only(self, methods: Iterable[str] | None = None, tasks: Iterable[str] | None = None) -> Study:
        """The part of a study with these methods, in this order, and these tasks or prototasks."""
        names = list(self.methods) if methods is None else [self._method(name) for name in methods]
        chosen = self._chosen(tasks)
        outcomes = {unit: one for unit, one in self.outcomes.items() if unit.method in names and unit.task in chosen}
        contents = Contents(self.seed, {name: self.tasks[name] for name in chosen}, {n: self.methods[n] for n in names})
        left = sum(task.n_instances for task in contents.tasks.values()) * len(names) - len(outcomes)
        return Study(contents.tasks, contents.methods, outcomes, self.losses_kept, self.seed, remaining=left)

    def losses(self, loss: str, method: str, task: str) -> FloatArray:
        """Standardised losses (I, J) of a method, one row per instance that it has them for."""
        return self._losses(self._loss(loss), self._method(method), self._task(task))[1]

    def _losses(self, loss: str, method: str, task: str) -> tuple[list[int], FloatArray]:
        facts = self.tasks[task]
        found = {
            i: outcome.losses[loss]
            for i in range(facts.n_instances)
            if (outcome := self.outcomes.get(Unit(method, task, i))) is not None and loss in outcome.losses
        }
        return list(found), np.array(list(found.values())).reshape(len(found), facts.n_cases)

    # --- estimates and tests ------------------------------------------------------------------------------------------

    def estimate(self, method: str, loss: str, task: str) -> Design | None:
        """Expected loss of a method with its standard error; None for fewer than two instances."""
        losses = self.losses(loss, method, task)
        return self._design(task)(losses) if len(losses) >= 2 else None

    def compare(self, a: str, b: str, loss: str, task: str) -> Design:
        """Difference a − b of two methods, on the instances and cases that both have losses for."""
        found = self._compared(self._method(a), self._method(b), self._loss(loss), self._task(task))
        if found is None:
            raise ValueError(
                f"{a} and {b} have fewer than two instances of {task} with {loss} loss in common; see .failures(), and "
                ".to_pandas() for what is missing"
            )
        return found

    def _compared(self, a: str, b: str, loss: str, task: str) -> Design | None:
        if (a, b, loss, task) not in self._pairs:
            (mine, left), (theirs, right) = self._losses(loss, a, task), self._losses(loss, b, task)
            both = sorted(set(mine) & set(theirs))
            if len(both) < 2:
                self._pairs[a, b, loss, task] = None
            else:
                left, right = left[[mine.index(i) for i in both]], right[[theirs.index(i) for i in both]]
                self._pairs[a, b, loss, task] = self._design(task)(left, right)
        return self._pairs[a, b, loss, task]

    @cached_property
    def _pairs(self) -> dict[tuple[str, str, str, str], Design | None]:
        return {}

    def _design(self, task: str) -> Any:
        return two_way if self.tasks[task].design == "two-way" else hierarchical

    def table(self, loss: str = "squared") -> pd.DataFrame:
        """Standardised loss of every method on every task, with its standard error.

        Returns
        -------
        DataFrame
            A row per task; columns (method, "loss"), (method, "std_error") and (method, "instances"), the number of
            instances that they come from: fewer than all where a method failed, and then not to be compared by eye.
        """
        self._loss(loss)
        rows = {}
        for task in self.tasks:
            row: dict[tuple[str, str], float] = {}
            for method in self.methods:
                losses = self._losses(loss, method, task)[1]
                found = self._design(task)(losses) if len(losses) >= 2 else None
                row[method, "loss"] = float(losses.mean()) if len(losses) else np.nan
                row[method, "std_error"] = np.nan if found is None else found.std_error
                row[method, "instances"] = len(losses)
            rows[task] = row
        table = pd.DataFrame.from_dict(rows, orient="index", columns=pd.MultiIndex.from_tuples(row))
        table.index.name = "task"
        counts = [(method, "instances") for method in self.methods]
        return table.astype(dict.fromkeys(counts, int))

    def p_values(self, task: str, loss: str = "squared") -> pd.DataFrame:
        """Significance of all differences on a task, arranged as in the figures of Rasmussen (1996, ch. 5).

        Returns
        -------
        DataFrame
            Entry [row, column] is the p-value where the column's method has the smaller loss, NaN where it has not.
            Each p-value is for itself: of twenty comparisons of equals one is below 0.05.
        """
        task, loss, names = self._task(task), self._loss(loss), list(self.methods)
        values = np.full((len(names), len(names)), np.nan)
        for i, row in enumerate(names):
            for j, column in enumerate(names):
                found = None if i == j else self._compared(row, column, loss, task)
                if found is not None and found.mean > 0.0:
                    values[i, j] = found.p_value
        return pd.DataFrame(values, index=pd.Index(names, name="worse"), columns=pd.Index(names, name="better"))

    def winners(self, loss: str = "squared", alpha: float = 0.05, tasks: Iterable[str] | None = None) -> pd.DataFrame:
        """Count the tasks on which the column's method beats the row's, p < alpha.

        Read a column for whom a method beats, a row for who beats it.
        """
        loss, level, names = self._loss(loss), as_fraction(alpha, "alpha"), list(self.methods)
        counts = np.zeros((len(names), len(names)), dtype=int)
        for task in self._chosen(tasks):
            for i, row in enumerate(names):
                for j, column in enumerate(names):
                    found = None if i == j else self._compared(row, column, loss, task)
                    counts[i, j] += found is not None and found.mean > 0.0 and found.p_value < level
        return pd.DataFrame(counts, index=pd.Index(names, name="beaten"), columns=pd.Index(names, name="beats"))

    def averages(self, by: str | None = None, loss: str = "squared") -> pd.DataFrame:
        """Average losses over tasks with the same attribute.

        Geometric means of squared and absolute losses, so that each task counts alike; arithmetic means of log losses,
        which can be negative. Only instances count that every method has losses for, and the column ``tasks`` says how
        many tasks have any; a method without a single loss is left out of this, and has NaN.

        Parameters
        ----------
        by
            An attribute of the tasks, such as "size" or "noise"; None: all tasks together.
        loss
            Name of the loss.
        """
        means = self._fair(self._loss(loss))
        if by is None:
            values: dict[str, Attribute] = {name: "all" for name in self.tasks if name in means.index}
        else:
            known = {name: facts.attributes.get(by) for name, facts in self.tasks.items()}
            if all(value is None for value in known.values()):
                there = sorted({key for facts in self.tasks.values() for key in facts.attributes})
                raise ValueError(f"no task has the attribute {by!r}; there are {', '.join(map(repr, there))}")
            values = {name: value for name, value in known.items() if value is not None and name in means.index}
        rows = {}
        for value in sorted(set(values.values()), key=lambda one: (isinstance(one, str), one)):
            part = means.loc[[name for name in values if values[name] == value]].to_numpy(dtype=float)
            with np.errstate(divide="ignore"):  # a loss may be nil
                average = part.mean(axis=0) if loss == "log" else np.exp(np.log(part).mean(axis=0))
            rows[value] = {"tasks": len(part), **dict(zip(self.methods, average, strict=True))}
        found = pd.DataFrame.from_dict(rows, orient="index", columns=["tasks", *self.methods])
        return found.rename_axis(by or "tasks")

    def _fair(self, loss: str) -> pd.DataFrame:
        """Mean losses, a row per task, over the instances that all methods have that have any anywhere."""
        found = {name: {task: self._losses(loss, name, task) for task in self.tasks} for name in self.methods}
        able = [name for name, by_task in found.items() if any(rows for rows, _ in by_task.values())]
        means = {}
        for task in self.tasks:
            common = set.intersection(*(set(found[name][task][0]) for name in able)) if able else set()
            if common:
                kept = {name: [k for k, i in enumerate(found[name][task][0]) if i in common] for name in able}
                means[task] = {name: float(found[name][task][1][kept[name]].mean()) for name in able}
        return pd.DataFrame.from_dict(means, orient="index", columns=list(self.methods), dtype=float)

    # --- costs and failures -------------------------------------------------------------------------------------------

    def to_pandas(self) -> pd.DataFrame:
        """A row per unit: mean losses, seconds, megabytes, status, warnings, error; with the task's attributes."""
        rows = []
        for unit, one in self.outcomes.items():
            attributes = self.tasks[unit.task].attributes
            row: dict[str, Any] = {"method": unit.method, "task": unit.task, "instance": unit.instance, **attributes}
            row |= {loss: float(one.losses[loss].mean()) if loss in one.losses else np.nan for loss in self.losses_kept}
            row |= {"fit_seconds": one.fit_seconds, "predict_seconds": one.predict_seconds}
            row |= {"cpu_seconds": one.cpu_seconds, "memory": one.memory, "status": one.status, "seed": one.seed}
            missing = "; ".join(f"{loss}: {why}" for loss, why in one.missing.items())
            rows.append(row | {"missing": missing, "notes": "; ".join(one.notes), "error": one.error})
        return pd.DataFrame(rows)

    def times(self) -> pd.DataFrame:
        """Seconds and megabytes per unit: medians over the instances of each task, per method."""
        table = self.to_pandas()
        if table.empty:
            return table
        columns = ["fit_seconds", "predict_seconds", "cpu_seconds", "memory"]
        return table[table["error"] == ""].groupby(["task", "method"], sort=False)[columns].median()

    def failures(self) -> pd.DataFrame:
        """Units that failed, with the loss there is none of ("all": none at all) and the error."""
        rows = [
            {"method": unit.method, "task": unit.task, "instance": unit.instance, "loss": loss, "error": said}
            | {"seed": one.seed}
            for unit, one in self.outcomes.items()
            for loss, said in one.failures.items()
        ]
        return pd.DataFrame(rows, columns=["method", "task", "instance", "loss", "error", "seed"])

    # --- pictures and pages -------------------------------------------------------------------------------------------

    def plot(self, task: str, loss: str = "squared") -> Figure:
        """Draw losses with standard errors and the p-values of all differences below them.

        `task` is a task, or a prototask for all its sizes side by side.
        """
        from bayessel.diagnostics.delve._plots import plot_tasks

        return plot_tasks(self, self._chosen([task]), self._loss(loss))

    def plot_winners(self, loss: str = "squared", alpha: float = 0.05, tasks: Iterable[str] | None = None) -> Figure:
        """Draw `winners` as a matrix."""
        from bayessel.diagnostics.delve._plots import plot_winners

        return plot_winners(self, loss, alpha, tasks)

    def plot_time(self, loss: str = "squared") -> Figure:
        """Draw average loss over seconds, a line per method, a point per size of the training sets."""
        from bayessel.diagnostics.delve._plots import plot_time

        return plot_time(self, self._loss(loss))

    def verdict(self) -> list[str]:
        """Who is best by the first loss, how sure that is, and what is missing."""
        from bayessel.diagnostics.delve._html import verdict

        return verdict(self)

    def to_html(self, path: str | os.PathLike[str], title: str = "A comparison of methods") -> Path:
        """Write everything as one page that needs no other file; return its path."""
        from bayessel.diagnostics.delve._html import page

        where = Path(path)
        where.write_text(page(self, title), encoding="utf-8")
        return where

    # --- names --------------------------------------------------------------------------------------------------------

    def _loss(self, loss: str) -> str:
        return one_of(loss, "loss", self.losses_kept)

    def _method(self, method: str) -> str:
        return one_of(method, "method", tuple(self.methods))

    def _task(self, task: str) -> str:
        return one_of(task, "task", tuple(self.tasks))

    def _chosen(self, tasks: Iterable[str] | None) -> list[str]:
        """Names of tasks; that of a prototask stands for all its sizes."""
        if tasks is None:
            return list(self.tasks)
        prototasks = tuple(dict.fromkeys(facts.prototask for facts in self.tasks.values()))
        wanted = {
            one_of(name, "task", (*self.tasks, *prototasks)) for name in ([tasks] if isinstance(tasks, str) else tasks)
        }
        return [name for name, facts in self.tasks.items() if wanted & {name, facts.prototask}]
