"""What annealing says of an evidence: the estimate, its error bar, and how it was come by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from bayessel._check import FloatArray
from bayessel.fit import Evidence, Status

#: a standard error beyond, in nats, is itself unsure
LARGEST_ERROR = 0.5


@dataclass(frozen=True, eq=False)
class AnnealedEvidence:
    """The evidence of a network by annealing.

    Attributes
    ----------
    evidence : Evidence
        log p(t), in nats, every constant included, "sampled"; hyperparameters integrated out, unless they were given.
        Its error is from the spread of the runs; NaN for a single run.
    log_weights : (n_runs,) array
        Log of each run's unbiased estimate. Their mean is below the log evidence on average.
    effective_runs : float
        Effective number of runs, (Σw)²/Σw²: near 1 when one of them is all there is.
    upper : float
        From runs back to the prior: above the log evidence on average. NaN unless asked for.
    pilots : (n_pilots,) array
        Rough log estimates by the pilot runs, each from a reference of its own; the first is that of the `draws`, where
        some were given. One that is lower by far began at a worse explanation of the data and stayed there.
    temperatures : (m,) array
        From 0 to 1.
    step_sizes, acceptance_rates : (m − 1,) array
        Of the best pilot run.
    n_gradients : int
    status, notes
        The most serious remark, and all of them.
    fingerprint : str
        Name of the data.
    n_rows : int
    seconds : float
        Compiling not counted.
    """

    evidence: Evidence
    log_weights: FloatArray = field(repr=False)
    effective_runs: float
    upper: float
    pilots: FloatArray = field(repr=False)
    temperatures: FloatArray = field(repr=False)
    step_sizes: FloatArray = field(repr=False)
    acceptance_rates: FloatArray = field(repr=False)
    n_gradients: int
    status: Status
    notes: tuple[Status, ...]
    fingerprint: str
    n_rows: int
    seconds: float

    @property
    def log_evidence(self) -> float:
        """Value of the evidence in nats."""
        return self.evidence.value

    @property
    def standard_error(self) -> float:
        """Error of the evidence in nats."""
        return np.nan if self.evidence.error is None else self.evidence.error

    @property
    def reliable(self) -> bool:
        """Whether the error is so small that it can be believed."""
        return bool(self.standard_error < LARGEST_ERROR)

    def in_units(self, log_factor: float, fingerprint: str) -> AnnealedEvidence:
        """The same in other units of the targets, whose density is larger by a factor; and the name of those data."""
        return replace(
            self,
            evidence=replace(self.evidence, value=self.evidence.value + log_factor),
            log_weights=self.log_weights + log_factor,
            upper=self.upper + log_factor,
            pilots=self.pilots + log_factor,
            fingerprint=fingerprint,
        )


def log_mean(logs: FloatArray) -> float:
    """Logarithm of the mean of exp(logs)."""
    return float(logsumexp(logs) - np.log(len(logs)))


def relative_error(logs: FloatArray) -> float:
    """Standard error of the mean of exp(logs), relative to it: that of its logarithm while it is small."""
    if len(logs) < 2 or not np.isfinite(logs.max()):
        return float("nan")
    w = np.exp(logs - logs.max())
    return float(w.std(ddof=1) / (w.mean() * np.sqrt(len(w))))
