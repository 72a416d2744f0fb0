r"""MacKay's re-estimation from the model with every column in it: a start that lets all functions compete.

:math:`\alpha_i \leftarrow \gamma_i/\mu_i^2`, :math:`\beta \leftarrow (N-\sum\gamma_i)/\|t-\Phi\mu\|^2`, for a number
of steps that concentrates the model, not to convergence. The noise is held low at first: re-estimated before the
structure is there it grows to explain what the functions should, and never comes back.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.sparse.state import IntArray

#: a column that determines less than this share of a parameter leaves, once the first steps are done
LEAST_GAMMA = 0.01
#: steps before a column may leave
SETTLE = 3

Sums = Callable[[IntArray, FloatArray, float], tuple[FloatArray, FloatArray, float]]


def reestimate(
    sums: Sums, n_columns: int, n_rows: int, noise: float, steps: int, hold: int, b: float | None
) -> tuple[IntArray, FloatArray, float]:
    """Run `steps` re-estimations from equal precisions.

    Parameters
    ----------
    sums
        (active, a, b) -> gamma_i, mu_i and the sum of squared residuals.
    n_columns, n_rows
        Candidates and rows.
    noise
        Noise variance to start from, as a share of the spread of the target (1 in scaled units).
    steps, hold
        Re-estimations, and how many of them leave the noise alone.
    b
        Log noise precision when it is known, else None.
    """
    active = np.arange(n_columns)
    a = np.zeros(n_columns)
    level = -np.log(noise) if b is None else b
    for step in range(steps):
        gamma, mu, sum_squares = sums(active, a, level)
        gamma = np.clip(gamma, 1e-300, 1.0)
        if b is None and step >= hold:
            left = max(n_rows - float(gamma.sum()), 1e-3)
            level = min(np.log(left) - np.log(max(sum_squares, 1e-300)), 60.0)
        with np.errstate(divide="ignore"):
            a = np.minimum(np.log(gamma) - 2.0 * np.log(np.abs(mu)), 80.0)
        if step >= SETTLE:
            stay = gamma > LEAST_GAMMA
            if not stay.any():
                stay[np.argmax(gamma)] = True
            active, a = active[stay], a[stay]
    return active, a, level
