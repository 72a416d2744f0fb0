"""Exact draws of a positive x whose log density is concave in log x, for many elements at once.

Scales of Gaussian residuals under the usual priors are all of this kind: with u = log x,

    h(u) = c u − Σ_j a_j e^{p_j u} − ½ q (u − m)² − r log(1 + t e^{2u}),    a, q, r, t ≥ 0.

The draw is by rejection under three lines that touch or bound h from above (left tangent, a level, right tangent), as
in Gilks and Wild (1992) without adaptation: any mode and any tangent points give exact draws, good ones fast ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayessel._check import FloatArray


class LogConcave:
    """h and its derivatives, element by element; every parameter is broadcast to `shape` and ravelled."""

    def __init__(
        self,
        shape: tuple[int, ...],
        c: Any,
        terms: Sequence[tuple[Any, Any]],
        q: Any = 0.0,
        m: Any = 0.0,
        r: Any = 0.0,
        t: Any = 0.0,
    ) -> None:
        def full(v: Any) -> FloatArray:
            return np.broadcast_to(np.asarray(v, dtype=np.float64), shape).ravel()

        self.shape = shape
        self.c, self.terms = full(c), [(full(a), full(p)) for a, p in terms]
        # absent for most priors, and skipped then
        self.normal = (full(q), full(m)) if np.any(q) else None
        self.student = (full(r), np.log(full(t))) if np.any(r) else None

    def at(self, places: Any) -> LogConcave:
        """The same for some elements only."""
        part = object.__new__(LogConcave)
        part.c, part.terms = self.c[places], [(a[places], p[places]) for a, p in self.terms]
        part.normal = None if self.normal is None else (self.normal[0][places], self.normal[1][places])
        part.student = None if self.student is None else (self.student[0][places], self.student[1][places])
        return part

    def value(self, u: FloatArray) -> FloatArray:
        """Return h(u)."""
        h = self.c * u
        for a, p in self.terms:
            h -= a * np.exp(p * u)
        if self.normal is not None:
            h -= 0.5 * self.normal[0] * (u - self.normal[1]) ** 2
        if self.student is not None:
            h -= self.student[0] * np.logaddexp(0.0, self.student[1] + 2.0 * u)
        return h

    def slopes(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second derivative."""
        first, second = self.c.copy(), np.zeros(len(u))
        for a, p in self.terms:
            e = a * p * np.exp(p * u)
            first -= e
            second -= p * e
        if self.normal is not None:
            first -= self.normal[0] * (u - self.normal[1])
            second -= self.normal[0]
        if self.student is not None:
            share = 1.0 / (1.0 + np.exp(-self.student[1] - 2.0 * u))
            first -= 2.0 * self.student[0] * share
            second -= 4.0 * self.student[0] * share * (1.0 - share)
        return first, second


def draw(h: LogConcave, near: FloatArray, now: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One u ~ exp(h) for each element.

    Parameters
    ----------
    h : LogConcave
        The log densities.
    near : array
        Where to look for the modes; must not depend on `now`.
    now : array
        Present values: kept where h has no mode within reach, as for an improper density.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    u : array of the shape of `h`
    """
    u = np.array(np.broadcast_to(now, h.shape), dtype=np.float64).ravel()
    if u.size == 1:
        return np.full(h.shape, _draw_one(h, float(np.ravel(near)[0]), float(u[0]), rng))
    mode, curvature = _mode(h, np.array(np.broadcast_to(near, h.shape), dtype=np.float64).ravel())
    a = mode - _distance(h, mode, curvature, -1.0)
    b = mode + _distance(h, mode, curvature, 1.0)
    top, (slope, _) = h.value(mode), h.slopes(mode)
    ha, (sa, _) = h.value(a), h.slopes(a)
    hb, (sb, _) = h.value(b), h.slopes(b)
    # the tangents in a and b down to where they meet the tangent in the mode, and a level above that one
    z1 = mode + (top - ha + (a - mode) * sa) / (sa - slope)
    z2 = mode + (hb - top - (b - mode) * sb) / (slope - sb)
    level = top + np.maximum(slope * (z1 - mode), slope * (z2 - mode))
    left = np.exp(ha + sa * (z1 - a) - level) / sa
    right = np.exp(hb + sb * (z2 - b) - level) / -sb
    middle = z2 - z1
    proper = (sa > 0.0) & (sb < 0.0) & (middle > 0.0) & np.isfinite(left + middle + right)
    todo = np.flatnonzero(proper)
    while todo.size:
        part = h.at(todo)
        which = rng.random(todo.size) * (left + middle + right)[todo]
        place = 1.0 - rng.random(todo.size)  # never zero
        on_left, on_right = which < left[todo], which > (left + middle)[todo]
        x = np.where(on_left, z1[todo] + np.log(place) / sa[todo], z1[todo] + place * middle[todo])
        x = np.where(on_right, z2[todo] + np.log(place) / sb[todo], x)
        bound = np.where(on_left, ha[todo] + sa[todo] * (x - a[todo]), level[todo])
        bound = np.where(on_right, hb[todo] + sb[todo] * (x - b[todo]), bound)
        good = part.value(x) - bound > -rng.standard_exponential(todo.size)
        u[todo[good]] = x[good]
        todo = todo[~good]
    return u.reshape(h.shape)


def _mode(h: LogConcave, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Modes and −h″ there, by Newton's method; near is enough."""
    second = np.full(len(u), -1.0)
    for _ in range(200):
        first, second = h.slopes(u)
        step = -first / second
        step = np.where(np.isfinite(step), np.minimum(np.maximum(step, -2.0), 2.0), np.sign(first))
        u += step
        if np.abs(step * np.sqrt(-second)).max() < 0.02:
            break
    return u, np.where(second < 0.0, -second, 1.0)


def _distance(h: LogConcave, mode: FloatArray, curvature: FloatArray, sign: float) -> FloatArray:
    """How far from the mode, on one side, h has fallen by about one: where a tangent bounds the tail best."""
    d = 1.4 / np.sqrt(curvature)
    top = h.value(mode)
    for _ in range(8):
        drop = top - h.value(mode + sign * d)
        if np.all((drop > 0.5) & (drop < 2.0)):
            break
        d = d / np.minimum(np.maximum(np.sqrt(drop), 0.25), 5.0)
    return d


# --- one element: the same in plain numbers, ten times as fast ---------------------------------------------------


def _draw_one(h: LogConcave, near: float, now: float, rng: np.random.Generator) -> float:
    value, slopes = _one(h)
    try:
        mode, second = near, -1.0
        for _ in range(200):
            first, second = slopes(mode)
            step = max(-2.0, min(2.0, -first / second)) if second < 0.0 else math.copysign(1.0, first)
            mode += step
            if abs(step) * math.sqrt(-second) < 0.02:
                break
        top, slope = value(mode), slopes(mode)[0]
        sides = []
        for sign in (-1.0, 1.0):
            d = 1.4 / math.sqrt(-second)
            for _ in range(8):
                drop = top - value(mode + sign * d)
                if 0.5 < drop < 2.0:
                    break
                d /= min(max(math.sqrt(max(drop, 0.0)), 0.25), 5.0)
            sides.append(mode + sign * d)
        a, b = sides
        ha, hb, sa, sb = value(a), value(b), slopes(a)[0], slopes(b)[0]
        if not sa > 0.0 > sb:
            return now
        z1 = mode + (top - ha + (a - mode) * sa) / (sa - slope)
        z2 = mode + (hb - top - (b - mode) * sb) / (slope - sb)
        level = top + max(slope * (z1 - mode), slope * (z2 - mode))
        left, right = math.exp(ha + sa * (z1 - a) - level) / sa, math.exp(hb + sb * (z2 - b) - level) / -sb
    except (OverflowError, ZeroDivisionError, ValueError):
        return now
    middle = z2 - z1
    if not (middle > 0.0 and math.isfinite(left + middle + right)):
        return now
    while True:
        which, place = rng.random() * (left + middle + right), 1.0 - rng.random()
        if which < left:
            x = z1 + math.log(place) / sa
            bound = ha + sa * (x - a)
        elif which > left + middle:
            x = z2 + math.log(place) / sb
            bound = hb + sb * (x - b)
        else:
            x, bound = z1 + place * middle, level
        try:
            if value(x) - bound > -rng.standard_exponential():
                return x
        except OverflowError:
            pass  # e^{pu} beyond all bounds: a rejection


def _one(h: LogConcave) -> tuple[Callable[[float], float], Callable[[float], tuple[float, float]]]:
    """The methods of `h` as functions of one number."""
    c, terms = float(h.c[0]), [(float(a[0]), float(p[0])) for a, p in h.terms]
    q, m = (0.0, 0.0) if h.normal is None else (float(h.normal[0][0]), float(h.normal[1][0]))
    r, log_t = (0.0, 0.0) if h.student is None else (float(h.student[0][0]), float(h.student[1][0]))

    def value(u: float) -> float:
        result = c * u - 0.5 * q * (u - m) ** 2
        for a, p in terms:
            result -= a * math.exp(p * u)
        if r:
            s = log_t + 2.0 * u
            result -= r * (max(s, 0.0) + math.log1p(math.exp(-abs(s))))
        return result

    def slopes(u: float) -> tuple[float, float]:
        first, second = c - q * (u - m), -q
        for a, p in terms:
            e = a * p * math.exp(p * u)
            first -= e
            second -= p * e
        if r:
            share = 0.5 + 0.5 * math.tanh(0.5 * log_t + u)
            first -= 2.0 * r * share
            second -= 4.0 * r * share * (1.0 - share)
        return first, second

    return value, slopes
