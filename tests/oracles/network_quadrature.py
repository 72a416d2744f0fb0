"""The evidence of a network with one input and one hidden unit at given precisions, by quadrature."""

import numpy as np
from scipy.special import logsumexp


def log_evidence_of_one_unit(x, t, alpha, beta, points=400, reach=7.0):
    """log ∫ N(t | f, 1/β) p(a) p(u) p(b) p(v) p(w): Gaussian in (b, v, w) given (a, u), which lie on a grid.

    alpha: precisions of (a, u, b, v, w), the packed order. The trapezoidal rule converges faster than any power here.
    """
    n = len(t)
    a = np.linspace(-reach, reach, points) / np.sqrt(alpha[0])
    u = np.linspace(-reach, reach, points) / np.sqrt(alpha[1])
    logs = np.empty((points, points))
    s = 1.0 / np.sqrt(alpha[2:])
    ones_x = np.stack([np.ones(n), x])
    for i in range(points):
        Z = np.tanh(np.outer(u, x) + a[i])  # (points, n)
        Phi = np.empty((points, n, 3))
        Phi[:, :, 0], Phi[:, :, 2], Phi[:, :, 1] = s[0] * ones_x[0], s[2] * ones_x[1], s[1] * Z
        # |I/β + ΦΦᵀ| and its inverse by the 3 × 3 matrix I + β ΦᵀΦ
        M = np.eye(3) + beta * np.swapaxes(Phi, 1, 2) @ Phi
        b = beta * np.einsum("pnj,n->pj", Phi, t)
        quadratic = beta * t @ t - np.einsum("pj,pj->p", b, np.linalg.solve(M, b[..., None])[..., 0])
        logs[i] = 0.5 * n * np.log(beta / (2 * np.pi)) - 0.5 * np.linalg.slogdet(M)[1] - 0.5 * quadratic
        logs[i] += -0.5 * alpha[0] * a[i] ** 2 - 0.5 * alpha[1] * u**2
    logs += 0.5 * np.log(alpha[0] * alpha[1]) - np.log(2 * np.pi)
    return float(logsumexp(logs) + np.log((a[1] - a[0]) * (u[1] - u[0])))
