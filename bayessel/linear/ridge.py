r"""Ridge regression with one penalty, chosen by a criterion that is minimised exactly (Orr 1996, sections 5 and 6).

The criteria are those of `bayessel._formulas` and LOO :math:`= \frac1N \sum_i ((Pt)_i/P_{ii})^2`. Always UEV <= FPE <=
GCV; GCV <= BIC holds while :math:`\gamma \le N(\ln N - 2)/(\ln N - 1)`, that is for all but nearly interpolating fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayessel._check import (
    FloatArray,
    IntArray,
    as_count,
    as_matrix,
    as_positive,
    as_target,
    one_of,
)
from bayessel._numerics import local_minima
from bayessel._row_weights import RowWeights
from bayessel.criteria import CRITERIA
from bayessel.criteria.error_estimates import BIC, FPE, GCV, UEV
from bayessel.criteria.leave_one_out import LOO
from bayessel.criteria.registry import OF_RIDGE, OF_SUMS, from_sums
from bayessel.fit import Evidence, Status, worst
from bayessel.linear.design_fit import DesignFit
from bayessel.linear.reported_sums import Sums, sums
from bayessel.linear.ridge_criteria import curve, evaluate_sums
from bayessel.linear.spectrum import Spectrum, as_spectrum
from bayessel.linear.weight_posterior import Posterior
from bayessel.policy import RIVAL_SHARE

_EPS = float(np.finfo(float).eps)


class PenaltyOptimum(NamedTuple):
    """A local minimum of a criterion: the penalty, one or one per column, and the value."""

    lam: float | FloatArray
    value: float


@dataclass(frozen=True, eq=False, kw_only=True)
class RidgeFit(DesignFit):
    """A ridge regression whose penalty was chosen by a criterion.

    Attributes
    ----------
    lam : float or (M,) array
        The penalty, one ('global') or one per column ('local'; infinity marks a pruned column).
    criterion, value
        The criterion and its value at the minimum.
    optima : tuple of PenaltyOptimum
        All local minima over a global penalty, best first; those that leave too few rows to the noise (less than a
        tenth for GCV and LOO, a quarter for UEV, FPE and BIC) come last: there they say nothing. With local penalties
        the one minimum that was found.
    criteria : dict
        Every criterion at `lam`, and gamma (the unpenalised directions included).
    beta : float
        One over the unbiased estimate of variance, S/(N - gamma).
    gamma : float
        Effective number of parameters, the unpenalised directions included.
    evidence : Evidence or None
        Of the equivalent Gaussian prior, plugged in, not maximised; None where a local penalty is zero (the prior is
        improper then, see `notes`).

    Examples
    --------
    >>> x = np.linspace(-1.0, 1.0, 30)
    >>> fit = fit_ridge(x[:, None] ** np.arange(6), np.sin(3.0 * x) + 0.1 * np.cos(40.0 * x), criterion="gcv")
    >>> fit.criterion, bool(fit.lam > 0.0), sorted(fit.criteria)[:3]
    ('gcv', True, ['bic', 'fpe', 'gamma'])
    """

    lam: float | FloatArray
    criterion: str
    value: float
    optima: tuple[PenaltyOptimum, ...]
    criteria: dict[str, float]

    @property
    def alpha(self) -> float | FloatArray:
        """Weight precisions of the equivalent Gaussian prior, lambda beta."""
        return self.lam * self.beta

    @property
    def leaves_noise(self) -> bool:
        """Whether the minimum leaves the noise as many rows as its criterion needs to mean something."""
        return CRITERIA[self.criterion].has_meaning(self.n_counted, self.gamma)

    @property
    def basis(self) -> IntArray:
        """The columns that are not pruned."""
        return np.flatnonzero(np.isfinite(np.broadcast_to(self.lam, self.coef.shape)))


def search_range(spectrum: Spectrum) -> tuple[float, float]:
    """Range of log lambda outside which nothing changes in double precision."""
    largest = float(spectrum.s[0]) if len(spectrum.s) and spectrum.s[0] > 0.0 else 1.0
    # singular values below eps s_max max(N, M) are rounding: a ridge below their square would only listen to them
    smallest = largest * _EPS * max(spectrum.n_counted, spectrum.n_columns)
    return 2.0 * float(np.log(smallest)), 2.0 * float(np.log(largest)) + float(np.log(1e12))


def fit_ridge(
    Phi: npt.ArrayLike | Spectrum,
    t: npt.ArrayLike | None = None,
    *,
    criterion: str = GCV.name,
    penalty: str = "global",
    centre: bool = False,
    start: npt.ArrayLike | None = None,
    max_sweeps: int = 100,
    tol: float = 1e-5,
    noise_std: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> RidgeFit:
    """Ridge regression with the penalty chosen by a criterion.

    Parameters
    ----------
    Phi, t
        Design (N, M) and target (N,), or (for a global penalty) a `Spectrum` alone.
    criterion
        'gcv', 'loo', 'uev', 'fpe' or 'bic'.
    penalty
        'global': one lambda, every local minimum of the criterion found on the log axis.
        'local': one lambda per column, each set to the analytic minimiser of GCV in turn until GCV stops falling;
        infinite ones prune their column. GCV only.
    centre
        Give the bias (not a column of `Phi`) a flat prior.
    start
        'local' starts from this penalty (a number or one per column) instead of the best global one (of global minima
        within 5 % the smoothest).
    max_sweeps, tol
        'local' stops when a sweep lowers GCV by less than `tol` of itself.
    noise_std, sample_weight
        As in `fit_evidence`; criteria are those of the multiplied rows, and 'loo' leaves out the whole of a row.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = np.linspace(0, 1, 40)
    >>> Phi = np.exp(-((x[:, None] - x) ** 2) / 0.05**2)
    >>> fit = fit_ridge(Phi, np.sin(12 * x) + 0.1 * rng.normal(size=40))
    >>> fit.value == fit.criteria["gcv"] == min(value for _, value in fit.optima)
    True
    """
    one_of(criterion, "criterion", OF_RIDGE)
    one_of(penalty, "penalty", ("global", "local"))
    as_count(max_sweeps, "max_sweeps")
    as_positive(tol, "tol")
    began = perf_counter()
    if penalty == "local":
        from bayessel.linear.local_ridge import fit_local

        if criterion != GCV.name:
            raise ValueError(f"local penalties have an analytic minimiser for 'gcv' only, got criterion={criterion!r}")
        if isinstance(Phi, Spectrum) or t is None:
            raise TypeError(
                "local penalties need the design and the target themselves: fit_ridge(Phi, t, penalty='local')"
            )
        design = as_matrix(Phi, "Phi")
        fit = fit_local(
            design,
            as_target(t, design.shape[0]),
            centre=centre,
            start=start,
            max_sweeps=max_sweeps,
            tol=tol,
            weights=RowWeights.of(len(design), noise_std, sample_weight),
        )
        return replace(fit, seconds=perf_counter() - began)
    if start is not None:
        raise ValueError("start is for penalty='local'; a global penalty is found by a scan and needs none")
    rows = criterion == LOO.name
    spectrum = as_spectrum(Phi, t, centre, "fit_ridge", rows=rows, noise_std=noise_std, sample_weight=sample_weight)
    optima, notes = _minima(spectrum, criterion)
    fit = assemble(spectrum, float(optima[0].lam), optima[0].lam, criterion, optima, notes, ())
    return replace(fit, seconds=perf_counter() - began)


@dataclass(frozen=True, eq=False)
class RidgeMinimum:
    """Where a criterion is smallest over a global penalty, without the fit there.

    Attributes
    ----------
    lam, value : float
        The penalty, and the criterion.
    leaves_noise : bool
        Whether the noise is left as many rows as the criterion needs to mean something.
    notes : tuple of Status
        What to be wary of.
    loo_residuals : (N,) array or None
        Errors of each row under the model of all others, where the factorisation kept its rows.
    """

    lam: float
    value: float
    leaves_noise: bool
    notes: tuple[Status, ...]
    loo_residuals: FloatArray | None


def ridge_minimum(spectrum: Spectrum, criterion: str) -> RidgeMinimum:
    """The minimum that `fit_ridge` has, for those who ask for no more: its evidence is not computed."""
    optima, notes = _minima(spectrum, criterion)
    lam = float(optima[0].lam)
    at = sums(spectrum, lam, rows=spectrum.U is not None, determinant=False)
    values, _ = _judged(spectrum, at, notes)
    leaves_noise = CRITERIA[criterion].has_meaning(spectrum.n_counted, values["gamma"])
    left_out = None if at.diag_p is None else at.loo_residuals
    return RidgeMinimum(lam, values[criterion], leaves_noise, tuple(dict.fromkeys(notes)), left_out)


def _minima(spectrum: Spectrum, criterion: str) -> tuple[tuple[PenaltyOptimum, ...], list[Status]]:
    """All local minima over a global penalty, best first, and remarks."""
    lo, hi = search_range(spectrum)
    # a criterion is made of steps about 2 wide in log lambda: 0.05 resolves every minimum
    found = local_minima(lambda u: curve(spectrum, criterion, np.exp(u)), np.arange(lo, hi, 0.05))
    notes: list[Status] = []
    if not found:  # every value is infinite: as many unpenalised directions as rows
        found, notes = [(hi, np.inf)], [Status.TOO_FEW_ROWS]
    needed = CRITERIA[criterion].noise_share * spectrum.n_counted
    if all(float(spectrum.trace_p(np.exp(u))) < needed for u, _ in found):
        # the criterion falls all the way to interpolation, where it is a ratio of roundings: the constant is left
        found.append((hi, float(curve(spectrum, criterion, np.exp(hi))[0])))
    found.sort(key=lambda pair: (float(spectrum.trace_p(np.exp(pair[0]))) < needed, pair[1]))
    optima = tuple(PenaltyOptimum(float(np.exp(u)), float(value)) for u, value in found)
    if len(optima) > 1 and optima[0].value <= optima[1].value < (1.0 + RIVAL_SHARE) * optima[0].value:
        notes.append(Status.MULTIPLE_OPTIMA)
    if any(value < found[0][1] for _, value in found[1:]):
        notes.append(Status.INTERPOLATION)
    if found[0][0] >= hi - 0.1 or not spectrum.s.any():
        notes += [Status.PURE_NOISE] if Status.INTERPOLATION not in notes else []
    elif found[0][0] <= lo + 0.1:
        notes.append(Status.AT_BOUND)
    return optima, notes


def assemble(
    spectrum: Spectrum,
    unit_lam: float,
    lam: float | FloatArray,
    criterion: str,
    optima: tuple[PenaltyOptimum, ...],
    notes: list[Status],
    history: tuple[dict[str, float], ...],
) -> RidgeFit:
    """Put a result together from a factorisation and the ridge `unit_lam` of its scaled columns."""
    at = sums(spectrum, unit_lam, rows=spectrum.U is not None)
    values, variance = _judged(spectrum, at, notes)
    posterior = Posterior.of(spectrum, unit_lam, 1.0 / variance)
    improper = len(posterior.columns.flat) > 0
    if improper:
        notes.append(Status.IMPROPER_PRIOR)
    evidence = Evidence(posterior.assemble_evidence(at), "plug-in", integrated=posterior.integrated)
    return RidgeFit(
        lam=lam,
        criterion=criterion,
        value=values[criterion],
        optima=(PenaltyOptimum(lam, values[criterion]), *optima[1:]),  # the reported value is the refined one
        evidence=None if improper else evidence,
        criteria=values,
        gamma=values["gamma"],
        status=worst(notes),
        notes=tuple(dict.fromkeys(notes)),
        history=history,
        seconds=np.nan,
        posterior=posterior,
    )


def _judged(spectrum: Spectrum, at: Sums, notes: list[Status]) -> tuple[dict[str, float], float]:
    """Every criterion at one penalty and the variance of the noise; adds its remarks to `notes`."""
    values = evaluate_sums(spectrum, at)
    variance = values[UEV.name]
    floor = (4.0 * _EPS * (spectrum.t_scale or 1.0)) ** 2
    if spectrum.tss <= floor * spectrum.n_counted:
        notes.append(Status.CONSTANT_TARGET)
    elif variance <= floor:
        notes.append(Status.NOISE_AT_FLOOR)
    if (
        values["gamma"] > spectrum.n_counted - 1e-3
    ):  # nothing is left for the noise: its estimate is rounding over rounding
        notes.append(Status.TOO_FEW_ROWS)
        variance = np.inf
    variance = max(variance, floor) if np.isfinite(variance) else max(spectrum.tss / spectrum.n_counted, floor)
    return values, variance


def reestimate_lambda(
    Phi: npt.ArrayLike | Spectrum,
    t: npt.ArrayLike | None = None,
    *,
    criterion: str = GCV.name,
    start: float = 0.01,
    centre: bool = False,
    max_steps: int = 1000,
    tol: float = 1e-8,
) -> tuple[float, Status, tuple[dict[str, float], ...]]:
    r"""Iterate Orr's re-estimation of a global penalty from a start: it ends in the minimum the start leads to.

    Setting the derivative of the criterion :math:`h(\gamma)S` to zero gives
    :math:`\lambda = \frac{S\,\mathrm{tr}(A^{-1}-\lambda A^{-2})}{2\,w^TA^{-1}w}\frac{h'}{h}`, with :math:`h'/h` equal
    to :math:`1/(N-\gamma)` (UEV), :math:`2N/(N^2-\gamma^2)` (FPE), :math:`2/(N-\gamma)` (GCV) and
    :math:`N\ln N/((N+(\ln N-1)\gamma)(N-\gamma))` (BIC). Kept for comparison: `fit_ridge` finds all minima.

    Returns
    -------
    lam, status, history
    """
    one_of(criterion, "criterion", OF_SUMS)
    lam = as_positive(start, "start")
    spectrum = as_spectrum(Phi, t, centre, "reestimate_lambda")
    n, s2 = spectrum.n_counted, spectrum.s**2
    history = []
    for step in range(as_count(max_steps, "max_steps")):
        trace, misfit = float(spectrum.trace_p(lam)), float(spectrum.sum_squares(lam))
        gamma = n - trace
        history.append({"step": float(step), "lam": lam, "value": float(from_sums(criterion, n, misfit, trace))})
        share, rest = s2 / (s2 + lam), lam / (s2 + lam)  # free of units, which cubes would take out of range
        fall = float(share @ rest)  # lambda tr(A^-1 - lambda A^-2)
        stiffness = float((share * rest**2) @ spectrum.z**2)  # lambda^2 w^T A^-1 w
        if stiffness <= 0.0 or trace <= 0.0:
            return lam, Status.AT_BOUND, tuple(history)
        ratio = {
            UEV.name: 1.0 / trace,
            FPE.name: 2.0 * n / ((n + gamma) * trace),
            GCV.name: 2.0 / trace,
            BIC.name: n * np.log(n) / ((n + (np.log(n) - 1.0) * gamma) * trace),
        }[criterion]
        new = lam * float(misfit * fall * ratio / (2.0 * stiffness))
        if not 1e-300 < new < 1e300:
            return lam, Status.AT_BOUND, tuple(history)
        if abs(np.log(new / lam)) < tol:
            return new, Status.CONVERGED, tuple(history)
        lam = new
    return lam, Status.STEP_LIMIT, tuple(history)
