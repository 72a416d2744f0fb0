"""Pictures of the posterior of the kernel width, on the axis of the criteria."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayessel._check import FloatArray
from bayessel._text import number
from bayessel.pages.page import BEST, INK, LINE, SOFT, plain
from bayessel.widths._posterior import INTERVAL, WidthPosterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: one colour per width, where each input has its own
_COLORS = (LINE, "#3a7d44", "#8e6bb0", "#8a6d3b", BEST, INK)
#: bars of a histogram: enough to see two modes, and few draws in none
_FEWEST, _MOST = 12, 40


def draw_posterior(ax: Axes, posterior: WidthPosterior) -> None:
    """Draw histograms of log r, as densities, and the prior; one width has its median and its interval as well."""
    if not posterior.n_draws:
        ax.text(0.5, 0.5, "no draws", transform=ax.transAxes, ha="center", color=INK, fontsize=8.5)
    else:
        logs = np.log(posterior.draws).reshape(-1, len(posterior.inputs) or 1)
        for k, values in enumerate(logs.T):
            heights, edges = _histogram(values)
            if not posterior.inputs:
                ax.stairs(heights, edges, fill=True, color=SOFT, alpha=0.6)
                ax.stairs(heights, edges, color=LINE, lw=1.0, label="posterior")
                _summary(ax, posterior)
            else:
                name = plain(posterior.inputs[k])
                ax.stairs(heights, edges, color=_COLORS[k % len(_COLORS)], lw=1.2, label=name if k < 6 else None)
    _prior(ax, posterior)
    ax.set_ylim(bottom=0.0)
    ax.legend(fontsize=7.5, frameon=False, loc="best")
    ax.set_title(f"posterior of the width{'s' if posterior.inputs else ''}", fontsize=9.5, loc="left", color=INK)
    ax.set_ylabel("density of log r", fontsize=8)


def width_range(posterior: WidthPosterior) -> tuple[float, float]:
    """Widths between which nearly all draws lie; without draws, nearly all of the prior."""
    if not posterior.n_draws:
        return float(np.min(posterior.prior_median)) / 20.0, float(np.max(posterior.prior_median)) * 20.0
    low, high = np.quantile(posterior.draws, [0.002, 0.998])
    return float(low), float(high)


def _histogram(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Density of log r and the edges as widths; chains that stand still have one bar."""
    bars = int(np.clip(np.sqrt(len(logs)), _FEWEST, _MOST))
    edges = np.linspace(logs.min(), logs.max(), bars + 1) if np.ptp(logs) > 1e-9 else logs[0] + np.array([-0.01, 0.01])
    heights, _ = np.histogram(logs, edges, density=True)
    return heights, np.exp(edges)


def _summary(ax: Axes, posterior: WidthPosterior) -> None:
    low, middle, high = (float(x) for x in posterior.quantile([INTERVAL[0], 0.5, INTERVAL[1]]))
    ax.axvline(middle, color=BEST, lw=0.8, ls=":")
    ax.plot([low, high], [0.0, 0.0], color=BEST, lw=3.0, solid_capstyle="butt", clip_on=False, zorder=5, label="95 %")
    ax.annotate(
        f"r = {number(float(f'{middle:.3g}'))}",
        (middle, 0.9),
        xycoords=("data", "axes fraction"),
        xytext=(5, 0),
        textcoords="offset points",
        fontsize=8.5,
        color=BEST,
    )


def _prior(ax: Axes, posterior: WidthPosterior) -> None:
    """The prior, where the axis is; those of several widths that are alike are one line."""
    lo, hi = ax.get_xlim()
    grid = np.geomspace(max(lo, 1e-300), hi, 200)
    pairs = sorted(set(zip(np.ravel(posterior.prior_median), np.ravel(posterior.prior_log_sd), strict=True)))
    for k, (median, sd) in enumerate(pairs):
        density = np.exp(-0.5 * (np.log(grid / median) / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi))
        ax.plot(grid, density, "--", color=INK, lw=1.0, label="prior" if k == 0 else None)
