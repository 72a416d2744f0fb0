r"""Several classes: p(t = c | f) = e^{f_c}/Σ e^{f_k}, and its mean where the functions are normal.

The mean is one over points of Sobol's sequence, the same for all rows, with their mirror images.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, logsumexp, ndtri
from scipy.stats import qmc

from bayessel._check import FloatArray, as_float_array, check_finite

#: points of the mean, a power of two, and numbers worked on at a time
_POINTS, _BLOCK = 512, 1 << 21


def as_classes(t: ArrayLike) -> FloatArray:
    """Ones at the class of each row, (n, C), from integers 0 … C − 1 that all occur."""
    codes = as_float_array(t, "t")
    check_finite(codes, "t")
    classes = np.unique(codes)
    if codes.ndim != 1 or not np.array_equal(classes, np.arange(len(classes))) or len(classes) < 2:
        raise ValueError(
            f"t must be the numbers of at least two classes, 0, 1, …, each of which occurs; got {classes[:5].tolist()}"
        )
    return np.asarray(codes[:, None] == classes, dtype=np.float64)


def mean_log_softmax(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    """log E[softmax(f)] for f ~ N(mean, covariance) with means (N, C) and covariances (N, C, C): (N, C)."""
    z = _normals(mean.shape[1])
    values, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    found = np.empty_like(mean)
    rows = max(1, _BLOCK // (len(z) * mean.shape[1]))
    for begin in range(0, len(mean), rows):
        part = slice(begin, begin + rows)
        f = mean[part, None, :] + z @ np.swapaxes(root[part], 1, 2)
        found[part] = logsumexp(log_softmax(f, axis=2), axis=1) - np.log(len(z))
    # rounding apart the means sum to one already
    return np.asarray(found - logsumexp(found, axis=1, keepdims=True))


@cache
def _normals(count: int) -> FloatArray:
    """Points that are spread like a normal distribution, (S, C), in pairs of opposite sign."""
    points = qmc.Sobol(count, scramble=True, rng=np.random.default_rng(0)).random(_POINTS)
    z = ndtri(points)
    return np.vstack([z, -z])
