"""Quadratic forms bᵀA⁻¹b and log |A| for precisions A = Σ_g τ_g G_g, as expressions in the τ that cost what they must.

The G_g are sums over data, known before. Two of them have common eigenvectors: nothing is left to factorise, whatever
the size. Where many coordinates share no row of data, their part of A is diagonal and is eliminated; of the rest a
Cholesky factor is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import shared
from pytensor.gradient import disconnected_grad
from pytensor.graph.basic import Variable
from scipy import linalg

from bayessel._check import FloatArray

#: smallest eigenvalue, of a unit diagonal, at which a matrix of sums is still taken for one of full rank
_FULL = 1e-10
#: a sum of squares below this share of its terms, for each coordinate, is nothing but rounding
_ROUNDING = 1e-14
#: a share of a sum of squares that is left unexplained below this is nothing but rounding
_EXPLAINED = 1e-12
#: sums of squares, times precisions, of which differences have no digit after the point any more
_LARGEST_SQUARES = 1e14


class PrecisionSums(NamedTuple):
    """What solving needs of rows of one precision: AᵀA, Aᵀr and rᵀr."""

    gram: FloatArray
    pull: FloatArray
    squares: float


class Solved(NamedTuple):
    """What integrating out adds to a log density, ½ bᵀA⁻¹b − ½ log |A| − ½ Σ_g τ_g rᵀr, and A⁻¹b + A^{−1/2} z.

    `slope` is an expression with the gradient of `value` and nothing else in common with it.
    """

    value: Variable
    slope: Variable
    draw: Variable


class Loose(NamedTuple):
    """Parts of A and b that are no sums known before; None where there are none."""

    precision: Variable | None = None
    pull: Variable | None = None


class PrecisionForm(Protocol):
    """A way to solve with A."""

    #: multiplications, about
    cost: float

    def take(self, sums: Sequence[PrecisionSums]) -> bool:
        """Take in sums over other data; False where their structure is another."""

    def solve(self, taus: Sequence[Variable], loose: Loose, noise: Variable) -> Solved:
        """Build the expressions."""


def _shared(value: FloatArray | float, name: str) -> Any:
    return shared(np.asarray(value, dtype=float), name=name)


class CommonBasis:
    """One or two G with a common basis: VᵀG₀V = s₀ diag(λ₀), VᵀG₁V = s₁ diag(λ₁), with λ₀ + λ₁ = 1.

    Neither λ is taken from the other: one of 10⁻¹⁷ counts where the precisions differ by as much. Nor is ½ bᵀA⁻¹b,
    where a large precision makes it large, taken from sums of squares that are as large: with a_g = τ_g s_g λ_g, what
    both sums want of a coordinate, z₀ and z₁, costs ½ (z₀ − z₁)² a₀a₁/(a₀ + a₁); squares that no block explains remain.
    """

    def __init__(self, sums: Sequence[PrecisionSums]) -> None:
        size = len(sums[0].pull)
        self.cost = 10.0 * size
        self._basis = _shared(np.empty((0, 0)), "basis")
        self._lam = [_shared(np.empty(0), "lambda") for _ in sums]
        self._scale = [_shared(1.0, "scale") for _ in sums]
        self._pulls = [_shared(np.empty(0), "pull") for _ in sums]
        self._wanted = [_shared(np.empty(0), "wanted") for _ in sums]
        self._unexplained = [_shared(0.0, "unexplained") for _ in sums]
        self._logdet = _shared(0.0, "logdet")
        if not self.take(sums):
            raise np.linalg.LinAlgError("singular")

    def take(self, sums: Sequence[PrecisionSums]) -> bool:
        """Take in other sums; False where they do not determine the block."""
        scales = [float(np.trace(one.gram)) / len(one.pull) for one in sums]
        if len(sums) != len(self._scale) or not all(0.0 < scale < np.inf for scale in scales):
            return False
        parts = [one.gram / scale for one, scale in zip(sums, scales, strict=True)]
        whole = sum(parts)
        size = np.sqrt(np.diag(whole))
        if not np.all(size > 0.0) or np.linalg.eigvalsh(whole / np.outer(size, size))[0] < _FULL:
            return False
        unit = 1.0 / np.outer(size, size)
        basis = linalg.eigh(parts[0] * unit, whole * unit)[1] / size[:, None]
        self._basis.set_value(np.ascontiguousarray(basis))
        for cell, scale in zip(self._scale, scales, strict=True):
            cell.set_value(np.asarray(scale))
        for g, (part, scale, one) in enumerate(zip(parts, scales, sums, strict=True)):
            squares = np.sum(basis * (part @ basis), axis=0)
            terms = np.sum(np.abs(basis) * (np.abs(part) @ np.abs(basis)), axis=0)
            seen = squares > _ROUNDING * len(squares) * terms
            pull = np.where(seen, basis.T @ one.pull, 0.0)
            wanted = pull / np.where(seen, scale * squares, 1.0)
            left = one.squares - float(pull @ wanted)
            self._lam[g].set_value(np.where(seen, squares, 0.0))
            self._pulls[g].set_value(pull)
            self._wanted[g].set_value(wanted)
            self._unexplained[g].set_value(np.asarray(left if left > _EXPLAINED * one.squares else 0.0))
        self._logdet.set_value(np.asarray(-2.0 * np.linalg.slogdet(basis)[1]))
        return True

    def solve(self, taus: Sequence[Variable], loose: Loose, noise: Variable) -> Solved:
        """Build the expressions; there is nothing loose."""
        spread = sum(tau * scale * lam for tau, scale, lam in zip(taus, self._scale, self._lam, strict=True))
        pull = sum(tau * one for tau, one in zip(taus, self._pulls, strict=True))
        value = -0.5 * pt.sum(pt.log(spread)) - 0.5 * self._logdet
        value = value - 0.5 * sum(tau * one for tau, one in zip(taus, self._unexplained, strict=True))
        if len(taus) == 2:
            (first, second), (wish, other) = (
                [tau * scale * lam for tau, scale, lam in zip(taus, self._scale, self._lam, strict=True)],
                self._wanted,
            )
            value = value - 0.5 * pt.sum((wish - other) ** 2 * first * (second / spread))
        return Solved(value, value, _times(self._basis, pull / spread + noise / pt.sqrt(spread)))


class Partition:
    """Any number of G: coordinates `out` without a row in common are eliminated, the others factorised."""

    def __init__(self, sums: Sequence[PrecisionSums], size: int, loose: bool) -> None:
        pattern = sum((np.abs(one.gram) for one in sums), np.zeros((size, size))) != 0.0
        out = np.zeros(size, dtype=bool) if loose else _uncoupled(pattern)
        if out.sum() < 2:
            out[:] = False
        self.out, self.rest = np.flatnonzero(out), np.flatnonzero(~out)
        k = len(self.rest)
        self.cost = 3.0 * len(self.out) * (k + 1.0) ** 2 + 2.0 * k**3
        self._parts = [[_shared(np.empty((0,) * ndim), "part") for ndim in (1, 2, 2, 1, 0)] for _ in sums]
        if not self.take(sums):
            raise np.linalg.LinAlgError("coupled")

    def take(self, sums: Sequence[PrecisionSums]) -> bool:
        """Take in other sums; False where coordinates are coupled that were not, or their number is another."""
        out, rest = self.out, self.rest
        if len(sums) != len(self._parts) or any(len(one.pull) != len(out) + len(rest) for one in sums):
            return False
        if any(np.any(one.gram[np.ix_(out, out)] != np.diag(one.gram[out, out])) for one in sums):
            return False
        for cell, one in zip(self._parts, sums, strict=True):
            G = one.gram
            values = (G[out, out], G[np.ix_(out, rest)], G[np.ix_(rest, rest)], one.pull, np.asarray(one.squares))
            for place, value in zip(cell, values, strict=True):
                place.set_value(np.array(value, dtype=float, order="C"))
        return True

    def solve(self, taus: Sequence[Variable], loose: Loose, noise: Variable) -> Solved:
        """Build the expressions."""
        summed: list[Any] = [
            sum((tau * parts[i] for tau, parts in zip(taus, self._parts, strict=True)), pt.constant(0.0))
            for i in range(5)
        ]
        diagonal, border, corner, pull, squares = summed
        normals: Any = noise
        if loose.precision is not None and loose.pull is not None:
            corner, pull = corner + loose.precision, pull + loose.pull
        if not len(self.out):
            return _less(_factorised(corner, pull, noise), squares)
        eliminated, left = pull[self.out], pull[self.rest]
        value = 0.5 * pt.sum(eliminated * eliminated / diagonal - pt.log(diagonal))
        own = eliminated / diagonal + normals[: len(self.out)] / pt.sqrt(diagonal)
        if not len(self.rest):
            return _less(Solved(value, value, own), squares)
        share = border / diagonal[:, None]
        schur, right = corner - product(border, share), left - _times(share.T, eliminated)
        rest = _factorised(schur, right, normals[len(self.out) :])
        draw = pt.concatenate([own - _times(share, rest.draw), rest.draw])
        order = np.argsort(np.concatenate([self.out, self.rest]))
        return _less(Solved(value + rest.value, value + rest.slope, draw[order]), squares)


def _less(solved: Solved, squares: Any) -> Solved:
    """With the sums of squares, times their precisions, taken away.

    Where a precision is so large that their difference is nothing but rounding, as of a standard deviation of a
    millionth of the residuals, there is no density.
    """
    value = pt.switch(squares < _LARGEST_SQUARES, solved.value - 0.5 * squares, -np.inf)
    return Solved(value, solved.slope - 0.5 * squares, solved.draw)


def _factorised(A: Any, b: Any, noise: Variable) -> Solved:
    """By a Cholesky factor, NaN where A is not positive definite; through which nothing is differentiated.

    With m = A⁻¹b and C = A⁻¹ held fast, mᵀb − ½ mᵀAm − ½ tr CA has the gradient of ½ bᵀA⁻¹b − ½ log |A|.
    """
    factor = pt.linalg.cholesky(A, lower=True, on_error="nan")
    half = pt.linalg.solve_triangular(factor, b, lower=True, b_ndim=1, check_finite=False)
    inverse = disconnected_grad(pt.linalg.cho_solve((factor, True), pt.eye(A.shape[0]), b_ndim=2, check_finite=False))
    mean = disconnected_grad(_times(inverse, b))
    slope = pt.sum(mean * b) - 0.5 * pt.sum((mean[:, None] * mean[None, :] + inverse) * A)
    draw = pt.linalg.solve_triangular(factor.T, half + noise, lower=False, b_ndim=1, check_finite=False)
    return Solved(pt.sum(0.5 * half * half) - pt.sum(pt.log(pt.diagonal(factor))), slope, draw)


def _times(matrix: Any, vector: Any) -> Any:
    """A matrix times a vector, as a loop that is compiled in no time; BLAS is no faster for so few."""
    return pt.sum(matrix * vector[None, :], axis=1)


def product(left: Variable, right: Variable) -> Variable:
    """The transpose of a matrix times another, of few columns both."""
    first: Any = left
    second: Any = right
    return pt.sum(first[:, :, None] * second[:, None, :], axis=0)


def _uncoupled(pattern: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Many coordinates of which no two are coupled, those with fewest neighbours first."""
    out = np.zeros(len(pattern), dtype=bool)
    blocked = np.zeros_like(out)
    for j in np.argsort(pattern.sum(axis=1), kind="stable"):
        if not blocked[j]:
            out[j] = True
            blocked |= pattern[j]
    return out
