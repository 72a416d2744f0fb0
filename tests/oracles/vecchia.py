"""Vecchia's approximation as dense matrices, row by row from its definition: slow, and with nothing in common."""

import numpy as np


def neighbours(places, m):
    """The m nearest earlier rows of every row, as lists."""
    found = []
    for i in range(len(places)):
        away = [(float(np.sum((places[j] - places[i]) ** 2)), j) for j in range(i)]
        found.append([j for _, j in sorted(away)[:m]])
    return found


def covariance(C, near):
    """The matrix whose inverse has each row conditioned on some earlier rows only: from p(t) = Π p(t_i | t_c(i))."""
    n = len(C)
    U = np.zeros((n, n))
    for i, c in enumerate(near):
        weights = np.linalg.solve(C[np.ix_(c, c)], C[c, i]) if c else np.zeros(0)
        v = C[i, i] - weights @ C[c, i]
        U[i, i] = 1.0 / np.sqrt(v)
        U[i, c] = -weights / np.sqrt(v)
    return np.linalg.inv(U.T @ U)
