"""Hwang's five functions of two inputs (1994), as Barrio, Romero and Belanche (2010) use them: inputs in [-1, 1]²."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

import bayessel as bs
from benchmarks.peers import Array

#: rows that the widths are fitted on
FEW = 400


class Data(NamedTuple):
    """Inputs, targets with their mean taken off, the same for a test set, and widths fitted by the evidence."""

    X: Array
    t: Array
    X_test: Array
    t_test: Array
    widths: Array

    def design(self, X: Array | None = None) -> Array:
        """One gaussian at every training input."""
        made = bs.RBFDictionary(self.X, self.widths, bias=False).design(self.X if X is None else X)
        return np.asarray(made)


def _simple(x: Array, y: Array) -> Array:
    return 10.391 * ((x - 0.4) * (y - 0.6) + 0.36)


def _radial(x: Array, y: Array) -> Array:
    r2 = (x - 0.5) ** 2 + (y - 0.5) ** 2
    return 24.234 * r2 * (0.75 - r2)


def _harmonic(x: Array, y: Array) -> Array:
    u, v = x - 0.5, y - 0.5
    return 42.659 * (0.1 + u * (0.05 + u**4 - 10 * u**2 * v**2 + 5 * v**4))


def _additive(x: Array, y: Array) -> Array:
    left = np.exp(2 * x - 1) * np.sin(3 * np.pi * (x - 0.6) ** 2)
    return 1.3356 * (1.5 * (1 - x) + left + np.exp(3 * (y - 0.5)) * np.sin(4 * np.pi * (y - 0.9) ** 2))


def _complicated(x: Array, y: Array) -> Array:
    return 1.9 * (1.35 + np.exp(x) * np.sin(13 * (x - 0.6) ** 2) * np.exp(-y) * np.sin(7 * y))


FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "simple": _simple,
    "radial": _radial,
    "harmonic": _harmonic,
    "additive": _additive,
    "complicated": _complicated,
}


@cache
def hwang(name: str, n: int, noise: float = 0.25, n_test: int = 1024) -> Data:
    """Draw a task; its widths are those of all basis functions on the first rows, by the evidence."""
    rng = np.random.default_rng([1994, list(FUNCTIONS).index(name), n])
    x = rng.uniform(0, 1, (n + n_test, 2))
    t = FUNCTIONS[name](x[:, 0], x[:, 1])
    seen = t[:n] + noise * rng.normal(size=n)
    mean, X = seen.mean(), 2.0 * x - 1.0
    some = slice(0, min(n, FEW))
    widths = bs.linear.fit_abf(X[some], seen[some], n_starts=1).widths
    return Data(X[:n], seen - mean, X[n:], t[n:] - mean, widths)
