"""Exact independent draws from a log-concave density of one variable, by adaptive rejection (Gilks and Wild 1992).

The tangents of a concave log density h lie above it, so the lowest of a few of them is a hull of exponential pieces
that is easy to draw from; a draw is accepted with probability exp(h − hull). Every rejected draw adds its own tangent,
so the hull closes in on h while it is used. Chords between the points of contact lie below h (the squeeze) and accept
most draws without an evaluation.

A density that is not log-concave breaks one of these inequalities sooner or later: each evaluation is compared with the
hull, the squeeze and the neighbouring tangents, and a breach beyond rounding raises `NotLogConcaveError`.

Nothing here depends on the unit of the variable or on the constant of the density: the first points are found by
doubling steps, and a hull that starts far too wide or too narrow is halved by each rejection.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from bayessel._check import FloatArray, as_count

#: x -> (h(x), h'(x)): log density up to a constant, −inf outside its support, and its derivative.
LogDensity = Callable[[float], tuple[float, float]]

#: What h may lie above a tangent (nats) before that counts as a breach: a draw is then wrong by this much at most.
_SLACK = 1e-9
#: A piece of the hull that rises by less than this is as good as level.
_FLAT = 1e-8
#: Rounding of h, of a tangent and of x itself, in units of the last place.
_ROUNDING = 64.0 * np.finfo(float).eps
#: Beyond this many points a further tangent costs more than it saves; the lowest one makes room.
_MOST_POINTS = 64
_MOST_PROPOSALS = 10_000
#: Doublings that lead from the smallest to the largest double.
_MOST_DOUBLINGS = 2_100


class NotLogConcaveError(ValueError):
    """The log density was seen above one of its tangents, or below one of its chords."""


class AdaptiveRejection:
    """The hull of one density, refined by the draws made from it.

    Parameters
    ----------
    log_density : callable
        x -> (h, h'): log density up to a constant and its derivative. Where h is −inf the derivative is not looked at.
    start : float or several
        Points of finite log density where the first tangents are laid. One is enough.
    lower, upper : float
        Ends of the support, if there are any.
    step : float
        How far from `start` to look for further points on an open side. Default 1/|h'(start)|, or 1 at a mode.

    Attributes
    ----------
    evaluations : int
        How often the log density was asked for.
    """

    def __init__(
        self,
        log_density: LogDensity,
        start: float | Sequence[float],
        *,
        lower: float = -math.inf,
        upper: float = math.inf,
        step: float | None = None,
    ) -> None:
        self._lower, self._upper = _ordered(lower, upper)
        self._log_density = log_density
        self.evaluations = 0
        self._x: list[float] = []  # points of contact, sorted
        self._h: list[float] = []
        self._slope: list[float] = []
        self._edges: list[float] = []
        self._tops: list[tuple[float, float, float]] = []
        self._cumulative: list[float] = []
        self._begin([float(start)] if np.ndim(start) == 0 else [float(x) for x in start], step)  # type: ignore[arg-type,union-attr]

    # --- drawing --------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, *, squeeze: bool = True) -> float:
        """Return one draw; with ``squeeze=False`` its log density is always evaluated and compared with the hull."""
        for _ in range(_MOST_PROPOSALS):
            if not self._cumulative:
                self._weigh()
            x, i = self._propose(rng)
            hull = self._tangent(i, x)
            log_u = math.log1p(-rng.random())
            if squeeze and log_u <= self._chord(x) - hull:
                return x
            h, slope = self._evaluate(x)
            if h == -math.inf:
                self._cut(x)
                continue
            self._compare(x, h, hull)
            accepted = log_u <= h - hull
            if not accepted or squeeze:
                self._insert(x, h, slope)
            if accepted:
                return x
        raise NotLogConcaveError(
            f"no draw was accepted out of {_MOST_PROPOSALS}; the derivative does not seem to belong to the log density"
        )

    def hull(self, x: float) -> float:
        """Upper bound of the log density at x; −inf outside the support."""
        if not self._lower <= x <= self._upper:
            return -math.inf
        if not self._cumulative:
            self._weigh()
        return self._tangent(min(max(bisect_left(self._edges, x) - 1, 0), len(self._x) - 1), x)

    def squeeze(self, x: float) -> float:
        """Lower bound of the log density at x; −inf beyond the points of contact."""
        return self._chord(x)

    def exceeds(self, x: float, h: float) -> bool:
        """Whether a log density h at x lies above the hull by more than rounding."""
        hull = self.hull(x)
        return h - hull > _slack(h, hull) if hull > -math.inf else h > -math.inf

    # --- the hull ---------------------------------------------------------------------------------------------------

    def _tangent(self, i: int, x: float) -> float:
        """Height of piece i of the hull."""
        run, (top, height, error) = abs(self._slope[i]), self._tops[i]
        own = abs(self._h[i]) + run * abs(x - self._x[i])
        if _ROUNDING * own <= error + _ROUNDING * run * abs(x - top):
            return self._h[i] + self._slope[i] * (x - self._x[i])
        return height + self._slope[i] * (x - top)

    def _chord(self, x: float) -> float:
        points = self._x
        if not points[0] <= x <= points[-1]:
            return -math.inf
        j = min(max(bisect_right(points, x), 1), len(points) - 1)
        if j == 0:
            return self._h[0]
        left, right = points[j - 1], points[j]
        share = (x - left) / (right - left)
        return (1.0 - share) * self._h[j - 1] + share * self._h[j]

    def _weigh(self) -> None:
        """Find where tangents meet, and the mass below each of them."""
        points, h, slope = self._x, self._h, self._slope
        last = len(points) - 1
        edges = [self._lower]
        for i in range(last):
            width, turn = points[i + 1] - points[i], slope[i] - slope[i + 1]
            # any point between the two would do: both tangents are bounds everywhere, the crossing is the tightest
            s = (h[i + 1] - h[i] - slope[i + 1] * width) / turn if turn > 0.0 else 0.5 * width
            edges.append(points[i] + min(max(s, 0.0), width))
        edges.append(self._upper)
        tops, masses = [], []
        for i, d in enumerate(slope):
            left, right = edges[i], edges[i + 1]
            # the higher end carries the piece; seen from a point far down its tangent, its height would be all rounding
            other = i + 1 if d > 0.0 else i - 1
            x = right if d > 0.0 or (d == 0.0 and not math.isfinite(left)) else left
            tops.append(min([self._line(i, x), *([self._line(other, x)] if 0 <= other <= last else [])], key=_error))
            width, a = right - left, abs(d) * (right - left)
            if width <= 0.0:
                masses.append(-math.inf)
            elif a < _FLAT:
                masses.append(tops[-1][1] - 0.5 * a + math.log(width))
            else:
                masses.append(tops[-1][1] + math.log(-math.expm1(-a)) - math.log(abs(d)))
        highest = max(masses)
        self._edges, self._tops = edges, tops
        self._cumulative = list(accumulate(math.exp(m - highest) for m in masses))

    def _line(self, i: int, x: float) -> tuple[float, float, float]:
        """(x, height of tangent i there, its rounding error)."""
        run = self._slope[i] * (x - self._x[i])
        return x, self._h[i] + run, _ROUNDING * (abs(self._h[i]) + abs(run))

    def _propose(self, rng: np.random.Generator) -> tuple[float, int]:
        """One draw from the hull, and the tangent it lies under."""
        i = min(bisect_right(self._cumulative, rng.random() * self._cumulative[-1]), len(self._x) - 1)
        left, right, d = self._edges[i], self._edges[i + 1], self._slope[i]
        u, a = rng.random(), abs(d) * (right - left)
        if a < _FLAT:
            x = left + u * (right - left)
        else:
            s = -math.log1p(u * math.expm1(-a)) / abs(d)  # from the higher end
            x = right - s if d > 0.0 else left + s
        return min(max(x, left), right), i

    # --- points of contact ------------------------------------------------------------------------------------------

    def _evaluate(self, x: float) -> tuple[float, float]:
        self.evaluations += 1
        h, slope = self._log_density(x)
        h, slope = float(h), float(slope)
        if math.isnan(h) or h == math.inf:
            raise ValueError(f"the log density must be a number or -inf, got {h} at x = {x!r}")
        if h > -math.inf and not math.isfinite(slope):
            raise ValueError(f"the derivative of the log density must be finite, got {slope} at x = {x!r}")
        return h, slope

    def _compare(self, x: float, h: float, hull: float) -> None:
        chord = self._chord(x)
        if h - hull > _slack(h, hull):
            raise NotLogConcaveError(
                f"not log-concave: at x = {x:.6g} the log density is {h - hull:.3g} above a tangent"
            )
        if chord - h > _slack(h, chord):
            raise NotLogConcaveError(
                f"not log-concave: at x = {x:.6g} the log density is {chord - h:.3g} below a chord"
            )

    def _insert(self, x: float, h: float, slope: float) -> None:
        """Add a point of contact; its tangent must lie above its neighbours, and theirs above it."""
        j = bisect_left(self._x, x)
        if j < len(self._x) and self._x[j] == x:
            return
        for k in (j - 1, j):
            if 0 <= k < len(self._x):
                run = self._x[k] - x
                rounding = _ROUNDING * (abs(x) + abs(self._x[k])) * (abs(slope) + abs(self._slope[k]))
                over = max(self._h[k] - (h + slope * run), h - (self._h[k] - self._slope[k] * run))
                if over > _slack(h, self._h[k]) + rounding:
                    raise NotLogConcaveError(
                        f"not log-concave: between x = {min(x, self._x[k]):.6g} and {max(x, self._x[k]):.6g} "
                        f"the log density rises {over:.3g} above a tangent"
                    )
        self._x.insert(j, x)
        self._h.insert(j, h)
        self._slope.insert(j, slope)
        self._cumulative = []
        if len(self._x) > _MOST_POINTS:
            self._forget()

    def _forget(self) -> None:
        """Take away the outer point that is further down, if the next one closes that side as well."""
        ends = [0, len(self._x) - 1]
        for k in sorted(ends, key=self._h.__getitem__):
            bound, next_slope = (self._lower, self._slope[1]) if k == 0 else (self._upper, -self._slope[-2])
            if math.isfinite(bound) or next_slope > 0.0:
                break
        del self._x[k], self._h[k], self._slope[k]

    def _cut(self, x: float) -> None:
        """A point of density zero ends the support of a log-concave density on its side."""
        if x > self._x[-1]:
            self._upper = x
        elif x < self._x[0]:
            self._lower = x
        else:
            raise NotLogConcaveError(
                f"not log-concave: the density is zero at x = {x:.6g}, between points where it is not"
            )
        self._cumulative = []

    def _begin(self, start: Sequence[float], step: float | None) -> None:
        """Lay the first tangents, and further ones until those at open ends fall outwards."""
        if step is not None and not (math.isfinite(step) and step > 0.0):
            raise ValueError(f"step must be positive and finite, got {step!r}")
        seen: list[tuple[float, float, float]] = []
        for x in start:
            if not (math.isfinite(x) and self._lower <= x <= self._upper):
                raise ValueError(f"start must lie between {self._lower} and {self._upper}, got {x!r}")
            seen.append((x, *self._evaluate(x)))
        for x, h, slope in seen:
            if h > -math.inf:
                self._insert(x, h, slope)
        if not self._x:
            raise ValueError(f"the density is zero at start = {start[0] if len(start) == 1 else list(start)}")
        for x, h, _ in seen:
            if h == -math.inf:
                self._cut(x)
        for side in (-1, 1):
            self._reach(side, step)

    def _reach(self, side: int, step: float | None) -> None:
        """Step outwards until the tangent falls in that direction, or the support ends."""
        end = 0 if side < 0 else -1
        slope = abs(self._slope[end])
        stride = step or (1.0 / slope if 1e-300 < slope < 1e300 else 1.0)
        for _ in range(_MOST_DOUBLINGS):
            if math.isfinite(self._upper if side > 0 else self._lower) or side * self._slope[end] < 0.0:
                return
            x = self._x[end] + side * stride
            if not math.isfinite(x):
                break
            stride *= 2.0
            if x == self._x[end]:
                continue
            h, slope = self._evaluate(x)
            if h == -math.inf:
                self._cut(x)
            else:
                self._insert(x, h, slope)
        raise ValueError(
            f"the density does not fall towards {'+' if side > 0 else '-'}infinity: it cannot be integrated; "
            f"pass {'upper' if side > 0 else 'lower'} if its support is bounded"
        )


def adaptive_rejection(
    log_density: LogDensity,
    start: float | Sequence[float],
    rng: np.random.Generator,
    size: int = 1,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    step: float | None = None,
) -> FloatArray:
    """Return `size` independent exact draws from a log-concave density; arguments as in `AdaptiveRejection`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = adaptive_rejection(lambda x: (x - np.exp(x), 1.0 - np.exp(x)), 0.0, rng, size=1000)  # log of an exponential
    >>> bool(abs(x.mean() + 0.5772) < 0.15)
    True
    """
    sampler = AdaptiveRejection(log_density, start, lower=lower, upper=upper, step=step)
    return np.array([sampler.draw(rng) for _ in range(as_count(size, "size"))])


def _slack(h: float, other: float) -> float:
    """How far h may be on the wrong side of another value and still be on it, up to rounding."""
    return _SLACK + _ROUNDING * max(abs(h), abs(other))


def _error(line: tuple[float, float, float]) -> float:
    return line[2]


def _ordered(lower: float, upper: float) -> tuple[float, float]:
    lower, upper = float(lower), float(upper)
    if not lower < upper:
        raise ValueError(f"lower must be below upper, got {lower} and {upper}")
    return lower, upper
