"""Bagging (Breiman 1996): the mean of fits to bootstrap samples, and what rows left out of them say of its error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._types import SupportsSubmit
from bayessel.baselines.engines.linear_fit import noise_floor
from bayessel.baselines.engines.mars import MARSFit, fit_mars
from bayessel.errors import SamplingWarning
from bayessel.fit import Status
from bayessel.work import WorkUnit, run

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
    n_jobs: int | None = None,
    executor: SupportsSubmit | None = None,
    step: Callable[[int, int], None] | None = None,
    **options: Any,
) -> BaggedFit:
    """Fit splines to `n_bags` bootstrap samples; `options` go to `fit_mars`, `n_jobs` and `executor` to `work.run`.

    Every sample has its own stream of random numbers. When interrupted by the user, the members made until then remain.
    """
    N = len(X)
    units = [WorkUnit(str(k), _member, (X, y, own, options)) for k, own in enumerate(rng.spawn(n_bags))]
    done = 0

    def tell(unit: WorkUnit, value: Any) -> None:
        nonlocal done
        done += 1
        if step is not None:
            step(done, n_bags)

    report = run(units, executor, n_jobs, progress=False, on_result=tell)
    if not report.values:
        raise KeyboardInterrupt if report.interrupted else RuntimeError(f"no member: {report.lost}")
    if report.lost:
        said = next(iter(report.lost.values()))
        warnings.warn(f"{len(report.lost)} of {n_bags} members are missing: {said}", SamplingWarning, stacklevel=3)
    interrupted = report.interrupted and report.remaining > 0
    members: list[MARSFit] = []
    count, total, squares = np.zeros(N), np.zeros(N), np.zeros(N)
    for unit in units:  # in this order, whoever was first: the last bits of sums depend on it
        if unit.key in report.values:
            member, left, guess = report.values[unit.key]
            members.append(member)
            count[left] += 1
            total[left] += guess
            squares[left] += (guess - y.mean()) ** 2
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


def _member(
    X: FloatArray, y: FloatArray, own: np.random.Generator, options: dict[str, Any]
) -> tuple[MARSFit, npt.NDArray[np.intp], FloatArray]:
    """A fit to a bootstrap sample, the rows it did not see, and what it says of them."""
    drawn = own.integers(len(X), size=len(X))
    member = fit_mars(X[drawn], y[drawn], **options)
    if member.status is Status.INTERRUPTED:  # a part of a member is none
        raise KeyboardInterrupt
    left = np.setdiff1d(np.arange(len(X)), drawn)
    return member, left, member.predict(X[left]) if len(left) else np.empty(0)
