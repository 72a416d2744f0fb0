"""Pictures of calibration: ranks and distribution functions, with the bands they should stay in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from bayessel.diagnostics.calibration._uniformity import band, bin_edges
from bayessel.pages.page import BEST, INK, LINE, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayessel.diagnostics.calibration._geweke import Geweke
    from bayessel.diagnostics.calibration._model_probabilities import ModelProbabilities
    from bayessel.diagnostics.calibration._sbc import SBC
    from bayessel.pages.figures import ShownFigure


def plot_ranks(result: SBC, names: Sequence[str]) -> ShownFigure:
    """One row per quantity: the histogram of its ranks, and their ECDF minus the uniform one."""
    figure, axes = _grid(len(names), 2)
    for row, name in zip(axes, names, strict=True):
        ranks = result.ranks[:, _column(result.names, name)]
        color = BEST if name in result.failed else LINE
        draw_histogram(row[0], ranks, result.draws + 1, result.threshold, color)
        draw_ecdf(row[1], ranks, result.draws + 1, result.threshold, color)
        p = result.table.loc[name]
        row[0].set_title(f"{name}   χ² p = {p['chi2_p']:.2g}", fontsize=9, loc="left", color=INK)
        row[1].set_title(f"ECDF − uniform   p = {p['ecdf_p']:.2g}", fontsize=9, loc="left", color=INK)
    axes[-1][0].set_xlabel("rank of the truth among the draws", fontsize=8)
    axes[-1][1].set_xlabel("rank / draws", fontsize=8)
    return figure


def draw_histogram(ax: Axes, ranks: Any, n_values: int, level: float, color: str) -> None:
    """Counts per bin, and the range in which one of them lies but for `level` over the bins."""
    edges = bin_edges(len(ranks), n_values)
    counts = np.histogram(ranks, bins=edges - 0.5)[0]
    share = np.diff(edges) / n_values
    low, high = (stats.binom.ppf(q, len(ranks), share) for q in _tails(level / len(share)))
    ax.fill_between(
        edges, np.append(low, low[-1]), np.append(high, high[-1]), step="post", color=SOFT, alpha=0.45, lw=0
    )
    ax.step(edges, np.append(len(ranks) * share, len(ranks) * share[-1]), where="post", color=INK, lw=0.8)
    ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=color, alpha=0.75, edgecolor="white", lw=0.5)
    ax.set_xlim(0, n_values)
    ax.tick_params(labelsize=7)


def draw_ecdf(ax: Axes, ranks: Any, n_values: int, level: float, color: str) -> None:
    """Difference between the ECDF of the ranks and the uniform one, in its simultaneous band."""
    n = len(ranks)
    z, lower, upper = band(n, n_values, level)
    ecdf = np.cumsum(np.bincount(ranks, minlength=n_values))[:-1] / n
    ax.fill_between(z, lower / n - z, upper / n - z, color=SOFT, alpha=0.45, lw=0)
    ax.axhline(0.0, color=INK, lw=0.8)
    ax.plot(z, ecdf - z, color=color, lw=1.4)
    ax.set_xlim(0, 1)
    ax.tick_params(labelsize=7)


def plot_joint(result: Geweke, names: Sequence[str]) -> ShownFigure:
    """Per quantity: ECDF of the successive draws minus that of the marginal ones, over the latter."""
    columns = min(3, len(names))
    figure, axes = _grid(-(-len(names) // columns), columns)
    failed = {name.rpartition(" (")[0] for name in result.failed}
    grid = np.linspace(0.0, 1.0, 201)[1:-1]
    for k, ax in enumerate(axes.ravel()):
        if k >= len(names):
            ax.set_axis_off()
            continue
        j, rows = _column(result.names, names[k]), result.table[result.table["quantity"] == names[k]]
        marginal = np.sort(np.concatenate([result.reference[:, j], result.marginal[:, j]]))
        cuts = np.quantile(marginal, grid)
        # pointwise two-sigma band: independent draws on one side, `ess` effective ones on the other
        width = 2.0 * np.sqrt(grid * (1 - grid) * (1.0 / max(rows["ess"].min(), 1.0) + 1.0 / len(marginal)))
        ax.fill_between(grid, -width, width, color=SOFT, alpha=0.45, lw=0)
        ax.axhline(0.0, color=INK, lw=0.8)
        color = BEST if names[k] in failed else LINE
        pooled = np.sort(result.successive[:, :, j].ravel())
        for chain in result.successive[:, :, j]:
            ax.plot(
                grid,
                np.searchsorted(np.sort(chain), cuts, side="right") / len(chain) - grid,
                color=color,
                lw=0.5,
                alpha=0.5,
            )
        ax.plot(grid, np.searchsorted(pooled, cuts, side="right") / len(pooled) - grid, color=color, lw=1.5)
        ax.set_title(f"{names[k]}   |z| ≤ {rows['z'].abs().max():.1f}", fontsize=9, loc="left", color=INK)
        ax.tick_params(labelsize=7)
    figure.supxlabel("marginal distribution function", fontsize=8)
    figure.supylabel("successive − marginal", fontsize=8)
    return figure


def plot_shares(result: ModelProbabilities) -> ShownFigure:
    """Per model: the share of simulations that it made, in ranges of its probability, beside the diagonal."""
    names = result.names[:1] if len(result.names) == 2 else result.names
    figure, axes = _grid(1, len(names))
    figure.set_size_inches(3.6 * len(names), 3.4)
    for ax, name in zip(axes[0], names, strict=True):
        count, mean, share, error = (np.array(one) for one in zip(*result.ranges(name), strict=True))
        failed = [one for one in result.failed if one.endswith(f" of {name}")]
        ax.plot([0, 1], [0, 1], color=INK, lw=0.8)
        ax.vlines(mean, np.maximum(mean - 2.0 * error, 0.0), np.minimum(mean + 2.0 * error, 1.0), color=SOFT, lw=6)
        ax.plot(mean, share, "o", ms=5, color=BEST if failed else LINE)
        p = float(result.table["p"][f"ranges of {name}"])
        ax.set_title(f"{name}   {int(count.sum())} simulations, p = {p:.2g}", fontsize=9, loc="left", color=INK)
        ax.set_xlabel("probability of the model", fontsize=8)
        ax.set_ylabel("share that it made", fontsize=8)
        ax.tick_params(labelsize=7)
    return figure


def _grid(rows: int, columns: int) -> tuple[ShownFigure, Any]:
    from bayessel.pages.figures import new_figure

    figure = new_figure(3.6 * columns, 1.9 * rows + 0.4)
    return figure, np.atleast_2d(figure.subplots(rows, columns, squeeze=False))


def _tails(level: float) -> tuple[float, float]:
    return 0.5 * level, 1.0 - 0.5 * level


def _column(names: Sequence[str], name: str) -> int:
    if name not in names:
        raise ValueError(f"no quantity is called {name!r}; there are {', '.join(names)}")
    return list(names).index(name)
