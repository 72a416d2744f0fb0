"""What losses on several training sets say of an expected loss: the two designs of Rasmussen (1996, section 2.4, 2.5).

Hierarchical: each training set has test cases of its own. Two-way: all training sets share one test set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import stats

from bayessel._check import FloatArray, as_matrix
from bayessel.diagnostics.delve._mean_posterior import MeanPosterior

#: with fewer training sets the quasi-F test finds significance too often for its p-values to be printed
FEW_SETS = 4


@dataclass(frozen=True)
class LossEstimate:
    """What I training sets and J test cases say of an expected loss, or of a difference of two.

    Attributes
    ----------
    mean, std_error : float
        Average over all, and its standard error over training sets and test cases alike.
    p_value : float
        Of the hypothesis that the mean is nil.
    sigma_a, sigma_e : float
        Standard deviations of the effects of training sets, and of what cases add to them.
    n_sets, n_cases : int
        I and J.
    """

    mean: float
    std_error: float
    p_value: float
    sigma_a: float
    sigma_e: float
    n_sets: int
    n_cases: int


@dataclass(frozen=True)
class Hierarchical(LossEstimate):
    """The estimate of `hierarchical`; its p-value is that of a t test with I − 1 degrees of freedom on the averages.

    Attributes
    ----------
    averages : (I,) array
        Of the training sets.
    within : float
        Sum of the squared deviations of the cases from them.
    """

    averages: FloatArray
    within: float

    @cached_property
    def posterior(self) -> MeanPosterior:
        """What is known of the mean when the variances are not: eq. 2.16."""
        return MeanPosterior(self.averages, self.within, self.n_cases)


@dataclass(frozen=True)
class TwoWay(LossEstimate):
    """The estimate of `two_way`; its p-value is that of a quasi-F test, `sigma_e` belongs to the interaction.

    Attributes
    ----------
    sigma_b : float
        Standard deviation of the effects of test cases.
    """

    sigma_b: float

    @property
    def p_text(self) -> str:
        """The p-value for print: "p < 0.05" and no more where there are fewer than four training sets."""
        if self.n_sets < FEW_SETS and self.p_value < 0.05:
            return "p < 0.05"
        return f"p = {self.p_value:.2g}"


def hierarchical(losses: npt.ArrayLike, against: npt.ArrayLike | None = None) -> Hierarchical:
    r"""Mean, standard error and p-value of losses :math:`y_{ij} = \mu + a_i + \varepsilon_{ij}`.

    Parameters
    ----------
    losses : array (I, J)
        A row per training set, its J test cases in the columns.
    against : array (I, J), optional
        Losses of another method on the same cases: then all is said of ``losses - against``.

    Notes
    -----
    :math:`\sigma_\varepsilon^2 = MS_\varepsilon`, :math:`\sigma_a^2 = \max(0, (MS_a - MS_\varepsilon)/J)`, and the
    standard error's square is :math:`\sigma_a^2/I + \sigma_\varepsilon^2/(IJ)`. The t test looks at the averages of the
    training sets alone, so that it needs no such estimates; with two or three training sets it is weak.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.gamma(2.0, size=(8, 64))
    >>> result = hierarchical(base, base + 0.1 + 0.05 * rng.normal(size=(8, 64)))
    >>> round(result.mean, 1), result.p_value < 1e-3
    (-0.1, True)
    """
    y, unit = _in_units(losses, against)
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


def two_way(losses: npt.ArrayLike, against: npt.ArrayLike | None = None) -> TwoWay:
    r"""Mean, standard error and p-value of losses :math:`y_{ij} = \mu + a_i + b_j + \varepsilon_{ij}`.

    Parameters
    ----------
    losses, against
        As in `hierarchical`; columns are the cases of the common test set.

    Notes
    -----
    Both effects are random, so no single F ratio has the right expectation; the quasi-F ratio
    :math:`(SS_m + MS_\varepsilon)/(MS_a + MS_b)` has it, with degrees of freedom after Satterthwaite. Its p-values are
    approximate: with no difference 2 to 7 % of them are below 0.05 for four training sets and more, up to 14 % for two,
    and a share is about 1: between 0.12 and 0.28 of them for four training sets, up to 0.35 for eight and many cases.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> base = rng.gamma(2.0, size=(8, 1)) + rng.gamma(2.0, size=64)
    >>> result = two_way(base, base + 0.1 + 0.05 * rng.normal(size=(8, 64)))
    >>> round(result.mean, 1), result.p_value < 1e-3
    (-0.1, True)
    """
    y, unit = _in_units(losses, against)
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


def _in_units(losses: npt.ArrayLike, against: npt.ArrayLike | None) -> tuple[FloatArray, float]:
    """Losses (I, J), less those of the second method, in a unit about as large as the largest, and the unit.

    It is a power of two: losses over it keep all digits, and their squares stay in range.
    """
    table = as_matrix(losses, "losses")
    if min(table.shape) < 2:
        raise ValueError(
            "losses must be (I, J), a row of J test cases for each of I training sets, both at least 2; got shape "
            f"{table.shape}: with fewer the variation cannot be estimated"
        )
    if against is not None:
        other = as_matrix(against, "against")
        if other.shape != table.shape:
            raise ValueError(
                f"against must be losses of the same {table.shape} training sets and cases, got shape {other.shape}"
            )
        table = table - other
    unit = float(np.ldexp(1.0, np.frexp(np.abs(table).max())[1] - 1)) if table.any() else 1.0
    return table / unit, unit


def _t_test(mean: float, square: float, degrees: int) -> float:
    """Two-sided p of mean/√square; two methods that are one have p = 1."""
    if mean == 0.0:
        return 1.0
    with np.errstate(divide="ignore"):
        return float(2.0 * stats.t.sf(np.abs(mean) / np.sqrt(square), degrees))


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


def turned(found: Hierarchical | TwoWay) -> Hierarchical | TwoWay:
    """The same comparison with the methods exchanged."""
    if isinstance(found, Hierarchical):
        return replace(found, mean=-found.mean, averages=-found.averages)
    return replace(found, mean=-found.mean)
