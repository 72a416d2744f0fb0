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
from bayessel._files import write_whole
from bayessel.diagnostics.delve._designs import Hierarchical, TwoWay, hierarchical, turned, two_way
from bayessel.diagnostics.delve._losses import LOSSES, Brief, Group
from bayessel.diagnostics.delve._store import Asked, StudyStore, TaskFacts, read
from bayessel.diagnostics.delve._task import Attribute
from bayessel.diagnostics.delve._unit import Outcome, StudyUnit
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    from bayessel.pages.figures import ShownFigure

Design = Hierarchical | TwoWay


@dataclass
class Study(ShownResult):
    """Methods on tasks, and what became of each pair.

    Attributes
    ----------
    tasks : dict of str to TaskFacts
    methods : dict of str to str
        What each method is, in words: classes and settings.
    outcomes : dict of StudyUnit to Outcome
        By (method, task, instance).
    losses_kept : tuple of str
        Losses that were asked for.
    asked : dict
        Losses asked for, by (method, task).
    seed : int
    interrupted : bool
        Ctrl-C ended it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from bayessel.diagnostics.delve import Task, run
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> task = Task.from_arrays(X, X[:, 0], size=10, instances=2, name="plane")
    >>> study = run({"ridge": Ridge()}, task, losses=["squared"], progressbar=False)
    >>> list(study.tasks), list(study.methods), len(study.outcomes)
    (['plane 10'], ['ridge'], 2)
    """

    tasks: dict[str, TaskFacts]
    methods: dict[str, str]
    outcomes: dict[StudyUnit, Outcome] = field(repr=False)
    losses_kept: tuple[str, ...] = LOSSES
    asked: Asked = field(default_factory=dict, repr=False)
    seed: int = 0
    interrupted: bool = False

    def _view(self) -> ResultView:
        title = f"Study of {len(self.methods)} methods on {len(self.tasks)} tasks"
        left = f"{self.remaining} units are left" if self.remaining else ""
        table = self.averages("size", self.losses_kept[0]) if self.outcomes else None
        standing = Standing.REMARK if left else Standing.GOOD
        return ResultView(title, left or "complete", standing, self.verdict(), (), table, ".plot(task), .to_html(path)")

    @property
    def remaining(self) -> int:
        """Units that were asked for and are not done."""
        return sum(
            (found := self.outcomes.get(StudyUnit(method, task, i))) is None or not found.covers(losses)
            for (method, task), losses in self.asked.items()
            for i in range(self.tasks[task].n_instances)
        )

    # --- its content ------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Study:
        """Read a store, also while a study is writing to it."""
        contents = read(folder)
        kept = {loss for one in contents.outcomes.values() for loss in (*one.losses, *one.missing)}
        losses = tuple(loss for loss in LOSSES if loss in kept) or LOSSES
        return cls(contents.tasks, contents.methods, contents.outcomes, losses, contents.asked, contents.seed)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything into a new store, which a study can go on with."""
        if Path(folder).exists() and any(Path(folder).iterdir()):
            raise ValueError(f"the folder {folder} is not empty; give the study a new one")
        store = StudyStore(folder, self.seed, durable=False)
        try:
            store.begin(self.tasks.values(), self.methods, self.asked)
            for unit, outcome in self.outcomes.items():
                store.add(unit, outcome)
        finally:
            store.close()

    def only(self, methods: Iterable[str] | None = None, tasks: Iterable[str] | None = None) -> Study:
        """The part of a study with these methods, in this order, and these tasks or prototasks."""
        names = list(self.methods) if methods is None else [self._method(name) for name in methods]
        chosen = self._chosen(tasks)
        if not names or not chosen:
            raise ValueError("a study needs a method and a task at least; leave the argument out for all of them")
        outcomes = {unit: one for unit, one in self.outcomes.items() if unit.method in names and unit.task in chosen}
        asked = {pair: losses for pair, losses in self.asked.items() if pair[0] in names and pair[1] in chosen}
        tasks_kept = {name: self.tasks[name] for name in chosen}
        methods_kept = {name: self.methods[name] for name in names}
        return Study(tasks_kept, methods_kept, outcomes, self.losses_kept, asked, self.seed, self.interrupted)

    def losses(self, loss: str, method: str, task: str) -> FloatArray:
        """Standardised losses (I, J) of a method, one row per instance that it has them for."""
        return self._losses(self._loss(loss), self._method(method), self._task(task))[1]

    def _losses(self, loss: str, method: str, task: str) -> tuple[list[int], FloatArray]:
        facts = self.tasks[task]
        found = {
            i: outcome.losses[loss]
            for i in range(facts.n_instances)
            if (outcome := self.outcomes.get(StudyUnit(method, task, i))) is not None and loss in outcome.losses
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

    def differences(
        self, a: str, b: str, loss: str = "squared", tasks: Iterable[str] | None = None
    ) -> dict[str, FloatArray]:
        """Losses of a less those of b by task, for `bayessel.models.loss_differences`.

        Returns
        -------
        dict of str to array (I, J)
            For each hierarchical task the instances that both have losses for; a task with fewer than two is left out.
        """
        a, b, loss = self._method(a), self._method(b), self._loss(loss)
        chosen = [name for name in self._chosen(tasks) if self.tasks[name].design == "hierarchical"]
        both = {name: self._paired(a, b, loss, name) for name in chosen}
        found = {name: left - right for name, (left, right) in both.items() if len(left) > 1}
        if not found:
            raise ValueError(
                f"there is no hierarchical task with two instances that both {a} and {b} have {loss} loss for; of a "
                "two-way design .compare(…) is the analysis, and .failures() says what is missing"
            )
        return found

    def _paired(self, a: str, b: str, loss: str, task: str) -> tuple[FloatArray, FloatArray]:
        """Losses of both on the instances that both have losses for."""
        (mine, left), (theirs, right) = self._losses(loss, a, task), self._losses(loss, b, task)
        both = sorted(set(mine) & set(theirs))
        return left[[mine.index(i) for i in both]], right[[theirs.index(i) for i in both]]

    def _compared(self, a: str, b: str, loss: str, task: str) -> Design | None:
        if (a, b, loss, task) not in self._pairs:
            left, right = self._paired(a, b, loss, task)
            found = self._design(task)(left, right) if len(left) >= 2 else None
            self._pairs[a, b, loss, task] = found
            self._pairs[b, a, loss, task] = None if found is None else turned(found)
        return self._pairs[a, b, loss, task]

    def _beaten(self, worse: str, better: str, loss: str, task: str) -> Design | None:
        """The comparison of two methods where the second has the smaller loss; else None."""
        found = None if worse == better else self._compared(worse, better, loss, task)
        return found if found is not None and found.mean > 0.0 else None

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
        loss = self._loss(loss)
        columns: dict[tuple[str, str], list[float]] = {}
        for method in self.methods:
            found = [self._brief(method, loss, task) for task in self.tasks]
            columns[method, "loss"] = [brief.mean for brief in found]
            columns[method, "std_error"] = [brief.std_error for brief in found]
            columns[method, "instances"] = [brief.instances for brief in found]
        return pd.DataFrame(columns, index=pd.Index(list(self.tasks), name="task"))

    def _brief(self, method: str, loss: str, task: str) -> Brief:
        losses = self._losses(loss, method, task)[1]
        found = self._design(task)(losses) if len(losses) >= 2 else None
        mean = float(losses.mean()) if len(losses) else np.nan
        return Brief(mean, np.nan if found is None else found.std_error, len(losses))

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
                if (found := self._beaten(row, column, loss, task)) is not None:
                    values[i, j] = found.p_value
        return pd.DataFrame(values, index=pd.Index(names, name="worse"), columns=pd.Index(names, name="better"))

    def winners(self, loss: str = "squared", alpha: float = 0.05, tasks: Iterable[str] | None = None) -> pd.DataFrame:
        """Count the tasks on which the column's method beats the row's, p < alpha.

        Read a column for whom a method beats, a row for who beats it.
        """
        loss, level, names = self._loss(loss), as_fraction(alpha, "alpha"), list(self.methods)
        wins = self._wins(loss, level, self._chosen(tasks))
        counts = [[wins[row, column] for column in names] for row in names]
        return pd.DataFrame(counts, index=pd.Index(names, name="beaten"), columns=pd.Index(names, name="beats"))

    def _wins(self, loss: str, alpha: float, tasks: Iterable[str]) -> dict[tuple[str, str], int]:
        """Tasks on which the second method of a pair beats the first."""
        wins = {(row, column): 0 for row in self.methods for column in self.methods}
        for task in tasks:
            for row, column in wins:
                found = self._beaten(row, column, loss, task)
                wins[row, column] += found is not None and found.p_value < alpha
        return wins

    def averages(self, by: str | None = None, loss: str = "squared") -> pd.DataFrame:
        """Average losses over tasks with the same attribute.

        Geometric means of squared and absolute losses, so that each task counts alike; arithmetic means of log losses,
        which can be negative. Within a group only instances count that every method has losses for, and the column
        ``tasks`` says how many tasks have any; a method without a single loss in the group is left out, and has NaN.

        Parameters
        ----------
        by
            An attribute of the tasks, such as "size" or "noise"; None: all tasks together.
        loss
            Name of the loss.
        """
        rows = {value: {"tasks": group.tasks, **group.means} for value, group in self._groups(by, loss).items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["tasks", *self.methods]).rename_axis(by or "tasks")

    def _groups(self, by: str | None, loss: str) -> dict[Attribute, Group]:
        """Average losses of each method, by the value of an attribute."""
        known = {name: "all" if by is None else facts.attributes.get(by) for name, facts in self.tasks.items()}
        if all(value is None for value in known.values()):
            there = sorted({key for facts in self.tasks.values() for key in facts.attributes})
            raise ValueError(f"no task has the attribute {by!r}; there are {', '.join(map(repr, there))}")
        parts: dict[Attribute, list[str]] = {}
        for name, value in known.items():
            if value is not None:
                parts.setdefault(value, []).append(name)
        groups = {}
        for value in sorted(parts, key=lambda value: (isinstance(value, str), value)):
            if fair := self._fair(self._loss(loss), parts[value]):
                groups[value] = Group(len(fair), self._averaged(list(fair.values()), loss))
        return groups

    def _averaged(self, rows: list[dict[str, float]], loss: str) -> dict[str, float]:
        values = np.array([[row.get(method, np.nan) for method in self.methods] for row in rows])
        with np.errstate(divide="ignore"):  # a loss may be nil
            average = values.mean(axis=0) if loss == "log" else np.exp(np.log(values).mean(axis=0))
        return dict(zip(self.methods, map(float, average), strict=True))

    def _fair(self, loss: str, tasks: Iterable[str]) -> dict[str, dict[str, float]]:
        """Mean losses by task and method, over the instances that all methods have that have any on these tasks."""
        found = {name: {task: self._losses(loss, name, task) for task in tasks} for name in self.methods}
        able = [name for name, by_task in found.items() if any(rows for rows, _ in by_task.values())]
        means = {}
        for task in tasks:
            common = set.intersection(*(set(found[name][task][0]) for name in able)) if able else set()
            if common:
                kept = {name: [k for k, i in enumerate(found[name][task][0]) if i in common] for name in able}
                means[task] = {name: float(found[name][task][1][kept[name]].mean()) for name in able}
        return means

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

    def plot(self, task: str, loss: str = "squared") -> ShownFigure:
        """Draw losses with standard errors and the p-values of all differences below them.

        `task` is a task, or a prototask for all its sizes side by side.
        """
        from bayessel.diagnostics.delve._plots import handed_over, plot_tasks

        return handed_over(plot_tasks(self, self._chosen([task]), self._loss(loss)))

    def plot_winners(
        self, loss: str = "squared", alpha: float = 0.05, tasks: Iterable[str] | None = None
    ) -> ShownFigure:
        """Draw `winners` as a matrix."""
        from bayessel.diagnostics.delve._plots import handed_over, plot_winners

        return handed_over(plot_winners(self, loss, alpha, tasks))

    def plot_time(self, loss: str = "squared") -> ShownFigure:
        """Draw average loss over seconds, a line per method, a point per size of the training sets."""
        from bayessel.diagnostics.delve._plots import handed_over, plot_time

        return handed_over(plot_time(self, self._loss(loss)))

    def verdict(self) -> list[str]:
        """Who is best by the first loss, how sure that is, and what is missing."""
        from bayessel.diagnostics.delve._html import verdict

        return verdict(self)

    def to_html(self, path: str | os.PathLike[str], title: str = "A comparison of methods") -> Path:
        """Write everything as one page that needs no other file; return its path."""
        from bayessel.diagnostics.delve._html import page

        return write_whole(Path(path), page(self, title).encode())

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
