r"""A model that grows by columns of a dictionary, in orthogonal form, and what every candidate still has to offer.

An addition costs one pass over the dictionary (see `remainders`). Once the squared length of a candidate outside the
model has fallen by `WORN`, it is measured again before the candidate is taken; those that are far from the best can
wait until it has fallen by `LOST`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._row_weights import RowWeights
from bayessel.linear.columns.dictionary import BLOCK, Columns
from bayessel.linear.columns.orthonormal import OrthonormalBasis
from bayessel.linear.columns.remainders import CandidateRemainders

#: share of its last measured value below which the squared length of a candidate has errors that could decide a race
WORN = 1e-6
#: ... and below which it says nothing
LOST = 1e-10
#: share of the best gain from which a worn candidate takes part in the race
NEAR = 0.99
#: squared share of a column outside the model below which it is rounding
SPANNED = 1e-26


class GrowingModel:
    """Columns chosen so far and the state of all candidates, as columns of unit length.

    Parameters
    ----------
    columns, t
        Candidates, and target (N,) or targets (N, K).
    centre
        Take the constant into the model first: a bias with a flat prior.
    train
        True for rows to fit; the others are predicted only.
    keep_products
        Keep Q^T F, for criteria that need the candidates inside the model's span too.
    least
        Squared share outside the model below which a candidate is no longer offered.
    lost
        Share of its last measured value below which the squared length of a candidate is measured at once.
    row_weights
        Of rows that are multiplied already: the constant is their multipliers, and the noise counts their weights.
    """

    def __init__(
        self,
        columns: Columns,
        t: FloatArray,
        *,
        centre: bool = False,
        train: FloatArray | None = None,
        keep_products: bool = False,
        least: float = SPANNED,
        lost: float = LOST,
        row_weights: RowWeights | None = None,
    ) -> None:
        self.columns, self.t, self.least, self.lost = columns, t, max(least, SPANNED), lost
        n, p = columns.shape
        self.weight = None if train is None else train.astype(np.float64)
        self.row_weights = row_weights
        count = np.ones(n) if row_weights is None else row_weights.count
        #: rows to fit, and how many the noise counts
        self.n_train = n if train is None else int(train.sum())
        self.n_counted = float(count.sum() if train is None else count[train].sum())
        self.held = np.zeros(0, dtype=np.intp) if train is None else np.flatnonzero(np.logical_not(train))
        self._held_rows: list[FloatArray] = []  # directions, continued to the rows that are not fitted
        self.lengths = columns.lengths
        self.alive = self.lengths > 0.0
        self.skipped = not bool(self.alive.all())
        self.chosen: list[int] = []
        self.basis = OrthonormalBasis(n, p if keep_products else 0, t.shape[1:])
        self.keep_products = keep_products
        self.condition = 1.0
        self.residual = self._masked(t).copy()
        self.slack = np.ones(n) if self.weight is None else self.weight.copy()
        self.n_flat = int(centre)
        if self.weight is None:
            squares = columns.lengths_squared
        else:  # on the rows to fit
            squares = columns.weighted_squares(self.weight) * columns.inverse_lengths**2
        if centre:
            product = columns.cross(self._enter(np.ones(n) if row_weights is None else row_weights.root)[:, None])[:, 0]
            squares = np.maximum(squares - product**2, 0.0)
            if keep_products:
                self.basis.set_product(product)
        self.tss = self.rss
        inner = columns.cross(self.residual.reshape(n, -1)).reshape(p, *t.shape[1:])
        self.remainders = CandidateRemainders(squares, inner)
        if self.weight is None:
            self.remainders.reference = columns.lengths_squared
        self._measure_lost()

    def _masked(self, v: FloatArray) -> FloatArray:
        return v if self.weight is None else (v.T * self.weight).T

    @property
    def size(self) -> int:
        """Directions of the model, the constant counted."""
        return self.basis.size

    @property
    def n_columns(self) -> int:
        """Number of chosen columns, the constant not counted."""
        return self.size - self.n_flat

    @property
    def c(self) -> FloatArray:
        """Squared length of each candidate outside the model."""
        return self.remainders.squares

    @property
    def d(self) -> FloatArray:
        """Inner product of each candidate with the target there."""
        return self.remainders.inner

    @property
    def body(self) -> FloatArray:
        """R of the chosen columns at their own lengths, (k, k)."""
        return np.asarray(self.basis.R[self.n_flat :, self.n_flat :] * self.lengths[self.chosen])

    @property
    def coordinates(self) -> FloatArray:
        """Q^T t of the chosen directions, (k,)."""
        return self.basis.coordinates[self.n_flat :]

    @property
    def rows(self) -> FloatArray:
        """Chosen directions, (k, N)."""
        return self.basis.rows[self.n_flat :]

    @property
    def rss(self) -> float:
        """Squared length of the target outside the model."""
        left = self.residual.ravel()
        return float(left @ left)

    def held_errors(self, kept: FloatArray) -> FloatArray:
        """Errors on the rows that are not fitted, from coordinates of the fit in all directions."""
        directions = np.array(self._held_rows).reshape(self.size, len(self.held))
        return np.asarray(self.t[self.held] - kept @ directions)

    def extend(self, j: int) -> FloatArray:
        """Take candidate `j` into the model; returns its direction q on the rows to fit."""
        q = self._enter(self.columns.take(np.array([j]))[:, 0])
        self.alive[j] = False
        self.chosen.append(j)
        return q

    def _enter(self, full: FloatArray) -> FloatArray:
        q, inside, length = self.basis.extended(self._masked(full))
        if self.weight is not None:
            known = full[self.held] - sum((a * row for a, row in zip(inside, self._held_rows, strict=True)), 0.0)
            self._held_rows.append(known / length)
        along = q @ self.residual
        self.basis.append(q, inside, length, along)
        self.residual = self.residual - np.multiply.outer(q, along)
        self.slack = self.slack - q**2
        return q

    def retract(self, q: FloatArray) -> None:
        """Undo the last `extend`, whose direction was `q`; that candidate is not offered again."""
        self.residual = self.residual + np.multiply.outer(q, self.basis.coordinates[-1])
        self.slack = self.slack + q**2
        self.basis.drop_last()
        self.chosen.pop()
        if self.weight is not None:
            self._held_rows.pop()

    def absorb(self, product: FloatArray) -> None:
        """Bring the candidates up to date with the last direction, F^T q."""
        self.remainders.absorb(product, self.basis.coordinates[-1])
        if self.keep_products:
            self.basis.set_product(product)
        self._measure_lost()

    def _measure_lost(self) -> None:
        self.measure(np.flatnonzero(self.alive & (self.remainders.below(self.lost) | (self.c < self.least))))

    def best(self, gains: Callable[[], FloatArray]) -> int | None:
        """Candidate of the largest gain, measured again where too few digits are left to tell; None without any."""
        while True:
            gain = np.where(self.alive, gains(), -np.inf)
            doubtful = self._doubtful(gain)
            if not len(doubtful):
                break
            self.measure(doubtful)
        best = int(np.argmax(gain)) if len(gain) else -1
        return best if np.isfinite(gain[best]) else None

    def _doubtful(self, gain: FloatArray) -> IntArray:
        """Candidates that could be the best, and whose numbers have too few digits to tell."""
        worn = self.alive & self.remainders.below(WORN)
        best = gain.max(initial=-np.inf, where=self.alive)
        return np.flatnonzero(worn & (gain >= best - (1.0 - NEAR) * abs(best)))

    def measure(self, which: IntArray) -> None:
        """Measure what the model leaves of these candidates, instead of subtracting."""
        if not len(which):
            return

        def columns(part: IntArray) -> FloatArray:
            return self._masked(self.columns.take(part))

        self.remainders.measure(which, BLOCK // len(self.t), columns, self.basis.rows, self.residual)
        spanned = which[self.c[which] < self.least]
        if len(spanned):  # what they add is rounding
            self.skipped = True
            self.alive[spanned] = False
