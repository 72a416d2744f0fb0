"""What the regressors share that keep some functions of a radial dictionary: attributes, and the functions in use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from bayessel._check import FloatArray
from bayessel.basis import LazyDesign, RBFDictionary
from bayessel.estimators._arguments import Versioned, log_density_of
from bayessel.estimators.found_width import FoundWidth
from bayessel.fit import Status, fingerprint, worst


class SomeFunctionsRegressor(RegressorMixin, Versioned):
    """Base of `RVMRegressor` and of those that select functions one by one; not for direct use."""

    width: Any
    centers: Any
    kind: str
    bias: bool
    dictionary_: RBFDictionary
    found_width_: FoundWidth | None

    def log_predictive_density(self, X: Any, y: Any) -> FloatArray:
        """log p(y_n | x_n, training data) of each new observation, in nats; sum or average it as you need."""
        return log_density_of(self, X, y, several_outputs=False)

    def _remember(self, fit: Any, X: FloatArray, y: FloatArray, notes: Iterable[Status]) -> None:
        """Set the attributes that tell of a fit, on a dictionary that was set before; `notes` are of its widths."""
        self.fit_ = fit
        self.basis_, self.coef_, self.n_basis_ = fit.basis, fit.coef, fit.n_basis
        self.alpha_, self.beta_, self.noise_std_, self.gamma_ = fit.alpha, fit.beta, fit.noise_std, fit.gamma
        self.log_evidence_, self.model_evidence_ = fit.log_evidence, fit.model_evidence
        self.status_ = worst([fit.status, *notes])
        self.history_ = [dict(step) for step in fit.history]
        self.n_rows_ = fit.n_rows
        self.fingerprint_ = fingerprint(X, y)
        self._remember_version()
        self._inputs = X

    def _predicted(self, X: FloatArray, return_std: bool) -> Any:
        """Mean at inputs X, and the standard deviation of an observation."""
        design = self._in_use(X)
        if not return_std:
            return self.fit_.mean(design)
        there = self.fit_.predict(design)
        return there.mean, there.std

    def _in_use(self, X: FloatArray) -> FloatArray:
        """The functions in use at inputs X; a bias that the engine adds itself is left out."""
        basis = self.fit_.basis
        return LazyDesign(self.dictionary_, X).columns(basis) if len(basis) else np.zeros((len(X), 0))


def design_of(dictionary: RBFDictionary, X: FloatArray, stored: int) -> Any:
    """The design, made column by column where it has more than so many entries."""
    large = len(X) * dictionary.n_columns > stored
    return LazyDesign(dictionary, X) if large else dictionary.design(X)
