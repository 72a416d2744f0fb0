"""What comparisons need to know of a Gaussian process: the same questions as of a linear model, read another way.

Its fit is linear in the targets too, so γ, GCV and BIC mean what they mean for a linear model. There are no functions
to count and no weights to send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel.criteria import from_sums
from bayessel.fit import Status


@dataclass(frozen=True, eq=False)
class ProcessReading:
    """A fitted Gaussian process in numbers, in the user's units.

    Attributes
    ----------
    result : Fit
        With ``model_evidence``, ``gamma``, ``sum_squares`` and ``noise_std`` besides.
    data_fingerprint : str or None
        Name of inputs and target together.
    """

    result: Any
    data_fingerprint: str | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.result.n_rows)

    @property
    def kind(self) -> str:
        """What the log evidence is."""
        return str(self.result.evidence.kind)

    @property
    def third_kind(self) -> str:
        """What the model evidence is; empty where there is none."""
        found = self.result.model_evidence
        return str(found.kind) if np.isfinite(found.value) else ""

    @property
    def status(self) -> Status:
        """The most serious remark about the fit."""
        found: Status = self.result.status
        return found

    @property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return str(self.result.target_fingerprint)

    def row(self) -> dict[str, Any]:
        """Every number of one fit, as `compare` has it."""
        n, fit, out = self.n_rows, self.result, self.result.leave_one_out()
        third = fit.model_evidence
        error = 0.0 if third.error is None else third.error
        trace_p, misfit = n - fit.gamma, fit.sum_squares
        return {
            "evidence": fit.log_evidence,
            "kind": self.kind,
            "model-evidence": third.value if np.isfinite(third.value) else np.nan,
            "model-evidence_se": error if np.isfinite(third.value) else np.nan,
            "model-evidence_kind": self.third_kind,
            "mdl-w": np.nan,
            "mdl-alpha": np.nan,
            "loo": out.mean_square,
            "elpd-loo": out.log_density,
            "gcv": float(from_sums("gcv", n, misfit, trace_p)),
            "bic": float(from_sums("bic", n, misfit, trace_p)),
            "gamma": fit.gamma,
            "n_basis": np.nan,
            "noise_std": fit.noise_std,
            "status": self.status.name,
        }


def is_process(fitted: Any) -> bool:
    """Whether this is a fitted Gaussian process: an engine's result, or an estimator around one."""
    result = getattr(fitted, "fit_", fitted)
    mode = getattr(result, "mode", result)
    return all(hasattr(mode, name) for name in ("theta", "covariance", "evidence", "leave_one_out"))


def read_process(fitted: Any, piped: bool) -> ProcessReading:
    """Read a Gaussian process; `piped` says that its inputs are not those of the user."""
    result = getattr(fitted, "fit_", fitted)
    return ProcessReading(result, None if piped else str(result.fingerprint))
