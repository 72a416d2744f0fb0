"""The log marginal likelihood under the default covariance in compiled loops, for samplers of few rows.

The numbers are those of `Marginal`. There each value costs some fifty calls of NumPy, which on 200 rows take as long as
the Cholesky factor; here one pass over the rows fills Q, one sums up the gradient, and LAPACK is called by its address
in between. Distances are sums of squared differences, so none is expanded.

Importing this module imports numba; `bayessel.models` does so.
"""

from __future__ import annotations

from functools import cache
from typing import Any, override

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from bayessel._check import FloatArray, IntArray
from bayessel._compiled import njit
from bayessel._fast_exp import exp_of_negative
from bayessel.covariance import Covariance
from bayessel.covariance.standard import Standard
from bayessel.fit import Status
from bayessel.gp.marginal import KEEP, LOG_2PI, Marginal

# sums may be reordered, which is what vectors of partial sums do; NaN and infinities stay what they are
OPTIONS: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}, "error_model": "numpy"}
#: rows of a block of the triangle that is inverted
BLOCK = 64


def marginal_of(X: FloatArray, t: FloatArray, covariance: Covariance) -> Marginal:
    """The marginal likelihood of data and covariance, compiled where it can be."""
    compiled = isinstance(covariance, Standard) and len(X) <= KEEP
    return (CompiledMarginal if compiled else Marginal)(X, t, covariance)


class CompiledMarginal(Marginal):
    """`Marginal` of `Standard` on rows so few that their matrices stay in the cache."""

    def __init__(self, X: FloatArray, t: FloatArray, covariance: Covariance | None = None) -> None:
        super().__init__(X, t, covariance)
        self._room: _Room | None = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_room": None}

    @override
    def value(self, theta: npt.ArrayLike) -> float:
        with self._threads():
            return self._evaluate(theta, False)[0]

    @override
    def value_and_gradient(self, theta: npt.ArrayLike) -> tuple[float, FloatArray]:
        with self._threads():
            return self._evaluate(theta, True)

    def _evaluate(self, theta: npt.ArrayLike, both: bool) -> tuple[float, FloatArray]:
        if self._room is None:
            self._room = _Room(self.X, self.covariance)
        known = isinstance(theta, np.ndarray) and theta.shape == (self.size,) and theta.dtype == np.float64
        vector = np.ascontiguousarray(theta if known else self.as_theta(theta))
        gradient = np.zeros(self.size)
        room = self._room
        value = evaluate(vector, room.F, self.t, room.E, room.Q, room.a, gradient, both, routines(), room.calls)
        self.status = Status.CONVERGED if value > -np.inf else Status.ILL_CONDITIONED
        return value, gradient


class _Room:
    """Inputs as rows, centred by nothing: differences are taken; two matrices and a vector to write to."""

    def __init__(self, X: FloatArray, covariance: Any) -> None:
        n = len(X)
        self.F = covariance.inputs(X)
        self.E, self.Q, self.a = np.empty((n, n)), np.empty((n, n)), np.empty(n)
        self.calls = np.zeros(8, dtype=np.int32)


@cache
def routines() -> IntArray:
    """Addresses of what is called of BLAS and LAPACK."""
    named = {"cython_lapack": ("dpotrf", "dtrtri", "dlauum"), "cython_blas": ("dtrmm", "dtrsv")}
    found = [get_cython_function_address(f"scipy.linalg.{place}", one) for place in named for one in named[place]]
    return np.array(found, dtype=np.int64)


@intrinsic
def _fortran(context: Any, address: Any, arguments: Any) -> Any:
    """A Fortran routine at an address, with pointers as whole numbers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = cgutils.unpack_tuple(builder, values[1])
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * len(given))
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), given)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), code


#: as it is called: without the context that the compiler gives
_call: Any = _fortran


@njit(**OPTIONS)
def evaluate(
    theta: FloatArray,
    F: FloatArray,
    t: FloatArray,
    E: FloatArray,
    Q: FloatArray,
    a: FloatArray,
    gradient: FloatArray,
    both: bool,
    routines: IntArray,
    calls: npt.NDArray[np.int32],
) -> float:
    """log p(t|θ), −∞ where Q is not positive definite; with `both` its derivatives too.

    θ = log(v₀, r², w, a₀, a₁), inputs F (m, n). E, Q and a are room; of E and Q the lower triangles are written to.
    """
    m, n = F.shape
    parameters = np.exp(theta)
    for i in range(m + 4):
        if not (np.isfinite(theta[i]) and np.isfinite(parameters[i])):
            return -np.inf
    v0, r2, w, a0, a1 = parameters[0], parameters[1], parameters[2 : m + 2], parameters[m + 2], parameters[m + 3]
    fill(theta[0], w, a0, a1, F, E, Q)
    total = 0.0
    for i in range(n):
        size = 0.0
        for f in range(m):
            size += F[f, i] * F[f, i]
        Q[i, i] = v0 + a0 + a1 * size + r2
        total += Q[i, i]
    if not np.isfinite(total):
        return -np.inf
    letters = np.array([85, 78, 84, 76, 82], dtype=np.uint8)  # U N T L R
    U, N, T = letters.ctypes.data, letters.ctypes.data + 1, letters.ctypes.data + 2
    calls[0], calls[1], calls[2] = n, 1, 0
    size_at, one_at, info_at = calls.ctypes.data, calls.ctypes.data + 4, calls.ctypes.data + 8
    # the lower triangle by rows is the upper one by columns
    _call(routines[0], (U, size_at, Q.ctypes.data, size_at, info_at))
    if calls[2] != 0:
        return -np.inf
    value = -0.5 * n * LOG_2PI
    for i in range(n):
        a[i] = t[i]
        value -= np.log(Q[i, i])
    _call(routines[4], (U, T, N, size_at, Q.ctypes.data, size_at, a.ctypes.data, one_at))
    squares = 0.0
    for i in range(n):
        squares += a[i] * a[i]
    value -= 0.5 * squares
    if both:
        _call(routines[4], (U, N, N, size_at, Q.ctypes.data, size_at, a.ctypes.data, one_at))
        invert(Q, routines, calls, letters)
        gather(w, F, E, Q, a, gradient)
        for f in range(m + 1):
            gradient[f if f == 0 else f + 1] *= -v0
        gradient[1] *= -r2
        gradient[m + 2] *= -a0
        gradient[m + 3] *= -a1
    return value if np.isfinite(value) else -np.inf


@njit(**OPTIONS)
def fill(log_v0: float, w: FloatArray, a0: float, a1: float, F: FloatArray, E: FloatArray, Q: FloatArray) -> None:
    """exp(−½ Σ w_i (x_i − x'_i)²) without v₀ to E, and K to Q, below the diagonal."""
    m, n = F.shape
    v0 = np.exp(log_v0)
    for i in range(n):
        e, q = E[i], Q[i]
        for j in range(i):
            e[j] = 0.0
            q[j] = a0
        for f in range(m):
            x, rate, slope, row = F[f, i], -0.5 * w[f], a1 * F[f, i], F[f]
            for j in range(i):
                d = x - row[j]
                e[j] += rate * (d * d)
                q[j] += slope * row[j]
        for j in range(i):
            here = exp_of_negative(e[j])
            e[j] = here
            q[j] += v0 * here


@njit(**OPTIONS)
def gather(w: FloatArray, F: FloatArray, E: FloatArray, P: FloatArray, a: FloatArray, out: FloatArray) -> None:
    """½ Σ W∘∂Q for v₀, r², log w / v₀, a₀ and a₁, W = P − aaᵀ with P below and on the diagonal; writes to both."""
    m, n = F.shape
    for i in range(n):
        e, p, ai = E[i], P[i], a[i]
        by_v0 = by_a0 = 0.0
        for j in range(i):
            one = p[j] - ai * a[j]
            p[j] = one
            by_a0 += one
            one *= e[j]
            e[j] = one
            by_v0 += one
        here = 0.5 * (p[i] - ai * ai)
        out[0] += by_v0 + here
        out[1] += here
        out[m + 2] += by_a0 + here
        for f in range(m):
            x, row, by_w, by_a1 = F[f, i], F[f], 0.0, 0.0
            for j in range(i):
                d = x - row[j]
                by_w += e[j] * (d * d)
                by_a1 += p[j] * row[j]
            out[2 + f] -= 0.5 * w[f] * by_w
            out[m + 3] += x * (by_a1 + here * x)


@njit(**OPTIONS)
def invert(Q: FloatArray, routines: IntArray, calls: npt.NDArray[np.int32], letters: npt.NDArray[np.uint8]) -> None:
    """(UᵀU)⁻¹ from the upper factor U by columns, in its place: the triangle in blocks, then its square."""
    n = len(Q)
    U, N = letters.ctypes.data, letters.ctypes.data + 1
    left, right = U + 3, U + 4
    at = Q.ctypes.data
    calls[0], calls[2] = n, 0
    size_at, info_at = calls.ctypes.data, calls.ctypes.data + 8
    above_at, width_at = size_at + 12, size_at + 16
    signs = np.array([-1.0, 1.0])
    minus, plus = signs.ctypes.data, signs.ctypes.data + 8
    for begin in range(0, n, BLOCK):
        calls[3], calls[4] = begin, min(BLOCK, n - begin)
        block, over = at + 8 * (begin * n + begin), at + 8 * begin * n
        # [A C; 0 B]⁻¹ = [A⁻¹ −A⁻¹CB⁻¹; 0 B⁻¹]
        if begin > 0:
            _call(routines[3], (left, U, N, N, above_at, width_at, minus, at, size_at, over, size_at))
        _call(routines[1], (U, N, width_at, block, size_at, info_at))
        if begin > 0:
            _call(routines[3], (right, U, N, N, above_at, width_at, plus, block, size_at, over, size_at))
    _call(routines[2], (U, size_at, at, size_at, info_at))
