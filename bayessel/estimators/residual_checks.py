r"""Residuals beside the normal noise, even and without a trend, that every regressor here assumes.

Patterns are looked for in residuals of rows left out, over their standard deviations. Along every input, the fitted
values and the order of the rows, ranks x of the rows in (−1, 1) are the places of Legendre polynomials, and

.. math:: N R^2 \sim \chi^2_k

is the share of variance that k of them explain: of the normal scores of the residuals (k = 3: a trend), and of those of
their sizes (k = 2: uneven noise). A trend is also seen in neighbours along an order that resemble each other,
:math:`\sqrt N r_1 \sim N(0, 1)`. Scores of ranks make all this independent of the tails.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2, norm, rankdata

from bayessel._check import FloatArray
from bayessel._row_weights import RowWeights
from bayessel.estimators.referenced_fit import ReferencedFit
from bayessel.fit import Fit, LeaveOneOut, Status
from bayessel.linear.integrated.mixture import IntegratedFit

#: a residual further from the median than so many robust standard deviations is no normal noise; of N rows 1 + (9/N)²
#: times as many, for of few rows that deviation is itself unsure: 7.2 of 20 rows, in one of 1000 normal samples
FAR, UNSURE_ROWS = 6.0, 9.0
FEWEST_ROWS = 20
#: rows for each of which one more may lie far away
ROWS_PER_STRANGER = 200
#: standard deviation of normal noise over its median absolute deviation
_NORMAL = 1.4826
#: rows from which on patterns are looked for, share of well-specified fits that are remarked on, and the least share of
#: variance that a pattern explains: of many rows a smaller one may be sure, and yet does not matter
FEWEST_OF_PATTERNS, FALSE_ALARMS, LEAST_SHARE = 30, 0.004, 0.03
#: rows beyond which residuals are looked at of the fit to all rows, which are as good as those left out
MOST_LEFT_OUT = 5000
#: degrees of the polynomials of a trend and of uneven noise
TREND_DEGREE, SIZE_DEGREE = 3, 2
#: fitted values say something of patterns where their variance is so large a part of the residuals'
_LEAST_SIGNAL = 0.3


def remarks_on_residuals(residuals: FloatArray, weights: RowWeights | None = None) -> tuple[Status, ...]:
    """HEAVY_TAILS where residuals, (N,) or (N, K), are no normal noise; of normal ones in less than one fit of 200."""
    columns = residuals.reshape(len(residuals), -1)
    columns = columns if weights is None else columns / weights.std[:, None]
    return (Status.HEAVY_TAILS,) if any(map(_heavy, columns.T)) else ()


def remarks_on_fit(
    fit: Fit, residuals: FloatArray, X: FloatArray, y: FloatArray, weights: RowWeights | None = None
) -> tuple[Status, ...]:
    """All remarks on a fit to inputs (N, D) and a target (N,) or (N, K), with the residuals of all rows.

    A fit follows rows that lie far away, and a selection even more: up to 5000 rows, or where a reference stands behind
    the fit, residuals are those of rows left out, in units of all that is unknown of them.
    """
    if isinstance(fit, ReferencedFit):
        fit = fit.reference
    if len(X) <= MOST_LEFT_OUT or isinstance(fit, IntegratedFit):
        left_out = fit.leave_one_out()
        with np.errstate(invalid="ignore", divide="ignore"):
            residuals = left_out.errors / np.sqrt(left_out.variances)
        return (*remarks_on_residuals(residuals), *remarks_on_patterns(left_out, X, y))
    levels = np.ones(len(X)) if weights is None else weights.std
    variances = np.square(levels).reshape((-1,) + (1,) * (residuals.ndim - 1))
    left_out = LeaveOneOut.normal(residuals, np.broadcast_to(variances, residuals.shape))
    return (*remarks_on_residuals(residuals, weights), *remarks_on_patterns(left_out, X, y))


def remarks_on_patterns(left_out: LeaveOneOut, X: FloatArray, y: FloatArray) -> tuple[Status, ...]:
    """TREND_IN_RESIDUALS, UNEVEN_NOISE of rows left out, of inputs (N, D) and a target (N,) or (N, K)."""
    n = len(X)
    shape = (n, -1)
    errors, targets = left_out.errors.reshape(shape), y.reshape(shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        z = errors / np.sqrt(left_out.variances.reshape(shape))
    found = [_patterns(*column, X) for column in zip(z.T, errors.T, (targets - errors).T, strict=True)]
    names = (Status.TREND_IN_RESIDUALS, Status.UNEVEN_NOISE)
    return tuple(name for k, name in enumerate(names) if any(one[k] for one in found))


def _patterns(z: FloatArray, errors: FloatArray, fitted: FloatArray, X: FloatArray) -> tuple[bool, bool]:
    n = len(z)
    if n < FEWEST_OF_PATTERNS or not np.isfinite(z).all() or not np.ptp(z) > 0.0:
        return False, False
    orders = [X[:, j] for j in range(X.shape[1])] + [np.arange(n, dtype=np.float64)]
    if fitted.var() > _LEAST_SIGNAL * errors.var():
        # left out, rows of one place are fitted the lower the higher they lie themselves: they share one value
        place = np.unique(X, axis=0, return_inverse=True)[1].ravel()
        orders.append((np.bincount(place, fitted) / np.bincount(place))[place])
    orders = [order for order in orders if np.ptp(order) > 0.0]
    signed, sizes = _scores(z), _scores(np.abs(z))
    limit = FALSE_ALARMS / len(orders)
    trend = any(
        _explained(signed, order, TREND_DEGREE, 0.5 * limit) or _alike(signed, order, 0.5 * limit) for order in orders
    )
    # sizes follow a trend too: it has to be found first
    return trend, not trend and any(_explained(sizes, order, SIZE_DEGREE, limit) for order in orders)


def _scores(values: FloatArray) -> FloatArray:
    """Normal scores of the ranks, with mean zero."""
    scores = ndtri((rankdata(values) - 0.5) / len(values))
    return np.asarray(scores - scores.mean())


def _explained(scores: FloatArray, order: FloatArray, degree: int, limit: float) -> bool:
    """Whether polynomials of the ranks explain more of the variance than chance does."""
    place = 2.0 * (rankdata(order) - 0.5) / len(order) - 1.0
    basis = np.polynomial.legendre.legvander(place, degree)[:, 1:]
    basis = basis - basis.mean(axis=0)
    U, s, _ = np.linalg.svd(basis, full_matrices=False)
    U = U[:, s > 1e-8 * s[0]]  # of few different values there are fewer polynomials
    share = float(((scores @ U) ** 2).sum() / (scores @ scores))
    return share > LEAST_SHARE and bool(chi2.sf(len(scores) * share, U.shape[1]) < limit)


def _alike(scores: FloatArray, order: FloatArray, limit: float) -> bool:
    """Whether neighbours along an order without ties resemble each other."""
    if len(np.unique(order)) < len(order):
        return False
    along = scores[np.argsort(order, kind="stable")]
    likeness = float(along[1:] @ along[:-1] / (along @ along))
    return likeness > np.sqrt(LEAST_SHARE) and bool(norm.sf(np.sqrt(len(along)) * likeness) < limit)


def _heavy(residuals: FloatArray) -> bool:
    residuals = residuals[np.isfinite(residuals)]  # a row that alone decides its fit says nothing
    if len(residuals) < FEWEST_ROWS:
        return False
    away = np.abs(residuals - np.median(residuals))
    spread = _NORMAL * float(np.median(away))
    n = len(residuals)
    far = away > FAR * (1.0 + (UNSURE_ROWS / n) ** 2) * spread
    return spread > 0.0 and bool(far.sum() > n // ROWS_PER_STRANGER)
