"""How fast a network's outputs change with its inputs: which inputs matter, whatever the weights are called."""

from __future__ import annotations

import numpy as np

from bayessel._check import FloatArray
from bayessel.mlp.network import Weights, forward


def slopes(weights: Weights, X: FloatArray) -> FloatArray:
    """∂f_k/∂x_i = w_ik + Σ_h v_hk (1 − z_h²) u_ih of one network at inputs X: (n, D, K)."""
    Z = forward(weights, X)[1]
    inner = weights.hidden_output[None] * (1.0 - Z * Z)[:, :, None]
    return np.asarray(weights.input_hidden @ inner + weights.input_output)
