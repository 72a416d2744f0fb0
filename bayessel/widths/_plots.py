"""Pictures of a width comparison. They draw finished numbers and never fit anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._text import listing, number
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import DELTAS, MDL_W
from bayessel.criteria.evidence import EVIDENCE
from bayessel.pages.page import BEST, INK, LINE, SOFT, plain
from bayessel.policy import SEPARATE_WIDTHS
from bayessel.widths._posterior import WidthPosterior
from bayessel.widths._posterior_plots import draw_posterior, width_range
from bayessel.widths.curves import (
    CurveOptimum,
    DrawnFit,
    Label,
    credible_widths,
    curves,
    say,
    turning_points,
    width_of,
    with_delta,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayessel.pages.figures import ShownFigure

#: letters of a title that fit above a panel
_TITLE = 46
#: one colour and dash per kind of function
KIND_LINES = ((LINE, "-"), ("#3a7d44", "--"), ("#8e6bb0", "-."), ("#8a6d3b", ":"))


def plot_widths(
    table: pd.DataFrame, criteria: Sequence[str] | None = None, posterior: WidthPosterior | None = None
) -> ShownFigure:
    """Draw one panel per criterion over the logarithm of the width, all with the same horizontal axis.

    The best width of each criterion is a filled red dot with its number; every other local optimum is an open circle,
    a large one with its number where a good margin (3 nats, 5 % of an error) parts it from better ones; an optimum at
    the end of the grid is a triangle that points on. In the panel of the evidence the widths within 3 nats of the best
    are shaded; around an error is a band of one standard error of its difference to the best width. Several kinds of
    function are several curves.

    Parameters
    ----------
    table
        One row per width, index ``width`` sorted, a column per criterion.
    criteria
        Which columns, in which order; default: every known criterion in the table.
    posterior
        Drawn in a last panel, over the same axis: a histogram of log r, the prior, median and 95 % interval.
    """
    names = [name for name in CRITERIA if name in table.columns] if criteria is None else list(criteria)
    if not names:
        raise ValueError(f"no criterion to draw: the table has the columns {', '.join(map(str, table.columns))}")
    count = len(names) + (posterior is not None)
    across = 1 if count == 1 else 2 if count in (2, 4) else 3 if count < 7 else 4
    if posterior is not None and count == 8:
        across = 3  # leaves a corner for the legend
    down = -(-count // across)
    figure = _figure(4.2 * across, 2.7 * down + 0.2)
    axes = np.asarray(figure.subplots(down, across, sharex=True, squeeze=False)).ravel()
    for name, ax in zip(names, axes, strict=False):
        draw_criterion(ax, table, name)
    if posterior is not None:
        # draws beyond the grid are shown too
        (lo, hi), (low, high) = axes[0].get_xlim(), width_range(posterior)
        axes[0].set_xlim(min(lo, low), max(hi, high))
        draw_posterior(axes[len(names)], posterior)
        _ticks(axes[len(names)])
    for k, ax in enumerate(axes):
        if k >= count:
            ax.set_axis_off()
            if k == count:
                _legend(ax, table, names)
        elif k + across >= count:
            # the lowest panel of each column carries the numbers, also when the last row is not full
            ax.set_xlabel("kernel width r")
            ax.tick_params(labelbottom=True, which="both")
    return figure


def draw_criterion(ax: Axes, table: pd.DataFrame, name: str) -> None:
    """Draw the curves of one criterion into ``ax``."""
    criterion = CRITERIA[name]
    known = table[name].to_numpy(dtype=float)
    widths = sorted({width_of(label) for label in table.index})
    ax.set_xscale("log")
    if not criterion.in_nats and np.all(known[np.isfinite(known)] > 0):
        # errors at unfit widths are many times the best one; on a linear axis the optimum would be squeezed flat
        ax.set_yscale("log")
    frames = curves(table)
    if name == EVIDENCE.name and len(frames) == 1 and (near := credible_widths(table)):
        lo, hi = _between(np.array(widths), [width_of(label) for label in near])
        ax.axvspan(lo, hi, color=SOFT, alpha=0.3, lw=0)
    for (kind, frame), (color, dashes) in zip(frames.items(), KIND_LINES, strict=False):
        r, v = frame.index.to_numpy(dtype=float), frame[name].to_numpy(dtype=float)
        if f"{name}_diff_se" in frame:
            error = frame[f"{name}_diff_se"].to_numpy(dtype=float)
            floor = v / 3 if ax.get_yscale() == "log" else v - error  # a band down to zero has no end on this axis
            ax.fill_between(r, np.maximum(v - error, floor), v + error, color=color, alpha=0.18, lw=0)
        ax.plot(r, v, dashes, color=color, lw=1.4, label=kind.replace("_", " "))
        ax.plot(r, v, ".", color=color, ms=4 if len(r) < 60 else 2.5)
    found = turning_points(table, name)
    named: list[float] = []  # numbers beside each other would be unreadable
    for rank, optimum in enumerate(found):
        _mark(ax, widths, optimum, rank == 0, optimum.depth > criterion.negligible_loss)
        apart = all(abs(np.log(optimum.width / other)) > np.log(SEPARATE_WIDTHS) for other in named)
        if rank == 0 or (optimum.depth > criterion.negligible_loss and apart and not optimum.at_end):
            _name(ax, widths, optimum, rank == 0, criterion.higher_is_better)
            named.append(optimum.width)
    if not found:
        ax.text(0.5, 0.5, "no finite value", transform=ax.transAxes, ha="center", color=INK, fontsize=8.5)
    pad = (widths[-1] / widths[0]) ** 0.06 if len(widths) > 1 else 2.0
    ax.set_xlim(widths[0] / pad, widths[-1] * pad)
    if criterion.in_nats:
        _trim(ax, frames, name, [one.value for one in found if one.depth > criterion.negligible_loss])
    _ticks(ax)
    if len(frames) > 1:
        ax.legend(fontsize=7.5, frameon=False, loc="best")
    ax.set_title(f"{criterion.label}  ({criterion.better})", fontsize=9.5, loc="left", color=INK)
    ax.set_ylabel("nats" if criterion.in_nats else "target units²", fontsize=8)


def plot_posterior(posterior: WidthPosterior) -> ShownFigure:
    """Draw the posterior of the width alone, over the widths where its draws lie."""
    from matplotlib.ticker import MaxNLocator

    figure = _figure(4.2, 2.9)
    ax = figure.subplots()
    ax.set_xscale("log")
    low, high = width_range(posterior)
    room = max(high / low, 1.2) ** 0.3
    ax.set_xlim(low / room, high * room)
    draw_posterior(ax, posterior)
    _ticks(ax)
    if high * room**2 < 5.0 * low:
        ax.xaxis.set_major_locator(MaxNLocator(5))  # powers of ten, and their halves, may all lie beside it
    ax.set_xlabel("kernel width r")
    return figure


def plot_deltas(table: pd.DataFrame, name: str = MDL_W.name, deltas: Sequence[float] = (0.01, 0.1, 1.0)) -> ShownFigure:
    """Draw a description length for several precisions delta of what is sent, each above its own minimum."""
    figure = _figure(4.2, 2.9)
    ax = figure.subplots()
    ax.set_xscale("log")
    tops = []
    for delta, (color, dashes) in zip(deltas, (("#8a6d3b", ":"), (LINE, "-"), ("#3a7d44", "--")), strict=False):
        shifted = with_delta(table, name, delta)
        found = turning_points(shifted, name)
        if not found:
            continue
        frame = curves(shifted)[found[0].kind]
        v = frame[name].to_numpy(dtype=float) - found[0].value
        chosen = ", usual" if delta == DELTAS[name] else ""
        ax.plot(frame.index, v, dashes, color=color, lw=1.4, label=f"{delta:g}{chosen}: {say(found[0].label)}")
        ax.plot(found[0].width, 0.0, "o", ms=6, color=color, clip_on=False, zorder=5)
        tops.append(np.quantile(v[np.isfinite(v)], 0.75))
    if tops:
        ax.set_ylim(0, max(1.6 * max(tops), 1.0))
    ax.legend(title="delta and its best width", fontsize=7.5, title_fontsize=7.5, edgecolor="none", loc="upper center")
    _ticks(ax)
    ax.set_title(f"{CRITERIA[name].label} and the precision delta", fontsize=9.5, loc="left", color=INK)
    ax.set_xlabel("kernel width r")
    ax.set_ylabel("nats above the minimum", fontsize=8)
    return figure


def plot_fit(
    X: ArrayLike,
    y: ArrayLike,
    fits: Mapping[Label, DrawnFit],
    names: Sequence[str] | None = None,
    target: str = "y",
    preferred: Mapping[Label, Sequence[str]] | None = None,
    centers: ArrayLike | None = None,
    legend: bool = True,
) -> ShownFigure:
    """Draw the data and the fits at the chosen widths, one panel each.

    With one input: the data, the predictive mean and a band of two predictive standard deviations, and a circle at the
    centre of every function a sparse fit uses. With several inputs: predicted against observed, with the line on which
    a perfect prediction lies.

    Parameters
    ----------
    X, y
        Inputs (N, D) and target (N,).
    fits
        Predictions by width, or by (kind, width).
    names, target
        Names of the inputs and of the target, for the axes.
    preferred
        Criteria that prefer each width, for the titles.
    centers
        Centres of the functions (M, D).
    legend
        Explain the marks in the first panel.
    """
    if not fits:
        raise ValueError("no fit is stored with this comparison, so there is nothing to draw")
    inputs, t = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    across = min(len(fits), 3)
    down = -(-len(fits) // across)
    figure = _figure(4.6 * across, 3.4 * down)
    axes = np.asarray(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)).ravel()
    for ax in axes[len(fits) :]:
        ax.set_visible(False)
    for ax in axes[max(len(fits) - across, 0) : len(fits)]:
        ax.tick_params(labelbottom=True)  # also where the panel below is not in use
    places = None if centers is None else np.asarray(centers, dtype=float)
    for ax, (label, fit) in zip(axes, sorted(fits.items(), key=lambda pair: width_of(pair[0])), strict=False):
        draw_fit(ax, inputs, t, fit, names, target, places)
        chosen = preferred[label] if preferred and label in preferred else ()
        reason = listing([CRITERIA[name].label for name in chosen]) if chosen else ""
        if preferred and not chosen:
            reason = "separate optimum"
        count = f", {len(fit.basis)} functions" if len(fit.coef) else ""
        title = say(label) + count + (f"  ({reason})" if reason else "")
        ax.set_title(title, fontsize=9.5 if len(title) <= _TITLE else 7.5, loc="left", color=INK)
    if legend:
        axes[0].legend(fontsize=7.5, frameon=False, loc="best")
    return figure


def draw_fit(
    ax: Axes,
    X: np.ndarray[Any, Any],
    t: np.ndarray[Any, Any],
    fit: DrawnFit,
    names: Sequence[str] | None,
    target: str,
    centers: np.ndarray[Any, Any] | None = None,
) -> None:
    """Draw one fit into ``ax``."""
    from matplotlib.ticker import MaxNLocator

    many = len(t) > 1500
    size, dense = (12, 0.6) if len(t) < 300 else (6, 0.4)
    dots: dict[str, Any] = {"s": size, "color": INK, "alpha": dense, "lw": 0}
    if X.shape[1] == 1:
        x = fit.grid if len(fit.grid) else X[:, 0]
        mean, std = (fit.grid_mean, fit.grid_std) if len(fit.grid) else (fit.mean, fit.std)
        order = np.argsort(x)
        x, mean, std = x[order], mean[order], std[order]
        ax.fill_between(x, mean - 2 * std, mean + 2 * std, color=SOFT, alpha=0.45, lw=0, label="± 2 std")
        ax.scatter(X[:, 0], t, rasterized=many, label="data", **dots)
        ax.plot(x, mean, color=BEST, lw=1.6, label="mean")
        if centers is not None and (used := fit.basis[fit.basis < len(centers)]).size:
            at = centers[used, 0]
            ring: dict[str, Any] = {"s": 34, "facecolors": "none", "edgecolors": INK, "linewidths": 1.2, "zorder": 4}
            ax.scatter(at, np.interp(at, x, mean), label="functions in use", **ring)
        ax.xaxis.set_major_locator(MaxNLocator(6))
        ax.set_xlabel(plain(names[0]) if names else "x")
        ax.set_ylabel(plain(target))
    else:
        ends = [float(min(t.min(), fit.mean.min())), float(max(t.max(), fit.mean.max()))]
        ax.plot(ends, ends, color=BEST, lw=1.2, label="perfect")
        ax.scatter(t, fit.mean, rasterized=many, label="rows fitted", **dots)
        ax.set_xlabel(f"{plain(target)}, observed")
        ax.set_ylabel(f"{plain(target)}, fitted")
    ax.tick_params(labelsize=8.5)


def _figure(width: float, height: float) -> ShownFigure:
    # not pyplot's: nothing is registered, so nothing leaks in long runs and no display is needed
    from bayessel.pages.figures import new_figure

    return new_figure(width, height)


def _mark(ax: Axes, widths: Sequence[float], optimum: CurveOptimum, best: bool, deep: bool) -> None:
    shape = "o"
    if optimum.at_end and len(widths) > 1:
        shape = "<" if optimum.width < _middle(widths[0], widths[-1]) else ">"
    size = 7 if best else 6 if deep else 4
    mark: dict[str, Any] = {"ms": size, "mec": BEST, "mfc": BEST if best else "white", "mew": 1.3 if deep else 0.9}
    ax.plot(optimum.width, optimum.value, shape, zorder=6 if best else 5, clip_on=not best, **mark)


def _name(ax: Axes, widths: Sequence[float], optimum: CurveOptimum, best: bool, higher: bool) -> None:
    """Write the width of an optimum: of the best beside a line through the panel, of others at their mark."""
    if not best:
        side: dict[str, Any] = {"xytext": (0, 7 if higher else -7), "va": "bottom" if higher else "top"}
        at = (optimum.width, optimum.value)
        ax.annotate(number(at[0]), at, textcoords="offset points", ha="center", fontsize=8, color=BEST, **side)
        return
    right = optimum.width > _middle(widths[0], widths[-1])
    ax.axvline(optimum.width, color=BEST, lw=0.8, ls=":", zorder=1)
    ax.annotate(
        f"r = {number(optimum.width)}",
        # above a minimum and below a maximum there is room
        (optimum.width, 0.06 if higher else 0.9),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if right else 5, 0),
        textcoords="offset points",
        ha="right" if right else "left",
        fontsize=8.5,
        color=BEST,
    )


def _legend(ax: Axes, table: pd.DataFrame, names: Sequence[str]) -> None:
    """Explain the marks in the empty corner of the grid of panels; only those that occur."""
    found = {name: turning_points(table, name) for name in names}
    marks: list[tuple[str, str, str]] = [("o", BEST, "best width")]
    if any(len(each) > 1 for each in found.values()):
        marks.append(("o", "white", "local optimum"))
    if any(optimum.at_end for each in found.values() for optimum in each):
        marks.append((">", BEST, "optimum at the end of the grid"))
    for shape, fill, label in marks:
        ax.plot([], [], shape, color=BEST, mfc=fill, mec=BEST, label=label)
    if EVIDENCE.name in names and table.index.nlevels == 1:
        ax.fill_between([], [], color=SOFT, alpha=0.3, label="within 3 nats of the best evidence")
    if any(f"{name}_diff_se" in table for name in names):
        ax.fill_between([], [], color=LINE, alpha=0.18, label="± 1 standard error of the difference to the best")
    ax.legend(loc="center left", frameon=False, fontsize=9)


def _trim(ax: Axes, frames: Mapping[str, pd.DataFrame], name: str, deep: Sequence[float]) -> None:
    """Leave room around the curves; keep a hopeless end from squeezing the rest flat, and deep optima in."""
    sign = CRITERIA[name].sign
    parts = []
    for frame in frames.values():
        # evenly along the axis: where a search was dense, a median over the table would see nothing else
        u, v = np.log(frame.index.to_numpy(dtype=float)), frame[name].to_numpy(dtype=float)
        if np.isfinite(v).sum() > 3:
            even = np.linspace(u[0], u[-1], 60)
            parts.append(sign * np.interp(even, u[np.isfinite(v)], v[np.isfinite(v)]))
    if not parts:
        return
    known = np.concatenate([*parts, sign * np.asarray(deep)])
    top, middle, low = known.max(), np.median(known), known.min()
    if top - low > 6 * (top - middle) > 0:
        floor = min(top - 4 * (top - middle), *(sign * one - 0.3 * (top - middle) for one in deep))
        limits = floor, top + 0.3 * (top - middle)
        ax.set_ylim(limits if sign > 0 else (-limits[1], -limits[0]))


def _between(r: np.ndarray[Any, Any], near: Sequence[float]) -> tuple[float, float]:
    """Edges of the shade: half a grid step beyond its first and last width, since the grid knows no more."""
    i, j = int(np.searchsorted(r, near[0])), int(np.searchsorted(r, near[-1]))
    lo = _middle(r[i], r[i - 1]) if i else r[i]
    hi = _middle(r[j], r[j + 1]) if j + 1 < len(r) else r[j]
    return float(lo), float(hi)


def _middle(a: float, b: float) -> float:
    """Geometric mean, also of widths whose product leaves double precision."""
    return float(np.sqrt(a) * np.sqrt(b))


def _ticks(ax: Axes) -> None:
    """Plain numbers at 1, 2, 5 times powers of ten: widths are read, not computed with."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

    ax.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0,) if _decades(ax) > 2.5 else (1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    if ax.get_yscale() == "log":
        lo, hi = ax.get_ylim()
        # over less than two decades the usual log ticks would be one or two, over less than one even steps read better
        subs = (1.0,) if hi / lo > 100 else (1.0, 2.0, 5.0)
        ax.yaxis.set_major_locator(LogLocator(base=10, subs=subs) if hi / lo > 8 else MaxNLocator(6))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
    ax.tick_params(labelsize=8)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _decades(ax: Axes) -> float:
    lo, hi = ax.get_xlim()
    return float(np.log10(hi / lo)) if lo > 0 else 0.0
