"""Small numerical tools without statistics: optima of a curve, products with twice the digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock, local
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from threadpoolctl import ThreadpoolController

from bayessel._check import FloatArray

#: arrays with fewer entries are worked on by one BLAS thread
SINGLE_THREAD_BELOW = 2_000_000


class _SharedLimit:
    """One BLAS thread while anybody asks for it, from any Python thread.

    What was there before is noted by the first to enter and given back by everyone who leaves: some builds keep the
    number per calling thread and some for the process, and either way no thread must end up with one for good.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before: list[int] = []
        self._mine = local()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Limit for the duration of a with-block; blocks may nest, and those of several Python threads overlap."""
        if getattr(self._mine, "holds", False):
            yield
            return
        self._mine.holds = True
        with self._lock:
            if self._inside == 0:
                self._before = [library.num_threads for library in _blas()]
            self._inside += 1
            self._set([1] * len(_blas()))
        try:
            yield
        finally:
            self._mine.holds = False
            with self._lock:
                self._inside -= 1
                self._set(self._before)

    def _set(self, numbers: list[int]) -> None:
        # to ask and to set takes some microseconds: what had one thread before is left alone
        for library, number, before in zip(_blas(), numbers, self._before, strict=True):
            if before != 1:
                library.set_num_threads(number)


_SHARED_LIMIT = _SharedLimit()


@cache
def _blas() -> list[Any]:
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def few_threads(entries: int) -> AbstractContextManager[None]:
    """One BLAS thread while small arrays are worked on; all of them for large ones.

    NumPy and SciPy bring a BLAS each, with its own threads that wait by spinning. On small arrays they gain little,
    and where another process wants the same cores they wait a hundred times longer than they work.
    """
    return _SHARED_LIMIT.hold() if entries < SINGLE_THREAD_BELOW else nullcontext()


def few_threads_of_cholesky(n: int) -> AbstractContextManager[None]:
    """BLAS threads for factors of n x n matrices, again and again: one up to 4000 rows.

    Below, two threads save little of the clock and cost up to half as much again of processor.
    """
    return few_threads(n * n // 8)


def local_minima(
    f: Callable[[FloatArray], FloatArray], grid: FloatArray, xtol: float = 1e-9
) -> list[tuple[float, float]]:
    """All local minima of a curve on a grid, refined between their neighbours; best first, as (x, f(x)).

    The grid must be finer than the features of the curve. A minimum at an end of the grid counts; a plateau counts
    once, at its left end. Differences below rounding (1e-12 relative) do not make a minimum.
    """
    values = np.asarray(f(grid))
    finite = np.isfinite(values)
    if not finite.any():
        return []
    values = np.where(finite, values, np.inf)
    # runs of equal value (to rounding) are one point
    found: list[tuple[float, float]] = []
    start = 0
    n = len(grid)
    while start < n:
        stop = start
        while stop + 1 < n and (
            values[stop + 1] == values[start] or abs(values[stop + 1] - values[start]) <= 1e-12 * abs(values[start])
        ):
            stop += 1
        left = values[start - 1] if start > 0 else np.inf
        right = values[stop + 1] if stop + 1 < n else np.inf
        if np.isfinite(values[start]) and left > values[start] and right > values[stop]:
            found.append(_refine(f, grid, values, start, stop, xtol))
        start = stop + 1
    return sorted(found, key=lambda pair: pair[1])


def _refine(
    f: Callable[[FloatArray], FloatArray], grid: FloatArray, values: FloatArray, start: int, stop: int, xtol: float
) -> tuple[float, float]:
    best = (float(grid[start]), float(values[start]))
    if stop - start > 1 or start == 0 or stop == len(grid) - 1:
        return best  # a plateau or an end: nothing to refine
    bounds = (float(grid[start - 1]), float(grid[stop + 1]))
    result = minimize_scalar(
        lambda x: float(f(np.array([x]))[0]), bounds=bounds, method="bounded", options={"xatol": xtol}
    )
    return (float(result.x), float(result.fun)) if result.fun < best[1] else best


def accurate_residual(C: FloatArray, A: FloatArray, B: FloatArray, less: FloatArray | float = 0.0) -> FloatArray:
    """C - less - A B with about twice the working digits, at the speed of a few matrix products.

    Rows of A and columns of B are cut into slices of so few bits that every product of slices is exact (Ozaki, Ogita,
    Oishi and Rump 2012); only the final sum rounds, once, after the leading parts have cancelled against C.
    """
    k = max(A.shape[1], 2)
    bits = int((53 - np.ceil(np.log2(k))) // 2) - 1
    count = int(np.ceil(70 / bits))  # slices beyond the 70th bit do not matter
    left, right = _slices(A, bits, count, axis=1), _slices(B, bits, count, axis=0)
    total, error = _two_sum(np.array(C, dtype=np.float64), -np.broadcast_to(less, C.shape))
    for order in range(len(left) + len(right) - 1):
        for i in range(len(left)):
            j = order - i
            if 0 <= j < len(right) and order < count:
                total, rounded = _two_sum(total, -(left[i] @ right[j]))
                error += rounded
    return np.asarray(total + error)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a + b and what its rounding lost, exactly (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _slices(A: FloatArray, bits: int, count: int, axis: int) -> list[FloatArray]:
    """Cut A into leading slices of `bits` bits relative to its largest entry along `axis`."""
    parts = []
    rest = np.array(A, dtype=np.float64)
    for _ in range(count):
        largest = np.abs(rest).max(axis=axis, keepdims=True)
        if not largest.any():
            break
        exponent = np.ceil(np.log2(np.where(largest > 0, largest, 1.0)))
        sigma = np.exp2(exponent + 53 - bits)
        top = np.where(largest > 0, (rest + sigma) - sigma, 0.0)
        parts.append(top)
        rest = rest - top
    return parts or [np.zeros_like(A)]


def rank_one_update(R: FloatArray, x: FloatArray, sign: float = 1.0, keep: float = 0.0) -> FloatArray:
    r"""Upper triangular R' with :math:`R'^TR' = R^TR + \mathrm{sign}\, xx^T`, in O(M^2) without loops.

    With :math:`p = R^{-T}x` and :math:`c_j = 1 + \mathrm{sign}\sum_{k<j}p_k^2`, the factor of :math:`I \pm pp^T` is
    known in closed form (Gill, Golub, Murray and Saunders 1974, method C); its product with R is a suffix sum.
    A removal that would leave less than `keep` of a pivot raises ``ArithmeticError``.
    """
    from scipy.linalg import solve_triangular

    if np.abs(np.diag(R)).min() == 0.0:
        raise ArithmeticError("the factor is singular")
    p = solve_triangular(R, x, trans="T", check_finite=False)
    c = 1.0 + sign * np.concatenate([[0.0], np.cumsum(p * p)])
    if not np.isfinite(c).all() or c[-1] <= keep:
        raise ArithmeticError("removing this row leaves a matrix that is not positive definite")
    # row j of R': d_j R_j + sign p_j / sqrt(c_j c_{j+1}) sum_{k>j} p_k R_k,  d_j = sqrt(c_{j+1}/c_j)
    weighted = p[:, None] * R
    suffix = np.zeros_like(R)
    suffix[:-1] = np.cumsum(weighted[:0:-1], axis=0)[::-1]
    scale = np.sqrt(c[:-1] * c[1:])
    return np.asarray(np.sqrt(c[1:] / c[:-1])[:, None] * R + (sign * p / scale)[:, None] * suffix)
