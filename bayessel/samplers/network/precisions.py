"""Exact conditional draws of a network's hyperparameters, at the posterior or at a temperature of annealing.

Hyperparameters stand as logarithms in one vector: those of the noise (K), of hidden biases, of hidden-to-output
weights, of input-to-hidden weights (D) and their mean, of direct weights (D) and theirs, and Student's ν. Their priors
are the rows (shape, rate) of one array in the same order; of a second layer only the shape is read, its rate is the
shape over the mean. Shapes and rates are the usual ones.

At a temperature t the density is p(weights | s) r(s)^{1−t} p(s)^t p(T | weights, s)^t with a reference r, independent
Gamma distributions: rows (shape, rate) too. All conditionals stay what they were, with shapes and rates between those
of r and p, and a share t of the residuals. At t = 1 the reference has no part.
"""

from __future__ import annotations

import math

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit
from bayessel.mlp.compiled_passes import GAUSSIAN, STUDENT, places

OPTIONS = {"error_model": "numpy"}
#: logarithms of precisions beyond these are no better than these, and their exponentials are still numbers
LIMIT = 690.0


@njit(**OPTIONS)
def log_gamma_draw(rng: np.random.Generator, shape: float, rate: float) -> float:
    """The logarithm of a Gamma(shape, rate) draw."""
    if shape < 1.0:  # G(s) = G(s + 1) u^{1/s}: never rounded to zero
        log_x = math.log(rng.standard_gamma(shape + 1.0)) + math.log(1.0 - rng.random()) / shape
    else:
        log_x = math.log(rng.standard_gamma(shape))
    return min(max(log_x - math.log(rate), -LIMIT), LIMIT)


@njit(**OPTIONS)
def log_mean_draw(rng: np.random.Generator, c: float, a: float, b: float) -> float:
    """x ~ exp(c x − a e^x − b e^{−x}), a, b > 0: the logarithm of a generalised inverse Gaussian variable.

    The log density is concave: rejection under a level and two tangents, one on each side of the mode.
    """
    root = math.sqrt(c * c + 4.0 * a * b)
    y = (c + root) / (2.0 * a) if c > 0.0 else 2.0 * b / (root - c)
    # −h″ at the mode is a y + b/y = root; where that is small, exponentials end the plateau earlier
    mode, deviation = math.log(y), min(1.0 / math.sqrt(root), 1.0 + math.log1p(1.0 / root))
    top = c * mode - a * y - b / y
    left, right = mode - 1.1 * deviation, mode + 1.1 * deviation
    up, down = math.exp(left), math.exp(right)
    rise, fall = c - a * up + b / up, c - a * down + b / down
    begin = left + (top - c * left + a * up + b / up) / rise
    end = right + (top - c * right + a * down + b / down) / fall
    tail_left, tail_right, middle = 1.0 / rise, -1.0 / fall, end - begin
    while True:
        where = rng.random() * (tail_left + tail_right + middle)
        bound = top
        if where < middle:
            x = begin + where
        elif where < middle + tail_left:
            run = math.log(1.0 - rng.random())
            x, bound = begin + run / rise, top + run
        else:
            run = math.log(1.0 - rng.random())
            x, bound = end + run / fall, top + run
        y = math.exp(x)
        if c * x - a * y - b / y - bound > -rng.standard_exponential():
            return x


@njit(**OPTIONS)
def _between(
    rng: np.random.Generator, r: FloatArray, shape: float, rate: float, t: float, count: float, squares: float
) -> float:
    """Log of a precision between reference r = (shape, rate) and a Gamma prior, given `count` squares."""
    shape = (1.0 - t) * r[0] + t * shape + 0.5 * count
    return log_gamma_draw(rng, shape, (1.0 - t) * r[1] + t * rate + 0.5 * squares)


@njit(**OPTIONS)
def precisions(
    rng: np.random.Generator,
    q: FloatArray,
    s: FloatArray,
    prior: FloatArray,
    D: int,
    H: int,
    K: int,
    reference: FloatArray,
    t: float,
) -> None:
    """Draw all precisions of the weights q, and the means of the three-layer ones, into s."""
    _, at_v, at_w = places(D, H, K)
    squares = 0.0
    for h in range(H):
        squares += q[h] * q[h]
    s[K] = _between(rng, reference[K], prior[K, 0], prior[K, 1], t, H, squares)
    squares = 0.0
    for j in range(at_v, at_w):
        squares += q[j] * q[j]
    s[K + 1] = _between(rng, reference[K + 1], prior[K + 1, 0], prior[K + 1, 1], t, H * K, squares)
    for layer in range(2):
        at, first, m = (K + 2, H, H) if layer == 0 else (K + 3 + D, at_w, K)
        mean = at + D
        shape = prior[at, 0]
        rate, sum_tau = shape * math.exp(-s[mean]), 0.0
        for i in range(D):
            squares = 0.0
            for j in range(first + i * m, first + (i + 1) * m):
                squares += q[j] * q[j]
            s[at + i] = _between(rng, reference[at + i], shape, rate, t, m, squares)
            sum_tau += math.exp(s[at + i])
        c = (1.0 - t) * reference[mean, 0] + t * (prior[mean, 0] - D * shape)
        a = (1.0 - t) * reference[mean, 1] + t * prior[mean, 1]
        s[mean] = min(max(log_mean_draw(rng, c, a, t * shape * sum_tau), -LIMIT), LIMIT)


@njit(**OPTIONS)
def noise(
    rng: np.random.Generator,
    kind: int,
    f: FloatArray,
    T: FloatArray,
    s: FloatArray,
    prior: FloatArray,
    reference: FloatArray,
    t: float,
) -> None:
    """Draw what the noise about outputs f (K, n) needs: its precisions, and Student's ν, which is not tempered."""
    K, n = f.shape
    if kind == GAUSSIAN:
        for k in range(K):
            squares = 0.0
            for j in range(n):
                r = T[k, j] - f[k, j]
                squares += r * r
            s[k] = _between(rng, reference[k], prior[k, 0], prior[k, 1], t, t * n, t * squares)
    elif kind == STUDENT:
        last = len(s) - 1
        nu = math.exp(s[last])
        for k in range(K):  # each residual Normal with a precision of its own, drawn and dropped
            tau, squares = math.exp(s[k]), 0.0
            for j in range(n):
                r = T[k, j] - f[k, j]
                squares += r * r * rng.standard_gamma(0.5 * (nu + 1.0)) / (0.5 * (nu + tau * r * r))
            s[k] = log_gamma_draw(rng, prior[k, 0] + 0.5 * n, prior[k, 1] + 0.5 * squares)
        s[last] = _degrees(rng, f, T, s, prior[last])


@njit(**OPTIONS)
def _log_degrees(x: float, f: FloatArray, T: FloatArray, s: FloatArray, prior: FloatArray) -> float:
    """Log density of log ν given the residuals."""
    K, n = f.shape
    nu = math.exp(x)
    total = prior[0] * x - prior[1] * nu
    total += K * n * (math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * x)
    for k in range(K):
        share, logs = math.exp(s[k] - x), 0.0
        for j in range(n):
            r = T[k, j] - f[k, j]
            logs += math.log1p(share * r * r)
        total -= 0.5 * (nu + 1.0) * logs
    return total


@njit(**OPTIONS)
def _degrees(rng: np.random.Generator, f: FloatArray, T: FloatArray, s: FloatArray, prior: FloatArray) -> float:
    """One slice update of log ν, stepping out by 1 and shrinking (Neal 2003)."""
    x = s[len(s) - 1]
    level = _log_degrees(x, f, T, s, prior) - rng.standard_exponential()
    left = x - rng.random()
    right = left + 1.0
    while left > x - 40.0 and _log_degrees(left, f, T, s, prior) > level:
        left -= 1.0
    while right < x + 40.0 and _log_degrees(right, f, T, s, prior) > level:
        right += 1.0
    while True:
        y = left + (right - left) * rng.random()
        if _log_degrees(y, f, T, s, prior) > level:
            return y
        if y < x:
            left = y
        else:
            right = y
