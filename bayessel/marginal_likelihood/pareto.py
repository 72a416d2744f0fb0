"""How heavy the tail of importance ratios is."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray

#: index of the tail from which on ratios have no variance, and an error estimated from them means nothing
LARGEST_INDEX = 0.5


def tail_index(log_ratios: FloatArray) -> float:
    """Index k of the generalised Pareto distribution that fits the largest ratios; 1/k moments of them exist."""
    from arviz_stats.base import array_stats

    logs = np.where(np.isfinite(log_ratios), log_ratios, -np.inf).ravel()
    logs = logs[np.isfinite(logs)]
    if len(logs) < 25 or np.ptp(logs) == 0.0:
        return float("-inf") if len(logs) and np.ptp(logs) == 0.0 else float("inf")
    found = float(array_stats.psislw(logs.max() - logs)[1])  # it takes the negative of what it weighs by
    return found if np.isfinite(found) else float("inf")
