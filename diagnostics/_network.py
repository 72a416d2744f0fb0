"""What comparisons need to know of a network: its evidence where there is one, and how well it predicts rows left out.

A network has no functions whose number or weights could be sent, and its smoother is no matrix, so description lengths,
GCV and BIC say nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel.fit import Status


@dataclass(frozen=True, eq=False)
class NetworkReading:
    """A fitted network in numbers.

    Attributes
    ----------
    fitted : MLPRegressor, MLPClassifier, or bayessel.mlp.NetworkEvidenceFit
    n_rows : int
    log_evidence : float
        At the best precisions; NaN where there is none.
    kind, third_kind : str
        What the log evidence is, "laplace" or empty, and what the model evidence, "sampled" or empty.
    status : Status
        The most serious remark about the fit.
    target_fingerprint, data_fingerprint : str or None
        Names of the target, and of inputs and target together.
    """

    fitted: Any
    n_rows: int
    log_evidence: float
    kind: str
    third_kind: str
    status: Status
    target_fingerprint: str | None
    data_fingerprint: str | None

    def row(self) -> dict[str, Any]:
        """Every number of one fit, as `compare` has it."""
        fitted = self.fitted
        fit = fitted.fit_.engine if hasattr(fitted, "fit_") else fitted
        loo = density = np.nan
        out = (fitted.fit_ if hasattr(fitted, "fit_") else fitted).leave_one_out()
        density = out.log_density
        if fit.networks.kind == "gaussian":
            loo = out.mean_square
        gamma = getattr(fit, "gamma", None)
        noise = getattr(fitted, "noise_std_", getattr(fit, "noise_std", None))
        return {
            "evidence": self.log_evidence,
            "kind": self.kind,
            "model-evidence": float(getattr(fitted, "model_evidence_", np.nan)),
            "model-evidence_se": float(getattr(fitted, "model_evidence_se_", np.nan)),
            "model-evidence_kind": self.third_kind,
            "mdl-w": np.nan,
            "mdl-alpha": np.nan,
            "loo": loo,
            "elpd-loo": density,
            "gcv": np.nan,
            "bic": np.nan,
            "gamma": np.nan if gamma is None else float(sum(gamma.values())),
            "n_basis": np.nan,
            # of several outputs there is not one noise
            "noise_std": float(np.squeeze(noise)) if noise is not None and np.size(noise) == 1 else np.nan,
            "status": self.status.name,
            "seconds": float(getattr(fit, "seconds", np.nan)),
        }


def is_network(fitted: Any) -> bool:
    """Whether this is a fitted network: an estimator, or the engine's most probable one."""
    return hasattr(fitted, "units_in_use") or (hasattr(fitted, "hidden_") and hasattr(fitted, "inference"))


def read_network(fitted: Any, piped: bool) -> NetworkReading:
    """Read a network; `piped` says that its inputs are not those of the user."""
    if hasattr(fitted, "units_in_use"):
        return NetworkReading(
            fitted,
            fitted.n_rows,
            fitted.log_evidence,
            fitted.evidence.kind,
            "",
            fitted.status,
            fitted.target_fingerprint,
            fitted.fingerprint,
        )
    sampled = fitted.kind_ == "sampled"
    return NetworkReading(
        fitted=fitted,
        n_rows=len(fitted._rows[0]),
        log_evidence=np.nan if sampled else fitted.log_evidence_,
        kind="" if sampled else fitted.kind_,
        third_kind=fitted.kind_ if sampled else "",
        status=fitted.status_,
        target_fingerprint=fitted.target_fingerprint_,
        data_fingerprint=None if piped else fitted.fingerprint_,
    )
