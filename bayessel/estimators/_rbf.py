"""What the estimators of this layer share: data and dictionary, prediction, rows that come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel.estimators._arguments import Regressor, validated
from bayessel.estimators._radial_dictionary import MAX_OWN_CENTRES, centres_for, default_width, set_dictionary
from bayessel.estimators.found_width import Engine, FoundWidth
from bayessel.fit import LeaveOneOut, Status, fingerprint, worst
from bayessel.linear import LinearFit, RidgeFit, RidgeState, Spectrum
from bayessel.linear.posterior import from_complement


class Radial:
    """What every estimator on a radial dictionary shares: its centres and widths."""

    width: Any
    centers: Any
    kind: str
    bias: bool

    def _centres_for(self, X: FloatArray) -> FloatArray:
        """Centres of the dictionary: those given, or the rows."""
        return centres_for(self, X)

    def _set_dictionary(self, chosen: Any, centers: FloatArray) -> None:
        set_dictionary(self, chosen, centers)


class RadialRegressor(Radial, Regressor):
    """Base of every regressor on a radial dictionary."""

    #: the search for the width, where it was left to the estimator
    found_width_: FoundWidth | None

    def _find_width(
        self, X: FloatArray, y: FloatArray, screen: Engine, judge: Engine | None = None, per_input: bool = False
    ) -> FloatArray:
        """Widths that `width=None` stands for, one per input."""
        self.found_width_ = default_width(self, X, y, screen, judge, per_input)
        return self.found_width_.widths

    def _notes_of_width(self) -> tuple[Status, ...]:
        return () if self.found_width_ is None else self.found_width_.notes


class RBFRegressor(RadialRegressor):
    """Base of the regressors on a radial dictionary with one penalty; not for direct use."""

    # ---- what a subclass says

    def _fit_one(self, spectrum: Spectrum, design: FloatArray, t: FloatArray) -> LinearFit | RidgeFit:
        raise TypeError("a subclass fits one output")

    def _log_evidence_of(self, fit: Any, design: FloatArray, t: FloatArray) -> float:
        raise TypeError("a subclass says the evidence")

    def _choose_width(self, X: FloatArray, y: FloatArray, centers: FloatArray) -> Any:
        return self.width

    # ---- fitting

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to inputs (N, D) and a target (N,), or several targets (N, K) that share the dictionary."""
        X, y = self._validate(X, y, reset=True)
        centers = self._centres_for(X)
        if self.centers is None and len(X) > MAX_OWN_CENTRES:
            raise ValueError(
                f"centers=None puts a function at each of the {len(X)} rows, "
                f"a design of {8e-9 * len(X) ** 2:.0f} GB; "
                "pass centers=... (for instance a few hundred rows, or k-means centres)"
            )
        self.found_width_ = None
        self._set_dictionary(self._choose_width(X, y, centers), centers)
        body = self._body(X)
        outputs = y if y.ndim == 2 else y[:, None]
        spectrum = Spectrum.of(body, outputs[:, 0], centre=self.bias, rows=outputs.shape[1] > 1 or self._needs_rows())
        fits = [
            self._fit_one(spectrum if k == 0 else spectrum.retarget(outputs[:, k]), body, outputs[:, k])
            for k in range(outputs.shape[1])
        ]
        evidence = [self._log_evidence_of(fit, body, outputs[:, k]) for k, fit in enumerate(fits)]
        self._store(fits, evidence, y.ndim == 2)
        self._rows = (X, y) if y.ndim == 1 else None
        self._fingerprint: str | None = fingerprint(X, y)
        self._remember_version()
        self._state: RidgeState | None = None
        self._warn()
        return self

    def _needs_rows(self) -> bool:
        return False

    def _body(self, X: FloatArray) -> FloatArray:
        """Columns of the dictionary without the bias, whose prior is flat and which the engine adds itself."""
        return self.dictionary_.columns(X)

    def _store(self, fits: list[Any], evidence: list[float], many: bool) -> None:
        self.fits_ = fits

        def collect(values: list[Any]) -> Any:
            return np.array(values) if many else values[0]

        first = fits[0]
        kept = np.asarray(first.basis) if not many else np.arange(len(first.coef))
        last = [self.dictionary_.n_columns - 1] if self.bias else []
        self.basis_ = np.concatenate([kept, np.array(last, dtype=int)]).astype(int)
        self.n_basis_ = len(self.basis_)
        self.coef_ = collect([np.append(f.coef[kept], [f.intercept] if self.bias else []) for f in fits])
        self.log_evidence_ = float(sum(evidence))
        self.alpha_ = collect([f.alpha for f in fits])
        self.beta_ = collect([f.beta for f in fits])
        self.noise_std_ = collect([f.noise_std for f in fits])
        self.gamma_ = collect([f.gamma for f in fits])
        self.status_ = worst([*(f.status for f in fits), *self._notes_of_width()])
        self.history_ = [dict(step) for step in first.history]
        self.n_rows_ = first.n_rows

    # ---- predicting

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean at new inputs; with `return_std` also the standard deviation of a new observation there.

        Returns (N,) arrays, or (N, K) for K outputs.
        """
        check_is_fitted(self)
        X = np.asarray(validated(self, X, reset=False), dtype=np.float64)
        body = self._body(X)
        design = np.hstack([body, np.ones((len(X), 1))]) if self.bias else body
        mean = design[:, self.basis_] @ self.coef_.T
        if not return_std:
            return mean
        if self._state is not None:
            std = np.sqrt(
                self._state.variance(body[:, np.asarray(self.fits_[0].basis)]) / self.beta_ + 1.0 / self.beta_
            )
            return mean, std
        columns = [np.sqrt(fit.posterior.variance(body) + fit.noise_std**2) for fit in self.fits_]
        return mean, (np.column_stack(columns) if mean.ndim == 2 else columns[0])

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Errors of each training row predicted from all others at the fitted precisions, and their variances."""
        found = self._left_out()
        return found.errors, found.variances

    def _left_out(self) -> LeaveOneOut:
        check_is_fitted(self)
        if self._rows is None:
            raise ValueError("leave_one_out works with one output; fit one estimator per output")
        if self._state is None and self.fits_[0].spectrum.U is not None:
            return self.fits_[0].posterior.leave_one_out()
        X, y = self._rows
        mean, std = self.predict(X, return_std=True)
        left = 2.0 - self.beta_ * std**2  # P_ii = 1 - beta phi' Sigma phi, and std^2 = phi' Sigma phi + 1 / beta
        return from_complement(y - mean, left, self.beta_)

    @property
    def fingerprint_(self) -> str:
        """Name of the training data, inputs and target, as `bayessel.fit.fingerprint` gives it."""
        check_is_fitted(self)
        if self._fingerprint is None:
            assert self._rows is not None
            self._fingerprint = fingerprint(*self._rows)
        return self._fingerprint

    # ---- rows that come and go

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add rows: the exact posterior of all rows at the fitted precisions, O(M^2) per row.

        The centres, the widths and the precisions stay; `reestimate` renews the precisions. On an estimator that has
        not been fitted this is `fit`.
        """
        if not hasattr(self, "dictionary_"):
            return self.fit(X, y)
        X, y = self._validate(X, y, reset=False)

        def add(state: RidgeState, rows: FloatArray) -> None:
            for row, value in zip(rows, y, strict=True):
                state.add_row(row, value)

        old_X, old_y = self._one_output("partial_fit", y)
        self._change(X, add)
        self._rows, self._fingerprint = (np.vstack([old_X, X]), np.concatenate([old_y, y])), None
        return self

    def forget(self, X: Any, y: Any) -> Self:
        """Remove rows that were fitted: the exact posterior without them, at the fitted precisions, O(M^2) per row."""
        check_is_fitted(self)
        X, y = self._validate(X, y, reset=False)
        old_X, old_y = self._one_output("forget", y)
        keep = np.ones(len(old_y), dtype=bool)
        doomed = []
        for row, value in zip(X, y, strict=True):
            found = np.flatnonzero(keep & (old_y == value) & (old_X == row).all(axis=1))
            if not len(found):
                raise ValueError(
                    f"a row to forget is not among the rows that were fitted: x = {row.tolist()}, y = {value}"
                )
            keep[found[0]] = False
            doomed.append(int(found[0]))
        if not keep.any():
            raise ValueError(f"cannot forget all {len(old_y)} rows: a fit needs at least one")

        def remove(state: RidgeState, rows: FloatArray) -> None:
            for i in sorted(doomed, reverse=True):
                state.remove_row(i)

        self._change(X, remove)
        self._rows, self._fingerprint = (old_X[keep], old_y[keep]), None
        return self

    def reestimate(self) -> Self:
        """Choose the precisions (or the penalty) anew from the rows now in the fit; centres and widths stay."""
        check_is_fitted(self)
        if self._rows is None:
            raise ValueError("reestimate works with one output; fit again with all rows instead")
        X, y = self._rows
        body = self._body(X)
        fit = self._fit_one(Spectrum.of(body, y, centre=self.bias, rows=self._needs_rows()), body, y)
        self._store([fit], [self._log_evidence_of(fit, body, y)], False)
        self._state = None
        return self

    def _one_output(self, what: str, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self._rows is None or y.ndim == 2:
            raise ValueError(f"{what} works with one output; fit one estimator per output")
        return self._rows

    def _change(self, X: FloatArray, edit: Callable[[RidgeState, FloatArray], None]) -> None:
        fit = self.fits_[0]
        kept = np.asarray(fit.basis)
        lam = np.broadcast_to(np.asarray(fit.lam, dtype=np.float64), fit.coef.shape)[kept]
        if self._state is None:
            assert self._rows is not None
            self._state = RidgeState(self._body(self._rows[0])[:, kept], self._rows[1], lam, centre=self.bias)
        try:
            edit(self._state, self._body(X)[:, kept])
        except BaseException:
            self._state = None  # half changed; the rows still tell what was fitted
            raise
        state = self._state
        self.coef_ = np.append(state.coef, [state.intercept] if self.bias else [])
        self.log_evidence_ = state.log_evidence(self.beta_)
        self.gamma_ = state.gamma - int(self.bias and isinstance(fit, LinearFit))
        self.n_rows_ = state.n_rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = not isinstance(self.width, str)  # widths are fitted to one target
        return tags
