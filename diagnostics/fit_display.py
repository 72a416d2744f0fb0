"""`FitDisplay`: what was fitted, over the data: the function with its bands, or slices of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_count
from bayessel.diagnostics.fit_reader import predictive_of
from bayessel.diagnostics.input_columns import InputColumns
from bayessel.pages.figures import ShownDisplay, panels_for
from bayessel.pages.page import BEST, INK, LINE, SOFT, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

#: points of a curve, and of one that only has to be ranked; rows that are dots
_POINTS, _FEW_POINTS, _DOTS = 200, 15, 2000
#: colours of curves of probabilities
_CLASS_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")


class FitSlice(NamedTuple):
    """The predictions along one input.

    Attributes
    ----------
    name : str
    values : (n,) array
        Of the input: numbers, or the categories.
    mean : (n,) or (n, K) array
        Predicted means, or the probability of each class.
    std, function_std : (n,) array or None
        Standard deviations of new observations, and of the function alone, where they are known.
    x, y : (m,) array
        The rows as dots; empty for labels.
    """

    name: str
    values: npt.NDArray[Any]
    mean: FloatArray
    std: FloatArray | None
    function_std: FloatArray | None
    x: npt.NDArray[Any]
    y: FloatArray


@dataclass
class FitDisplay(ShownDisplay):
    """The fitted function with its bands: of one input over the data, of several as slices along each.

    A slice keeps the other inputs at a typical row (medians, the most frequent category). Its dots are the rows with
    their own errors: the slice at the row's input, plus what the model missed of that row. Dark band: two standard
    deviations of the function; light band: of new observations.

    Attributes
    ----------
    slices : tuple of FitSlice
    target : str
        What to call y.
    classes : tuple
        Of a classifier; empty otherwise.
    figure_, axes_
        What was drawn in.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> x = np.linspace(-2.0, 2.0, 30)[:, None]
    >>> model = bs.EvidenceRegressor(width=1.0).fit(x, np.sin(2.0 * x[:, 0]))
    >>> shown = FitDisplay.from_estimator(model, x, np.sin(2.0 * x[:, 0]))
    >>> len(shown.slices)
    1
    """

    slices: tuple[FitSlice, ...] = field(repr=False)
    target: str
    classes: tuple[Any, ...] = ()

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: Sequence[str | int] | None = None,
        most: int = 4,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a fitted regressor or classifier along its inputs.

        Parameters
        ----------
        estimator
            Fitted; its error bars are drawn where it has any.
        X, y
            Rows that give the ranges of the inputs, and their targets as dots, if given.
        features
            Names or numbers of the inputs to draw. None: those along which the predictions vary most.
        most
            At most so many panels.
        ax
            Where to draw; panels share its place. None: a new figure.

        Examples
        --------
        >>> import numpy as np
        >>> import bayessel as bs
        >>> x = np.linspace(0, 6, 40)[:, None]
        >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=40)
        >>> shown = bs.diagnostics.FitDisplay.from_estimator(bs.GPRegressor().fit(x, y), x, y)
        >>> [one.name for one in shown.slices]
        ['x[0]']
        """
        inputs, model = InputColumns.of(X), _Model(estimator)
        names = _chosen(features, inputs) if features is not None else _liveliest(model, inputs, as_count(most, "most"))
        seen = None if y is None or model.classes else np.asarray(y, dtype=np.float64).ravel()
        if seen is not None and len(seen) != len(inputs.frame):
            raise ValueError(f"y must have one value for each of {len(inputs.frame)} rows, got {len(seen)}")
        slices = tuple(_slice(model, inputs, name, seen) for name in names[:most])
        named = getattr(y, "name", None)
        return cls(slices, str(named) if named is not None else "y", model.classes).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, into the place of `ax` or into a new figure."""
        count = len(self.slices)
        across = count if count < 4 else 2
        self._given = ax is not None
        size = (6.4, 4.0) if count == 1 else (4.4, 3.2)
        panels = panels_for(ax, -(-count // across), across, *size)
        for unused in panels[count:]:
            unused.set_axis_off()
        self.axes_ = panels[:count]
        for panel, one in zip(self.axes_, self.slices, strict=True):
            self._draw(panel, one)
        for panel in self.axes_[::across]:
            panel.set_ylabel("probability" if self.classes else plain(self.target))
        shown = self.axes_[0].get_legend_handles_labels()
        if ax is None:  # above all panels, beside no curve
            self.figure_.legend(*shown, loc="outside upper center", ncols=len(shown[1]), frameon=False, fontsize=8)
        else:
            self.axes_[0].legend(*shown, frameon=False, fontsize=8)
        return self

    def _draw(self, ax: Axes, one: FitSlice) -> None:
        words = one.values.dtype.kind not in "fiu"
        at: Any = np.arange(len(one.values)) if words else one.values
        if self.classes:
            for k, label in enumerate(self.classes):
                color = _CLASS_COLOURS[k % len(_CLASS_COLOURS)]
                ax.plot(at, one.mean[:, k], "o" if words else "-", color=color, label=plain(str(label)))
            ax.set_ylim(-0.02, 1.02)
        elif words:
            error = None if one.std is None else 2.0 * one.std
            ax.errorbar(at, one.mean, error, fmt="o", color=BEST, ecolor=LINE, capsize=4, label="mean ± 2 std")
        else:
            if one.std is not None:
                _band(ax, at, one.mean, one.std, 0.35, "new observations, ± 2 std")
            if one.function_std is not None:
                _band(ax, at, one.mean, one.function_std, 0.75, "function, ± 2 std")
            ax.plot(at, one.mean, color=BEST, lw=1.6, label="mean")
        if len(one.x):
            place = np.array([list(one.values).index(value) for value in one.x]) if words else one.x
            ax.plot(place, one.y, ".", ms=4, color=INK, alpha=0.5, mew=0, zorder=1 if words else 3, label="rows")
        if words:
            ax.set_xticks(at, [plain(str(value)) for value in one.values])
            ax.set_xlim(-0.5, len(at) - 0.5)
        ax.set_xlabel(plain(one.name))
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8.5)


def _band(ax: Axes, x: FloatArray, mean: FloatArray, std: FloatArray, alpha: float, label: str) -> None:
    ax.fill_between(x, mean - 2.0 * std, mean + 2.0 * std, color=SOFT, alpha=alpha, lw=0, label=label)


class _Model:
    """Means, or probabilities, and standard deviations of any regressor or classifier."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        probable = getattr(estimator, "predict_proba", None) is not None
        self.classes = tuple(estimator.classes_) if probable else ()

    def mean(self, rows: Any) -> FloatArray:
        predict = self.estimator.predict_proba if self.classes else self.estimator.predict
        found = np.asarray(predict(rows), dtype=np.float64)
        if found.ndim == 2 and not self.classes:
            raise ValueError(f"there are {found.shape[1]} outputs; FitDisplay draws one: fit one estimator per output")
        return found

    def spreads(self, rows: Any) -> tuple[FloatArray | None, FloatArray | None]:
        if self.classes:
            return None, None
        try:
            there = predictive_of(self.estimator, rows)
        except (TypeError, ValueError):  # no distributions, or those of counts
            return None, None
        return there.std, None if there.function_variances is None else there.function.std


def _slice(model: _Model, inputs: InputColumns, name: Any, seen: FloatArray | None) -> FitSlice:
    values, rows = _along(inputs, name, _POINTS)
    mean, (std, function_std) = model.mean(rows), model.spreads(rows)
    x, dots = np.empty(0), np.empty(0)
    if seen is not None:
        step = -(-len(seen) // _DOTS)
        some = InputColumns(inputs.frame.iloc[::step].reset_index(drop=True), inputs.named)
        x, dots = some.column(name), seen[::step]
        known = np.array([value == value and value is not None for value in x])
        if len(inputs.names) > 1:  # what the model missed of the row, above the slice
            missed = dots - model.mean(some.data)
            at = np.interp(x, values, mean) if inputs.is_number(name) else _looked_up(x, values, mean)
            dots = at + missed
        x, dots = x[known], dots[known]
    return FitSlice(str(name), values, mean, std, function_std, x, dots)


def _looked_up(x: npt.NDArray[Any], values: npt.NDArray[Any], mean: FloatArray) -> FloatArray:
    known = dict(zip(values.tolist(), mean.tolist(), strict=True))
    return np.array([known.get(value, np.nan) for value in x.tolist()])


def _along(inputs: InputColumns, name: Any, points: int) -> tuple[npt.NDArray[Any], Any]:
    """Values of one input, and typical rows with them."""
    column = inputs.frame[name].dropna()
    if inputs.is_number(name):
        seen = inputs.column(name)
        values: npt.NDArray[Any] = np.linspace(np.nanmin(seen), np.nanmax(seen), points)
    else:
        values = np.array(sorted(column.unique(), key=str), dtype=object)
    return values, inputs.typical(len(values)).moved(name, values)


def _chosen(features: Sequence[str | int], inputs: InputColumns) -> list[Any]:
    found = []
    for one in features:
        name = inputs.names[one] if isinstance(one, int) and one not in inputs.names else one
        if name not in inputs.names:
            raise ValueError(f"features has {one!r}, which is no input; there are {', '.join(map(str, inputs.names))}")
        found.append(name)
    return found


def _liveliest(model: _Model, inputs: InputColumns, most: int) -> list[Any]:
    """The inputs along which the predictions vary most, in the order of the columns."""
    if len(inputs.names) <= most:
        return inputs.names
    spread = {}
    for name in inputs.names:
        _, rows = _along(inputs, name, _FEW_POINTS)
        spread[name] = float(np.ptp(model.mean(rows), axis=0).max()) if len(rows) else 0.0
    chosen = sorted(spread, key=lambda name: -spread[name])[:most]
    return [name for name in inputs.names if name in chosen]
