r"""Minimise a smooth function of a few parameters whose every evaluation is expensive: a quasi-Newton trust region.

Three things save evaluations where each costs n³ operations: a curvature to begin with (that of the same problem on
fewer rows), exact curvature for what is known in closed form (the prior), and that a step which failed still teaches
the model. Its curvature B is updated by the BFGS formula, damped so that it stays positive definite (Nocedal and Wright
2006, eq. 18.15); its step within the radius is exact, from the eigenvectors of B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayessel._check import FloatArray

#: longest step, in the coordinates of the search (natural logarithms)
_FARTHEST = 4.0
#: a radius at which the function cannot be told from its neighbours any more
_NEAREST = 1e-7
#: flattest curvature of the model
_FLATTEST = 1e-8


class KnownTerms(NamedTuple):
    """A term known in closed form: value, gradient, diagonal of its Hessian (the rest of it is nil)."""

    value: float
    gradient: FloatArray
    curvature: FloatArray


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a search ended.

    Attributes
    ----------
    x, value
        The best point, and the function there, closed-form term included.
    gradient : (k,) array
        Of the expensive part alone.
    curvature : (k, k) array
        The model's Hessian of the expensive part.
    expected : float
        What the model still promises to gain: half the squared Newton decrement.
    converged : bool
        Whether that is less than the tolerance.
    stuck : bool
        Whether the radius shrank to nothing instead: rounding, or the edge of where the function is finite.
    history : tuple of dict
        One entry per evaluation.
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    curvature: FloatArray
    expected: float
    converged: bool
    stuck: bool
    history: tuple[dict[str, float], ...]

    @property
    def n_evaluations(self) -> int:
        """Evaluations of the expensive part."""
        return len(self.history)


def minimise(
    expensive: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    curvature: FloatArray,
    exact: Callable[[FloatArray], KnownTerms],
    *,
    tol: float,
    max_evaluations: int,
    bounds: tuple[FloatArray, FloatArray],
    keep: Callable[[FloatArray, float], None] | None = None,
    curvature_at: Callable[[FloatArray], FloatArray] | None = None,
) -> Minimum:
    """Minimise expensive(x) + exact(x) within bounds.

    Parameters
    ----------
    expensive
        x -> value, gradient; an infinite value marks a place that cannot be evaluated.
    start, curvature
        Where to begin, and the Hessian of the expensive part to begin with.
    exact
        x -> `KnownTerms`.
    tol
        Stop when no more than this is to be gained.
    max_evaluations
        Of the expensive part.
    bounds
        Lower and upper ends per parameter.
    keep
        Called with x and the value at every improvement: what is left of an interrupted search.
    curvature_at
        x -> the Hessian of the expensive part, or what stands for it; None: updates, from what gradients tell.
    """
    x, B = np.clip(start, *bounds), curvature
    value, gradient = expensive(x)
    known = exact(x)
    total = value + known.value
    history = [{"value": total, "expected": np.inf, "radius": 1.0}]
    if keep is not None and np.isfinite(total):
        keep(x, total)
    radius, expected = 1.0, np.inf
    while np.isfinite(total):
        slope, shape = gradient + known.gradient, B + np.diag(np.maximum(known.curvature, 0.0))
        step, promised, expected = _step(slope, shape, radius, x, bounds)
        history[-1]["expected"] = expected
        if expected <= tol or radius < _NEAREST or len(history) >= max_evaluations:
            break
        there = x + step
        new, new_gradient = expensive(there)
        new_known = exact(there)
        new_total = new + new_known.value
        length = float(np.linalg.norm(step))
        history.append({"value": new_total, "expected": np.inf, "radius": radius})
        if not np.isfinite(new_total):
            radius = 0.25 * length
            continue
        B = updated(B, step, new_gradient - gradient)
        ratio = (total - new_total) / promised
        if ratio < 0.25:
            radius = (0.5 if ratio > -1.0 else 0.25) * min(length, radius)
        elif ratio > 0.75 and length > 0.8 * radius:
            radius = min(2.0 * radius, _FARTHEST)
        if new_total < total:
            x, total, gradient, known = there, new_total, new_gradient, new_known
            if curvature_at is not None:
                B = curvature_at(x)
            if keep is not None:
                keep(x, total)
    converged = bool(np.isfinite(total) and expected <= tol)
    stuck = bool(not converged and (radius < _NEAREST or not np.isfinite(total)))
    return Minimum(x, total, gradient, B, float(expected), converged, stuck, tuple(history))


def _step(
    slope: FloatArray, shape: FloatArray, radius: float, x: FloatArray, bounds: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, float, float]:
    """Return the model's best step within radius and bounds, what it promises, and what the model has in all.

    Parameters on a bound that the slope presses against are held; those that would cross one go as far as it.
    """
    low, high = bounds
    free = ~(((x <= low) & (slope > 0.0)) | ((x >= high) & (slope < 0.0)))
    step = np.zeros(len(x))
    if not free.any():
        return step, 0.0, 0.0
    values, vectors = np.linalg.eigh(shape[np.ix_(free, free)])
    values = np.maximum(values, _FLATTEST)
    along = vectors.T @ slope[free]
    expected = 0.5 * float((along**2 / values).sum())
    step[free] = vectors @ (-along / (values + _damping(along, values, radius)))
    step = np.clip(x + step, low, high) - x
    promised = -float(slope @ step + 0.5 * step @ shape @ step)
    return step, max(promised, 1e-300), expected


def _damping(along: FloatArray, values: FloatArray, radius: float) -> float:
    """Return μ ≥ 0 with ‖(B + μ)⁻¹ slope‖ ≤ radius: Newton's method on 1/‖·‖ (Nocedal and Wright 2006, alg. 4.3)."""
    mu = 0.0
    for _ in range(50):
        parts = along / (values + mu)
        length = float(np.linalg.norm(parts))
        if length <= 1.02 * radius:
            break
        # the squares of the parts alone may leave double precision
        mu += (length / radius - 1.0) / float(((parts / length) ** 2 / (values + mu)).sum())
    return mu


def updated(B: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Update the curvature so that B step = change (BFGS), damped where that would cost positive definiteness."""
    Bs = B @ step
    old = float(step @ Bs)
    if old <= 0.0:
        return B
    new = float(step @ change)
    if new < 0.2 * old:
        share = 0.8 * old / (old - new)
        change = share * change + (1.0 - share) * Bs
        new = float(step @ change)
    return np.asarray(B - np.outer(Bs, Bs) / old + np.outer(change, change) / new)


class Roots:
    r"""Coordinates u in which a positive parameter that the data want to be nil has an ordinary minimum.

    Without priors the likelihood is flat in θ = log p where p → 0, and searches creep there for ever. With
    p = p₀ sinh²u it is even in u, so u = 0 is a stationary point with the curvature of any other; for large u the
    coordinate is the logarithm again, halved.
    """

    def __init__(self, small: FloatArray) -> None:
        self.small = small  # log p₀

    def theta(self, u: Any) -> FloatArray:
        """θ at u."""
        size = np.maximum(np.abs(u), 1e-9)
        # log sinh u = u + log(1 − e^{−2u}) − log 2, also where sinh overflows
        return np.asarray(self.small + 2.0 * (size + np.log(-np.expm1(-2.0 * size)) - np.log(2.0)))

    def of(self, theta: FloatArray) -> FloatArray:
        """Return u ≥ 0 of θ."""
        half = 0.5 * (theta - self.small)
        return np.where(half > 20.0, half + np.log(2.0), np.arcsinh(np.exp(np.minimum(half, 20.0))))

    def slope(self, u: FloatArray) -> FloatArray:
        """Return dθ/du."""
        return np.where(u < 0.0, -2.0, 2.0) / np.tanh(np.maximum(np.abs(u), 1e-9))
