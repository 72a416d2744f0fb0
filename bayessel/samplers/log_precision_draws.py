"""One log precision u from its density where the weight it belongs to, and all others, are integrated out.

With Tipping and Faul's sparsity s and quality q of the function (2003, AISTATS), given the precisions of the others,

    f(u) = h(u) − ½ log(1 + s e^{−u}) + ½ q²/(e^u + s),
    h(u) = c u − e^{l + p u} − ½ v (u − m)² − r log(1 + e^{k + g u}),

h the log density of u under its prior: the rows (c, l, p, v, m, r, k, g) of `log_prior_rows`. f may have two modes,
the function in use and the function given up. The proposal is independent of the present value: exponentials through
values of f, closer together where f bends; it is corrected by Metropolis' rule, so that the update leaves f invariant
whatever the places of these values, and it is nearly always accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel._compiled import njit

OPTIONS = {"error_model": "numpy"}
#: logarithms of precisions beyond these are no better than these, and their exponentials are still numbers
LIMIT = 690.0
#: values of f that a proposal may have
MOST = 192
#: stands for smaller logarithms of densities
LOWEST = -1e200
#: how far below its largest value f is still followed closely, and where it is given up
DEPTH, END = 7.0, 60.0
#: f may bend by so much between two of its values
BEND = 0.3


#: the row of a flat density
NO_PRIOR = (0.0, -math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def log_prior_rows(
    prior: tuple[Any, Sequence[tuple[Any, Any]], Mapping[str, Any]], twice: float, offsets: FloatArray
) -> FloatArray:
    """Rows for u = offset − 2k log x, from the density of log x as `bayessel.samplers.log_scales` writes it.

    Parameters
    ----------
    prior : tuple
        c, pairs (a, p), not more than one, and q, m, r, t by name; numbers, or one for each element.
    twice : float
        2k.
    offsets : array (n,)
        The u of x = 1.
    """
    c, terms, rest = prior
    rows, y = np.empty((len(offsets), 8)), offsets / twice
    rows[:] = NO_PRIOR
    rows[:, 0] = np.ravel(c) / -twice
    with np.errstate(divide="ignore"):
        for a, p in terms:
            rows[:, 1], rows[:, 2] = np.log(np.ravel(a)) + np.ravel(p) * y, np.ravel(p) / -twice
        if "q" in rest:
            rows[:, 3], rows[:, 4] = np.ravel(rest["q"]) / twice**2, offsets - twice * np.ravel(rest["m"])
        if "r" in rest:
            rows[:, 5], rows[:, 6], rows[:, 7] = (
                np.ravel(rest["r"]),
                np.log(np.ravel(rest["t"])) + 2.0 * y,
                -2.0 / twice,
            )
    return rows


@njit(**OPTIONS)
def log_prior(u: float, prior: FloatArray) -> float:
    """h(u)."""
    h = prior[0] * u
    if prior[1] > -math.inf:
        h -= math.exp(prior[1] + prior[2] * u)
    if prior[3] > 0.0:
        h -= 0.5 * prior[3] * (u - prior[4]) ** 2
    if prior[5] > 0.0:
        x = prior[6] + prior[7] * u
        h -= prior[5] * (max(x, 0.0) + math.log1p(math.exp(-abs(x))))
    return h


@njit(**OPTIONS)
def log_density(u: float, s: float, q2: float, prior: FloatArray) -> float:
    """f(u); −inf beyond the largest logarithm."""
    if abs(u) > LIMIT:
        return -math.inf
    alpha = math.exp(u)
    f = log_prior(u, prior) - 0.5 * math.log1p(s / alpha)
    if q2 > 0.0:
        f += 0.5 * q2 / (alpha + s)
    return f if f > LOWEST else LOWEST


@njit(**OPTIONS)
def prior_place(prior: FloatArray) -> float:
    """Near the mode of h, which is concave, by bisection of its slope."""
    low, high = -LIMIT, LIMIT
    for _ in range(14):
        u = 0.5 * (low + high)
        if log_prior(u + 0.01, prior) > log_prior(u - 0.01, prior):
            low = u
        else:
            high = u
    return 0.5 * (low + high)


@njit(**OPTIONS)
def _spread(u: FloatArray, n: int, first: float, last: float, least: float) -> int:
    """Places from first to last, beyond those there are: not more than 24."""
    step = max(least, (last - first) / 23.0)
    x = first
    while x < last + 0.5 * step and n < MOST:
        if abs(x) < LIMIT:
            u[n] = x
            n += 1
        x += step
    return n


@njit(**OPTIONS)
def _values(
    s: float, q2: float, prior: FloatArray, place: float, u: FloatArray, f: FloatArray, more: FloatArray
) -> int:
    """Values of f in increasing order of u: enough to tell its shape; returns how many."""
    n = _spread(u, 0, place - 4.0, place + 4.0, 2.0)
    low, high = place - 4.0, place + 4.0
    if s > 0.0:
        ratio = max(q2 / s, 1.0)
        middle, half = math.log(s), math.log(ratio)
        # the mode of the likelihood is at s/(q²/s − 1); beyond q² it is flat
        n = _spread(u, n, middle - half - 3.0, middle - half + 3.0, 1.5)
        if ratio < 200.0:
            n = _spread(u, n, middle - half + 3.0, middle + half + 4.0, 1.5)
        low, high = min(low, middle - half - 3.0), max(high, middle + half + 4.0)
    u[n], u[n + 1] = -LIMIT, LIMIT
    n, out = n + 2, 2.0
    while out < 2.0 * LIMIT:
        for x in (low - out, high + out):
            if abs(x) < LIMIT:
                u[n] = x
                n += 1
        out *= 2.0
    u[:n].sort()
    top = -math.inf
    for i in range(n):
        f[i] = log_density(u[i], s, q2, prior)
        top = max(top, f[i])
    for _ in range(6):
        m, added = 0, 0
        for i in range(n):
            more[m, 0], more[m, 1] = u[i], f[i]
            m += 1
            if i == n - 1 or max(f[i], f[i + 1]) < top - DEPTH or n + added >= MOST:
                continue
            gap = u[i + 1] - u[i]
            if gap < 1e-8:
                continue
            slope, bend = (f[i + 1] - f[i]) / gap, 0.0
            if i > 0 and u[i] > u[i - 1]:
                bend = abs(slope - (f[i] - f[i - 1]) / (u[i] - u[i - 1])) * gap * gap / (u[i + 1] - u[i - 1])
            if i < n - 2 and u[i + 2] > u[i + 1]:
                other = abs((f[i + 2] - f[i + 1]) / (u[i + 2] - u[i + 1]) - slope) * gap * gap / (u[i + 2] - u[i])
                bend = max(bend, other)
            if not 0.25 * bend <= BEND:
                x = 0.5 * (u[i] + u[i + 1])
                more[m, 0], more[m, 1] = x, log_density(x, s, q2, prior)
                top = max(top, more[m, 1])
                m += 1
                added += 1
        n = m
        for i in range(n):
            u[i], f[i] = more[i, 0], more[i, 1]
        if added == 0:
            break
    return n


@njit(**OPTIONS)
def _log_mass(low: float, high: float, gap: float) -> float:
    """Log of the integral of an exponential between two values."""
    top, fall = max(low, high), abs(high - low)
    if fall < 1e-9:
        return top + math.log(gap)
    return top + math.log(-math.expm1(-fall) * gap / fall)


@njit(**OPTIONS)
def draw_log_precision(
    rng: np.random.Generator,
    now: float,
    s: float,
    q2: float,
    prior: FloatArray,
    place: float,
    u: FloatArray,
    f: FloatArray,
    more: FloatArray,
) -> float:
    """Move u = `now` by an update that leaves f invariant.

    `place` is `prior_place` of the prior; u, f (MOST,) and more (MOST + 1, 2) are memory to work in.
    """
    n = _values(s, q2, prior, place, u, f, more)
    top = -math.inf
    for i in range(n):
        top = max(top, f[i])
    total = 0.0
    for i in range(n - 1):
        mass = 0.0
        if u[i + 1] > u[i] and max(f[i], f[i + 1]) > top - END:
            mass = math.exp(_log_mass(f[i], f[i + 1], u[i + 1] - u[i]) - top)
        total += mass
        more[i, 0] = total
    where = rng.random() * total
    i = 0
    while i < n - 2 and more[i, 0] <= where:
        i += 1
    gap, fall = u[i + 1] - u[i], f[i + 1] - f[i]
    share = rng.random()
    if abs(fall) < 1e-9:
        part = share
    elif fall > 0.0:
        part = 1.0 + math.log(share + (1.0 - share) * math.exp(-fall)) / fall
    else:
        part = math.log1p(share * math.expm1(fall)) / fall
    new = u[i] + part * gap
    proposed = f[i] + part * fall
    exponent = -rng.standard_exponential()
    j = 0
    while j < n - 2 and u[j + 1] <= now:
        j += 1
    width = u[j + 1] - u[j]
    back = f[j] + (f[j + 1] - f[j]) * (now - u[j]) / width if width > 0.0 else f[j]
    here = log_density(now, s, q2, prior)
    if (log_density(new, s, q2, prior) - proposed) - (here - back) > exponent:
        return new
    return now
