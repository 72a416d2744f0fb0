"""Products of hinges: the functions of multivariate adaptive regression splines (Friedman 1991)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayessel._check import FloatArray


class Hinge(NamedTuple):
    """One factor: (x - knot)₊ for sign 1, (knot - x)₊ for -1, x - knot for 0.

    With `lower` < `knot` < `upper` the corner is rounded off by a cubic between them (eq. 34); NaN leaves it.
    """

    variable: int
    knot: float
    sign: int
    lower: float = math.nan
    upper: float = math.nan

    def __call__(self, x: FloatArray) -> FloatArray:
        """Values at one column of inputs."""
        if self.sign == 0:
            return x - self.knot
        if math.isnan(self.lower):
            return np.maximum(self.sign * (x - self.knot), 0.0)
        # seen from the side on which it is zero, both signs are one formula
        side, far = (self.lower, self.upper) if self.sign > 0 else (-self.upper, -self.lower)
        z, knot = self.sign * x, self.sign * self.knot
        width = far - side
        p = (2.0 * far + side - 3.0 * knot) / width**2
        r = (2.0 * knot - far - side) / width**3
        inside = np.clip(z - side, 0.0, width)
        return np.asarray(np.where(z >= far, z - knot, inside**2 * (p + r * inside)))


Function = tuple[Hinge, ...]


def values(functions: Sequence[Function], X: FloatArray) -> FloatArray:
    """Columns (n, M + 1): the constant, then every function."""
    columns = np.ones((len(X), len(functions) + 1), order="F")
    known: dict[Hinge, FloatArray] = {}
    for j, function in enumerate(functions, start=1):
        for hinge in function:
            if hinge not in known:
                known[hinge] = hinge(X[:, hinge.variable])
            columns[:, j] *= known[hinge]
    return columns


def variables(function: Function) -> frozenset[int]:
    """Inputs that a function depends on."""
    return frozenset(hinge.variable for hinge in function)


def rounded_off(functions: Sequence[Function], low: FloatArray, high: FloatArray) -> list[Function]:
    """The same functions with cubic corners (Friedman 1991, section 3.7).

    The corners end half-way to the next knot of the same input, among the functions of the same set of inputs, or
    half-way to the end of the data.
    """
    at: dict[tuple[frozenset[int], int], set[float]] = {}
    for function in functions:
        for hinge in function:
            if hinge.sign:
                at.setdefault((variables(function), hinge.variable), set()).add(hinge.knot)
    made = []
    for function in functions:
        factors = []
        for hinge in function:
            if hinge.sign:
                knots = sorted(at[variables(function), hinge.variable] | {low[hinge.variable], high[hinge.variable]})
                here = knots.index(hinge.knot)
                # a knot at the end of the data has no neighbour there, and its corner stays
                if 0 < here < len(knots) - 1:
                    lower, upper = (0.5 * (hinge.knot + knots[here + k]) for k in (-1, 1))
                    hinge = hinge._replace(lower=lower, upper=upper)
            factors.append(hinge)
        made.append(tuple(factors))
    return made


def written(function: Function, low: FloatArray, scale: FloatArray, names: Sequence[str]) -> str:
    """As a person writes it, knots in units of the data."""
    text = []
    for hinge in function:
        name, knot = names[hinge.variable], low[hinge.variable] + hinge.knot * scale[hinge.variable]
        away = f"{name} - {knot:.4g}" if knot >= 0.0 else f"{name} + {-knot:.4g}"
        text.append({1: f"max(0, {away})", -1: f"max(0, {knot:.4g} - {name})", 0: f"({away})"}[hinge.sign])
    return " * ".join(text)
