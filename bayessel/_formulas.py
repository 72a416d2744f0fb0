r"""Formulas that engines and diagnostics share: of N, :math:`S = t^TP^2t` and tr P, and the normal density.

With :math:`\gamma = N - \mathrm{tr} P` (Orr 1996, section 5): UEV :math:`= S/(N-\gamma)`, FPE
:math:`= \frac{N+\gamma}{N-\gamma}\frac SN`, GCV :math:`= NS/(\mathrm{tr}P)^2`, BIC
:math:`= \frac{N+(\ln N-1)\gamma}{N-\gamma}\frac SN`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray


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


def log_normal(residuals: FloatArray, variances: Any) -> FloatArray:
    """Log density of a normal at distances `residuals` from its mean, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -0.5 * (np.log(2.0 * np.pi * variances) + residuals * (residuals / variances))
    # nothing is known where the variance is infinite: such a row has density zero
    return np.asarray(np.where(np.isfinite(variances), value, -np.inf))
