"""A network's outputs and derivatives by matrix products; leading axes of the weights are draws."""

import numpy as np

from bayessel.mlp import Weights


def forward(weights, X):
    """Outputs (…, n, K) and hidden values (…, n, H)."""
    a, u, b, v, w = weights
    Z = np.tanh(X @ u + a[..., None, :])
    return Z @ v + X @ w + b[..., None, :], Z


def backward(v, X, Z, df):
    """Derivatives by name, from the hidden-to-output weights v (…, H, K)."""
    below = (df @ np.swapaxes(v, -1, -2)) * (1.0 - Z * Z)
    turned = np.swapaxes(df, -1, -2)
    return Weights(
        below.sum(axis=-2),
        X.T @ below,
        df.sum(axis=-2),
        np.swapaxes(turned @ Z, -1, -2),
        np.swapaxes(turned @ X, -1, -2),
    )
