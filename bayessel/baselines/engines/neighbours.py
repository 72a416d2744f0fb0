"""The k nearest neighbours, k by leave-one-out for each loss (Rasmussen 1996, section 3.4 and appendix A.2).

Rows whose squared distances differ from that of the k-th by less than a tolerance are ties. Their targets are averaged,
and the average stands for as many of the k neighbours as tie at or before the k-th.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from bayessel._check import FloatArray
from bayessel.baselines.engines.linear_fit import noise_floor
from bayessel.fit import Status
from bayessel.work.interrupts import InterruptGuard

#: squared distances that differ by less are equal
TOLERANCE = 1e-6
#: order of the losses in arrays
LOSSES = ("squared", "absolute", "log")
#: distances held at a time
BLOCK = 1_000_000


@dataclass(frozen=True, eq=False)
class NeighbourFit:
    """The training set, and how many neighbours to ask for each loss.

    Attributes
    ----------
    X, Y : (N, D) and (N, K) arrays
        Training rows.
    first_variance : (K,) array
        ς², mean squared difference of the target to that of the first neighbour.
    k : dict
        Number of neighbours for 'squared', 'absolute' and 'log' loss.
    loo : (N - 1, 3) array
        Leave-one-out losses with 1, 2, … neighbours, summed over outputs, mean over rows; columns as in `k`.
    tolerance : float
        Squared distances that differ by less are equal.
    status : Status
        How it went.
    """

    X: FloatArray
    Y: FloatArray
    first_variance: FloatArray
    k: dict[str, int]
    loo: FloatArray
    tolerance: float
    status: Status

    def mean(self, new: FloatArray, loss: str = "squared") -> FloatArray:
        """Means (n, K) over the neighbours that `loss` asks for."""
        return self._pieces(new, lambda targets: targets.mean(axis=1), loss)

    def median(self, new: FloatArray) -> FloatArray:
        """Medians (n, K) over the neighbours for absolute loss."""
        return self._pieces(new, lambda targets: np.median(targets, axis=1), "absolute")

    def variance(self, new: FloatArray) -> FloatArray:
        """Variances (n, K) of the predictive Gaussian, eq. (3.11): (Σ(y − ȳ)² + ς²)/k."""
        k = self.k["log"]
        return self._pieces(new, lambda targets: targets.var(axis=1) + self.first_variance / k, "log")

    def _pieces(self, new: FloatArray, what: Callable[[FloatArray], FloatArray], loss: str) -> FloatArray:
        size = max(1, BLOCK // max(len(self.X), self.k[loss] * self.Y.shape[1]))
        pieces = [new[start : start + size] for start in range(0, len(new), size)]
        return np.concatenate(
            [what(neighbour_targets(self.X, self.Y, piece, self.k[loss], self.tolerance)) for piece in pieces]
        )


def neighbour_targets(X: FloatArray, Y: FloatArray, new: FloatArray, k: int, tolerance: float) -> FloatArray:
    """Targets (n, k, K) of the k nearest rows of each new one, the average of ties in place of the tied."""
    distance = cdist(new, X, "sqeuclidean")
    nearest = np.argpartition(distance, k - 1, axis=1)[:, :k]
    among = np.take_along_axis(distance, nearest, axis=1)
    last = among.max(axis=1, keepdims=True)
    tied = np.abs(distance - last) < tolerance
    targets = Y[nearest]
    average = (tied.astype(float) @ Y) / tied.sum(axis=1)[:, None]
    # a tie of one is itself, and is not to be rounded by a sum over zeros
    at_end = (last - among < tolerance) & (tied.sum(axis=1) > 1)[:, None]
    return np.where(at_end[:, :, None], average[:, None, :], targets)


def first_neighbour_variance(X: FloatArray, Y: FloatArray, tolerance: float = TOLERANCE) -> FloatArray:
    """ς² (K,): mean squared difference of each target to that of the row's first neighbour, ties averaged."""
    N = len(X)
    total = np.zeros(Y.shape[1])
    for start, stop in _blocks(N):
        distance = _others(X, start, stop)
        tied = (distance - distance.min(axis=1, keepdims=True) < tolerance).astype(float)
        total += (((tied @ Y) / tied.sum(axis=1)[:, None] - Y[start:stop]) ** 2).sum(axis=0)
    return np.asarray(total / N)


def fit_neighbours(
    X: FloatArray,
    Y: FloatArray,
    *,
    tolerance: float = TOLERANCE,
    step: Callable[[int, int], None] | None = None,
) -> NeighbourFit:
    """Find the number of neighbours, out of all, with the least leave-one-out loss for each of three losses.

    O(N² (D + log N)): one sort per row, then mean, variance and median of every k from those of k - 1. `step` is called
    with (rows left out, rows). When interrupted by the user, the rows seen until then decide.
    """
    N = len(X)
    floor = noise_floor(Y)
    if N == 1:
        return NeighbourFit(X, Y, floor, dict.fromkeys(LOSSES, 1), np.zeros((0, 3)), tolerance, Status.TOO_FEW_ROWS)
    first = first_neighbour_variance(X, Y, tolerance)
    status = Status.NOISE_AT_FLOOR if (first <= N * floor).any() else Status.CONVERGED
    if (Y == Y[:1]).all():
        status = Status.CONSTANT_TARGET
    elif N == 2:
        status = Status.TOO_FEW_ROWS
    first = np.maximum(first, floor)
    total, seen, interrupted = _left_out(X, Y, first, tolerance, step)
    best = total.argmin(axis=0) + 1
    return NeighbourFit(
        X,
        Y,
        first,
        {loss: int(k) for loss, k in zip(LOSSES, best, strict=True)},
        total / seen,
        tolerance,
        Status.INTERRUPTED if interrupted else status,
    )


def _left_out(
    X: FloatArray, Y: FloatArray, first: FloatArray, tolerance: float, step: Callable[[int, int], None] | None
) -> tuple[FloatArray, int, bool]:
    """Sums of losses (N - 1, 3) over the rows left out, how many these are, and whether the user broke it off."""
    from bayessel.baselines.engines.neighbours_compiled import left_out_losses

    N = len(X)
    total = np.zeros((N - 1, len(LOSSES)))
    by_rank = np.argsort(Y, axis=0, kind="stable")
    rank = np.empty_like(by_rank)
    np.put_along_axis(rank, by_rank, np.arange(N)[:, None], axis=0)
    in_order = np.take_along_axis(Y, by_rank, axis=0)
    seen = 0
    with InterruptGuard(lambda: seen) as guard:
        for start, stop in _blocks(N):
            distance = _others(X, start, stop)
            order = np.argsort(distance, axis=1)[:, :-1]
            piece = np.zeros_like(total)
            left_out_losses(
                np.take_along_axis(distance, order, axis=1), order, start, Y, rank, in_order, first, tolerance, piece
            )
            total += piece
            seen = stop
            if step is not None:
                step(seen, N)
    return total, seen, guard.interrupted


def _blocks(N: int) -> list[tuple[int, int]]:
    size = max(1, BLOCK // N)
    return [(start, min(start + size, N)) for start in range(0, N, size)]


def _others(X: FloatArray, start: int, stop: int) -> FloatArray:
    """Squared distances (rows, N); a row's own is infinite."""
    distance = cdist(X[start:stop], X, "sqeuclidean")
    distance[np.arange(stop - start), np.arange(start, stop)] = np.inf
    return np.asarray(distance)
