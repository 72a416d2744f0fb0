r"""Which columns a sparse model is offered by default, and how wide its errors are: judged by folds fitted anew.

A model that selects functions, or one precision for each, is sure of itself: its evidence is maximised over the choice.
So three offers are compared by what refitted folds predict of rows held out: the radial functions with a linear trend
beside them, the trend alone, and the constant alone. For each, one factor multiplies the predictive variances,

.. math:: \max_s \sum_n \log N(t_n|m_n, s v_n) - \tfrac12(\log s/0.5)^2,

with the means and variances :math:`m_n, v_n` of the rows held out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayessel._check import FloatArray, IntArray
from bayessel._formulas import log_normal
from bayessel._numerics import few_threads
from bayessel.basis import Dictionary, RBFDictionary
from bayessel.estimators.held_out import N_FOLDS, gains_over_constant, mean_gain, some_rows, unsure
from bayessel.fit import Fit, Status
from bayessel.prediction import Prediction
from bayessel.work.interrupts import InterruptGuard

#: rows of which the folds are made
MOST_ROWS = 150
#: factors of the variance, and the standard deviation of the logarithm of one beforehand
FACTORS = np.exp(np.linspace(-0.5, 3.0, 36))
FACTOR_SPREAD = 0.5
#: least variance of a fit at its rows, in units of that of the folds at rows held out
SUREST = 0.5

#: offers of radial functions with a trend, and of columns that are given
WITH_TREND, GIVEN = ("functions and trend", "trend", "constant"), ("functions", "constant")

#: (columns, target) -> a fit
Select = Callable[[FloatArray, FloatArray], Fit]


@dataclass(frozen=True, eq=False)
class OfferedColumns:
    """What was chosen.

    Attributes
    ----------
    columns : (k,) array
        Columns of the dictionary that are offered.
    variance_factor : float
        By which the predictive variances of the folds are multiplied.
    rows : (n,) array
        Rows that the folds were made of.
    log_variance : float
        Mean logarithm of the variances of these rows when held out, the factor included; nan without folds.
    gain, error : float
        Nats per held-out row over a constant, and its standard error; nan with too few rows for folds.
    path : tuple of dict
        Every offer: its ``name``, ``gain`` and ``variance_factor``.
    notes : tuple of Status
        NO_BETTER_THAN_CONSTANT where `gain` is less than its error, INTERRUPTED after Ctrl-C.
    """

    columns: IntArray
    variance_factor: float
    rows: IntArray
    log_variance: float
    gain: float
    error: float
    path: tuple[dict[str, float | str], ...]
    notes: tuple[Status, ...]

    def factor_of(self, variances: FloatArray) -> float:
        """Factor for a fit to all rows, from its predictive variances at `rows`.

        That of the folds; larger where the fit is surer of these rows than more rows and having seen them explain: its
        selection has then gone further than in the folds, and its variances are raised to half of theirs.
        """
        if not np.isfinite(self.log_variance):
            return self.variance_factor
        sure = float(np.log(np.maximum(variances, np.finfo(float).tiny)).mean())
        return max(self.variance_factor, SUREST * float(np.exp(min(self.log_variance - sure, 200.0))))


def choose_columns(X: FloatArray, t: FloatArray, dictionary: Dictionary, own: bool, select: Select) -> OfferedColumns:
    """Compare the offers.

    Parameters
    ----------
    X, t
        Inputs (N, D) and target (N,).
    dictionary
        Radial functions, the inputs, and a bias where the engine does not add it itself; or columns that are given, of
        which all or none are offered.
    own
        Whether the centres are the rows: each fold then has its own.
    select
        The engine.
    """
    every = np.arange(dictionary.n_columns)
    rows, rank = some_rows(X, t[:, None])
    step = -(-len(rows) // MOST_ROWS)
    rows, fold = rows[::step], np.unique(rank[::step], return_inverse=True)[1]
    if not np.ptp(t[rows]) > 0.0:
        return OfferedColumns(every, 1.0, rows, np.nan, np.nan, np.nan, (), ())
    if fold.max() + 1 < 2 * N_FOLDS:  # no folds to judge by: the constant, which cannot be surer than the rows
        constant = _offered(dictionary, "constant")
        return OfferedColumns(constant, 1.0, rows, np.nan, np.nan, np.nan, (), (Status.TOO_FEW_ROWS,))
    judged: list[tuple[str, float, float, FloatArray]] = []
    with few_threads(len(rows) ** 2), np.errstate(all="ignore"), InterruptGuard(lambda: judged) as guard:
        for name in WITH_TREND if isinstance(dictionary, RBFDictionary) else GIVEN:
            judged.append((name, *_judged(X[rows], t[rows], fold % N_FOLDS, dictionary, own, select, name)))
    name, factor, spread, gains = max(judged, key=lambda one: mean_gain(one[3]))
    notes = [Status.INTERRUPTED] if guard.interrupted else []
    if unsure(gains):
        notes.append(Status.NO_BETTER_THAN_CONSTANT)
    path: tuple[dict[str, float | str], ...] = tuple(
        {"name": each, "gain": mean_gain(g), "variance_factor": s} for each, s, _, g in judged
    )
    error = float(gains.std() / np.sqrt(len(gains)))
    columns = _offered(dictionary, name)
    return OfferedColumns(columns, factor, rows, spread, mean_gain(gains), error, path, tuple(notes))


def _offered(dictionary: Dictionary, name: str) -> IntArray:
    """Columns of an offer."""
    end = dictionary.n_columns - int(dictionary.bias)
    trend = len(dictionary.centers) if isinstance(dictionary, RBFDictionary) else end
    start = {"functions and trend": 0, "functions": 0, "trend": trend, "constant": end}[name]
    return np.arange(start, dictionary.n_columns)


def _judged(
    X: FloatArray,
    t: FloatArray,
    fold: npt.NDArray[np.intp],
    whole: Dictionary,
    own: bool,
    select: Select,
    name: str,
) -> tuple[float, float, FloatArray]:
    """Factor of the variance of an offer, the mean log variance with it, and each row's nats over a constant."""
    there: dict[int, Prediction] = {}

    def predicted(k: int, train: npt.NDArray[np.bool_], seen: FloatArray) -> Prediction:
        if k not in there:
            d = whole
            if isinstance(d, RBFDictionary) and own:
                d = RBFDictionary(X[train], d.width, kind=d.kind, bias=d.bias, linear=d.slopes)
            columns = _offered(d, name)
            # a column of zeros stands for an empty design
            design, fresh = (
                d.design(rows)[:, columns] if len(columns) else np.zeros((len(rows), 1))
                for rows in (X[train], X[~train])
            )
            found = select(design, seen).predict(fresh)
            assert isinstance(found, Prediction)
            there[k] = found
        return there[k]

    gains_over_constant(t[:, None], fold, predicted)
    mean, variance = np.empty(len(t)), np.empty(len(t))
    for k, found in there.items():
        mean[fold == k], variance[fold == k] = found.mean, found.variance
    worth = [log_normal(t - mean, variance * s).sum() - 0.5 * (np.log(s) / FACTOR_SPREAD) ** 2 for s in FACTORS]
    factor = float(FACTORS[int(np.argmax(np.where(np.isfinite(worth), worth, -np.inf)))])
    there = {k: Prediction.normal(found.mean, found.variance * factor) for k, found in there.items()}
    return factor, float(np.log(factor * variance).mean()), gains_over_constant(t[:, None], fold, predicted)
