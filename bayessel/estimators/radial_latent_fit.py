"""Counts and targets with heavy tails at inputs: latent functions on one or several dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from bayessel._check import FloatArray, as_matrix
from bayessel.count_prediction import CountPrediction
from bayessel.estimators.latent_member import LatentMember
from bayessel.fit import Evidence, Fit, LeaveOneOut, Status
from bayessel.linear.latent import LatentFit
from bayessel.linear.latent.result import LatentOptimum
from bayessel.prediction import Prediction


@dataclass(frozen=True, eq=False)
class RadialLatentFit(Fit):
    """Targets at inputs (N, D), as a mixture over dictionaries.

    Attributes
    ----------
    members : tuple of LatentMember
        The most probable dictionary first.
    status, notes : Status, tuple of Status
    fingerprint : str
        Name of inputs and targets.
    """

    members: tuple[LatentMember, ...] = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    fingerprint: str

    @property
    def best(self) -> LatentFit:
        """The fit on the most probable dictionary."""
        return self.members[0].fits[0]

    @property
    def n_rows(self) -> int:
        """Rows fitted to."""
        return self.best.n_rows

    @property
    def target_fingerprint(self) -> str:
        """Name of the targets."""
        return self.best.target_fingerprint

    @property
    def evidence(self) -> Evidence:
        """That of the mixture: the dictionaries have a prior."""
        found = self.best.evidence
        value = float(logsumexp([one.log_evidence for one in self.members]))
        names = ("width", *found.integrated) if len(self.members) > 1 else found.integrated
        return Evidence(value, found.kind, None, found.maximised, names)

    @property
    def optima(self) -> tuple[LatentOptimum, ...]:
        """Those of the most probable dictionary."""
        return self.best.optima

    @property
    def history(self) -> tuple[Mapping[str, object], ...]:
        """That of the most probable dictionary."""
        return self.best.history

    @property
    def seconds(self) -> float:
        """Time by the clock, all dictionaries together."""
        return float(sum(one.fits[0].seconds for one in self.members))

    @property
    def effective_parameters(self) -> float:
        """Well-determined parameters on the most probable dictionary."""
        return self.best.gamma

    @property
    def details(self) -> tuple[str, ...]:
        """What the members are."""
        many = f", mixed over {len(self.members)} widths" if len(self.members) > 1 else ""
        return (f"{self.best.details[0]}{many}",)

    def predict(self, rows: npt.ArrayLike) -> Prediction | CountPrediction:
        """Distributions of new targets at inputs (n, D)."""
        X = as_matrix(rows, "X")
        weights = np.exp([one.log_weight for one in self.members])
        with np.errstate(all="ignore"):
            each = [one.predict(X) for one in self.members]
        counts = [one for one in each if isinstance(one, CountPrediction)]
        if counts:
            return counts[0] if len(counts) == 1 else CountPrediction.mixture(counts, weights)
        return Prediction.mixture([one for one in each if isinstance(one, Prediction)], weights / weights.sum())

    def leave_one_out(self) -> LeaveOneOut:
        """Each row predicted from the others; dictionaries are weighed without the row too."""
        with np.errstate(all="ignore"):
            each = [one.fits[0].leave_one_out() for one in self.members]
            logs = np.array([one.log_weight for one in self.members])[:, None]
            densities = np.array([one.log_densities for one in each])
            total = -logsumexp(logs - densities, axis=0)
            shares = logs - densities + total
        target, whole = self.best.target, [one.prediction for one in each if one.prediction is not None]
        if len(whole) == len(each):
            return LeaveOneOut.of(_weighed(whole, shares), target, total)
        weights, means = np.exp(shares), np.array([target - one.errors for one in each])
        mean = (weights * means).sum(axis=0)
        squares = np.array([one.variances for one in each]) + (means - mean) ** 2
        return LeaveOneOut(target - mean, (weights * squares).sum(axis=0), total)


def _weighed(parts: list[Prediction], logs: FloatArray) -> Prediction:
    """A mixture of parts whose log weights (S, n) are those of each row."""
    every = [
        log + np.broadcast_to(part._log_weights(), part.means.shape) for part, log in zip(parts, logs, strict=True)
    ]
    inside = [part.function_variances for part in parts if part.function_variances is not None]
    return Prediction(
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.variances for part in parts]),
        np.concatenate(every),
        np.concatenate(inside) if len(inside) == len(parts) else None,
    )
