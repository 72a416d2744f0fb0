r"""Selection criteria of ridge regression (Orr 1996, section 5), at many ridges from one factorisation.

The formulas of sums are those of `bayessel._formulas`; LOO :math:`= \frac1N \sum_i ((Pt)_i/P_{ii})^2`. Always
UEV <= FPE <= GCV; GCV <= BIC holds while :math:`\gamma \le N(\ln N - 2)/(\ln N - 1)`, that is for all but nearly
interpolating fits.
"""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.criteria import LOO, from_sums
from bayessel.linear.spectrum import Spectrum


def curve(spectrum: Spectrum, name: str, lam: FloatArray) -> FloatArray:
    """Evaluate a criterion at each of many ridges."""
    lam = np.atleast_1d(np.asarray(lam, dtype=np.float64))
    out = np.empty(len(lam))
    width = max(len(spectrum.s), spectrum.n_rows if name == LOO.name else 1, 1)
    step = max(1, 4_000_000 // width)  # bounds the working arrays to 32 MB each
    for start in range(0, len(lam), step):
        part = lam[start : start + step]
        if name == LOO.name:
            complement = spectrum.leverage_complement(part)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = spectrum.residuals(part) / complement
            ratio = np.where(complement > 0.0, ratio, np.inf)
            out[start : start + step] = (ratio**2).mean(axis=1)
        else:
            out[start : start + step] = from_sums(
                name, spectrum.n_rows, spectrum.sum_squares(part), spectrum.trace_p(part)
            )
    return out
