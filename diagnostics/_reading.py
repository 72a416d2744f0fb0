"""What criteria need to know of a fit, read the same way from every engine result and every estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bayessel._check import FloatArray
from bayessel.diagnostics._network import is_network
from bayessel.diagnostics._process import is_process
from bayessel.fit import Status, fingerprint

#: a weight that moves the fit by less, in units of the noise, is as good as zero
VANISHING = 1e-6


@dataclass(frozen=True, eq=False)
class Reading:
    r"""A fitted linear-Gaussian model in numbers.

    Attributes
    ----------
    result
        The engine result the numbers come from.
    n_rows, n_candidates : int
        n, and :math:`k_0`: the columns the model could have used, the bias among them.
    n_basis : int
        Columns in use, the bias among them.
    weights : (k,) array
        Their weights, the bias among them, but for those that vanish: whose column adds less to the fit than a
        millionth of the noise. Dense fits to pure noise have such weights only, of 1e-12 or less.
    n_precisions : int
        Precisions behind the weights: one per penalised column of a sparse fit, 1 where all weights share one.
    beta, gamma, log_evidence : float
        Noise precision, well-determined parameters (the bias counted), log p(t|alpha, beta).
    kind : str
        What sort of number the log evidence is.
    status : Status
        The most serious remark about the fit.
    target_fingerprint, data_fingerprint : str or None
        Names of the target, and of inputs and target together; None where the result does not know.
    """

    result: Any
    n_rows: int
    n_candidates: int
    n_basis: int
    weights: FloatArray
    n_precisions: int
    beta: float
    gamma: float
    log_evidence: float
    kind: str
    status: Status
    target_fingerprint: str | None
    data_fingerprint: str | None

    @property
    def sum_squares(self) -> float:
        r"""Squared residuals :math:`\|t-\Phi w\|^2`; taken from the result when asked for, which can cost a little."""
        return float(_account(self.result).sum_squares)


def read(fitted: Any, name: str = "fitted") -> Reading:
    """Read an engine result (`fit_rvm`, `fit_evidence`, `fit_ridge`) or a fitted estimator, alone or in a pipeline."""
    estimator, piped = unwrap(fitted)
    if is_process(estimator):
        raise TypeError(
            f"{name} is a Gaussian process, which has no functions to count and no weights to send; `compare` has what "
            "can be said of it"
        )
    if is_network(estimator):
        raise TypeError(
            f"{name} is a network, which has no functions to count and no weights to send; `compare` has what can be "
            "said of it"
        )
    result = _engine_result(estimator, name)
    spectrum = getattr(result, "spectrum", None)
    centred = bool(spectrum is not None and spectrum.centred)
    basis = np.asarray(result.basis, dtype=int)
    coef, size = np.asarray(result.coef, dtype=np.float64), _column_sizes(result)
    n_columns = len(coef)
    if n_columns != len(basis):
        coef, size = coef[basis], size[basis]
    sent = _matters(coef, size, result.beta)
    weights = coef[sent]
    if centred:
        bias = np.array([result.intercept])
        weights = np.append(weights, bias[_matters(bias, np.sqrt(result.n_rows), result.beta)])
    if spectrum is not None:
        target = spectrum.fingerprint
    else:
        target = fingerprint(result.target) if getattr(result, "target", None) is not None else None
    return Reading(
        result=result,
        n_rows=int(result.n_rows),
        n_candidates=int(getattr(result, "n_candidates", n_columns)) + int(centred),
        n_basis=len(basis) + int(centred),
        weights=weights,
        n_precisions=1 if np.ndim(result.alpha) == 0 else int(sent.sum()),
        beta=float(result.beta),
        gamma=float(_account(result).gamma),
        log_evidence=float(result.log_evidence),
        kind=str(getattr(getattr(result, "evidence", result), "kind", "type2")),
        status=getattr(estimator, "status_", result.status),
        target_fingerprint=target,
        data_fingerprint=None if piped else getattr(estimator, "fingerprint_", None),
    )


def _account(result: Any) -> Any:
    """What keeps the sums of a result: its posterior, if it has one."""
    return getattr(result, "posterior", result)


def _matters(weights: FloatArray, sizes: Any, beta: float) -> Any:
    """Whether each weight changes the fit by more than a millionth of the noise."""
    with np.errstate(invalid="ignore", over="ignore"):
        return (weights != 0.0) & ~(np.sqrt(beta) * np.abs(weights) * sizes < VANISHING)


def _column_sizes(result: Any) -> FloatArray:
    """Lengths of the columns that have weights; infinite where the result has let go of them."""
    if getattr(result, "design", None) is not None:
        return np.sqrt(np.einsum("ij,ij->j", result.design, result.design))
    sizes = np.full(len(result.coef), np.inf)
    posterior, spectrum = getattr(result, "posterior", None), getattr(result, "spectrum", None)
    if posterior is not None and spectrum is not None and len(posterior.active):
        squares = np.einsum("k,kj,kj->j", spectrum.s**2, spectrum.Vt, spectrum.Vt)
        sizes[posterior.active] = np.sqrt(squares) / posterior.scale
    return sizes


def unwrap(fitted: Any) -> tuple[Any, bool]:
    """Return the estimator inside a search or a pipeline, and whether its inputs are no longer those of the user."""
    piped = False
    while True:
        if hasattr(fitted, "best_estimator_"):
            fitted = fitted.best_estimator_
        elif hasattr(fitted, "steps") and hasattr(fitted, "named_steps"):
            fitted, piped = fitted.steps[-1][1], True
        else:
            return fitted, piped


def _engine_result(fitted: Any, name: str) -> Any:
    if getattr(fitted, "_state", None) is not None:
        raise ValueError(
            f"{name}: rows were added or forgotten since the precisions were chosen; call reestimate() first"
        )
    result = getattr(fitted, "fit_", fitted)
    many = getattr(fitted, "fits_", None)
    if many is not None:
        if len(many) != 1:
            raise ValueError(f"{name} has {len(many)} outputs; fit one estimator per output and look at each")
        result = many[0]
    elif result is fitted and hasattr(fitted, "fit") and hasattr(fitted, "get_params"):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"{name} is a {type(fitted).__name__} that has not been fitted; call fit(X, y) first")
    missing = [a for a in ("log_evidence", "coef", "basis", "alpha", "beta", "n_rows") if not hasattr(result, a)]
    if missing:
        raise TypeError(
            f"{name} must be a fitted bayessel estimator or an engine result (fit_rvm, fit_evidence, fit_ridge), got "
            f"{type(fitted).__name__} without {', '.join(missing)}"
        )
    return result
