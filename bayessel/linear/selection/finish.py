"""From selected columns to a model in the user's units, evaluated exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.fit import Status
from bayessel.linear.posterior import Posterior
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.type2 import fit_evidence


def settle(design: FloatArray, t: FloatArray, *, centre: bool = False, lam: float | None = None) -> dict[str, Any]:
    r"""Numbers of the model on these columns: precisions at the highest evidence, or beta alone for a given `lam`.

    Returns the fields log_evidence, alpha, beta, gamma, coef, intercept, notes, spectrum and posterior of a
    `SelectionFit`. The evidence is exact to 1e-8 wherever `fit_evidence` is. Without columns the target is noise.
    """
    k = design.shape[1]
    body = design if k else np.zeros((len(t), 1))  # a column of zeros stands for an empty design
    spectrum = Spectrum.of(body, t, centre=centre, rows=True)
    if lam is None or not k:
        fit = fit_evidence(spectrum)
        lam, beta, notes = fit.lam, fit.beta, fit.notes
    else:
        quad = max(float(spectrum.quad(lam)), 0.0)
        floor = (4.0 * np.finfo(float).eps * max(spectrum.t_scale, 1e-300)) ** -2.0
        beta = min(spectrum.n_free / quad if quad > 0.0 else np.inf, floor, 1e300)
        notes = (Status.NOISE_AT_FLOOR,) if beta == floor else ()
    alpha = lam * beta
    lam = alpha / beta
    some = Posterior.of(spectrum, lam, beta)
    return {
        "log_evidence": some.log_evidence,
        "alpha": alpha,
        "beta": beta,
        "gamma": float(spectrum.gamma(lam)) if k else 0.0,
        "coef": some.coef[:k],
        "intercept": some.intercept,
        "notes": notes,
        "spectrum": spectrum,
        "posterior": some,
    }
