"""Regressors on a radial dictionary with one penalty: several outputs, and rows that come and go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights
from bayessel.basis import Dictionary, LazyDesign, RBFDictionary
from bayessel.basis.bound_dictionary import DictionaryLike
from bayessel.estimators import _description, normal_predictions
from bayessel.estimators._changing_rows import ChangingRows, TrainingRows
from bayessel.estimators._data_units import FitInDataUnits
from bayessel.estimators._radial_dictionary import centres_of, set_dictionary
from bayessel.estimators.base import Versioned, new_rows, validated_regression
from bayessel.estimators.found_width import FoundWidth
from bayessel.estimators.given_dictionary import bound_dictionary
from bayessel.estimators.latent_widths import LatentWidths
from bayessel.estimators.listed_records import Records, records_of
from bayessel.estimators.normal_predictions import MeanAndStd, predicts_mean_and_std
from bayessel.estimators.residual_checks import remarks_on_fit
from bayessel.estimators.several_targets import SeveralTargets, as_columns, fit_each, outputs, show_each
from bayessel.estimators.weighted_rows import noise_ratio, weighted_rows
from bayessel.fit import Fit, Status, worst
from bayessel.linear import LinearFit, RidgeFit, Spectrum
from bayessel.linear.several_outputs import SeveralOutputs
from bayessel.prediction import Prediction

if TYPE_CHECKING:
    import pymc as pm


class RBFRegressor(RegressorMixin, Versioned):
    """Base of `EvidenceRegressor` and `RidgeRBFRegressor`; not for direct use."""

    _several_outputs = True
    #: functions at most where centres are the rows; None for any number
    _most_centres: int | None = None
    width: ArrayLike | None
    centers: ArrayLike | None
    kind: str
    bias: bool
    dictionary: DictionaryLike | None
    inference: str
    dictionary_: Dictionary
    width_: float | FloatArray | None
    #: the search for the width, where it was left to the estimator
    found_width_: FoundWidth | LatentWidths | None
    _width_notes: tuple[Status, ...]
    notes_: tuple[Status, ...]
    #: what was said of the rows; None where they are alike
    _row_weights: RowWeights | None
    #: what is fitted of them
    _records: Records
    #: the rows of one output, and the name of the data; None until it is asked for
    _rows: TrainingRows | None
    _fingerprint: str | None
    _engine: Any

    # ---- what a subclass says

    def _fit_one(self, spectrum: Spectrum, design: FloatArray, t: FloatArray) -> LinearFit | RidgeFit:
        raise TypeError("a subclass fits one output")

    def _fits_each(self) -> bool:
        """Whether each of several targets has a dictionary of its own."""
        return isinstance(self.width, str) or (self.width is None and self.inference == "auto")

    def _choose_width(self, X: FloatArray, y: FloatArray, centers: FloatArray) -> Any:
        return self.width

    # ---- fitting

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None, noise_std: ArrayLike | None = None
    ) -> Self:
        """Fit to inputs (N, D) and a target (N,), or several targets (N, K).

        Several share the dictionary where its widths are given or `inference` is not "auto"; else each has a fit of its
        own (`outputs_`).

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
        if y.ndim == 2 and self._fits_each():
            each = fit_each(self, rows, X, y, SeveralTargets, sample_weight=sample_weight, noise_std=noise_std)
            self._engine, self._rows, self._row_weights, self._fingerprint = each, None, None, each.fingerprint
            show_each(self, each, X, y)
            return self
        X, y, self._row_weights = weighted_rows(X, y, sample_weight, noise_std)
        self.found_width_, self._width_notes = None, ()
        self._fit_records(X, y)
        if isinstance(self._engine, FitInDataUnits):
            self._warn()
            return self
        X, y, weights = self._records.X, self._records.y, self._records.weights
        fitted = self.dictionary_.design(X)[:, self.basis_] @ self.coef_.T
        self.notes_ = (*self.notes_, *remarks_on_fit(self.fit_, y - fitted, X, y, weights))
        self.status_ = worst([self.status_, *self.notes_])
        self._warn()
        return self

    def _fit_records(self, X: FloatArray, y: FloatArray) -> None:
        """Fit to the records among the rows, and remember the rows."""
        self._records = records_of(self, X, y)
        self._fit_data(self._records.X, self._records.y)
        self.notes_ = (*self.notes_, *self._records.notes)
        if self._thinned(len(self._records.X)):
            self.notes_ = (*self.notes_, Status.SAMPLED_CANDIDATES)
        self.status_ = worst([self.status_, *self.notes_])
        if self._records.place is not None:
            self._rows = TrainingRows(X, y) if y.ndim == 1 else None
            self._fingerprint = fingerprint(X, y)

    def _fit_data(self, X: FloatArray, y: FloatArray) -> None:
        """Choose the dictionary and fit."""
        if self.dictionary is not None:
            self.dictionary_, self.width_ = bound_dictionary(self, X), None
        else:
            centers = centres_of(self, X, stored=True, most=self._most_centres)
            set_dictionary(self, self._choose_width(X, y, centers), centers)
        self._fit_rows(X, y)

    def _fit_rows(self, X: FloatArray, y: FloatArray) -> None:
        """Fit with the dictionary that was set."""
        body = self._body(X)
        outputs = y if y.ndim == 2 else y[:, None]
        rows, weights = outputs.shape[1] > 1 or self._needs_rows(), self._records.weights
        d = self.dictionary_
        at_rows = self.centers is None and isinstance(d, RBFDictionary) and len(d.centers) == len(X)
        if weights is None or not at_rows:  # of many rows the centres are some
            spectrum = Spectrum.of(body, outputs[:, 0], centre=self.bias, rows=rows, weights=weights)
        else:  # a row that counts twice is two centres
            penalties = np.append(1.0 / weights.count, np.ones(body.shape[1] - len(X)))
            spectrum = Spectrum.weighed(body, outputs[:, 0], penalties, centre=self.bias, rows=rows, weights=weights)
        # the fit knows the inputs instead of the design, which is made again when it is asked for
        lazy = LazyDesign(d.without_bias(), X)
        spectrum = replace(spectrum, given=(lazy, outputs[:, 0]))
        fits = [
            self._fit_one(spectrum if k == 0 else spectrum.retarget(t), body, t) for k, t in enumerate(outputs.T.copy())
        ]
        self._engine = fits[0] if y.ndim == 1 else SeveralOutputs(tuple(fits))
        self._show(fits, y.ndim == 2)
        first = fits[0]
        kept = np.asarray(first.basis)
        lam = np.broadcast_to(np.asarray(first.lam, dtype=np.float64), first.coef.shape)[kept]
        self._rows = None
        if y.ndim == 1:
            self._rows = ChangingRows(X, y, d, kept, lam) if weights is None else TrainingRows(X, y)
        self._fingerprint = fingerprint(X, y)

    def _needs_rows(self) -> bool:
        return False

    def _body(self, X: FloatArray) -> FloatArray:
        """Columns of the dictionary without the bias, whose prior is flat and which the engine adds itself."""
        return self.dictionary_.columns(X)

    def _show(self, fits: list[Any], many: bool) -> None:
        """Set the attributes that tell of the fits."""

        def collect(values: list[Any]) -> Any:
            return np.array(values) if many else values[0]

        first = fits[0]
        kept = np.asarray(first.basis) if not many else np.arange(len(first.coef))
        last = [self.dictionary_.n_columns - 1] if self.bias else []
        self.basis_ = np.concatenate([kept, np.array(last, dtype=int)]).astype(int)
        self.n_basis_ = len(self.basis_)
        self.coef_ = collect([np.append(f.coef[kept], [f.intercept] if self.bias else []) for f in fits])
        self.log_evidence_ = float(sum(f.log_evidence for f in fits))
        self.alpha_ = collect([f.alpha for f in fits])
        self.beta_ = collect([f.beta for f in fits])
        self.noise_std_ = collect([f.noise_std for f in fits])
        self.gamma_ = collect([f.gamma for f in fits])
        self.notes_ = (*dict.fromkeys(note for f in fits for note in f.notes), *self._width_notes)
        self.status_ = worst([*(f.status for f in fits), *self._width_notes])
        self.history_ = [dict(step) for step in first.history]
        self.n_rows_ = first.n_rows

    @property
    def fit_(self) -> Fit:
        """What was found: of one target, of several on one design or each on its own, or of rows that were changed."""
        check_is_fitted(self)
        found: Fit = self._engine
        rows = self._rows
        return rows.state.fit(self.beta_) if isinstance(rows, ChangingRows) and rows.changed else found

    @property
    def rows_changed_(self) -> bool:
        """Whether rows were added or forgotten since the precisions were chosen."""
        check_is_fitted(self)
        return self._rows is not None and self._rows.changed

    # ---- predicting

    @predicts_mean_and_std
    def predict(self, X: ArrayLike, return_std: bool = False, noise_std: ArrayLike | None = None) -> MeanAndStd:
        """Mean at new inputs; with `return_std` also the standard deviation of a new observation there.

        Returns (N,) arrays, or (N, K) for K outputs. `noise_std` are noise levels of the new rows, in the units of
        those given to `fit`; without, they are those of a typical row, the geometric mean.
        """
        if (each := outputs(self)) is not None:
            return as_columns([one.predict(X, return_std, noise_std) for one in each])
        X = new_rows(self, X)
        ratio = None if noise_std is None else noise_ratio(self, noise_std, len(X))
        if (mixtures := self._mixtures()) is not None:
            mean, std = normal_predictions.moments_in_pieces(mixtures, X, ratio)
            return (mean, std) if return_std else mean
        body = self._body(X)
        design = np.hstack([body, np.ones((len(X), 1))]) if self.bias else body
        mean = design[:, self.basis_] @ self.coef_.T
        if not return_std:
            return mean
        if isinstance(self._rows, ChangingRows) and self._rows.changed:
            return mean, np.sqrt((self._rows.state.variance(self._rows.columns(X)) + 1.0) / self.beta_)
        there = self._distributions(X)
        return mean, (there if ratio is None else there.with_noise(ratio)).std

    outputs_ = property(outputs)
    predictive = normal_predictions.predictive
    log_predictive_density = normal_predictions.log_predictive_density

    def _distributions(self, X: FloatArray) -> Prediction:
        """Predictive distributions of observations at inputs X."""
        mixtures = self._mixtures()
        there = self.fit_.predict(self._body(X)) if mixtures is None else mixtures(X)
        assert isinstance(there, Prediction)
        return there

    def _thinned(self, n: int) -> bool:
        """Whether functions stand at some of the rows because these are many, though all would have been meant."""
        own = self.dictionary is None and self.centers is None and not self._thins()
        return own and self._most_centres is not None and n > self._most_centres

    def _thins(self) -> bool:
        """Whether centres at the rows are thinned, so that there may be any number of rows."""
        return False

    def _mixtures(self) -> Callable[[FloatArray], Prediction] | None:
        """Predictive distributions at inputs, where they are mixtures."""
        return None

    def to_pymc(self) -> pm.Model:
        """Declare the fitted model as a `pymc.Model` on the training rows, with hyperpriors on its precisions.

        One precision serves for all weights, or each has its own where there is a penalty for each.
        """
        from bayessel.models import linear, rvm

        check_is_fitted(self)
        rows = self._one_output("to_pymc", np.zeros(0))
        if np.ndim(self.alpha_):
            names = [self.dictionary_.names[i] for i in self.basis_]
            return rvm(self.dictionary_.design(rows.X)[:, self.basis_], rows.y, names=names)
        names = self.dictionary_.without_bias().names
        return linear(self._body(rows.X), rows.y, bias=bool(self.bias), names=names)

    leave_one_out = _description.leave_one_out
    describe = _description.describe

    @property
    def fingerprint_(self) -> str:
        """Name of the training data, inputs and target, as `bayessel._fingerprint.fingerprint` gives it."""
        check_is_fitted(self)
        if self._fingerprint is None:
            assert self._rows is not None
            self._fingerprint = fingerprint(self._rows.X, self._rows.y)
        return self._fingerprint

    # ---- rows that come and go

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add rows: the exact posterior of all rows at the fitted precisions, O(M^2) per row.

        The centres, the widths and the precisions stay; `reestimate` renews the precisions. Where hyperparameters are
        integrated out the fit is made anew instead. On an estimator that has not been fitted this is `fit`.
        """
        if not hasattr(self, "dictionary_"):
            return self.fit(X, y)
        X, y = validated_regression(self, X, y, reset=False)
        rows = self._one_output("partial_fit", y)
        rows.add(X, y)
        return self._follow(rows)

    def forget(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Remove rows that were fitted: the exact posterior without them, at the fitted precisions, O(M^2) per row."""
        check_is_fitted(self)
        X, y = validated_regression(self, X, y, reset=False)
        rows = self._one_output("forget", y)
        rows.remove(X, y)
        return self._follow(rows)

    def reestimate(self) -> Self:
        """Choose the precisions (or the penalty) anew from the rows now in the fit; centres and widths stay."""
        check_is_fitted(self)
        rows = self._one_output("reestimate", np.zeros(0))
        if not isinstance(rows, ChangingRows):
            return self._follow(rows)
        self._fit_rows(rows.X, rows.y)
        return self

    def _one_output(self, what: str, y: FloatArray) -> TrainingRows:
        if self._rows is None or y.ndim == 2:
            raise ValueError(f"{what} works with one output; fit one estimator per output")
        if self._row_weights is not None:
            raise ValueError(f"{what} works with rows that are all alike; fit anew with the weights of all rows")
        rows = self._rows  # where the fit is made anew, they are replaced when it is there
        return rows if isinstance(rows, ChangingRows) else TrainingRows(rows.X, rows.y)

    def _follow(self, rows: TrainingRows) -> Self:
        """Show the changed state; where hyperparameters were integrated out they are so anew."""
        if not isinstance(rows, ChangingRows):
            self._fit_records(rows.X, rows.y)
            self._warn()
            return self
        state = rows.state
        self.coef_ = np.append(state.coef, [state.intercept] if self.bias else [])
        self.log_evidence_ = state.log_evidence(self.beta_)
        self.gamma_ = state.gamma - int(self.bias and isinstance(self._engine, LinearFit))
        self.n_rows_ = state.n_rows
        self._fingerprint = None
        return self
