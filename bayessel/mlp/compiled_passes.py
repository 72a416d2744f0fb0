"""The network's two passes and its log likelihood, in compiled loops over packed weights.

By columns: inputs (D, n), hidden values (H, n), outputs (K, n), so that every loop runs along the rows of the data, in
vectors, and nothing is allocated. For small networks, whose matrix products are too small for a library, that is three
to four times as fast as these: 3 µs for n = 256, D = H = 8 instead of 11.

Constants of the likelihood that do not depend on the weights are left out. Importing this module imports numba;
`bayessel.mlp` does so when a network is first evaluated.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit
from bayessel.mlp.fast_tanh import tanh

#: kinds of likelihood, as numbers for compiled code
GAUSSIAN, STUDENT, LOGISTIC, SOFTMAX = range(4)
NUMBERS = {"gaussian": GAUSSIAN, "student": STUDENT, "logistic": LOGISTIC, "softmax": SOFTMAX}

# sums may be reordered, which is what vectors of partial sums do; NaN and infinities stay what they are
OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}


@njit(**OPTIONS)
def places(D: int, H: int, K: int) -> tuple[int, int, int]:
    """Where b, v and w begin in packed weights (a, u, b, v, w); u begins at H."""
    at_b = H + D * H
    at_v = at_b + K
    return at_b, at_v, at_v + H * K


@njit(**OPTIONS)
def forward(q: FloatArray, X: FloatArray, Z: FloatArray, f: FloatArray) -> None:
    """Hidden values Z (H, n) and outputs f (K, n) for packed weights q and inputs X (D, n)."""
    D, n = X.shape
    H, K = Z.shape[0], f.shape[0]
    at_b, at_v, at_w = places(D, H, K)
    fours = D // 4 * 4
    for k in range(K):
        out, b = f[k], q[at_b + k]
        for j in range(n):
            out[j] = b
        for i in range(D):
            w, x = q[at_w + i * K + k], X[i]
            for j in range(n):
                out[j] += w * x[j]
    for h in range(H):
        z, a = Z[h], q[h]
        for j in range(n):
            z[j] = a
        for i in range(0, fours, 4):
            at = H + i * H + h
            u0, u1, u2, u3 = q[at], q[at + H], q[at + 2 * H], q[at + 3 * H]
            x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
            for j in range(n):
                z[j] += u0 * x0[j] + u1 * x1[j] + u2 * x2[j] + u3 * x3[j]
        for i in range(fours, D):
            u0, x0 = q[H + i * H + h], X[i]
            for j in range(n):
                z[j] += u0 * x0[j]
        for j in range(n):
            z[j] = tanh(z[j])
        for k in range(K):
            out, v = f[k], q[at_v + h * K + k]
            for j in range(n):
                out[j] += v * z[j]


@njit(**OPTIONS)
def backward(q: FloatArray, X: FloatArray, Z: FloatArray, df: FloatArray, below: FloatArray, g: FloatArray) -> None:
    """Gradient g by the packed weights from that by the outputs, df (K, n); below (n,) is workspace."""
    D, n = X.shape
    H, K = Z.shape[0], df.shape[0]
    at_b, at_v, at_w = places(D, H, K)
    fours = D // 4 * 4
    for k in range(K):
        d = df[k]
        total = 0.0
        for j in range(n):
            total += d[j]
        g[at_b + k] = total
        for i in range(D):
            x = X[i]
            total = 0.0
            for j in range(n):
                total += d[j] * x[j]
            g[at_w + i * K + k] = total
    for h in range(H):
        z = Z[h]
        for j in range(n):
            below[j] = 0.0
        for k in range(K):
            d, v = df[k], q[at_v + h * K + k]
            total = 0.0
            for j in range(n):
                total += d[j] * z[j]
                below[j] += v * d[j]
            g[at_v + h * K + k] = total
        total = 0.0
        for j in range(n):
            below[j] *= 1.0 - z[j] * z[j]
            total += below[j]
        g[h] = total
        for i in range(0, fours, 4):
            x0, x1, x2, x3 = X[i], X[i + 1], X[i + 2], X[i + 3]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                y = below[j]
                s0 += y * x0[j]
                s1 += y * x1[j]
                s2 += y * x2[j]
                s3 += y * x3[j]
            at = H + i * H + h
            g[at], g[at + H], g[at + 2 * H], g[at + 3 * H] = s0, s1, s2, s3
        for i in range(fours, D):
            x0 = X[i]
            s0 = 0.0
            for j in range(n):
                s0 += below[j] * x0[j]
            g[H + i * H + h] = s0


@njit(**OPTIONS)
def likelihood(kind: int, f: FloatArray, T: FloatArray, tau: FloatArray, nu: float) -> float:
    """Log likelihood of targets T (K, n); f (K, n) is overwritten by the derivatives.

    T are numbers, for LOGISTIC 0 and 1, for SOFTMAX 1 at each row's class and 0 elsewhere. tau (K,) are the precisions
    of the noise, and for classes weights of the outputs' log losses (for SOFTMAX, whose outputs share one, the first).
    nu are Student's degrees of freedom, unread by others.
    """
    K, n = f.shape
    total = 0.0
    if kind == GAUSSIAN:
        for k in range(K):
            out, t, precision = f[k], T[k], tau[k]
            squares = 0.0
            for j in range(n):
                r = t[j] - out[j]
                squares += r * r
                out[j] = precision * r
            total -= 0.5 * precision * squares
    elif kind == STUDENT:
        for k in range(K):
            out, t = f[k], T[k]
            share = tau[k] / nu
            logs = 0.0
            for j in range(n):
                r = t[j] - out[j]
                spread = 1.0 + share * r * r
                logs += math.log(spread)
                out[j] = (nu + 1.0) * share * r / spread
            total -= 0.5 * (nu + 1.0) * logs
    elif kind == LOGISTIC:
        for k in range(K):
            out, t, weight, losses = f[k], T[k], tau[k], 0.0
            for j in range(n):
                x = out[j]
                e = math.exp(-abs(x))
                losses += t[j] * x - max(x, 0.0) - math.log1p(e)
                out[j] = weight * (t[j] - (1.0 if x >= 0.0 else e) / (1.0 + e))
            total += weight * losses
    else:
        weight = tau[0]
        for j in range(n):
            top = f[0, j]
            for k in range(1, K):
                top = max(top, f[k, j])
            norm = 0.0
            for k in range(K):
                x = f[k, j] - top
                e = math.exp(x)
                norm += e
                total += T[k, j] * x
                f[k, j] = e
            total -= math.log(norm)
            for k in range(K):
                f[k, j] = weight * (T[k, j] - f[k, j] / norm)
        total *= weight
    return total


@njit(**OPTIONS)
def forward_by_name(
    a: FloatArray, u: FloatArray, b: FloatArray, v: FloatArray, w: FloatArray, X: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Outputs (n, K) and hidden values (H, n) of weights as in `bayessel.mlp.Weights` and inputs X (n, D)."""
    parts = np.ascontiguousarray(u).ravel(), np.ascontiguousarray(v).ravel(), np.ascontiguousarray(w).ravel()
    q = np.concatenate((a, parts[0], b, parts[1], parts[2]))
    Z, f = np.empty((len(a), len(X))), np.empty((len(b), len(X)))
    forward(q, np.ascontiguousarray(X.T), Z, f)
    return np.ascontiguousarray(f.T), Z


@njit(**OPTIONS)
def backward_by_name(
    v: FloatArray, X: FloatArray, Z: FloatArray, df: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Derivatives by (a, u, b, v, w), given hidden values Z (H, n) and those by the outputs, df (n, K)."""
    D, (H, n), K = X.shape[1], Z.shape, df.shape[1]
    at_b, at_v, at_w = places(D, H, K)
    q, g = np.empty(at_w + D * K), np.empty(at_w + D * K)
    q[at_v:at_w] = np.ascontiguousarray(v).ravel()  # the only weights that the derivatives need
    backward(q, np.ascontiguousarray(X.T), np.ascontiguousarray(Z), np.ascontiguousarray(df.T), np.empty(n), g)
    return (
        g[:H],
        g[H:at_b].reshape((D, H)),
        g[at_b:at_v],
        g[at_v:at_w].reshape((H, K)),
        g[at_w:].reshape((D, K)),
    )
