"""The posterior of the kernel width beside a comparison: its draws, what they say, and whether they may be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel._text import number
from bayessel.chains import mixing_numbers
from bayessel.chains.verdict import NOT_YET, TOO_FEW
from bayessel.pages.result_view import ResultView, ShownResult, Standing

if TYPE_CHECKING:
    from xarray import DataTree

#: the interval that is written and drawn
INTERVAL = (0.025, 0.975)
#: shares of the posterior beyond the grid that are worth a word
_BEYOND = 0.01
#: widths of as many inputs are all written
_LISTED = 4
#: normal quantile of the interval
_Z = 1.959964


@dataclass(frozen=True, eq=False)
class WidthPosterior(ShownResult):
    """Draws of the kernel width, other hyperparameters and weights integrated out, and their verdict.

    Attributes
    ----------
    draws : array (chains, draws) or (chains, draws, D)
        Of the width r, in units of the inputs; with one width per input the last axis counts the inputs.
    trace : xarray.DataTree or None
        The whole run as `bayessel.sample` returns it, without the pointwise log likelihood; None where Ctrl-C came
        before the first step.
    inputs : tuple of str
        Names of the inputs whose widths these are; empty for one width.
    prior_median, prior_log_sd : array () or (D,)
        The log-normal prior: its median, and the standard deviation of log r.
    interrupted : bool
        Ctrl-C ended the run: there are fewer draws than were asked for, or none.
    """

    draws: FloatArray = field(repr=False)
    trace: DataTree | None = field(repr=False)
    inputs: tuple[str, ...]
    prior_median: FloatArray
    prior_log_sd: FloatArray
    interrupted: bool = False

    @property
    def verdict(self) -> str:
        """Return "usable", "do not use" or "too few draws to judge": of all parameters, as `bayessel.sample` has it."""
        return TOO_FEW if self.trace is None else str(self.trace.attrs.get("verdict", TOO_FEW))

    @property
    def reasons(self) -> tuple[str, ...]:
        """What stands against using the draws or is worth knowing, and what to do; problems first."""
        said = "" if self.trace is None else str(self.trace.attrs.get("verdict_reasons", ""))
        return tuple(said.split("\n")) if said else ()

    @property
    def n_draws(self) -> int:
        """Draws per chain."""
        return self.draws.shape[1]

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of the width, () or (D,); NaN without draws."""
        return np.asarray(self.draws.mean(axis=(0, 1)) if self.n_draws else np.full(self.prior_median.shape, np.nan))

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Posterior quantiles of the width, of the shape of ``q`` and then () or (D,); NaN without draws."""
        if not self.n_draws:
            return np.full((*np.shape(q), *self.prior_median.shape), np.nan)
        return np.asarray(np.quantile(self.draws, np.asarray(q, dtype=np.float64), axis=(0, 1)))

    @property
    def table(self) -> pd.DataFrame:
        """One row per width: mean, sd, median, the central 95 % interval, R-hat and effective sample sizes."""
        columns = self.draws.reshape(*self.draws.shape[:2], len(self.inputs) or 1)
        low, middle, high = self.quantile([INTERVAL[0], 0.5, INTERVAL[1]]).reshape(3, -1)
        return pd.DataFrame(
            {
                "mean": np.ravel(self.mean),
                "sd": columns.std(axis=(0, 1)) if self.n_draws else np.nan,
                "median": middle,
                "low": low,
                "high": high,
                "r_hat": mixing_numbers.r_hat(columns),
                "ess_bulk": mixing_numbers.ess_bulk(columns),
                "ess_tail": mixing_numbers.ess_tail(columns),
            },
            index=pd.Index(self.inputs or ("width",), name="width"),
        )

    def prior(self) -> str:
        """Return the prior in words."""
        medians, spreads = np.ravel(self.prior_median), np.ravel(self.prior_log_sd)
        parts = [
            f"{f'{name} ' if name else ''}median {number(m)}, 95 % between {number(m * np.exp(-_Z * s))} and "
            f"{number(m * np.exp(_Z * s))}"
            for name, m, s in zip(self.inputs or ("",), medians, spreads, strict=True)
        ]
        return f"log-normal prior: {'; '.join(parts)}"

    def sentences(self, widths: Sequence[float] = ()) -> list[str]:
        """Say where the width lies, and whether the draws may be used; ``widths`` are those of the grid."""
        if not self.n_draws:
            return ["The run was interrupted before there were draws of the width: its posterior is not known."]
        said = []
        if self.verdict == NOT_YET:
            said.append(f"Do not use the posterior of the width yet: {self.reasons[0]}")
        elif self.verdict == TOO_FEW:
            said.append(" ".join(["Too few draws to judge the posterior of the width.", *self.reasons[:1]]))
        said.append(self._place())
        if len(widths) and not self.inputs:
            beyond = float(np.mean((self.draws < min(widths)) | (self.draws > max(widths))))
            if beyond > _BEYOND:
                said.append(f"{100 * beyond:.0f} % of the posterior lies beyond the widths compared.")
        if self.interrupted:
            said.append(f"The chains were interrupted after {self.n_draws} draws each.")
        return said

    def _place(self) -> str:
        """Medians and intervals; of many inputs those of the narrowest and of the widest."""
        frame = self.table.sort_values("median")
        shown = frame if len(frame) <= _LISTED else frame.iloc[[0, -1]]
        parts = [
            f"{f'{name}, ' if self.inputs else ''}median {'' if self.inputs else 'r = '}{number(row['median'])}, 95 % "
            f"between {number(row['low'])} and {number(row['high'])}"
            for name, row in shown.iterrows()
        ]
        if not self.inputs:
            return f"Posterior of the width: {parts[0]} ({self.prior()})."
        if len(shown) < len(frame):
            return f"Posterior of {len(frame)} widths: narrowest of {parts[0]}; widest of {parts[1]}."
        return f"Posterior of the widths: {'; '.join(parts)}."

    def size(self) -> str:
        """Return the size of the run in words."""
        return f"{self.draws.shape[0]} chains of {self.n_draws} draws of the width{'s' if self.inputs else ''}"

    def _view(self) -> ResultView:
        may = self.verdict not in (NOT_YET, TOO_FEW)
        title = self.size()
        return ResultView(title, self.verdict, Standing.of(may), [*self.sentences()], (), self.table)

    def _text(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{self.size()}: {self.verdict}", *self.sentences()]
        return "\n".join([*lines, self.table.round(4).to_string()])
