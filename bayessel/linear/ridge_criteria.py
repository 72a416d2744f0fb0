"""Criteria of ridge regression at a given penalty: all at one, or one at many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, as_matrix, as_positive_vector, as_target, check_magnitude
from bayessel.criteria.leave_one_out import LOO
from bayessel.criteria.registry import OF_SUMS, from_sums
from bayessel.linear.reported_sums import Sums, left_out, sums
from bayessel.linear.spectrum import Spectrum
from bayessel.linear.weight_posterior import check_ratio


def criteria(Phi: npt.ArrayLike, t: npt.ArrayLike, lam: npt.ArrayLike, *, centre: bool = False) -> dict[str, float]:
    """Every selection criterion of ridge regression at a given penalty.

    Parameters
    ----------
    Phi, t
        Design (N, M) and target (N,).
    lam
        Penalty, one or one per column; infinity prunes a column, zero leaves it unpenalised.
    centre
        Give the bias (not a column of `Phi`) a flat prior.

    Returns
    -------
    dict
        'loo', 'gcv', 'uev', 'fpe', 'bic' in the squared units of t, and 'gamma', the effective number of parameters.

    Examples
    --------
    >>> import numpy as np
    >>> line = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    >>> round(criteria(line, [1.1, 1.8, 3.1], lam=0.0)["uev"], 6)
    0.06
    """
    design = as_matrix(Phi, "Phi")
    target = as_target(t, design.shape[0])
    penalty = as_positive_vector(lam, "lam", design.shape[1], allow_zero=True, allow_inf=True)
    check_ratio(penalty, 1.0, "lam")
    check_magnitude(design, "Phi")
    if np.ndim(lam) == 0 and 0.0 < penalty[0] < np.inf:
        spectrum, ridge = Spectrum.of(design, target, centre=centre, rows=True), float(penalty[0])
    else:
        spectrum, ridge = Spectrum.weighed(design, target, penalty, centre=centre, rows=True), 1.0
    return evaluate_sums(spectrum, sums(spectrum, ridge, rows=True))


def curve(spectrum: Spectrum, name: str, lam: FloatArray) -> FloatArray:
    """Evaluate a criterion at each of many ridges."""

    def values(part: FloatArray) -> FloatArray:
        if name != LOO.name:
            return np.asarray(from_sums(name, spectrum.n_counted, spectrum.sum_squares(part), spectrum.trace_p(part)))
        complement = spectrum.leverage_complement(part)
        errors = left_out(spectrum.residuals(part), complement)
        return np.asarray((errors**2).sum(axis=1) / spectrum.n_counted)

    width = spectrum.n_rows if name == LOO.name else len(spectrum.s)
    parts = np.array_split(np.atleast_1d(lam), 1 + np.size(lam) * width // 4_000_000)  # working arrays of 32 MB
    return np.concatenate([values(part) for part in parts])


def evaluate_sums(spectrum: Spectrum, at: Sums) -> dict[str, float]:
    """Every criterion from the sums at one penalty; LOO only where they have the rows."""
    out = {} if at.diag_p is None else {LOO.name: float(np.sum(at.loo_residuals**2) / spectrum.n_counted)}
    out |= {name: float(from_sums(name, spectrum.n_counted, at.sum_squares, at.trace_p)) for name in OF_SUMS}
    return out | {"gamma": at.gamma + spectrum.n_flat}
