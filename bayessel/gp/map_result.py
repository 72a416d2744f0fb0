"""Result of a fit of the hyperparameters: the point, its evidence, error bars, relevance of the inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, override

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from bayessel._check import FloatArray
from bayessel._fingerprint import fingerprint
from bayessel._row_weights import RowWeights, counted
from bayessel.covariance import Covariance, Prior
from bayessel.fit import Evidence, LeaveOneOut, Status
from bayessel.gp.loo import leave_one_out, own_noise
from bayessel.gp.marginal import Marginal
from bayessel.gp.mode_fit import ModeFit
from bayessel.gp.predict import Predictor
from bayessel.prediction import Prediction


class MapOptimum(NamedTuple):
    """A local maximum: its θ, log p(t|θ), and the objective there (the first plus the log prior, if there is one)."""

    theta: FloatArray
    log_evidence: float
    log_posterior: float


@dataclass(frozen=True, eq=False)
class GPFit(ModeFit):
    """A Gaussian process whose hyperparameters were chosen by maximum a posteriori, or by maximum likelihood.

    Attributes
    ----------
    theta : (k,) array
        The best θ found; natural logarithms, in the order of `names`.
    names : tuple of str
    covariance : Covariance
        With the noise that was added, if it had none.
    prior : Prior or None
        Of all parameters; None: maximum likelihood.
    free : (k,) array of bool
        Parameters that were fitted; the others were given.
    evidence : Evidence
        log p(t|θ), of kind "type2".
    log_posterior : float
        log p(t|θ) p(θ_free), what was maximised; the log evidence itself without a prior.
    optima : tuple of MapOptimum
        All different local maxima that the starts led to, best first.
    history : tuple of dict
        One entry per evaluation: rows used, number of the start, objective, what was still expected.
    n_evaluations : int
        Evaluations of the likelihood on all rows; the many on fewer rows are in the history.
    row_weights : RowWeights or None
        Counts and noise levels of the rows, where they differ.
    """

    theta: FloatArray
    names: tuple[str, ...]
    covariance: Covariance
    prior: Prior | None
    free: npt.NDArray[np.bool_]
    X: FloatArray = field(repr=False)
    t: FloatArray = field(repr=False)
    evidence: Evidence
    log_posterior: float
    optima: tuple[MapOptimum, ...] = field(repr=False)
    status: Status
    notes: tuple[Status, ...]
    history: tuple[dict[str, float], ...] = field(repr=False)
    n_evaluations: int
    seconds: float
    row_weights: RowWeights | None = field(default=None, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.t)

    @cached_property
    def fingerprint(self) -> str:
        """Name of inputs and target."""
        return fingerprint(self.X, self.t)

    @cached_property
    def target_fingerprint(self) -> str:
        """Name of the target."""
        return fingerprint(self.t)

    @property
    def noise_std(self) -> float:
        """Standard deviation r of the noise; where noise levels were given that of a row of their geometric mean."""
        return float(np.sqrt(self.covariance.noise(self.theta, self.X.shape[1])))

    @cached_property
    @override
    def _marginal(self) -> Marginal:
        return Marginal(self.X, self.t, self.covariance, self.row_weights)

    @override
    def _downhill(self) -> Callable[[FloatArray], FloatArray]:
        """Θ -> the gradient of minus the log evidence."""
        # not the one that is kept: its n×n array would be
        marginal = Marginal(self.X, self.t, self.covariance, self.row_weights)
        return lambda theta: -marginal.value_and_gradient(theta)[1]

    @property
    def n_states(self) -> int:
        """States of the hyperparameters that predict: one."""
        return 1

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.X, self.t, self.covariance, self.theta, self.row_weights)

    @override
    def predict(
        self, rows: ArrayLike, variance: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> Prediction:
        """Normal distributions of new observations at new inputs (N, m); the options are those of `Predictor`."""
        return self._predictor(rows, variance, progress)

    @cached_property
    def _of_means(self) -> tuple[FloatArray, FloatArray]:
        """Errors of the rows left out and their variances, those of rows that count several times as of their means."""
        return leave_one_out(self._predictor.factor(0))

    @cached_property
    def _left_out(self) -> LeaveOneOut:
        errors, variances = self._of_means
        if self.row_weights is not None:
            variances = variances + self.noise_std**2 * own_noise(self.row_weights)
        return LeaveOneOut.normal(errors, variances, self.t)

    @override
    def leave_one_out(self, progress: Callable[[int, int], None] | None = None) -> LeaveOneOut:
        """Each row predicted from all others; exact, without refitting: the hyperparameters stay those of all rows."""
        return self._left_out

    @property
    def _off(self) -> tuple[FloatArray, FloatArray]:
        """The residuals Pt and the diagonal of P = RQ⁻¹, R the noise, by which the fitted mean is (I − P)t."""
        # the diagonal of Q⁻¹ is one over the variances, and Q⁻¹t the errors over them
        errors, variances = self._of_means
        share = self.noise_std**2 / variances
        if self.row_weights is not None:
            share = share / self.row_weights.root**2
        return share * errors, share

    @property
    def gamma(self) -> float:
        r"""Well-determined parameters :math:`n - \operatorname{tr} P`; the fitted mean is :math:`(I - P)t`."""
        return self.n_rows - float(self._off[1].sum())

    @property
    def effective_parameters(self) -> float:
        """The same by the name that all smoothers have."""
        return self.gamma

    @property
    def sum_squares(self) -> float:
        """Squared residuals of the fitted mean; of rows with weights of the multiplied ones."""
        residuals = self._off[0]
        if self.row_weights is not None:
            residuals = self.row_weights.scale(residuals)
        return float(residuals @ residuals)

    @property
    def n_counted(self) -> float:
        """Rows that the noise counts: their number, or the sum of their weights."""
        return counted(self.t, self.row_weights)
