"""What fits by their most probable hyperparameters share: curvature there, error bars, the evidence of the model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayessel._check import FloatArray
from bayessel.covariance import Covariance, Prior
from bayessel.fit import Evidence, Fit
from bayessel.gp.laplace import covariance_of, hessian_of, log_volume
from bayessel.gp.marginal import SearchedProcess
from bayessel.gp.relevance import relevance_table

#: kind of an evidence at the mode -> of the one with its parameters integrated out, where that is not "laplace"
_INTEGRATED = {"bound": "laplace-bound", "type2-vecchia": "laplace-vecchia"}


class ModeFit(Fit):
    """Base of fits of a process at the θ where log p(t|θ) p(θ_free) is largest, θ the logarithms of its parameters.

    Attributes
    ----------
    theta, names, free
        The best θ (k,), its names, and which of them were fitted.
    prior : Prior or None
    log_posterior : float
        What was maximised.
    """

    if TYPE_CHECKING:
        theta: FloatArray
        names: tuple[str, ...]
        free: npt.NDArray[np.bool_]
        prior: Prior | None
        log_posterior: float

        @property
        def covariance(self) -> Covariance: ...  # noqa: D102
        @property
        def evidence(self) -> Evidence: ...  # noqa: D102

    @property
    @abstractmethod
    def _marginal(self) -> SearchedProcess:
        """The log evidence as a function of θ."""

    def log_joint(self, theta: FloatArray) -> float:
        """log p(t|θ) p(θ_free) at any θ, in nats: what was maximised, and what samplers draw from."""
        value = self._marginal.value(theta)
        if self.prior is None:
            return value
        return value + self.prior.some(self.free).log_density(np.asarray(theta, dtype=np.float64)[self.free])

    def _downhill(self) -> Callable[[FloatArray], FloatArray]:
        """Θ -> the gradient of minus the log evidence."""
        return lambda theta: -self._marginal.value_and_gradient(theta)[1]

    @cached_property
    def _hessian_free(self) -> FloatArray:
        H = hessian_of(self._downhill(), self.theta, self.free)
        if self.prior is not None:
            # the prior's is known, and some priors bend too sharply for differences
            H = H - np.diag(self.prior.hessian_diagonal(self.theta)[self.free])
        return H

    @property
    def hessian(self) -> FloatArray:
        """Hessian of −log_posterior, (k, k), nil for parameters that were not fitted.

        Computed when first asked for: two gradients per parameter, about twice what the fit itself took.
        """
        H = np.zeros((len(self.theta), len(self.theta)))
        H[np.ix_(self.free, self.free)] = self._hessian_free
        return H

    @property
    def theta_std(self) -> FloatArray:
        """Standard deviations of θ by Laplace's approximation; 0 where given, NaN where the fit is not at a peak."""
        std = np.zeros(len(self.theta))
        with np.errstate(invalid="ignore"):
            std[self.free] = np.sqrt(np.diag(covariance_of(self._hessian_free)))
        return std

    @property
    def model_evidence(self) -> Evidence:
        """log p(t), the fitted parameters integrated out by Laplace's approximation.

        Conditional on the parameters that were given. NaN without a prior, or where the fit is not at a peak. Of a
        bound the kind is "laplace-bound", of Vecchia's approximation "laplace-vecchia".
        """
        kind = _INTEGRATED.get(self.evidence.kind, "laplace")
        value = np.nan if self.prior is None else self.log_posterior + log_volume(self._hessian_free)
        return Evidence(value, kind, integrated=tuple(compress(self.names, self.free)))

    @property
    def relevance(self) -> pd.DataFrame:
        """Lengths w_i^{−1/2} of the inputs, the distance over which the function changes: short means relevant.

        Columns ``weight`` (w_i), ``length``, ``lower`` and ``upper`` (central 95 % of the length by Laplace's
        approximation of log w_i), ``std`` (of the log length). Empty where the covariance has no weights.
        """
        return relevance_table(self.covariance, self.theta, self.free, self._hessian_free, self._marginal.X.shape[1])
