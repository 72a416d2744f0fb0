"""What the regressors share that keep some functions of a radial dictionary: attributes, and the functions in use."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.basis import LazyDesign
from bayessel.estimators.normal_predictions import MeanAndStd
from bayessel.estimators.residual_checks import remarks_on_residuals
from bayessel.fit import fingerprint, worst


def remember(estimator: Any, fit: Any, X: FloatArray, y: FloatArray) -> None:
    """Set the attributes that tell of a fit, on a dictionary that was set before."""
    estimator.fit_ = fit
    estimator.basis_, estimator.coef_, estimator.n_basis_ = fit.basis, fit.coef, fit.n_basis
    estimator.alpha_, estimator.beta_, estimator.gamma_ = fit.alpha, fit.beta, fit.gamma
    estimator.noise_std_ = fit.noise_std
    estimator.log_evidence_, estimator.model_evidence_ = fit.log_evidence, fit.model_evidence
    estimator.notes_ = (*fit.notes, *estimator._width_notes, *remarks_on_residuals(fit.residuals))
    estimator.status_ = worst([fit.status, *estimator.notes_])
    estimator.history_ = [dict(step) for step in fit.history]
    estimator.n_rows_ = fit.n_rows
    estimator.fingerprint_ = fingerprint(X, y)
    estimator._inputs = X


def functions_in_use(estimator: Any, X: FloatArray) -> FloatArray:
    """The functions in use at inputs X; a bias that the engine adds itself is left out."""
    basis = estimator.fit_.basis
    return LazyDesign(estimator.dictionary_, X).columns(basis) if len(basis) else np.zeros((len(X), 0))


def predicted(estimator: Any, X: FloatArray, return_std: bool) -> MeanAndStd:
    """Mean at inputs X; with `return_std` also the standard deviation of an observation."""
    design = functions_in_use(estimator, X)
    if not return_std:
        return estimator.fit_.mean(design)
    there = estimator.fit_.predict(design)
    return there.mean, there.std
