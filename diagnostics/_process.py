r"""What comparisons need to know of a Gaussian process: the same questions as of a linear model, read another way.

Its fit is linear in the targets too, :math:`\hat t = (I - P)t` with :math:`P = r^2Q^{-1}`, so
:math:`\gamma = N - \mathrm{tr}P`, GCV and BIC mean what they mean for a linear model. There are no functions to count
and no weights to send.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.criteria import from_sums
from bayessel.diagnostics._bridge import bridge_sampling
from bayessel.fit import Status

#: fewest draws per chain and parameter that an evidence is computed from
_DRAWS = 5


@dataclass(frozen=True, eq=False)
class ProcessReading:
    """A fitted Gaussian process in numbers.

    Attributes
    ----------
    fitted, result
        What was given, and the engine's result in it.
    kind, third_kind : str
        What the log evidence is, and what the model evidence: "laplace", "laplace-bound" of a bound, "sampled" where
        there are draws, or empty where there is none, for want of a prior.
    status : Status
        The most serious remark about the fit.
    target_fingerprint, data_fingerprint : str or None
        Names of the target, and of inputs and target together.
    """

    fitted: Any
    result: Any
    kind: str
    third_kind: str
    status: Status
    target_fingerprint: str | None
    data_fingerprint: str | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.result.n_rows)

    @property
    def log_evidence(self) -> float:
        """log p(t | best hyperparameters), in the user's units."""
        return float(getattr(self.fitted, "log_evidence_", self.result.log_evidence))

    @property
    def _rescaling(self) -> float:
        """What the user's units add to every log density of all targets: −N log s of a standardisation by s."""
        return self.log_evidence - float(self.result.log_evidence)

    @cached_property
    def model_evidence(self) -> tuple[float, float]:
        """Evidence with the hyperparameters integrated out, and its Monte Carlo error (0 for Laplace's)."""
        if self.third_kind != "sampled":
            found = self.result.model_evidence
            return (np.nan if found is None else float(found)) + self._rescaling, 0.0
        sampled = bridge_sampling(self.result.log_joint, _draws(self.fitted))
        return sampled.log_evidence + self._rescaling, sampled.error

    def leave_one_out(self) -> tuple[FloatArray, FloatArray]:
        """Errors of the rows given all others, and their log densities, in the user's units."""
        if self.fitted is self.result:
            out = self.result.leave_one_out()
            return out.errors, out.log_densities
        return self.fitted.leave_one_out()[0], self.fitted.log_leave_one_out()

    def row(self) -> dict[str, Any]:
        """Every number of one fit, as `compare` has it."""
        n = self.n_rows
        scale = float(np.exp(-self._rescaling / n))
        noise = float(self.result.noise_std)
        out = self.result.leave_one_out()
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # the diagonal of Q⁻¹ is one over the variances, and Q⁻¹t the errors over them
            trace_p = float(noise**2 * (1.0 / out.variances).sum())
            misfit = float(((scale * noise**2 * out.errors / out.variances) ** 2).sum())
        errors, log_densities = self.leave_one_out()
        third, error = self.model_evidence
        return {
            "evidence": self.log_evidence,
            "kind": self.kind,
            "model-evidence": third if np.isfinite(third) else np.nan,
            "model-evidence_se": error if np.isfinite(third) else np.nan,
            "model-evidence_kind": self.third_kind,
            "mdl-w": np.nan,
            "mdl-alpha": np.nan,
            "loo": float(np.mean(errors**2)),
            "elpd-loo": float(log_densities.sum()),
            "gcv": float(from_sums("gcv", n, misfit, trace_p)),
            "bic": float(from_sums("bic", n, misfit, trace_p)),
            "gamma": n - trace_p,
            "n_basis": np.nan,
            "noise_std": float(getattr(self.fitted, "noise_std_", scale * noise)),
            "status": self.status.name,
        }


def is_process(fitted: Any) -> bool:
    """Whether this is a fitted Gaussian process: an engine's result, or an estimator around one."""
    result = getattr(fitted, "fit_", fitted)
    return all(hasattr(result, name) for name in ("theta", "covariance", "log_evidence", "leave_one_out"))


def read_process(fitted: Any, piped: bool) -> ProcessReading:
    """Read a Gaussian process; `piped` says that its inputs are not those of the user."""
    result = getattr(fitted, "fit_", fitted)
    target: str | None
    data: str | None
    if result is fitted:
        target, data = result.target_fingerprint, result.fingerprint
    else:
        target = getattr(fitted, "target_fingerprint_", None)
        data = getattr(fitted, "fingerprint_", None)
    kind = str(getattr(fitted, "kind_", result.evidence.kind))
    if _draws(fitted) is not None:
        third_kind = "sampled"
    elif result.prior is None:
        third_kind = ""
    else:
        third_kind = "laplace-bound" if kind == "bound" else "laplace"
    return ProcessReading(
        fitted=fitted,
        result=result,
        kind=kind,
        third_kind=third_kind,
        status=getattr(fitted, "status_", result.status if result is fitted else Status.CONVERGED),
        target_fingerprint=target,
        data_fingerprint=None if piped else data,
    )


def _draws(fitted: Any) -> FloatArray | None:
    """Draws of the hyperparameters, (chains, draws, k), where there are enough for an evidence."""
    trace = getattr(fitted, "trace_", None)
    if trace is None:
        return None
    theta = np.asarray(trace["posterior"]["theta"].values)
    return theta if theta.shape[1] >= _DRAWS * theta.shape[2] else None
