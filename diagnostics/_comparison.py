"""The result of comparing kernel widths: what it prefers, what it looks like, and how it is kept."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayessel._check import FloatArray, one_of
from bayessel.diagnostics._curves import CRITERIA, Optimum, Prediction, number, optima, preferences
from bayessel.diagnostics._verdict import verdict_sentences

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataTree


def _versions() -> dict[str, str]:
    def of(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "unknown"

    return {name: of(name) for name in ("bayessel", "numpy", "scipy", "pandas")} | {"python": platform.python_version()}


@dataclass(frozen=True, eq=False)
class WidthComparison:
    """Criteria over kernel widths, with the data they were computed from.

    Attributes
    ----------
    table
        One row per finished width (index ``width``): the criteria, gamma, noise_std, lam of the evidence fit, the lam_*
        of the ridge criteria, n_basis, status, and notes (further statuses).
    fits
        Predictions of the evidence fit at each width some criterion prefers.
    fingerprint
        Names the data; results with different fingerprints come from different data.
    interrupted
        True after Ctrl-C: only the finished widths are in the table.
    """

    table: pd.DataFrame
    criteria: tuple[str, ...]
    X: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    fits: dict[float, Prediction] = field(repr=False)
    names: tuple[str, ...]
    target: str
    model: str
    kind: str
    n_centers: int
    bias: bool
    planned: int
    interrupted: bool
    fingerprint: str
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=_versions, repr=False)

    def best(self, criterion: str = "evidence") -> float:
        """Return the width r this criterion prefers among those compared."""
        found = self.optima(criterion)
        if not found:
            raise ValueError(f"{criterion} has no finite value at any width: look at the column status of .table")
        return found[0].width

    def optima(self, criterion: str = "evidence") -> tuple[Optimum, ...]:
        """Return every local optimum over the widths as (width, value, at_end), best first."""
        one_of(criterion, "criterion", self.criteria)
        return optima(self.table.index, self.table[criterion], CRITERIA[criterion].higher_is_better)

    def verdict(self) -> str:
        """Say which width each criterion prefers, whether they agree, and what to be wary of."""
        return " ".join(self._sentences())

    def _sentences(self) -> list[str]:
        return verdict_sentences(self.table, self.criteria, self.interrupted, self.planned)

    def facts(self) -> str:
        """Return one line on what was compared."""
        n, d = self.X.shape
        scaled = " (standardised)"
        standardised = all(name.endswith(scaled) for name in self.names)
        inputs = ", ".join(name.removesuffix(scaled) if standardised else name for name in self.names[:6])
        inputs += ", ..." if d > 6 else ""
        shape = "no bias" if not self.bias else "bias"
        return (
            f"{n} rows, target {self.target}, {d}{' standardised' if standardised else ''} "
            f"input{'s' if d > 1 else ''} ({inputs}); {self.n_centers} "
            f"{self.kind.replace('_', ' ')} functions, {shape}; {len(self.table)} widths from "
            f"{number(self.table.index[0])} to {number(self.table.index[-1])}"
        )

    def plot(self, criteria: Sequence[str] | None = None) -> Figure:
        """Draw the criteria over the width, one panel each; returns a matplotlib Figure."""
        from bayessel.diagnostics._plots import plot_widths

        for name in criteria or ():
            one_of(name, "criterion", self.criteria)
        return plot_widths(self.table, self.criteria if criteria is None else criteria)

    def plot_fit(self, width: float | None = None) -> Figure:
        """Draw the stored fits, or the one at ``width``, over the data; returns a matplotlib Figure."""
        from bayessel.diagnostics._plots import plot_fit

        fits = self.fits
        if width is not None:
            near = [r for r in fits if np.isclose(r, width, rtol=1e-9)]
            if not near:
                kept = ", ".join(number(r) for r in fits)
                raise ValueError(f"fits are kept at the preferred widths only ({kept}), not at {width}")
            fits = {near[0]: fits[near[0]]}
        return plot_fit(self.X, self.y, fits, self.names, self.target, preferences(self.table, self.criteria))

    def to_html(self, path: str | Path) -> Path:
        """Write a report that is complete in one file; returns its path."""
        from bayessel.diagnostics._report import width_report

        page = width_report(
            self.table,
            self.criteria,
            self._sentences(),
            self.X,
            self.y,
            self.fits,
            self.names,
            self.target,
            self.facts(),
            {
                "data fingerprint": self.fingerprint,
                "created": self.created,
                "versions": ", ".join(f"{name} {given}" for name, given in self.versions.items()),
            },
        )
        file = Path(path)
        file.write_text(page, encoding="utf-8")
        return file

    def to_datatree(self) -> DataTree:
        """Return the comparison as an xarray DataTree, the container ArviZ works with."""
        from bayessel.diagnostics._store import to_datatree

        return to_datatree(self)

    def to_netcdf(self, path: str | Path) -> Path:
        """Write everything to a NetCDF file; returns its path."""
        file = Path(path)
        self.to_datatree().to_netcdf(file, engine="h5netcdf")
        return file

    @classmethod
    def from_netcdf(cls, path: str | Path) -> WidthComparison:
        """Read back what :meth:`to_netcdf` wrote."""
        from bayessel.diagnostics._store import from_netcdf

        return cls(**from_netcdf(path))
