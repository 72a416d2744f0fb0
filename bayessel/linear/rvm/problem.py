"""A regression problem in the units of the search: target of unit spread, columns of unit length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._row_weights import RowWeights, counted, deviation
from bayessel.linear.columns.dictionary import Columns
from bayessel.linear.rvm.form_choice import choose_form
from bayessel.linear.rvm.state import DictionaryForm, RVMState

#: the noise is at least this many times the rounding of the largest target
FLOOR = 4096.0
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class RVMProblem:
    """Target, dictionary and what the search may do.

    Attributes
    ----------
    columns, t
        The dictionary and the target, their rows multiplied where they have weights.
    given, target
        The same as they came.
    weights
        Counts and noise levels of the rows; None where they are alike.
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

    @classmethod
    def of(cls, columns: Columns, t: FloatArray, beta: float | None, weights: RowWeights | None = None) -> RVMProblem:
        """Scale the target and choose how to hold the dictionary."""
        given, target = columns, t
        size, spread = float(np.abs(t).max()), deviation(t, weights)
        constant = spread <= 4.0 * _EPS * size * np.sqrt(len(t))
        if weights is not None:
            columns, t = columns.multiplied(weights), weights.scale(t)
            size = float(np.abs(target / weights.std).max())
            spread *= float(np.sqrt(np.mean(weights.root**2) / np.mean(weights.count)))
        unit = (size or 1.0) if constant else spread
        b = None if beta is None else float(np.log(beta) + 2.0 * np.log(unit))
        b_max = -2.0 * float(np.log(FLOOR * _EPS * max(size / unit, 1.0)))
        columns, form = choose_form(columns, t / unit, counted(t, weights))
        return cls(
            columns=columns,
            t=t,
            spread=unit,
            form=form,
            beta=beta,
            b=b,
            b_max=b_max if b is None else max(b, b_max),
            constant_target=constant,
            given=columns if weights is None else given,
            target=target,
            weights=weights,
        )

    @property
    def n_rows(self) -> float:
        """Rows that the noise counts."""
        return counted(self.t, self.weights)

    @property
    def learn_noise(self) -> bool:
        """Whether the noise level is to be found."""
        return self.b is None

    @property
    def shift(self) -> float:
        """What the log evidence gains when the target goes back to its own units."""
        return -self.n_rows * float(np.log(self.spread))

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
