r"""Formulas that engines, criteria and diagnostics share: the normal density, errors from two sums, code lengths.

With :math:`S = t^TP^2t` and :math:`\gamma = N - \mathrm{tr} P` (Orr 1996, section 5): UEV :math:`= S/(N-\gamma)`, FPE
:math:`= \frac{N+\gamma}{N-\gamma}\frac SN`, GCV :math:`= NS/(\mathrm{tr}P)^2`, BIC
:math:`= \frac{N+(\ln N-1)\gamma}{N-\gamma}\frac SN`; each is infinite where nothing is left for the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy

from bayessel._check import FloatArray


def generalised_cross_validation(
    n_rows: float, sum_squares: float | FloatArray, trace_p: float | FloatArray
) -> FloatArray:
    r"""GCV :math:`= NS/(\mathrm{tr}P)^2`, in squared units of the target."""
    return _where_noise_is_left(trace_p, lambda trace: n_rows * sum_squares / trace**2)


def unbiased_variance(n_rows: float, sum_squares: float | FloatArray, trace_p: float | FloatArray) -> FloatArray:
    r"""UEV :math:`= S/\mathrm{tr}P`, in squared units of the target."""
    return _where_noise_is_left(trace_p, lambda trace: sum_squares / trace)


def final_prediction_error(n_rows: float, sum_squares: float | FloatArray, trace_p: float | FloatArray) -> FloatArray:
    r"""FPE :math:`= (N+\gamma)S/(N\,\mathrm{tr}P)`, in squared units of the target."""
    return _where_noise_is_left(trace_p, lambda trace: (2 * n_rows - trace) / trace * sum_squares / n_rows)


def bayesian_information(n_rows: float, sum_squares: float | FloatArray, trace_p: float | FloatArray) -> FloatArray:
    r"""BIC in its error form, :math:`(N+(\ln N-1)\gamma)S/(N\,\mathrm{tr}P)`, in squared units of the target."""
    # N + (ln N - 1) gamma, written so that nothing cancels
    return _where_noise_is_left(
        trace_p, lambda trace: (trace + np.log(n_rows) * (n_rows - trace)) / trace * sum_squares / n_rows
    )


def _where_noise_is_left(trace_p: float | FloatArray, formula: Callable[[FloatArray], FloatArray]) -> FloatArray:
    trace = np.asarray(trace_p, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = formula(trace)
    return np.where(trace > 0.0, value, np.inf)


def log_normal(residuals: FloatArray, variances: Any) -> FloatArray:
    """Log density of a normal at distances `residuals` from its mean, in nats."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = -0.5 * (np.log(2.0 * np.pi * variances) + residuals * (residuals / variances))
    # nothing is known where the variance is infinite: such a row has density zero
    return np.asarray(np.where(np.isfinite(variances), value, -np.inf))


#: codes of which columns are in use
FLAGS = ("index", "bernoulli")


def flag_code_length(k: int, n_candidates: int, code: str) -> float:
    r"""Nats that say which k of :math:`k_0` candidates are in use: :math:`(k+1)\log k_0`, or a string of bits.

    The string of :math:`k_0` bits has their frequency sent first:
    :math:`\log k_0 - k\log\frac k{k_0} - (k_0-k)\log(1-\frac k{k_0})`.
    """
    if code == FLAGS[0]:
        return float((k + 1) * np.log(n_candidates))
    rest = n_candidates - k
    return float(np.log(n_candidates) - xlogy(k, k / n_candidates) - xlogy(rest, rest / n_candidates))


def weight_code_length(
    sum_squares: float, beta: float, weights: FloatArray, n_rows: float, delta: float, flags: float
) -> float:
    r"""MDL-w :math:`= \tfrac12\beta S - \tfrac n2\log\beta + \sum\log|w_i| - k\log\delta + L(\gamma)`, in nats.

    Parameters
    ----------
    sum_squares, beta
        :math:`S = \|t-\Phi w\|^2` and the noise precision.
    weights : (k,) array
        The weights sent.
    flags
        :math:`L(\gamma)`, `flag_code_length`.
    """
    data = 0.5 * (beta * sum_squares - n_rows * np.log(beta))
    return float(data + np.log(np.abs(weights)).sum() - len(weights) * np.log(delta) + flags)


def precision_code_length(log_evidence: float, n_rows: float, n_precisions: int, delta: float, flags: float) -> float:
    r"""MDL-alpha :math:`= -\log p(t) - \tfrac n2\log2\pi - n_\alpha\log\delta + L(\gamma)`, in nats."""
    data = -log_evidence - 0.5 * n_rows * np.log(2.0 * np.pi)
    return float(data - n_precisions * np.log(delta) + flags)


def target_code_length(n_rows: float, precision: float) -> float:
    r"""What turns both description lengths into whole ones: :math:`\tfrac n2\log2\pi - n\log\delta_t`."""
    return float(n_rows * (0.5 * np.log(2.0 * np.pi) - np.log(precision)))
