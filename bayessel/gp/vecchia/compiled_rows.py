"""Each row given its neighbours in compiled loops: one Cholesky factor a row, for conditional moments and derivatives.

Q is the covariance of the m neighbours c and, last, of the row itself. With b = (−Q_cc⁻¹ k, 1) the row's conditional
variance is v = bᵀQb and a function z of rows becomes the residual bᵀz. Whatever is summed over the rows, a derivative
by Q is a matrix h bᵀ of rank one, for dv = bᵀdQ b, and d(bᵀz) = −aᵀdQ b with a = (Q_cc⁻¹z_c, 0): no inverse is needed.

Rows are worked through in blocks of fixed size that know nothing of each other, so sums are the same for any number of
threads. Importing this module imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._compiled import njit
from bayessel._fast_exp import exp_of_negative
from bayessel.gp.vecchia.covariance_terms import (
    EXPONENTIAL,
    MATERN12,
    MATERN32,
    MATERN52,
    RATIONAL,
    StationaryNumbers,
)

# sums may be reordered, which is what vectors of partial sums do; NaN and infinities stay what they are
OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy", "nogil": True}

#: added to the variance of a function's value, relative to it: values at rows close by may be equal to rounding
NUGGET = 1e-10


@njit(**OPTIONS)
def profile(kind: int, v: float, alpha: float, s: FloatArray, k: FloatArray, g: FloatArray, e: FloatArray) -> None:
    """From squared distances s: covariances into k, their slopes by s into g, and by log α into e where there is α."""
    n = len(s)
    if kind == EXPONENTIAL:
        for j in range(n):
            k[j] = v * exp_of_negative(-0.5 * s[j])
            g[j] = -0.5 * k[j]
    elif kind == MATERN12:
        for j in range(n):
            r = np.sqrt(s[j])
            k[j] = v * exp_of_negative(-r)
            # where two rows coincide the slope is infinite, but what it is multiplied with is nil
            g[j] = -0.5 * k[j] / r if r > 0.0 else 0.0
    elif kind == MATERN32:
        for j in range(n):
            r = np.sqrt(3.0 * s[j])
            decay = v * exp_of_negative(-r)
            k[j] = (1.0 + r) * decay
            g[j] = -1.5 * decay
    elif kind == MATERN52:
        for j in range(n):
            r = np.sqrt(5.0 * s[j])
            decay = v * exp_of_negative(-r)
            k[j] = (1.0 + r * (1.0 + r / 3.0)) * decay
            g[j] = -5.0 / 6.0 * (1.0 + r) * decay
    else:
        for j in range(n):
            u = 0.5 * s[j] / alpha
            root = np.log1p(u)
            k[j] = v * exp_of_negative(-alpha * root)
            g[j] = -0.5 * k[j] / (1.0 + u)
            e[j] = alpha * k[j] * (u / (1.0 + u) - root)


@njit(**OPTIONS)
def covariances(
    rows: IntArray,
    X: FloatArray,
    terms: StationaryNumbers,
    V: FloatArray,
    observed: int,
    x: FloatArray,
    Q: FloatArray,
    S: FloatArray,
    K: FloatArray,
    G: FloatArray,
    E: FloatArray,
) -> None:
    """Covariance of some rows into the upper triangle of Q: stationary terms − VVᵀ, + noise of the first `observed`.

    Scaled inputs into x (terms, inputs, rows); each term's values, slopes and derivatives by log α into K, G and E.
    """
    kinds, v, root, alpha, noise = terms
    size, (n_terms, n_inputs) = len(rows), root.shape
    for p in range(size):
        for q in range(p, size):
            Q[p, q] = 0.0
        for t in range(n_terms):
            Q[p, p] += v[t]
        Q[p, p] += noise if rows[p] < observed else NUGGET * Q[p, p]
    for t in range(n_terms):
        for d in range(n_inputs):
            scale = root[t, d]
            for p in range(size):
                x[t, d, p] = scale * X[rows[p], d]
        for p in range(size - 1):
            s = S[p, p + 1 : size]
            s[:] = 0.0
            for d in range(n_inputs):
                here, others = x[t, d, p], x[t, d, p + 1 : size]
                for j in range(len(s)):
                    away = others[j] - here
                    s[j] += away * away
            k = K[t, p, p + 1 : size]
            profile(kinds[t], v[t], alpha[t], s, k, G[t, p, p + 1 : size], E[t, p, p + 1 : size])
            total = Q[p, p + 1 : size]
            for j in range(len(s)):
                total[j] += k[j]
    if V.shape[1] > 0:
        for p in range(size):
            here = V[rows[p]]
            for q in range(p, size):
                other, both = V[rows[q]], 0.0
                for j in range(len(here)):
                    both += here[j] * other[j]
                Q[p, q] -= both


@njit(**OPTIONS)
def factorise(Q: FloatArray, size: int) -> bool:
    """The upper factor R, Q = RᵀR, in the upper triangle of Q; False where Q is not positive definite."""
    for k in range(size):
        pivot = Q[k, k]
        if not pivot > 0.0:
            return False
        scale = 1.0 / np.sqrt(pivot)
        row = Q[k, k:size]
        for j in range(len(row)):
            row[j] *= scale
        for i in range(k + 1, size):
            factor, below, above = Q[k, i], Q[i, i:size], Q[k, i:size]
            for j in range(len(below)):
                below[j] -= factor * above[j]
    return True


@njit(**OPTIONS)
def last_row(Q: FloatArray, size: int, b: FloatArray) -> float:
    """From the factor: b = (−Q_cc⁻¹k, 1), and the conditional variance of the last row."""
    last = size - 1
    b[last] = 1.0
    for i in range(last):
        b[i] = -Q[i, last]
    solve_upper(Q, last, b)
    return float(Q[last, last] * Q[last, last])


@njit(**OPTIONS)
def solve_upper(Q: FloatArray, size: int, z: FloatArray) -> None:
    """R z := z."""
    for i in range(size - 1, -1, -1):
        row, total = Q[i], z[i]
        for j in range(i + 1, size):
            total -= row[j] * z[j]
        z[i] = total / row[i]


@njit(**OPTIONS)
def solve_lower(Q: FloatArray, size: int, z: FloatArray) -> None:
    """Rᵀ z := z."""
    for i in range(size):
        row = Q[i]
        z[i] /= row[i]
        here = z[i]
        for j in range(i + 1, size):
            z[j] -= row[j] * here


@njit(**OPTIONS)
def conditional_weights(
    begin: int,
    end: int,
    X: FloatArray,
    neighbours: IntArray,
    counts: IntArray,
    terms: StationaryNumbers,
    V: FloatArray,
    first: int,
    observed: int,
    b: FloatArray,
    variances: FloatArray,
) -> bool:
    """Weights b (rows, m + 1), the row's own last, and conditional variances of the rows from `begin` to `end`.

    Row i is row `first` + i of X, its neighbours are the first ``counts[i]`` of ``neighbours[i]``. Of rows of X beyond
    the first `observed` it is the function, without noise. False where a covariance matrix is not positive definite.
    """
    most, (n_terms, n_inputs) = neighbours.shape[1] + 1, terms.root.shape
    rows = np.empty(most, dtype=np.int64)
    x = np.empty((n_terms, n_inputs, most))
    Q, S, z = np.empty((most, most)), np.empty((most, most)), np.empty(most)
    K, G, E = np.empty((n_terms, most, most)), np.empty((n_terms, most, most)), np.empty((n_terms, most, most))
    for i in range(begin, end):
        size = counts[i] + 1
        for j in range(size - 1):
            rows[j] = neighbours[i, j]
        rows[size - 1] = first + i
        covariances(rows[:size], X, terms, V, observed, x, Q, S, K, G, E)
        if not factorise(Q, size):
            return False
        variances[i] = last_row(Q, size, z)
        for j in range(size - 1):
            b[i, j] = z[j]
        for j in range(size - 1, most - 1):
            b[i, j] = 0.0
        b[i, most - 1] = 1.0
    return True


@njit(**OPTIONS)
def residuals(
    begin: int,
    end: int,
    Z: FloatArray,
    neighbours: IntArray,
    counts: IntArray,
    b: FloatArray,
    first: int,
    out: FloatArray,
) -> None:
    """bᵀz of the columns of Z into out; row i is row `first` + i of Z."""
    columns = Z.shape[1]
    for i in range(begin, end):
        for k in range(columns):
            out[i, k] = Z[first + i, k]
        for j in range(counts[i]):
            row, weight = Z[neighbours[i, j]], b[i, j]
            for k in range(columns):
                out[i, k] += weight * row[k]


@njit(**OPTIONS)
def gradients(
    begin: int,
    end: int,
    X: FloatArray,
    neighbours: IntArray,
    counts: IntArray,
    terms: StationaryNumbers,
    V: FloatArray,
    Z: FloatArray,
    W: FloatArray,
    P: FloatArray,
    by_v: FloatArray,
    by_w: FloatArray,
    by_alpha: FloatArray,
    H: FloatArray,
) -> float:
    """Add derivatives of a sum by the terms' parameters, given its derivatives P by the whitened columns W = bᵀZ/√v.

    −½ Σ log v is part of the sum. By log v₀ (terms,), log w (terms, inputs) and log α (terms,); returned is that by the
    log noise variance. Where H has rows, h of every row is written to it, as b is.
    """
    most, (n_terms, n_inputs) = neighbours.shape[1] + 1, terms.root.shape
    kinds, v, noise, columns = terms.kinds, terms.v, terms.noise, Z.shape[1]
    rows = np.empty(most, dtype=np.int64)
    x = np.empty((n_terms, n_inputs, most))
    Q, S, b, h = np.empty((most, most)), np.empty((most, most)), np.empty(most), np.empty(most)
    slopes = np.empty(most)
    K, G, E = np.empty((n_terms, most, most)), np.empty((n_terms, most, most)), np.empty((n_terms, most, most))
    by_noise = 0.0
    for i in range(begin, end):
        size = counts[i] + 1
        last = size - 1
        for j in range(last):
            rows[j] = neighbours[i, j]
        rows[last] = i
        covariances(rows[:size], X, terms, V, len(X), x, Q, S, K, G, E)
        factorise(Q, size)
        variance = last_row(Q, size, b)
        both = 0.0
        for c in range(columns):
            both += W[i, c] * P[i, c]
        for j in range(last):
            row, total = Z[rows[j]], 0.0
            for c in range(columns):
                total += row[c] * P[i, c]
            h[j] = total
        solve_lower(Q, last, h)
        solve_upper(Q, last, h)
        h[last] = 0.0
        along, across = -0.5 * (1.0 + both) / variance, -1.0 / np.sqrt(variance)
        trace = 0.0
        # sums in loops of their own: where something is stored as well, their order may depend on where arrays lie
        for j in range(size):
            h[j] = across * h[j] + along * b[j]
        for j in range(size):
            trace += h[j] * b[j]
        if len(H) > 0:
            for j in range(last):
                H[i, j] = h[j]
            H[i, most - 1] = h[last]
        by_noise += noise * trace
        for t in range(n_terms):
            by_v[t] += v[t] * trace
            for p in range(last):
                hp, bp = h[p], b[p]
                k, g, e = K[t, p, p + 1 : size], G[t, p, p + 1 : size], E[t, p, p + 1 : size]
                hs, bs, weights = h[p + 1 : size], b[p + 1 : size], slopes[p + 1 : size]
                of_v = of_alpha = 0.0
                for j in range(len(k)):
                    weights[j] = hp * bs[j] + hs[j] * bp
                for j in range(len(k)):
                    of_v += weights[j] * k[j]
                by_v[t] += of_v
                if kinds[t] == RATIONAL:
                    for j in range(len(k)):
                        of_alpha += weights[j] * e[j]
                    by_alpha[t] += of_alpha
                for j in range(len(k)):
                    weights[j] *= g[j]
                for d in range(n_inputs):
                    here, others, of_w = x[t, d, p], x[t, d, p + 1 : size], 0.0
                    for j in range(len(weights)):
                        away = others[j] - here
                        of_w += weights[j] * (away * away)
                    by_w[t, d] += of_w
    return by_noise


@njit(**OPTIONS)
def information(
    chosen: IntArray,
    X: FloatArray,
    neighbours: IntArray,
    counts: IntArray,
    terms: StationaryNumbers,
    V: FloatArray,
    found: FloatArray,
) -> None:
    """Add the expected information of some rows about log v₀, the log w, log α of each term, and the log noise.

    ½ ∂log v ∂log vᵀ + v⁻¹ u uᵀ with u = R⁻ᵀ(∂Q b)_c, the targets' distribution that of the model.
    """
    most, (n_terms, n_inputs) = neighbours.shape[1] + 1, terms.root.shape
    kinds, v, noise = terms.kinds, terms.v, terms.noise
    per, many = n_inputs + 2, len(found)
    rows = np.empty(most, dtype=np.int64)
    x = np.empty((n_terms, n_inputs, most))
    Q, S, b = np.empty((most, most)), np.empty((most, most)), np.empty(most)
    K, G, E = np.empty((n_terms, most, most)), np.empty((n_terms, most, most)), np.empty((n_terms, most, most))
    D, slopes = np.empty((many, most)), np.empty(many)
    for i in chosen:
        size = counts[i] + 1
        last = size - 1
        for j in range(last):
            rows[j] = neighbours[i, j]
        rows[last] = i
        covariances(rows[:size], X, terms, V, len(X), x, Q, S, K, G, E)
        factorise(Q, size)
        variance = last_row(Q, size, b)
        D[:, :size] = 0.0
        for t in range(n_terms):
            first = t * per
            for p in range(size):
                D[first, p] += v[t] * b[p]
                for q in range(p + 1, size):
                    k, g = K[t, p, q], G[t, p, q]
                    D[first, p] += k * b[q]
                    D[first, q] += k * b[p]
                    for d in range(n_inputs):
                        away = x[t, d, q] - x[t, d, p]
                        slope = g * away * away
                        D[first + 1 + d, p] += slope * b[q]
                        D[first + 1 + d, q] += slope * b[p]
                    if kinds[t] == RATIONAL:
                        D[first + per - 1, p] += E[t, p, q] * b[q]
                        D[first + per - 1, q] += E[t, p, q] * b[p]
        for p in range(size):
            D[many - 1, p] = noise * b[p]
        for j in range(many):
            slope = 0.0
            for p in range(size):
                slope += b[p] * D[j, p]
            slopes[j] = slope / variance
            solve_lower(Q, last, D[j])
        for j in range(many):
            for k in range(j + 1):
                total = 0.0
                for p in range(last):
                    total += D[j, p] * D[k, p]
                found[j, k] += 0.5 * slopes[j] * slopes[k] + total / variance
