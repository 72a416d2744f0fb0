r"""The ascent in all log precisions of `bayessel.linear.rvm.newton`, as one compiled loop.

With few functions the arithmetic of a step takes microseconds, and calling it from Python hundreds. The formulas are
those of `newton` and of the two forms of the dictionary; columns come as rows of `W` (orthogonal coordinates, k x r),
or as inner products `G` (k x k) and `c` with the target. Importing this module imports numba.
"""

from __future__ import annotations

import math

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._compiled import njit

#: products may be summed in any order, and multiplied and added at once
_OPTIONS = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}
_LOG_2PI = math.log(2.0 * math.pi)
#: bounds of log precisions of weights
_A_MIN, _A_MAX = -80.0, 90.0


@njit(**_OPTIONS)
def _factor(H: FloatArray) -> bool:
    """Lower Cholesky factor in place, from the lower triangle; False where it is not positive definite."""
    k = H.shape[0]
    for i in range(k):
        for j in range(i + 1):
            total = H[i, j]
            for m in range(j):
                total -= H[i, m] * H[j, m]
            if i == j:
                if not total > 0.0:
                    return False
                H[i, i] = math.sqrt(total)
            else:
                H[i, j] = total / H[j, j]
    return True


@njit(**_OPTIONS)
def _factor_stacked(X: FloatArray, L: FloatArray) -> None:
    """L with L L^T = I + X X^T for X (k, r), by Householder's reflections of the stacked columns [X, I]."""
    k, r = X.shape
    A = np.zeros((k, r + k))
    for i in range(k):
        for m in range(r):
            A[i, m] = X[i, m]
        A[i, r + i] = 1.0
    for j in range(k):
        norm = 0.0
        for m in range(j, r + k):
            norm += A[j, m] * A[j, m]
        norm = math.sqrt(norm)
        first = A[j, j]
        shifted = first + norm if first >= 0.0 else first - norm
        length = norm * abs(shifted)  # half the squared length of the reflector
        A[j, j] = shifted
        sign = -1.0 if first >= 0.0 else 1.0
        L[j, j] = norm
        for i in range(j + 1, k):
            along = 0.0
            for m in range(j, r + k):
                along += A[j, m] * A[i, m]
            along /= length
            for m in range(j, r + k):
                A[i, m] -= along * A[j, m]
            L[i, j] = sign * A[i, j]


@njit(**_OPTIONS)
def _invert(L: FloatArray) -> FloatArray:
    """Inverse of a lower triangle."""
    k = L.shape[0]
    inverse = np.zeros((k, k))
    for i in range(k):
        for m in range(i):
            factor = L[i, m]
            for j in range(m + 1):
                inverse[i, j] -= factor * inverse[m, j]
        for j in range(i):
            inverse[i, j] /= L[i, i]
        inverse[i, i] = 1.0 / L[i, i]
    return inverse


@njit(**_OPTIONS)
def _solve(
    W: FloatArray,
    G: FloatArray,
    c: FloatArray,
    z: FloatArray,
    tt: float,
    n_rows: float,
    a: FloatArray,
    b: float,
    stacked_from: float,
) -> tuple[float, FloatArray, FloatArray, float]:
    """Log evidence, V, v and the sum of squares, as `solve` of the forms has them; `z` is empty for inner products."""
    k, r = len(a), len(z)
    beta = math.exp(b)
    scale = np.exp(0.5 * (b - a))
    L = np.zeros((k, k))
    V = np.zeros((k, k))
    v = np.zeros(k)
    X = np.zeros((k, r))
    for i in range(k):
        for m in range(r):
            X[i, m] = W[i, m] * scale[i]
    trace = 0.0
    for i in range(k):
        trace += scale[i] * scale[i]
    done = False
    if r == 0 or trace < stacked_from:
        for i in range(k):
            for j in range(i + 1):
                L[i, j] = G[i, j] * scale[i] * scale[j]
            L[i, i] += 1.0
        done = _factor(L)
        if not done and r == 0:
            return -np.inf, V, v, tt
    if not done:
        L[:] = 0.0
        _factor_stacked(X, L)
    log_det = 0.0
    for i in range(k):
        log_det += 2.0 * math.log(L[i, i])
    inverse = _invert(L)
    for i in range(k):
        for p in range(i + 1):
            factor = inverse[i, p]
            for q in range(p + 1):
                V[p, q] += factor * inverse[i, q]
    for p in range(k):
        for q in range(p):
            V[q, p] = V[p, q]
    w = np.zeros(k)
    if r == 0:
        along = 0.0
        for i in range(k):
            part = 0.0
            for j in range(k):
                part += V[i, j] * scale[j] * c[j]
            w[i] = part
            along += part * scale[i] * c[i]
        quad = beta * (tt - along)
        root = math.sqrt(beta)
        for i in range(k):
            v[i] = root * w[i]
        length = 0.0
        for i in range(k):
            length += v[i] * v[i]
        sum_squares = max(quad - length, 0.0) / beta
    else:
        residual = z.copy()
        right = np.zeros(k)
        for _ in range(2):  # the second is a correction
            for i in range(k):
                part = -w[i]
                for m in range(r):
                    part += X[i, m] * residual[m]
                right[i] = part
            half = np.zeros(k)
            for i in range(k):
                part = 0.0
                for j in range(i + 1):
                    part += inverse[i, j] * right[j]
                half[i] = part
            for i in range(k):
                for j in range(i + 1):
                    w[j] += inverse[i, j] * half[i]
            residual[:] = z
            for i in range(k):
                for m in range(r):
                    residual[m] -= X[i, m] * w[i]
        sum_squares = tt
        for m in range(r):
            sum_squares += residual[m] * residual[m]
        quad = beta * sum_squares
        for i in range(k):
            v[i] = math.sqrt(beta) * w[i]
            quad += v[i] * v[i]
    return 0.5 * (n_rows * (b - _LOG_2PI) - log_det - quad), V, v, sum_squares


@njit(**_OPTIONS)
def _step(
    V: FloatArray, v: FloatArray, b: float, sum_squares: float, n_rows: float, learn: bool, longest: float
) -> FloatArray:
    """A damped Newton step in (a, b), no component longer than twice `longest`."""
    k = len(v)
    size = k + 1 if learn else k
    g, scale = np.empty(size), np.empty(size)
    H = np.empty((size, size))
    beta = math.exp(b)
    determined, cross, spread = 0.0, 0.0, 0.0
    for i in range(k):
        d = V[i, i]
        g[i] = 0.5 * (1.0 - d - v[i] * v[i])
        scale[i] = 0.5 * (d + v[i] * v[i]) + 1e-9
        squares, along = 0.0, 0.0
        for j in range(k):
            one = V[i, j]
            squares += one * one
            along += one * v[j]
            H[i, j] = -0.5 * (one * one + 2.0 * v[i] * v[j] * one)
        H[i, i] += 0.5 * (d + v[i] * v[i])
        determined += 1.0 - d
        if learn:
            H[k, i] = 0.5 * (2.0 * v[i] * along - d + squares)
            cross += v[i] * along
            spread += d - squares
    if learn:
        g[k] = 0.5 * (n_rows - beta * sum_squares - determined)
        scale[k] = 0.5 * n_rows + 1e-9
        H[k, k] = 0.5 * (beta * sum_squares - 2.0 * cross + spread)
    damping = 0.0
    step = np.empty(size)
    L = np.empty((size, size))
    while True:
        for i in range(size):
            for j in range(i + 1):
                L[i, j] = H[i, j]
            L[i, i] += damping * scale[i] + 1e-9
        if _factor(L):
            for i in range(size):
                part = g[i]
                for j in range(i):
                    part -= L[i, j] * step[j]
                step[i] = part / L[i, i]
            for i in range(size - 1, -1, -1):
                step[i] /= L[i, i]
                for j in range(i):
                    step[j] -= L[i, j] * step[i]
            largest = 0.0
            for i in range(size):
                largest = max(largest, abs(step[i]))
            if largest < 2.0 * longest or damping > 1e3:
                if largest > longest:
                    for i in range(size):
                        step[i] *= longest / largest
                return step
        damping = max(3.0 * damping, 0.03)
        if damping > 1e8:
            return g / scale


@njit(**_OPTIONS)
def ascend_compiled(
    W: FloatArray,
    G: FloatArray,
    c: FloatArray,
    z: FloatArray,
    tt: float,
    n_rows: float,
    a: FloatArray,
    b: float,
    learn: bool,
    steps: int,
    tol: float,
    b_min: float,
    b_max: float,
    longest: float,
    stacked_from: float,
) -> tuple[IntArray, FloatArray, float]:
    """Positions of the columns that stay, their log precisions, and that of the noise.

    `stacked_from` is the trace of X^T X from which I + X^T X is factored without being formed.
    """
    kept = np.arange(len(a))
    value, V, v, sum_squares = _solve(W, G, c, z, tt, n_rows, a, b, stacked_from)
    turn, ending = 0, False
    while True:
        ending |= turn >= steps
        turn += 1
        k = len(a)
        # columns whose best precision is infinite: all at once if that does not cost, else the best one
        dead = np.zeros(k, dtype=np.bool_)
        count = 0
        for i in range(k):
            d = V[i, i]
            dead[i] = v[i] * v[i] <= d * (1.0 - d) or d > 1.0 - 1e-10
            count += dead[i]
        if count:
            found = False
            for attempt in range(2):
                if attempt:
                    best, which = -np.inf, 0
                    for i in range(k):
                        d = V[i, i]
                        gain = -0.5 * (v[i] * v[i] / d + math.log(d)) if dead[i] else -np.inf
                        if gain > best:
                            best, which = gain, i
                    dead[:] = False
                    dead[which] = True
                stay = np.flatnonzero(~dead)
                fewer = W[stay]
                inner = G[stay][:, stay]
                less = _solve(fewer, inner, c[stay], z, tt, n_rows, a[stay], b, stacked_from)
                if less[0] >= value:
                    kept, a, W, G, c = kept[stay], a[stay], fewer, inner, c[stay]
                    value, V, v, sum_squares = less
                    found = True
                    break
            if found:
                if ending:
                    return kept, a, b
                continue
        if ending or k + learn == 0:
            return kept, a, b
        step = _step(V, v, b, sum_squares, n_rows, learn, longest)
        share = 1.0
        while True:
            a_new = np.minimum(np.maximum(a + share * step[:k], _A_MIN), _A_MAX)
            b_new = min(max(b + share * step[k], b_min), b_max) if learn else b
            new = _solve(W, G, c, z, tt, n_rows, a_new, b_new, stacked_from)
            if new[0] >= value:
                break
            share *= 0.35
            if share < 1e-3:
                return kept, a, b
        gain = new[0] - value
        a, b = a_new, b_new
        value, V, v, sum_squares = new
        ending = gain < tol and share > 0.5
