"""Hierarchical design: each training set has test cases of its own (Rasmussen 1996, section 2.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import stats

from bayessel._check import FloatArray
from bayessel.diagnostics.delve._arguments import as_losses, size_of
from bayessel.diagnostics.delve._mean_posterior import MeanPosterior


@dataclass(frozen=True)
class Hierarchical:
    """What I training sets with J test cases each say of an expected loss, or of a difference of two.

    Attributes
    ----------
    mean : float
        Average over all cases.
    std_error : float
        Of the mean, over training sets and test cases alike.
    p_value : float
        Two-sided, of the hypothesis that the mean is nil: t test with I − 1 degrees of freedom on the I averages.
    sigma_a, sigma_e : float
        Standard deviations of the effects of training sets, and of cases within them.
    n_sets, n_cases : int
        I and J.
    averages : (I,) array
        Of the training sets.
    """

    mean: float
    std_error: float
    p_value: float
    sigma_a: float
    sigma_e: float
    n_sets: int
    n_cases: int
    averages: FloatArray
    within: float

    @cached_property
    def posterior(self) -> MeanPosterior:
        """What is known of the mean when the variances are not: eq. 2.16."""
        return MeanPosterior(self.averages, self.within, self.n_cases)


def hierarchical(losses: npt.ArrayLike, against: npt.ArrayLike | None = None) -> Hierarchical:
    r"""Mean, standard error and p-value of losses :math:`y_{ij} = \mu + a_i + \varepsilon_{ij}`.

    Parameters
    ----------
    losses : array (I, J)
        A row per training set, its own J test cases in the columns.
    against : array (I, J), optional
        Losses of another method on the same cases: then all is said of ``losses - against``.

    Notes
    -----
    :math:`\sigma_\varepsilon^2 = MS_\varepsilon`, :math:`\sigma_a^2 = \max(0, (MS_a - MS_\varepsilon)/J)`, and the
    standard error's square is :math:`\sigma_a^2/I + \sigma_\varepsilon^2/(IJ)`. The t test looks at the averages of the
    training sets alone, so that it needs no such estimates; with two or three training sets it is weak.

    References
    ----------
    Rasmussen (1996), Evaluation of Gaussian Processes and other Methods for Non-linear Regression, section 2.4.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.gamma(2.0, size=(8, 64))
    >>> result = hierarchical(base, base + 0.1 + 0.05 * rng.normal(size=(8, 64)))
    >>> round(result.mean, 1), result.p_value < 1e-3
    (-0.1, True)
    """
    y = as_losses(losses, against)
    unit = size_of(y)
    y = y / unit
    I, J = y.shape  # noqa: E741
    averages = y.mean(axis=1)
    mean = float(averages.mean())
    # residuals first: sums of squares of raw losses lose digits
    within = float(np.sum((y - averages[:, None]) ** 2))
    between = float(np.sum((averages - mean) ** 2))
    ms_a, ms_e = J * between / (I - 1), within / (I * (J - 1))
    variance_a = max(0.0, (ms_a - ms_e) / J)
    return Hierarchical(
        mean=unit * mean,
        std_error=unit * float(np.sqrt(variance_a / I + ms_e / (I * J))),
        p_value=_t_test(mean, between / (I * (I - 1)), I - 1),
        sigma_a=unit * float(np.sqrt(variance_a)),
        sigma_e=unit * float(np.sqrt(ms_e)),
        n_sets=I,
        n_cases=J,
        averages=unit * averages,
        within=within * unit * unit,
    )


def _t_test(mean: float, square: float, degrees: int) -> float:
    """Two-sided p of mean/√square; two methods that are one have p = 1."""
    if mean == 0.0:
        return 1.0
    with np.errstate(divide="ignore"):
        return float(2.0 * stats.t.sf(np.abs(mean) / np.sqrt(square), degrees))
