r"""Records that a table lists several times, or that weights count several times, brought back to what they tell.

A row that agrees with another in every input and in the target repeats its noise too. With as many functions as records
a model passes through all of them, and each further copy then adds :math:`\log 1/\sigma` nats, without end as the noise
level falls: beyond some copies in a hundred rows the evidence prefers no noise at all. So the n different records are
kept, each counting

.. math:: c_i\,n\Big/\sum_j c_j

rows, with :math:`c_i` the copies (or their weights): as many rows in all as there are records. Rows of equal inputs
that were observed again differ in their targets where there is noise; then every row is kept as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayessel._check import FloatArray, IntArray
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights
from bayessel.fit import LeaveOneOut, Status

#: copies beyond this share of the records are too many to be left alone
FEW_COPIES = 0.05
#: inputs of no more values are levels, at which rows and their targets agree by themselves
LEVELS = 5
#: share of the repeated inputs whose targets may differ, of what they would by chance, where records are listed again
DIFFERING = 0.1
#: rows from which on folds are fitted, and what all rows but the heaviest have to count then
FEWEST_OF_FOLDS, FEWEST_BESIDE = 6, 3.0
#: from so many records on it is no chance that all counts are multiples of the least
ENOUGH_RECORDS = 10


@dataclass(frozen=True, eq=False)
class Records:
    """What is fitted of the rows given.

    Attributes
    ----------
    X, y : (n, D), (n,) or (n, K) arrays
        Inputs and targets: the rows given, or the different ones of them in the order in which they came.
    weights : RowWeights or None
        What is known of these rows; None where they are alike.
    place : (N,) array or None
        Which of these rows each row given is; None where all rows are kept.
    """

    X: FloatArray
    y: FloatArray
    weights: RowWeights | None
    place: IntArray | None = None

    @property
    def notes(self) -> tuple[Status, ...]:
        """COPIES_COUNT_ONCE where copies count together as much as one row."""
        return () if self.place is None else (Status.COPIES_COUNT_ONCE,)

    @property
    def names(self) -> tuple[str, str]:
        """Fingerprints of inputs and target together, and of the target."""
        return fingerprint(self.X, self.y), fingerprint(self.y)

    def of_rows_given(self, left_out: LeaveOneOut) -> LeaveOneOut:
        """Records left out, with all their copies, as rows given that were left out."""
        if self.place is None:
            return left_out
        whole, at = left_out.prediction, self.place
        if whole is not None:
            inside = whole.function_variances
            whole = replace(
                whole,
                means=whole.means[:, at],
                variances=whole.variances[:, at],
                log_weights=None if whole.log_weights is None else whole.log_weights[:, at],
                function_variances=None if inside is None else inside[:, at],
            )
        return LeaveOneOut(left_out.errors[at], left_out.variances[at], left_out.log_densities[at], whole)


def records(X: FloatArray, y: FloatArray, weights: RowWeights | None) -> Records:
    """The records among rows (N, D) with a target (N,) or (N, K), which count as many rows as there are of them.

    They are the rows as they are where these hardly count more than the different ones among them, or where copies may
    have come about by themselves.
    """
    count, std = (np.ones(len(y)), np.ones(len(y))) if weights is None else (weights.count, weights.std)
    T = y.reshape(len(y), -1)
    _, first, place = np.unique(np.column_stack([X, T, std]) + 0.0, axis=0, return_index=True, return_inverse=True)
    each = np.bincount(place.ravel(), weights=count)
    times = 1.0 if each.sum() <= (1.0 + FEW_COPIES) * len(first) else times_listed(X[first], T[first], each)
    if times == 1.0:
        return Records(X, y, weights)
    order = np.argsort(first)
    kept, counts = first[order], each[order] / times
    alike = bool(np.allclose(counts, 1.0, rtol=1e-12, atol=0.0))
    known = (std[kept],) if weights is None else (std[kept], weights.unit, weights.knows_noise)
    told = None if alike and not (weights is not None and weights.knows_noise) else RowWeights(counts, *known)
    return Records(X[kept], y[kept], told, np.argsort(order)[place.ravel()])


def records_of(estimator: Any, X: FloatArray, y: FloatArray) -> Records:
    """What an estimator fits: the records where all is left to it, the rows as they are where widths are given."""
    weights: RowWeights | None = getattr(estimator, "_row_weights", None)
    by_default = getattr(estimator, "width", None) is None and estimator.inference == "auto"
    if not by_default:
        return Records(X, y, weights)
    found = records(X, y, weights)
    if weights is not None and found.weights is not None:
        _check_heaviest(found.weights.count, weights.count)
    return found


def _check_heaviest(count: FloatArray, given: FloatArray) -> None:
    """Refuse weights with which all rows but one count less than three: no fold could be fitted without that one."""
    others = float(count.sum() - count.max())
    if len(count) >= FEWEST_OF_FOLDS and others < FEWEST_BESIDE:
        raise ValueError(
            f"sample_weight counts rows (2 is a row that came twice). The largest is {float(given.max()):.3g} of "
            f"{float(given.sum()):.3g}, and all other rows together count {others:.2g} beside it: too few to tell "
            "signal from noise. Make the weights more even, or, where they say how exact the rows are, pass "
            "noise_std = weights ** -0.5 instead"
        )


def times_listed(X: FloatArray, T: FloatArray, count: FloatArray) -> float:
    """How often each of n different records (n, D), (n, K) is listed in the mean, if its copies tell nothing; else 1.

    So it is where some input takes more than a few values, and rows of equal inputs (almost) never differ in their
    targets. Otherwise it is the least count, if all counts are multiples of it: the whole table was then listed again.
    """
    n, total = len(X), float(count.sum())
    if max((len(np.unique(column)) for column in X.T), default=0) > LEVELS:
        inputs = np.unique(X + 0.0, axis=0, return_inverse=True)[1].ravel()
        targets = np.unique(T + 0.0, axis=0, return_inverse=True)[1].ravel()
        by_chance = 1.0 - float(np.sum((np.bincount(targets, weights=count) / total) ** 2))
        repeated = int((np.bincount(inputs, weights=count) > 1.0).sum())
        pairs = np.unique(np.column_stack([inputs, targets]), axis=0)
        differing = int((np.bincount(pairs[:, 0]) > 1).sum())
        if differing <= DIFFERING * by_chance * repeated:
            return total / n
    least = float(count.min())
    multiples = count / least
    if n >= ENOUGH_RECORDS and least > 1.0 and np.allclose(multiples, np.round(multiples), rtol=1e-9, atol=0.0):
        return least
    return 1.0
