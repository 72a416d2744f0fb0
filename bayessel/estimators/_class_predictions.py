"""Methods of classifiers, from logarithms of the probabilities that their fits predict."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.utils.validation import _check_y, check_consistent_length

from bayessel._check import FloatArray
from bayessel.estimators.base import new_rows


class PredictsClasses(Protocol):
    """What these methods ask of a classifier."""

    classes_: npt.NDArray[Any]

    def _log_p(self, X: FloatArray) -> FloatArray:
        """Logarithms of the probabilities (N, C) of the classes at inputs (N, D)."""

    def _rows_at_a_time(self) -> int:
        """Rows worked on at a time."""


def predict_log_proba(self: PredictsClasses, X: ArrayLike) -> FloatArray:
    """Logarithms of `predict_proba`."""
    X = new_rows(self, X)
    piece = self._rows_at_a_time()
    return np.concatenate([self._log_p(X[begin : begin + piece]) for begin in range(0, len(X), piece)])


def predict_proba(self: PredictsClasses, X: ArrayLike) -> FloatArray:
    """Probabilities (N, C) of the classes, in the order of `classes_`."""
    return np.exp(predict_log_proba(self, X))


def decision_function(self: PredictsClasses, X: ArrayLike) -> FloatArray:
    """Log odds of the second of two classes (N,); of each class against the rest (N, C) where there are more."""
    log_p = predict_log_proba(self, X)
    if log_p.shape[1] == 2:
        return np.asarray(log_p[:, 1] - log_p[:, 0])
    rest = np.array([logsumexp(np.delete(log_p, k, axis=1), axis=1) for k in range(log_p.shape[1])]).T
    return np.asarray(log_p - rest)


def predict(self: PredictsClasses, X: ArrayLike) -> npt.NDArray[np.generic]:
    """The likeliest label."""
    log_p = predict_log_proba(self, X)
    # as the sign of the log odds has it, also where rounding makes both equal
    codes = (log_p[:, 1] > log_p[:, 0]).astype(int) if log_p.shape[1] == 2 else log_p.argmax(axis=1)
    return np.asarray(self.classes_[codes])


def log_predictive_density(self: PredictsClasses, X: ArrayLike, y: ArrayLike) -> FloatArray:
    """log p(y_n | x_n, training data) of each new label, in nats; −inf for one that was not there in training."""
    log_p = predict_log_proba(self, X)
    labels = _check_y(y, multi_output=False, y_numeric=False, estimator=self)
    check_consistent_length(log_p, labels)
    place = np.clip(np.searchsorted(self.classes_, labels), 0, len(self.classes_) - 1)
    return np.where(self.classes_[place] == labels, log_p[np.arange(len(log_p)), place], -np.inf)
