r"""Third-level evidence: the hyperparameters integrated out, so that models with different dictionaries compare.

With flat priors on :math:`\log\alpha` and :math:`\log\beta`, a Gaussian around the maximum gives
:math:`\log p(t|\mathcal H) \approx \log p(t|\hat\alpha,\hat\beta) + \tfrac12\log\frac2\gamma +
\tfrac12\log\frac2{N-\gamma}` (constants common to all models dropped: :math:`\log 2\pi` and the width of the prior). It
is good when :math:`\gamma \gg 1` and :math:`N-\gamma \gg 1`; outside, integrate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

from bayessel._check import as_count, as_positive
from bayessel.fit import Status
from bayessel.linear.spectrum import Spectrum

#: farthest end of the range of integration from the largest squared singular value, in logarithms
_FARTHEST = 200.0 * np.log(10.0)


def gaussian_approximation(log_evidence: float, gamma: float, n_free: float) -> float:
    """Third-level evidence by the Gaussian approximation, in nats."""
    if gamma <= 0.0 or gamma >= n_free:  # a width of infinity: the approximation has nothing to say
        return np.inf
    return float(log_evidence + 0.5 * np.log(2.0 / gamma) + 0.5 * np.log(2.0 / (n_free - gamma)))


def model_evidence(spectrum: Spectrum, log_evidence: float, gamma: float) -> float:
    """Third-level evidence of a fit at its best precisions, both integrated out.

    The Gaussian approximation where 3 parameters or more are well determined and 3 rows or more are left for the noise,
    the exact quadrature over its default range elsewhere; NaN with no row but those the bias takes.
    """
    if spectrum.n_free < 1:
        return np.nan
    if min(gamma, spectrum.n_free - gamma) >= 3.0:
        return gaussian_approximation(log_evidence, gamma, spectrum.n_free)
    return model_evidence_quadrature(spectrum).value


@dataclass(frozen=True)
class Quadrature:
    """The exact third-level integral.

    Attributes
    ----------
    value : float
        log of the integral of p(t|alpha, beta) over log beta (whole axis) and log lambda (the range), minus log 2 pi,
        so that it is on the scale of the Gaussian approximation.
    lower, upper : float
        Range of lambda.
    edge_mass : float
        Share of the integral in the outer 5 % of the range: when it is large the flat prior is improper in effect, and
        the value depends on the range.
    status : Status
        AT_BOUND when `edge_mass` passes 5 %; TOO_FEW_ROWS, and a value of NaN, when no row is left but the bias's.
    """

    value: float
    lower: float
    upper: float
    edge_mass: float
    status: Status


def model_evidence_quadrature(
    spectrum: Spectrum, lower: float | None = None, upper: float | None = None, points: int = 4001
) -> Quadrature:
    r"""Integrate the evidence over :math:`\log\alpha` and :math:`\log\beta` exactly.

    In :math:`(\log\lambda, \log\beta)` the integral over :math:`\beta` is a Gamma function,
    :math:`\int \beta^{N/2}e^{-\beta q/2}\,d\log\beta = \Gamma(N/2)(2/q)^{N/2}`; what is left is one smooth integral
    over :math:`\log\lambda`, done by Simpson's rule.

    Parameters
    ----------
    spectrum
        The factorisation (``fit.spectrum``).
    lower, upper
        Range of lambda; default 1e-12 and 1e6 times the largest squared singular value. The flat prior on
        log lambda is improper, so a range is part of the model: use one range for all models compared.
    points
        Odd number of abscissae.
    """
    if not isinstance(spectrum, Spectrum):
        raise TypeError(
            f"model_evidence_quadrature needs a Spectrum (fit.spectrum, or Spectrum.of(Phi, t)), "
            f"got {type(spectrum).__name__}"
        )
    scale = float(spectrum.s[0] ** 2) if len(spectrum.s) and spectrum.s[0] > 0.0 else 1.0
    lo = np.log(as_positive(lower, "lower") if lower is not None else 1e-12 * scale)
    hi = np.log(as_positive(upper, "upper") if upper is not None else 1e6 * scale)
    if not lo < hi:
        raise ValueError(f"lower must be less than upper, got {np.exp(lo)} and {np.exp(hi)}")
    if lo < np.log(scale) - _FARTHEST or hi > np.log(scale) + _FARTHEST:
        raise ValueError(
            f"lower and upper must lie within 1e-200 and 1e200 of the largest squared singular value, {scale:.3g}; got "
            f"{np.exp(lo):.3g} and {np.exp(hi):.3g}"
        )
    points = as_count(points, "points", 3)
    points += 1 - points % 2
    u = np.linspace(lo, hi, points)
    n = spectrum.n_free
    if n < 1:  # the bias has taken the only row
        return Quadrature(np.nan, float(np.exp(lo)), float(np.exp(hi)), 1.0, Status.TOO_FEW_ROWS)
    parts = np.array_split(np.exp(u), 1 + points * len(spectrum.s) // 2_000_000)  # working arrays of 16 MB
    with np.errstate(divide="ignore"):
        logs = np.concatenate([-0.5 * n * np.log(spectrum.quad(part)) - 0.5 * spectrum.log_det(part) for part in parts])
    # what assemble_evidence says at beta = 1 beyond its lambda-dependent parts, and Gamma(n/2) 2^(n/2)
    logs += float(spectrum.assemble_evidence(0.0, 0.0, 1.0)) + gammaln(0.5 * n) + 0.5 * n * np.log(2.0)
    simpson = np.full(points, 2.0)
    simpson[1::2] = 4.0
    simpson[[0, -1]] = 1.0
    terms = logs + np.log(simpson * (u[1] - u[0]) / 3.0)
    total = float(logsumexp(terms))
    band = max(1, points // 20)
    edge = (
        float(np.exp(logsumexp(np.concatenate([terms[:band], terms[-band:]])) - total)) if np.isfinite(total) else 1.0
    )
    status = Status.AT_BOUND if edge > 0.05 else Status.CONVERGED
    return Quadrature(total - float(np.log(2.0 * np.pi)), float(np.exp(lo)), float(np.exp(hi)), edge, status)
