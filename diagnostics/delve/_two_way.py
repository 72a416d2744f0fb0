"""Two-way design: all training sets share one test set (Rasmussen 1996, section 2.5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from bayessel.diagnostics.delve._arguments import as_losses, size_of

#: with fewer training sets the quasi-F test finds significance too often for its p-values to be printed
FEW_SETS = 4


@dataclass(frozen=True)
class TwoWay:
    """What I training sets and one test set of J cases say of an expected loss, or of a difference of two.

    Attributes
    ----------
    mean, std_error : float
        Average over all, and its standard error over training sets and cases.
    p_value : float
        Of the hypothesis that the mean is nil, by a quasi-F test.
    p_text : str
        The same for print: "p < 0.05" and no more where there are fewer than four training sets.
    sigma_a, sigma_b, sigma_e : float
        Standard deviations of the effects of training sets, of test cases, and of their interaction.
    n_sets, n_cases : int
        I and J.
    """

    mean: float
    std_error: float
    p_value: float
    sigma_a: float
    sigma_b: float
    sigma_e: float
    n_sets: int
    n_cases: int

    @property
    def p_text(self) -> str:
        """For a table."""
        if self.n_sets < FEW_SETS and self.p_value < 0.05:
            return "p < 0.05"
        return f"p = {self.p_value:.2g}"


def two_way(losses: npt.ArrayLike, against: npt.ArrayLike | None = None) -> TwoWay:
    r"""Mean, standard error and p-value of losses :math:`y_{ij} = \mu + a_i + b_j + \varepsilon_{ij}`.

    Parameters
    ----------
    losses : array (I, J)
        A row per training set; columns are the cases of the common test set.
    against : array (I, J), optional
        Losses of another method on the same cases: then all is said of ``losses - against``.

    Notes
    -----
    Both effects are random, so no single F ratio has the right expectation; the quasi-F ratio
    :math:`(SS_m + MS_\varepsilon)/(MS_a + MS_b)` has it, with degrees of freedom after Satterthwaite. Its p-values are
    approximate: with no difference 2 to 7 % of them are below 0.05 for four training sets and more, up to 14 % for two,
    and a share is about 1: between 0.12 and 0.28 of them for four training sets, up to 0.35 for eight and many cases.

    References
    ----------
    Rasmussen (1996), Evaluation of Gaussian Processes and other Methods for Non-linear Regression, section 2.5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.gamma(2.0, size=(8, 1)) + rng.gamma(2.0, size=64)
    >>> result = two_way(base, base + 0.1 + 0.05 * rng.normal(size=(8, 64)))
    >>> round(result.mean, 1), result.p_value < 1e-3
    (-0.1, True)
    """
    y = as_losses(losses, against)
    unit = size_of(y)
    y = y / unit
    I, J = y.shape  # noqa: E741
    mean = float(y.mean())
    rows, columns = y.mean(axis=1) - mean, y.mean(axis=0) - mean
    rest = y - mean - rows[:, None] - columns
    ms_a, ms_b = J * np.sum(rows**2) / (I - 1), I * np.sum(columns**2) / (J - 1)
    ms_e = np.sum(rest**2) / ((I - 1) * (J - 1))
    variance_a, variance_b = max(0.0, (ms_a - ms_e) / J), max(0.0, (ms_b - ms_e) / I)
    return TwoWay(
        mean=unit * mean,
        std_error=unit * float(np.sqrt(variance_a / I + variance_b / J + ms_e / (I * J))),
        p_value=_quasi_f(I * J * mean**2, float(ms_a), float(ms_b), float(ms_e), I, J),
        sigma_a=unit * float(np.sqrt(variance_a)),
        sigma_b=unit * float(np.sqrt(variance_b)),
        sigma_e=unit * float(np.sqrt(ms_e)),
        n_sets=I,
        n_cases=J,
    )


def _quasi_f(ss_m: float, ms_a: float, ms_b: float, ms_e: float, I: int, J: int) -> float:  # noqa: E741
    """Return p of (SS_m + MS_e)/(MS_a + MS_b); two methods that are one have p = 1."""
    if ss_m == 0.0:
        return 1.0
    if ms_a + ms_b == 0.0:
        return 0.0
    # in units of the denominator: squares of tiny losses underflow
    unit = ms_a + ms_b
    m, a, b, e = ss_m / unit, ms_a / unit, ms_b / unit, ms_e / unit
    above = (m + e) ** 2 / (m**2 + e**2 / ((I - 1) * (J - 1)))
    below = 1.0 / (a**2 / (I - 1) + b**2 / (J - 1))
    return float(stats.f.sf(m + e, above, below))
