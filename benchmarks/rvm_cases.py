"""Data for the relevance vector machine's benchmarks. NumPy and SciPy alone: it runs in peers' interpreters.

Every dictionary is one gaussian exp(-d²/r²) per input and a column of ones, last. Nothing is centred.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

Array = np.ndarray[Any, np.dtype[np.float64]]


class Data(NamedTuple):
    """Inputs (N, D), targets (N,), the width r of the gaussians, and where these are."""

    X: Array
    t: Array
    width: float
    centers: Array

    def design(self, columns: Any = None) -> Array:
        """Return the (N, P) design matrix, or some of its columns: no temporaries of its size."""
        chosen = np.arange(len(self.centers) + 1) if columns is None else np.asarray(columns)
        kernels = chosen < len(self.centers)
        Phi = np.ones((len(self.X), len(chosen)))
        for start in range(0, len(self.X), 256):
            rows = slice(start, start + 256)
            z = cdist(self.X[rows], self.centers[chosen[kernels]], "sqeuclidean")
            Phi[rows, kernels] = np.exp(-z / self.width**2)
        return Phi


def sinc(n: int, seed: int = 0) -> Data:
    """Return sin(x)/x at n uniform inputs on [-10, 10], noise 0.1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-10.0, 10.0, n)
    return Data(x[:, None], np.sinc(x / np.pi) + 0.1 * rng.standard_normal(n), 2.0, x[:, None])


def friedman(n: int, seed: int = 0) -> Data:
    """Friedman's first function of eight uniform inputs, of which five matter, noise 1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 8))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return Data(X, f + rng.standard_normal(n), 1.5, X)


def chirp(rho: float, seed: int = 0) -> Data:
    """200 equally spaced values of cos(x²) on [-3, 3], uniform noise up to 0.1; rho of exp(-d²/(2 rho²))."""
    x = np.linspace(-3.0, 3.0, 200)[:, None]
    t = np.cos(x[:, 0] ** 2) + np.random.default_rng(seed).uniform(-0.1, 0.1, 200)
    return Data(x, t, float(2**0.5 * rho), x)


def problem(name: str) -> Data:
    """Data by name: 'sinc 1000', 'friedman 9000 500' (the first 500 centres), 'chirp -0.8 3' (log10 of rho, seed).

    Another seed than 0 follows the kind: 'sinc@7 1000'.
    """
    kind, size, *more = name.split()
    kind, _, seed = kind.partition("@")
    if kind == "chirp":
        return chirp(10 ** float(size), int(more[0]))
    data = {"sinc": sinc, "friedman": friedman}[kind](int(size), int(seed or 0))
    return data._replace(centers=data.centers[: int(more[0])]) if more else data
