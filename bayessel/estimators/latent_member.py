"""Latent functions on one dictionary, a member of a mixture over dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.basis import Dictionary
from bayessel.count_prediction import CountPrediction
from bayessel.linear.latent import LatentFit
from bayessel.prediction import ClassPrediction, Prediction

_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class LatentMember:
    """One dictionary with its fits: one of a real target, a count or the second of two classes; else one of each class.

    Attributes
    ----------
    dictionary : Dictionary
        Of the columns, whose bias is not used.
    fits : tuple of LatentFit
    log_weight : float
        Logarithm of its share of the predictions.
    log_prior : float
        Logarithm of the prior probability of its width among those compared.
    """

    dictionary: Dictionary
    fits: tuple[LatentFit, ...]
    log_weight: float = 0.0
    log_prior: float = 0.0

    @property
    def log_evidence(self) -> float:
        """Sum over its fits, with the prior of the width."""
        return float(sum(one.log_evidence for one in self.fits)) + self.log_prior

    def probabilities(self, X: FloatArray) -> FloatArray:
        """Of the classes at inputs (n, D), (n, K)."""
        columns = self.dictionary.columns(X)
        each = [one.predict(columns) for one in self.fits]
        found = [one.probabilities for one in each if isinstance(one, ClassPrediction)]
        return found[0] if len(found) == 1 else _normalised(np.column_stack([one[:, 1] for one in found]))

    def predict(self, X: FloatArray) -> Prediction | CountPrediction:
        """Targets that are no labels, at inputs (n, D)."""
        found = self.fits[0].predict(self.dictionary.columns(X))
        assert not isinstance(found, ClassPrediction)
        return found

    def left_out(self) -> FloatArray:
        """Probabilities of the classes at each row from the others, (N, K)."""
        each = [one.target - one.leave_one_out().errors for one in self.fits]
        if len(each) == 1:
            return np.column_stack([1.0 - each[0], each[0]])
        return _normalised(np.column_stack(each))

    def log_densities(self, codes: npt.NDArray[np.intp]) -> FloatArray:
        """Log probabilities of the class of each row from the others, (N,)."""
        if len(self.fits) == 1:
            return self.fits[0].leave_one_out().log_densities
        return np.log(np.maximum(self.left_out()[np.arange(len(codes)), codes], _TINY))


def weighed(members: Sequence[LatentMember]) -> tuple[LatentMember, ...]:
    """The members with their posterior shares, the most probable first."""
    value = np.array([one.log_evidence for one in members])
    logs = value - logsumexp(value)
    return tuple(replace(members[i], log_weight=float(logs[i])) for i in np.argsort(-logs, kind="stable"))


def _normalised(p: FloatArray) -> FloatArray:
    """Rows that sum to one."""
    p = np.maximum(p, _TINY)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
