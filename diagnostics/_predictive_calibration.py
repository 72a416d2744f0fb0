r"""Are predictive distributions as wide as they should be? Coverage, integral transforms, sharpness, scores.

With the distribution function :math:`F_n` that predicts row n from other rows, the probability integral transforms
:math:`u_n = F_n(t_n)` of a calibrated model are uniform. Their empirical distribution function :math:`\hat F` is
compared with the uniform one by

.. math:: \int_0^1 |\hat F(u) - u|\,du,

the mean distance in probability between the levels that are promised and those that are kept, and by a test that allows
the transforms of rows left out to depend on each other (Tesso and Vehtari's pointwise order statistics combined by
Cauchy's distribution, as ArviZ computes it). Bands are simultaneous (Säilynoja, Bürkner and Vehtari 2022).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from bayessel._check import FloatArray, as_float_array
from bayessel.diagnostics.fit_reader import predictive_of, read, unwrap
from bayessel.fit import Fit, LeaveOneOut
from bayessel.pages.result_view import ResultView, ShownResult, Standing
from bayessel.prediction import Prediction

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from bayessel.pages.figures import ShownFigure

#: probabilities of the central intervals that are counted
LEVELS = (0.5, 0.8, 0.9, 0.95)
#: p-value below which predictions are said not to be calibrated
DOUBTED = 0.01
#: fewest rows of which anything is said
FEWEST_ROWS = 10
#: standard errors from which on the verdict names a reason
_CLEAR = 3.0


@dataclass(frozen=True, eq=False)
class PredictiveCalibration(ShownResult):
    """How well predictive distributions fit what was seen.

    Attributes
    ----------
    rows : str
        Which rows: "rows left out", each predicted from all others, or "new rows".
    target : (n,) array
        What was seen; rows without a prediction are not among them.
    prediction : Prediction
        What was predicted.
    n_unknown : int
        Rows without a prediction.
    """

    rows: str
    target: FloatArray = field(repr=False)
    prediction: Prediction = field(repr=False)
    n_unknown: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.target)

    @cached_property
    def pit(self) -> FloatArray:
        """Probability integral transforms, (n,): uniform if all is well."""
        return np.exp(self.prediction.log_cdf(self.target))

    @cached_property
    def standardised(self) -> FloatArray:
        """Errors in units of their predicted standard deviations, (n,)."""
        return np.asarray((self.target - self.prediction.mean) / self.prediction.std)

    @cached_property
    def coverage(self) -> pd.DataFrame:
        """Central intervals: ``nominal`` probability (the index), ``covered`` share of rows, ``se``.

        The standard error is that of the share if the interval is right, :math:`sqrt(q(1-q)/n)`.
        """
        nominal = np.array(LEVELS)
        away = np.abs(self.pit - 0.5)
        table = pd.DataFrame(
            {
                "covered": [(away <= 0.5 * level).mean() for level in nominal],
                "se": np.sqrt(nominal * (1.0 - nominal) / self.n_rows),
            },
            index=pd.Index(nominal, name="nominal"),
        )
        return table

    @cached_property
    def miscalibration(self) -> float:
        r"""Mean distance :math:`\int|\hat F(u)-u|du` from the uniform one, 0 to 1/2: 0.31/√n if all is well."""
        return distance_from_uniform(self.pit)

    @cached_property
    def p_value(self) -> float:
        """Of the transforms, or ones less uniform, if the predictions are calibrated."""
        from arviz_stats.base.array import array_stats

        inside = np.clip(self.pit, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
        return float(array_stats.uniformity_test(inside)[0])

    @property
    def calibrated(self) -> bool:
        """Whether nothing stands against the predictions: the p-value is at least 0.01."""
        return self.p_value >= DOUBTED

    @property
    def variance_factor(self) -> float:
        """Mean squared standardised error: what the variances would have to be multiplied by; it is reported only."""
        return float(np.mean(self.standardised**2))

    @property
    def variance_factor_se(self) -> float:
        """Its standard error."""
        return float(np.std(self.standardised**2, ddof=1) / np.sqrt(self.n_rows))

    @property
    def mean_std(self) -> float:
        """Sharpness: mean standard deviation of the predictions, in units of y."""
        return float(self.prediction.std.mean())

    @property
    def relative_std(self) -> float:
        """Sharpness in units of the standard deviation of the target: near 1, a constant would be as sharp."""
        spread = float(self.target.std(ddof=1))
        return self.mean_std / spread if spread > 0.0 else np.nan

    @cached_property
    def mean_width(self) -> float:
        """Sharpness: mean width of the central 90 % intervals, in units of y."""
        low, high = self.prediction.quantile([0.05, 0.95])
        return float(np.mean(high - low))

    @cached_property
    def crps(self) -> float:
        """Mean continuous ranked probability score, in units of y; smaller is better."""
        return float(self.prediction.crps(self.target).mean())

    @cached_property
    def log_density(self) -> float:
        """Mean log density of what was seen, in nats a row; larger is better."""
        return float(self.prediction.log_density(self.target).mean())

    @property
    def numbers(self) -> pd.Series:
        """All numbers by name."""
        shares = zip(LEVELS, self.coverage["covered"], strict=True)
        found = {f"coverage {100 * level:.0f} %": float(share) for level, share in shares}
        names = (
            "miscalibration", "p_value", "variance_factor", "variance_factor_se", "mean_std", "relative_std",
            "mean_width", "crps", "log_density",
        )  # fmt: skip
        return pd.Series(found | {name: getattr(self, name) for name in names}, name=self.rows)

    def describe(self) -> str:
        """Return what was found, in a few lines for people."""
        columns = zip(LEVELS, self.coverage["covered"], self.coverage["se"], strict=True)
        shares = ", ".join(f"{100 * level:.0f} %: {100 * seen:.0f} ± {100 * se:.0f}" for level, seen, se in columns)
        unknown = f" ({self.n_unknown} more have no prediction)" if self.n_unknown else ""
        lines = [
            f"{self._verdict()} ({self.n_rows} {self.rows}{unknown})",
            f"central intervals cover {shares}",
            f"distance of the integral transforms from uniform {self.miscalibration:.3f}, p = {self.p_value:.2g}",
            f"variances would have to be multiplied by {self.variance_factor:.2f} ± {self.variance_factor_se:.2f}",
            f"standard deviations are {self.mean_std:.3g} on average, {self.relative_std:.2f} of that of the target; "
            f"90 % intervals are {self.mean_width:.3g} wide",
            f"ranked probability score {self.crps:.3g}, log density {self.log_density:.3f} nats a row",
        ]
        return "\n".join(lines)

    def _verdict(self) -> str:
        if self.calibrated:
            return "Calibrated, as far as these rows can tell"
        mean = float(self.standardised.mean())
        if abs(mean) > _CLEAR * self.standardised.std(ddof=1) / np.sqrt(self.n_rows):
            how = "too low" if mean > 0.0 else "too high"
        elif abs(self.variance_factor - 1.0) > _CLEAR * self.variance_factor_se:
            how = "too sure" if self.variance_factor > 1.0 else "not sure enough"
        else:
            how = "of another shape than what was seen"
        return f"Not calibrated: predictions are {how}"

    def _text(self) -> str:
        return self.describe()

    def _view(self) -> ResultView:
        head, *rest = self.describe().splitlines()
        status = "calibrated" if self.calibrated else "not calibrated"
        return ResultView(head, status, Standing.of(self.calibrated), rest, then=".plot()")

    def plot(self) -> ShownFigure:
        """Draw the integral transforms in their band, coverage over probability, and errors over predicted ones."""
        from bayessel.diagnostics._predictive_calibration_plots import draw
        from bayessel.pages.figures import handed_over

        return handed_over(draw(self))


def predictive_calibration(
    fitted: Fit | BaseEstimator | Prediction,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    output: int | None = None,
) -> PredictiveCalibration:
    """Compare predictive distributions with what was seen: of rows left out, or of new rows.

    Whether a *sampler* draws from its posterior is another question: `bayessel.diagnostics.calibration`.

    Parameters
    ----------
    fitted
        A result of an engine or a fitted regressor, alone or in a pipeline. With `X` and `y` any regressor whose
        ``predict(X, return_std=True)`` gives standard deviations. Or, with `y` alone, a `Prediction`.
    X, y
        New rows, (n, D) and (n,); of an engine's result rows of what it was fitted to. None: each training row is
        predicted from all others, exactly where nothing has to be chosen anew. Hyperparameters and functions in use
        stay those of all rows, which flatters models that choose much; new rows do not.
    output
        Which of several outputs.

    Examples
    --------
    >>> import numpy as np
    >>> import bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=100)
    >>> found = predictive_calibration(bs.GPRegressor().fit(X, y))
    >>> found.calibrated, bool(0.8 < found.coverage.loc[0.9, "covered"] <= 1.0)
    (True, True)
    """
    if isinstance(fitted, Prediction):
        if X is not None or y is None:
            raise ValueError(
                "with a Prediction give what was seen at its rows: predictive_calibration(prediction, y=y)"
            )
        return _of("new rows", fitted, as_float_array(y, "y"), output)
    if (X is None) != (y is None):
        raise ValueError("give both X and y for new rows, or neither for the rows left out of the fit")
    if X is None or y is None:
        left_out = _left_out(fitted)
        if left_out.prediction is None:
            raise ValueError(
                "predictive_calibration is of real targets, whose integral transforms are uniform; counts have steps: "
                "compare leave_one_out().log_densities, or predictive(X).quantile(...) with new counts"
            )
        return _of("rows left out", left_out.prediction, left_out.target, output)
    return _of("new rows", predictive_of(fitted, X), as_float_array(y, "y"), output)


def _left_out(fitted: Any) -> LeaveOneOut:
    inner, _ = unwrap(fitted)
    fit = inner if isinstance(inner, Fit) else getattr(inner, "fit_", None)
    if not isinstance(fit, Fit):
        fit = read(fitted).fit  # says what is wrong
    if fit.predicts_labels:
        raise ValueError("predictive_calibration is of regressors; targets here are labels: use class_calibration")
    return fit.leave_one_out()


def _of(rows: str, there: Prediction, target: FloatArray, output: int | None) -> PredictiveCalibration:
    shape = there.means.shape[1:]
    if target.shape != shape:
        raise ValueError(f"y must have the shape of what is predicted, {shape}; got {target.shape}")
    if len(shape) == 2:
        if output is None and shape[1] > 1:
            raise ValueError(f"there are {shape[1]} outputs; look at one at a time: output=0 ... {shape[1] - 1}")
        column = 0 if output is None else output
        if not isinstance(column, int) or not 0 <= column < shape[1]:
            raise ValueError(f"output must be one of 0 ... {shape[1] - 1}, got {output!r}")
        there, target = _some(there, (slice(None), column)), target[:, column]
    elif output not in (None, 0):
        raise ValueError(f"there is one output; got output={output!r}")
    known = np.isfinite(target) & np.isfinite(there.mean) & np.isfinite(there.variance)
    if known.sum() < FEWEST_ROWS:
        raise ValueError(
            f"calibration needs at least {FEWEST_ROWS} rows with a prediction, got {int(known.sum())} of {len(known)}"
        )
    if not (there.variance[known] > 0.0).all():
        raise ValueError("some predictions have no width: they cannot be calibrated; give them a noise")
    return PredictiveCalibration(rows, target[known], _some(there, known), int((~known).sum()))


def _some(there: Prediction, chosen: Any) -> Prediction:
    """Distributions of some rows, or of one output."""
    index = (slice(None), *chosen) if isinstance(chosen, tuple) else (slice(None), chosen)
    weights, inside = there.log_weights, there.function_variances
    return Prediction(
        there.means[index],
        there.variances[index],
        None if weights is None else weights[index],
        None if inside is None else inside[index],
    )


def distance_from_uniform(pit: FloatArray) -> float:
    r"""Mean distance :math:`\int_0^1|\hat F(u)-u|\,du` of an empirical distribution function from the uniform one."""
    edges = np.concatenate([[0.0], np.sort(pit), [1.0]])
    heights = np.arange(len(pit) + 1) / len(pit)
    low, high = edges[:-1] - heights, edges[1:] - heights
    # the integral of |x| from low to high
    return float(0.5 * (high * np.abs(high) - low * np.abs(low)).sum())
