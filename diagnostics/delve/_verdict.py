"""Better, worse, or practically the same? Probabilities from a trace of `bayessel.models.loss_differences`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import optimize, special

from bayessel._check import FloatArray, as_fraction, as_positive
from bayessel.diagnostics._convergence import Convergence, convergence
from bayessel.diagnostics._trace import posterior_of
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    from xarray import DataTree

    from bayessel.pages.figures import ShownFigure

ALL, NEW = "these tasks", "a new task"


@dataclass(frozen=True)
class Verdict(ShownResult):
    """How probable it is that one method is better than another by more than anybody cares for.

    Attributes
    ----------
    table : pandas.DataFrame
        A row per task; with several tasks also "these tasks", their average, and "a new task" of the same kind. Columns
        ``mean``, ``low`` and ``high`` of the difference, the probabilities ``<A> better``, ``equivalent`` and
        ``<B> better``, the largest of their Monte Carlo errors ``mc_error``, and ``decision``.
    rope : float
        Half-width of the region of practical equivalence, in the unit of the losses.
    methods : pair of str
        A and B; the differences are losses of A less those of B.
    probability : float
        What a decision asks for.
    nu : float
        Posterior median of the degrees of freedom: small where single cases decide averages.
    converged : Convergence
        Whether the means of the trace may be used.
    """

    table: pd.DataFrame
    rope: float
    methods: tuple[str, str]
    probability: float
    nu: float
    converged: Convergence

    @property
    def text(self) -> str:
        """A sentence per row of the table, and what stands against the draws."""
        a, b = self.methods
        lines = [
            f"Losses of {a} less those of {b}, equivalent within ±{self.rope:g}; to decide takes {self.probability:g}."
        ]
        for name, row in self.table.iterrows():
            lines.append(
                f"- {name}: {row['decision']}; {row['mean']:.3g} ({row['low']:.3g} to {row['high']:.3g}); "
                f"P({a} better) {row[f'{a} better']:.3f}, P(equivalent) {row['equivalent']:.3f}, "
                f"P({b} better) {row[f'{b} better']:.3f}"
            )
        if not self.converged.ok:
            lines.append(self.converged.text)
        return "\n".join(lines)

    def _text(self) -> str:
        return self.text

    def _view(self) -> ResultView:
        lines = self.text.replace("\n- ", "\n").splitlines()
        status = "draws may be used" if self.converged.ok else "do not use these draws yet"
        title, *said = lines
        return ResultView(title, status, Standing.of(self.converged.ok), said, (), self.table, ".plot()")

    def plot(self) -> ShownFigure:
        """Draw the intervals of the differences beside the region of practical equivalence."""
        from bayessel.pages.figures import handed_over, new_figure
        from bayessel.pages.page import plain

        rows = self.table.iloc[::-1]
        figure = new_figure(7.0, 1.2 + 0.35 * len(rows))
        axes = figure.add_subplot()
        place, mean = np.arange(len(rows)), rows["mean"].to_numpy()
        reach = np.abs(rows[["low", "high"]].to_numpy().T - mean)
        axes.axvspan(-self.rope, self.rope, color="0.9", lw=0)
        axes.axvline(0.0, color="0.6", lw=1)
        decided = (rows["decision"] != "undecided").to_numpy()
        for chosen, color in ((decided, "#0072B2"), (~decided, "0.45")):
            axes.errorbar(mean[chosen], place[chosen], xerr=reach[:, chosen], fmt="o", ms=5, color=color)
        said = [plain(f"{name}: {decision}") for name, decision in zip(rows.index, rows["decision"], strict=True)]
        axes.set_yticks(place, said)
        a, b = map(plain, self.methods)
        axes.set_xlabel(f"loss of {a} less loss of {b}; intervals of {self.probability:.0%}, band ±{self.rope:g}")
        axes.spines[["top", "right", "left"]].set_visible(False)
        return handed_over(figure)


def verdict(
    trace: DataTree, rope: float, *, methods: tuple[str, str] = ("A", "B"), probability: float = 0.95
) -> Verdict:
    """Say which of two methods is better, or that they are practically the same, or that it is not known.

    Parameters
    ----------
    trace : xarray.DataTree
        Draws of `bayessel.models.loss_differences`, by any sampler.
    rope : float
        Region of practical equivalence: a difference of no more than this, either way, does not matter to you. In the
        unit of the losses: of DELVE's standardised squared loss 0.01 is one per cent of the variance of the targets.
    methods : pair of str
        Names of A and B, where the differences are losses of A less those of B.
    probability : float
        A decision needs at least this posterior probability; so do the intervals, which are central.

    Returns
    -------
    Verdict
        ``print`` it, or read ``.table``.

    Notes
    -----
    Beside a p-value it can also say that two methods are the same: "undecided" is not "equivalent". "A new task" is
    drawn from N(mu_all, tau²), so it is decided only where tasks of this kind hardly differ.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> y = {name: 0.1 + 0.2 * rng.standard_t(3.0, size=(6, 40)) for name in ("first", "second")}
    >>> trace = bs.sample(bs.models.loss_differences(y), draws=500, tune=50, chains=2, random_seed=1, progressbar=False)
    >>> list(bs.diagnostics.delve.verdict(trace, rope=0.01).table["decision"].iloc[:3])
    ['B better', 'B better', 'B better']
    """
    width, level = as_positive(rope, "rope"), as_fraction(probability, "probability")
    if isinstance(methods, str) or len(methods) != 2 or str(methods[0]) == str(methods[1]):
        raise ValueError(f"methods must be two different names, got {methods!r}")
    a, b = (str(name) for name in methods)
    there = posterior_of(trace, None)
    if not {"mu", "omega"} <= set(there.data_vars):
        raise ValueError(
            "verdict needs a trace of bayessel.models.loss_differences, with the variables mu and omega; this one has "
            + ", ".join(map(str, there.data_vars))
        )
    several = "mu_all" in there
    mu = there["mu"].transpose("chain", "draw", ...).values
    names = (
        [str(name) for name in there["task"].values] if "task" in there.coords else list(map(str, range(mu.shape[-1])))
    )
    rows = {name: _row(mu[..., k], width, level) for k, name in enumerate(names)}
    if several:
        rows[ALL] = _row(mu.mean(axis=-1), width, level)
        rows[NEW] = _new_task(there["mu_all"].values, there["tau"].values, width, level)
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")
    table.columns = pd.Index(["mean", "low", "high", f"{a} better", "equivalent", f"{b} better", "mc_error"])
    likely = table[[f"{a} better", "equivalent", f"{b} better"]]
    table["decision"] = np.where(likely.max(axis=1) >= level, likely.idxmax(axis=1), "undecided")
    nu = float(np.median(np.asarray((there if "nu" in there else trace["constant_data"])["nu"].values)))
    looked = ["mu", "omega", *(["mu_all", "tau"] if several else [])]
    return Verdict(table, width, (a, b), level, nu, convergence(trace, looked))


def _row(x: FloatArray, rope: float, level: float) -> list[float]:
    """Mean, interval, three probabilities and their largest Monte Carlo error, from draws (chain, draw)."""
    shares = [x < -rope, np.abs(x) <= rope, x > rope]
    low, high = np.quantile(x, [0.5 - 0.5 * level, 0.5 + 0.5 * level])
    return [x.mean(), low, high, *(one.mean() for one in shares), _error(x, np.array([one.mean() for one in shares]))]


def _error(x: FloatArray, p: FloatArray) -> float:
    """Monte Carlo error of probabilities; none of them is known to be 0 or 1 by so many draws."""
    import arviz as az

    with np.errstate(all="ignore"):
        effective = float(az.ess(x, method="bulk")) if np.ptp(x) > 0.0 and x.shape[1] >= 4 else float(x.size)
    effective = effective if effective > 1.0 else 1.0
    p = (p * effective + 1.0) / (effective + 2.0)
    return float(np.sqrt(p * (1.0 - p) / effective).max())


def _new_task(centre: FloatArray, spread: FloatArray, rope: float, level: float) -> list[float]:
    """The same for N(centre, spread²), averaged over the draws of both."""
    import arviz as az

    below = [special.ndtr((at - centre) / spread) for at in (-rope, rope)]
    parts = [below[0], below[1] - below[0], 1.0 - below[1]]
    ends = centre - 9.0 * spread, centre + 9.0 * spread
    low, high = (
        optimize.brentq(lambda at, q=q: special.ndtr((at - centre) / spread).mean() - q, ends[0].min(), ends[1].max())
        for q in (0.5 - 0.5 * level, 0.5 + 0.5 * level)
    )
    error = max(float(az.mcse(one, method="mean")) if np.ptp(one) > 0.0 else 0.0 for one in parts)
    return [centre.mean(), low, high, *(one.mean() for one in parts), error]
