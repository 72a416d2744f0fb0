"""`RelevanceDisplay`: which inputs matter, with intervals where the model has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel.diagnostics.fit_reader import unwrap
from bayessel.diagnostics.input_columns import InputColumns
from bayessel.pages.figures import ShownDisplay, panels_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

#: rows at which slopes are measured, and the step in standard deviations of the input
_ROWS, _STEP = 200, 0.1


@dataclass
class RelevanceDisplay(ShownDisplay):
    """How much each input matters: bars, the most relevant on top, with 95 % intervals where they are known.

    Attributes
    ----------
    table : pandas.DataFrame
        A row per input: ``length`` or ``slope``, ``lower``, ``upper`` and ``standardised``.
    figure_, ax_
        What was drawn in.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(40, 2))
    >>> model = bs.GPRegressor("map").fit(X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=40))
    >>> RelevanceDisplay.from_estimator(model).table.shape[0]
    2
    """

    table: pd.DataFrame = field(repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: ArrayLike | None = None, y: ArrayLike | None = None, *, ax: Axes | None = None
    ) -> Self:
        """Draw the relevance of the inputs of a fitted estimator.

        Parameters
        ----------
        estimator
            A fitted regressor; with ``relevance_`` (Gaussian processes and networks) the intervals are those of its
            hyperparameters or draws. Of others the slopes of its predictions are measured, without intervals.
        X, y
            Rows to measure slopes at, and their targets, whose spread is the unit; without y that of the predictions.
        ax
            Where to draw; None: a new figure.

        Examples
        --------
        >>> import numpy as np
        >>> import bayessel as bs
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 2))
        >>> model = bs.EvidenceRegressor(width=2.0).fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=60))
        >>> shown = bs.diagnostics.RelevanceDisplay.from_estimator(model, X)
        >>> bool(shown.table["slope"].iloc[0] > shown.table["slope"].iloc[1])
        True
        """
        table = getattr(unwrap(estimator)[0], "relevance_", None)
        if table is None:
            if X is None:
                raise ValueError(
                    f"{type(estimator).__name__} has no relevance_: give rows X at which its slopes are measured"
                )
            table = measured_slopes(estimator, X, y)
        return cls(table).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, into `ax` or a new figure."""
        from bayessel.pages.fit_page import draw_relevance, relevance_size

        self._given = ax is not None
        self.axes_ = panels_for(ax, 1, 1, *relevance_size(self.table))
        draw_relevance(self.axes_[0], self.table)
        return self


def measured_slopes(estimator: Any, X: ArrayLike, y: ArrayLike | None) -> pd.DataFrame:
    """Root mean square slopes of predictions along the inputs that are numbers, by differences about rows of X."""
    inputs = InputColumns.of(X)
    rows = inputs.some(_ROWS)
    spread = float(np.std(estimator.predict(rows.data) if y is None else np.asarray(y, dtype=np.float64)))
    found = {}
    for name in rows.names:
        values = rows.column(name)
        scale = float(np.nanstd(inputs.column(name))) if rows.is_number(name) else 0.0
        if scale == 0.0:
            continue
        up, down = (estimator.predict(rows.moved(name, values + sign * _STEP * scale)) for sign in (1.0, -1.0))
        slope = float(np.sqrt(np.mean(((np.asarray(up) - np.asarray(down)) / (2.0 * _STEP * scale)) ** 2)))
        found[name] = {
            "slope": slope,
            "lower": np.nan,
            "upper": np.nan,
            "standardised": slope * scale / (spread or 1.0),
        }
    if not found:
        raise ValueError("no input is a number that varies: there is no slope to measure")
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("input")
