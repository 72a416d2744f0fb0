"""Precisions of separate weights and of the noise with the weights integrated out, drawn one after the other.

t = Φw + noise, w_i ~ N(0, 1/α_i), noise ~ N(0, 1/β). Φ = QR comes as R (k, M) with z = Qᵀt and the rest ‖t − Qz‖². With
Σ = (βΦᵀΦ + A)⁻¹ and μ = βΣΦᵀt, the function i has

    s_i = 1/Σ_ii − α_i,    q_i = μ_i/Σ_ii,

which do not depend on α_i; after a draw of α_i, with c the column i of Σ over Σ_ii and Σ'_ii = 1/(α_i' + s_i),

    Σ' = Σ + (Σ'_ii − Σ_ii) ccᵀ,    μ' = μ + (q_i Σ'_ii − μ_i) c:

M² multiplications, in a form without cancellation however large α_i is. Once in each sweep all is factored anew.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray
from bayessel._compiled import njit
from bayessel.samplers.log_precision_draws import MOST, OPTIONS, draw_log_precision, log_prior, prior_place

#: relative size of what rounding leaves of a sum, kept on the diagonal so that Σ⁻¹ has a factor
ROUNDING = 1e-14
#: smallest entry on the diagonal of a Cholesky factor, of a matrix with a diagonal of ones, that has its digits
LEAST = 1e-3
#: largest trace of the inverse of such a matrix that is had from squares
MOST_DEPENDENT = 1e6
#: share of a variance that rounding may reach until all is factored anew, and how often in a sweep
LOST, OFTEN = 1e-3, 4
#: beyond this trace the Cholesky factor of K loses more than ten digits of sixteen
SAFE_TRACE = 1e10
#: logarithms that a slice may go from where it is
FARTHEST = 40.0


class Reduced(NamedTuple):
    """Data of a linear model.

    Attributes
    ----------
    R : array (k, M)
        QR = Φ; Φ itself where it has no more rows than columns.
    gram : array (M, M)
        RᵀR.
    z : array (k,)
        Qᵀt.
    pull : array (M,)
        Rᵀz.
    rest : float
        ‖t − Qz‖².
    rows : int
        N.
    """

    R: FloatArray
    gram: FloatArray
    z: FloatArray
    pull: FloatArray
    rest: float
    rows: int


@njit(**OPTIONS)
def _scales(data: Reduced, u: FloatArray) -> FloatArray:
    """(α_i + β φᵢᵀφᵢ)^(−½)."""
    M = len(u) - 1
    d, beta = np.empty(M), math.exp(u[M])
    for i in range(M):
        d[i] = 1.0 / math.sqrt(math.exp(u[i]) + beta * data.gram[i, i])
    return d


@njit(**OPTIONS)
def _forward(L: FloatArray, x: FloatArray) -> FloatArray:
    """Solve Ly = x."""
    y = x.copy()
    for i in range(len(y)):
        y[i] = (y[i] - np.dot(L[i, :i], y[:i])) / L[i, i]
    return y


@njit(**OPTIONS)
def _backward(L: FloatArray, x: FloatArray) -> FloatArray:
    """Solve Lᵀy = x."""
    y = x.copy()
    for i in range(len(y) - 1, -1, -1):
        y[i] /= L[i, i]
        for j in range(i):
            y[j] -= L[i, j] * y[i]
    return y


@njit(**OPTIONS)
def _factor(data: Reduced, u: FloatArray, d: FloatArray, is_careful: bool) -> tuple[FloatArray, FloatArray]:
    """L and h: Σ⁻¹ with scales d on both sides, which has a diagonal of ones, is LLᵀ, and μ = d L⁻ᵀh."""
    M, beta = len(d), math.exp(u[len(d)])
    if not is_careful:
        B = data.gram * (beta * d)
        for i in range(M):
            B[i] *= d[i]
            B[i, i] = 1.0 + ROUNDING
        least, L = 1.0, B
        try:
            L = np.linalg.cholesky(B)
        except Exception:  # what Numba can catch
            least = 0.0
        for i in range(M):
            least = min(least, L[i, i])
        if least > LEAST:
            return L, _forward(L, beta * d * data.pull)
    # columns that are nearly dependent: squares have lost the digits that the columns themselves have
    k, root = len(data.R), math.sqrt(beta)
    stacked = np.zeros((k + M, M + 1))
    for i in range(k):
        for j in range(M):
            stacked[i, j] = root * d[j] * data.R[i, j]
        stacked[i, M] = root * data.z[i]
    for j in range(M):
        stacked[k + j, j] = math.exp(0.5 * u[j]) * d[j]
    _, upper = np.linalg.qr(stacked)
    L, half = np.zeros((M, M)), np.empty(M)
    for i in range(M):
        sign = 1.0 if upper[i, i] >= 0.0 else -1.0
        half[i] = sign * upper[i, M]
        for j in range(i, M):
            L[j, i] = sign * upper[i, j]
    return L, half


@njit(**OPTIONS)
def misfit(data: Reduced, u: FloatArray, mean: FloatArray) -> float:
    """E = tᵀ(I + βΦA⁻¹Φᵀ)⁻¹t, as ‖t − Φμ‖² + μᵀAμ/β: it depends on the ratios α/β alone."""
    r = data.z - data.R @ mean
    total = data.rest + np.dot(r, r)
    for i in range(len(mean)):
        total += mean[i] * mean[i] * math.exp(u[i] - u[len(mean)])
    return total


@njit(**OPTIONS)
def collapsed_log_likelihood(data: Reduced, u: FloatArray) -> float:
    """Log p(t | α, β) with the weights integrated out, u = (log α, log β), up to a constant.

    It is −∞ where it leaves double precision. A weight of log precision −∞ has a flat prior.
    """
    d = _scales(data, u)
    L, half = _factor(data, u, d, False)
    M = len(d)
    total = 0.5 * data.rows * u[M] - 0.5 * math.exp(u[M]) * misfit(data, u, d * _backward(L, half))
    for i in range(M):
        total += math.log(d[i] / L[i, i])
        if u[i] > -math.inf:
            total += 0.5 * u[i]
    return total if math.isfinite(total) else -math.inf


@njit(**OPTIONS)
def covariance_and_mean(data: Reduced, u: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
    """Σ and μ of the weights, and whether columns are nearly dependent."""
    d = _scales(data, u)
    L, half = _factor(data, u, d, False)
    inverse = np.linalg.inv(L)
    S = inverse.T @ inverse
    is_careful = not np.trace(S) < MOST_DEPENDENT
    if is_careful:
        L, half = _factor(data, u, d, True)
        inverse = np.linalg.inv(L)
        S = inverse.T @ inverse
    for i in range(len(d)):
        S[i] *= d[i] * d
    return S, d * _backward(L, half), is_careful


@njit(**OPTIONS)
def sparsity_and_quality(data: Reduced, u: FloatArray, S: FloatArray, mean: FloatArray, i: int) -> tuple[float, float]:
    """s_i and q_i."""
    M = len(mean)
    alpha, beta, own = math.exp(u[i]), math.exp(u[M]), S[i, i]
    most = beta * data.gram[i, i]
    if alpha <= most:
        s = 1.0 / own - alpha
    else:  # then that difference would lose digits; φᵀC⁻¹φ, of the covariance C with the function in it, does not
        inside = most - beta * beta * np.dot(data.gram[i], np.dot(S, data.gram[i]))
        s = inside / (1.0 - inside / alpha) if inside < alpha else most
    return min(max(s, ROUNDING * min(alpha, most)), most), mean[i] / own


@njit(**OPTIONS)
def _draw_each(
    rng: np.random.Generator,
    data: Reduced,
    u: FloatArray,
    is_drawn: npt.NDArray[np.bool_],
    priors: FloatArray,
    S: FloatArray,
    mean: FloatArray,
) -> None:
    """Draw each log α given the others; Σ and μ follow."""
    M, beta = len(mean), math.exp(u[len(mean)])
    largest = beta * (data.rest + np.dot(data.z, data.z))  # of q²/s
    places, values, more, c = np.empty(MOST), np.empty(MOST), np.empty((MOST + 1, 2)), np.empty(M)
    error, refreshed = ROUNDING * np.diag(S), 0
    for i in range(M):
        if not is_drawn[i]:
            continue
        s, q = sparsity_and_quality(data, u, S, mean, i)
        q2 = min(q * q, s * largest)
        place = prior_place(priors[i])
        new = draw_log_precision(rng, u[i], s, q2, priors[i], place, places, values, more)
        if new == u[i]:
            continue
        u[i] = new
        own, after = S[i, i], 1.0 / (math.exp(new) + s)
        change, shift = after - own, q * after - mean[i]
        part, is_lost = error[i] / own, False
        for j in range(M):
            c[j] = S[i, j] / own
            mean[j] += shift * c[j]
            square = abs(change) * c[j] * c[j]
            across = abs(change * c[j]) * math.sqrt(part * error[j] / own)
            error[j] += 1e-16 * (S[j, j] + square) + part * square + 2.0 * across
            is_lost |= error[j] > LOST * (S[j, j] + change * c[j] * c[j])
        error[i] = part * after
        if is_lost and refreshed < OFTEN:
            # differences have taken the digits
            S[:], mean[:], _ = covariance_and_mean(data, u)
            error[:] = ROUNDING * np.diag(S)
            refreshed += 1
            continue
        for j in range(M):
            x = change * c[j]
            for k in range(M):
                S[j, k] += x * c[k]
        for j in range(M):  # exact here, however large the change
            S[i, j] = S[j, i] = after * c[j]


@njit(**OPTIONS)
def _spread(data: Reduced, u: FloatArray) -> FloatArray:
    """RA⁻¹Rᵀ."""
    U = data.R * np.exp(-0.5 * u[: len(u) - 1])
    return U @ U.T


@njit(**OPTIONS)
def log_likelihood_of_rows(data: Reduced, spread: FloatArray, v: float) -> float:
    """Log p(t | α, β) by K = I + βRA⁻¹Rᵀ, up to a constant, v = log β; nan where K would lose digits."""
    k, beta = len(spread), math.exp(v)
    if not beta * np.trace(spread) < SAFE_TRACE:
        return math.nan
    K = beta * spread
    for i in range(k):
        K[i, i] += 1.0
    L = np.linalg.cholesky(K)
    half = _forward(L, data.z)
    total = 0.5 * data.rows * v - 0.5 * beta * (data.rest + np.dot(half, half))
    for i in range(k):
        total -= math.log(L[i, i])
    return total


@njit(**OPTIONS)
def _log_moved(
    x: float, data: Reduced, u: FloatArray, priors: FloatArray, of_noise: bool, E: float, spread: FloatArray
) -> float:
    """Log density where the precision of the noise is e^x as large, or all are: E depends on their ratios alone."""
    M = len(u) - 1
    v = u[M] + x
    total = log_prior(v, priors[M])
    if not of_noise:
        total += 0.5 * data.rows * x - 0.5 * math.exp(v) * E
        for i in range(M):
            total += log_prior(u[i] + x, priors[i])
        return total
    found = log_likelihood_of_rows(data, spread, v) if len(spread) > 0 else math.nan
    if math.isnan(found):
        moved = u.copy()
        moved[M] = v
        found = collapsed_log_likelihood(data, moved)
    return total + found


@njit(**OPTIONS)
def _slice(
    rng: np.random.Generator,
    data: Reduced,
    u: FloatArray,
    priors: FloatArray,
    of_noise: bool,
    E: float,
    spread: FloatArray,
    width: float,
) -> float:
    """One slice update from 0 of the noise alone or of all, stepping out and shrinking (Neal 2003)."""
    # no function is an argument: compiled code that takes one is not kept on disk
    level = _log_moved(0.0, data, u, priors, of_noise, E, spread) - rng.standard_exponential()
    left = -width * rng.random()
    right = left + width
    while left > -FARTHEST and _log_moved(left, data, u, priors, of_noise, E, spread) > level:
        left -= width
    while right < FARTHEST and _log_moved(right, data, u, priors, of_noise, E, spread) > level:
        right += width
    while right - left > 1e-13:
        x = left + (right - left) * rng.random()
        if _log_moved(x, data, u, priors, of_noise, E, spread) > level:
            return x
        if x < 0.0:
            left = x
        else:
            right = x
    return 0.0


@njit(**OPTIONS)
def collapsed_sweep(
    rng: np.random.Generator,
    data: Reduced,
    u: FloatArray,
    is_drawn: npt.NDArray[np.bool_],
    priors: FloatArray,
    w: FloatArray,
) -> None:
    """Update the log precisions u (M + 1,), the last that of the noise, in place, and draw the weights into w.

    Parameters
    ----------
    rng : numpy.random.Generator
    data : Reduced
    u : array (M + 1,)
        −∞ for a flat prior of a weight.
    is_drawn : array of bool (M + 1,)
        Which are updated.
    priors : array (M + 1, 8)
        See `log_prior_rows`.
    w : array (M,)
        Result.
    """
    M = len(w)
    S, mean, is_careful = covariance_and_mean(data, u)
    _draw_each(rng, data, u, is_drawn, priors, S, mean)
    if is_drawn[M]:
        width = min(3.0 * math.sqrt(2.0 / data.rows), 1.0)
        spread = np.empty((0, 0))
        if is_drawn.all():
            u += _slice(rng, data, u, priors, False, misfit(data, u, mean), spread, width)
        if len(data.R) <= M and u[:M].min() > -math.inf:
            spread = _spread(data, u)
        u[M] += _slice(rng, data, u, priors, True, 0.0, spread, width)
    d = _scales(data, u)
    L, half = _factor(data, u, d, is_careful)
    for i in range(M):
        half[i] += rng.standard_normal()
    w[:] = d * _backward(L, half)
