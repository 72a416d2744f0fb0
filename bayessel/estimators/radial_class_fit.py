"""Classes predicted at inputs: latent functions on one or several dictionaries, and of each class where many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray, as_matrix
from bayessel.basis import Dictionary
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.linear.latent import LatentFit
from bayessel.linear.latent.result import LatentOptimum
from bayessel.prediction import ClassPrediction

#: rows whose design is made at a time
_PIECE = 4096
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class ClassMember:
    """One dictionary with its fits: one of the second class of two, else one of each class against the rest.

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


def weighed(members: Sequence[ClassMember]) -> tuple[ClassMember, ...]:
    """The members with their posterior shares, the most probable first."""
    value = np.array([one.log_evidence for one in members])
    logs = value - logsumexp(value)
    return tuple(replace(members[i], log_weight=float(logs[i])) for i in np.argsort(-logs, kind="stable"))


def _normalised(p: FloatArray) -> FloatArray:
    """Rows that sum to one."""
    p = np.maximum(p, _TINY)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False, kw_only=True)
class RadialClassFit(Fit):
    """Classes at inputs (N, D), as a mixture over dictionaries.

    Attributes
    ----------
    classes : (K,) array
        Labels.
    codes : (N,) int array
        Class of each row by its number.
    members : tuple of ClassMember
        The most probable dictionary first.
    evidence : Evidence or None
        None of more than two classes: each is fitted against the rest, and that is no one model of the labels.
    """

    classes: npt.NDArray[np.generic]
    codes: npt.NDArray[np.intp] = field(repr=False)
    members: tuple[ClassMember, ...] = field(repr=False)
    evidence: Evidence | None
    n_rows: int
    status: Status
    notes: tuple[Status, ...]
    optima: tuple[LatentOptimum, ...] = field(repr=False)
    history: tuple[Mapping[str, object], ...] = field(repr=False)
    seconds: float
    fingerprint: str = field(repr=False)
    target_fingerprint: str = field(repr=False)

    @property
    def predicts_labels(self) -> bool:
        """Targets are labels."""
        return True

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters of the most probable dictionary, of all classes together."""
        return float(sum(one.gamma for one in self.members[0].fits))

    @property
    def details(self) -> tuple[str, ...]:
        """What the members are."""
        many = f", mixed over {len(self.members)} widths" if len(self.members) > 1 else ""
        sizes = " + ".join(str(one.n_basis) for one in self.members[0].fits)
        against = "" if len(self.classes) == 2 else ", each class against the rest"
        return (f"{sizes} functions, {self.effective_parameters:.1f} well-determined parameters{many}{against}",)

    def predict(self, rows: npt.ArrayLike) -> ClassPrediction:
        """Probabilities of the labels at inputs (n, D)."""
        X = as_matrix(rows, "X")
        found = np.empty((len(X), len(self.classes)))
        with np.errstate(all="ignore"):
            for begin in range(0, len(X), _PIECE):
                piece = X[begin : begin + _PIECE]
                shares = [np.exp(one.log_weight) * one.probabilities(piece) for one in self.members]
                total = np.sum(shares, axis=0)
                found[begin : begin + _PIECE] = total / total.sum(axis=1, keepdims=True)
        return ClassPrediction(self.classes, found)

    def leave_one_out(self) -> LeaveOneOut:
        """Each label predicted from the other rows.

        Of two classes the errors are those of the indicator of the second, with the variance p(1 − p) of the label; of
        more they are 1 − p and p(1 − p) of the row's own class.
        """
        with np.errstate(all="ignore"):
            each = np.array([one.log_densities(self.codes) for one in self.members])
            logs = np.array([one.log_weight for one in self.members])[:, None]
            # dictionaries are weighed without the row too
            total = -logsumexp(logs - each, axis=0)
        p = np.exp(total)
        errors = 1.0 - p if len(self.classes) > 2 else np.where(self.codes == 1, 1.0 - p, p - 1.0)
        return LeaveOneOut(errors, np.maximum(p * (1.0 - p), _TINY), total)

    @property
    def base_rates(self) -> FloatArray:
        """Log probabilities of the label of each row by the frequencies among the others, half a row added to each."""
        counts = np.bincount(self.codes, minlength=len(self.classes))
        return np.asarray(np.log((counts[self.codes] - 0.5) / (len(self.codes) - 1.0 + 0.5 * len(counts))))
