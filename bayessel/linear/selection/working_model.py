r"""The model a search works on: an orthonormal basis of its span, and every candidate's coordinates in it.

:math:`B = Q^TF` costs one pass over the dictionary per function added, none per function removed, and none for most
that come back (see `bayessel.linear.columns.removed_directions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
from scipy.linalg.lapack import dgesdd

from bayessel._check import FloatArray, IntArray
from bayessel._row_weights import RowWeights, counted, deviation
from bayessel.linear.columns.centring import FAR, centred, constant
from bayessel.linear.columns.dictionary import READ, Columns
from bayessel.linear.columns.orthonormal import OrthonormalBasis
from bayessel.linear.columns.remainders import CandidateRemainders
from bayessel.linear.columns.removed_directions import RemovedDirections
from bayessel.linear.selection.precisions import SingularModel

_EPS = float(np.finfo(float).eps)
#: share of its length below which a function counts as inside the span of the model: rounding
COLLINEAR = 64.0 * _EPS


@dataclass(frozen=True, eq=False)
class ModelSnapshot:
    """Everything that changes, copied."""

    active: tuple[int, ...]
    basis: tuple[FloatArray, ...]
    arrays: dict[str, FloatArray]
    numbers: dict[str, float]


class WorkingModel:
    """Columns in use in the order they came, as Q, R and B; columns and target in units of about one.

    Attributes
    ----------
    active : list of int
        Columns in use.
    basis : OrthonormalBasis
        Of the columns in use, with their inner products with all candidates and the target.
    remainders : CandidateRemainders
        Squared length of each candidate outside the span, and its inner product with the target there.
    usable : (P,) array of bool
        Candidates that may be added.
    outside_bias : (P,) array
        Squared length of each candidate, without its mean where there is a bias.
    n_counted : float
        Rows that the noise counts: their number, or the sum of their weights.
    """

    means: FloatArray
    remainders: CandidateRemainders
    length2: FloatArray
    unit: float

    def __init__(self, columns: Columns, t: FloatArray, centre: bool, weights: RowWeights | None = None) -> None:
        self.columns, self._given, self._weights = columns.multiplied(weights), columns, weights
        self.n_rows, self.n_columns = columns.shape
        self.n_counted = counted(t, weights)
        # the bias as a column: the multipliers of the rows
        self._ones = np.ones(self.n_rows) if weights is None else weights.root
        self._squares = float(self._ones @ self._ones)
        t = t if weights is None else weights.scale(t)
        self.t_unit = float(np.linalg.norm(t)) / np.sqrt(len(t)) or 1.0
        self.centre = centre
        self.residual = self._centred(t / self.t_unit)
        self.t_mean = float(np.mean(t / self.t_unit) if weights is None else weights.along(t / self.t_unit))
        self.spread2 = float(self.residual @ self.residual) if centre else None
        if centre and weights is not None:  # what the density of the bias is measured by
            self.spread2 = (deviation(t / weights.root, weights) / self.t_unit) ** 2 * self._squares
        self.beta_max = min((4.0 * _EPS * float(np.abs(t).max() or 1.0) / self.t_unit) ** -2.0, 1e300)
        self.rss = self.rss_then = float(self.residual @ self.residual)
        self.active: list[int] = []
        self.basis = OrthonormalBasis(self.n_rows, self.n_columns)
        self.removed = RemovedDirections(self.n_rows, self.n_columns)
        self.passes = 0
        self._first_pass()
        if centre and self._far_off():
            means = self.means * self.unit
            share = None if weights is None else self._ones**2 / self._squares
            self.columns = centred(columns, means, COLLINEAR, share).multiplied(weights)
            self._first_pass()
            self.means = means / self.unit
        self.remainders.reference = self.length2.copy()
        self.outside_bias = self.perp2.copy()
        self.usable = self.perp2 > COLLINEAR**2 * self.length2
        self.blank = self.columns.lengths == 0.0
        self.skipped = not bool(self.usable.all())

    def _first_pass(self) -> None:
        """Lengths, means, and products with the target."""
        lengths = self.columns.lengths
        self.unit = float(lengths.max()) or 1.0
        self.length2 = (lengths / self.unit) ** 2
        self.passes += 1
        both = np.stack([self.residual, self._ones]) if self.centre else self.residual[None]
        inner = self.project(both)
        self.means = inner[1] / self._squares if self.centre else np.zeros(self.n_columns)
        outside = np.maximum(self.length2 - self._squares * self.means**2, 0.0)
        self.remainders = CandidateRemainders(outside, inner[0].copy())

    def _far_off(self) -> bool:
        """Whether means hide spreads; a constant column among the candidates has none."""
        far = np.flatnonzero((self._squares * self.means**2 > FAR * self.perp2) & (self.length2 > 0.0))
        return bool(len(far)) and not bool(constant(self._given, far, COLLINEAR).all())

    # ---- what is there

    @property
    def size(self) -> int:
        """Functions in use."""
        return self.basis.size

    @property
    def Qt(self) -> FloatArray:
        """Orthonormal rows that span the functions in use."""
        return self.basis.rows

    @property
    def B(self) -> FloatArray:
        """Q^T F."""
        return self.basis.products

    @property
    def R(self) -> FloatArray:
        """Upper triangular, Phi = Q R."""
        return self.basis.R

    @property
    def z(self) -> FloatArray:
        """Q^T t."""
        return self.basis.coordinates

    @property
    def perp2(self) -> FloatArray:
        """Squared length of each candidate outside the span."""
        return self.remainders.squares

    @property
    def perpt(self) -> FloatArray:
        """Inner product of each candidate with the target outside the span."""
        return self.remainders.inner

    @property
    def most(self) -> int:
        """Functions that leave a row to the noise."""
        return int(min(self.n_rows, self.n_counted - 1) - self.centre)

    @property
    def room(self) -> bool:
        """Whether one more function would leave a row to the noise."""
        return self.size < self.most

    @property
    def worth_searching(self) -> bool:
        """Whether the target varies, and there are candidates and rows to explain it with."""
        floor = self.n_rows / self.beta_max  # what the rounding of the target amounts to
        enough = min(self.n_rows, self.n_counted) - self.centre >= 2
        return bool(self.usable.any() and enough and self.rss > floor)

    def let_go(self) -> None:
        """Free what is as large as the dictionary's sides."""
        self.basis = OrthonormalBasis(0)
        self.removed = RemovedDirections(1, 1)

    def small(self) -> SingularModel:
        """Return the model in the coordinates of its singular vectors."""
        return self.small_of(self.R, self.z, self.rss)

    def small_of(self, R: FloatArray, z: FloatArray, rss: float) -> SingularModel:
        """Return another model of these data, given by its triangle, in the coordinates of its singular vectors."""
        if len(z):
            U, s, Vt, failed = dgesdd(R)
            if failed:  # the divide-and-conquer driver can fail where the slower one does not
                U, s, Vt = sl.svd(R, check_finite=False, lapack_driver="gesvd")
        else:
            U, s, Vt = np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0))
        return SingularModel(s, U.T @ z, max(rss, 0.0), self.n_counted, self.spread2, self.beta_max, U, Vt)

    # ---- looking at the dictionary

    def _centred(self, v: FloatArray) -> FloatArray:
        if not self.centre:
            return v
        if self._weights is not None:
            return self._weights.without_bias(self._weights.without_bias(v))
        v = v - v.mean()
        return np.asarray(v - v.mean())

    def column(self, j: int) -> FloatArray:
        """Return a candidate, in units of the longest, its mean taken off where there is a bias."""
        source = self.columns.made_from  # made anew: what is stored may have been rounded
        index = np.array([j])
        raw = self.columns.raw(index) if source is None else Columns(source).raw(index)
        return self._centred(raw[:, 0] / self.unit)

    def project(self, rows: FloatArray) -> FloatArray:
        """Inner products of every candidate with each of `rows`, (k, P): one pass over the dictionary."""
        self.passes += 1
        return self.columns.inner(rows) / self.unit

    # ---- changes

    def extended(self, j: int) -> tuple[FloatArray, FloatArray, float]:
        """Return q, h and rho of candidate j: its direction outside the span, and Q^T f and the length along q."""
        return self.basis.extended(self.column(j), self._centred if self.centre else None, COLLINEAR)

    def _products(self, j: int, q: FloatArray, rho: float) -> tuple[FloatArray, FloatArray, float]:
        """Direction and length of candidate j outside the span, and the direction's products with all candidates."""
        if not len(self.removed):
            return q, self.project(q[None])[0], rho
        c, rest = self.removed.coordinates(q)
        left = float(np.sqrt(rest @ rest))
        # to its own rounding f lies in what is known: eight times that would show in models of near copies
        if left <= 8.0 * _EPS or left * rho <= _EPS * np.sqrt(self.length2[j]):
            size = float(np.sqrt(c @ c))
            c = c / size
            q, row = c @ self.removed.rows, c @ self.removed.products
            self.removed.take(c)
            return q, row, rho * size
        for _ in range(2):  # where little is left, rounding of q is a large part of it
            rest /= np.sqrt(rest @ rest)
            rest = self._centred(rest - (self.Qt @ rest) @ self.Qt)
            rest -= (self.removed.rows @ rest) @ self.removed.rows
        rest /= np.sqrt(rest @ rest)
        product = self.project(rest[None])[0]
        row = c @ self.removed.products + left * product
        self.removed.take(np.append(c, left), rest, product)
        return q, row, rho

    def add(self, j: int, q: FloatArray, h: FloatArray, rho: float) -> FloatArray:
        """Let candidate j join, extended as `extended` says; returns the new row of B."""
        q, row, rho = self._products(j, q, rho)
        along = float(q @ self.residual)
        self.basis.append(q, h, rho, along, row)
        self.residual -= along * q
        self.rss = float(self.residual @ self.residual)
        self.active.append(j)
        self.usable[j] = False
        self.remainders.absorb(row, along)
        if self.rss < 1e-6 * self.rss_then:  # the difference has lost as many digits as the residual has become smaller
            left = self.Qt @ self.residual  # rounding of the target's larger parts
            self.z[:] += left
            self.residual -= left @ self.Qt
            self.rss = self.rss_then = float(self.residual @ self.residual)
            self.remainders.inner = self.project(self.residual[None])[0]
        return np.asarray(row)

    def remove(self, position: int, turned: tuple[FloatArray, FloatArray] | None = None) -> None:
        """Let the function at `position` leave: rotate, and give what the last direction held back to the outside."""
        q, row, along = self.basis.remove(position, self.basis.without(position) if turned is None else turned)
        self.residual += along * q
        self.rss = float(self.residual @ self.residual)
        self.rss_then = max(self.rss_then, self.rss)
        self.remainders.release(row, along)
        self.removed.keep(q, row)
        self.active.pop(position)
        self.usable[self.perp2 > COLLINEAR**2 * self.length2] = True  # what was inside the span may be outside again
        self.usable[self.blank] = False
        self.usable[self.active] = False

    def skip(self, j: int) -> None:
        """Note that candidate j lies in the span of the model."""
        self.usable[j] = False
        self.skipped = True

    def measure(self, which: IntArray) -> None:
        """Measure anew what these candidates have outside the span."""

        def columns(part: IntArray) -> FloatArray:
            F = self.columns.raw(part) / self.unit
            if self._weights is not None and self.centre:
                return self._weights.without_bias(F)
            return F - F.mean(axis=0) if self.centre else F

        self.remainders.measure(which, READ // self.n_rows, columns, self.Qt, self.residual, self.B)

    def doubtful(self, lam: float, S: FloatArray) -> Any:
        """Candidates whose squared length outside has lost digits that their score needs."""
        if 8.0 * _EPS <= 1e-10 * lam:  # no squared length is above one
            return np.zeros(0, dtype=np.intp)
        lost = 8.0 * _EPS * self.remainders.reference
        return np.flatnonzero(self.usable & (lost > 1e-10 * lam * (1.0 + S)) & self.remainders.below(1e-3))

    def snapshot(self) -> ModelSnapshot:
        """Copy what changes."""
        arrays = {name: np.array(getattr(self, name)) for name in ("residual", "usable")}
        arrays |= {name: getattr(self.remainders, name).copy() for name in ("squares", "inner", "reference")}
        numbers = {"rss": self.rss, "rss_then": self.rss_then}
        return ModelSnapshot(tuple(self.active), self.basis.copy(), arrays, numbers)

    def restore(self, then: ModelSnapshot) -> None:
        """Go back to a snapshot."""
        self.removed.renew(self.Qt, self.B, *then.basis[:2])
        self.active = list(then.active)
        self.basis.restore(then.basis)
        for name in ("residual", "usable"):
            setattr(self, name, then.arrays[name].copy())
        for name in ("squares", "inner", "reference"):
            setattr(self.remainders, name, then.arrays[name].copy())
        self.rss, self.rss_then = then.numbers["rss"], then.numbers["rss_then"]
