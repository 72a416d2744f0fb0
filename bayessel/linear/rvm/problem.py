"""A regression problem in the units of the search: target of unit spread, columns of unit length."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._row_weights import RowWeights, counted, deviation, shares_of_means
from bayessel.linear._evidence import LOG_2PI
from bayessel.linear.columns.centring import centred
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.rvm.form_choice import choose_form
from bayessel.linear.rvm.state import DictionaryForm, RVMState

#: the noise is at least this many times the rounding of the largest target
FLOOR = 4096.0
#: spread of a column over its largest entry that is rounding
SAME_IN_EVERY_ROW = 1e-12
_EPS = float(np.finfo(float).eps)


def prepared(columns: Columns, weights: RowWeights | None, centre: bool) -> Columns:
    """Columns without their means where a bias is integrated out, their rows multiplied where they have weights."""
    if centre:
        share = shares_of_means(columns.shape[0], weights)
        columns = centred(columns, columns.inner(share[None])[0], SAME_IN_EVERY_ROW, share)
    return columns.multiplied(weights)


@dataclass(frozen=True, eq=False)
class RVMProblem:
    """Target, dictionary and what the search may do.

    Attributes
    ----------
    columns, t
        The dictionary and the target, without their means where a bias is integrated out, their rows multiplied where
        they have weights.
    given, target
        The same as they came.
    weights
        Counts and noise levels of the rows; None where they are alike.
    centre
        Whether there is a bias with a flat prior.
    spread
        Unit of the target.
    form
        The dictionary as the search sees it.
    beta, b
        Noise precision when it is known, and its log in units of the search.
    b_max
        Largest log noise precision.
    """

    columns: Columns
    t: FloatArray
    spread: float
    form: DictionaryForm
    beta: float | None
    b: float | None
    b_max: float
    constant_target: bool
    given: Columns
    target: FloatArray
    weights: RowWeights | None
    centre: bool

    @classmethod
    def of(
        cls,
        columns: Columns,
        t: FloatArray,
        beta: float | None,
        weights: RowWeights | None = None,
        centre: bool = False,
    ) -> RVMProblem:
        """Scale the target and choose how to hold the dictionary."""
        given, target = columns, t
        if centre:
            share = shares_of_means(len(t), weights)
            t = t - share @ t
            t = t - share @ t  # the first mean was rounded
        size, spread = float(np.abs(target).max()), deviation(target, weights)
        constant = spread <= 4.0 * _EPS * size * np.sqrt(len(t))
        columns = prepared(columns, weights, centre)
        if weights is not None:
            t = weights.scale(t)
            size = float(np.abs(target / weights.std).max())
            spread *= float(np.sqrt(np.mean(weights.root**2) / np.mean(weights.count)))
        unit = (size or 1.0) if constant else spread
        b = None if beta is None else float(np.log(beta) + 2.0 * np.log(unit))
        b_max = -2.0 * float(np.log(FLOOR * _EPS * max(size / unit, 1.0)))
        columns, form = choose_form(columns, t / unit, counted(t, weights) - int(centre))
        return cls(
            columns=columns,
            t=t,
            spread=unit,
            form=form,
            beta=beta,
            b=b,
            b_max=b_max if b is None else max(b, b_max),
            constant_target=constant,
            given=columns if weights is None and not centre else given,
            target=target,
            weights=weights,
            centre=centre,
        )

    @property
    def n_rows(self) -> float:
        """Rows that the noise counts, less the one that a bias with a flat prior takes."""
        return counted(self.t, self.weights) - int(self.centre)

    @property
    def learn_noise(self) -> bool:
        """Whether the noise level is to be found."""
        return self.b is None

    @property
    def shift(self) -> float:
        """What the log evidence gains when the target goes back to its own units, and by the density of the bias."""
        units = -self.n_rows * float(np.log(self.spread))
        if not self.centre:
            return units
        rounding = 4.0 * _EPS * (float(np.abs(self.target).max()) or 1.0)
        spread2 = max(float(self.t @ self.t), rounding**2 * counted(self.t, self.weights))
        return units - 0.5 * (LOG_2PI + float(np.log(spread2)))

    @cached_property
    def constant(self) -> int | None:
        """Number of a column that is the same in every row; with a bias of its own there is none to look for."""
        return None if self.centre else self.given.constant()

    def level(self, noise: float) -> float:
        """Log noise precision of a variance `noise`, a share of the spread, unless the precision is known."""
        return min(-float(np.log(noise)), self.b_max) if self.b is None else self.b

    def state(self, basis: IntArray, alpha: FloatArray, beta: float) -> RVMState:
        """Return a model given in the user's units."""
        used = self.columns.lengths[basis] > 0.0
        basis, alpha = basis[used], alpha[used]
        a = np.log(alpha) - 2.0 * np.log(self.columns.lengths[basis]) + 2.0 * np.log(self.spread)
        b = min(float(np.log(beta) + 2.0 * np.log(self.spread)), self.b_max) if self.b is None else self.b
        return self.form.solve(basis, a, b)
