"""Leave-one-out predictions from draws of the hyperparameters given all rows, by importance weights.

Given θ they are exact; p(θ|t_{−i}) ∝ p(θ|t)/p(t_i|t_{−i}, θ), so each draw weighs 1/p(t_i|t_{−i}, θ) for row i. The
largest weights are smoothed by a Pareto distribution (Vehtari, Simpson, Gelman, Yao and Gabry 2024).
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray

#: weights are not looked at with fewer draws
FEW_DRAWS = 20
#: shapes of Pareto tails up to which weighted means can be relied on, with many draws
LARGEST_SHAPE = 0.7


def weights(log_densities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log weights (S, n) that turn draws from the posterior of all rows into draws without each row.

    They are ∝ 1/p(t_i | t_{−i}, θ), Pareto-smoothed; with them the shapes of their tails, (n,), infinite where nothing
    can be fitted to one.
    """
    from arviz_stats.base.array import array_stats

    found, shapes = np.empty_like(log_densities), np.full(log_densities.shape[1], np.inf)
    for i, column in enumerate(log_densities.T):
        found[:, i] = -column - logsumexp(-column)
        try:
            found[:, i], shapes[i] = array_stats.psislw(column)
        except ValueError:  # the largest are all equal: the chains moved too rarely
            continue
    return found, shapes


def doubts(shapes: FloatArray, draws: int) -> str:
    """What to warn of; nothing where all shapes are small enough for so many draws."""
    limit = min(LARGEST_SHAPE, 1.0 - 1.0 / np.log10(draws))
    many = int((shapes > limit).sum())
    if not many:
        return ""
    return (
        f"{many} of {len(shapes)} rows change the posterior so much that their leave-one-out predictions are unsure "
        f"(Pareto shape above {limit:.2f}, see pareto_k_); more draws help"
    )
