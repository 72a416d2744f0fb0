r"""Are predicted probabilities of classes as often right as they say? Reliability, scores, and two tests.

For indicators :math:`t_n` with predicted probabilities :math:`p_n` both

.. math:: z_1 = \frac{\sum(t_n-p_n)}{\sqrt{\sum p_n(1-p_n)}},\quad
    z_2 = \frac{\sum(t_n-p_n)(1-2p_n)}{\sqrt{\sum(1-2p_n)^2p_n(1-p_n)}}

are about standard normal if the probabilities are right: the first sees probabilities that are too high or low
throughout, the second (Spiegelhalter 1986) those too near to, or too far from, nought and one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from bayessel._check import FloatArray
from bayessel.diagnostics.fit_reader import read, unwrap
from bayessel.fit import Fit, LeaveOneOut
from bayessel.pages.page import BEST, INK, LINE, SOFT
from bayessel.pages.result_view import ResultView, ShownResult, Standing
from bayessel.prediction import ClassPrediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

    from bayessel.pages.figures import ShownFigure

#: p-value of either test below which probabilities are said not to be right
DOUBTED = 0.005
#: fewest rows of which anything is said, and rows of a group of the table
FEWEST_ROWS, ROWS_A_GROUP, MOST_GROUPS = 10, 15, 10


@dataclass(frozen=True, eq=False)
class ClassCalibration(ShownResult):
    """How well predicted probabilities fit the labels that were seen.

    Attributes
    ----------
    rows : str
        Which rows: "rows left out" or "new rows".
    probabilities : (n, C) array
    codes : (n,) array
        Place of the label that was seen; −1 where it is none of the classes.
    """

    rows: str
    probabilities: FloatArray = field(repr=False)
    codes: npt.NDArray[np.intp] = field(repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @cached_property
    def hits(self) -> tuple[FloatArray, FloatArray]:
        """Indicators and their probabilities: of the second of two classes, or that the likeliest is right."""
        if self.probabilities.shape[1] == 2:
            return (self.codes == 1) * 1.0, self.probabilities[:, 1]
        first = self.probabilities.argmax(axis=1)
        return (self.codes == first) * 1.0, self.probabilities.max(axis=1)

    @property
    def error(self) -> float:
        """Share of rows whose likeliest label is wrong."""
        return float(np.mean(self.probabilities.argmax(axis=1) != self.codes))

    @property
    def log_loss(self) -> float:
        """Mean of minus the log probability of the label seen, in nats."""
        seen = self.codes >= 0
        own = np.where(seen, self.probabilities[np.arange(self.n_rows), np.maximum(self.codes, 0)], 0.0)
        with np.errstate(divide="ignore"):
            return -float(np.mean(np.log(own)))

    @property
    def brier(self) -> float:
        """Mean squared error of the probabilities: of the second of two classes, or summed over the classes."""
        wanted = self.codes[:, None] == np.arange(self.probabilities.shape[1])
        squares = (self.probabilities - wanted) ** 2
        return float(np.mean(squares[:, 1] if squares.shape[1] == 2 else squares.sum(axis=1)))

    @cached_property
    def z(self) -> tuple[float, float]:
        """The two statistics, standard normal if the probabilities are right."""
        t, p = self.hits
        off, variance = t - p, p * (1.0 - p)
        found = []
        for weight in (np.ones_like(p), 1.0 - 2.0 * p):
            spread = float(np.sqrt((weight**2 * variance).sum()))
            total = float((weight * off).sum())
            found.append(total / spread if spread > 1e-12 else (0.0 if abs(total) < 1e-9 else np.inf))
        return found[0], found[1]

    @property
    def calibrated(self) -> bool:
        """Whether neither test doubts the probabilities."""
        return bool(all(2.0 * stats.norm.sf(abs(z)) >= DOUBTED for z in self.z))

    @cached_property
    def table(self) -> pd.DataFrame:
        """Reliability: rows in groups of rising probability, what was predicted in the mean, what was seen, and z."""
        t, p = self.hits
        order = np.argsort(p, kind="stable")
        groups = np.array_split(order, int(np.clip(len(p) // ROWS_A_GROUP, 1, MOST_GROUPS)))
        rows = []
        for group in groups:
            spread = float(np.sqrt((p[group] * (1.0 - p[group])).sum()))
            off = float((t[group] - p[group]).sum())
            z = off / spread if spread > 1e-12 else (0.0 if abs(off) < 1e-9 else np.inf)
            rows.append({"rows": len(group), "predicted": p[group].mean(), "seen": t[group].mean(), "z": z})
        return pd.DataFrame(rows)

    def verdict(self) -> str:
        """Say in a few sentences whether the probabilities can be used."""
        scores = f"{100.0 * self.error:.1f} % of {self.n_rows} {self.rows} are wrong, log loss {self.log_loss:.3f} nats"
        if self.calibrated:
            return f"The probabilities are about right: {scores}, no test doubts them."
        throughout, spread = self.z
        why = []
        if 2.0 * stats.norm.sf(abs(throughout)) < DOUBTED:
            why.append("too low throughout" if throughout > 0.0 else "too high throughout")
        if 2.0 * stats.norm.sf(abs(spread)) < DOUBTED:
            # probabilities near nought and one that fail make the sum positive
            why.append("too near to nought and one" if spread > 0.0 else "too far from nought and one")
        return f"The probabilities are {' and '.join(why)}: {scores} (z = {throughout:.1f} and {spread:.1f})."

    def _text(self) -> str:
        return self.verdict()

    def _view(self) -> ResultView:
        status = "about right" if self.calibrated else "not right"
        title = f"Probabilities of {self.n_rows} {self.rows}"
        return ResultView(title, status, Standing.of(self.calibrated), [self.verdict()], (), self.table, ".plot()")

    def plot(self) -> ShownFigure:
        """Draw what was seen over what was predicted, with the 95 % range of a right probability, and all of them."""
        from bayessel.pages.figures import handed_over, new_figure

        figure = new_figure(7.0, 3.4)
        self.draw(*figure.subplots(1, 2))
        return handed_over(figure)

    def draw(self, first: Axes, second: Axes) -> None:
        """The same in axes that are there."""
        color, table = LINE if self.calibrated else BEST, self.table
        low, high = (stats.binom.ppf(q, table["rows"], table["predicted"]) / table["rows"] for q in (0.025, 0.975))
        first.plot([0.0, 1.0], [0.0, 1.0], color=INK, lw=0.8)
        first.vlines(table["predicted"], low, high, color=SOFT, lw=4.0)
        first.plot(table["predicted"], table["seen"], "o", ms=4, color=color)
        two = self.probabilities.shape[1] == 2
        what = "probability of the second class" if two else "probability of the likeliest class"
        first.set(xlim=(0.0, 1.0), ylim=(-0.02, 1.02), xlabel=what, title="Share of rows seen")
        second.hist(self.hits[1], bins=np.linspace(0.0, 1.0, 21).tolist(), color=SOFT)
        second.set(xlim=(0.0, 1.0), xlabel=what, title="Rows")
        for ax in (first, second):
            ax.spines[["top", "right"]].set_visible(False)
            ax.tick_params(labelsize=8)


def class_calibration(
    fitted: Fit | BaseEstimator | ClassPrediction, X: ArrayLike | None = None, y: ArrayLike | None = None
) -> ClassCalibration:
    """Compare probabilities of classes with the labels that were seen: of rows left out, or of new rows.

    Parameters
    ----------
    fitted
        A result of an engine for labels, or a fitted classifier, alone or in a pipeline. With `X` and `y` any with
        ``predict_proba``. Or, with `y` alone, a `ClassPrediction`.
    X, y
        New rows, (n, D) and labels (n,). None: each training row is predicted from all others, hyperparameters held,
        which flatters models that choose much; new rows do not.

    Examples
    --------
    >>> import numpy as np
    >>> import bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = rng.random(100) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    >>> found = class_calibration(bs.EvidenceClassifier().fit(X, y))
    >>> found.calibrated, bool(found.log_loss < np.log(2.0))
    (True, True)
    """
    if isinstance(fitted, ClassPrediction):
        if X is not None or y is None:
            raise ValueError("with a ClassPrediction give the labels seen at its rows: class_calibration(there, y=y)")
        return of_new_rows(fitted, y)
    if (X is None) != (y is None):
        raise ValueError("give both X and y for new rows, or neither for the rows left out of the fit")
    inner: Any = unwrap(fitted)[0]
    if X is None or y is None:
        fit = inner if isinstance(inner, Fit) else getattr(inner, "fit_", None)
        if not isinstance(fit, Fit):
            fit = read(fitted).fit  # says what is wrong
        if not fit.predicts_labels:
            raise ValueError("class_calibration is of labels; targets here are numbers: use predictive_calibration")
        return of_left_out(fit.leave_one_out())
    if isinstance(inner, Fit):
        there = inner.predict(X)
        if not isinstance(there, ClassPrediction):
            raise ValueError("class_calibration is of labels; targets here are numbers: use predictive_calibration")
        return of_new_rows(there, y)
    whole: Any = fitted
    if getattr(inner, "predict_proba", None) is None:
        raise TypeError(f"{type(inner).__name__} has no predict_proba; class_calibration is of probabilities")
    return of_new_rows(ClassPrediction(whole.classes_, np.asarray(whole.predict_proba(X))), y)


def of_left_out(left_out: LeaveOneOut) -> ClassCalibration:
    """Of rows left out of a classifier, whose errors are indicators minus probabilities."""
    errors = left_out.errors if left_out.errors.ndim == 2 else np.column_stack([-left_out.errors, left_out.errors])
    # the one indicator that is one has the one error that is not negative
    codes = errors.argmax(axis=1)
    probabilities = (codes[:, None] == np.arange(errors.shape[1])) - errors
    return _checked("rows left out", np.clip(probabilities, 0.0, 1.0), codes)


def of_new_rows(there: ClassPrediction, y: Any) -> ClassCalibration:
    """Of new rows with labels."""
    labels, classes = np.asarray(y), np.asarray(there.classes)
    if labels.shape != (len(there.probabilities),):
        raise ValueError(f"y must be a label for each of {len(there.probabilities)} rows, got shape {labels.shape}")
    same = labels[:, None] == classes
    return _checked("new rows", there.probabilities, np.where(same.any(axis=1), same.argmax(axis=1), -1))


def _checked(rows: str, probabilities: FloatArray, codes: npt.NDArray[np.intp]) -> ClassCalibration:
    if len(codes) < FEWEST_ROWS:
        raise ValueError(f"calibration needs at least {FEWEST_ROWS} rows with a prediction, got {len(codes)}")
    return ClassCalibration(rows, probabilities, codes)
