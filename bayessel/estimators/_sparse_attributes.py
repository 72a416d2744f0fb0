"""What the regressors share that keep some functions of a radial dictionary: attributes, and the functions in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import Dictionary, RBFDictionary, design_of
from bayessel.estimators.given_dictionary import bound_dictionary, fit_witnessed
from bayessel.estimators.normal_predictions import MeanAndStd, moments_in_pieces
from bayessel.estimators.referenced_fit import ReferencedFit, columns_in_use, engine_fit
from bayessel.estimators.residual_checks import remarks_on_fit
from bayessel.estimators.shared_references import reference_of
from bayessel.fit import worst
from bayessel.linear.columns.fit import ColumnsFit
from bayessel.linear.design_fit import DesignFit
from bayessel.prediction import Prediction

#: inputs as columns are divided by so many of their spreads, so that they vary about as much as radial functions
SLOPE_SPREADS = 2.0
#: dictionaries with more entries (0.8 GB) are made column by column
STORED = 100_000_000


def referenced(
    estimator: Any, X: FloatArray, y: FloatArray, slopes: float, engine: Callable[[Any], ColumnsFit | DesignFit]
) -> ReferencedFit:
    """What an engine finds in the design it is given, beside the model that integrates the hyperparameters out.

    Columns are those of the user's dictionary, divided by their standard deviations; without one the functions of that
    model, and the inputs divided by so many of their spreads (with 0 they are as they are).
    """
    if estimator.dictionary is not None:
        columns = bound_dictionary(estimator, X)
        reference, witness = fit_witnessed(X, y, columns, estimator._records.weights)
        gain, remarks, estimator.width_ = witness.gain, witness.notes, None
        d: Dictionary = columns.scaled(X)
    else:
        reference, found = reference_of(estimator, X, y)
        gain, remarks, functions = found.gain, found.notes, reference.mode.dictionary
        assert isinstance(functions, RBFDictionary)
        linear, bias = slopes * found.spread if slopes else True, bool(estimator.bias)
        d = RBFDictionary(functions.centers, found.widths, kind=estimator.kind, bias=bias, linear=linear)
    estimator.dictionary_ = d
    inner = engine(design_of(d.without_bias(), X, STORED))
    return ReferencedFit(inner, reference, d, gain, remarks, beyond_rows=estimator.dictionary is None)


def remember(estimator: Any, fit: Any, X: FloatArray, y: FloatArray) -> None:
    """Set the attributes that tell of a fit, on a dictionary that was set before."""
    estimator.fit_ = fit
    inner = engine_fit(fit)
    coef, intercept = fit.weights if isinstance(fit, ReferencedFit) else (inner.coef, inner.intercept)
    estimator.basis_, estimator.coef_, estimator.n_basis_ = inner.basis, coef, inner.n_basis
    estimator.alpha_, estimator.beta_, estimator.gamma_ = inner.alpha, inner.beta, inner.gamma
    if estimator.bias and inner.posterior.spectrum.centred:  # a bias with a flat prior is no column of the engine's
        estimator.basis_ = np.append(inner.basis, estimator.dictionary_.n_columns - 1)
        estimator.coef_, estimator.n_basis_ = np.append(coef, intercept), inner.n_basis + 1
        if np.ndim(inner.alpha):
            estimator.alpha_ = np.append(inner.alpha, 0.0)
    estimator.noise_std_ = fit.noise_std
    estimator.log_evidence_, estimator.model_evidence_ = inner.log_evidence, inner.model_evidence
    remarks = remarks_on_fit(fit, inner.residuals, X, y, estimator._records.weights)
    estimator.notes_ = (*fit.notes, *estimator._width_notes, *remarks, *estimator._records.notes)
    estimator.status_ = worst([fit.status, *estimator.notes_])
    estimator.history_ = [dict(step) for step in inner.history]
    estimator.n_rows_ = inner.n_rows
    estimator._inputs = X


def functions_in_use(estimator: Any, X: FloatArray) -> FloatArray:
    """The functions in use at inputs X; a bias that the engine adds itself is left out."""
    return columns_in_use(engine_fit(estimator.fit_).basis, estimator.dictionary_, X)


def mixtures(self: Any) -> Callable[[FloatArray], Prediction] | None:
    """Predictive distributions at inputs, where a reference stands behind the fit."""
    return self.fit_.predict if isinstance(self.fit_, ReferencedFit) else None


def distributions(estimator: Any, X: FloatArray) -> Prediction:
    """Predictive distributions of observations at inputs X."""
    fit = estimator.fit_
    found: Prediction = fit.predict(X if isinstance(fit, ReferencedFit) else functions_in_use(estimator, X))
    return found


def predicted(estimator: Any, X: FloatArray, return_std: bool, ratio: FloatArray | None = None) -> MeanAndStd:
    """Mean at inputs X; with `return_std` also the standard deviation of an observation, its noise times `ratio`."""
    fit = estimator.fit_
    if isinstance(fit, ReferencedFit):
        return moments_in_pieces(fit.predict, X, ratio) if return_std else fit.mean(X)
    if not return_std:
        return fit.mean(functions_in_use(estimator, X))
    there = distributions(estimator, X)
    return there.mean, (there if ratio is None else there.with_noise(ratio)).std
