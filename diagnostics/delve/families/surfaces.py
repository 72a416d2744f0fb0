"""Functions with a formula: Hwang's five of two inputs, and Friedman's three.

Hwang, Lay, Maechler, Martin and Schimert (1994): inputs uniform on [0, 1]²; all have standard deviation 1 over the
square and are not negative. Friedman (1991), § 4: ten inputs of which five matter; the impedance and the phase of an
alternating-current circuit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayessel._check import FloatArray
from bayessel.diagnostics.delve.families.source import Source

#: standard deviation of the noise of Hwang's tasks, of functions that have 1
HWANG_NOISE = 0.25


def _simple(x: FloatArray, y: FloatArray) -> FloatArray:
    return 10.391 * ((x - 0.4) * (y - 0.6) + 0.36)


def _radial(x: FloatArray, y: FloatArray) -> FloatArray:
    r2 = (x - 0.5) ** 2 + (y - 0.5) ** 2
    return np.asarray(24.234 * r2 * (0.75 - r2))


def _harmonic(x: FloatArray, y: FloatArray) -> FloatArray:
    u, v = x - 0.5, y - 0.5
    return np.asarray(42.659 * (0.1 + u * (0.05 + u**4 - 10 * u**2 * v**2 + 5 * v**4)))


def _additive(x: FloatArray, y: FloatArray) -> FloatArray:
    left = np.exp(2 * x - 1) * np.sin(3 * np.pi * (x - 0.6) ** 2)
    return np.asarray(1.3356 * (1.5 * (1 - x) + left + np.exp(3 * (y - 0.5)) * np.sin(4 * np.pi * (y - 0.9) ** 2)))


def _complicated(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(1.9 * (1.35 + np.exp(x) * np.sin(13 * (x - 0.6) ** 2) * np.exp(-y) * np.sin(7 * y)))


#: by the names that Hwang and others give them
HWANG: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "simple": _simple,
    "radial": _radial,
    "harmonic": _harmonic,
    "additive": _additive,
    "complicated": _complicated,
}


def _five_of_ten(X: FloatArray) -> FloatArray:
    return np.asarray(10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4])


def _reactance(X: FloatArray) -> FloatArray:
    return np.asarray(X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3]))


def _impedance(X: FloatArray) -> FloatArray:
    return np.hypot(X[:, 0], _reactance(X))


def _phase(X: FloatArray) -> FloatArray:
    return np.arctan(_reactance(X) / X[:, 0])


#: resistance in ohm, angular frequency, inductance, capacity in microfarad turned to farad by the bounds
_CIRCUIT = np.array([[0.0, 40 * np.pi, 0.0, 1.0], [100.0, 560 * np.pi, 1.0, 11.0]])
#: function, bounds of the inputs, standard deviation of the noise
FRIEDMAN = {
    1: (_five_of_ten, np.array([np.zeros(10), np.ones(10)]), 1.0),
    2: (_impedance, _CIRCUIT, 125.0),
    3: (_phase, _CIRCUIT, 0.1),
}


def hwang(name: str, noise: float = HWANG_NOISE) -> Source:
    """One of Hwang's functions."""
    function = HWANG[name]
    return _surface(
        f"hwang-{name}", ("x1", "x2"), lambda X: function(X[:, 0], X[:, 1]), np.array([np.zeros(2), np.ones(2)]), noise
    )


def friedman(number: int) -> Source:
    """One of Friedman's functions."""
    function, bounds, noise = FRIEDMAN[number]
    names = tuple(f"x{i + 1}" for i in range(bounds.shape[1]))
    return _surface(f"friedman-{number}", names, function, bounds, noise)


def _surface(
    name: str, inputs: tuple[str, ...], function: Callable[[FloatArray], FloatArray], bounds: FloatArray, noise: float
) -> Source:
    def draw(n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(bounds[0], bounds[1], (n, bounds.shape[1]))

    def respond(X: FloatArray, rng: np.random.Generator | None) -> FloatArray:
        y = function(X)
        return y if rng is None else y + noise * rng.normal(size=len(y))

    return Source(name, inputs, "y", draw, respond, {"family": name.partition("-")[0], "inputs": len(inputs)})
