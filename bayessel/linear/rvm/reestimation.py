r"""MacKay's re-estimation from the model with every column in it: a start that lets all functions compete.

:math:`\alpha_i \leftarrow \gamma_i/\mu_i^2`, :math:`\beta \leftarrow (N-\sum\gamma_i)/\|t-\Phi\mu\|^2`, for a number
of steps that concentrates the model, not to convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayessel._check import FloatArray, IntArray

#: log precision beyond which a column leaves in any case
GONE = 27.0
#: steps before a column may leave
SETTLE = 3
#: log precision at which a column that is kept is all but free
FREE = -6.0

#: (active, a, b) -> gamma_i, mu_i and the sum of squared residuals
ReestimationSums = Callable[[IntArray, FloatArray, float], tuple[FloatArray, FloatArray, float]]


@dataclass(frozen=True)
class Reestimation:
    """How the columns compete.

    Attributes
    ----------
    noise
        Noise variance to start from, as a share of the spread of the target.
    hold
        Re-estimations that leave the noise alone: re-estimated before the structure is there it grows to explain what
        the functions should, and never comes back.
    a
        Log precision the columns start from, one for all or one for each.
    steps
        Re-estimations.
    keep
        A column that stays, all but free, whatever its rivals do; the constant, whose part functions at the edges of
        the data play otherwise.
    b_max
        Largest log noise precision.
    least_gamma
        A column that determines less than this share of a parameter leaves, once the first steps are done.
    """

    noise: float
    hold: int = 5
    a: float | FloatArray = 0.0
    steps: int = 30
    keep: int | None = None
    b_max: float = 60.0
    least_gamma: float = 1e-3


def reestimate(
    sums: ReestimationSums, candidates: IntArray, n_rows: float, contest: Reestimation, b: float | None
) -> tuple[IntArray, FloatArray, float]:
    """Return columns, log precisions and log noise precision after the contest; `b` is the latter when it is known."""
    active = np.arange(len(candidates))
    a = np.full(len(candidates), contest.a) if np.ndim(contest.a) == 0 else np.asarray(contest.a)[candidates]
    kept = candidates == contest.keep if contest.keep is not None else np.zeros(len(candidates), dtype=bool)
    a[kept] = FREE
    level = min(-float(np.log(contest.noise)), contest.b_max) if b is None else b
    for step in range(contest.steps):
        gamma, mu, sum_squares = sums(active, a, level)
        gamma = np.clip(gamma, 1e-300, 1.0)
        if b is None and step >= contest.hold:
            left = max(n_rows - float(gamma.sum()), 1e-3)
            level = min(float(np.log(left) - np.log(max(sum_squares, 1e-300))), contest.b_max)
        with np.errstate(divide="ignore"):
            a = np.minimum(np.log(gamma) - 2.0 * np.log(np.abs(mu)), 80.0)
        a[kept] = FREE
        if step >= SETTLE:
            stay = ((gamma > contest.least_gamma) & (a < GONE)) | kept
            if not stay.any():
                stay[np.argmax(gamma)] = True
            active, a, kept = active[stay], a[stay], kept[stay]
    return candidates[active], a, level
