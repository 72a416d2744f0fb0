"""Lengths of the inputs of a covariance, with error bars from the curvature at the mode."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayessel._check import FloatArray
from bayessel.covariance import Covariance
from bayessel.gp.laplace import covariance_of

#: standard deviations to the ends of a central 95 % interval
_CENTRAL = 1.959963984540054
_STEP = 1e-6


def relevance_table(
    covariance: Covariance, theta: FloatArray, free: npt.NDArray[np.bool_], hessian: FloatArray, m: int
) -> pd.DataFrame:
    """Lengths w_i^{−1/2} of m inputs, the distance over which the function changes: short means relevant.

    Columns ``weight`` (w_i), ``length``, ``lower`` and ``upper`` (central 95 % of the length by Laplace's approximation
    of log w_i), ``std`` (of the log length). Empty where the covariance has no weights.

    Parameters
    ----------
    covariance, theta
        Parameters of the covariance are the first of θ, (k,).
    free : (k,) array of bool
        Parameters that were fitted.
    hessian : (f, f) array
        Of minus the log posterior density over these.
    m : int
    """
    used = covariance.size(m)
    weights = covariance.relevance(theta[:used], m)
    if weights is None:
        return pd.DataFrame(columns=["weight", "length", "lower", "upper", "std"], dtype=float)
    slopes = np.zeros((len(weights), len(theta)))
    for j in np.flatnonzero(free[:used]):
        move = _STEP * (np.arange(used) == j)
        up, down = (covariance.relevance(theta[:used] + sign * move, m) for sign in (1.0, -1.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes[:, j] = np.log(np.asarray(up) / np.asarray(down)) / (2.0 * _STEP)
    S, J = covariance_of(hessian), slopes[:, free]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        std = 0.5 * np.sqrt(np.einsum("ij,jk,ik->i", J, S, J))
        length = weights**-0.5
        low, high = length * np.exp(-_CENTRAL * std), length * np.exp(_CENTRAL * std)
    columns = {"weight": weights, "length": length, "lower": low, "upper": high, "std": std}
    return pd.DataFrame(columns, index=pd.RangeIndex(m, name="input"))
