r"""Normalised maximum likelihood of linear-Gaussian regression: the code of least worst-case regret, in nats.

With k independent columns, :math:`\hat\tau = \|t-\Phi\hat w\|^2/n` and :math:`\hat R = \|\Phi\hat w\|^2/n` of the least
squares fit. The maximised likelihood :math:`(2\pi e\hat\tau)^{-n/2}` has no finite integral over all t; Rissanen (2000,
"MDL denoising", IEEE Trans. Inf. Theory 46, 2537) restricts t to :math:`\hat\tau \ge \tau_0, \hat R \le R_0`, where the
integral is known in closed form, sets both bounds to their best values for the data and normalises once more, over
:math:`\hat\tau \in [\tau_1, \tau_2]`, :math:`\hat R \in [R_1, R_2]`. What is left is

.. math:: L = \tfrac{n-k}2\log\hat\tau + \tfrac k2\log\hat R + \tfrac n2\log n\pi - \log\Gamma(\tfrac{n-k}2)
          - \log\Gamma(\tfrac k2) + \log\log\frac{\tau_2}{\tau_1} + \log\log\frac{R_2}{R_1}

for 0 < k < n, and without the three terms of R and k/2 for k = 0. Every constant is kept, so rescaling t by s adds
n log s. The bounds matter through their ratios only, and only when k = 0 is compared with k > 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bayessel._check import as_count, as_matrix, as_positive, as_target, one_of
from bayessel._formulas import FLAGS
from bayessel._numerics import few_threads
from bayessel.diagnostics._mdl import flag_length
from bayessel.diagnostics.fit_reader import read

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from bayessel.fit import Fit

#: ratio of the largest to the smallest noise level (or signal) in variance that the code provides for
RANGE = 1e12


def nml_code_length(
    n_rows: int,
    rank: int,
    sum_squares: float,
    fitted_squares: float,
    noise_range: float = RANGE,
    signal_range: float = RANGE,
) -> float:
    r"""Normalised maximum likelihood code length from sums of a least squares fit.

    Parameters
    ----------
    n_rows, rank
        n and k, the number of independent columns.
    sum_squares, fitted_squares
        :math:`n\hat\tau = \|t-\Phi\hat w\|^2` and :math:`n\hat R = \|\Phi\hat w\|^2`.
    noise_range, signal_range
        :math:`\tau_2/\tau_1` and :math:`R_2/R_1`.

    Returns
    -------
    float
        Nats; infinite for k >= n, where the maximised likelihood itself is infinite, and minus infinity for residuals
        that are exactly zero.
    """
    n, k = as_count(n_rows, "n_rows"), as_count(rank, "rank", 0)
    if k >= n:
        return np.inf
    ranges = [as_positive(noise_range, "noise_range"), as_positive(signal_range, "signal_range")]
    if min(ranges) <= 1.0:
        raise ValueError(f"noise_range and signal_range must be greater than 1, got {min(ranges)}")
    with np.errstate(divide="ignore"):
        noise = 0.5 * (n - k) * np.log(sum_squares / n) - gammaln(0.5 * (n - k)) + np.log(np.log(ranges[0]))
        signal = 0.5 * k * np.log(fitted_squares / n) - gammaln(0.5 * k) + np.log(np.log(ranges[1])) if k else 0.0
    return float(noise + signal + 0.5 * n * np.log(n * np.pi))


def nml(
    fitted: Fit | BaseEstimator | ArrayLike,
    t: ArrayLike | None = None,
    *,
    flags: str | None = "index",
    noise_range: float = RANGE,
    signal_range: float = RANGE,
) -> float:
    r"""Normalised maximum likelihood code length of the data with the columns a fit uses.

    The weights are those of least squares on the chosen columns, whatever prior chose them; the code for which columns
    they are (`flag_length`) is added. Distrust it with nearly as many columns as rows, and where the numerical rank of
    the columns is a matter of taste. A large offset in the target counts as signal: centre the target first.

    Parameters
    ----------
    fitted
        A result of `fit_rvm`, `fit_evidence` or `fit_ridge`, or a fitted estimator; with `t`, a design (n, k).
    t
        Target of that design; nothing was chosen then, and no flags are sent.
    flags
        'index', 'bernoulli', or None for no flags.
    noise_range, signal_range
        The ranges :math:`\tau_2/\tau_1`, :math:`R_2/R_1` of noise variance and signal power the code provides for.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> t = x[:, 0] - 2 * x[:, 0] ** 3 + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> lengths = [nml(x ** np.arange(degree + 1), t) for degree in range(8)]
    >>> int(np.argmin(lengths))
    3
    """
    if t is not None:
        design = as_matrix(fitted, "the design")
        return nml_code_length(
            len(design), *_least_squares(design, as_target(t, len(design))), noise_range, signal_range
        )
    if flags is not None:
        one_of(flags, "flags", FLAGS)
    at = read(fitted)
    message, fit = at.message("fitted"), at.fit
    spectrum = getattr(fit, "spectrum", None)
    parts = _least_squares(fit.design, fit.target) if spectrum is None else _from_spectrum(spectrum)  # type: ignore[attr-defined]
    value = nml_code_length(fit.n_rows, *parts, noise_range, signal_range)
    return value + (0.0 if flags is None else flag_length(len(message.weights), message.n_candidates, flags))


def _least_squares(Phi: Any, t: Any) -> tuple[int, float, float]:
    """Rank, squared residual and squared fit of least squares on columns scaled to unit length."""
    size = np.sqrt((Phi**2).sum(axis=0))
    unit = Phi[:, size > 0.0] / size[size > 0.0]
    if unit.shape[1] == 0:
        return 0, float(t @ t), 0.0
    with few_threads(unit.size):
        U, s, _ = sl.svd(unit, full_matrices=False, check_finite=False)
    U = U[:, s > s[0] * np.finfo(float).eps * max(unit.shape)]
    fit = U @ (U.T @ t)
    residual = t - fit
    residual -= U @ (U.T @ residual)  # once more: the first pass leaves rounding of the size of t
    return U.shape[1], float(residual @ residual), float(fit @ fit)


def _from_spectrum(spectrum: Any) -> tuple[int, float, float]:
    """The same from a factorisation: the unpenalised directions (the bias) count as columns like all others."""
    kept = spectrum.s > spectrum.s.max(initial=0.0) * np.finfo(float).eps * max(spectrum.n_rows, spectrum.n_columns)
    inside = spectrum.z**2
    fitted = float(inside[kept].sum())
    if spectrum.n_flat:
        pivots = spectrum.flat.pivots if spectrum.flat is not None else list(range(spectrum.n_flat))
        # flat_root is R^-1 with R^T R = F^T F: |F b|^2 = |R b|^2
        fitted += float((sl.solve_triangular(spectrum.flat_root, spectrum.flat_offset[pivots]) ** 2).sum())
    return int(kept.sum()) + spectrum.n_flat, float(spectrum.rss + inside[~kept].sum()), fitted
