r"""A fit of few functions beside its reference, the model of all functions with its hyperparameters integrated out.

A model that selects functions is sure of its choice; its error bars leave out that others would have done as well. The
reference is not: its predictions, means :math:`m(x)` and variances :math:`v(x)`, are what is believed of a new
observation. Functions that were selected have the weights under which their mean :math:`m_s(x)` comes closest to
:math:`m(x)`, at the rows and at crossed rows, each input from one of two rows (`projected_weights`). Whoever predicts
:math:`m_s(x)` is off by

.. math:: \mathrm{E}(t-m_s(x))^2 = v(x) + (m(x)-m_s(x))^2,

and that is the variance a `ReferencedFit` gives, in the shape that the reference's predictions have: it holds what is
unknown of widths and noise, and grows away from the rows as the reference's does. The selection costs about

.. math:: \ell = \tfrac12\,\overline{\log(1 + (m-m_s)^2/v)}

nats a row of log density, as the reference expects. It is taken at the rows and, where it is larger, at crossed rows.
Where it is more than a tenth of a nat, or more than a quarter of what the reference is worth over a constant, the few
functions are no summary, and the reference predicts; so it does where the loss is more than 0.15 nats just outside, at
the rows stretched away from their medians by 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, override

import numpy as np
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, IntArray, as_matrix
from bayessel._row_weights import RowWeights, mean, medians, some
from bayessel._wrapped_fit import WrappedFit
from bayessel.basis import Dictionary, LazyDesign
from bayessel.criteria.capabilities import Message
from bayessel.estimators.held_out import spread_out
from bayessel.estimators.normal_predictions import moments_in_pieces
from bayessel.estimators.projected_weights import projected_weights
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status, worst
from bayessel.linear.columns.fit import ColumnsFit
from bayessel.linear.design_fit import DesignFit, given_arrays
from bayessel.linear.integrated.mixture import IntegratedFit
from bayessel.prediction import Prediction

#: largest loss of a summary, in nats a row: ten rows then tell it from its reference with odds of e to 1
LARGEST_LOSS = 0.1
#: largest part of the reference's worth over a constant that a summary may lose, and what is never too much
LARGEST_SHARE, SMALLEST_LOSS = 0.25, 0.02
#: largest loss at the rows stretched away from their medians, and by how much
LARGEST_OUTSIDE, STRETCH = 0.15, 1.3
#: rows at which functions that were selected come close to the reference, and their loss is taken
MOST_PROJECTED = 1000
#: crossed rows, and stretched ones, at which the loss is taken
MOST_ROWS = 300


@dataclass(frozen=True, eq=False)
class ReferencedFit(WrappedFit):
    """Few functions, and all functions as their reference.

    Attributes
    ----------
    inner : ColumnsFit or DesignFit
        What the engine selected; evidence, optima and history are its.
    reference : IntegratedFit
        All functions and a trend, hyperparameters integrated out.
    dictionary : Dictionary
        Of whose columns `inner` uses some.
    gain : float
        What the reference is worth over a constant, nats a row held out of refitted folds; nan without folds.
    remarks : tuple of Status
        What those folds remarked.
    beyond_rows : bool
        Whether crossed and stretched rows count; functions of the user may not be defined there.
    """

    inner: ColumnsFit | DesignFit
    reference: IntegratedFit = field(repr=False)
    dictionary: Dictionary = field(repr=False)
    gain: float
    remarks: tuple[Status, ...]
    beyond_rows: bool = True

    # ---- beside the reference

    @cached_property
    def loss(self) -> float:
        """Nats a row that the selection costs, as the reference expects: at the rows, or at crossed rows if more."""
        part = self._near
        at_rows = self._loss_at(self._inputs[part], some(self._ordered_weights, part), self._there)
        return max(at_rows, self._loss_at(self._crossed(0))) if self.beyond_rows else at_rows

    @cached_property
    def loss_outside(self) -> float:
        """The same at the rows stretched away from their medians; nothing where these do not count."""
        if not self.beyond_rows:
            return 0.0
        X, weights = self._inputs, self._ordered_weights
        middle, part = medians(X, weights), spread_out(len(X), MOST_ROWS)
        return self._loss_at(middle + STRETCH * (X[part] - middle), some(weights, part))

    @cached_property
    def falls_back(self) -> bool:
        """Whether the reference predicts, for the few functions are no summary of it."""
        gain = self.gain if np.isfinite(self.gain) else np.inf
        inside = self.loss <= min(LARGEST_LOSS, max(LARGEST_SHARE * gain, SMALLEST_LOSS))
        return not (inside and self.loss_outside <= LARGEST_OUTSIDE)

    def predict(self, rows: ArrayLike) -> Prediction:
        """Predictive distributions at inputs (N, D)."""
        X = as_matrix(rows, "X")
        there = self.reference.predict(X)
        if self.falls_back:
            return there
        return there.about(self.summary(X))

    def mean(self, rows: ArrayLike) -> FloatArray:
        """Means of `predict` alone: of few functions, without the cost of the reference."""
        X = as_matrix(rows, "X")
        return moments_in_pieces(self.reference.predict, X)[0] if self.falls_back else self.summary(X)

    def summary(self, X: FloatArray) -> FloatArray:
        """Mean of the few functions at inputs (N, D)."""
        weights, intercept = self.weights
        return np.asarray(columns_in_use(self.inner.basis, self.dictionary, X) @ weights + intercept)

    @cached_property
    def weights(self) -> tuple[FloatArray, float]:
        """Weights of the functions in use, and of the bias: of a selection the closest to the reference."""
        inner = self.inner
        if not isinstance(inner, ColumnsFit):
            return inner.coef[inner.basis], float(inner.intercept)
        rows, weights = self._inputs[self._near], some(self._ordered_weights, self._near)
        counts = np.ones(len(rows)) if weights is None else weights.count
        mean, variance, each = self._there.mean, self._there.variance, counts / counts.sum()
        if self.beyond_rows:
            crossed = self._crossed(1)
            there = self.reference.predict(crossed)
            rows, mean = np.vstack([rows, crossed]), np.append(mean, there.mean)
            variance, alike = np.append(variance, there.variance), np.ones(len(crossed))
            each = np.append(each, alike / len(crossed))
        columns = columns_in_use(inner.basis, self.dictionary, rows)
        return projected_weights(columns, mean, variance, each, bool(inner.posterior.spectrum.centred))

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from all others; functions, hyperparameters and their weights are those of all rows."""
        there = self.reference.leave_one_out()
        if self.falls_back:
            return there
        assert there.prediction is not None
        if isinstance(self.inner, ColumnsFit):  # as far from the reference as with all rows
            X = given_arrays(self.reference)[0]
            mean = there.prediction.mean + self.summary(X) - moments_in_pieces(self.reference.predict, X)[0]
        else:
            mean = self.target - self.inner.leave_one_out().errors
        return LeaveOneOut.of(there.prediction.about(mean), self.target)

    def _loss_at(self, X: FloatArray, weights: RowWeights | None = None, there: Prediction | None = None) -> float:
        there = self.reference.predict(X) if there is None else there
        return float(0.5 * mean(np.log1p((self.summary(X) - there.mean) ** 2 / there.variance), weights))

    def _crossed(self, seed: int) -> FloatArray:
        """Each input from one of two rows, rows drawn as often as they count."""
        X, weights = self._inputs, self._ordered_weights
        upto = np.cumsum(np.ones(len(X)) if weights is None else weights.count)
        rng, total = np.random.default_rng(seed), max(int(upto[-1]), 1)
        one, other = np.searchsorted(upto, rng.integers(0, total, (2, min(MOST_ROWS, 4 * total))), side="right")
        return np.where(rng.random((len(one), X.shape[1])) < 0.5, X[one], X[other])

    @property
    def _near(self) -> IntArray:
        return spread_out(len(self._inputs), MOST_PROJECTED)

    @cached_property
    def _there(self) -> Prediction:
        """What the reference predicts at those rows."""
        return self.reference.predict(self._inputs[self._near])

    @cached_property
    def _ordered_weights(self) -> RowWeights | None:
        """Of the rows in the order of `_inputs`."""
        weights = self.row_weights
        return None if weights is None else weights.part(self._order)

    @cached_property
    def _order(self) -> IntArray:
        X, t = given_arrays(self.reference)
        return np.lexsort((*X.T, t))

    @cached_property
    def _inputs(self) -> FloatArray:
        """Inputs in the order of the target, so that the order of the rows changes nothing."""
        return np.ascontiguousarray(given_arrays(self.reference)[0][self._order])

    @property
    @override
    def details(self) -> tuple[str, ...]:
        """How many functions are in use, and what that costs."""
        used = f"{self.inner.n_basis} functions"
        if isinstance(self.inner, ColumnsFit):
            return (f"{used} selected lose {self.loss:.2g} nats a row against all of them",)
        return (f"{used} under the penalty found lose {self.loss:.2g} nats a row against all penalties together",)

    # ---- what the engine says

    @property
    def notes(self) -> tuple[Status, ...]:
        """Those of the folds, and of the selection, or FELL_BACK where the reference predicts in its place."""
        return tuple(dict.fromkeys((*((Status.FELL_BACK,) if self.falls_back else self.inner.notes), *self.remarks)))

    @property
    def status(self) -> Status:
        """The most serious of the remarks."""
        return worst(self.notes if self.falls_back else [self.inner.status, *self.notes])

    @property
    def fingerprint(self) -> str:
        """Name of inputs and target."""
        return self.reference.fingerprint

    @property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return self.inner.target_fingerprint

    @property
    def target(self) -> FloatArray:
        """What was fitted to, (N,)."""
        return given_arrays(self.reference)[1]

    @property
    def row_weights(self) -> RowWeights | None:
        """Counts and noise levels of the rows; None where they are alike."""
        return self.reference.posterior.spectrum.row_weights

    @property
    def evidence(self) -> Evidence | None:
        """That of the functions selected."""
        return self.inner.evidence

    @property
    def model_evidence(self) -> float:
        """That of the functions selected, their precisions integrated out."""
        return float(getattr(self.inner, "model_evidence", np.nan))

    @property
    def seconds(self) -> float:
        """Time by the clock, that of the reference included."""
        return float(self.inner.seconds + self.reference.seconds)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise, as the reference estimates it."""
        return self.reference.noise_std

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters of the functions selected."""
        return self.inner.effective_parameters

    @property
    def sum_squares(self) -> float:
        """Squared residuals of the functions selected."""
        return self.inner.sum_squares

    def message(self) -> Message:
        """What a description length sends of the functions selected."""
        return self.inner.message()


def columns_in_use(basis: IntArray, dictionary: Dictionary, X: FloatArray) -> FloatArray:
    """The columns `basis` of a dictionary at inputs (N, D)."""
    return LazyDesign(dictionary, X).columns(basis) if len(basis) else np.zeros((len(X), 0))


def engine_fit(fit: Fit) -> Any:
    """What the engine returned, without its reference."""
    return fit.inner if isinstance(fit, ReferencedFit) else fit
