r"""Pólya-Gamma variables, which make likelihoods of labels and counts Gaussian (Polson, Scott and Windle 2013).

With :math:`\omega_n \sim PG(1, \eta_n)` to the log odds :math:`\eta_n` of each row the weights are Gaussian:
:math:`p(w | \omega) \propto p(w) \prod_n \exp(-\tfrac12 \omega_n (\eta_n - \kappa_n / \omega_n)^2)`,
:math:`\kappa_n = y_n - \tfrac12` (their section 3.1). A count y that is negative binomial with dispersion r and mean
:math:`\mu = r e^\psi` has the factor :math:`e^{y\psi}/(1+e^\psi)^{y+r}`: so :math:`\omega_n \sim PG(y_n + r, \psi_n)`
and :math:`\kappa_n = (y_n - r)/2`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr

from bayessel._check import FloatArray

#: where the two proposals of Devroye's sampler meet
_MEET = 0.64
#: terms of the sum of gammas that are drawn one by one
_TERMS = 32
#: below this argument a difference is expanded; and the least share of a sum that its rest is taken to be
_NEAR, _SMALL = 0.2, 1e-12


def polya_gamma(c: Any, rng: np.random.Generator) -> FloatArray:
    r"""Draw PG(1, c), exactly: a quarter of Jacobi's J*(1, \|c\|/2), by an alternating series (section 4 of the paper).

    The mean is tanh(c/2)/(2c), the Laplace transform E exp(-ωs) = cosh(c/2)/cosh(√(c²/4 + s/2)).
    """
    z = 0.5 * np.abs(np.asarray(c, dtype=np.float64)).ravel()
    if not np.isfinite(z).all():
        raise ValueError(f"c must be finite log odds, got {np.asarray(c).ravel()[~np.isfinite(z)][0]}")
    result = np.empty(len(z))
    left = np.arange(len(z))
    while len(left):
        zl = z[left]
        x = _proposal(zl, rng)
        accepted = _accept(x, rng.uniform(size=len(x)))
        result[left[accepted]] = 0.25 * x[accepted]
        left = left[~accepted]
    return result.reshape(np.shape(c))


def polya_gamma_sum(b: Any, c: Any, rng: np.random.Generator) -> FloatArray:
    r"""Draw PG(b, c) for any b > 0: :math:`\frac{1}{2\pi^2}\sum_k g_k/((k-\frac12)^2 + c^2/4\pi^2)`, g_k ~ Gamma(b, 1).

    The first 32 terms are drawn, and the rest as one gamma variable of its mean and variance. So mean and variance of
    the sum are right, and the third cumulant to 1e-7 of itself for log odds below 10, to 1e-3 at 60.
    """
    c = np.asarray(c, dtype=np.float64)
    b = np.broadcast_to(np.asarray(b, dtype=np.float64), c.shape)
    if not np.isfinite(c).all():
        raise ValueError(f"c must be finite log odds, got {c.ravel()[~np.isfinite(c.ravel())][0]}")
    if not (np.isfinite(b) & (b > 0.0)).all():
        raise ValueError(f"b must be positive, got {b.ravel()[~(np.isfinite(b) & (b > 0.0)).ravel()][0]}")
    levels = (np.arange(_TERMS) + 0.5) ** 2 + (np.abs(c)[..., None] / (2.0 * np.pi)) ** 2
    drawn = (rng.standard_gamma(np.broadcast_to(b[..., None], levels.shape)) / levels).sum(axis=-1)
    first, second = _whole_sums(c)
    # what the terms beyond add to mean and variance; differences that have lost their digits are of no account
    mean = np.maximum(first - (1.0 / levels).sum(axis=-1), _SMALL * first)
    variance = np.maximum(second - (1.0 / levels**2).sum(axis=-1), _SMALL * second)
    shape = b * mean**2 / variance
    rest = rng.standard_gamma(shape) * variance / mean
    return np.asarray((drawn + rest) / (2.0 * np.pi**2))


def _whole_sums(c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ 1/d and Σ 1/d² over all d = (k − ½)² + c²/4π²: π² tanh(c/2)/c and π⁴ (sinh c − c)/(c³ cosh²(c/2))."""
    x = np.maximum(np.abs(c), _NEAR)
    e = np.exp(-x)
    second = (2.0 * (1.0 - e**2) - 4.0 * x * e) / (x**3 * (1.0 + e) ** 2)
    near = np.minimum(np.abs(c), _NEAR)
    half = np.cosh(0.5 * near)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(near > 0.0, np.tanh(0.5 * np.abs(c)) / np.abs(c), 0.5)
    series = (1.0 / 6.0 + near**2 / 120.0 + near**4 / 5040.0 + near**6 / 362880.0) / half**2
    return np.pi**2 * first, np.pi**4 * np.where(np.abs(c) < _NEAR, series, second)


def _proposal(z: FloatArray, rng: np.random.Generator) -> FloatArray:
    """An exponential beyond the meeting point, an inverse Gaussian below it."""
    rate = 0.125 * np.pi**2 + 0.5 * z**2
    log_tail = np.log(0.5 * np.pi / rate) - rate * _MEET
    root = 1.0 / np.sqrt(_MEET)
    # 2 exp(-z) times the distribution function of the inverse Gaussian, mean 1/z, at the meeting point
    log_head = np.log(2.0) + np.logaddexp(
        -z + log_ndtr(root * (_MEET * z - 1.0)), z + log_ndtr(-root * (_MEET * z + 1.0))
    )
    tail = rng.uniform(size=len(z)) < 1.0 / (1.0 + np.exp(np.clip(log_head - log_tail, -700.0, 700.0)))
    x = _MEET + rng.standard_exponential(len(z)) / rate
    x[~tail] = _truncated_inverse_gaussian(z[~tail], rng)
    return x


def _truncated_inverse_gaussian(z: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Inverse Gaussian of mean 1/z and shape 1, below the meeting point."""
    x = np.empty(len(z))
    left = np.arange(len(z))
    while len(left):
        zl = z[left]
        small = zl * _MEET < 1.0  # the mean lies beyond
        found, good = np.empty(len(left)), np.zeros(len(left), dtype=bool)
        n = int(small.sum())
        first, second = rng.standard_exponential(n), rng.standard_exponential(n)
        candidate = _MEET / (1.0 + _MEET * first) ** 2
        found[small] = candidate
        good[small] = (first**2 <= 2.0 * second / _MEET) & (
            rng.uniform(size=n) <= np.exp(-0.5 * zl[small] ** 2 * candidate)
        )
        candidate = rng.wald(1.0 / zl[~small], 1.0)
        found[~small] = candidate
        good[~small] = candidate <= _MEET
        x[left[good]] = found[good]
        left = left[~good]
    return x


def _accept(x: FloatArray, u: FloatArray) -> Any:
    """Whether u a_0(x) is below the alternating sum Σ (-1)^n a_n(x), whose partial sums enclose it."""
    total = _coefficient(0, x)
    level = u * total
    accepted, undecided = np.zeros(len(x), dtype=bool), np.ones(len(x), dtype=bool)
    n = 0
    while undecided.any():
        n += 1
        term = _coefficient(n, x)
        if n % 2:
            total = total - term
            accepted |= undecided & (level <= total)
            undecided &= level > total
        else:
            total = total + term
            undecided &= level <= total
    return accepted


def _coefficient(n: int, x: FloatArray) -> FloatArray:
    k = n + 0.5
    head = np.exp(1.5 * np.log(2.0 / (np.pi * x)) - 2.0 * k**2 / x)
    tail = np.exp(-0.5 * k**2 * np.pi**2 * x)
    return np.asarray(np.pi * k * np.where(x <= _MEET, head, tail))
