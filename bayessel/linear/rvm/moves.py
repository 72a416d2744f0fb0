r"""What one change of the model would gain, exactly, with everything else held (Tipping and Faul 2003).

With :math:`s, q` the values of S and Q with the column left out, the best precision of a column is
:math:`\alpha = s^2/(q^2-s)` if :math:`q^2 > s` and infinite otherwise. Beyond the three moves of the paper there is a
fourth: one function exchanged for another. A greedy search stops where every single step loses; most of those places
are left by an exchange.
"""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.linear.rvm.state import RVMScores, RVMState


def gain_of(ratio: FloatArray) -> FloatArray:
    """Gain of a column with Q^2/S = ratio > 1 at its best precision: (ratio - 1 - log ratio)/2."""
    ratio = np.maximum(ratio, 1.0)
    return np.asarray(0.5 * (ratio - 1.0 - np.log(ratio)))


def best_a(S: float, Q: float) -> float:
    """Log of the precision S^2/(Q^2 - S) at which a column with Q^2 > S enters."""
    return float(2.0 * np.log(S) - np.log(max(Q * Q - S, 1e-300)))


def add_gains(state: RVMState, scores: RVMScores) -> FloatArray:
    """Gain of adding each candidate, -inf where that is impossible, or where S is nothing but rounding."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = scores.Q**2 / scores.S
        gain = gain_of(np.where(np.isfinite(ratio), ratio, 1.0))
    gain[scores.collinear | ~(ratio > 1.0)] = -np.inf
    gain[state.active] = -np.inf
    return gain


def delete_gains(state: RVMState) -> FloatArray:
    r"""Gain of deleting each column, :math:`-\tfrac12(v_i^2/V_{ii} + \log V_{ii})`: as it stands, from infinity."""
    d = np.diagonal(state.V)
    return np.asarray(-0.5 * (state.v**2 / d + np.log(d)))


def exchange_couplings(state: RVMState, scores: RVMScores) -> tuple[FloatArray, FloatArray]:
    r"""Couplings :math:`c_{mj}/(\alpha_j-S_j)^{1/2}` (k, P), and the share (k,) of the target that goes with them."""
    root = np.sqrt(np.diagonal(state.V))
    # alpha_j - S_j = alpha_j d_j and c_mj = sqrt(beta alpha_j) (R^-1 T)_jm
    return (np.exp(0.5 * state.b) / root)[:, None] * (state.Ri @ scores.T), state.v / root


def swap_gains(state: RVMState, scores: RVMScores) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Gain of exchanging column j of the model (rows) for candidate m (columns), and S, Q^2/S without j.

    Without j, :math:`S_m' = S_m + c_{mj}^2/(\alpha_j - S_j)` and :math:`Q_m' = Q_m + c_{mj}Q_j/(\alpha_j - S_j)` with
    :math:`c_{mj} = \phi_m^TC^{-1}\phi_j`.
    """
    M, pull = exchange_couplings(state, scores)
    ratio = M * pull[:, None]
    ratio += scores.Q
    ratio *= ratio
    S = M
    S *= M
    S += scores.S
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio /= S
        gain = gain_of(np.where(np.isfinite(ratio), ratio, 1.0))
    gain += delete_gains(state)[:, None]
    gain[:, scores.collinear] = -np.inf
    gain[:, state.active] = -np.inf
    return gain, S, ratio
