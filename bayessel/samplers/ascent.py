"""The way from a bad starting point to where the posterior has its mass.

Far away, where log p is lower by thousands, a trajectory falls so steeply that step sizes tuned there are minute, and a
chain never arrives. Steps of L-BFGS arrive in a few dozens of gradients. They end where some together gain less than a
nat per coordinate, and the chain begins at the first place from which that little was gained, not at the mode: in high
dimensions there is no mass near it, and the mode of a hierarchy, at the end of its funnel, is no place to begin. A
start among the draws stays as it is.

A start as bad as that is arbitrary, and the slope from it may lead to a mode that has no mass. So others around it are
tried, and one of the places arrived at is drawn, with odds of e to 1 for as many nats as half the coordinates: between
places that are alike chance decides, and chains can still differ.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from scipy.optimize import minimize

from bayessel._check import FloatArray
from bayessel.samplers.compiled_density import LogDensity, evaluate

#: steps at most, and those that have to gain something together
MOST_STEPS, STEPS = 200, 5
#: other starting points, and how far away at most
OTHERS, AWAY = 3, 2.0
#: what stands for the loss of a density of nought, in units of the start's
_NOUGHT = 1e3

#: position, log density, gradient
type Place = tuple[FloatArray, float, FloatArray]


def leave(
    position: FloatArray, logp: float, gradient: FloatArray, log_density: LogDensity, rng: np.random.Generator
) -> tuple[Place, int]:
    """Where to begin instead: position, log density and gradient, and gradients taken."""
    size = len(position)
    found, count = ascend(position, logp, gradient, log_density)
    if found[1] == logp:
        return found, count
    places = [found]
    for _ in range(OTHERS):
        q = position + rng.uniform(-AWAY, AWAY, size)
        value, slope = evaluate(log_density, q)
        count += 1
        if isfinite(value) and np.isfinite(slope).all():
            place, more = ascend(q, value, np.array(slope), log_density)
            places.append(place)
            count += more
    odds = np.array([place[1] for place in places]) / max(0.5 * size, 1.0) + rng.gumbel(size=len(places))
    return places[int(np.argmax(odds))], count


def ascend(position: FloatArray, logp: float, gradient: FloatArray, log_density: LogDensity) -> tuple[Place, int]:
    """Position, log density and gradient from where on steps gained too little, and gradients taken."""
    seen: dict[bytes, Place] = {}
    path, count = [(position, logp, gradient)], 0

    def lost(q: FloatArray) -> tuple[float, FloatArray]:
        nonlocal count
        count += 1
        value, slope = evaluate(log_density, q.copy())
        if not (isfinite(value) and np.isfinite(slope).all()):
            return _NOUGHT + abs(logp) * _NOUGHT, np.zeros(len(q))
        seen[q.tobytes()] = q.copy(), value, np.array(slope)
        return -value, -slope

    def told(intermediate_result: Any) -> None:
        place = seen.get(intermediate_result.x.tobytes())
        if place is None:  # a step that overflowed
            raise StopIteration
        path.append(place)
        seen.clear()
        if len(path) > STEPS and path[-1][1] - path[-1 - STEPS][1] < len(position):
            raise StopIteration

    minimize(lost, position, jac=True, method="L-BFGS-B", callback=told, options={"maxiter": MOST_STEPS})
    ends = [place for place in path if path[-1][1] - place[1] < len(position)]
    return ends[0], count
