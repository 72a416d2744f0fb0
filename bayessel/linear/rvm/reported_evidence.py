r"""The evidence that is reported, and the weights, with the digits that scaling the columns would cost.

The quadratic form :math:`\beta\|t-\Phi w\|^2 + w^TAw` is stationary at the posterior mean, so errors of the weights
enter it squared; what has to be accurate is the residual, measured here with twice the digits.
"""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel._numerics import accurate_residual
from bayessel._row_weights import shares_of_means
from bayessel.linear.reported_sums import sums
from bayessel.linear.weight_posterior import Posterior


def evaluate(
    design: FloatArray, t: FloatArray, alpha: FloatArray, beta: float, posterior: Posterior
) -> tuple[float, FloatArray]:
    """Log evidence and posterior means of the columns in `design`."""
    spectrum, n, log_beta = posterior.spectrum, len(t), float(np.log(beta))
    if spectrum.centred:
        share = shares_of_means(n, spectrum.row_weights)
        design, t = design - share @ design, t - share @ t
        design, t = design - share @ design, t - share @ t  # the first means were rounded
    if spectrum.row_weights is not None:
        design, t = spectrum.row_weights.scale(design), spectrum.row_weights.scale(t)
    if not len(alpha):
        return float(spectrum.log_density(log_beta, 0.0, beta * float(t @ t))), np.zeros(0)
    w = posterior.coef[: len(alpha)]
    best, kept = np.inf, w
    height = max(1, 2_000_000 // len(w))
    for _ in range(3):
        # contributions of similar size: powers of two go from the weights to the columns, exactly
        _, exponent = np.frexp(w)
        residual = np.empty(n)
        for rows in (slice(start, start + height) for start in range(0, n, height)):
            part = np.ldexp(design[rows], exponent)
            residual[rows] = accurate_residual(t[rows, None], part, np.ldexp(w, -exponent)[:, None])[:, 0]
        quad = beta * float(residual @ residual) + float((alpha * w) @ w)
        if not quad < best:
            break
        best, kept = quad, w
        w = w + covariance_times(posterior, beta * (design.T @ residual) - alpha * w)
    log_det = sums(spectrum, posterior.lam).log_det
    return float(spectrum.log_density(log_beta, log_det, best)), kept


def covariance_times(posterior: Posterior, right: FloatArray) -> FloatArray:
    """Covariance of the weights times a vector (k,) or the columns of a matrix (k, j)."""
    spectrum = posterior.spectrum
    scale = posterior.columns.scale
    scaled = (scale * right.T).T
    along = spectrum.Vt @ scaled
    inner = spectrum.Vt.T @ (along.T / (spectrum.s**2 + posterior.lam)).T
    if spectrum.Vt.shape[0] < spectrum.Vt.shape[1]:
        inner = inner + (scaled - spectrum.Vt.T @ along) / posterior.lam
    return np.asarray((scale * inner.T).T / posterior.beta)
