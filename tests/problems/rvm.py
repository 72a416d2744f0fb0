"""Problems for the relevance vector machine, of every awkward kind; small, so that sixty digits are affordable.

Each is a name, a design, a target and the statuses of which at least one must be among the notes (empty: any answer of
`USUAL` will do).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from tests.oracles import linear as oracles
from tests.problems import linear as problems

Array = NDArray[np.float64]

USUAL = {"CONVERGED", "MULTIPLE_OPTIMA", "COLLINEAR_SKIPPED", "PURE_NOISE", "ILL_CONDITIONED", "FEW_WELL_DETERMINED"}
FLOOR = {"NOISE_AT_FLOOR", "ILL_CONDITIONED"}
UNTELLING = {"TOO_FEW_ROWS", "CONSTANT_TARGET", "NOISE_AT_FLOOR", "PURE_NOISE"}


class Problem(NamedTuple):
    """What the engine is given, and what it must say about it."""

    name: str
    Phi: Any
    t: Array
    expects: frozenset[str] = frozenset()

    @property
    def dense(self) -> Array:
        """The columns as an array of doubles."""
        if hasattr(self.Phi, "columns") and not hasattr(self.Phi, "iloc"):
            return np.asarray(self.Phi.columns(np.arange(self.Phi.shape[1])), dtype=float)
        return np.asarray(self.Phi, dtype=float)


class OnTheFly:
    """A dictionary that is never stored: columns are made when asked for, and counted."""

    def __init__(self, Phi: Array) -> None:
        self._Phi = np.asarray(Phi, dtype=float)
        self.shape = self._Phi.shape
        self.asked = 0

    def columns(self, indices: Any) -> Array:
        indices = np.asarray(indices)
        self.asked += len(indices)
        return self._Phi[:, indices].copy()


def sparse_signal(rng: Generator, Phi: Array, k: int = 3, noise: float = 0.2) -> Array:
    """A few columns with weights of size one to three, and noise in units of the signal's spread."""
    k = min(k, Phi.shape[1])
    chosen = rng.choice(Phi.shape[1], k, replace=False)
    signal = Phi[:, chosen] @ (rng.choice([-1, 1], k) * rng.uniform(1, 3, k))
    scale = np.std(signal) if len(signal) > 1 and np.std(signal) > 0 else 1.0
    return np.asarray(signal + noise * scale * rng.normal(size=len(Phi)))


def kernels(rng: Generator, n: int, width: float, bias: bool = True) -> tuple[Array, Array]:
    """Sorted inputs on [0, 1], Gaussians at all of them and a bias: condition 1e16 and beyond from width 1 on."""
    x = np.sort(rng.uniform(0, 1, n))
    H = oracles.radial("gaussian", x[:, None], x[:, None], width)
    return x, np.column_stack([H, np.ones(n)]) if bias else H


def _normal(rng: Generator, n: int, p: int) -> tuple[Array, Array]:
    Phi = rng.normal(size=(n, p))
    return Phi, sparse_signal(rng, Phi)


def _curve(rng: Generator, n: int, width: float, noise: float) -> tuple[Array, Array]:
    x, H = kernels(rng, n, width)
    return H, np.sin(7 * x) + noise * rng.normal(size=n)


SHAPES = [(30, 8), (25, 25), (12, 40), (40, 60), (8, 3), (30, 2), (5, 30), (3, 4), (60, 10), (20, 100)]
WIDTHS = [0.02, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0]


def _edits() -> dict[str, tuple[Callable[[Generator, Array, Array], tuple[Any, Array]], set[str]]]:
    """Changes made to a plain problem of 30 rows and 12 columns, the last one a bias."""

    def on(columns: dict[int, Callable[[Array, Generator], Array]]) -> Callable[..., tuple[Array, Array]]:
        def change(rng: Generator, Phi: Array, t: Array) -> tuple[Array, Array]:
            Phi = Phi.copy()
            for j, make in columns.items():
                Phi[:, j] = make(Phi, rng)
            return Phi, t

        return change

    wild = 10.0 ** np.linspace(-6, 6, 12)
    return {
        "duplicate columns": (on({1: lambda P, r: P[:, 0], 5: lambda P, r: P[:, 0], 7: lambda P, r: -P[:, 3]}), set()),
        "all columns equal": (lambda r, P, t: (np.repeat(P[:, :1], 12, axis=1), t), set()),
        "columns equal to 1e-8": (on({1: lambda P, r: P[:, 0] + 1e-8 * r.normal(size=30)}), set()),
        "columns equal to 1e-12": (on({1: lambda P, r: P[:, 0] + 1e-12 * r.normal(size=30)}), set()),
        "columns equal to 1e-15": (on({1: lambda P, r: P[:, 0] * (1 + 1e-15)}), set()),
        "a sum of others": (on({4: lambda P, r: P[:, :4].sum(axis=1)}), set()),
        "duplicate rows": (lambda r, P, t: (np.repeat(P[:10], 3, axis=0), t), set()),
        "duplicate rows and targets": (lambda r, P, t: (np.repeat(P[:10], 3, axis=0), np.repeat(t[:10], 3)), set()),
        "zero column": (on({0: lambda P, r: np.zeros(30)}), set()),
        "only zero columns": (lambda r, P, t: (np.zeros((30, 3)), t), {"PURE_NOISE"}),
        "constant columns": (on({0: lambda P, r: np.full(30, 5.0)}), set()),
        "only constants": (lambda r, P, t: (np.ones((30, 4)), t), set()),
        "noise-free": (lambda r, P, t: (P, P[:, [0, 3]] @ [2.0, -1.0]), FLOOR),
        "noise-free, one column": (lambda r, P, t: (P, 3 * P[:, 2]), FLOOR),
        "noise-free, more columns": (lambda r, P, t: (P[:8], P[:8] @ np.ones(12)), FLOOR),
        "pure noise": (lambda r, P, t: (P, r.normal(size=30)), set()),
        "constant target": (lambda r, P, t: (P, np.full(30, 4.0)), {"CONSTANT_TARGET"}),
        "constant target, no bias": (lambda r, P, t: (P[:, :-1], np.full(30, 4.0)), {"CONSTANT_TARGET"}),
        "zero target": (lambda r, P, t: (P, np.zeros(30)), {"CONSTANT_TARGET"}),
        "binary target": (lambda r, P, t: (P, (t > 0) * 1.0), set()),
        "offset 1e6": (lambda r, P, t: (P, t + 1e6), set()),
        "offset -1e6, small noise": (lambda r, P, t: (P, 0.01 * t - 1e6), set()),
        "offset 1e6, no bias": (lambda r, P, t: (P[:, :-1], t + 1e6), set()),
        "target times 1e-6": (lambda r, P, t: (P, 1e-6 * t), set()),
        "target times 1e6": (lambda r, P, t: (P, 1e6 * t), set()),
        "target times 1e-30": (lambda r, P, t: (P, 1e-30 * t), set()),
        "target times 1e30": (lambda r, P, t: (P, 1e30 * t), set()),
        "columns times 1e-6": (lambda r, P, t: (1e-6 * P, t), set()),
        "columns times 1e6": (lambda r, P, t: (1e6 * P, t), set()),
        "columns of all sizes": (lambda r, P, t: (P * wild, t), set()),
        "outlier": (lambda r, P, t: (P, t + 1e4 * (np.arange(30) == 7)), set()),
        "spike column": (on({0: lambda P, r: 1.0 * (np.arange(30) == 7)}), set()),
        "columns with offsets": (lambda r, P, t: (P + 1e5, t), set()),
        "float32": (lambda r, P, t: (P.astype(np.float32), t), set()),
        "float32 target": (lambda r, P, t: (P, t.astype(np.float32)), set()),
        "Fortran order": (lambda r, P, t: (np.asfortranarray(P), t), set()),
        "strided": (lambda r, P, t: (np.repeat(np.repeat(P, 2, 0), 3, 1)[::2, ::3], np.repeat(t, 2)[::2]), set()),
        "reversed views": (lambda r, P, t: (P[::-1, ::-1], t[::-1]), set()),
        "integers": (lambda r, P, t: (r.integers(-3, 4, (30, 12)), t), set()),
        "integer target": (lambda r, P, t: (P, np.round(3 * t).astype(int)), set()),
        "booleans": (lambda r, P, t: (P > 0, t), set()),
        "lists": (lambda r, P, t: (P.tolist(), t.tolist()), set()),
        "on the fly": (lambda r, P, t: (OnTheFly(P), t), set()),
        "polynomials": (lambda r, P, t: (np.vander(np.linspace(0, 1, 30), 16), t), set()),
        "polynomials, smooth target": (
            lambda r, P, t: (np.vander(np.linspace(0, 1, 30), 16), np.sin(np.linspace(0, 6, 30)) + 0.1 * t),
            set(),
        ),
        "one-hot rows": (lambda r, P, t: (np.eye(5)[r.integers(0, 5, 30)], t), set()),
        "identity": (lambda r, P, t: (np.eye(30), t), set()),
        "identity and bias": (lambda r, P, t: (np.column_stack([np.eye(30), np.ones(30)]), t + 3), set()),
    }


def zoo() -> list[Problem]:
    """About a hundred problems, the same in every run."""
    found = []
    for i, (n, p) in enumerate(SHAPES):
        found.append(Problem(f"normal {n}x{p}", *_normal(default_rng([1, i]), n, p)))
    for i, width in enumerate(WIDTHS):
        found.append(Problem(f"kernels of width {width}", *_curve(default_rng([2, i]), 30, width, 0.1)))
        found.append(Problem(f"kernels of width {width}, little noise", *_curve(default_rng([3, i]), 30, width, 1e-3)))
    for width in (0.1, 1.0, 10.0):
        H, t = _curve(default_rng([4, int(width)]), 30, width, 0.0)
        found.append(Problem(f"kernels of width {width}, noise-free sine", H, t))
        found.append(Problem(f"kernels of width {width}, offset", H, t + 1e6))
        found.append(Problem(f"kernels of width {width}, fewer rows than columns", H[::3], t[::3]))
        found.append(Problem(f"kernels of width {width}, twice", np.hstack([H, H]), t + 0.1 * np.cos(50 * t)))
        found.append(Problem(f"kernels of width {width}, float32", H.astype(np.float32), t + 0.1 * np.cos(50 * t)))
        found.append(Problem(f"kernels of width {width}, on the fly", OnTheFly(H), t + 0.1 * np.cos(50 * t)))
    few = frozenset(UNTELLING)
    for i, p in enumerate((1, 2, 7)):
        rng = default_rng([5, i])
        found.append(Problem(f"one row, {p} columns", rng.normal(size=(1, p)), rng.normal(size=1), few))
        found.append(Problem(f"two rows, {p} columns", rng.normal(size=(2, p)), rng.normal(size=2), few))
        found.append(Problem(f"three rows, {p} columns", rng.normal(size=(3, p)), rng.normal(size=3)))
        Phi = rng.normal(size=(25, 1))
        found.append(Problem(f"one column, weight {p}", Phi, p * Phi[:, 0] + rng.normal(size=25)))
    for i, (name, (change, expects)) in enumerate(_edits().items()):
        rng = default_rng([6, i])
        Phi = np.column_stack([rng.normal(size=(30, 11)), np.ones(30)])
        t = Phi[:, [0, 3]] @ [2.0, -1.0] + 0.3 * rng.normal(size=30)
        found.append(Problem(name, *change(rng, Phi, t), frozenset(expects)))
    for seed in range(15):
        found.append(Problem(f"odd {seed}", *problems.odd_problem(seed)))
    return found


ZOO = zoo()
