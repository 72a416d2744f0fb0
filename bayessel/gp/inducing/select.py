"""Where inducing inputs begin: at rows of X, each the one of which the others so far say least."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.gp.inducing.covariance_parts import CovarianceParts
from bayessel.gp.inducing.cross_covariance import Cross

#: rows looked at, drawn at random when there are more
CANDIDATES = 8192
#: fraction of its prior variance below which a row has nothing left to say
NOTHING_LEFT = 1e-9


def greedy_variance(
    parts: CovarianceParts, theta: FloatArray, X: FloatArray, count: int, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Choose up to `count` rows by their conditional variance given those chosen: a Cholesky factor with pivoting.

    Each choice lowers tr(K − Q) most, to first sight (Burt, Rasmussen and van der Wilk 2020). Returns the rows, and the
    fraction of the variance of the rows looked at that is left. O(rows count²) work.
    """
    places = X if len(X) <= CANDIDATES else X[rng.choice(len(X), CANDIDATES, replace=False)]
    every = slice(0, len(places))

    def kernels(i: int) -> list[Cross]:
        return parts.at(theta, places, places[i : i + 1])

    left = np.asarray(sum(kernel.variances(every) for kernel in kernels(0)))
    whole = left.copy()
    count = min(count, len(places))
    factor, chosen = np.empty((count, len(places))), []
    for j in range(count):
        i = int(left.argmax())
        if left[i] <= NOTHING_LEFT * whole[i]:
            break
        row = sum(kernel.values(every, np.empty((len(places), 1)))[:, 0] for kernel in kernels(i))
        row = (row - factor[:j, i] @ factor[:j]) / np.sqrt(left[i])
        factor[j] = row
        left = np.maximum(left - row * row, 0.0)
        chosen.append(i)
    return places[chosen], float(left.sum() / whole.sum())
