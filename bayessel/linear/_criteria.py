r"""Selection criteria of ridge regression (Orr 1996, section 5): formulas of N, :math:`S = t^TP^2t` and tr P.

With :math:`\gamma = N - \mathrm{tr} P`: UEV :math:`= S/(N-\gamma)`, FPE :math:`= \frac{N+\gamma}{N-\gamma}\frac SN`,
GCV :math:`= NS/(\mathrm{tr}P)^2`, BIC :math:`= \frac{N+(\ln N-1)\gamma}{N-\gamma}\frac SN`, and
LOO :math:`= \frac1N \sum_i ((Pt)_i/P_{ii})^2`. Always UEV <= FPE <= GCV; GCV <= BIC holds while
:math:`\gamma \le N(\ln N - 2)/(\ln N - 1)`, that is for all but nearly interpolating fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.spectrum import Spectrum

CRITERIA = ("loo", "gcv", "uev", "fpe", "bic")


def from_sums(name: str, n_rows: int, sum_squares: Any, trace_p: Any) -> Any:
    """Return one of 'gcv', 'uev', 'fpe', 'bic' from S and tr P."""
    trace_p = np.asarray(trace_p, dtype=np.float64)
    gamma = n_rows - trace_p
    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "gcv":
            value = n_rows * sum_squares / trace_p**2
        elif name == "uev":
            value = sum_squares / trace_p
        elif name == "fpe":
            value = (n_rows + gamma) / trace_p * sum_squares / n_rows
        else:
            # N + (ln N - 1) gamma, written so that nothing cancels
            value = (trace_p + np.log(n_rows) * gamma) / trace_p * sum_squares / n_rows
    return np.where(trace_p > 0.0, value, np.inf)


def curve(spectrum: Spectrum, name: str, lam: FloatArray) -> FloatArray:
    """Evaluate a criterion at each of many ridges."""
    lam = np.atleast_1d(np.asarray(lam, dtype=np.float64))
    out = np.empty(len(lam))
    width = max(len(spectrum.s), spectrum.n_rows if name == "loo" else 1, 1)
    step = max(1, 4_000_000 // width)  # bounds the working arrays to 32 MB each
    for start in range(0, len(lam), step):
        part = lam[start : start + step]
        if name == "loo":
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
