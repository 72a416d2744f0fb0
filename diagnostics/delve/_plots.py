"""Pictures of a study. They draw finished numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel.diagnostics.delve._designs import FEW_SETS, TwoWay
from bayessel.pages.figures import ShownFigure, new_figure
from bayessel.pages.figures import handed_over as handed_over
from bayessel.pages.page import INK, LINE, SOFT, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayessel.diagnostics.delve._study import Study
#: losses of a method beyond this are off the graph, where others are not: no better than guessing
_CEILING = {"squared": 1.2, "absolute": 1.2, "log": 0.5}
#: p-values above so many per cent are not written
_WRITTEN = 9
_COLOURS = (LINE, "#c8553d", "#3a7d44", "#8e6bb0", "#8a6d3b", "#2a9d8f", "#b5838d", "#4f5d75", "#d08c00", "#6a994e")


def colour(k: int) -> str:
    """Of the method of that number."""
    return _COLOURS[k % len(_COLOURS)]


def percent(found: Any) -> int | None:
    """A p-value in per cent, rounded up, as Rasmussen (1996, section 5.3) prints it; None if it is above nine.

    Fewer than four training sets with a common test set can say 5 at best.
    """
    if not np.isfinite(found.p_value):
        return None
    value = max(1, int(np.ceil(100.0 * found.p_value - 1e-9)))
    if isinstance(found, TwoWay) and found.n_sets < FEW_SETS:
        value = max(value, 5)
    return value if value <= _WRITTEN else None


def plot_tasks(study: Study, tasks: Sequence[str], loss: str) -> ShownFigure:
    """Draw losses with standard errors side by side, a frame per task, and below them p-values of all differences.

    Rasmussen (1996, figure 5.3). Short lines: expected losses; bars: one standard error on both sides. In the matrix a
    number is a p-value in per cent, rounded up, at most 9: the method of the row is beaten by that of the column. An
    arrow: the loss is off the graph. ∅: there is none.
    """
    methods = list(study.methods)
    count = len(methods)
    longest = max(map(len, methods))
    left, frame = 0.35 + 0.085 * longest, max(1.1, 0.27 * count)
    lower, upper, bottom, top = 0.21 * count + 0.1, 2.6, 0.25, 0.55
    width = left + len(tasks) * (frame + 0.12) + 0.1
    height = bottom + lower + upper + top + 0.08
    figure = ShownFigure(figsize=(width, height))
    grid = figure.add_gridspec(
        2,
        len(tasks),
        height_ratios=(upper, lower),
        left=left / width,
        right=1 - 0.1 / width,
        bottom=bottom / height,
        top=1 - top / height,
        wspace=0.12 / frame,
        hspace=0.16 / (upper + lower),
    )
    values = {task: _estimates(study, task, loss) for task in tasks}
    low, high = _range(np.concatenate(list(values.values())), loss)
    for k, task in enumerate(tasks):
        above, below = figure.add_subplot(grid[0, k]), figure.add_subplot(grid[1, k])
        _losses(above, values[task], low, high)
        facts = study.tasks[task]
        same = all(study.tasks[one].prototask == facts.prototask for one in tasks)
        above.set_title(str(facts.size) if same else plain(task), fontsize=9)
        _matrix(below, study, task, loss, methods)
        if k == 0:
            below.set_yticks(range(count), map(plain, methods), fontsize=8)
            below.tick_params(length=0)
            for i, label in enumerate(below.get_yticklabels()):
                label.set_color(colour(i))
        else:
            above.tick_params(labelleft=False)
    first = study.tasks[tasks[0]]
    name = first.prototask if all(study.tasks[one].prototask == first.prototask for one in tasks) else ""
    figure.text(0.5, 1 - 0.18 / height, f"{plain(name)}  {loss} loss".strip(), ha="center", va="center", fontsize=10)
    return figure


def _estimates(study: Study, task: str, loss: str) -> Any:
    """Loss and standard error of each method, (M, 2)."""
    return np.array([study._brief(method, loss, task)[:2] for method in study.methods])


def _range(values: Any, loss: str) -> tuple[float, float]:
    """Ends of the axis of losses: zero, or the lowest, and the highest that is worth showing."""
    middle, error = values[:, 0], np.nan_to_num(values[:, 1])
    seen = np.isfinite(middle)
    if not seen.any():
        return 0.0, 1.0
    shown = seen & (middle <= _CEILING[loss])
    shown = shown if shown.any() else seen
    high = float((middle + error)[shown].max())
    low = float((middle - error)[shown].min()) if loss == "log" else 0.0
    room = 0.06 * (high - low) or 0.1
    return low - (room if loss == "log" else 0.0), high + room


def _losses(axes: Axes, values: Any, low: float, high: float) -> None:
    for k, (middle, error) in enumerate(values):
        if not np.isfinite(middle):
            axes.text(k, low + 0.02 * (high - low), "∅", ha="center", va="bottom", fontsize=8, color=INK)
        elif middle > high:
            head = {"arrowstyle": "->", "color": colour(k)}
            axes.annotate("", (k, high), (k, high - 0.1 * (high - low)), arrowprops=head)
        else:
            axes.plot([k - 0.3, k + 0.3], [middle, middle], color=colour(k), lw=1.8, solid_capstyle="butt")
            if np.isfinite(error):
                axes.plot([k, k], [middle - error, middle + error], color=colour(k), lw=1.2)
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_ylim(low, high)
    axes.set_xticks([])
    axes.tick_params(labelsize=8)
    if low < 0.0 < high:
        axes.axhline(0.0, color=SOFT, lw=0.6, zorder=0)


def _matrix(axes: Axes, study: Study, task: str, loss: str, methods: Sequence[str]) -> None:
    count, empty = len(methods), []
    for i, row in enumerate(methods):
        for j, column in enumerate(methods):
            found = study._beaten(row, column, loss, task)
            said = None if found is None else percent(found)
            if said is None:
                empty.append((j, i))
            else:
                axes.text(j, i, str(said), ha="center", va="center", fontsize=8, color=colour(j), weight="bold")
    axes.plot(*zip(*empty, strict=True), ".", ms=1.5, color=SOFT)
    axes.set_xlim(-0.6, count - 0.4)
    axes.set_ylim(count - 0.4, -0.6)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)


def plot_winners(study: Study, loss: str, alpha: float, tasks: Iterable[str] | None) -> ShownFigure:
    """Draw on how many tasks the method of the column beats that of the row."""
    table = study.winners(loss, alpha, tasks)
    counts, names = table.to_numpy(), list(study.methods)
    n = len(study._chosen(tasks))
    size = 0.42 * len(names)
    longest = 0.085 * max(map(len, names))
    left, bottom = longest + 0.5, 0.4
    width, height = left + max(size + 0.2, 0.5 * size + 0.85), bottom + size + longest + 0.2  # half the label: 0.85
    figure = ShownFigure(figsize=(width, height))
    axes = figure.add_axes(
        (left / width, bottom / height, size / width, size / height),
    )
    axes.imshow(counts / max(n, 1), cmap="Blues", vmin=0.0, vmax=1.4)
    for i in range(len(names)):
        for j in range(len(names)):
            if i != j:
                axes.text(j, i, str(counts[i, j]), ha="center", va="center", fontsize=8, color=INK)
    axes.set_xticks(range(len(names)), map(plain, names), rotation=90, fontsize=8)
    axes.set_yticks(range(len(names)), map(plain, names), fontsize=8)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    axes.set_ylabel("beaten", fontsize=8)
    axes.set_xlabel(f"tasks of {n} on which\nthe column beats the row", fontsize=8)
    axes.xaxis.set_label_position("bottom")
    return figure


def plot_time(study: Study, loss: str) -> ShownFigure:
    """Draw average loss over time, a line per method, a point per size of the training sets.

    Averages are geometric as in `Study.averages`, and over the same prototasks at every size: those that have all sizes
    that most prototasks have.
    """
    sizes, tasks = _full(study, loss)
    figure = new_figure(6.4, 4.2)
    axes = figure.add_subplot()
    average = study.only(tasks=tasks)._groups("size", loss)
    for k, method in enumerate(study.methods):
        seconds = {size: _seconds(study, method, [t for t in tasks if study.tasks[t].size == size]) for size in sizes}
        at = [s for s in sizes if np.isfinite(seconds[s]) and s in average and np.isfinite(average[s].means[method])]
        x, y = [seconds[size] for size in at], [average[size].means[method] for size in at]
        axes.plot(x, y, "-o", ms=3.5, lw=1.0, color=colour(k))
        if at:
            axes.annotate(
                plain(method), (x[-1], y[-1]), (4, 3), textcoords="offset points", fontsize=8, color=colour(k)
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    if loss != "log" and all(value != 0.0 for group in average.values() for value in group.means.values()):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.tick_params(axis="y", which="minor", labelsize=7)
    axes.set_xlabel("seconds for a fit and its predictions")
    axes.set_ylabel(f"{loss} loss, average of {len(tasks) // max(1, len(sizes))} prototasks")
    axes.set_title(f"From left to right: {', '.join(map(str, sizes))} training cases", fontsize=9)
    axes.margins(x=0.15)
    return figure


def _seconds(study: Study, method: str, tasks: Sequence[str]) -> float:
    """Geometric mean of the time for a fit and its predictions, over units that did not fail."""
    spent = [
        max(one.fit_seconds + one.predict_seconds, 1e-4)
        for unit, one in study.outcomes.items()
        if unit.method == method and unit.task in tasks and not one.error
    ]
    return float(np.exp(np.mean(np.log(spent)))) if spent else np.nan


def _full(study: Study, loss: str) -> tuple[list[int], list[str]]:
    """Sizes that at least half as many prototasks have as any size; tasks of the prototasks that have all of them."""
    seen = {unit.task for unit, one in study.outcomes.items() if loss in one.losses}
    there = [facts for name, facts in study.tasks.items() if name in seen]
    by_size: dict[int, set[str]] = {}
    for facts in there:
        by_size.setdefault(facts.size, set()).add(facts.prototask)
    if not by_size:
        raise ValueError(f"there are no {loss} losses to average")
    most = max(map(len, by_size.values()))
    sizes = sorted(size for size, names in by_size.items() if 2 * len(names) >= most)
    while not (full := set.intersection(*(by_size[size] for size in sizes))):
        sizes.remove(min(sizes, key=lambda size: len(by_size[size])))
    return sizes, [facts.name for facts in there if facts.prototask in full and facts.size in sizes]
