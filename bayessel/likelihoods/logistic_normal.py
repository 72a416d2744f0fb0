r"""Logarithms of averages of the logistic function over normal distributions, in closed form up to a short sum.

The logistic distribution is a mixture of normals over their standard deviation: :math:`\sigma(f) = \int\Phi(f/2\lambda)
k(\lambda)\,d\lambda` with Kolmogorov's density :math:`k(\lambda) = 8\lambda\sum_n(-1)^{n+1}n^2e^{-2n^2\lambda^2}`
(Andrews and Mallows 1974), so

.. math:: \int\sigma(f)\,N(f|m,v)\,df = \int\Phi\bigl(m/\sqrt{4\lambda^2+v}\bigr)k(\lambda)\,d\lambda,

and equal steps of log λ make it a sum that has almost all digits.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import log_ndtr, logsumexp

from bayessel._check import FloatArray

#: the range of log λ, outside which the density is below e⁻⁴⁰ (below) or decides about log odds of −100 (above), and
#: the number of values
_LOW, _HIGH, _NODES = float(np.log(0.17)), float(np.log(6.0)), 40
#: below, the logistic function is an exponential, whose average is known
_EXPONENTIAL = -30.0
#: where the two series of the density meet
_MEET = 0.9
#: numbers that are worked on at a time
_BLOCK = 1 << 18


def log_averaged_logistic(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """log ∫ σ(f) N(f | mean, variance) df, (n,), accurate in the lower tail."""
    spread, logs = _mixture()
    found = np.empty(len(mean))
    rows = max(1, _BLOCK // len(spread))
    for begin in range(0, len(mean), rows):
        part = slice(begin, begin + rows)
        away = mean[part, None] / np.sqrt(spread + variance[part, None])
        found[part] = logsumexp(log_ndtr(away) + logs, axis=1)
    far = mean + 1.5 * variance < _EXPONENTIAL
    return np.minimum(np.where(far, mean + 0.5 * variance, found), 0.0)


@cache
def _mixture() -> tuple[FloatArray, FloatArray]:
    """4λ² and the logarithms of the weights."""
    u = np.linspace(_LOW, _HIGH, _NODES)
    logs = _log_density(np.exp(u)) + u + np.log(u[1] - u[0])
    return 4.0 * np.exp(2.0 * u), logs - logsumexp(logs)


def _log_density(x: FloatArray) -> FloatArray:
    """Log of Kolmogorov's density, by the series that converges fast."""
    n = np.arange(1.0, 12.0)[:, None]
    # large: the first term is taken out, so that nothing underflows
    with np.errstate(under="ignore"):
        far = np.sum(-((-1.0) ** n) * n**2 * np.exp(-2.0 * (n**2 - 1.0) * x**2), axis=0)
        y = (np.pi * (2.0 * n - 1.0) / x) ** 2 / 8.0
        near = np.sum((2.0 * y - 1.0) * np.exp(y[0] - y), axis=0)
    of_far = np.log(8.0 * x) - 2.0 * x**2 + np.log(np.where(x > _MEET, far, 1.0))
    of_near = 0.5 * np.log(2.0 * np.pi) - 2.0 * np.log(x) - y[0] + np.log(np.where(x > _MEET, 1.0, near))
    return np.where(x > _MEET, of_far, of_near)
