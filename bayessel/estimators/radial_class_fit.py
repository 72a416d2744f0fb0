"""Classes predicted at inputs: latent functions on one or several dictionaries, and of each class where many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray, as_matrix
from bayessel.estimators.latent_member import LatentMember
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.linear.latent.result import LatentOptimum
from bayessel.prediction import ClassPrediction

#: rows whose design is made at a time
_PIECE = 4096
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False, kw_only=True)
class RadialClassFit(Fit):
    """Classes at inputs (N, D), as a mixture over dictionaries.

    Attributes
    ----------
    classes : (K,) array
        Labels.
    codes : (N,) int array
        Class of each row by its number.
    members : tuple of LatentMember
        The most probable dictionary first.
    evidence : Evidence or None
        None of more than two classes: each is fitted against the rest, and that is no one model of the labels.
    """

    classes: npt.NDArray[np.generic]
    codes: npt.NDArray[np.intp] = field(repr=False)
    members: tuple[LatentMember, ...] = field(repr=False)
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
