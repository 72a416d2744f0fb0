"""From selected columns to a model in the user's units, evaluated exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Evidence
from bayessel.linear.posterior import Posterior
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import fit_evidence


def type2_fields(design: FloatArray, t: FloatArray, *, centre: bool = False) -> dict[str, Any]:
    r"""Numbers of the model on these columns, precisions at the highest evidence.

    Returns the fields evidence, alpha, beta, gamma, coef, intercept, notes, spectrum and posterior of a `SearchFit`.
    The evidence is exact to 1e-8 wherever `fit_evidence` is. Without columns the target is noise.
    """
    k = design.shape[1]
    body = design if k else np.zeros((len(t), 1))  # a column of zeros stands for an empty design
    spectrum = Spectrum.of(body, t, centre=centre, rows=True)
    fit = fit_evidence(spectrum)
    alpha = fit.lam * fit.beta
    lam = alpha / fit.beta
    some = Posterior.of(spectrum, lam, fit.beta)
    return {
        "evidence": type2_evidence(some.log_evidence, centre),
        "alpha": alpha,
        "beta": fit.beta,
        "gamma": float(spectrum.gamma(lam)) if k else 0.0,
        "coef": some.coef[:k],
        "intercept": some.intercept,
        "notes": fit.notes,
        "spectrum": spectrum,
        "posterior": some,
    }


def type2_evidence(value: float, centre: bool) -> Evidence:
    """Evidence of columns under one precision of all weights and one of the noise, both at their best."""
    integrated = ("weights", "bias") if centre else ("weights",)
    return Evidence(value, "type2", maximised=("alpha", "beta"), integrated=integrated)
