"""Problems for the linear core, from the friendly to the barely computable; every generator takes its generator."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from tests.oracles import linear as oracles

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)


class Problem(NamedTuple):
    """A design, a target and precisions; alpha is a number or one per column."""

    name: str
    Phi: Array
    t: Array
    alpha: float | Array
    beta: float

    @property
    def lam(self) -> float | Array:
        """Ridge of the same model: alpha / beta."""
        return self.alpha / self.beta

    @property
    def ratio(self) -> float:
        """Largest beta / alpha: how far the prior is below the noise."""
        return float(np.max(self.beta / np.asarray(self.alpha)))

    @property
    def tolerance(self) -> float:
        """The promise: 1e-8 up to a ratio of 1e16, 10 eps sqrt(ratio) beyond."""
        return 1e-8 if self.ratio <= 1e16 * (1 + 1e-9) else 10 * EPS * np.sqrt(self.ratio)


def gaussian_dictionary(rng: Generator, n: int, m: int, width: float) -> Array:
    """Gaussians of a width up to many times the range of the inputs: condition 1e16 and far beyond."""
    x = np.sort(rng.uniform(0, 1, n))[:, None]
    return oracles.radial("gaussian", x, np.linspace(0, 1, m)[:, None], width)


def _shape_plain(rng: Generator) -> Array:
    n, m = ((5, 12), (8, 8), (14, 6), (9, 1), (2, 1), (2, 2), (2, 6), (1, 1), (1, 4), (16, 15))[rng.integers(10)]
    return rng.normal(size=(n, m))


def _duplicated(rng: Generator) -> Array:
    n, m = ((6, 4), (4, 6), (12, 5))[rng.integers(3)]
    Phi = rng.normal(size=(n, m))
    Phi[:, -1] = Phi[:, 0]
    if m > 4:
        Phi[:, 2] = Phi[:, 1]
    return Phi


def _constant(rng: Generator) -> Array:
    n, m = ((7, 3), (3, 7), (2, 2), (10, 4))[rng.integers(4)]
    Phi = rng.normal(size=(n, m))
    Phi[:, 0] = 1.0
    if m > 3:
        Phi[:, 1] = 0.0
    return Phi


def _wide_gaussians(rng: Generator) -> Array:
    n, m = ((8, 14), (12, 12), (15, 10), (6, 6))[rng.integers(4)]
    return gaussian_dictionary(rng, n, m, float(rng.choice([0.5, 1.0, 3.0, 10.0])))


def _one_far_row(rng: Generator) -> Array:
    """One row is the only one that sees its column: its leverage is almost 1."""
    Phi = rng.normal(size=(9, 4))
    Phi[:, 3] = 1e-9 * rng.normal(size=9)
    Phi[0, 3] = 1.0
    return Phi


FAMILIES = {
    "plain": _shape_plain,
    "duplicate columns": _duplicated,
    "constant columns": _constant,
    "wide gaussians": _wide_gaussians,
    "high leverage": _one_far_row,
}


def hard_problem(seed: int) -> Problem:
    """Problem number ``seed``: the families in turn, precisions over fifteen decades, ratios up to 1e20."""
    rng = default_rng([2026, seed])
    family = list(FAMILIES)[seed % len(FAMILIES)]
    Phi = FAMILIES[family](rng)
    n, m = Phi.shape
    beta = float(10 ** rng.uniform(-3, 12))
    beyond = rng.random() < 0.2
    ratio = float(10 ** (rng.uniform(16, 20) if beyond else rng.uniform(-4, 16)))
    alpha: float | Array = beta / ratio
    if rng.random() < 0.4:
        alpha = beta / ratio * 10 ** rng.uniform(0, 8, m)
    if rng.random() < 0.6:  # a target the model would produce ...
        t = Phi @ (rng.normal(size=m) / np.sqrt(alpha)) + rng.normal(size=n) / np.sqrt(beta)
    else:  # ... or one it would not
        t = rng.normal(size=n) * 10 ** rng.uniform(-3, 3)
    return Problem(f"{seed}: {family} {n}x{m}", Phi, t, alpha, beta)


def odd_problem(seed: int) -> tuple[Array, Array]:
    """Small designs of every unfriendly sort (equal, constant, binary, wildly scaled columns), five sorts of target."""
    rng = default_rng([5, seed])
    n, m = int(rng.integers(1, 25)), int(rng.integers(1, 25))
    Phi = rng.normal(size=(n, m))
    sort = seed % 6
    if sort == 1:
        centers, width = rng.uniform(0, 1, (m, 1)), 10 ** rng.uniform(-2, 2)
        Phi = oracles.radial("gaussian", rng.uniform(0, 1, (n, 1)), centers, width)
    elif sort == 2:
        Phi = np.repeat(Phi[:, :1], m, axis=1)
    elif sort == 3:
        Phi = np.ones((n, m))
    elif sort == 4:
        Phi = Phi * 10 ** rng.uniform(-8, 8, m)
    elif sort == 5:
        Phi = rng.integers(0, 2, (n, m)).astype(float)
    targets = (
        rng.normal(size=n),
        Phi @ rng.normal(size=m),
        Phi @ rng.normal(size=m) + 0.1 * rng.normal(size=n),
        np.full(n, 3.0),
        rng.integers(0, 2, n).astype(float),
    )
    return Phi, targets[seed % 5]


def regression_problem(rng: Generator, n: int, m: int, noise: float = 0.3) -> tuple[Array, Array]:
    """Independent normal columns, weights of size one."""
    Phi = rng.normal(size=(n, m))
    return Phi, Phi @ rng.normal(size=m) + noise * rng.normal(size=n)


def conditioned(rng: Generator, n: int, m: int, condition: float) -> Array:
    """Random design whose singular values fall geometrically from 1 to 1 / condition."""
    k = min(n, m)
    U = np.linalg.qr(rng.normal(size=(n, k)))[0]
    V = np.linalg.qr(rng.normal(size=(m, k)))[0]
    return (U * np.geomspace(1, 1 / condition, k)) @ V.T


def sin12x(seed: int, n: int = 50, noise: float = 0.1) -> tuple[Array, Array, Array]:
    """X, design and target of the tutorial's ridge example: gaussians of width 0.05 at the inputs, no bias."""
    rng = default_rng([12, seed])
    X = rng.uniform(0, 1, n)[:, None]
    return X, oracles.radial("gaussian", X, X, 0.05), np.sin(12 * X[:, 0]) + noise * rng.normal(size=n)


def sum_of_sines(seed: int, n: int = 200, noise: float = 0.1) -> tuple[Array, Array]:
    """Eight inputs of which the first four matter."""
    rng = default_rng([8, seed])
    X = rng.uniform(-1, 1, size=(n, 8))
    return X, np.sin(3 * X[:, :4]).sum(axis=1) + noise * rng.normal(size=n)


def slow_and_fast_wave(seed: int) -> tuple[Array, Array]:
    """A dozen or two points of a slow wave with a fast one on top: a wide and a narrow kernel both explain them."""
    rng = default_rng([77, seed])
    n = int(rng.integers(12, 30))
    X = np.sort(rng.uniform(0, 1, n))[:, None]
    x = X[:, 0]
    slow = rng.uniform(0.5, 2) * np.sin(2 * np.pi * x * rng.uniform(0.3, 1))
    fast = rng.uniform(0.2, 1) * np.sin(2 * np.pi * rng.uniform(4, 8) * x)
    return X, slow + fast + 0.05 * rng.normal(size=n)


def two_scales(rng: Generator, spread: float = 2.0) -> tuple[Array, Array]:
    """A few strong columns that carry a large signal and many weak ones that carry a small one.

    With one alpha for both groups the evidence has one maximum where the strong group alone explains the target and
    the weak one counts as noise, and one where both are fitted.
    """
    strong, weak, rest = 3, int(rng.integers(10, 25)), int(rng.integers(2, 8))
    n = strong + weak + rest
    s = np.concatenate([np.full(strong, 1.0), np.full(weak, 10**-spread)])
    s *= np.exp(0.3 * rng.normal(size=strong + weak))
    level = 10 ** rng.uniform(-1.5, -0.2)
    c = np.concatenate(
        [
            rng.normal(size=strong),
            level * rng.normal(size=weak),
            level * 10 ** rng.uniform(-3, -1) * rng.normal(size=rest),
        ]
    )
    U = np.linalg.qr(rng.normal(size=(n, n)))[0]
    V = np.linalg.qr(rng.normal(size=(strong + weak, strong + weak)))[0]
    return (U[:, : strong + weak] * s) @ V.T, U @ c


def two_maxima_problems(count: int, first: int = 0) -> Iterator[tuple[int, Array, Array, Array, Array]]:
    """Seed, Phi, t, grid, values of problems whose evidence profile on that dense grid has two or more clear maxima."""
    grid = np.geomspace(1e-11, 1e4, 500)
    seed, found = first, 0
    while found < count:
        Phi, t = two_scales(default_rng([22, seed]))
        values = oracles.profile(Phi, t, grid)
        if clear_optima(values, +1, 0.05):
            yield seed, Phi, t, grid, values
            found += 1
        seed += 1


def clear_optima(values: Array, sign: int, depth: float) -> bool:
    """At least two interior optima with a barrier of ``depth`` or more between neighbours."""
    at = oracles.local_optima(values, sign)
    v = sign * np.asarray(values)
    return len(at) >= 2 and all(min(v[a], v[b]) - v[a:b].min() >= depth for a, b in pairwise(at))
