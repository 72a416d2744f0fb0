"""Statistical checks counted in Monte Carlo standard errors.

The standard error of a mean comes from the spread of the means of many independent chains: no autocorrelation has to be
estimated. Chains that start from exact draws of the target have exactly the target's expectations after any number of
updates of a right transition, so nothing is lost to burn-in.
"""

import numpy as np


def z_scores(chains, expected):
    """(mean − expected)/standard error for features of shape (chains, draws, features), or (chains, features).

    Where chain means are skewed (squares, exponentials), mean and standard error go together and the plain ratio is
    far too often below −4; Hall's transformation (1992, J. R. Statist. Soc. B 54), monotone, takes that out.
    """
    means = np.asarray(chains, dtype=np.float64)
    if means.ndim == 3:
        means = means.mean(axis=1)
    assert means.ndim == 2 and len(means) >= 20, "the spread of fewer than 20 chain means says little"
    n, mean, spread = len(means), means.mean(axis=0), means.std(axis=0, ddof=1)
    assert (spread > 0.0).all(), "a feature that never varies has no standard error"
    skewness = np.mean((means - mean) ** 3, axis=0) / spread**3
    t = (mean - expected) / spread
    t = t + skewness * t**2 / 3.0 + skewness**2 * t**3 / 27.0 + skewness / (6.0 * n)
    return np.sqrt(n) * t


def assert_means(chains, expected, limit=4.0, names=None):
    """Every mean within `limit` standard errors of what it should be."""
    z = z_scores(chains, expected)
    bad = np.flatnonzero(~(np.abs(z) <= limit))
    if bad.size:
        mean = np.asarray(chains, dtype=np.float64).reshape(-1, z.size).mean(axis=0)
        expected = np.broadcast_to(expected, z.shape)
        lines = [
            f"{names[i] if names else i}: {mean[i]:.6g}, expected {expected[i]:.6g}, {z[i]:+.1f} s.e." for i in bad
        ]
        raise AssertionError("\n".join([f"{bad.size} of {z.size} means are off", *lines[:10]]))
