"""Hwang's five functions of two inputs (1994), as Barrio, Romero and Belanche (2010) use them: inputs in [-1, 1]²."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

import bayessel as bs
from bayessel.diagnostics.delve.families.surfaces import HWANG
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


@cache
def hwang(name: str, n: int, noise: float = 0.25, n_test: int = 1024) -> Data:
    """Draw a task; its widths are those of all basis functions on the first rows, by the evidence."""
    rng = np.random.default_rng([1994, list(HWANG).index(name), n])
    x = rng.uniform(0, 1, (n + n_test, 2))
    t = HWANG[name](x[:, 0], x[:, 1])
    seen = t[:n] + noise * rng.normal(size=n)
    mean, X = seen.mean(), 2.0 * x - 1.0
    some = slice(0, min(n, FEW))
    widths = bs.linear.fit_abf(X[some], seen[some], n_starts=1).widths
    return Data(X[:n], seen - mean, X[n:], t[n:] - mean, widths)
