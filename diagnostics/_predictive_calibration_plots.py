"""Pictures of predictive calibration: integral transforms in their band, coverage, errors over predicted ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

from bayessel._check import FloatArray
from bayessel.pages.page import BEST, INK, LINE, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayessel.diagnostics._predictive_calibration import PredictiveCalibration
    from bayessel.pages.figures import ShownFigure

#: probability that the whole of the transforms of a calibrated model lies in its band; simulations that find it
INSIDE, SIMULATIONS = 0.95, 1000
#: most values of which the band is made
MOST_VALUES = 1000


def draw(result: PredictiveCalibration) -> ShownFigure:
    """Three pictures beside each other."""
    from bayessel.pages.figures import new_figure

    figure = new_figure(10.5, 3.4)
    draw_into(list(figure.subplots(1, 3)), result)
    return figure


def draw_into(axes: Sequence[Axes], result: PredictiveCalibration) -> None:
    """The same in axes that are there."""
    first, second, third = axes
    color = LINE if result.calibrated else BEST
    _draw_transforms(first, result.pit, color)
    _draw_coverage(second, result.pit, color)
    _draw_errors(third, result, color)
    for ax in (first, second, third):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)


def band(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points and the lower and upper ends of the simultaneous 95 % band of an empirical distribution function."""
    from arviz_stats.ecdf_utils import ecdf_pit

    points, _, lower, upper = ecdf_pit(np.linspace(0.0, 1.0, n), INSIDE, SIMULATIONS)
    return points, lower, upper


def _draw_transforms(ax: Axes, pit: FloatArray, color: str) -> None:
    """Empirical distribution function minus the uniform one."""
    some = np.sort(pit)[:: -(-len(pit) // MOST_VALUES)]
    points, lower, upper = band(len(some))
    ax.fill_between(points, lower - points, upper - points, color=SOFT, alpha=0.45, lw=0)
    ax.axhline(0.0, color=INK, lw=0.8)
    at = np.linspace(0.0, 1.0, 401)
    ax.plot(at, np.searchsorted(np.sort(pit), at, side="right") / len(pit) - at, color=color, lw=1.4)
    ax.set(xlim=(0.0, 1.0), xlabel="integral transform", title="Distribution function − uniform")


def _draw_coverage(ax: Axes, pit: FloatArray, color: str) -> None:
    """Covered share of rows over the probability of the central interval."""
    levels = np.linspace(0.0, 1.0, 101)
    away = np.sort(2.0 * np.abs(pit - 0.5))
    low, high = (binom.ppf(q, len(pit), levels) / len(pit) for q in (0.025, 0.975))
    ax.fill_between(levels, low, high, color=SOFT, alpha=0.45, lw=0)
    ax.plot([0.0, 1.0], [0.0, 1.0], color=INK, lw=0.8)
    ax.plot(levels, np.searchsorted(away, levels, side="right") / len(pit), color=color, lw=1.4)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="probability of the interval", title="Rows covered")


def _draw_errors(ax: Axes, result: PredictiveCalibration, color: str) -> None:
    """Root mean squared error over the predicted one in groups of rows, with two standard errors."""
    std, error = result.prediction.std, result.target - result.prediction.mean
    order = np.argsort(std, kind="stable")
    groups = [group for group in np.array_split(order, min(10, max(2, len(std) // 15))) if len(group)]
    predicted = np.array([np.sqrt(np.mean(std[group] ** 2)) for group in groups])
    seen = np.array([np.sqrt(np.mean(error[group] ** 2)) for group in groups])
    sizes = np.array([len(group) for group in groups])
    spread = seen / np.sqrt(2.0 * sizes)  # of the root mean square of normal errors
    ax.errorbar(predicted, seen, 2.0 * spread, fmt="o", ms=4, color=color, lw=1.0)
    ends = [0.0, 1.05 * float(max(predicted.max(), (seen + 2.0 * spread).max()))]
    ax.plot(ends, ends, color=INK, lw=0.8)
    ax.set(xlabel="predicted standard deviation", title="Root mean squared error")
