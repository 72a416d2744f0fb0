"""`PredictiveCalibrationDisplay`: whether error bars, or probabilities, keep what they promise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike

from bayessel.diagnostics._predictive_calibration import PredictiveCalibration, predictive_calibration
from bayessel.diagnostics._predictive_calibration_plots import draw_into
from bayessel.diagnostics.class_reliability import ClassCalibration, class_calibration
from bayessel.diagnostics.fit_reader import unwrap
from bayessel.pages.figures import ShownDisplay, panels_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


@dataclass
class PredictiveCalibrationDisplay(ShownDisplay):
    """Integral transforms in their band, coverage of intervals, and errors over predicted ones; of labels reliability.

    Attributes
    ----------
    result : PredictiveCalibration or ClassCalibration
        The numbers; ``print`` it for the verdict.
    figure_, axes_
        What was drawn in.

    Examples
    --------
    >>> import numpy as np, bayessel as bs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2.0, 2.0, size=(60, 1))
    >>> model = bs.EvidenceRegressor(width=1.0).fit(X, np.sin(2.0 * X[:, 0]) + 0.2 * rng.normal(size=60))
    >>> shown = PredictiveCalibrationDisplay.from_estimator(model)
    >>> bool(0.8 < shown.result.coverage.loc[0.9, "covered"] <= 1.0)
    True
    """

    result: PredictiveCalibration | ClassCalibration = field(repr=False)

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: ArrayLike | None = None, y: ArrayLike | None = None, *, ax: Axes | None = None
    ) -> Self:
        """Draw how the predictions of a fitted estimator fit what was seen.

        Parameters
        ----------
        estimator
            A fitted regressor or classifier.
        X, y
            New rows. None: each training row, predicted from all others.
        ax
            Where to draw; the panels share its place. None: a new figure.

        Examples
        --------
        >>> import numpy as np
        >>> import bayessel as bs
        >>> x = np.linspace(0, 6, 50)
        >>> y = np.sin(x) + 0.1 * np.random.default_rng(0).normal(size=50)
        >>> shown = bs.diagnostics.PredictiveCalibrationDisplay.from_estimator(bs.GPRegressor().fit(x[:, None], y))
        >>> len(shown.axes_)
        3
        """
        labels = getattr(unwrap(estimator)[0], "classes_", None) is not None
        return cls((class_calibration if labels else predictive_calibration)(estimator, X, y)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw it, into the place of `ax` or into a new figure."""
        self._given = ax is not None
        if isinstance(self.result, ClassCalibration):
            self.axes_ = panels_for(ax, 1, 2, 3.5, 3.4)
            self.result.draw(*self.axes_)
        else:
            self.axes_ = panels_for(ax, 1, 3, 3.5, 3.4)
            draw_into(self.axes_, self.result)
        return self
