"""The penalty of one term, by the evidence (Hong et al. 2014)."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray

#: a penalty above this, or one that diverges, is set back to its start (their section 5)
LARGEST_PENALTY = 1e6
#: iterations of the penalty of one term
ITERATIONS = 10


def fitted_penalty(w: FloatArray, e: FloatArray, start: float) -> float:
    """Penalty λ of one term under the evidence p(e | h, ε), λ = h/ε, by ten iterations (their eqs 45 and 47)."""
    kappa, product, lam = float(w @ w), float(w @ e), start
    for _ in range(ITERATIONS):
        g = product / (kappa + lam)
        left = e - g * w
        rest = float(left @ left)
        if g == 0.0 or rest == 0.0:
            return start
        epsilon = (len(e) - kappa / (kappa + lam)) / rest
        below = g * g * (kappa + lam) * epsilon
        if not 0.0 < below < np.inf:  # g² may be smaller than any number: λ diverges
            return start
        lam = kappa / below
        if not 0.0 < lam < np.inf:
            return start
    return lam if lam <= LARGEST_PENALTY else start
