r"""Pólya-Gamma variables, which make a logistic likelihood Gaussian (Polson, Scott and Windle 2013).

With :math:`\omega_n \sim PG(1, \eta_n)` to the log odds :math:`\eta_n` of each row the weights are Gaussian:
:math:`p(w | \omega) \propto p(w) \prod_n \exp(-\tfrac12 \omega_n (\eta_n - \kappa_n / \omega_n)^2)`,
:math:`\kappa_n = y_n - \tfrac12` (their section 3.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_ndtr

from bayessel._check import FloatArray

#: where the two proposals of Devroye's sampler meet
_MEET = 0.64


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
