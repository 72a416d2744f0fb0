"""The result of comparing kernel widths: what it prefers, what it looks like, and how it is kept."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayessel._check import FloatArray, as_positive, one_of
from bayessel._files import netcdf, sealed, write_whole
from bayessel._text import listing, number
from bayessel.criteria import CRITERIA
from bayessel.criteria.description_length import DELTAS, MDL_W
from bayessel.criteria.evidence import EVIDENCE
from bayessel.estimators.weighing import STACKING
from bayessel.pages.result_view import ResultView, ShownResult, Standing
from bayessel.widths._posterior import WidthPosterior
from bayessel.widths._recommendation import Recommendation, recommendations
from bayessel.widths._verdict import verdict_sentences
from bayessel.widths.curves import (
    CurveOptimum,
    DrawnFit,
    Label,
    needs_attention,
    preferences,
    say,
    scales,
    turning_points,
    value_at,
    width_of,
    with_delta,
)

if TYPE_CHECKING:
    from xarray import DataTree

    from bayessel.estimators.averaged_regressor import AveragedRegressor
    from bayessel.pages.figures import ShownFigure


def _versions() -> dict[str, str]:
    def of(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "unknown"

    return {name: of(name) for name in ("bayessel", "numpy", "scipy", "pandas")} | {"python": platform.python_version()}


def _from_to(widths: Sequence[float], how: str) -> str:
    if len(widths) == 1:
        return f"1 width, {number(widths[0])}"
    return f"{len(widths)} widths {how}from {number(widths[0])} to {number(widths[-1])}"


@dataclass(frozen=True, eq=False)
class WidthComparison(ShownResult):
    """Criteria over kernel widths, with the data they were computed from.

    Attributes
    ----------
    table
        One row per finished width (index ``width``, or ``kind`` and ``width`` where several kinds were compared): the
        criteria, the standard errors of those that are means or sums over rows (``*_se``) and of their difference to
        the best width (``*_diff_se``), gamma, noise_std, n_basis, status, and notes (further statuses); for
        model="gp" signal_std instead of n_basis; for model="evidence" also lam of the evidence fit and the lam_* of the
        ridge criteria.
    fits
        Predictions at each width some criterion prefers, by the row's label in the table; of a sparse model also at
        separate local optima.
    X, y, held
        The rows fitted, and the pair of those held out (or None).
    centers
        Centres of the functions (M, D); ``DrawnFit.basis`` counts them, M is the bias.
    searched
        The criteria whose optima were refined; empty for a grid.
    unsettled
        Those of them whose optima were not all known to ``tol`` when the budget of the search was spent.
    fingerprint
        Names the data; results with different fingerprints come from different data.
    interrupted
        True after Ctrl-C: only the finished widths are in the table, or the posterior has fewer draws than asked for.
    posterior
        Of ``widths="posterior"``: a `WidthPosterior`, the width as a random variable; else None, and None where Ctrl-C
        came before its turn.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-3.0, 3.0, 40)
    >>> found = bs.compare_widths(x, np.cos(x**2), [0.3, 1.0, 3.0], criteria=["evidence"], progressbar=False)
    >>> found.table.index.tolist(), found.criteria
    ([0.3, 1.0, 3.0], ('evidence',))
    """

    table: pd.DataFrame
    criteria: tuple[str, ...]
    X: FloatArray = field(repr=False)
    y: FloatArray = field(repr=False)
    fits: dict[Label, DrawnFit] = field(repr=False)
    names: tuple[str, ...]
    target: str
    model: str
    kinds: tuple[str, ...]
    centers: FloatArray = field(repr=False)
    bias: bool
    held: tuple[FloatArray, FloatArray] | None = field(repr=False)
    planned: int
    searched: tuple[str, ...]
    interrupted: bool
    fingerprint: str
    unsettled: tuple[str, ...] = ()
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=_versions, repr=False)
    posterior: WidthPosterior | None = None

    def _view(self) -> ResultView:
        headline, *reasons = self.verdict_sentences()
        chosen = [self.optima(name)[0].label for name in self.criteria if self.optima(name)]
        doubted = any(needs_attention(str(self.table["status"][label])) for label in chosen)
        unfinished = self.interrupted or bool(self.unsettled)
        status = "interrupted" if self.interrupted else "a preferred fit needs a look" if doubted else "complete"
        standing = Standing.DOUBT if doubted else Standing.REMARK if unfinished else Standing.GOOD
        at = {name: self.optima(name)[0] for name in self.criteria if self.optima(name)}
        preferred = {
            CRITERIA[name].label: {"better": CRITERIA[name].better, "best width": say(one.label), "value": one.value}
            for name, one in at.items()
        }
        table = pd.DataFrame.from_dict(preferred, orient="index").rename_axis("criterion")
        lines = [*map(str, self.recommendations()), headline, *reasons, self.facts()]
        return ResultView(
            "Comparison of kernel widths", status, standing, lines, (), table, ".plot(), .table, .to_html(path)"
        )

    @property
    def n_centers(self) -> int:
        """Number of functions on offer, the bias not counted."""
        return len(self.centers)

    def best(self, criterion: str | None = None) -> Label:
        """Return the width r this criterion prefers among those compared; of several kinds the pair (kind, width).

        Default: the evidence if it was asked for, else the first criterion.
        """
        name = self._default() if criterion is None else criterion
        found = self.optima(name)
        if not found:
            raise ValueError(f"{name} has no finite value at any width: look at the column status of .table")
        return found[0].label

    def optima(self, criterion: str | None = None) -> tuple[CurveOptimum, ...]:
        """Return every local optimum over the widths as (width, value, at_end, depth, kind), best first."""
        name = self._default() if criterion is None else one_of(criterion, "criterion", self.criteria)
        return turning_points(self.table, name)

    def scales(self, criterion: str | None = None) -> tuple[CurveOptimum, ...]:
        """Return the optima that a good margin parts from each other: two of them in a series are two time scales."""
        name = self._default() if criterion is None else one_of(criterion, "criterion", self.criteria)
        return scales(self.table, name)

    def deltas(self, criterion: str = MDL_W.name, deltas: Sequence[float] = (0.01, 0.1, 1.0)) -> pd.DataFrame:
        """Return what a description length prefers when weights (or precisions) are sent to other precisions delta.

        One row per delta: the preferred width (and kind), and the number of functions there.
        """
        one_of(criterion, "criterion", tuple(name for name in self.criteria if name in DELTAS))
        rows = []
        for delta in deltas:
            table = with_delta(self.table, criterion, as_positive(delta, "every delta"))
            found = turning_points(table, criterion)
            best = found[0].label if found else None
            kind = {"kind": best[0]} if isinstance(best, tuple) else {}
            r = np.nan if best is None else width_of(best)
            size = 0 if best is None else int(value_at(table, "n_basis", best))
            rows.append({"delta": float(delta), **kind, "width": r, "n_basis": size})
        return pd.DataFrame(rows).set_index("delta")

    def _default(self) -> str:
        return EVIDENCE.name if EVIDENCE.name in self.criteria else self.criteria[0]

    def average(
        self,
        weights: str | Mapping[Label, float] = STACKING,
        *,
        n_jobs: int | None = None,
        progressbar: bool = True,
    ) -> AveragedRegressor:
        r"""Average all widths (and kinds) of the table instead of picking one: predictions are mixtures over them.

        Every width is fitted again, from the engine's own starts.

        Parameters
        ----------
        weights
            ``"stacking"``: those under which the mixture predicts rows best that are left out, a constant among the
            candidates; hyperparameters stay those of all rows, and so do the functions of ``model="rvm"`` and
            ``"search"``, which flatters them. ``"evidence"`` or ``"model-evidence"``: in proportion to the evidence
            times a prior uniform in log r between the narrowest and the widest, the same for every kind. A mapping of
            labels of the table to numbers.
        n_jobs, progressbar
            As of `compare_widths`.

        Returns
        -------
        AveragedRegressor
            As `bayessel.average` makes it: ``predict``, ``predictive``, ``weights_``, ``leave_one_out``. It cannot be
            fitted to other rows.
        """
        from bayessel.widths._average import averaged

        return averaged(self, weights, n_jobs, progressbar)

    def recommendations(self) -> list[Recommendation]:
        """Return which width to take to predict, to describe shortly, to say what is probable; or why none."""
        return recommendations(self.table, self.criteria)

    def verdict(self) -> str:
        """Say which width each criterion prefers, whether they agree, and what to be wary of."""
        return " ".join(self.verdict_sentences())

    def verdict_sentences(self) -> list[str]:
        """Return the thoughts of :meth:`verdict` one by one: the headline first."""
        planned = None if self.searched else self.planned
        offered = self.n_centers + int(self.bias)
        # chains begin when all widths are done, and speak for themselves
        cut = self.interrupted and self.posterior is None
        said = verdict_sentences(self.table, self.criteria, cut, planned, offered, self.unsettled)
        return said if self.posterior is None else said + self.posterior.sentences(self._widths())

    def _widths(self) -> list[float]:
        return sorted({width_of(label) for label in self.table.index})

    def facts(self) -> str:
        """Return one line on what was compared."""
        n, d = self.X.shape
        scaled = " (standardised)"
        standardised = all(name.endswith(scaled) for name in self.names)
        inputs = ", ".join(name.removesuffix(scaled) if standardised else name for name in self.names[:6])
        inputs += ", ..." if d > 6 else ""
        held = "" if self.held is None else f" fitted and {len(self.held[1])} held out"
        widths = self._widths()
        named = {
            "rvm": "relevance vector machine",
            "gp": "Gaussian process",
            "search": "search by the evidence",
            "class-evidence": "classifier with one weight precision",
            "class-rvm": "relevance vector machine of labels",
        }
        how = named.get(self.model, "one weight precision")
        kinds = listing([kind.replace("_", " ") for kind in self.kinds])
        functions = f"{self.n_centers} functions of each kind ({kinds})" if len(self.kinds) > 1 else ""
        functions = f"{kinds} covariance" if self.model == "gp" else functions
        return (
            f"{n} rows{held}, target {self.target}, {d}{' standardised' if standardised else ''} "
            f"input{'s' if d > 1 else ''} ({inputs}); {how}, {functions or f'{self.n_centers} {kinds} functions'}, "
            f"{'bias' if self.bias else 'no bias'}; "
            f"{_from_to(widths, 'searched ' if self.searched else '')}{' (budget spent)' if self.unsettled else ''}"
            f"{'' if self.posterior is None else f'; {self.posterior.size()}'}"
        )

    def plot(self, criteria: Sequence[str] | None = None) -> ShownFigure:
        """Draw the criteria over the width, one panel each, and a posterior; returns a matplotlib Figure."""
        from bayessel.pages.figures import handed_over
        from bayessel.widths._plots import plot_widths

        for name in criteria or ():
            one_of(name, "criterion", self.criteria)
        names = self.criteria if criteria is None else criteria
        return handed_over(plot_widths(self.table, names, self.posterior))

    def plot_fit(self, width: float | None = None, kind: str | None = None) -> ShownFigure:
        """Draw the stored fits, or those at ``width``, over the data; returns a matplotlib Figure."""
        from bayessel.pages.figures import handed_over
        from bayessel.widths._plots import plot_fit

        def asked(label: Label) -> bool:
            there = width is None or bool(np.isclose(width_of(label), width, rtol=1e-9))
            return there and (kind is None or not isinstance(label, tuple) or label[0] == kind)

        fits = {label: fit for label, fit in self.fits.items() if asked(label)}
        if not fits and self.fits:
            kept = ", ".join(map(say, self.fits))
            raise ValueError(f"fits are kept at the preferred widths only ({kept}), not at {width}")
        preferred = preferences(self.table, self.criteria)
        return handed_over(plot_fit(self.X, self.y, fits, self.names, self.target, preferred, self.centers))

    def to_html(self, path: str | Path) -> Path:
        """Write a report that is complete in one file; returns its path."""
        from bayessel.widths._report import width_report

        page = width_report(
            self.table,
            self.criteria,
            self.verdict_sentences(),
            self.X,
            self.y,
            self.fits,
            self.names,
            self.target,
            self.facts(),
            centers=self.centers,
            posterior=self.posterior,
            recommended=self.recommendations(),
            foot={
                "data fingerprint": self.fingerprint,
                "created": self.created,
                "versions": ", ".join(f"{name} {given}" for name, given in self.versions.items()),
            },
        )
        return write_whole(path, page.encode())

    def to_datatree(self) -> DataTree:
        """Return the comparison as an xarray DataTree, the container ArviZ works with."""
        from bayessel.widths._store import to_datatree

        return to_datatree(self)

    def to_netcdf(self, path: str | Path) -> Path:
        """Write everything to a NetCDF file; returns its path."""
        return write_whole(path, sealed(netcdf(self.to_datatree())))

    @classmethod
    def from_netcdf(cls, path: str | Path) -> WidthComparison:
        """Read back what :meth:`to_netcdf` wrote; a file that is not as it was written is a `DamagedFileError`."""
        from bayessel.widths._store import from_netcdf

        return cls(**from_netcdf(path))
