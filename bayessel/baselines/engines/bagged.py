"""Bagging (Breiman 1996): the mean of fits to bootstrap samples, and what rows left out of them say of its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.baselines.engines.linear_fit import noise_floor
from bayessel.baselines.engines.mars import MARSFit, fit_mars
from bayessel.fit import Status

#: least part of the error out of the bag that counts as noise, wherever the members agree
LEAST_NOISE = 0.1


@dataclass(frozen=True, eq=False)
class BaggedFit:
    """Members that have the same say.

    Attributes
    ----------
    members : list
        One fit per bootstrap sample.
    out_of_bag : (N,) array
        Mean prediction of each training row by the members that did not see it; NaN where all did.
    noise_variance : float
        What the mean squared error out of the bag has over the mean variance of members, and at least a tenth of it.
    status : Status
        How it went.
    """

    members: list[MARSFit]
    out_of_bag: FloatArray
    noise_variance: float
    status: Status

    def each(self, X: FloatArray) -> FloatArray:
        """Predictions (members, n)."""
        return np.array([member.predict(X) for member in self.members])

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (n,), and variance (n,) of a new observation: noise and the members' disagreement."""
        each = self.each(X)
        return each.mean(axis=0), self.noise_variance + each.var(axis=0)


def fit_bagged(
    X: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    n_bags: int = 50,
    step: Callable[[int, int], None] | None = None,
    **options: Any,
) -> BaggedFit:
    """Fit splines to `n_bags` bootstrap samples; `options` go to `fit_mars`.

    Every sample has its own stream of random numbers. When interrupted by the user, the members made until then remain.
    """
    N = len(X)
    members: list[MARSFit] = []
    count, total, squares = np.zeros(N), np.zeros(N), np.zeros(N)
    interrupted = False
    try:
        for own in rng.spawn(n_bags):
            drawn = own.integers(N, size=N)
            members.append(fit_mars(X[drawn], y[drawn], **options))
            if members[-1].status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            left = np.setdiff1d(np.arange(N), drawn)
            if len(left):
                guess = members[-1].predict(X[left])
                count[left] += 1
                total[left] += guess
                squares[left] += (guess - y.mean()) ** 2
            if step is not None:
                step(len(members), n_bags)
    except KeyboardInterrupt:
        if not members:
            raise
        interrupted = True
    seen = count > 0
    mean = np.where(seen, total / np.maximum(count, 1), np.nan)
    floor = float(noise_floor(y[:, None])[0])
    if seen.any():
        error = float(np.mean((y - mean)[seen] ** 2))
        spread = float(np.mean(squares[seen] / count[seen] - (mean[seen] - y.mean()) ** 2))
        noise = max(error - spread, LEAST_NOISE * error)
    else:
        noise = float(np.mean([member.noise_variance for member in members]))
    if interrupted:
        status = Status.INTERRUPTED
    elif (y == y[0]).all():
        status = Status.TOO_FEW_ROWS if N < 3 else Status.CONSTANT_TARGET
    elif N < 3:
        status = Status.TOO_FEW_ROWS
    else:
        status = Status.NOISE_AT_FLOOR if noise <= N * floor else Status.CONVERGED
    return BaggedFit(members, mean, max(noise, floor), status)
