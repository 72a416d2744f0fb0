"""A study as one HTML page: who is best and who beats whom, pictures, tables, failures, how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel.diagnostics.delve._plots import plot_tasks, plot_time, plot_winners
from bayessel.pages.page import (
    Cell,
    PageTable,
    Picture,
    render,
    svg,
    words,
)

if TYPE_CHECKING:
    from bayessel.diagnostics.delve._study import Study

#: attributes with more values than this are not averaged by: each would be a task or two
_MOST_VALUES = 12
#: warnings shown on the page
_MOST_WARNINGS = 60
_UNIT = {
    "squared": "Squared error over the variance of the test targets: 1 is what their mean would cost.",
    "absolute": "Absolute error over the mean absolute deviation of the test targets from their median: 1 is what the "
    "median would cost. The method's own median is judged where it has one.",
    "log": "Minus log predictive density, less that of a Gaussian with the mean and standard deviation of the test "
    "targets: 0 is what that Gaussian costs; in nats, lower is better. Methods without a density have none.",
}


def verdict(study: Study) -> list[str]:
    """Who is best by the first loss, how sure that is, and what is missing."""
    loss = study.losses_kept[0]
    said = []
    if groups := study._groups(None, loss):
        n, means = groups["all"]
        values = sorted((value, method) for method, value in means.items() if np.isfinite(value))
        least, best = values[0]
        said.append(f"Lowest {loss} loss, averaged over {n} task{'s' * (n != 1)}: {best}, {three_digits(least)}.")
        if len(values) > 1:
            beaten, (more, second) = study._wins(loss, 0.05, list(study.tasks)), values[1]
            wins, losses = beaten[second, best], beaten[best, second]
            said.append(
                f"Next is {second} with {three_digits(more)}: of {len(study.tasks)} tasks {best} is significantly "
                f"better on {wins}, {second} on {losses} (p < 0.05)."
            )
    else:
        said.append("There is no instance that every method has losses for: averages would compare different things.")
    failures = study.failures()
    if len(failures):
        names = ", ".join(f"{name} ({count})" for name, count in failures.groupby("method", sort=False).size().items())
        said.append(f"Failures: {names}. See below.")
    if study.remaining:
        said.append(f"{study.remaining} units are not done yet; what is here comes from the others.")
    return said


def facts(study: Study) -> str:
    """One line: how much of what."""
    counts = (len(study.methods), "method"), (len(study.tasks), "task"), (len(study.outcomes), "unit")
    return ", ".join(f"{n} {word}{'s' * (n != 1)}" for n, word in counts) + " of work done"


def page(study: Study, title: str = "A comparison of methods") -> str:
    """Return the page as one string of HTML that needs no other file and no network."""
    return render(
        "study.html",
        title=title,
        facts=facts(study),
        sentences=verdict(study),
        losses=[_loss(study, loss) for loss in study.losses_kept],
        time_picture=_time_picture(study),
        times=_times(study) if study.outcomes else None,
        failures=_failures(study),
        warnings=_warnings(study),
        methods=list(study.methods.items()),
        tasks=_tasks(study),
        foot=[f"Seed of the study: {study.seed}", f"bayessel {version('bayessel')}"],
    )


def three_digits(value: float) -> str:
    """Three digits."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.3f}" if 0.001 <= abs(value) < 100 else f"{value:.3g}"


def _loss(study: Study, loss: str) -> dict[str, Any]:
    """The section of a loss."""
    if not _has(study, loss):
        return {"name": loss, "any": False}
    winners = None
    if len(study.methods) > 1:
        said = f"on how many tasks each method beats each other by {loss} loss"
        winners = svg(plot_winners(study, loss, 0.05, None), said)
    prototasks = dict.fromkeys(task.prototask for task in study.tasks.values())
    return {
        "name": loss,
        "any": True,
        "unit": _UNIT[loss],
        "winners": winners,
        "mean": "Arithmetic" if loss == "log" else "Geometric",
        "averages": _averages(study, loss),
        "pictures": [
            svg(
                plot_tasks(study, study._chosen([name]), loss),
                f"{loss} losses on {name} with standard errors and p-values",
            )
            for name in prototasks
        ],
        "table": _table(study, loss),
    }


def _has(study: Study, loss: str) -> bool:
    return any(loss in one.losses for one in study.outcomes.values())


def _averages(study: Study, loss: str) -> PageTable:
    """Averages over all tasks and by every attribute that parts them into a few groups."""
    known: dict[str, set[Any]] = {}
    for task in study.tasks.values():
        for key, value in task.attributes.items():
            known.setdefault(key, set()).add(value)
    rows = []
    keys: list[str | None] = [None, *(key for key, values in known.items() if 1 < len(values) <= _MOST_VALUES)]
    for by in keys:
        for value, group in study._groups(by, loss).items():
            least = min(mean for mean in group.means.values() if np.isfinite(mean))
            cells = [Cell(three_digits(mean), "best" if mean == least else "") for mean in group.means.values()]
            name = "all tasks" if by is None else f"{by}: {value}"
            rows.append([Cell(name, "word"), Cell(str(group.tasks)), *cells])
    return PageTable(_head("", "tasks", *study.methods), rows)


def _table(study: Study, loss: str) -> PageTable:
    """Loss ± standard error; marked: not significantly worse than the best."""
    rows = []
    for name, task in study.tasks.items():
        row = {method: study._brief(method, loss, name) for method in study.methods}
        seen = [method for method in row if np.isfinite(row[method].mean)]
        best = min(seen, key=lambda method: row[method].mean) if seen else ""
        cells = [Cell(name, "word")]
        for method, (mean, std_error, count) in row.items():
            text = three_digits(mean) + (f" ± {three_digits(std_error)}" if count > 1 else "")
            text += f" ({count} of {task.n_instances})" if 0 < count < task.n_instances else ""
            found = study._compared(method, best, loss, name) if method in seen and method != best else None
            equal = found is not None and not (found.mean > 0.0 and found.p_value < 0.05)
            cells.append(Cell(text, "best" if method == best else "mark" if equal else ""))
        rows.append(cells)
    return PageTable(_head("task", *study.methods), rows)


def _time_picture(study: Study) -> Picture | None:
    loss = study.losses_kept[0]
    return svg(plot_time(study, loss), f"{loss} loss over seconds") if _has(study, loss) else None


def _times(study: Study) -> PageTable:
    rows = [
        [Cell(str(size)), *(Cell(_cost(study, method, size)) for method in study.methods)]
        for size in sorted({task.size for task in study.tasks.values()})
    ]
    return PageTable(_head("size", *study.methods), rows)


def _cost(study: Study, method: str, size: int) -> str:
    good = [
        (one.fit_seconds + one.predict_seconds, one.memory)
        for unit, one in study.outcomes.items()
        if unit.method == method and study.tasks[unit.task].size == size and not one.error
    ]
    if not good:
        return "–"
    seconds, memory = np.median(np.array(good), axis=0)
    return f"{seconds:.3g} s, {memory:.3g} MB"


def _failures(study: Study) -> PageTable | None:
    failed: dict[tuple[str, str, str], list[str]] = {}
    for unit, one in study.outcomes.items():
        for loss, error in one.failures.items():
            key = unit.method, loss, error.partition("\n")[0][:160]
            failed.setdefault(key, []).append(f"{unit.task} [{unit.instance}]")
    rows = [words((*key[:2], _some(where), key[2])) for key, where in failed.items()]
    return PageTable(words(("method", "loss", "where", "error")), rows, named=False) if rows else None


def _warnings(study: Study) -> PageTable | None:
    warned: dict[tuple[str, str], int] = {}
    for unit, one in study.outcomes.items():
        for note in one.notes:
            warned[unit.method, note[:160]] = warned.get((unit.method, note[:160]), 0) + 1
    rows = [[Cell(method, "word"), Cell(str(count)), Cell(note, "word")] for (method, note), count in warned.items()]
    head = words(("method", "units", "warning"))
    return PageTable(head, rows[:_MOST_WARNINGS], named=False) if rows else None


def _some(where: Sequence[str]) -> str:
    return ", ".join(where[:3]) + (f" and {len(where) - 3} more" if len(where) > 3 else "")


def _tasks(study: Study) -> PageTable:
    names = list(dict.fromkeys(key for task in study.tasks.values() for key in task.attributes))
    names = [name for name in names if name not in ("prototask", "size")]
    rows = []
    for name, one in study.tasks.items():
        cells = [str(one.n_inputs), str(one.n_instances), str(one.n_cases), one.design, one.hash]
        cells += [str(one.attributes.get(key, "")) for key in names]
        rows.append([Cell(name, "word"), *map(Cell, cells)])
    return PageTable(_head("task", "inputs", "training sets", "test cases", "design", "hash", *names), rows)


def _head(*names: str) -> list[Cell]:
    return [Cell(name) for name in names]
