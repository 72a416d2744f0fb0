"""What estimators of Gaussian processes show of their fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayessel._check import FloatArray
from bayessel.covariance import Covariance
from bayessel.estimators._relevance import in_units
from bayessel.estimators.base import Versioned
from bayessel.estimators.standardise import Standardisation

if TYPE_CHECKING:
    import pandas as pd


class ProcessEstimator(Versioned):
    """Base of estimators that hold a process as `_mode`, at its best hyperparameters, and the whole fit as `fit_`."""

    _units: Standardisation
    #: `GPFit` or `LatentFit`, in standardised units
    _mode: Any
    fit_: Any

    def _one_output(self, what: str) -> None:
        """Say where to look for what is of one process."""
        check_is_fitted(self)
        if self._mode is None:
            raise AttributeError(f"{what} is of one output, and there are several: see outputs_[0].{what} and the rest")

    @property
    def covariance_(self) -> Covariance:
        """In use, with its noise term if it needs one."""
        self._one_output("covariance_")
        covariance: Covariance = self._mode.covariance
        return covariance

    @property
    def log_evidence_(self) -> float:
        """log p(y | mode), in nats."""
        check_is_fitted(self)
        return float(self.fit_.log_evidence)

    @property
    def kind_(self) -> str:
        """What `log_evidence_` is."""
        check_is_fitted(self)
        return str(self.fit_.evidence.kind)

    @property
    def width_(self) -> FloatArray | None:
        """Lengths of the inputs as r of exp(-d²/r²), in units of the inputs; None where the covariance has none."""
        check_is_fitted(self)
        m = len(self._units.input_scale)
        weights = self.covariance_.relevance(self.fit_.inner.theta[: self.covariance_.size(m)], m)
        with np.errstate(divide="ignore"):
            return None if weights is None else np.asarray(np.sqrt(2.0 / weights) * self._units.input_scale)

    @property
    def relevance_(self) -> pd.DataFrame | None:
        """Lengths of the inputs with central 95 % intervals, of the draws or by Laplace's approximation at the mode."""
        check_is_fitted(self)
        if self.width_ is None:
            return None
        return in_units(self.fit_.inner.relevance, self._units.input_scale, self.input_encoding_.names)
