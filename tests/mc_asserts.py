"""Statistical checks counted in Monte Carlo standard errors.

The standard error of a mean comes from the spread of the means of many independent chains: no autocorrelation has to be
estimated. Chains that start from exact draws of the target have exactly the target's expectations after any number of
updates of a right transition, so nothing is lost to burn-in.
"""

import numpy as np


def z_scores(chains, expected):
    """(mean − expected)/standard error for features of shape (chains, draws, features), or (chains, features)."""
    means = np.asarray(chains, dtype=np.float64)
    if means.ndim == 3:
        means = means.mean(axis=1)
    assert means.ndim == 2 and len(means) >= 20, "the spread of fewer than 20 chain means says little"
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert (error > 0.0).all(), "a feature that never varies has no standard error"
    return (means.mean(axis=0) - expected) / error


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
