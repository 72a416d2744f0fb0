"""A study as one HTML page: who is best and who beats whom, pictures, tables, failures, how to read it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel.diagnostics.delve._plots import plot_tasks, plot_time, plot_winners
from bayessel.pages import STYLE, svg

if TYPE_CHECKING:
    from bayessel.diagnostics.delve._study import Study

#: attributes with more values than this are not averaged by: each would be a task or two
_MOST_VALUES = 12
_EXTRA = """
img.own { display: block; max-width: 100%; height: auto; margin: .5rem 0; }
code { font-size: .85em; overflow-wrap: anywhere; }
td.mark { background: #e6eef5; }
nav { margin: .5rem 0; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: #2f6690; }
"""
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
        said.append(f"Lowest {loss} loss, averaged over {n} task{'s' * (n != 1)}: {best}, {number(least)}.")
        if len(values) > 1:
            beaten, (more, second) = study._wins(loss, 0.05, list(study.tasks)), values[1]
            wins, losses = beaten[second, best], beaten[best, second]
            said.append(
                f"Next is {second} with {number(more)}: of {len(study.tasks)} tasks {best} is significantly "
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
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="facts">{escape(facts(study))}</p>',
        '<div class="verdict">' + "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict(study)) + "</div>",
        *(_loss(study, loss, first=k == 0) for k, loss in enumerate(study.losses_kept)),
        "<h2>Time and memory</h2>",
        _times(study),
        _failures(study),
        "<h2>How to read it</h2>",
        _guide(study),
        "<h2>Methods</h2>",
        _methods(study),
        "<h2>Tasks</h2>",
        _tasks(study),
        f"<footer><p>Seed of the study: {study.seed}</p><p>bayessel {escape(version('bayessel'))}</p></footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{_EXTRA}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def number(value: float) -> str:
    """Three digits."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.3f}" if 0.001 <= abs(value) < 100 else f"{value:.3g}"


def _loss(study: Study, loss: str, first: bool) -> str:
    """The section of a loss, the first one open."""
    if not any(loss in one.losses for one in study.outcomes.values()):
        return f"<h2>{loss.capitalize()} loss</h2><p>No method has any.</p>"
    body = [f"<p>{escape(_UNIT[loss])}</p>"]
    if len(study.methods) > 1:
        alt = f"on how many tasks each method beats each other by {loss} loss"
        body.append(_own(plot_winners(study, loss, 0.05, None), alt))
    body.append(_averages(study, loss))
    prototasks = dict.fromkeys(task.prototask for task in study.tasks.values())
    for name in prototasks:
        tasks = study._chosen([name])
        body.append(_own(plot_tasks(study, tasks, loss), f"{loss} losses on {name} with standard errors and p-values"))
    body.append(_table(study, loss))
    inside = "\n".join(body)
    if first:
        return f"<h2>{loss.capitalize()} loss</h2>\n{inside}"
    return f"<h2>{loss.capitalize()} loss</h2>\n<details><summary>show</summary>\n{inside}\n</details>"


def _own(figure: Any, description: str) -> str:
    return svg(figure, description).replace("<img ", '<img class="own" ', 1)


def _averages(study: Study, loss: str) -> str:
    """Averages over all tasks and by every attribute that parts them into a few groups."""
    known: dict[str, set[Any]] = {}
    for task in study.tasks.values():
        for key, value in task.attributes.items():
            known.setdefault(key, set()).add(value)
    body = []
    keys: list[str | None] = [None, *(key for key, values in known.items() if 1 < len(values) <= _MOST_VALUES)]
    for by in keys:
        for value, group in study._groups(by, loss).items():
            least = min(mean for mean in group.means.values() if np.isfinite(mean))
            cells = "".join(_cell(number(mean), "best" if mean == least else "") for mean in group.means.values())
            name = "all tasks" if by is None else f"{by}: {value}"
            body.append(f"<tr><th class=word>{escape(name)}</th><td>{group.tasks}</td>{cells}</tr>")
    if not body:
        return "<p>No averages: there is no instance that every method has losses for.</p>"
    head = ["", "tasks", *study.methods]
    kind = "Arithmetic" if loss == "log" else "Geometric"
    said = (
        f"<p>{kind} means over tasks, and instances of them, that every method has losses for that has any in the "
        "group; the best in bold.</p>"
    )
    return said + _framed(head, body)


def _table(study: Study, loss: str) -> str:
    """Loss ± standard error; shaded: not significantly worse than the best."""
    body = []
    for name, facts in study.tasks.items():
        row = {method: study._brief(method, loss, name) for method in study.methods}
        seen = [method for method in row if np.isfinite(row[method].mean)]
        best = min(seen, key=lambda method: row[method].mean) if seen else ""
        cells = []
        for method, (mean, std_error, count) in row.items():
            text = number(mean) + (f" ± {number(std_error)}" if count > 1 else "")
            text += f" ({count} of {facts.n_instances})" if 0 < count < facts.n_instances else ""
            found = study._compared(method, best, loss, name) if method in seen and method != best else None
            equal = found is not None and not (found.mean > 0.0 and found.p_value < 0.05)
            cells.append(_cell(text, "best" if method == best else "mark" if equal else ""))
        body.append(f"<tr><th class=word>{escape(name)}</th>{''.join(cells)}</tr>")
    said = (
        "<p>Loss ± standard error. Bold: the lowest of the row. Blue: not significantly worse than that (p ≥ 0.05). "
        "Counts in brackets: the method failed on the other instances, so its average is over easier or harder "
        "ones.</p>"
    )
    return said + _framed(["task", *study.methods], body)


def _times(study: Study) -> str:
    if not study.outcomes:
        return ""
    parts = []
    loss = study.losses_kept[0]
    if any(loss in one.losses for one in study.outcomes.values()):
        parts.append(_own(plot_time(study, loss), f"{loss} loss over seconds"))
    body = []
    for size in sorted({facts.size for facts in study.tasks.values()}):
        cells = "".join(f"<td>{_cost(study, method, size)}</td>" for method in study.methods)
        body.append(f"<tr><th>{size}</th>{cells}</tr>")
    said = (
        "<p>Medians over all units with training sets of that size: seconds for fit and predictions, megabytes that "
        "the process grew by.</p>"
    )
    return "".join(parts) + said + _framed(["size", *study.methods], body)


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


def _failures(study: Study) -> str:
    failed: dict[tuple[str, str, str], list[str]] = {}
    warned: dict[tuple[str, str], int] = {}
    for unit, one in study.outcomes.items():
        for loss, error in one.failures.items():
            key = unit.method, loss, error.partition("\n")[0][:160]
            failed.setdefault(key, []).append(f"{unit.task} [{unit.instance}]")
        for note in one.notes:
            warned[unit.method, note[:160]] = warned.get((unit.method, note[:160]), 0) + 1
    parts = ["<h2>Failures and warnings</h2>"]
    if failed:
        rows = ["".join(_word(text) for text in (*key[:2], _some(where), key[2])) for key, where in failed.items()]
        parts.append(_framed(["method", "loss", "where", "error"], [f"<tr>{row}</tr>" for row in rows], words=True))
    else:
        parts.append("<p>No unit failed.</p>")
    if warned:
        rows = [_word(method) + _cell(str(count)) + _word(note) for (method, note), count in warned.items()]
        parts.append("<details><summary>warnings of the methods</summary>")
        table = _framed(["method", "units", "warning"], [f"<tr>{row}</tr>" for row in rows[:60]], words=True)
        parts.append(table + "</details>")
    return "".join(parts)


def _some(where: Sequence[str]) -> str:
    return ", ".join(where[:3]) + (f" and {len(where) - 3} more" if len(where) > 3 else "")


def _guide(study: Study) -> str:
    entries = [
        (
            "Pictures of losses",
            "A frame per size of the training sets. Short lines: expected losses; bars: one standard error, over "
            "training sets and test cases. Below, numbers are p-values in per cent, rounded up, none above 9: the "
            "method of the row is beaten by that of the column, whose colour the number has. Arrows: off the graph. "
            "∅: no loss.",
        ),
        (
            "Bars and p-values disagree",
            "They may: bars are each method's own, p-values are of differences on the same cases, in which what both "
            "methods find hard cancels.",
        ),
        (
            "p-values",
            "Hierarchical design: t test on the averages of the training sets, which have test cases of their own. "
            "Two-way design: quasi-F test, one test set for all; with fewer than four training sets p is 5 % at best. "
            "Every test is for itself: of 100 comparisons of equals five are below 0.05. A large p-value does not say "
            "that methods are equal.",
        ),
        (
            "Outliers",
            "One wild loss inflates the standard error and hides a difference that all other cases agree on: look at "
            "the absolute loss too.",
        ),
    ]
    return "<dl>" + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in entries) + "</dl>"


def _methods(study: Study) -> str:
    items = (f"<dt>{escape(a)}</dt><dd><code>{escape(b)}</code></dd>" for a, b in study.methods.items())
    return f"<dl>{''.join(items)}</dl>"


def _tasks(study: Study) -> str:
    names = list(dict.fromkeys(key for task in study.tasks.values() for key in task.attributes))
    names = [name for name in names if name not in ("prototask", "size")]
    body = []
    for name, one in study.tasks.items():
        cells = [str(one.n_inputs), str(one.n_instances), str(one.n_cases), one.design, one.hash]
        cells += [str(one.attributes.get(key, "")) for key in names]
        body.append(f"<tr><th class=word>{escape(name)}</th>" + "".join(map(_cell, cells)) + "</tr>")
    return _framed(["task", "inputs", "training sets", "test cases", "design", "hash", *names], body)


def _cell(text: str, mark: str = "") -> str:
    return f"<td{f' class={mark}' if mark else ''}>{escape(text)}</td>"


def _word(text: str) -> str:
    return f"<td class=word>{escape(text)}</td>"


def _framed(head: Sequence[str], rows: Sequence[str], words: bool = False) -> str:
    kind = " class=word" if words else ""
    top = "".join(f"<th{kind}>{escape(name)}</th>" for name in head)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead>\n<tbody>'
        + "\n".join(rows)
        + "</tbody></table></div>"
    )
