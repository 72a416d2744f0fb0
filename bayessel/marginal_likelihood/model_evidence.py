"""`ModelEvidence`: the probability of the data under a model, with every route that led to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayessel.fit import Status, worst
from bayessel.marginal_likelihood.route import Route
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class ModelEvidence(ShownResult):
    """The log probability of the data under a model, audited.

    Attributes
    ----------
    value, error : float
        In nats: log p(data | model), all constants included, and its standard error.
    reliable : bool
        Whether routes that are independent of each other agree, or one is exact.
    verdict : str
        Why, and what to do.
    routes : tuple of Route
        What each method says.
    used : tuple of str
        Names of those that the value is the mean of.
    comparable : str
        Why the number must not be compared with that of another model; empty where it may.
    n_rows : int
        Numbers observed.
    n_coordinates : int
        Unconstrained coordinates that were integrated over.
    integrated : tuple of str
        Variables that were integrated out in closed form before.
    model_fingerprint, data_fingerprint, target_fingerprint : str
        Names of the model, of its arrays, and of what was observed.
    random_seed : int
    trace : DataTree or None
        The draws that were made for it; None where a trace was given, or none was needed.
    remarks : tuple of Status
        How the computation ended, where it did not end as asked for: Ctrl-C, a time budget.
    engine : AnnealedEvidence or None
        Of a network, what its own annealing says of pilot runs, temperatures and moves.
    """

    value: float
    error: float
    reliable: bool
    verdict: str
    routes: tuple[Route, ...]
    used: tuple[str, ...]
    comparable: str
    n_rows: int
    n_coordinates: int
    integrated: tuple[str, ...]
    model_fingerprint: str
    data_fingerprint: str
    target_fingerprint: str
    random_seed: int
    trace: Any = field(default=None, repr=False)
    remarks: tuple[Status, ...] = ()
    engine: Any = field(default=None, repr=False)

    @property
    def notes(self) -> tuple[Status, ...]:
        """All that is to be said of it, UNSURE_EVIDENCE where it is not reliable."""
        return self.remarks if self.reliable else (*self.remarks, Status.UNSURE_EVIDENCE)

    @property
    def doubt(self) -> str:
        """What to warn of; empty where it is reliable."""
        return "" if self.reliable else f"the evidence is not reliable: {self.verdict}; print it to see every route"

    @property
    def status(self) -> Status:
        """The most serious of these."""
        return worst(self.notes)

    def __float__(self) -> float:
        return self.value

    @property
    def log10(self) -> float:
        """Value in powers of ten."""
        return float(self.value / np.log(10.0))

    @property
    def sandwich(self) -> tuple[float, float]:
        """What annealing comes to from the prior up, and from the posterior down; NaN where there is none."""
        by_name = {one.name: one.value for one in self.routes}
        return by_name.get("annealing", np.nan), by_name.get("annealing, down", np.nan)

    @property
    def table(self) -> pd.DataFrame:
        """One row per route."""
        import pandas as pd

        columns = ("value", "error", "reliable", "calls", "seconds", "reason")
        rows = [[getattr(one, name) for name in columns] for one in self.routes]
        return pd.DataFrame(
            rows, columns=list(columns), index=pd.Index([one.name for one in self.routes], name="route")
        )

    def __str__(self) -> str:
        said = "reliable" if self.reliable else "NOT RELIABLE"
        lines = [f"log evidence {self.value:.3f} ± {self.error:.2g} nats, {said}: {self.verdict}"]
        width = max((len(one.name) for one in self.routes), default=0)
        for one in self.routes:
            value = f"{one.value:12.3f} ± {one.error:<8.2g}" if np.isfinite(one.value) else f"{'none':>12}" + " " * 11
            mark = "+" if one.reliable else "-"
            lines.append(f"  {mark} {one.name:{width}} {value} {one.calls:>8} calls {one.seconds:6.2f} s  {one.reason}")
        if self.comparable:
            lines.append(f"not to be compared with other models: {self.comparable}")
        return "\n".join(lines)

    def _text(self) -> str:
        return str(self)

    def _view(self) -> ResultView:
        advice = [("not to be compared with other models", self.comparable)] if self.comparable else []
        return ResultView(
            f"Log evidence {self.value:.3f} ± {self.error:.2g} nats",
            "reliable" if self.reliable else "not reliable",
            Standing.of(self.reliable and not self.comparable),
            [self.verdict],
            [*((note.words, note.value) for note in self.notes), *advice],
            self.table,
            "bs.bayes_factor(this, other), .plot(), .attach(trace)",
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Each route with two errors on either side, and the number they come to.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from bayessel.pages.figures import axes_for

        routes = [one for one in self.routes if np.isfinite(one.value)]
        ax = axes_for(ax, 6.4, 1.2 + 0.4 * max(len(routes), 1))
        for place, one in enumerate(reversed(routes)):
            error = 2.0 * one.error if np.isfinite(one.error) else 0.0
            colour = "C0" if one.reliable else "0.6"
            ax.errorbar(one.value, place, xerr=error, fmt="o", color=colour, capsize=3)
        ax.set_yticks(
            range(len(routes)), [one.name + ("" if one.reliable else " (doubtful)") for one in reversed(routes)]
        )
        if np.isfinite(self.value):
            ax.axvline(self.value, color="C1", zorder=0)
            ax.axvspan(self.value - 2 * self.error, self.value + 2 * self.error, color="C1", alpha=0.2, zorder=0)
        ax.set_xlabel("log evidence, nats (bars: two standard errors)")
        ax.set_ylim(-0.6, len(routes) - 0.4)
        return ax

    def attach(self, trace: xr.DataTree) -> xr.DataTree:
        """Put the routes into a trace, as group ``evidence``; returns the trace.

        The group has the variables ``value``, ``error``, ``reliable``, ``calls``, ``seconds`` and ``reason`` along the
        dimension ``route``, and what they come to in its attributes.
        """
        import xarray as xr

        dataset = xr.Dataset.from_dataframe(self.table)
        dataset["reason"] = dataset["reason"].astype(str)
        dataset.attrs = {
            "value": self.value,
            "error": self.error,
            "reliable": int(self.reliable),
            "verdict": self.verdict,
            "used": ", ".join(self.used),
            "n_coordinates": self.n_coordinates,
            "model_fingerprint": self.model_fingerprint,
            "data_fingerprint": self.data_fingerprint,
            "target_fingerprint": self.target_fingerprint,
        }
        if self.comparable:
            dataset.attrs["not_comparable"] = self.comparable
        trace["evidence"] = xr.DataTree(dataset)
        return trace

    def in_units(self, log_factor: float, data_fingerprint: str, target_fingerprint: str) -> ModelEvidence:
        """The same in other units of the data, whose density is larger by a factor, and the names of those data."""
        from bayessel.marginal_likelihood.verdict import judge_routes

        routes = tuple(replace(one, value=one.value + log_factor) for one in self.routes)
        value, error, reliable, verdict, used = judge_routes(routes)
        return replace(
            self,
            value=value,
            error=error,
            reliable=reliable,
            verdict=verdict,
            routes=routes,
            used=used,
            data_fingerprint=data_fingerprint,
            target_fingerprint=target_fingerprint,
        )

    def without_trace(self) -> ModelEvidence:
        """The same, without the draws."""
        return replace(self, trace=None)
