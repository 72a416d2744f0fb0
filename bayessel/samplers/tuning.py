"""Settings found while a chain tunes: step size, mass, persistence, pace of the persistent uniform, updates per draw.

step size ε
    Dual averaging of the acceptance rate, one observation per update (Hoffman & Gelman 2014, section 3.2).
mass
    Variances over windows of draws that double in length; the momentum is redrawn and the step size sought anew after
    each. Short early windows use √(var q / var ∇), which is right for a Gaussian already on the way to it. A dense
    mass is the geometric mean of the covariances of draws and gradients (see `metric`).
persistence a
    In coordinates of unit variance the slowest direction has variance λ ≥ 1 and needs the time √λ. The persistence of
    a trajectory of time εL is a = exp(−γεL) with γ = 0.5/√λ: between the friction that serves means best (small)
    and the one that serves variances best (1/√λ).
pace δ of the persistent uniform
    (1 − a²)/2, which lets v go once around in about the time the momentum is kept.
updates per draw
    As many as take the time 1.5 √λ: draws further apart waste gradients, closer ones are nearly copies.
jumps (see `jumps`)
    Tried once per draw when a window has given them a proposal. Where they would make an independent draw in less time
    than trajectories they take over, 1.25 times as many to a draw as that takes, and one draw in some (`NOW_AND_THEN`)
    has a Hamiltonian update as well. After tuning every draw whose state is hard to leave has as many updates as a draw
    without jumps, which leads out of tails that the t does not know. While tuning a draw is one jump, of the heaviest
    tails; afterwards its degrees of freedom are those with the shortest stay.

What is observed goes in, the next `Tuning` comes out; the sums over a window alone are changed in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import ceil, exp, inf, isfinite, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from bayessel._check import FloatArray, IntArray
from bayessel._compiled import compiled_as
from bayessel.samplers import jumps, metric
from bayessel.samplers.compiled_density import LogDensity
from bayessel.samplers.leapfrog import Phase, energy, leapfrog

#: γ√λ of the rule for the persistence
FRICTION = 0.5
#: time between draws, in units of √λ
SPACING = 1.5
#: no draw takes more gradients than this by itself
MOST_GRADIENTS = 1000
#: draws of a window kept to find its slowest direction
KEPT = 128
#: windows of fewer draws use the gradients as well
SHORT = 60
#: after so many jumps of a window they are judged; at its end again
JUDGED = (16, 64)
#: jumps from which the stay is estimated
ENOUGH = 10
#: price of a density in gradients
VALUE = 0.4
#: jumps of which it takes more to make an independent draw are left to others, for the estimate is not to be trusted
LONGEST_STAY = 10.0
#: one draw in so many that are made of jumps has a Hamiltonian update as well: while tuning, when its gradient is
#: learnt from, and afterwards. By itself it would leave one chain in six in a far tail for hundreds of draws
NOW_AND_THEN = (4, 8)


class DualAveraging(NamedTuple):
    """Nesterov's dual averaging of log ε; `mean` is what remains when tuning ends."""

    current: float
    mean: float
    error: float
    anchor: float
    seen: int


class Window(NamedTuple):
    """Welford's sums over the draws of a window, and some of the draws; `spread`s are vectors, or matrices.

    `counts` are the draws seen, and those kept in the first rows of `kept`.
    """

    counts: IntArray
    mean: FloatArray
    spread: FloatArray
    gradient_mean: FloatArray
    gradient_spread: FloatArray
    kept: FloatArray


class Tuning(NamedTuple):
    """Where the tuning of one chain is."""

    n_tune: int
    draw: int
    target: float
    averaging: DualAveraging
    relaxation: float
    window: Window
    here: tuple[jumps.End, ...] = ()
    there: tuple[jumps.End, ...] = ()

    @property
    def seen(self) -> int:
        """Draws of the window so far."""
        return int(self.window.counts[0])

    @property
    def kept(self) -> FloatArray:
        """Some of them, one to a row."""
        return self.window.kept[: self.window.counts[1]]


#: a `Tuning` as plain tuples
type TuningParts = tuple[float | tuple[float | tuple[float, ...] | FloatArray | IntArray, ...], ...]


# --- step size --------------------------------------------------------------------------------------------------


def averaging_from(step_size: float) -> DualAveraging:
    """Start at a step size that is about right; the anchor is above it, since too small costs more than too large."""
    return DualAveraging(log(step_size), log(step_size), 0.0, log(2.0 * step_size), 0)


@register_jitable
def average(state: DualAveraging, error: float) -> DualAveraging:
    """One observation of (target − acceptance rate): equations 6 of Hoffman & Gelman, t0 = 10, γ = 0.05, κ = 0.75."""
    count = state.seen + 1
    weight = 1.0 / (count + 10.0)
    accumulated = (1.0 - weight) * state.error + weight * error
    # within what a float can hold, whatever happens: a density that is flat accepts steps of any size
    current = min(max(state.anchor - accumulated * sqrt(count) / 0.05, -300.0), 300.0)
    keep = count**-0.75
    return DualAveraging(current, keep * current + (1.0 - keep) * state.mean, accumulated, state.anchor, count)


def reasonable_step_size(phase: Phase, log_density: LogDensity, scale: FloatArray, guess: float) -> tuple[float, int]:
    """Double or halve until the acceptance of one leapfrog step crosses 0.8; also the number of gradients it took."""

    def good(step_size: float) -> bool:
        return energy(leapfrog(phase, log_density, step_size * scale)) - energy(phase) < -log(0.8)

    step_size = guess
    grow = good(step_size)
    for n_gradients in range(2, 60):
        following = step_size * (2.0 if grow else 0.5)
        if good(following) != grow:
            return (step_size if grow else following), n_gradients
        step_size = following
    return step_size, n_gradients


# --- windows ----------------------------------------------------------------------------------------------------


@cache
def window_ends(n_tune: int) -> tuple[int, ...]:
    """After which draws the mass is renewed: windows that double in length, the last 15 % left to the step size."""
    last = n_tune - max(n_tune * 15 // 100, min(n_tune, 10))
    ends = []
    length = max(10, n_tune // 40)
    end = length
    while end <= last:
        length *= 2
        if end + length > last:
            end = last
        ends.append(end)
        end += length
    return tuple(ends)


def begin(n_tune: int, size: int, target: float, step_size: float, dense: bool = False) -> Tuning:
    """Before the first draw."""
    return Tuning(n_tune, 0, target, averaging_from(step_size), 1.0, empty_window(size, dense))


def empty_window(size: int, dense: bool) -> Window:
    """Before the first draw of a window."""
    square = (size, size) if dense else (size,)
    counts = np.zeros(2, dtype=np.int64)
    return Window(
        counts, np.zeros(size), np.zeros(square), np.zeros(size), np.zeros(square), np.zeros((KEPT + 1, size))
    )


def as_tuples(tuning: Tuning) -> TuningParts:
    """Plain nested tuples of copies, for a sampling state."""
    window = tuple(part.copy() for part in tuning.window)
    ends = (tuple(map(tuple, side)) for side in (tuning.here, tuning.there))
    return (*tuning[:3], tuple(tuning.averaging), tuning.relaxation, window, *ends)


def from_tuples(parts: Sequence[Any]) -> Tuning:
    """Return the tuning under way from its parts."""
    found = Tuning(*parts)
    return found._replace(
        averaging=DualAveraging(*found.averaging),
        window=Window._make(part.copy() for part in found.window),
        here=tuple(jumps.End(*end) for end in found.here),
        there=tuple(jumps.End(*end) for end in found.there),
    )


@register_jitable
def watch(averaging: DualAveraging, target: float, acceptance_rate: float) -> DualAveraging:
    """After one update, whose acceptance rate is to become the target."""
    return average(averaging, target - (acceptance_rate if isfinite(acceptance_rate) else 0.0))


def record(tuning: Tuning, position: FloatArray, gradient: FloatArray | None) -> Tuning:
    """After one draw. Where nobody knows the gradient the draw is only counted."""
    if gradient is not None:
        gather(tuning.window, position, gradient, tuning.draw % keep_every(tuning) == 0)
    return tuning._replace(draw=tuning.draw + 1)


def keep_every(tuning: Tuning) -> int:
    """One draw of so many is kept, in the window the next draw belongs to."""
    return max(1, ceil(_length(tuning) / KEPT))


@register_jitable
def gather(window: Window, position: FloatArray, gradient: FloatArray, keep: bool) -> None:
    """Welford's means and squared deviations, with one draw more; changes the arrays."""
    counts, kept = window.counts, window.kept
    counts[0] += 1
    _add_draw(window.mean, window.spread, position, counts[0])
    _add_draw(window.gradient_mean, window.gradient_spread, gradient, counts[0])
    if keep and counts[1] < len(kept):
        kept[counts[1]] = position
        counts[1] += 1


def _add_draw(mean: FloatArray, spread: FloatArray, value: FloatArray, count: int) -> None:
    """Products of all pairs of coordinates where a matrix is gathered, of each with itself where a vector is."""
    step = value - mean
    mean += step / count
    spread += np.outer(step, value - mean) if spread.ndim == 2 else step * (value - mean)


def _add_in_loops(mean: FloatArray, spread: FloatArray, value: FloatArray, count: int) -> None:
    if spread.ndim == 2:
        step = value - mean
        for i in range(len(mean)):
            mean[i] += step[i] / count
        for i in range(len(mean)):
            for j in range(len(mean)):
                spread[i, j] += step[i] * (value[j] - mean[j])
    else:
        for i in range(len(mean)):
            off = value[i] - mean[i]
            mean[i] += off / count
            spread[i] += off * (value[i] - mean[i])


compiled_as(_add_draw, _add_in_loops)


def observe_jump(tuning: Tuning, info: jumps.JumpInfo) -> Tuning:
    """After one jump."""
    return tuning._replace(here=(*tuning.here, info.here)[-KEPT:], there=(*tuning.there, info.there)[-KEPT:])


def stay(tuning: Tuning, before: float) -> float:
    """Jumps per independent draw since the last window; what it was `before` where there are too few to say."""
    if len(tuning.here) < ENOUGH:
        return before
    return jumps.stay([end.excess for end in tuning.here], [end.excess for end in tuning.there])


def choose_jumps(tuning: Tuning, before: float) -> jumps.Choice:
    """What is kept of the jumps when tuning ends; `before` is the stay where there are too few to say."""
    if len(tuning.here) < ENOUGH:
        return jumps.Choice(jumps.DEGREES[0], before, -inf)
    return jumps.choose(tuning.here, tuning.there, len(tuning.window.mean))


def _length(tuning: Tuning) -> int:
    """Length of the window the next draw belongs to."""
    begin = 0
    for end in window_ends(tuning.n_tune):
        if tuning.draw < end:
            return end - begin
        begin = end
    return tuning.n_tune - begin


def until_window_ends(tuning: Tuning) -> int:
    """Draws left in the window the next draw belongs to."""
    return next((end for end in window_ends(tuning.n_tune) if tuning.draw < end), max(tuning.n_tune, 1)) - tuning.draw


def ends_window(tuning: Tuning) -> bool:
    """Whether the draw just recorded was the last of a window."""
    return tuning.draw in window_ends(tuning.n_tune)


def in_first_window(tuning: Tuning) -> bool:
    """Whether nothing is known yet about the scales."""
    ends = window_ends(tuning.n_tune)
    return not ends or tuning.draw < ends[0]


def close_window(tuning: Tuning, scale: FloatArray) -> tuple[Tuning, FloatArray]:
    """New scales M^{-1/2} and relaxation time √λ from the window; the next window starts empty."""
    count, window = tuning.seen, tuning.window
    dense = window.spread.ndim == 2
    diagonal = np.sqrt(np.einsum("ij,ij->i", scale, scale)) if scale.ndim == 2 else scale
    less = max(count - 1, 1)
    variance = _diagonal(window.spread) / less
    if count < SHORT or dense:
        gradient_variance = _diagonal(window.gradient_spread) / less
        with np.errstate(all="ignore"):
            both = np.sqrt(variance / gradient_variance)
        # a gradient that never changes, as of an exponential density, says nothing of the scale
        changes = gradient_variance > 1e-16 * window.gradient_mean**2
        variance = np.where(changes & np.isfinite(both), both, variance)
    usable = np.isfinite(variance) & (variance > 0.0)
    # one draw's weight for what was believed before: a coordinate that hardly moved in a window does not collapse
    with np.errstate(all="ignore"):
        renewed = np.exp((count * np.log(variance) + np.log(diagonal**2)) / (count + 1.0) / 2.0)
    renewed = np.where(usable, renewed, diagonal)
    if dense:
        found = metric.dense_scale(window.spread / less, window.gradient_spread / less, count, renewed)
        scale = np.diag(renewed) if found is None else found
        white = np.linalg.solve(scale, tuning.kept.T).T
    else:
        scale = renewed
        white = tuning.kept / scale
    # variances along all directions add up to the number of coordinates; more is drift on the way in
    relaxation = sqrt(min(max(variance_of_slowest_direction(white), 1.0), len(scale)))
    fresh = empty_window(len(scale), dense)
    return tuning._replace(relaxation=relaxation, window=fresh, here=(), there=()), scale


def _diagonal(spread: FloatArray) -> FloatArray:
    """Of a matrix its diagonal, and a vector as it is."""
    return np.diagonal(spread) if spread.ndim == 2 else spread


def centre(tuning: Tuning, scale: FloatArray) -> FloatArray:
    """Where the gradient would be nil if the posterior were a Gaussian of that scale: mean q + Σ mean ∇."""
    return tuning.window.mean + scale @ (tuning.window.gradient_mean @ scale)


def variance_of_slowest_direction(draws: FloatArray) -> float:
    """Largest variance along any direction, seen in the half of the draws that did not choose the direction.

    The largest eigenvalue of a sample covariance of n draws in d dimensions is too large by (1 + √(d/n))² even for
    independent coordinates. A direction found in one half has an honest variance in the other.
    """
    half = len(draws) // 2
    if half < 4:
        return 1.0
    first, second = draws[:half], draws[half : 2 * half]
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    found = []
    for seen, unseen in ((first, second), (second, first)):
        direction = np.linalg.svd(seen, full_matrices=False)[2][0]
        found.append(float(np.sum((unseen @ direction) ** 2)) / (half - 1))
    return 0.5 * (found[0] + found[1])


# --- what follows from them -------------------------------------------------------------------------------------


@register_jitable
def persistence(step_size: float, n_leapfrog: int, relaxation: float) -> float:
    """a = exp(−γεL), γ = 0.5/√λ."""
    return exp(-FRICTION * step_size * n_leapfrog / relaxation)


@register_jitable
def pace(persistence: float) -> float:
    """δ = (1 − a²)/2, kept off zero so that v always moves."""
    return max(0.5 * (1.0 - persistence * persistence), 1e-6)


@register_jitable
def updates_per_draw(step_size: float, n_leapfrog: int, relaxation: float) -> int:
    """Updates that take the time 1.5 √λ, at most `MOST_GRADIENTS` gradients."""
    wanted = min(SPACING * relaxation / (step_size * n_leapfrog), float(MOST_GRADIENTS // n_leapfrog))
    return max(1, ceil(wanted))


def jumps_pay(stay: float, gradients: int) -> bool:
    """Whether jumps make an independent draw at a lower price than so many gradients."""
    return stay <= LONGEST_STAY and stay * VALUE <= gradients


def jumps_per_draw(stay: float) -> int:
    """A quarter more than make an independent draw, for the estimate is rather short."""
    return ceil(1.25 * stay)
