"""What the regressors share that select functions explicitly: widths, fitting, prediction, pictures of the path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from bayessel._check import FloatArray, one_of
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights, given, some
from bayessel.basis import Dictionary, RBFDictionary, design_of
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.estimators import _description, normal_predictions
from bayessel.estimators._radial_dictionary import centres_of, find_widths, set_dictionary
from bayessel.estimators._sparse_attributes import (
    SLOPE_SPREADS,
    STORED,
    distributions,
    mixtures,
    predicted,
    referenced,
    remember,
)
from bayessel.estimators.base import Versioned, new_rows, validated_regression
from bayessel.estimators.evidence import INFERENCES
from bayessel.estimators.found_width import FoundWidth
from bayessel.estimators.given_dictionary import bound_dictionary
from bayessel.estimators.listed_records import Records, records_of
from bayessel.estimators.normal_predictions import MeanAndStd, predicts_mean_and_std
from bayessel.estimators.referenced_fit import engine_fit
from bayessel.estimators.several_targets import as_columns, fit_targets, outputs, refuse_several
from bayessel.estimators.weighted_rows import noise_ratio, refuse_weights, weighted_rows
from bayessel.fit import Status
from bayessel.linear import fit_abf, fit_evidence

if TYPE_CHECKING:
    import pymc as pm
    from matplotlib.axes import Axes


#: widths are fitted with all functions on at most this many rows: each step costs their cube
ABF_ROWS = 500


class SelectingRegressor(RegressorMixin, Versioned):
    """Base of the regressors that choose functions of a radial dictionary one by one; not for direct use."""

    _several_outputs = True
    width: ArrayLike | None
    centers: ArrayLike | None
    kind: str
    bias: bool
    inference: str
    fit_: Any
    dictionary: DictionaryLike | None
    dictionary_: Dictionary
    width_: float | FloatArray | None
    history_: list[dict[str, Any]]
    _records: Records

    #: what is known of the rows; None where they are alike
    _row_weights: RowWeights | None

    def _select(self, design: Any, y: FloatArray, weights: RowWeights | None = None) -> Any:
        raise TypeError("a subclass selects")

    @property
    def _weighs(self) -> bool:
        """Whether the selection takes weights of rows with the settings of the estimator."""
        raise TypeError("a subclass knows")

    def _path_label(self) -> str:
        raise TypeError("a subclass names what its path shows")

    def _path_values(self) -> dict[int, float]:
        """Size -> what the picture of the path shows."""
        return {size: point.value for size, point in self.path_.items()}

    # ---- fitting

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, noise_std: ArrayLike | None = None
    ) -> Self:
        """Fit to inputs (N, D) and a target (N,), or K targets (N, K), each with a selection of its own.

        Parameters
        ----------
        X, y
            Inputs and targets.
        sample_weight
            How often each row counts, (N,): 2 is a row that came twice, 0 one that did not come.
        noise_std
            Standard deviations of the noise of each row (N,), up to a common factor, which is found
            (`docs/weights.md`).
        """
        rows, (X, y) = X, validated_regression(self, X, y, reset=True)
        if y.ndim == 2:
            fit_targets(self, rows, X, y, sample_weight=sample_weight, noise_std=noise_std)
            return self
        X, y, self._row_weights = weighted_rows(X, y, sample_weight, noise_std)
        self._records, self.fingerprint_ = records_of(self, X, y), fingerprint(X, y)
        if self._row_weights is None and not self._weighs:  # copies of rows then count alike
            self._records = replace(self._records, weights=None)
        X, y, weights = self._records.X, self._records.y, self._records.weights
        centers = centres_of(self, X) if self.dictionary is None else X
        self._width_notes: tuple[Status, ...] = ()
        self.found_width_: FoundWidth | None = None
        one_of(self.inference, "inference", INFERENCES)
        if self.width is None and self.inference == "auto":
            # one precision serves for all weights: the slopes' columns vary about as much as radial functions do
            fit = referenced(self, X, y, SLOPE_SPREADS, lambda design: self._select(design, y, weights))
        elif self.dictionary is not None:
            self.dictionary_, self.width_ = bound_dictionary(self, X), None
            fit = self._select(self.dictionary_.columns(X), y, weights)
        else:
            set_dictionary(self, self._widths(X, y, centers), centers)
            fit = self._select(design_of(self.dictionary_.without_bias(), X, STORED), y, weights)
        remember(self, fit, X, y)
        self.path_: Mapping[int, Any] = engine_fit(fit).path
        self._warn()
        return self

    def _widths(self, X: FloatArray, y: FloatArray, centers: FloatArray) -> Any:
        """Widths as given, or those that all functions together prefer, on some of the rows where there are many."""
        if self.width is None:
            return find_widths(
                self,
                X,
                y,
                lambda Phi, t, known: fit_evidence(Phi, t, centre=bool(self.bias), **given(known)),
                judge=self._select,
                per_input=True,
            )
        if not isinstance(self.width, str):
            return self.width
        one_of(self.width, "width", ("abf",))
        rows = np.arange(len(X))
        if len(X) > ABF_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(len(X), ABF_ROWS, replace=False))
        own = X[rows] if self.centers is None or len(centers) > ABF_ROWS else centers
        known = given(some(self._records.weights, rows))
        found = fit_abf(X[rows], y[rows], centers=own, kind=self.kind, centre=bool(self.bias), **known)
        # rival optima of the widths and a poor noise estimate of that model are no remarks about this one
        self._width_notes = tuple(note for note in found.notes if note in (Status.STEP_LIMIT, Status.INTERRUPTED))
        return found.widths if len(found.widths) > 1 else float(found.widths[0])

    # ---- predicting

    @predicts_mean_and_std
    def predict(self, X: ArrayLike, return_std: bool = False, noise_std: ArrayLike | None = None) -> MeanAndStd:
        """Mean at new inputs; with `return_std` also the standard deviation of a new observation there.

        `noise_std` are noise levels of the new rows, in the units of those given to `fit`; without, they are those of a
        typical row, the geometric mean.
        """
        if (each := outputs(self)) is not None:
            return as_columns([one.predict(X, return_std, noise_std) for one in each])
        X = new_rows(self, X)
        ratio = None if noise_std is None else noise_ratio(self, noise_std, len(X))
        return predicted(self, X, return_std, ratio)

    predictive = normal_predictions.predictive
    log_predictive_density = normal_predictions.log_predictive_density
    leave_one_out = _description.leave_one_out
    describe = _description.describe
    outputs_ = property(outputs)
    _distributions = distributions
    _mixtures = mixtures

    def to_pymc(self) -> pm.Model:
        """Declare the selected functions as a `pymc.Model` with hyperpriors on both precisions."""
        from bayessel.models import linear

        refuse_several(self, "to_pymc")
        refuse_weights(self, "to_pymc")
        fit = engine_fit(self.fit_)
        if not len(fit.basis):
            raise ValueError("no function was selected: there is nothing to declare")
        names = self.dictionary_.without_bias().names
        return linear(fit.design, fit.target, bias=bool(self.bias), names=[names[i] for i in fit.basis])

    # ---- pictures

    def plot_path(self, ax: Axes | None = None, label: str | None = None) -> Axes:
        """Draw the best value seen at each size, with a star at the model returned.

        Where no criterion stopped the selection it is the squared error of the training rows. Pass `ax` to lay several
        over each other. Returns the matplotlib axes.
        """
        from bayessel.pages.figures import axes_for

        refuse_several(self, "plot_path")
        ax = axes_for(ax, 6.4, 4.0)
        known = {size: value for size, value in sorted(self._path_values().items()) if np.isfinite(value)}
        if known:
            (line,) = ax.plot(list(known), list(known.values()), lw=1.8, label=label)
            at = len(engine_fit(self.fit_).basis)
            if at in known:
                ax.plot([at], [known[at]], "*", ms=13, color=line.get_color(), mec="white", mew=0.6, zorder=5)
        else:
            ax.text(0.5, 0.5, f"no function was tried: {self.status_.name}", ha="center", transform=ax.transAxes)
        ax.set(xlabel="number of functions", ylabel=self._path_label())
        if "error" in self._path_label() and ax.dataLim.y0 > 0:
            ax.set_yscale("log")
        ax.spines[["top", "right"]].set_visible(False)
        if label is not None:
            ax.legend(frameon=False, fontsize=9)
        return ax

    def plot_centres(self, ax: Axes | None = None, inputs: tuple[int, int] = (0, 1), label: str | None = None) -> Axes:
        """Draw where the selected functions sit among the data; `inputs` names the two to draw where there are more.

        A single input: data, fit, and a cross for each centre. Two: the rows, and circles whose area follows the size
        of the weight, red where it is positive and blue where it is negative. Returns the matplotlib axes.
        """
        from bayessel.pages.figures import axes_for

        refuse_several(self, "plot_centres")
        ax = axes_for(ax, 6.4, 4.0)
        if not isinstance(self.dictionary_, RBFDictionary):
            raise ValueError("plot_centres draws the centres of radial functions, and a dictionary of columns has none")
        fit = engine_fit(self.fit_)
        X, t = self._inputs, fit.target
        radial = fit.basis < len(self.dictionary_.centers)  # the others are slopes, which have no place
        at, weights = self.dictionary_.centers[fit.basis[radial]], fit.coef[radial]
        title = label if label is not None else f"{len(at)} of {len(self.dictionary_.centers)} functions"
        if X.shape[1] == 1:
            x = X[:, 0]
            grid = np.linspace(x.min(), x.max(), 400)
            mean, std = predicted(self, grid[:, None], return_std=True)
            ax.plot(x, t, ".", ms=4, color="0.6", zorder=1)
            ax.fill_between(grid, mean - 2 * std, mean + 2 * std, color="#0072B2", alpha=0.15, lw=0)
            ax.plot(grid, mean, color="#0072B2", lw=1.8)
            ax.plot(at[:, 0], np.full(len(at), 0.03), "x", color="#D55E00", ms=7, transform=ax.get_xaxis_transform())
            ax.set(xlabel="x", ylabel="y")
        else:
            i, j = inputs
            if not (0 <= i < X.shape[1] and 0 <= j < X.shape[1] and i != j):
                raise ValueError(f"inputs must be two different ones of 0 ... {X.shape[1] - 1}, got {inputs!r}")
            ax.plot(X[:, i], X[:, j], ".", ms=3, color="0.75", zorder=1)
            size = 30.0 + 250.0 * np.abs(weights) / (np.abs(weights).max(initial=0.0) or 1.0)
            colours = ["#D55E00" if weight > 0 else "#0072B2" for weight in weights]
            ax.scatter(at[:, i], at[:, j], s=size, c=colours, edgecolors="white", lw=0.6, alpha=0.8, zorder=3)
            ax.set(xlabel=f"x[{i}]", ylabel=f"x[{j}]")
        ax.set_title(title, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
        return ax
